//! Metrics in Prometheus's text format 0.0.4.
//!
//! Labels are the gateway's name, directions, and the reasons and causes defined by the gateway: their number
//! is bounded by the program, not by traffic. Per-connection and per-subscriber data is in the flow records.

use super::messages::Status;
use core::fmt::Write as _;

/// Content type of the page.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
const SIDES: [&str; 2] = ["lan", "satellite"];

/// All metrics of a gateway.
pub fn metrics(status: &Status) -> String {
    let mut page = Page { out: String::new(), name: escaped(&status.name) };
    let figures = &status.figures;
    page.one("uptime_seconds", "gauge", "Time since the gateway began.", status.uptime_s);
    let accelerating = f64::from(u8::from(status.bypass.is_none()));
    page.one("accelerating", "gauge", "0 while everything passes.", accelerating);
    if let Some(rate) = status.rate_bps {
        page.one("hop_rate_bits_per_second", "gauge", "Configured rate of the satellite hop.", rate as f64);
    }
    let flows = [("accelerated", figures.accelerated), ("passing", figures.passing)];
    page.many("flows", "gauge", "Connections now.", "treatment", flows);
    page.one("flows_opening", "gauge", "Connections that are being opened.", figures.opening as f64);
    let why = figures.passing_why.iter().map(|(k, n)| (k.as_str(), *n));
    page.many("flows_passing", "gauge", "Connections that pass, by reason.", "reason", why);
    page.one(
        "connections_total",
        "counter",
        "Connections since the gateway began.",
        figures.connections as f64,
    );
    let side = |pair: [u64; 2]| SIDES.into_iter().zip(pair);
    page.many("packets_total", "counter", "Wire packets that came in.", "from", side(figures.packets));
    page.many("bytes_total", "counter", "Their bytes, IP headers included.", "from", side(figures.bytes));
    page.one("held_bytes", "gauge", "Bytes held for connections.", figures.held_bytes as f64);
    page.one("held_peak_bytes", "gauge", "The most that were held.", figures.held_peak_bytes as f64);
    page.one("hop_lost_packets_total", "counter", "Packets found lost on the hop.", figures.lost as f64);
    page.one("repaired_packets_total", "counter", "Packets sent again.", figures.repaired as f64);
    page.one(
        "copied_packets_total",
        "counter",
        "Further copies sent ahead of any loss.",
        figures.copied as f64,
    );
    let causes = figures.not_forwarded.iter().map(|(k, n)| (k.as_str(), *n));
    let help = "Packets that came in and did not go out, by cause.";
    page.many("not_forwarded_packets_total", "counter", help, "cause", causes);
    let places = figures.port_drops.iter().map(|(k, n)| (k.as_str(), *n));
    page.many("port_dropped_packets_total", "counter", "Packets that the ports lost.", "place", places);
    let events = figures.data_path.iter().map(|(k, n)| (k.as_str(), *n));
    let help = "Units that passed unread, by reason; shortages; turns that came late.";
    page.many("data_path_events_total", "counter", help, "event", events);
    page.one("records_lost_total", "counter", "Flow records not written.", status.records_lost as f64);
    if let Some(sample) = &status.sample {
        let help = "Speed of accelerated connections over that of those left alone.";
        if let (Some(ratio), Some((low, high))) = (sample.ratio, sample.interval) {
            page.one("gain_ratio", "gauge", help, ratio);
            page.one("gain_ratio_low", "gauge", "Lower end of its 95 % confidence interval.", low);
            page.one("gain_ratio_high", "gauge", "Upper end of its 95 % confidence interval.", high);
        }
    }
    page.out
}

struct Page {
    out: String,
    name: String,
}

impl Page {
    fn head(&mut self, metric: &str, kind: &str, help: &str) {
        let _ = writeln!(self.out, "# HELP bentpipe_gateway_{metric} {help}");
        let _ = writeln!(self.out, "# TYPE bentpipe_gateway_{metric} {kind}");
    }

    fn one(&mut self, metric: &str, kind: &str, help: &str, value: f64) {
        self.head(metric, kind, help);
        let _ = writeln!(self.out, "bentpipe_gateway_{metric}{{gateway=\"{}\"}} {value}", self.name);
    }

    fn many<'a>(
        &mut self,
        metric: &str,
        kind: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = (&'a str, u64)>,
    ) {
        self.head(metric, kind, help);
        for (key, value) in values {
            let (name, key) = (&self.name, escaped(key));
            let _ = writeln!(
                self.out,
                "bentpipe_gateway_{metric}{{gateway=\"{name}\",{label}=\"{key}\"}} {value}"
            );
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Groups;
    use crate::status::messages::Figures;
    use std::collections::BTreeSet;

    #[test]
    fn every_line_is_of_the_format_and_of_a_metric_that_was_announced() {
        let figures = Figures {
            accelerated: 3,
            packets: [7, 9],
            passing_why: vec![("mid_stream".to_owned(), 4)],
            ..Figures::default()
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
        assert!(!text.contains("gain_ratio"), "too few connections to say anything");
    }
}
