//! `bentpipe gateway top`: shows a running gateway in the terminal, updated a few times a second.

use super::show::{figures, heading, look, page, row};
use crate::link::{rate, time};
use crate::locale;
use crate::outcome::Failure;
use crate::top::screen::{self, BOLD, FAINT, WARNING, add_rows, meter, plain, watch, wrapped};
use bentpipe_accelerate::status::{FlowPage, FlowStats, Reply, Status, Verdict};
use bentpipe_service::Client;
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};

const MOST: usize = 200;

/// Shows the gateway until `q` or until it ends; returns the text to print.
pub(super) fn run(client: &mut Client<Reply>, once: bool) -> Result<String, Failure> {
    let now = both(client)?;
    if once {
        return Ok(plain(&lines(&now, locale::columns().max(heading().len()), u16::MAX)));
    }
    let help = "bentpipe gateway top --once prints it once, bentpipe gateway status --json for programs";
    watch(("bentpipe gateway top", help, "gateway"), now, || both(client), lines)
}

fn both(client: &mut Client<Reply>) -> Result<(Status, FlowPage), Failure> {
    Ok((look(client)?, page(client, 0, MOST)?))
}

fn lines((status, page): &(Status, FlowPage), columns: usize, height: u16) -> Vec<Line<'static>> {
    let mut out: Vec<_> = top(status, columns).iter().flat_map(|line| wrapped(line, columns)).collect();
    if !page.flows.is_empty() {
        let heading = if heading().len() <= columns { heading() } else { "connections".to_owned() };
        out.extend([Line::default(), Line::styled(heading, BOLD)]);
        let style = |flow: &FlowStats| if flow.why_passing.is_some() { FAINT } else { Style::new() };
        let rows = page.flows.iter().map(|flow| {
            let (name, figures) = figures(flow);
            screen::row(row(flow), &name, &figures, style(flow), columns)
        });
        add_rows(&mut out, height, rows.collect(), page.all);
    }
    out
}

/// The lines above the connections.
fn top(status: &Status, columns: usize) -> Vec<Line<'static>> {
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
            out.extend(meter("  to satellite  ", lan / bps as f64, Color::Cyan, &text, columns));
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
        let text = plain(&lines(&sample(), 200, u16::MAX));
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
        terminal
            .draw(|frame| draw(&lines(&now, frame.area().width.into(), frame.area().height), frame))
            .unwrap();
        assert_eq!(terminal.backend().buffer().cell((0, 1)).map(|c| c.fg), Some(Color::Red));
        for (columns, rows) in [(1, 1), (0, 0), (10, 3), (300, 5)] {
            let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
            terminal
                .draw(|frame| draw(&lines(&now, frame.area().width.into(), frame.area().height), frame))
                .unwrap();
        }
    }

    #[test]
    fn narrow_screens_have_every_figure() {
        for columns in [80, 40] {
            let text = plain(&lines(&sample(), columns, u16::MAX));
            assert!(text.lines().all(|line| line.chars().count() <= columns), "{text}");
            for figure in [
                "23.9 Mbit/s of 24 Mbit/s",
                "400 kbit/s",
                "12 accelerated",
                "7 lost",
                "9 sent again",
                "10.0.0.1:40112 - 192.0.2.1:443\n",
                "RTT 1003 ms",
                "23 Mbit/s",
                "window 65535",
                "shown 3100000",
                "lost 9",
            ] {
                assert!(text.contains(figure), "{columns} columns: {figure}\n{text}");
            }
        }
    }

    #[test]
    fn connections_that_find_no_room_are_counted() {
        let mut now = sample();
        now.1.flows = vec![now.1.flows[0].clone(); 50];
        now.1.all = 1000;
        let lines = lines(&now, 200, 20);
        assert_eq!(lines.len(), 20);
        let rows = lines.len() - 1 - 8;
        let last: String = lines[19].spans.iter().map(|s| s.content.as_ref()).collect();
        assert_eq!(last, format!("... and {} more", 1000 - rows));
    }
}
