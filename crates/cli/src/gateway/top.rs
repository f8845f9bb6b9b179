//! `bentpipe gateway top`: shows a running gateway in the terminal, updated a few times a second.

use super::show::{heading, look, page, row};
use crate::link::{rate, time};
use crate::outcome::Failure;
use crate::top::watch;
use bentpipe_accelerate::status::{FlowPage, Reply, Status, Verdict};
use bentpipe_service::Client;
use ratatui::Frame;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

/// Width of a bar in columns.
const BAR: usize = 24;
/// Maximum number of connections shown.
const MOST: usize = 200;

/// Shows the gateway until `q` or until it ends; returns the text to print.
pub(super) fn run(client: &mut Client<Reply>, once: bool) -> Result<String, Failure> {
    let now = both(client)?;
    if once {
        return Ok(plain(&now.0, &now.1));
    }
    let help = "bentpipe gateway top --once prints it once, bentpipe gateway status --json for programs";
    watch(
        ("bentpipe gateway top", help),
        now,
        || both(client),
        |frame, now| draw(frame, &now.0, &now.1),
        |now| format!("The gateway has ended.\n{}", plain(&now.0, &now.1)),
    )
}

fn both(client: &mut Client<Reply>) -> Result<(Status, FlowPage), Failure> {
    Ok((look(client)?, page(client, 0, MOST)?))
}

fn draw(frame: &mut Frame<'_>, status: &Status, page: &FlowPage) {
    let area = frame.area();
    for (row, line) in (area.y..area.bottom()).zip(lines(status, page, area.height)) {
        frame.buffer_mut().set_line(area.x, row, &line, area.width);
    }
}

/// The same as plain text.
fn plain(status: &Status, page: &FlowPage) -> String {
    let mut out = String::new();
    for line in lines(status, page, u16::MAX) {
        let text: String = line.spans.iter().map(|span| span.content.as_ref()).collect();
        out += text.trim_end();
        out.push('\n');
    }
    out
}

fn lines(status: &Status, page: &FlowPage, height: u16) -> Vec<Line<'static>> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let faint = Style::new().add_modifier(Modifier::DIM);
    let figures = &status.figures;
    let mut out = vec![Line::from(vec![
        Span::styled(format!("bentpipe gateway {}", status.name), bold),
        Span::raw(format!("  {}  {}", status.kind, time(status.uptime_s))),
        Span::styled("   q quits", faint),
    ])];
    if let Some(bypass) = &status.bypass {
        out.push(Line::from(Span::styled(format!("NOTHING IS ACCELERATED: {bypass}"), warning())));
    }
    if let Some(sample) = &status.sample {
        let style = match sample.verdict {
            Verdict::Slower => warning(),
            Verdict::Faster => Style::new().fg(Color::Green),
            Verdict::TooFew | Verdict::Undecided => faint,
        };
        out.push(Line::from(Span::styled(sample.sentence.clone(), style)));
    }
    out.push(Line::default());
    let [lan, satellite] = status.throughput_bps;
    match status.rate_bps {
        Some(bps) => {
            let text = format!("{} of {}", rate(lan), rate(bps as f64));
            out.push(meter("to satellite", lan / bps as f64, &text));
        }
        None => out.push(Line::from(format!("  to satellite  {}", rate(lan)))),
    }
    out.push(Line::from(format!("  back          {}", rate(satellite))));
    out.push(Line::from(format!(
        "  connections   {} accelerated, {} passing",
        figures.accelerated, figures.passing
    )));
    let style = if figures.lost > 0 { Style::new().fg(Color::Yellow) } else { Style::new() };
    let text = format!("  hop           {} lost, {} sent again", figures.lost, figures.repaired);
    out.push(Line::from(Span::styled(text, style)));
    if page.flows.is_empty() {
        return out;
    }
    out.extend([Line::default(), Line::from(Span::styled(heading(), bold))]);
    let room = usize::from(height).saturating_sub(out.len()).max(1);
    out.extend(page.flows.iter().take(room).map(|flow| {
        let style = if flow.why_passing.is_some() { faint } else { Style::new() };
        Line::from(Span::styled(row(flow), style))
    }));
    let shown = page.flows.len().min(room) as u64;
    if page.all > shown {
        if page.flows.len() >= room {
            out.pop();
        }
        let hidden = page.all - shown + u64::from(page.flows.len() >= room);
        out.push(Line::from(format!("... and {hidden} more")));
    }
    out
}

fn warning() -> Style {
    Style::new().fg(Color::Red).add_modifier(Modifier::BOLD)
}

fn meter(name: &str, share: f64, text: &str) -> Line<'static> {
    let full = ((share.clamp(0.0, 1.0) * BAR as f64) + 0.5) as usize;
    Line::from(vec![
        Span::raw(format!("  {name:12}  ")),
        Span::styled("\u{2588}".repeat(full), Style::new().fg(Color::Cyan)),
        Span::styled("\u{2591}".repeat(BAR - full), Style::new().add_modifier(Modifier::DIM)),
        Span::raw(format!("  {text}")),
    ])
}

#[cfg(test)]
mod tests {
    use super::super::show::tests::sample;
    use super::*;
    use bentpipe_accelerate::status::Groups;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    #[test]
    fn a_gateway_as_a_picture() {
        let (status, page) = sample();
        let text = plain(&status, &page);
        let wanted = "\
bentpipe gateway gateway  routed  71.2 s   q quits

  to satellite  ████████████████████████  23.9 Mbit/s of 24 Mbit/s
  back          400 kbit/s
  connections   12 accelerated, 3 passing
  hop           7 lost, 9 sent again
";
        assert!(text.starts_with(wanted), "{text}");
        assert!(text.ends_with("... and 13 more\n"), "{text}");
    }

    #[test]
    fn a_loss_stands_out_and_a_small_terminal_is_no_harm() {
        let (mut status, page) = sample();
        let mut comparison = Groups::default().compare();
        comparison.verdict = Verdict::Slower;
        status.sample = Some(comparison);
        let mut terminal = Terminal::new(TestBackend::new(80, 10)).unwrap();
        terminal.draw(|frame| draw(frame, &status, &page)).unwrap();
        assert_eq!(terminal.backend().buffer().cell((0, 1)).map(|c| c.fg), Some(Color::Red));
        for (columns, rows) in [(1, 1), (0, 0), (10, 3), (300, 5)] {
            let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
            terminal.draw(|frame| draw(frame, &status, &page)).unwrap();
        }
    }

    #[test]
    fn connections_that_find_no_room_are_counted() {
        let (status, mut page) = sample();
        page.flows = vec![page.flows[0].clone(); 50];
        page.all = 1000;
        let lines = lines(&status, &page, 20);
        assert_eq!(lines.len(), 20);
        let rows = lines.len() - 1 - 8;
        let last: String = lines[19].spans.iter().map(|s| s.content.as_ref()).collect();
        assert_eq!(last, format!("... and {} more", 1000 - rows));
    }
}
