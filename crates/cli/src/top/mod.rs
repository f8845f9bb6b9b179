//! `bentpipe top`: shows a running session in the terminal, updated a few times a second.

pub(crate) mod screen;

use crate::link::{
    changes_by_user, connection, errors, figures, heading, lateness, listed, queue, rate, time,
};
use crate::locale;
use crate::outcome::Failure;
use bentpipe_emulate::client::find;
use bentpipe_live::control::{LinkState, Reply, Request, State};
use bentpipe_service::Client;
use clap::Args;
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use screen::{BOLD, FAINT, UPDATE_INTERVAL, WARNING, add_rows, meter, plain, row, watch, wrapped};
use std::thread::park_timeout;

/// Width of the names of connections in columns.
const NAMES: usize = 36;
/// From this ratio on a queue is shown as full.
const FULL: f64 = 0.9;

/// Options of `bentpipe top`.
#[derive(Debug, Args)]
pub(crate) struct Top {
    /// Name of the session, if several are running.
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// Print the state once as plain text, and exit.
    #[arg(long)]
    once: bool,
}

/// Shows the session until `q` or until it ends; returns the text to print.
pub(crate) fn run(top: &Top) -> Result<String, Failure> {
    let mut client = find(top.session.as_deref())?;
    let state = look(&mut client)?;
    if top.once {
        park_timeout(UPDATE_INTERVAL);
        return look(&mut client).map(|state| plain(&lines(&state, locale::columns(), u16::MAX)));
    }
    let help = "bentpipe top --once prints it once, bentpipe link show --json for programs";
    watch(("bentpipe top", help, "session"), state, || look(&mut client), lines)
}

fn look(client: &mut Client<Reply>) -> Result<State, Failure> {
    let state = |reply| if let Reply::State(state) = reply { Some(*state) } else { None };
    Ok(client.ask(&Request::Show, state)?)
}

/// Returns the lines for a screen of this size: a heading, five lines or more for each direction, the
/// connections.
fn lines(state: &State, columns: usize, height: u16) -> Vec<Line<'static>> {
    let mark = if state.timing.trusted { Style::new().fg(Color::Green) } else { WARNING };
    let top = [
        Line::from(vec![
            Span::styled(format!("bentpipe {}", state.session), BOLD),
            Span::raw(format!("  {}  {}", state.title, time(state.uptime_s))),
            Span::styled("   q quits", FAINT),
        ]),
        Line::styled(lateness(state), mark),
    ];
    let mut out: Vec<Line<'static>> = top.iter().flat_map(|line| wrapped(line, columns)).collect();
    let doubts = state.timing.doubts.iter().map(|d| Line::styled(format!("  {d}"), WARNING));
    out.extend(doubts.flat_map(|line| wrapped(&line, columns)));
    for link in &state.links {
        direction(&mut out, link, columns);
    }
    if !state.flows.is_empty() {
        let longest = state.flows.iter().map(|flow| flow.name.chars().count()).max().unwrap_or(0);
        let names = if heading(NAMES).len() <= columns { NAMES } else { longest.min(NAMES) };
        let heading = heading(names);
        let is_wide = heading.len() <= columns;
        let heading = if is_wide { heading } else { "connections".to_owned() };
        out.extend([Line::default(), Line::styled(heading, BOLD)]);
        let rows = state
            .flows
            .iter()
            .map(|flow| row(connection(names, flow), &flow.name, &figures(flow), Style::new(), columns));
        add_rows(&mut out, height, rows.collect(), state.flows.len() as u64);
    }
    out
}

fn direction(out: &mut Vec<Line<'static>>, link: &LinkState, columns: usize) {
    let mut heading = vec![
        Span::styled(link.name.clone(), BOLD),
        Span::raw(format!("  {} -> {}  {} ms", link.from, link.to, link.one_way_ms)),
    ];
    if link.up {
        heading.push(Span::raw(format!(", {}", errors(link))));
    } else {
        heading.push(Span::styled("  DOWN", WARNING));
    }
    heading.extend(
        changes_by_user(link)
            .map(|set| Span::styled(format!("  set: {set}"), Style::new().fg(Color::Yellow))),
    );
    out.push(Line::default());
    out.extend(wrapped(&Line::from(heading), columns));
    let own = link.rate_bps.map_or("none".to_owned(), |bps| rate(bps as f64));
    let used = link.rate_bps.map_or(0.0, |bps| link.throughput_bps / bps as f64);
    let text = format!("{} of {own}", rate(link.throughput_bps));
    out.extend(meter("  rate   ", used, Color::Cyan, &text, columns));
    let fill = filled(link);
    let colour = if fill >= FULL { Color::Red } else { Color::Blue };
    out.extend(meter("  queue  ", fill, colour, &queue(link), columns));
    let lost: u64 = link.drops.iter().map(|d| d.1).sum();
    let style = if lost > 0 { Style::new().fg(Color::Yellow) } else { Style::new() };
    // packets dropped at a full queue are not counted as sent
    let line = format!("  lost   {} of {} sent", listed(&link.drops), link.packets);
    out.extend(wrapped(&Line::styled(line, style), columns));
}

fn filled(link: &LinkState) -> f64 {
    let (now, limit) = match (link.limit_packets, link.limit_bytes) {
        (Some(limit), _) => (link.queue_packets, limit),
        (None, Some(limit)) => (link.queue_bytes, limit),
        (None, None) => return 0.0,
    };
    if limit == 0 { 0.0 } else { now as f64 / limit as f64 }
}

#[cfg(test)]
mod tests {
    use super::screen::draw;
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
        assert_eq!(plain(&lines(&state(), 100, u16::MAX)), wanted);
    }

    #[test]
    fn doubts_stand_out_and_a_small_terminal_is_no_harm() {
        let mut state = state();
        state.timing.trusted = false;
        state.timing.doubts = vec!["3.1 % of the packets left more than 1 ms late".to_owned()];
        let mut terminal = Terminal::new(TestBackend::new(60, 12)).unwrap();
        terminal
            .draw(|frame| draw(&lines(&state, frame.area().width.into(), frame.area().height), frame))
            .unwrap();
        let buffer = terminal.backend().buffer();
        assert_eq!(buffer.cell((0, 1)).map(|c| (c.symbol(), c.fg)), Some(("T", Color::Red)));
        assert_eq!(buffer.cell((2, 2)).map(|c| (c.symbol(), c.fg)), Some(("3", Color::Red)));
        for (columns, rows) in [(1, 1), (0, 0), (10, 3), (300, 5)] {
            let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
            terminal
                .draw(|frame| draw(&lines(&state, frame.area().width.into(), frame.area().height), frame))
                .unwrap();
        }
    }

    /// On each screen all the figures are there, none is cut, and none is apart from its unit.
    #[test]
    fn narrow_screens_have_every_figure() {
        let wide = plain(&lines(&state(), 200, u16::MAX));
        for columns in [80, 60, 40] {
            let mut terminal = Terminal::new(TestBackend::new(columns, 60)).unwrap();
            terminal.draw(|frame| draw(&lines(&state(), columns.into(), 60), frame)).unwrap();
            let buffer = terminal.backend().buffer();
            let rows = (0..60).map(|y| (0..columns).map(|x| buffer[(x, y)].symbol()).collect::<String>());
            let shown: Vec<String> = rows.map(|row| row.trim_end().to_owned()).collect();
            let text = shown.join("\n");
            let number = |word: &&str| word.chars().any(|c| c.is_ascii_digit());
            let missing: Vec<&str> = wide
                .split_whitespace()
                .filter(number)
                .filter(|word| {
                    !text.split_whitespace().any(|w| w.trim_matches(',') == word.trim_matches(','))
                })
                .collect();
            assert_eq!(missing, Vec::<&str>::new(), "{columns} columns\n{text}");
            for figure in ["9.88 Mbit/s", "of 10 Mbit/s", "3.2 dB", "229 packets", "612.3 ms", "9.4 Mbit/s"] {
                assert!(text.contains(figure), "{columns} columns: {figure}\n{text}");
            }
        }
    }

    #[test]
    fn forty_columns_as_a_picture() {
        let text = plain(&lines(&state(), 40, u16::MAX));
        let wanted = "\
bentpipe a1  geo-10m  71.2 s   q quits
in time: lateness p50 25 us, p99 78 us,
  max 181 us

satellite  far -> near  275 ms, loss
  0.001, bit error rate 0, fade 3.2 dB
  set: loss 0.001
  rate   █████  9.88 Mbit/s of 10 Mbit/s
  queue  229 of 458 packets (343500 B)
  lost   17 queue full, 12 packet loss
    of 12345 sent
";
        assert!(text.starts_with(wanted), "{text}");
        let end = "
connections
near:40112 > far:5201
  RTT 612.3 ms, cwnd 420, 9.4 Mbit/s,
    12 sent again
";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn more_connections_than_rows_are_counted() {
        let mut state = state();
        state.flows = vec![state.flows[0].clone(); 50];
        let lines = lines(&state, 100, 20);
        assert_eq!(lines.len(), 20);
        let last: String = lines[19].spans.iter().map(|s| s.content.as_ref()).collect();
        assert_eq!(last, "... and 45 more");
    }
}
