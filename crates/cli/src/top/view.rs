//! The screen: a heading, four lines for each direction, the connections.

use crate::link::{by_user, lateness, losses, queue, rate, share, time};
use bentpipe_live::control::{FlowState, LinkState, State};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

/// Width of a bar in columns.
const BAR: usize = 24;
/// From this ratio on a queue is shown as full.
const FULL: f64 = 0.9;

/// Widget that draws a session.
pub(crate) struct View<'a>(pub(crate) &'a State);

impl Widget for View<'_> {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        for (row, line) in lines(self.0, area.height).into_iter().enumerate() {
            let Ok(row) = u16::try_from(row) else { return };
            if row >= area.height {
                return;
            }
            buffer.set_line(area.x, area.y + row, &line, area.width);
        }
    }
}

/// The same as plain text, `columns` wide.
pub(crate) fn plain(state: &State, columns: u16) -> String {
    let rows = u16::try_from(lines(state, u16::MAX).len()).unwrap_or(u16::MAX);
    let mut buffer = Buffer::empty(Rect::new(0, 0, columns, rows));
    View(state).render(buffer.area, &mut buffer);
    let mut out = String::new();
    for row in 0..rows {
        let line: String = (0..columns)
            .filter_map(|column| buffer.cell((column, row)))
            .map(|cell| cell.symbol().to_owned())
            .collect();
        out += line.trim_end();
        out.push('\n');
    }
    out
}

fn lines(state: &State, height: u16) -> Vec<Line<'static>> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let faint = Style::new().add_modifier(Modifier::DIM);
    let mark = if state.timing.trusted { Style::new().fg(Color::Green) } else { warning() };
    let mut out = vec![
        Line::from(vec![
            Span::styled(format!("bentpipe {}", state.session), bold),
            Span::raw(format!("  {}  {}", state.title, time(state.uptime_s))),
            Span::styled("   q quits", faint),
        ]),
        Line::from(Span::styled(lateness(state), mark)),
    ];
    out.extend(state.timing.doubts.iter().map(|d| Line::from(Span::styled(format!("  {d}"), warning()))));
    for link in &state.links {
        direction(&mut out, link);
    }
    if state.flows.is_empty() {
        return out;
    }
    out.push(Line::default());
    out.push(Line::from(Span::styled(row(["connection", "RTT", "cwnd", "goodput", "sent again"]), bold)));
    let room = usize::from(height).saturating_sub(out.len()).max(1);
    out.extend(state.flows.iter().take(room).map(|flow| Line::from(connection(flow))));
    if state.flows.len() > room {
        out.pop();
        out.push(Line::from(format!("... and {} more", state.flows.len() + 1 - room)));
    }
    out
}

fn warning() -> Style {
    Style::new().fg(Color::Red).add_modifier(Modifier::BOLD)
}

fn direction(out: &mut Vec<Line<'static>>, link: &LinkState) {
    let name = Style::new().add_modifier(Modifier::BOLD);
    let fade = link.fade_db.map_or(String::new(), |db| format!(", fade {db:.1} dB"));
    let mut heading = vec![
        Span::styled(link.name.clone(), name),
        Span::raw(format!("  {} -> {}  {} ms", link.from, link.to, link.one_way_ms)),
    ];
    if link.up {
        heading.push(Span::raw(format!(
            ", loss {}, bit error rate {}{fade}",
            share(link.loss),
            share(link.ber)
        )));
    } else {
        heading.push(Span::styled("  DOWN", warning()));
    }
    heading.extend(
        by_user(link).map(|set| Span::styled(format!("  set: {set}"), Style::new().fg(Color::Yellow))),
    );
    out.push(Line::default());
    out.push(Line::from(heading));
    let own = link.rate_bps.map_or("nothing moves".to_owned(), |bps| rate(bps as f64));
    let used = link.rate_bps.map_or(0.0, |bps| link.throughput_bps / bps as f64);
    out.push(meter("rate", used, Color::Cyan, &format!("{} of {own}", rate(link.throughput_bps))));
    let fill = filled(link);
    let colour = if fill >= FULL { Color::Red } else { Color::Blue };
    out.push(meter("queue", fill, colour, &queue(link)));
    let lost: u64 = link.drops.iter().map(|d| d.1).sum();
    let style = if lost > 0 { Style::new().fg(Color::Yellow) } else { Style::new() };
    // packets dropped at a full queue are not counted as sent
    let line = format!("  {:6} {} of {} sent", "lost", losses(link), link.packets);
    out.push(Line::from(Span::styled(line, style)));
}

fn filled(link: &LinkState) -> f64 {
    let (now, limit) = match (link.limit_packets, link.limit_bytes) {
        (Some(limit), _) => (link.queue_packets, limit),
        (None, Some(limit)) => (link.queue_bytes, limit),
        (None, None) => return 0.0,
    };
    if limit == 0 { 0.0 } else { now as f64 / limit as f64 }
}

fn meter(name: &str, share: f64, colour: Color, text: &str) -> Line<'static> {
    let full = ((share.clamp(0.0, 1.0) * BAR as f64) + 0.5) as usize;
    Line::from(vec![
        Span::raw(format!("  {name:6} ")),
        Span::styled("\u{2588}".repeat(full), Style::new().fg(colour)),
        Span::styled("\u{2591}".repeat(BAR - full), Style::new().add_modifier(Modifier::DIM)),
        Span::raw(format!("  {text}")),
    ])
}

fn row([name, rtt, cwnd, goodput, again]: [&str; 5]) -> String {
    format!("{name:36} {rtt:>10} {cwnd:>8} {goodput:>12} {again:>12}")
}

fn connection(flow: &FlowState) -> String {
    let rtt = flow.rtt_ms.map_or("-".to_owned(), |ms| format!("{ms:.1} ms"));
    let (cwnd, again) = (flow.cwnd.to_string(), flow.retransmits.to_string());
    row([&flow.name, &rtt, &cwnd, &rate(flow.goodput_bps), &again])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::tests::state;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    #[test]
    fn a_session_as_a_picture() {
        let wanted = "\
bentpipe a1  geo-10m  71.2 s   q quits
in time: lateness p50 25 us, p99 78 us, max 181 us

satellite  far -> near  275 ms, loss 0.001, bit error rate 0, fade 3.2 dB  set: loss 0.001
  rate   ████████████████████████  9.88 Mbit/s of 10 Mbit/s
  queue  ████████████░░░░░░░░░░░░  229 of 458 packets (343500 B)
  lost   17 queue full, 12 packet loss of 12345 sent

satellite-return  near -> far  275 ms  DOWN  set: outage until 75.0 s
  rate   ░░░░░░░░░░░░░░░░░░░░░░░░  0 bit/s of 10 Mbit/s
  queue  ████████████████████████  343500 of 64000 B (229 packets)
  lost   none of 12345 sent

connection                                  RTT     cwnd      goodput   sent again
near:40112 > far:5201                  612.3 ms      420   9.4 Mbit/s           12
";
        assert_eq!(plain(&state(), 100), wanted);
    }

    #[test]
    fn doubts_stand_out_and_a_small_terminal_is_no_harm() {
        let mut state = state();
        state.timing.trusted = false;
        state.timing.doubts = vec!["3.1 % of the packets left more than 1 ms late".to_owned()];
        let mut terminal = Terminal::new(TestBackend::new(60, 12)).unwrap();
        terminal.draw(|frame| frame.render_widget(View(&state), frame.area())).unwrap();
        let buffer = terminal.backend().buffer();
        assert_eq!(buffer.cell((0, 1)).map(|c| (c.symbol(), c.fg)), Some(("T", Color::Red)));
        assert_eq!(buffer.cell((2, 2)).map(|c| (c.symbol(), c.fg)), Some(("3", Color::Red)));
        for (columns, rows) in [(1, 1), (0, 0), (10, 3), (300, 5)] {
            let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
            terminal.draw(|frame| frame.render_widget(View(&state), frame.area())).unwrap();
        }
    }

    #[test]
    fn more_connections_than_rows_are_counted() {
        let mut state = state();
        state.flows = vec![state.flows[0].clone(); 50];
        let lines = lines(&state, 20);
        assert_eq!(lines.len(), 20);
        let last: String = lines[19].spans.iter().map(|s| s.content.as_ref()).collect();
        assert_eq!(last, "... and 45 more");
    }
}
