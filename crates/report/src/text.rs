//! The report as text: how much of the path's rate each flow got, and what limited it.

use crate::application::{Quantiles, TransferReport};
use crate::flow::{FallbackReport, FlowKind, FlowReport, LimitedBy, ProbesReport, TcpReport};
use crate::gateway::{GatewayReport, NodeReport};
use crate::link::LinkReport;
use crate::live::LiveReport;
use crate::rate::{FlowRouterReport, RateReport};
use crate::reference;
use crate::report::Report;
use crate::words::{counted, decimals, part_of_rate, percent, rate};
use core::fmt::Write as _;
use indexmap::IndexMap;

/// Maximum number of flows with lines of their own; more are grouped by scheme and cause.
const MOST_LISTED: usize = 10;
/// A second cause is mentioned above this fraction.
const MENTIONED_SHARE: f64 = 0.1;
/// A link is listed if it dropped packets or its utilisation exceeds this.
const BUSY: f64 = 0.5;

impl Report {
    /// Formats the report as text, the headline first.
    pub fn to_text(&self) -> String {
        self.to_text_with("")
    }

    /// Formats the report as text, with lines after the headline.
    pub fn to_text_with(&self, lines: &str) -> String {
        let mut out = String::new();
        if let Some(mark) = self.live.as_ref().and_then(LiveReport::warning) {
            let _ = writeln!(out, "{mark}\n");
        }
        let _ = writeln!(out, "{}\n{lines}", self.headline());
        out += &self.in_words();
        reference::table(&mut out, &self.references);
        out
    }

    /// Formats the report without headline and warning, which stand apart, and without the table of
    /// references, which needs a monospaced font.
    pub fn in_words(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "{}", self.scenario);
        let flows = self.flows.len();
        let total = rate(self.total.goodput_bps);
        let seed = self.seed.map_or_else(String::new, |seed| format!(", seed {seed}"));
        let time = decimals(self.simulated_s, 3);
        let _ = write!(out, "{}, {time} s{seed}: {total}", counted(flows as u64, "flow"));
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
        let gateways = self.gateways.iter().map(GatewayReport::line);
        let routers = self.flow_routers.iter().map(FlowRouterReport::line);
        let nodes = self.nodes.iter().map(NodeReport::line);
        for line in gateways.chain(routers).chain(nodes).chain(self.live.iter().flat_map(LiveReport::lines)) {
            let _ = writeln!(out, "{line}");
        }
        out
    }
}

fn flow_lines(out: &mut String, flow: &FlowReport) {
    let (name, kind, tcp) = (&flow.name, flow.scheme(), flow.tcp());
    let words = match tcp {
        None => part_of_rate(flow.goodput_bps, flow.context.path_bps),
        // no causes are known if the sender is another host
        Some(tcp) if tcp.limited_by == LimitedBy::default() => goodput_and_end(flow, tcp),
        Some(tcp) => format!("{}: {}", limits_in_words(flow, tcp), goodput_and_end(flow, tcp)),
    };
    let _ = writeln!(out, "{name} ({kind}): {words}");
    let probes = tcp.and_then(|tcp| tcp.probes.as_deref()).map(ProbesReport::in_words);
    let rate = flow.rate().map(RateReport::in_words);
    let details = application(flow).into_iter().chain(tcp.and_then(detail)).chain(probes).chain(rate);
    for detail in details.chain(swift_note(flow)) {
        let _ = writeln!(out, "  {detail}");
    }
}

/// Formats the measurements of the application.
fn application(flow: &FlowReport) -> Option<String> {
    if let Some(u) = flow.udp() {
        let lost = losses(u.lost, u.received);
        let delay = median_and_p99("; one-way delay", &u.delay_ms.quantiles);
        let reordered =
            if u.reordered > 0 { format!(", {} out of order", u.reordered) } else { String::new() };
        return Some(format!("{lost}{reordered}{delay}"));
    }
    let tcp = flow.tcp()?;
    if let Some(r) = &tcp.requests {
        let answers = counted(r.completed, "answer");
        return Some(format!("{answers}{}", median_and_p99(" complete after", &r.response_ms)));
    }
    let t = tcp.telnet.as_ref()?;
    let after = median_and_p99(": after", &t.ack_ms);
    Some(format!("{} of {} writes acknowledged{after}", t.acknowledged, t.writes))
}

/// Formats "12 of 1000 datagrams lost (1 %)".
fn losses(lost: u64, received: u64) -> String {
    let all = lost + received;
    let share = if all == 0 { 0.0 } else { lost as f64 / all as f64 };
    format!("{lost} of {all} datagrams lost ({})", percent(share))
}

/// Formats "complete after 612 ms (median), 1204 ms (99 %)"; empty without samples.
fn median_and_p99(lead: &str, times: &Quantiles) -> String {
    match (times.p50, times.p99) {
        (Some(p50), Some(p99)) => {
            format!("{lead} {} ms (median), {} ms (99 %)", decimals(p50, 1), decimals(p99, 1))
        }
        _ => String::new(),
    }
}

fn transfer_in_words(t: &TransferReport) -> String {
    let connections = counted(t.connections, "connection");
    let done =
        t.finished_s.map_or_else(|| "not complete".into(), |at| format!("complete at {} s", decimals(at, 3)));
    let got = rate(t.goodput_bps);
    format!("transfer {} over {connections}: {} B acknowledged, {done}, {got}", t.name, t.bytes)
}

/// Formats the goodput, and the time at which the flow finished.
fn goodput_and_end(flow: &FlowReport, tcp: &TcpReport) -> String {
    let done = match (tcp.established_s, tcp.finished_s) {
        (None, _) => return "never established".into(),
        (_, Some(at)) => {
            let after = decimals(at - flow.start_s, 3);
            format!(", {} B acknowledged {after} s after its start", tcp.bytes_acked)
        }
        _ => String::new(),
    };
    format!("{}{done}", part_of_rate(flow.goodput_bps, flow.context.path_bps))
}

/// Formats "limited 93 % of the time by the receiver's window of 64 KiB: 0.9 of 1.54 Mbit/s".
fn limits_in_words(flow: &FlowReport, tcp: &TcpReport) -> String {
    let ranked = ranked(&tcp.limited_by);
    let (main, share) = ranked[0];
    let mut text = format!("limited {} of the time by {}", percent(share), cause_in_words(main, flow, tcp));
    for (cause, share) in ranked.iter().skip(1).take_while(|(_, s)| *s >= MENTIONED_SHARE) {
        let _ = write!(text, ", {} by {}", percent(*share), cause_in_words(cause, flow, tcp));
    }
    text
}

fn cause_in_words(cause: &str, flow: &FlowReport, tcp: &TcpReport) -> String {
    let c = &flow.context;
    match cause {
        "handshake" => "opening the connection".into(),
        "application" => "the application, which had nothing more to send".into(),
        "send_buffer" => format!("its send buffer of {}", c.send_buffer),
        "receiver_window" if c.slow_reader => {
            format!("the receiver's window of {}, as its application reads slowly", c.receive_window)
        }
        "receiver_window" => format!("the receiver's window of {}", c.receive_window),
        "congestion_window" => match tcp.fallback.as_deref() {
            Some(FallbackReport { to, .. }) => format!("its congestion window ({to}, to which it fell back)"),
            None => format!("its congestion window ({})", tcp.scheme),
        },
        "pacing" => "pacing".into(),
        _ => "repairing losses".into(),
    }
}

/// Formats RTTs, retransmissions, timeouts and a fallback.
fn detail(tcp: &TcpReport) -> Option<String> {
    let (p50, p99) = (tcp.rtt_ms.p50?, tcp.rtt_ms.p99?);
    let mut text = format!("RTT {} ms (median), {} ms (99 %)", decimals(p50, 1), decimals(p99, 1));
    if tcp.segments_sent > 0 {
        let share = percent(tcp.retransmits as f64 / tcp.segments_sent as f64);
        let timeouts = counted(tcp.timeouts, "timeout");
        let (resent, sent) = (tcp.retransmits, tcp.segments_sent);
        let _ = write!(text, "; {resent} of {sent} segments resent ({share}), {timeouts}");
    }
    if let Some(FallbackReport { to, why, at_s, .. }) = tcp.fallback.as_deref() {
        let _ = write!(text, "; {to} from {} s on: {why}", decimals(*at_s, 1));
    }
    Some(text)
}

/// Returns a note on the name `swift`, which two protocols have.
fn swift_note(flow: &FlowReport) -> Option<String> {
    let said = flow.scheme() == "swift";
    said.then(|| "`swift` is TCP-Swift for satellites (2004), also called `swift-sat`; not the data-centre protocol of 2020".into())
}

/// Returns the causes in descending order of their fractions; ties in JSON order.
fn ranked(l: &LimitedBy) -> [(&'static str, f64); LimitedBy::COUNT] {
    let mut all = l.shares();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all
}

/// Writes a paragraph for each scheme and main cause, in order of first occurrence.
fn groups(out: &mut String, flows: &[FlowReport]) {
    let mut groups: IndexMap<(&str, &str), Vec<&FlowReport>> = IndexMap::new();
    for flow in flows {
        let main_cause = flow.tcp_or_zeros().limited_by.main().0;
        groups.entry((flow.scheme(), main_cause)).or_default().push(flow);
    }
    groups.values().for_each(|members| group(out, members));
}

fn group(out: &mut String, members: &[&FlowReport]) {
    let mut goodputs: Vec<f64> = members.iter().map(|f| f.goodput_bps).collect();
    goodputs.sort_by(f64::total_cmp);
    let n = members.len();
    let first = members[0];
    let _ = writeln!(
        out,
        "{n} {} flows ({} to {}): {} each (median), {} to {}",
        first.scheme(),
        first.name,
        members[n - 1].name,
        rate(goodputs[n / 2]),
        rate(goodputs[0]),
        rate(goodputs[n - 1])
    );
    let FlowKind::Tcp(of_first) = &first.kind else {
        let datagrams = members.iter().filter_map(|m| m.udp());
        let (lost, received) = datagrams.fold((0, 0), |(l, r), u| (l + u.lost, r + u.received));
        let _ = writeln!(out, "  {}", losses(lost, received));
        if let Some(rates) = RateReport::all_in_words(members.iter().filter_map(|m| m.rate())) {
            let _ = writeln!(out, "  {rates}");
        }
        return;
    };
    let all: Vec<&TcpReport> = members.iter().filter_map(|m| m.tcp()).collect();
    let mean = LimitedBy::mean(all.iter().map(|tcp| &tcp.limited_by));
    let mean = TcpReport { limited_by: mean, ..(**of_first).clone() };
    let _ = writeln!(out, "  {}", limits_in_words(first, &mean));
    let sum = |of: fn(&TcpReport) -> u64| all.iter().map(|tcp| of(tcp)).sum::<u64>();
    let (sent, resent) = (sum(|tcp| tcp.segments_sent), sum(|tcp| tcp.retransmits));
    if sent > 0 {
        let share = percent(resent as f64 / sent as f64);
        let timeouts = sum(|tcp| tcp.timeouts);
        let _ = writeln!(out, "  {resent} of {sent} segments resent ({share}), {timeouts} timeouts");
    }
    let probes = ProbesReport::sum(all.iter().filter_map(|tcp| tcp.probes.as_deref())).map(|p| p.in_words());
    let rates = RateReport::all_in_words(all.iter().filter_map(|tcp| tcp.rate.as_deref()));
    for line in probes.into_iter().chain(rates).chain(swift_note(first)) {
        let _ = writeln!(out, "  {line}");
    }
}

fn links(out: &mut String, links: &[LinkReport]) {
    out.push('\n');
    let (shown, rest): (Vec<&LinkReport>, Vec<&LinkReport>) =
        links.iter().partition(|l| l.utilisation >= BUSY || !l.drops.is_empty());
    for link in &shown {
        let (q, busy) = (&link.queue_packets, percent(link.utilisation));
        let (mean, peak) = (decimals(q.mean, 1), q.peak);
        let _ = write!(out, "link {}: {busy} busy, queue {mean} packets (mean), {peak} (peak)", link.name);
        for (cause, n) in &link.drops {
            let _ = write!(out, ", {n} dropped ({})", cause.replace('_', " "));
        }
        if let Some(n) = link.marked.filter(|n| *n > 0) {
            let _ = write!(out, ", {n} marked");
        }
        out.push('\n');
    }
    if !rest.is_empty() {
        let most = percent(rest.iter().map(|l| l.utilisation).fold(0.0, f64::max));
        let (noun, other) = if rest.len() == 1 { ("link", "") } else { ("links", "s") };
        let lead = if shown.is_empty() { "" } else { "other " };
        let _ = writeln!(out, "{} {lead}{noun}: at most {most} busy, no drop{other}", rest.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_limits_a_flow_that_fell_back_is_what_it_fell_back_to() {
        let flow = FlowReport::default();
        let mut tcp = TcpReport { scheme: "explicit-rate".into(), ..TcpReport::default() };
        let words = |tcp: &TcpReport| cause_in_words("congestion_window", &flow, tcp);
        assert_eq!(words(&tcp), "its congestion window (explicit-rate)");
        tcp.fallback = Some(
            FallbackReport { to: "cubic".into(), why: String::new(), at_s: 1.0, after_segments: 9 }.into(),
        );
        assert_eq!(words(&tcp), "its congestion window (cubic, to which it fell back)");
    }
}
