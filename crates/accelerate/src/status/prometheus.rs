//! Metrics of a gateway for Prometheus.
//!
//! Labels are the gateway's name, directions, and the reasons and causes defined by the gateway: their number
//! is bounded by the program, not by traffic. Per-connection and per-subscriber data is in the flow records.

use super::messages::{NodeFigures, Status, WindowStats};
use bentpipe_service::metrics::Page;

/// All metrics of a gateway.
pub fn metrics(status: &Status) -> String {
    let mut page = Page::new("bentpipe_gateway_", "gateway", &status.name);
    let figures = &status.figures;
    page.one("uptime_seconds", "Time since the gateway began.", status.uptime_s);
    page.one("accelerating", "0 while everything passes.", f64::from(u8::from(status.bypass.is_none())));
    if let Some(rate) = status.rate_bps {
        page.one("hop_rate_bits_per_second", "Configured rate of the satellite hop.", rate as f64);
    }
    let flows = [("accelerated", figures.accelerated), ("passing", figures.passing)];
    page.many("flows", "Connections now.", "treatment", &flows);
    page.one("flows_opening", "Connections that are being opened.", figures.opening as f64);
    page.many("flows_passing", "Connections that pass, by reason.", "reason", &figures.passing_why);
    page.one("connections_total", "Connections since the gateway began.", figures.connections as f64);
    let sides = |[lan, satellite]: [u64; 2]| [("lan", lan), ("satellite", satellite)];
    page.many("packets_total", "Wire packets that came in.", "from", &sides(figures.packets));
    page.many("bytes_total", "Their bytes, IP headers included.", "from", &sides(figures.bytes));
    page.one("held_bytes", "Bytes held for connections.", figures.held_bytes as f64);
    page.one("held_peak_bytes", "The most that were held.", figures.held_peak_bytes as f64);
    page.one("hop_lost_packets_total", "Packets found lost on the hop.", figures.lost as f64);
    page.one("repaired_packets_total", "Packets sent again.", figures.repaired as f64);
    page.one("copied_packets_total", "Further copies sent ahead of any loss.", figures.copied as f64);
    page.one("keep_alives_total", "Bytes sent again to keep the hop.", figures.keep_alives as f64);
    let help = "Packets that came in and did not go out, by cause.";
    page.many("not_forwarded_packets_total", help, "cause", &figures.not_forwarded);
    page.many("port_dropped_packets_total", "Packets that the ports lost.", "place", &figures.port_drops);
    let help = "Units that passed unread, by reason; shortages; turns that came late.";
    page.many("data_path_events_total", help, "event", &figures.data_path);
    let windows = |of: fn(&WindowStats) -> u64| -> Vec<(String, u64)> {
        let named = |w: &WindowStats| (w.window_bytes.next_power_of_two().to_string(), of(w));
        figures.windows.iter().map(named).collect()
    };
    let help = "Hosts behind the hop, by their largest window: up to so many bytes.";
    page.many("window_clients", help, "window", &windows(|w| w.clients));
    let help = "Connections since the gateway began, by the largest window of their receiver.";
    page.many("window_connections", help, "window", &windows(|w| w.connections));
    flow_routers(&mut page, &figures.rate);
    page.one("records_lost_total", "Flow records not written.", status.records_lost as f64);
    if let Some(sample) = &status.sample {
        let help = "Speed of accelerated connections over that of those left alone.";
        if let (Some(ratio), Some((low, high))) = (sample.ratio, sample.interval) {
            page.one("gain_ratio", help, ratio);
            page.one("gain_ratio_low", "Lower end of its 95 % confidence interval.", low);
            page.one("gain_ratio_high", "Upper end of its 95 % confidence interval.", high);
        }
    }
    page.into_text()
}

/// Metrics of flow routers: the counter of each, the name of its metric, and what it is.
const FLOW_ROUTERS: [(&str, &str, &str); 11] = [
    ("rate_bps", "rate_managed_bits_per_second", "Rate of the direction that is shared out."),
    ("reserved_bps", "rate_reserved_bits_per_second", "Rates that are reserved for flows."),
    ("given_bps", "rate_given_bits_per_second", "Rates that flows were granted."),
    ("used_bps", "rate_used_bits_per_second", "Mean rate of the direction since its first packet."),
    ("flows", "rate_flows_total", "Flows that had state."),
    ("requests", "rate_requests_total", "Requests for a rate."),
    ("refused", "rate_refused_total", "Refused requests for a guaranteed or maximum rate."),
    ("preempted", "rate_preempted_total", "Reservations that were withdrawn."),
    ("reductions", "rate_reductions_total", "Reductions that flows were told."),
    ("policed", "rate_policed_packets_total", "Packets dropped above the rate of their flow."),
    ("advised", "rate_advised_packets_total", "SCONE packets with a signal that was lowered."),
];

fn flow_routers(page: &mut Page, routers: &[NodeFigures]) {
    for (key, metric, help) in FLOW_ROUTERS.into_iter().filter(|_| !routers.is_empty()) {
        let of = |router: &NodeFigures| router.counters.iter().find(|(k, _)| k == key).map_or(0, |(_, n)| *n);
        let values: Vec<_> = routers.iter().map(|router| (router.name.as_str(), of(router))).collect();
        page.many(metric, help, "direction", &values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Groups;
    use crate::status::messages::GatewayCounters;
    use std::collections::BTreeSet;

    #[test]
    fn every_line_is_of_the_format_and_of_a_metric_that_was_announced() {
        let figures = GatewayCounters {
            accelerated: 3,
            packets: [7, 9],
            passing_why: vec![("mid_stream".to_owned(), 4)],
            rate: vec![NodeFigures {
                name: "to_lan".to_owned(),
                counters: vec![("requests".to_owned(), 5), ("rate_bps".to_owned(), 7)],
                ..NodeFigures::default()
            }],
            ..GatewayCounters::default()
        };
        let sample = Some(Groups::default().compare());
        let status = Status {
            name: "a\"b".to_owned(),
            rate_bps: Some(24_000_000),
            figures,
            sample,
            ..Status::default()
        };
        let text = metrics(&status);
        let mut announced = BTreeSet::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert!(announced.insert(name), "{name} twice");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            } else if !line.starts_with("# HELP ") {
                let (name, rest) = line.split_once('{').unwrap();
                assert!(announced.contains(name), "{line}");
                let (labels, value) = rest.split_once("} ").unwrap();
                assert!(labels.starts_with("gateway=\"a\\\"b\""), "{line}");
                assert!(value.parse::<f64>().unwrap().is_finite());
            }
        }
        assert!(text.contains("bentpipe_gateway_packets_total{gateway=\"a\\\"b\",from=\"satellite\"} 9\n"));
        assert!(text.contains("flows_passing{gateway=\"a\\\"b\",reason=\"mid_stream\"} 4\n"));
        let direction = "{gateway=\"a\\\"b\",direction=\"to_lan\"}";
        assert!(text.contains(&format!("bentpipe_gateway_rate_requests_total{direction} 5\n")), "{text}");
        assert!(text.contains(&format!("bentpipe_gateway_rate_managed_bits_per_second{direction} 7\n")));
        assert!(!text.contains("gain_ratio"), "too few connections to say anything");
    }
}
