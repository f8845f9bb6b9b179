//! The report in words: what each flow got of what the path could carry, and what limited it.

use crate::reference;
use crate::report::{
    FallbackReport, FlowReport, LimitedBy, LinkReport, LiveReport, ProbesReport, Quantiles, Report,
    TransferReport,
};
use bentpipe_tcp::Scheme;
use core::fmt::Write as _;

/// Up to this many flows each get lines of their own; more are summed up by scheme and cause.
const MOST_LISTED: usize = 10;
/// A second cause is worth a word above this share.
const WORTH_SAYING: f64 = 0.1;
/// A link is listed when it dropped packets or was busier than this.
const BUSY: f64 = 0.5;

impl Report {
    /// The report as readable text.
    pub fn to_text(&self) -> String {
        let mut out = self.in_words();
        reference::table(&mut out, &self.references);
        out
    }

    /// The same without the table of others' figures, which needs letters of one width.
    pub fn in_words(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "{}", self.scenario);
        if let Some(mark) = self.live.as_ref().and_then(LiveReport::mark) {
            let _ = writeln!(out, "{mark}\n");
        }
        let flows = self.flows.len();
        let total = rate(self.total.goodput_bps);
        let plural = if flows == 1 { "flow" } else { "flows" };
        let seed = self.seed.map_or_else(String::new, |seed| format!(", seed {seed}"));
        let _ = write!(out, "{flows} {plural}, {} s{seed}: {total}", trim(self.simulated_s, 3));
        if let (Some(jain), true) = (self.total.jain, flows > 1) {
            let _ = write!(out, " in all, Jain's fairness index {jain:.3}");
        }
        out.push_str("\n\n");
        if flows <= MOST_LISTED {
            for flow in &self.flows {
                flow_lines(&mut out, flow);
            }
        } else {
            groups(&mut out, &self.flows);
        }
        for transfer in &self.transfers {
            let _ = writeln!(out, "{}", transfer_in_words(transfer));
        }
        links(&mut out, &self.links);
        for gateway in &self.gateways {
            let _ = writeln!(out, "{}", gateway.line());
        }
        for line in self.live.iter().flat_map(LiveReport::lines) {
            let _ = writeln!(out, "{line}");
        }
        out
    }
}

fn flow_lines(out: &mut String, flow: &FlowReport) {
    let (name, kind) = (&flow.name, kind(flow));
    // of a flow whose sender is elsewhere nobody knows what limits it
    let unknown = flow.limited_by.shares().iter().all(|(_, share)| *share <= 0.0);
    let _ = match &flow.udp {
        None if unknown => writeln!(out, "{name} ({kind}): {}", got(flow)),
        Some(_) => writeln!(out, "{name} ({kind}): {}", of(flow.goodput_bps, flow.context.path_bps)),
        None => writeln!(out, "{name} ({kind}): {}: {}", limits_in_words(flow), got(flow)),
    };
    let probes = flow.probes.as_ref().map(ProbesReport::in_words);
    for detail in application(flow).into_iter().chain(detail(flow)).chain(probes).chain(two_swifts(flow)) {
        let _ = writeln!(out, "  {detail}");
    }
}

/// The scheme, or that there is none.
fn kind(flow: &FlowReport) -> &'static str {
    flow.tcp.unwrap_or("UDP")
}

/// What its application measured.
fn application(flow: &FlowReport) -> Option<String> {
    if let Some(r) = &flow.requests {
        let answers = if r.completed == 1 { "answer" } else { "answers" };
        return Some(format!("{} {answers}{}", r.completed, spread(" complete after", &r.response_ms)));
    }
    if let Some(t) = &flow.telnet {
        let after = spread(": after", &t.ack_ms);
        return Some(format!("{} of {} writes acknowledged{after}", t.acknowledged, t.writes));
    }
    let u = flow.udp.as_ref()?;
    let (lost, delay) = (losses(u.lost, u.received), spread("; one-way delay", &u.delay_ms.quantiles));
    let reordered = if u.reordered > 0 { format!(", {} out of order", u.reordered) } else { String::new() };
    Some(format!("{lost}{reordered}{delay}"))
}

/// "12 of 1000 datagrams lost (1 %)"
fn losses(lost: u64, received: u64) -> String {
    let all = lost + received;
    let share = if all == 0 { 0.0 } else { lost as f64 / all as f64 };
    format!("{lost} of {all} datagrams lost ({})", percent(share))
}

/// "complete after 612 ms (median), 1204 ms (99 %)"; nothing without values.
fn spread(lead: &str, times: &Quantiles) -> String {
    match (times.p50, times.p99) {
        (Some(p50), Some(p99)) => {
            format!("{lead} {} ms (median), {} ms (99 %)", trim(p50, 1), trim(p99, 1))
        }
        _ => String::new(),
    }
}

fn transfer_in_words(t: &TransferReport) -> String {
    let connections = if t.connections == 1 { "connection" } else { "connections" };
    let done =
        t.finished_s.map_or_else(|| "not complete".into(), |at| format!("complete at {} s", trim(at, 3)));
    let got = rate(t.goodput_bps);
    format!(
        "transfer {} over {} {connections}: {} B acknowledged, {done}, {got}",
        t.name, t.connections, t.bytes
    )
}

/// What it got, and when it was done.
fn got(flow: &FlowReport) -> String {
    let done = match (flow.established_s, flow.finished_s) {
        (None, _) => return "never established".into(),
        (_, Some(t)) => {
            format!(", {} B acknowledged {} s after its start", flow.bytes_acked, trim(t - flow.start_s, 3))
        }
        _ => String::new(),
    };
    format!("{}{done}", of(flow.goodput_bps, flow.context.path_bps))
}

/// "limited 93 % of the time by the receiver's window of 64 KiB: 0.9 of 1.54 Mbit/s"
fn limits_in_words(flow: &FlowReport) -> String {
    let ranked = ranked(&flow.limited_by);
    let (main, share) = ranked[0];
    let mut text = format!("limited {} of the time by {}", percent(share), cause_in_words(main, flow));
    for (cause, share) in ranked.iter().skip(1).take_while(|(_, s)| *s >= WORTH_SAYING) {
        let _ = write!(text, ", {} by {}", percent(*share), cause_in_words(cause, flow));
    }
    text
}

fn cause_in_words(cause: &str, flow: &FlowReport) -> String {
    let c = &flow.context;
    match cause {
        "handshake" => "opening the connection".into(),
        "application" => "the application, which had nothing more to send".into(),
        "send_buffer" => format!("its send buffer of {}", c.send_buffer),
        "receiver_window" if c.slow_reader => {
            format!("the receiver's window of {}, as its application reads slowly", c.receive_window)
        }
        "receiver_window" => format!("the receiver's window of {}", c.receive_window),
        "congestion_window" => match &flow.fallback {
            Some(FallbackReport { to, .. }) => format!("its congestion window ({to}, to which it fell back)"),
            None => format!("its congestion window ({})", kind(flow)),
        },
        "pacing" => "pacing".into(),
        _ => "repairing losses".into(),
    }
}

/// Round-trip times and losses.
fn detail(flow: &FlowReport) -> Option<String> {
    let (p50, p99) = (flow.rtt_ms.p50?, flow.rtt_ms.p99?);
    let mut text = format!("RTT {} ms (median), {} ms (99 %)", trim(p50, 1), trim(p99, 1));
    if flow.segments_sent > 0 {
        let resent = flow.retransmits as f64 / flow.segments_sent as f64;
        let timeouts = if flow.timeouts == 1 { "timeout" } else { "timeouts" };
        let _ = write!(
            text,
            "; {} of {} segments resent ({}), {} {timeouts}",
            flow.retransmits,
            flow.segments_sent,
            percent(resent),
            flow.timeouts
        );
    }
    if let Some(FallbackReport { to, why, at_s, .. }) = &flow.fallback {
        let _ = write!(text, "; {to} from {} s on: {why}", trim(*at_s, 1));
    }
    Some(text)
}

/// A name that two protocols have.
fn two_swifts(flow: &FlowReport) -> Option<String> {
    let said = flow.tcp == Some(Scheme::SWIFT);
    said.then(|| "`swift` is TCP-Swift for satellites (2004), also called `swift-sat`; not the data-centre protocol of 2020".into())
}

/// Causes, the largest share first; ties in the order of the JSON.
fn ranked(l: &LimitedBy) -> [(&'static str, f64); 7] {
    let mut all = l.shares();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all
}

/// Many flows: one paragraph for each scheme and main cause.
fn groups(out: &mut String, flows: &[FlowReport]) {
    let mut keys: Vec<(&str, &str)> = Vec::new();
    for flow in flows {
        let key = group_key(flow);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    for key in keys {
        let members: Vec<&FlowReport> = flows.iter().filter(|f| group_key(f) == key).collect();
        group(out, &members);
    }
}

fn group_key(flow: &FlowReport) -> (&'static str, &'static str) {
    (kind(flow), ranked(&flow.limited_by)[0].0)
}

fn group(out: &mut String, members: &[&FlowReport]) {
    let mut goodputs: Vec<f64> = members.iter().map(|f| f.goodput_bps).collect();
    goodputs.sort_by(f64::total_cmp);
    let n = members.len();
    let first = members[0];
    let _ = writeln!(
        out,
        "{n} {} flows ({} to {}): {} each (median), {} to {}",
        kind(first),
        first.name,
        members[n - 1].name,
        rate(goodputs[n / 2]),
        rate(goodputs[0]),
        rate(goodputs[n - 1])
    );
    let datagrams = members.iter().filter_map(|m| m.udp.as_ref());
    if first.udp.is_some() {
        let (lost, received) = datagrams.fold((0, 0), |(l, r), u| (l + u.lost, r + u.received));
        let _ = writeln!(out, "  {}", losses(lost, received));
        return;
    }
    let mut mean = (*first).clone();
    mean.limited_by = LimitedBy::mean(members.iter().map(|f| &f.limited_by));
    let _ = writeln!(out, "  {}", limits_in_words(&mean));
    let sum = |f: fn(&FlowReport) -> u64| members.iter().map(|m| f(m)).sum::<u64>();
    let (sent, resent) = (sum(|f| f.segments_sent), sum(|f| f.retransmits));
    if sent > 0 {
        let share = percent(resent as f64 / sent as f64);
        let _ =
            writeln!(out, "  {resent} of {sent} segments resent ({share}), {} timeouts", sum(|f| f.timeouts));
    }
    let probes = ProbesReport::sum(members.iter().filter_map(|m| m.probes.as_ref()));
    for line in probes.map(|p| p.in_words()).into_iter().chain(two_swifts(first)) {
        let _ = writeln!(out, "  {line}");
    }
}

fn links(out: &mut String, links: &[LinkReport]) {
    out.push('\n');
    let shown: Vec<&LinkReport> =
        links.iter().filter(|l| l.utilisation >= BUSY || !l.drops.is_empty()).collect();
    for link in &shown {
        let q = &link.queue_packets;
        let _ = write!(
            out,
            "link {}: {} busy, queue {} packets (mean), {} (peak)",
            link.name,
            percent(link.utilisation),
            trim(q.mean, 1),
            q.peak
        );
        for (cause, n) in &link.drops {
            let _ = write!(out, ", {n} dropped ({})", cause.replace('_', " "));
        }
        if let Some(n) = link.marked.filter(|n| *n > 0) {
            let _ = write!(out, ", {n} marked");
        }
        out.push('\n');
    }
    let rest = links.len() - shown.len();
    if rest > 0 {
        let most = links
            .iter()
            .filter(|l| l.utilisation < BUSY && l.drops.is_empty())
            .map(|l| l.utilisation)
            .fold(0.0, f64::max);
        let (noun, other) = if rest == 1 { ("link", "") } else { ("links", "s") };
        let lead = if shown.is_empty() { "" } else { "other " };
        let _ = writeln!(out, "{rest} {lead}{noun}: at most {} busy, no drop{other}", percent(most));
    }
}

/// "0.9 of 1.54 Mbit/s"; only the part where the whole is unknown.
fn of(part: f64, whole: u64) -> String {
    if whole == 0 {
        return rate(part);
    }
    let (unit, name) = unit_of(whole as f64);
    format!("{} of {} {name}", trim(part / unit, 3), trim(whole as f64 / unit, 3))
}

pub(crate) fn rate(bps: f64) -> String {
    let (unit, name) = unit_of(bps);
    format!("{} {name}", trim(bps / unit, 3))
}

fn unit_of(bps: f64) -> (f64, &'static str) {
    match bps {
        b if b >= 1e9 => (1e9, "Gbit/s"),
        b if b >= 1e6 => (1e6, "Mbit/s"),
        b if b >= 1e3 => (1e3, "kbit/s"),
        _ => (1.0, "bit/s"),
    }
}

/// Whole per cent, and more digits where that would say 0 or 100 of something that is neither.
fn percent(share: f64) -> String {
    let p = share * 100.0;
    if (p > 0.0 && p < 1.0) || (p < 100.0 && p > 99.5) { format!("{p:.2} %") } else { format!("{p:.0} %") }
}

/// At most `digits` decimals, without trailing zeros.
pub(crate) fn trim(v: f64, digits: usize) -> String {
    let text = format!("{v:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::Instant;

    #[test]
    fn what_limits_a_flow_that_fell_back_is_what_it_fell_back_to() {
        let mut flow = FlowReport::of_bytes("f".to_owned(), "explicit-rate", 0, Instant::ZERO, Instant::ZERO);
        assert_eq!(cause_in_words("congestion_window", &flow), "its congestion window (explicit-rate)");
        flow.fallback = Some(FallbackReport { to: "cubic", why: "", at_s: 1.0, after_segments: 9 });
        let now = cause_in_words("congestion_window", &flow);
        assert_eq!(now, "its congestion window (cubic, to which it fell back)");
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(of(900_123.0, 1_544_000), "0.9 of 1.544 Mbit/s");
        assert_eq!(of(900_123.0, 0), "900.123 kbit/s");
        assert_eq!(rate(0.0), "0 bit/s");
        assert_eq!(percent(0.932), "93 %");
        assert_eq!(percent(0.0042), "0.42 %");
        assert_eq!(percent(0.9978), "99.78 %");
        assert_eq!(trim(100.0, 3), "100");
    }
}
