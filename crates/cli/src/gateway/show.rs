//! Output of `bentpipe gateway check`, `status` and `flows`.

use crate::doctor::findings_text;
use crate::link::{listed, rate, time};
use crate::outcome::{Failure, to_json};
use bentpipe_accelerate::deploy::{Check, Sandbox};
use bentpipe_accelerate::status::{
    FlowPage, FlowStats, GatewayCounters, NodeFigures, Reply, Request, Status, WindowStats,
};
use bentpipe_base::Size;
use bentpipe_service::Client;
use core::fmt::Write as _;
use serde_json::json;
use std::thread::park_timeout;
use std::time::Duration;

/// Time until the first measurement of throughput, which is made once a second, in seconds.
const FIRST: f64 = 1.2;

/// Formats the result of `bentpipe gateway check`.
pub(super) fn check(file: &str, check: &Check, json: bool) -> Result<String, Failure> {
    let steps = check.steps();
    if json {
        return to_json(&json!({
            "file": file,
            "starts": check.is_good(),
            "intercepts": check.intercepted,
            "steps": steps,
            "findings": check.findings,
        }));
    }
    let mut out = String::from("would go through the gateway:\n");
    for line in &check.intercepted {
        let _ = writeln!(out, "  {line}");
    }
    out += "\nwould be changed, and reverted at the end:\n";
    for line in steps.iter().flat_map(|step| step.lines()) {
        let _ = writeln!(out, "  {line}");
    }
    out += "\nthis machine:\n";
    out += &findings_text(&check.findings);
    out += if check.is_good() { "\nthe gateway would start\n" } else { "\nthe gateway would not start\n" };
    Ok(out)
}

pub(super) fn status(client: &mut Client<Reply>, json: bool) -> Result<String, Failure> {
    let mut status = look(client)?;
    if status.uptime_s < FIRST {
        park_timeout(Duration::from_secs_f64(FIRST - status.uptime_s.max(0.0)));
        status = look(client)?;
    }
    if json { to_json(&status) } else { Ok(text(&status)) }
}

pub(super) fn look(client: &mut Client<Reply>) -> Result<Status, Failure> {
    let status = |reply| if let Reply::Status(status) = reply { Some(*status) } else { None };
    Ok(client.ask(&Request::Status, status)?)
}

pub(super) fn page(client: &mut Client<Reply>, from: u32, most: usize) -> Result<FlowPage, Failure> {
    let page = |reply| if let Reply::Flows(page) = reply { Some(page) } else { None };
    Ok(client.ask(&Request::Flows { from, most }, page)?)
}

pub(super) fn flows(page: &FlowPage, json: bool) -> Result<String, Failure> {
    if json {
        return to_json(page);
    }
    let mut out = heading() + "\n";
    for flow in &page.flows {
        let _ = writeln!(out, "{}", row(flow));
    }
    if let Some(next) = page.next {
        let _ = writeln!(out, "{} of {} connections; more with --from {next}", page.flows.len(), page.all);
    }
    Ok(out)
}

/// Returns one line each for the gateway, traffic, connections, the hop, local losses and the measured gain.
pub(super) fn text(status: &Status) -> String {
    let figures = &status.figures;
    let own = status.rate_bps.map_or("not paced".to_owned(), |bps| format!("hop {}", rate(bps as f64)));
    let Status { name, kind, file, uptime_s, .. } = status;
    let mut out = format!("gateway {name} ({kind}, {file})  {}  {own}\n", time(*uptime_s));
    let mut line = |name: &str, text: &str| {
        let _ = writeln!(out, "{name:<12} {text}");
    };
    let [lan, satellite] = status.throughput_bps.map(rate);
    line("traffic", &format!("{lan} to the satellite, {satellite} back"));
    let GatewayCounters { accelerated, passing, connections, lost, repaired, copied, keep_alives, .. } =
        figures;
    let why = listed(&figures.passing_why);
    let why = if why == "none" { String::new() } else { format!(" ({why})") };
    let now = format!("{accelerated} accelerated, {passing} passing{why}");
    line("connections", &format!("{now}, {connections} in all since the start"));
    let kept = if *keep_alives > 0 { format!(", {keep_alives} keep-alives") } else { String::new() };
    line("hop", &format!("{lost} packets lost, {repaired} sent again, {copied} further copies{kept}"));
    line("held", &format!("{} B, at most {} B", figures.held_bytes, figures.held_peak_bytes));
    line("withheld", &listed(&figures.not_forwarded));
    for (n, window) in figures.windows.iter().enumerate() {
        line(if n == 0 { "windows" } else { "" }, &announced(window, figures.hop_rtt_ms));
    }
    if figures.more_clients {
        line("", "and more clients than are counted");
    }
    for router in &figures.rate {
        let name = if router.name == "to_lan" { "rate back" } else { "rate" };
        line(name, &told_rates(router));
    }
    for node in &figures.nodes {
        line(&node.name, &listed(&node.counters));
    }
    line("dropped", &listed(&figures.port_drops));
    line("data path", &listed(&figures.data_path));
    let Sandbox { landlock, seccomp } = &status.sandbox;
    line("sandbox", &format!("Landlock {landlock}; seccomp {seccomp}"));
    if !status.priority.is_empty() {
        line("data thread", &status.priority);
    }
    if status.records_lost > 0 {
        line("records", &format!("{} could not be written", status.records_lost));
    }
    if let Some(sample) = &status.sample {
        line("gain", &sample.sentence);
    }
    if let Some(bypass) = &status.bypass {
        let _ = writeln!(out, "NOTHING IS ACCELERATED: {bypass}");
    }
    out
}

/// How many hosts announce a window, what it allows on this hop, and what acceleration gains.
fn announced(of: &WindowStats, rtt_ms: Option<f64>) -> String {
    let counted = |n: u64, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
    let (clients, all) = (counted(of.clients, "client"), counted(of.connections, "connection"));
    let verb = if of.clients == 1 { "announces" } else { "announce" };
    let window = Size(of.window_bytes);
    let who = format!("{clients} {verb} up to {window} ({all}, {} accelerated)", of.accelerated);
    let Some((limit, rtt)) = of.limit_bps.zip(rtt_ms) else {
        return who + ": the RTT of the hop is not known yet";
    };
    let most = format!("{who}: at most {} over {}", rate(limit as f64), trip(rtt));
    match of.gain {
        Some(gain) if gain > 1.0 => format!("{most}, {gain:.1} times as much with acceleration"),
        Some(_) => most + ", more than its share of the hop",
        None => most,
    }
}

/// What a flow router gives, and its counts that are not zero.
fn told_rates(router: &NodeFigures) -> String {
    let of = |key: &str| router.counters.iter().find(|(k, _)| k == key).map_or(0.0, |(_, n)| *n as f64);
    let [all, given, reserved, used] =
        ["rate_bps", "given_bps", "reserved_bps", "used_bps"].map(|key| rate(of(key)));
    let counts: Vec<_> = router.counters.iter().filter(|(key, _)| !key.ends_with("_bps")).cloned().collect();
    format!("{given} given, {reserved} reserved, {used} used on average, of {all}; {}", listed(&counts))
}

pub(super) fn heading() -> String {
    cells(["LAN", "satellite", "treatment", "RTT", "goodput", "window", "shown", "lost"])
}

pub(super) fn row(flow: &FlowStats) -> String {
    let treatment = flow.why_passing.as_ref().map_or("accelerated".to_owned(), |why| why.replace('_', " "));
    let rtt = flow.rtt_ms.map_or("-".to_owned(), trip);
    let goodput = flow.goodput_bps.map_or("-".to_owned(), |bps| rate(bps as f64));
    let [window, shown, lost] = [flow.window_bytes, flow.shown_bytes, flow.lost].map(|n| n.to_string());
    cells([&flow.lan, &flow.satellite, &treatment, &rtt, &goodput, &window, &shown, &lost])
}

/// Returns the two ends of a row, and its figures, each with its name.
pub(super) fn figures(flow: &FlowStats) -> (String, Vec<String>) {
    let treatment = flow.why_passing.as_ref().map_or("accelerated".to_owned(), |why| why.replace('_', " "));
    let rtt = flow.rtt_ms.map(|ms| format!("RTT {}", trip(ms)));
    let goodput = flow.goodput_bps.map(|bps| rate(bps as f64));
    let rest = [("window", flow.window_bytes), ("shown", flow.shown_bytes), ("lost", flow.lost)];
    let rest = rest.map(|(name, n)| format!("{name} {n}"));
    let all = [treatment].into_iter().chain(rtt).chain(goodput).chain(rest).collect();
    (format!("{} - {}", flow.lan, flow.satellite), all)
}

/// Formats a measured RTT with at least two digits. It is never zero.
fn trip(ms: f64) -> String {
    match ms {
        ms if ms >= 9.95 => format!("{ms:.0} ms"),
        ms if ms >= 0.995 => format!("{ms:.1} ms"),
        ms if ms >= 0.01 => format!("{ms:.2} ms"),
        _ => "<0.01 ms".to_owned(),
    }
}

fn cells([lan, satellite, treatment, rtt, goodput, window, shown, lost]: [&str; 8]) -> String {
    format!("{lan:24} {satellite:24} {treatment:14} {rtt:>8} {goodput:>12} {window:>9} {shown:>9} {lost:>6}")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn sample() -> (Status, FlowPage) {
        let figures = GatewayCounters {
            accelerated: 12,
            passing: 3,
            passing_why: vec![
                ("sampled".to_owned(), 2),
                ("mid_stream".to_owned(), 1),
                ("signed".to_owned(), 0),
            ],
            connections: 512,
            lost: 7,
            repaired: 9,
            held_bytes: 190_000,
            held_peak_bytes: 2_000_000,
            not_forwarded: vec![("duplicate_ack".to_owned(), 40)],
            port_drops: vec![("lan_send".to_owned(), 0)],
            data_path: vec![("late_turns".to_owned(), 3), ("store_full".to_owned(), 0)],
            ..GatewayCounters::default()
        };
        let status = Status {
            name: "gateway".to_owned(),
            file: "gw.toml".to_owned(),
            kind: "routed".to_owned(),
            uptime_s: 71.2,
            rate_bps: Some(24_000_000),
            throughput_bps: [23.9e6, 0.4e6],
            figures,
            priority: "real-time priority 10".to_owned(),
            sandbox: Sandbox { landlock: "on, interface 7".to_owned(), seccomp: "on".to_owned() },
            ..Status::default()
        };
        let flow = FlowStats {
            lan: "10.0.0.1:40112".to_owned(),
            satellite: "192.0.2.1:443".to_owned(),
            rtt_ms: Some(1003.2),
            goodput_bps: Some(23_000_000),
            window_bytes: 65_535,
            shown_bytes: 3_100_000,
            lost: 9,
            ..FlowStats::default()
        };
        let passing = FlowStats { why_passing: Some("mid_stream".to_owned()), ..flow.clone() };
        (status, FlowPage { all: 15, flows: vec![flow, passing], next: Some(2) })
    }

    #[test]
    fn a_status_in_words() {
        let wanted = "\
gateway gateway (routed, gw.toml)  71.2 s  hop 24 Mbit/s
traffic      23.9 Mbit/s to the satellite, 400 kbit/s back
connections  12 accelerated, 3 passing (2 sampled, 1 mid stream), 512 in all since the start
hop          7 packets lost, 9 sent again, 0 further copies
held         190000 B, at most 2000000 B
withheld     40 duplicate ack
dropped      none
data path    3 late turns
sandbox      Landlock on, interface 7; seccomp on
data thread  real-time priority 10
";
        assert_eq!(text(&sample().0), wanted);
    }

    #[test]
    fn an_rtt_is_never_said_to_be_zero() {
        let (mut status, FlowPage { flows, .. }) = sample();
        status.figures.windows = vec![WindowStats { limit_bps: Some(1_000_000), ..WindowStats::default() }];
        let mut flow = flows.into_iter().next().unwrap();
        for (ms, words) in [
            (None, None),
            (Some(0.0), Some("<0.01 ms")),
            (Some(0.004), Some("<0.01 ms")),
            (Some(0.31), Some("0.31 ms")),
            (Some(0.997), Some("1.0 ms")),
            (Some(9.97), Some("10 ms")),
            (Some(612.4), Some("612 ms")),
        ] {
            (flow.rtt_ms, status.figures.hop_rtt_ms) = (ms, ms);
            let row = row(&flow);
            let cell = words.map_or_else(|| " -".to_owned(), |words| format!(" {words}"));
            assert!(row.contains(&cell) && row.len() == heading().len(), "{row}");
            let (_, figures) = figures(&flow);
            let said = figures.iter().find_map(|figure| figure.strip_prefix("RTT "));
            assert_eq!(said, words);
            let census = text(&status);
            let of_hop = words.map_or("the RTT of the hop is not known yet".into(), |w| format!(" over {w}"));
            assert!(census.contains(&of_hop), "{census}");
        }
    }

    #[test]
    fn a_census_of_windows_says_what_each_would_gain() {
        let (mut status, _) = sample();
        let window = |window_bytes, clients, limit_bps, gain| WindowStats {
            window_bytes,
            clients,
            connections: 40,
            accelerated: 38,
            limit_bps,
            gain,
        };
        status.figures.hop_rtt_ms = Some(1003.2);
        status.figures.windows = vec![
            window(65_535, 12, Some(522_608), Some(45.7)),
            window(6 << 20, 1, Some(50_170_000), Some(1.0)),
            window(17_520, 0, Some(139_713), None),
        ];
        status.figures.more_clients = true;
        let wanted = "
windows      12 clients announce up to 65535 B (40 connections, 38 accelerated): at most 523 kbit/s over 1003 ms, 45.7 times as much with acceleration
             1 client announces up to 6 MiB (40 connections, 38 accelerated): at most 50.2 Mbit/s over 1003 ms, more than its share of the hop
             0 clients announce up to 17520 B (40 connections, 38 accelerated): at most 140 kbit/s over 1003 ms
             and more clients than are counted
";
        assert!(text(&status).contains(wanted), "{}", text(&status));
        status.figures.windows[0].limit_bps = None;
        let unknown = "(40 connections, 38 accelerated): the RTT of the hop is not known yet\n";
        assert!(text(&status).contains(unknown), "{}", text(&status));
    }

    #[test]
    fn flow_routers_have_a_line_for_each_direction() {
        let counter = |key: &str, n| (key.to_owned(), n);
        let counters = vec![
            counter("rate_bps", 20_000_000),
            counter("flows", 3),
            counter("policed", 0),
            counter("reserved_bps", 1_000_000),
            counter("given_bps", 18_000_000),
            counter("used_bps", 500_000),
        ];
        let (mut status, _) = sample();
        let router = |name: &str| NodeFigures {
            name: name.to_owned(),
            counters: counters.clone(),
            ..NodeFigures::default()
        };
        status.figures.rate = vec![router("to_satellite"), router("to_lan")];
        let words = "18 Mbit/s given, 1 Mbit/s reserved, 500 kbit/s used on average, of 20 Mbit/s; 3 flows";
        assert!(
            text(&status).contains(&format!("\nrate         {words}\nrate back    {words}\n")),
            "{}",
            text(&status)
        );
    }

    #[test]
    fn rows_stand_below_their_headings() {
        let (_, page) = sample();
        for flow in &page.flows {
            assert_eq!(row(flow).len(), heading().len(), "{}", row(flow));
        }
        assert!(row(&page.flows[1]).contains(" mid stream "));
    }
}
