//! Common parts of the screens of sessions and gateways.

use crate::outcome::Failure;
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use std::io::{self, IsTerminal as _};
use std::time::Duration;

pub(super) const UPDATE_INTERVAL: Duration = Duration::from_millis(300);
/// Width of a bar in columns.
const BAR: usize = 24;

pub(crate) const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
pub(crate) const FAINT: Style = Style::new().add_modifier(Modifier::DIM);
pub(crate) const WARNING: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);

/// Shows what `look` returns until `q`; `lines` makes the lines for a screen of a given height. Returns the
/// text to print, at most `columns` wide: nothing, or the last state if the service has ended. `help` says
/// what to use if there is no terminal.
pub(crate) fn watch<T>(
    (command, help, service): (&str, &str, &str),
    columns: usize,
    mut now: T,
    mut look: impl FnMut() -> Result<T, Failure>,
    lines: impl Fn(&T, u16) -> Vec<Line<'static>>,
) -> Result<String, Failure> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Failure::input(format!("{command} needs a terminal\nhelp: {help}")));
    }
    let terminal = |error: io::Error| Failure::run(format!("the terminal: {error}"));
    let mut screen = ratatui::try_init().map_err(terminal)?;
    let ended = loop {
        if let Err(error) = screen.draw(|frame| draw(&lines(&now, frame.area().height), frame)) {
            break Err(terminal(error));
        }
        match quits() {
            Ok(true) => break Ok(String::new()),
            Ok(false) => {}
            Err(error) => break Err(terminal(error)),
        }
        let Ok(next) = look() else {
            // the last state shown is the final one
            let last = plain(&lines(&now, u16::MAX), columns);
            break Ok(format!("The {service} has ended.\n{last}"));
        };
        now = next;
    };
    ratatui::restore();
    ended
}

/// Draws lines from the top.
pub(crate) fn draw(lines: &[Line<'_>], frame: &mut Frame<'_>) {
    let area = frame.area();
    for (row, line) in (area.y..area.bottom()).zip(lines) {
        frame.buffer_mut().set_line(area.x, row, line, area.width);
    }
}

/// Converts lines to plain text, at most `columns` wide.
pub(crate) fn plain(lines: &[Line<'_>], columns: usize) -> String {
    let text = |line: &Line<'_>| line.to_string().chars().take(columns).collect::<String>();
    lines.iter().map(|line| text(line).trim_end().to_owned() + "\n").collect()
}

/// Adds as many rows as fit, and the number of those that do not; `all` may be more than there are in `rows`.
pub(crate) fn add_rows(out: &mut Vec<Line<'static>>, height: u16, rows: Vec<Line<'static>>, all: u64) {
    let room = usize::from(height).saturating_sub(out.len()).max(1);
    let (shown, is_full) = (rows.len().min(room) as u64, rows.len() >= room);
    out.extend(rows.into_iter().take(room));
    if all > shown {
        if is_full {
            out.pop();
        }
        let hidden = all - shown + u64::from(is_full);
        out.push(Line::from(format!("... and {hidden} more")));
    }
}

/// Returns a bar between its name and its meaning.
pub(crate) fn meter(name: &'static str, share: f64, colour: Color, text: &str) -> Line<'static> {
    let full = ((share.clamp(0.0, 1.0) * BAR as f64) + 0.5) as usize;
    Line::from(vec![
        Span::raw(name),
        Span::styled("\u{2588}".repeat(full), Style::new().fg(colour)),
        Span::styled("\u{2591}".repeat(BAR - full), FAINT),
        Span::raw(format!("  {text}")),
    ])
}

/// Waits until the next update; returns true if the user quits.
fn quits() -> io::Result<bool> {
    if !event::poll(UPDATE_INTERVAL)? {
        return Ok(false);
    }
    let Event::Key(key) = event::read()? else { return Ok(false) };
    let control_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    let quit = matches!(key.code, KeyCode::Char('q' | 'Q') | KeyCode::Esc) || control_c;
    Ok(quit && key.kind == KeyEventKind::Press)
}
