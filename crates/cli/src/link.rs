//! `bentpipe link`: shows and changes a running link.

use crate::outcome::{Failure, to_json};
use bentpipe_emulate::client::find;
use bentpipe_live::control::{Directions, FlowState, LinkState, LinkValues, Reply, Request, State, Target};
use bentpipe_report::decimals;
use bentpipe_scenario::{parse_change, parse_outage_length};
use clap::{Args, Subcommand, ValueEnum};
use core::fmt::Write as _;
use std::thread::park_timeout;
use std::time::Duration;

/// Time between two measurements; the throughput is the average over it.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(250);

pub(crate) const EXAMPLES: &str = "Examples:
  bentpipe link show
  bentpipe link set loss=1e-3 --direction forward
  bentpipe link set rate=2Mbit/s delay=40ms buffer=50packets
  bentpipe link outage 5s
  bentpipe link reset";

/// Shows or changes a running link.
#[derive(Debug, Args)]
pub(crate) struct Link {
    #[command(subcommand)]
    action: Action,
    /// Name of the session, if several are running.
    #[arg(long, value_name = "NAME", global = true)]
    session: Option<String>,
    /// Print the answer as JSON.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print the state of the link: rates, delays, queues, losses, lateness.
    Show,
    /// Change rate, delay, buffer, loss, ber or up, until `reset`.
    ///
    /// The values replace those of the scenario, its timeline, traces and orbits; fades, bursts and recurring
    /// outages still act. The packet in transmission keeps its old values.
    Set {
        /// As in scenario files: rate=5Mbit/s, delay=300ms, buffer=50packets, loss=1e-3, ber=1e-7, up=off.
        #[arg(required = true, value_name = "KEY=VALUE")]
        changes: Vec<String>,
        #[command(flatten)]
        on: TargetArgs,
    },
    /// Lose all packets for some time.
    Outage {
        /// Length of the outage: 5s, 300ms.
        length: String,
        #[command(flatten)]
        on: TargetArgs,
    },
    /// Undo all changes of `set` and `outage`.
    Reset {
        #[command(flatten)]
        on: TargetArgs,
    },
}

#[derive(Debug, Args)]
struct TargetArgs {
    /// Name of the link or direction [default: the only link, or the bottleneck].
    #[arg(long, value_name = "NAME")]
    link: Option<String>,
    /// Direction.
    #[arg(long, value_enum, default_value_t = Direction::Both)]
    direction: Direction,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Direction {
    /// Both.
    Both,
    /// From `from` to `to` of the scenario; with a named link, to the user.
    Forward,
    /// The opposite direction.
    Backward,
}

impl TargetArgs {
    fn target(&self) -> Target {
        let way = match self.direction {
            Direction::Both => Directions::Both,
            Direction::Forward => Directions::Forward,
            Direction::Backward => Directions::Backward,
        };
        Target { link: self.link.clone(), way }
    }
}

/// Sends the request to the session; returns the text to print.
pub(crate) fn run(link: &Link) -> Result<String, Failure> {
    let request = request(&link.action)?;
    let mut client = find(link.session.as_deref())?;
    let mut reply = client.ask(&request, Some)?;
    if request == Request::Show {
        park_timeout(SAMPLE_INTERVAL);
        reply = client.ask(&request, Some)?;
    }
    if link.json {
        return to_json(&reply);
    }
    Ok(match reply {
        Reply::State(state) => show(&state),
        Reply::Done(done) => done.lines().map(|line| line + "\n").collect(),
    })
}

fn request(action: &Action) -> Result<Request, Failure> {
    Ok(match action {
        Action::Show => Request::Show,
        Action::Set { changes, on } => {
            Request::Set { on: on.target(), values: LinkValues::from(&parse_change(changes)?) }
        }
        Action::Outage { length: word, on } => {
            Request::Outage { on: on.target(), length_ns: parse_outage_length(word)?.0 }
        }
        Action::Reset { on } => Request::Reset { on: on.target() },
    })
}

fn show(state: &State) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "session {}: {}, running for {}", state.session, state.title, time(state.uptime_s));
    for link in &state.links {
        direction(&mut out, link);
    }
    let _ = writeln!(out, "\n{}", lateness(state));
    for doubt in &state.timing.doubts {
        let _ = writeln!(out, "  not to be trusted: {doubt}");
    }
    if !state.flows.is_empty() {
        let _ = writeln!(out, "\n{}", heading(32));
    }
    for flow in &state.flows {
        let _ = writeln!(out, "{}", connection(32, flow));
    }
    out
}

/// Returns the heading of the table of connections; the names are `width` columns wide.
pub(crate) fn heading(width: usize) -> String {
    cells(width, ["connection", "RTT", "cwnd", "goodput", "sent again"])
}

/// Returns a row of that table.
pub(crate) fn connection(width: usize, flow: &FlowState) -> String {
    let rtt = flow.rtt_ms.map_or("-".to_owned(), |ms| format!("{ms:.1} ms"));
    let (cwnd, again) = (flow.cwnd.to_string(), flow.retransmits.to_string());
    cells(width, [&flow.name, &rtt, &cwnd, &rate(flow.goodput_bps), &again])
}

/// Returns the figures of that row, each with its name.
pub(crate) fn figures(flow: &FlowState) -> Vec<String> {
    let rtt = flow.rtt_ms.map(|ms| format!("RTT {ms:.1} ms"));
    let rest =
        [format!("cwnd {}", flow.cwnd), rate(flow.goodput_bps), format!("{} sent again", flow.retransmits)];
    rtt.into_iter().chain(rest).collect()
}

fn cells(width: usize, [name, rtt, cwnd, goodput, again]: [&str; 5]) -> String {
    format!("{name:width$} {rtt:>10} {cwnd:>8} {goodput:>12} {again:>12}")
}

fn direction(out: &mut String, link: &LinkState) {
    let own = link.rate_bps.map_or("none".to_owned(), |bps| rate(bps as f64));
    let _ =
        writeln!(out, "\n{}, {} -> {}{}", link.name, link.from, link.to, if link.up { "" } else { "  DOWN" });
    let _ = writeln!(out, "  rate     {own}, in use {}", rate(link.throughput_bps));
    let _ = writeln!(out, "  delay    {} ms one way", link.one_way_ms);
    let _ = writeln!(out, "  errors   {}", errors(link));
    let _ = writeln!(out, "  queue    {}", queue(link));
    let _ = writeln!(out, "  packets  {}, lost: {}", link.packets, listed(&link.drops));
    if let Some(set) = changes_by_user(link) {
        let _ = writeln!(out, "  changed  {set}");
    }
}

/// Formats loss, bit error rate and fade.
pub(crate) fn errors(link: &LinkState) -> String {
    let fade = link.fade_db.map_or(String::new(), |db| format!(", fade {db:.1} dB"));
    format!("loss {}, bit error rate {}{fade}", probability(link.loss), probability(link.ber))
}

/// Formats the current queue length and its limit.
pub(crate) fn queue(link: &LinkState) -> String {
    match (link.limit_packets, link.limit_bytes) {
        (Some(limit), _) => format!("{} of {limit} packets ({} B)", link.queue_packets, link.queue_bytes),
        (None, Some(limit)) => format!("{} of {limit} B ({} packets)", link.queue_bytes, link.queue_packets),
        (None, None) => format!("{} packets", link.queue_packets),
    }
}

/// Lists the counters that are not zero.
pub(crate) fn listed(counts: &[(String, u64)]) -> String {
    let some: Vec<String> =
        counts.iter().filter(|c| c.1 > 0).map(|(key, n)| format!("{n} {}", key.replace('_', " "))).collect();
    if some.is_empty() { "none".to_owned() } else { some.join(", ") }
}

/// Formats what the user has changed; `None` if nothing.
pub(crate) fn changes_by_user(link: &LinkState) -> Option<String> {
    let set = &link.set;
    let mut list: Vec<String> = Vec::new();
    list.extend(set.rate_bps.map(|bps| format!("rate {}", rate(bps as f64))));
    list.extend(set.delay_ns.map(|ns| format!("delay {} ms", ns as f64 / 1e6)));
    list.extend(set.buffer_packets.map(|n| format!("buffer {n} packets")));
    list.extend(set.buffer_bytes.map(|n| format!("buffer {n} B")));
    list.extend(set.loss.map(|p| format!("loss {}", probability(p))));
    list.extend(set.ber.map(|p| format!("bit error rate {}", probability(p))));
    list.extend(set.up.map(|up| if up { "up" } else { "down" }.to_owned()));
    list.extend(link.outage_until_s.map(|s| format!("outage until {}", time(s))));
    if list.is_empty() { None } else { Some(list.join(", ")) }
}

/// Formats how late packets leave.
pub(crate) fn lateness(state: &State) -> String {
    let us = |t: Option<f64>| t.map_or("-".to_owned(), |us| format!("{us:.0} us"));
    let timing = &state.timing;
    let verdict = if timing.trusted { "in time" } else { "TOO LATE" };
    let [p50, p99, max] = [timing.p50_us, timing.p99_us, timing.max_us].map(us);
    format!("{verdict}: lateness p50 {p50}, p99 {p99}, max {max}")
}

/// Formats a rate with three digits and a unit.
pub(crate) fn rate(bps: f64) -> String {
    let (value, unit) = match bps {
        b if b >= 999.5e6 => (b / 1e9, "Gbit/s"),
        b if b >= 999.5e3 => (b / 1e6, "Mbit/s"),
        b if b >= 999.5 => (b / 1e3, "kbit/s"),
        b => (b, "bit/s"),
    };
    let digits = 2 - usize::from(value >= 9.995) - usize::from(value >= 99.95);
    format!("{} {unit}", decimals(value, digits))
}

/// Formats a probability with few digits.
pub(crate) fn probability(p: f64) -> String {
    match p {
        0.0 => "0".to_owned(),
        // shortens 1.00e-5 to 1e-5
        p if p < 1e-3 => format!("{p:.2e}").replace(".00e", "e").replace("0e", "e"),
        p => decimals(p, 4),
    }
}

/// Formats a time since the start of the session.
pub(crate) fn time(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.1} s"),
        s if s < 7200.0 => format!("{} min {} s", s as u64 / 60, s as u64 % 60),
        s => format!("{} h {} min", s as u64 / 3600, s as u64 / 60 % 60),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use bentpipe_live::Timing;

    /// Returns the state of a session in progress.
    pub(crate) fn state() -> State {
        let forward = LinkState {
            name: "satellite".to_owned(),
            link: "satellite".to_owned(),
            from: "far".to_owned(),
            to: "near".to_owned(),
            rate_bps: Some(10_000_000),
            one_way_ms: 275.0,
            loss: 1e-3,
            fade_db: Some(3.21),
            up: true,
            queue_packets: 229,
            queue_bytes: 343_500,
            limit_packets: Some(458),
            throughput_bps: 9_876_543.0,
            packets: 12_345,
            bytes: 18_000_000,
            drops: vec![("queue_full".to_owned(), 17), ("packet_loss".to_owned(), 12)],
            set: LinkValues { loss: Some(1e-3), ..LinkValues::default() },
            ..LinkState::default()
        };
        let backward = LinkState {
            name: "satellite-return".to_owned(),
            backward: true,
            from: "near".to_owned(),
            to: "far".to_owned(),
            up: false,
            loss: 1.0,
            limit_packets: None,
            limit_bytes: Some(64_000),
            throughput_bps: 0.0,
            drops: Vec::new(),
            set: LinkValues::default(),
            outage_until_s: Some(75.0),
            fade_db: None,
            ..forward.clone()
        };
        let timing = Timing {
            packets: 12_000,
            p50_us: Some(25.4),
            p99_us: Some(78.1),
            max_us: Some(181.0),
            trusted: true,
            ..Timing::default()
        };
        let flow = FlowState {
            name: "near:40112 > far:5201".to_owned(),
            rtt_ms: Some(612.34),
            cwnd: 420,
            goodput_bps: 9.4e6,
            retransmits: 12,
        };
        State {
            session: "a1".to_owned(),
            title: "geo-10m".to_owned(),
            uptime_s: 71.25,
            links: vec![forward, backward],
            timing,
            flows: vec![flow],
        }
    }

    #[test]
    fn a_session_as_text() {
        let wanted = "\
session a1: geo-10m, running for 71.2 s

satellite, far -> near
  rate     10 Mbit/s, in use 9.88 Mbit/s
  delay    275 ms one way
  errors   loss 0.001, bit error rate 0, fade 3.2 dB
  queue    229 of 458 packets (343500 B)
  packets  12345, lost: 17 queue full, 12 packet loss
  changed  loss 0.001

satellite-return, near -> far  DOWN
  rate     10 Mbit/s, in use 0 bit/s
  delay    275 ms one way
  errors   loss 1, bit error rate 0
  queue    343500 of 64000 B (229 packets)
  packets  12345, lost: none
  changed  outage until 75.0 s

in time: lateness p50 25 us, p99 78 us, max 181 us

connection                              RTT     cwnd      goodput   sent again
near:40112 > far:5201              612.3 ms      420   9.4 Mbit/s           12
";
        assert_eq!(show(&state()), wanted);
    }

    #[test]
    fn figures_have_three_digits() {
        for (bps, text) in [
            (0.0, "0 bit/s"),
            (999.4, "999 bit/s"),
            (1e3, "1 kbit/s"),
            (1_544_000.0, "1.54 Mbit/s"),
            (24e6, "24 Mbit/s"),
            (999.9e6, "1 Gbit/s"),
            (100e6, "100 Mbit/s"),
        ] {
            assert_eq!(rate(bps), text);
        }
        for (p, text) in
            [(0.0, "0"), (1e-5, "1e-5"), (1.5e-7, "1.5e-7"), (0.01, "0.01"), (1.0, "1"), (0.12345, "0.1235")]
        {
            assert_eq!(probability(p), text);
        }
        assert_eq!([time(5.0), time(300.0), time(7260.0)], ["5.0 s", "5 min 0 s", "2 h 1 min"]);
    }
}
