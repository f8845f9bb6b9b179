//! The report in one sentence: how much of the link the flows use, and what holds them back.

use crate::flow::{FlowReport, LimitedBy, TcpReport};
use crate::report::Report;
use crate::words::{percent, rate};

/// A link that sends for this fraction of the time is called full.
const FULL: f64 = 0.95;
/// A full link of whose segments more than this fraction was sent again is not called used.
const MANY_RESENT: f64 = 0.05;
/// Causes of drops in a queue; the others are losses on the link.
const IN_QUEUE: [&str; 2] = ["queue_full", "aqm"];

impl Report {
    /// Returns the headline of the run, such as "The flow uses 43 % of the link; losses hold it back."
    ///
    /// The share of a single flow is its goodput beside the lowest rate on its path. For several flows, and
    /// where that rate is not known, it is the fraction of the time in which the busiest link was sending.
    pub fn headline(&self) -> String {
        let busiest = self.links.iter().map(|l| l.utilisation).fold(0.0, f64::max);
        if self.flows.is_empty() {
            return if busiest > 0.0 {
                format!("No flow was seen; the busiest link was busy {} of the time.", percent(busiest))
            } else {
                "No traffic was seen.".to_owned()
            };
        }
        let tcp: Vec<(&FlowReport, &TcpReport)> =
            self.flows.iter().filter_map(|f| f.tcp().map(|tcp| (f, tcp))).collect();
        let opened = |(_, t): &(&FlowReport, &TcpReport)| t.established_s.is_some() || t.bytes_acked > 0;
        if !tcp.is_empty() && tcp.len() == self.flows.len() && !tcp.iter().any(opened) {
            return "No connection was opened.".to_owned();
        }
        let why = if tcp.is_empty() { self.datagrams_lost() } else { self.what_holds(&tcp, busiest) };
        let (lead, the) = if self.gateways.iter().any(|g| g.flows.accelerated > 0) {
            ("With a gateway, ", "the")
        } else {
            ("", "The")
        };
        format!("{lead}{the} {}{why}.", self.use_of_link(tcp.is_empty(), busiest))
    }

    /// Formats "3 flows use 93 % of the link".
    fn use_of_link(&self, only_datagrams: bool, busiest: f64) -> String {
        let kind = if only_datagrams { " of datagrams" } else { "" };
        let [flow] = self.flows.as_slice() else {
            // more than one link can carry: there are several
            let widest = self.flows.iter().map(|f| f.context.path_bps).max().unwrap_or(0);
            let several = widest > 0 && self.total.goodput_bps > widest as f64;
            let link = if several { "busiest link" } else { "link" };
            return format!("{} flows{kind} use {} of the {link}", self.flows.len(), percent(busiest));
        };
        let share = flow.goodput_bps / flow.context.path_bps as f64;
        if flow.goodput_bps <= 0.0 {
            format!("flow{kind} delivers nothing")
        } else if share.is_finite() && share <= 1.0 {
            format!("flow{kind} uses {} of the link", percent(share))
        } else if busiest > 0.0 {
            format!("flow{kind} uses {} of the link", percent(busiest))
        } else {
            format!("flow{kind} gets {}", rate(flow.goodput_bps))
        }
    }

    fn datagrams_lost(&self) -> String {
        let both = self.flows.iter().filter_map(|f| f.udp()).map(|u| (u.lost, u.received));
        match both.fold((0, 0), |(l, r), (lost, received)| (l + lost, r + received)) {
            (0, _) => "; none is lost".to_owned(),
            (lost, received) => {
                format!("; {} of them are lost", percent(lost as f64 / (lost + received) as f64))
            }
        }
    }

    /// Formats "; losses hold it back".
    fn what_holds(&self, tcp: &[(&FlowReport, &TcpReport)], busiest: f64) -> String {
        let sum = |of: fn(&TcpReport) -> u64| tcp.iter().map(|(_, t)| of(t)).sum::<u64>();
        let (sent, resent) = (sum(|t| t.segments_sent), sum(|t| t.retransmits));
        if busiest >= FULL {
            let again = if sent > 0 { resent as f64 / sent as f64 } else { 0.0 };
            let note = if again > MANY_RESENT {
                format!(", also with the {} of the segments that were sent again", percent(again))
            } else {
                String::new()
            };
            return format!(", which is full{note}");
        }
        let known: Vec<_> = tcp.iter().filter(|(_, t)| t.limited_by != LimitedBy::default()).collect();
        let Some((flow, first)) = known.first() else {
            return format!("; what holds {} back only the sender knows", self.them());
        };
        let mean = LimitedBy::mean(known.iter().map(|(_, t)| &t.limited_by));
        let cause = mean.main().0;
        let alone = known.len() == 1;
        let (holds, hold) = (format!(" holds {} back", self.them()), format!(" hold {} back", self.them()));
        let size = |text: &str| match (alone, text.split(", ").next()) {
            (true, Some(size)) if !size.is_empty() => format!(" of {size}"),
            _ => String::new(),
        };
        let what = match cause {
            "handshake" if alone => "opening the connection takes most of the time".to_owned(),
            "handshake" => "opening the connections takes most of the time".to_owned(),
            "application" if alone => "its application has no more to send".to_owned(),
            "application" => "the applications have no more to send".to_owned(),
            "send_buffer" => format!("the send buffer{}{holds}", size(&flow.context.send_buffer)),
            "receiver_window" if flow.context.slow_reader => {
                format!("the receiver, which reads slowly,{holds}")
            }
            "receiver_window" => {
                format!("the receiver's window{}{holds}", size(&flow.context.receive_window))
            }
            "recovery" => self.losses() + &hold,
            "congestion_window" if resent > 0 && !flow.context.ignores_losses => self.losses() + &hold,
            "congestion_window" if alone => format!("its congestion window ({}){holds}", first.scheme),
            "congestion_window" => format!("the congestion window{holds}"),
            _ if flow.rate().is_some_and(|r| r.granted_bps.is_some()) => format!("the granted rate{holds}"),
            _ => format!("pacing{holds}"),
        };
        format!("; {what}")
    }

    const fn them(&self) -> &'static str {
        if self.flows.len() == 1 { "it" } else { "them" }
    }

    /// What most of the losses are.
    fn losses(&self) -> String {
        let drops = self.links.iter().flat_map(|l| &l.drops);
        let mut causes = drops.filter(|(cause, _)| !matches!(cause.as_str(), "too_big" | "no_route")).fold(
            Vec::<(&str, u64)>::new(),
            |mut all, (cause, n)| {
                match all.iter_mut().find(|(known, _)| known == cause) {
                    Some((_, sum)) => *sum += n,
                    None => all.push((cause, *n)),
                }
                all
            },
        );
        causes.sort_by_key(|(_, n)| core::cmp::Reverse(*n));
        let all: u64 = causes.iter().map(|(_, n)| n).sum();
        match causes.first() {
            Some((main, n)) if 2 * n > all => match *main {
                "outage" => "outages",
                "handover" => "handovers",
                "fade" => "losses in the fade",
                "aqm" => "drops in the queue",
                main if IN_QUEUE.contains(&main) => "drops at the full queue",
                _ => "losses",
            },
            _ => "losses",
        }
        .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::UdpReport;
    use crate::flow::{FlowContext, FlowKind};
    use crate::gateway::{GatewayFlows, GatewayReport};
    use crate::link::LinkReport;
    use bentpipe_base::Instant;

    /// A flow with 430 kbit/s on a path of 1 Mbit/s.
    fn flow(limited_by: LimitedBy, resent: u64) -> FlowReport {
        let tcp = TcpReport {
            scheme: "reno".into(),
            established_s: Some(0.6),
            segments_sent: 100,
            retransmits: resent,
            limited_by,
            ..TcpReport::default()
        };
        let context = FlowContext {
            path_bps: 1_000_000,
            receive_window: "64 KiB, as a gateway shows it".into(),
            send_buffer: "32 KiB".into(),
            ..FlowContext::default()
        };
        FlowReport { context, ..FlowReport::new("a", Instant::ZERO, 430e3, FlowKind::from(tcp)) }
    }

    fn report(flows: Vec<FlowReport>, utilisation: f64, drops: &[(&str, u64)]) -> Report {
        let drops = drops.iter().map(|(cause, n)| ((*cause).to_owned(), *n)).collect();
        let link = LinkReport { utilisation, drops, ..LinkReport::default() };
        Report { links: vec![link, LinkReport::default()], ..Report::new("t", flows) }
    }

    fn by(cause: &str) -> LimitedBy {
        let shares = LimitedBy::CAUSES.map(|key| if key == cause { 0.7 } else { 0.05 });
        serde_json::from_value(LimitedBy::CAUSES.into_iter().zip(shares).collect::<serde_json::Value>())
            .unwrap()
    }

    #[test]
    fn each_limit_of_a_flow_has_its_words() {
        let of = |cause, resent, drops: &[(&str, u64)]| {
            report(vec![flow(by(cause), resent)], 0.45, drops).headline()
        };
        for (cause, words) in [
            ("handshake", "opening the connection takes most of the time"),
            ("application", "its application has no more to send"),
            ("send_buffer", "the send buffer of 32 KiB holds it back"),
            ("receiver_window", "the receiver's window of 64 KiB holds it back"),
            ("congestion_window", "its congestion window (reno) holds it back"),
            ("pacing", "pacing holds it back"),
            ("recovery", "losses hold it back"),
        ] {
            assert_eq!(of(cause, 0, &[]), format!("The flow uses 43 % of the link; {words}."));
        }
        // the window is small because of what was lost
        let losses = |drops| of("congestion_window", 3, drops);
        assert_eq!(losses(&[("bit_error", 9)]), "The flow uses 43 % of the link; losses hold it back.");
        assert!(
            losses(&[("bit_error", 2), ("queue_full", 9)]).ends_with("drops at the full queue hold it back.")
        );
        assert!(losses(&[("outage", 5), ("queue_full", 4)]).ends_with("; outages hold it back."));
        assert!(losses(&[("fade", 5)]).ends_with("; losses in the fade hold it back."));
    }

    #[test]
    fn a_scheme_that_does_not_heed_losses_is_not_held_by_them() {
        let mut flow = flow(by("congestion_window"), 3);
        if let FlowKind::Tcp(tcp) = &mut flow.kind {
            tcp.scheme = "bbr3".into();
        }
        flow.context.ignores_losses = true;
        let said = report(vec![flow], 0.5, &[("bit_error", 3)]).headline();
        assert_eq!(said, "The flow uses 43 % of the link; its congestion window (bbr3) holds it back.");
    }

    #[test]
    fn a_full_link_is_what_limits() {
        let one = |resent| vec![flow(by("congestion_window"), resent)];
        assert_eq!(report(one(1), 0.97, &[]).headline(), "The flow uses 43 % of the link, which is full.");
        let again = ", which is full, also with the 20 % of the segments that were sent again.";
        assert!(report(one(20), 0.97, &[]).headline().ends_with(again));
    }

    #[test]
    fn several_flows_gateways_and_datagrams() {
        let two = || vec![flow(by("recovery"), 1), flow(by("recovery"), 1)];
        assert_eq!(
            report(two(), 0.5, &[]).headline(),
            "The 2 flows use 50 % of the link; losses hold them back."
        );
        let wide = FlowReport { goodput_bps: 900e3, ..flow(by("recovery"), 1) };
        let said = report(vec![wide.clone(), wide], 0.5, &[]).headline();
        assert_eq!(said, "The 2 flows use 50 % of the busiest link; losses hold them back.");
        let flows = GatewayFlows { accelerated: 2, ..GatewayFlows::default() };
        let gateways = vec![GatewayReport { flows, ..GatewayReport::default() }];
        let report_of_two = Report { gateways, ..report(two(), 0.96, &[]) };
        assert_eq!(
            report_of_two.headline(),
            "With a gateway, the 2 flows use 96 % of the link, which is full."
        );
        let udp = |lost| {
            let udp = UdpReport { lost, received: 90, ..UdpReport::default() };
            FlowReport { kind: FlowKind::from(udp), ..flow(LimitedBy::default(), 0) }
        };
        let of = |lost| report(vec![udp(lost)], 0.5, &[]).headline();
        assert_eq!(of(10), "The flow of datagrams uses 43 % of the link; 10 % of them are lost.");
        assert_eq!(of(0), "The flow of datagrams uses 43 % of the link; none is lost.");
    }

    #[test]
    fn without_traffic_there_is_a_headline_too() {
        assert_eq!(report(Vec::new(), 0.0, &[]).headline(), "No traffic was seen.");
        assert_eq!(
            report(Vec::new(), 0.04, &[]).headline(),
            "No flow was seen; the busiest link was busy 4 % of the time."
        );
        let unopened = FlowReport::new("a", Instant::ZERO, 0.0, FlowKind::from(TcpReport::default()));
        assert_eq!(report(vec![unopened], 0.01, &[]).headline(), "No connection was opened.");
    }

    #[test]
    fn a_saved_report_does_not_know_the_path_and_takes_the_use_of_the_link() {
        let saved = report(vec![flow(by("recovery"), 1)], 0.5, &[]).to_json();
        let read = Report::from_json(&saved).unwrap();
        assert_eq!(read.headline(), "The flow uses 50 % of the link; losses hold it back.");
        let unknown = report(vec![flow(LimitedBy::default(), 1)], 0.5, &[]).headline();
        assert_eq!(unknown, "The flow uses 43 % of the link; what holds it back only the sender knows.");
    }
}
