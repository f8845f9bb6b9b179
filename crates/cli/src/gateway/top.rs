//! `bentpipe gateway top`: shows a running gateway in the terminal, updated a few times a second.

use super::show::{heading, look, page, row};
use crate::link::{rate, time};
use crate::outcome::Failure;
use crate::top::screen::{BOLD, FAINT, WARNING, add_rows, meter, plain, watch};
use bentpipe_accelerate::status::{FlowPage, FlowStats, Reply, Status, Verdict};
use bentpipe_service::Client;
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};

const MOST: usize = 200;

/// Shows the gateway until `q` or until it ends; returns the text to print.
pub(super) fn run(client: &mut Client<Reply>, once: bool) -> Result<String, Failure> {
    let now = both(client)?;
    if once {
        return Ok(plain(&lines(&now, u16::MAX), usize::MAX));
    }
    let help = "bentpipe gateway top --once prints it once, bentpipe gateway status --json for programs";
    watch(("bentpipe gateway top", help, "gateway"), usize::MAX, now, || both(client), lines)
}

fn both(client: &mut Client<Reply>) -> Result<(Status, FlowPage), Failure> {
    Ok((look(client)?, page(client, 0, MOST)?))
}

fn lines((status, page): &(Status, FlowPage), height: u16) -> Vec<Line<'static>> {
    let figures = &status.figures;
    let mut out = vec![Line::from(vec![
        Span::styled(format!("bentpipe gateway {}", status.name), BOLD),
        Span::raw(format!("  {}  {}", status.kind, time(status.uptime_s))),
        Span::styled("   q quits", FAINT),
    ])];
    if let Some(bypass) = &status.bypass {
        out.push(Line::styled(format!("NOTHING IS ACCELERATED: {bypass}"), WARNING));
    }
    if let Some(sample) = &status.sample {
        let style = match sample.verdict {
            Verdict::Slower => WARNING,
            Verdict::Faster => Style::new().fg(Color::Green),
            Verdict::TooFew | Verdict::Undecided => FAINT,
        };
        out.push(Line::styled(sample.sentence.clone(), style));
    }
    out.push(Line::default());
    let [lan, satellite] = status.throughput_bps;
    match status.rate_bps {
        Some(bps) => {
            let text = format!("{} of {}", rate(lan), rate(bps as f64));
            out.push(meter("  to satellite  ", lan / bps as f64, Color::Cyan, &text));
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
    out.push(Line::styled(text, style));
    if !page.flows.is_empty() {
        out.extend([Line::default(), Line::styled(heading(), BOLD)]);
        let style = |flow: &FlowStats| if flow.why_passing.is_some() { FAINT } else { Style::new() };
        let rows = page.flows.iter().map(|flow| Line::styled(row(flow), style(flow))).collect();
        add_rows(&mut out, height, rows, page.all);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::show::tests::sample;
    use super::*;
    use crate::top::screen::draw;
    use bentpipe_accelerate::status::Groups;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    #[test]
    fn a_gateway_as_a_picture() {
        let text = plain(&lines(&sample(), u16::MAX), usize::MAX);
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
        let mut now = sample();
        let mut comparison = Groups::default().compare();
        comparison.verdict = Verdict::Slower;
        now.0.sample = Some(comparison);
        let mut terminal = Terminal::new(TestBackend::new(80, 10)).unwrap();
        terminal.draw(|frame| draw(&lines(&now, frame.area().height), frame)).unwrap();
        assert_eq!(terminal.backend().buffer().cell((0, 1)).map(|c| c.fg), Some(Color::Red));
        for (columns, rows) in [(1, 1), (0, 0), (10, 3), (300, 5)] {
            let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
            terminal.draw(|frame| draw(&lines(&now, frame.area().height), frame)).unwrap();
        }
    }

    #[test]
    fn connections_that_find_no_room_are_counted() {
        let mut now = sample();
        now.1.flows = vec![now.1.flows[0].clone(); 50];
        now.1.all = 1000;
        let lines = lines(&now, 20);
        assert_eq!(lines.len(), 20);
        let rows = lines.len() - 1 - 8;
        let last: String = lines[19].spans.iter().map(|s| s.content.as_ref()).collect();
        assert_eq!(last, format!("... and {} more", 1000 - rows));
    }
}
