//! Common parts of the screens of sessions and gateways.

use crate::locale;
use crate::outcome::Failure;
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use std::io::{self, IsTerminal as _};
use std::time::Duration;

pub(super) const UPDATE_INTERVAL: Duration = Duration::from_millis(300);
/// Width of a bar in columns, and the least that says something.
const BAR: usize = 24;
const SHORTEST_BAR: usize = 4;

pub(crate) const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
pub(crate) const FAINT: Style = Style::new().add_modifier(Modifier::DIM);
pub(crate) const WARNING: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);

/// Shows what `look` returns until `q`; `lines` makes the lines for a number of columns and rows. Returns the
/// text to print: nothing, or the last state if the service has ended. `help` says what to use if there is no
/// terminal.
pub(crate) fn watch<T>(
    (command, help, service): (&str, &str, &str),
    mut now: T,
    mut look: impl FnMut() -> Result<T, Failure>,
    lines: impl Fn(&T, usize, u16) -> Vec<Line<'static>>,
) -> Result<String, Failure> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Failure::input(format!("{command} needs a terminal\nhelp: {help}")));
    }
    let terminal = |error: io::Error| Failure::run(format!("the terminal: {error}"));
    let mut screen = ratatui::try_init().map_err(terminal)?;
    let ended = loop {
        if let Err(error) = screen.draw(|frame| {
            let area = frame.area();
            draw(&lines(&now, area.width.into(), area.height), frame);
        }) {
            break Err(terminal(error));
        }
        match quits() {
            Ok(true) => break Ok(String::new()),
            Ok(false) => {}
            Err(error) => break Err(terminal(error)),
        }
        let Ok(next) = look() else {
            // the last state shown is the final one
            let last = plain(&lines(&now, locale::columns(), u16::MAX));
            break Ok(format!("The {service} has ended.\n{last}"));
        };
        now = next;
    };
    ratatui::restore();
    ended
}

/// Draws lines from the top, as the terminal can show them.
pub(crate) fn draw(lines: &[Line<'_>], frame: &mut Frame<'_>) {
    let area = frame.area();
    for (row, line) in (area.y..area.bottom()).zip(lines) {
        let span = |span: &Span<'_>| Span::styled(locale::shown(&span.content).into_owned(), span.style);
        let line = Line { spans: line.spans.iter().map(span).collect(), ..Line::default() }.style(line.style);
        frame.buffer_mut().set_line(area.x, row, &line, area.width);
    }
}

/// Converts lines to plain text.
pub(crate) fn plain(lines: &[Line<'_>]) -> String {
    lines.iter().map(|line| line.to_string().trim_end().to_owned() + "\n").collect()
}

/// Adds as many rows as fit, each of one or more lines, and the number of those that do not; `all` may be
/// more than there are in `rows`.
pub(crate) fn add_rows(out: &mut Vec<Line<'static>>, height: u16, rows: Vec<Vec<Line<'static>>>, all: u64) {
    let room = usize::from(height).saturating_sub(out.len()).max(1);
    let mut shown = 0;
    let mut used = 0;
    for (n, row) in rows.iter().enumerate() {
        // the last row that fits leaves a line for the number of the others
        let is_last = n as u64 + 1 == all;
        if used + row.len() + usize::from(!is_last) > room {
            break;
        }
        used += row.len();
        shown += 1;
    }
    out.extend(rows.into_iter().take(shown).flatten());
    if all > shown as u64 {
        out.push(Line::from(format!("... and {} more", all - shown as u64)));
    }
}

/// Returns a bar between its name and its meaning; the bar is shorter, or missing, where there is no room.
pub(crate) fn meter(
    name: &'static str,
    share: f64,
    colour: Color,
    text: &str,
    columns: usize,
) -> Vec<Line<'static>> {
    let room = columns.saturating_sub(name.chars().count() + 2 + text.chars().count()).min(BAR);
    if room < SHORTEST_BAR {
        return wrapped(&Line::from(format!("{name}{text}")), columns);
    }
    let full = ((share.clamp(0.0, 1.0) * room as f64) + 0.5) as usize;
    vec![Line::from(vec![
        Span::raw(name),
        Span::styled("\u{2588}".repeat(full), Style::new().fg(colour)),
        Span::styled("\u{2591}".repeat(room - full), FAINT),
        Span::raw(format!("  {text}")),
    ])]
}

/// A row of a table: `wide` where that has room, otherwise its name and its figures below.
pub(crate) fn row(
    wide: String,
    name: &str,
    figures: &[String],
    style: Style,
    columns: usize,
) -> Vec<Line<'static>> {
    if wide.chars().count() <= columns {
        return vec![Line::styled(wide, style)];
    }
    let mut lines = wrapped(&Line::styled(name.to_owned(), style), columns);
    lines.extend(wrapped(&Line::styled(format!("  {}", figures.join(", ")), style), columns));
    lines
}

/// Breaks a line at blanks, so that nothing of it is cut. A number stays with what follows it.
pub(crate) fn wrapped(line: &Line<'_>, columns: usize) -> Vec<Line<'static>> {
    let styles: Vec<(char, Style)> = (line.spans.iter())
        .flat_map(|span| span.content.chars().map(|c| (c, line.style.patch(span.style))))
        .collect();
    let columns = columns.max(1);
    let first = styles.iter().take_while(|(c, _)| *c == ' ').count().min(columns / 2);
    let (mut out, mut rest, mut indent) = (Vec::new(), &styles[..], 0);
    while indent + rest.len() > columns {
        let room = columns - indent;
        let at = (first + 1..=room).rev().find(|at| breaks(rest, *at)).unwrap_or(room);
        out.push(joined(indent, &rest[..at]));
        let blanks = rest[at..].iter().take_while(|(c, _)| *c == ' ').count();
        (rest, indent) = (&rest[at + blanks..], (first + 2).min(columns / 2));
    }
    if !rest.is_empty() || out.is_empty() {
        out.push(joined(indent, rest));
    }
    out
}

/// True if a line may end before the character at `at`: a blank that is not between a number and its unit.
fn breaks(line: &[(char, Style)], at: usize) -> bool {
    let char_at = |i: usize| line.get(i).map(|(c, _)| *c);
    let is_unit = char_at(at + 1).is_some_and(|c| c != ' ' && !c.is_ascii_digit());
    let is_number = char_at(at.wrapping_sub(1)).is_some_and(|c| c.is_ascii_digit());
    char_at(at) == Some(' ') && !(is_number && is_unit)
}

/// Joins characters of the same style.
fn joined(indent: usize, characters: &[(char, Style)]) -> Line<'static> {
    let mut spans = vec![Span::raw(" ".repeat(indent))];
    for same in characters.chunk_by(|a, b| a.1 == b.1) {
        spans.push(Span::styled(same.iter().map(|(c, _)| c).collect::<String>(), same[0].1));
    }
    Line::from(spans)
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
