//! Metrics of a running link for Prometheus.
//!
//! Labels are the session's name, the directions of links, and causes of losses: their number is bounded by
//! the scenario.

use bentpipe_live::control::{LinkState, State};
use bentpipe_service::metrics::Page;

/// Name, meaning and value of the metrics that each direction has.
type Row = (&'static str, &'static str, fn(&LinkState) -> Option<f64>);

const DIRECTIONS: [Row; 12] = [
    ("up", "0 while no packet gets through.", |l| Some(f64::from(u8::from(l.up)))),
    ("rate_bits_per_second", "Rate; absent while the link is stopped.", |l| l.rate_bps.map(|n| n as f64)),
    ("delay_seconds", "One-way propagation delay.", |l| Some(l.one_way_ms / 1e3)),
    ("loss_ratio", "Loss probability of a packet.", |l| Some(l.loss)),
    ("bit_error_ratio", "Bit error rate.", |l| Some(l.ber)),
    ("fade_decibels", "Attenuation, if there is a fade.", |l| l.fade_db),
    ("queue_packets", "Packets in the queue.", |l| Some(l.queue_packets as f64)),
    ("queue_bytes", "Bytes in the queue.", |l| Some(l.queue_bytes as f64)),
    ("queue_limit_packets", "Limit, if packets are counted.", |l| l.limit_packets.map(|n| n as f64)),
    ("queue_limit_bytes", "Limit, if bytes are counted.", |l| l.limit_bytes.map(|n| n as f64)),
    ("packets_total", "Packets sent onto the link.", |l| Some(l.packets as f64)),
    ("bytes_total", "Their bytes, IP headers included.", |l| Some(l.bytes as f64)),
];

/// All metrics of a session.
pub fn metrics(state: &State) -> String {
    let mut page = Page::new("bentpipe_link_", "session", &state.session);
    page.one("uptime_seconds", "Time since the session began.", state.uptime_s);
    let timing = &state.timing;
    let trusted = f64::from(u8::from(timing.trusted));
    page.one("trusted", "0 if the machine was too slow for these figures.", trusted);
    page.head("lateness_seconds", "How late packets left, by percentile.");
    for (percentile, us) in [("50", timing.p50_us), ("99", timing.p99_us), ("100", timing.max_us)] {
        if let Some(us) = us {
            page.value("lateness_seconds", &[("percentile", percentile)], us / 1e6);
        }
    }
    for (metric, help, value) in DIRECTIONS {
        let known: Vec<_> = state.links.iter().filter_map(|link| Some((link, value(link)?))).collect();
        if !known.is_empty() {
            page.head(metric, help);
        }
        for (link, value) in known {
            page.value(metric, &[("direction", &link.name)], value);
        }
    }
    page.head("dropped_packets_total", "Packets lost, by cause.");
    for link in &state.links {
        for (cause, n) in &link.drops {
            page.value("dropped_packets_total", &[("direction", &link.name), ("cause", cause)], *n as f64);
        }
    }
    page.one("connections", "TCP connections in the session.", state.flows.len() as f64);
    let goodput: f64 = state.flows.iter().map(|flow| flow.goodput_bps).sum();
    page.one("goodput_bits_per_second", "Data acknowledged on all of them, lately.", goodput);
    page.into_text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direction_has_its_values_and_only_those() {
        let link = LinkState {
            name: "link".to_owned(),
            up: true,
            rate_bps: Some(10_000_000),
            one_way_ms: 275.0,
            limit_bytes: Some(64_000),
            drops: vec![("queue_full".to_owned(), 7)],
            ..LinkState::default()
        };
        let state = State { session: "a1".to_owned(), links: vec![link], ..State::default() };
        let text = metrics(&state);
        for line in [
            "bentpipe_link_up{session=\"a1\",direction=\"link\"} 1",
            "bentpipe_link_rate_bits_per_second{session=\"a1\",direction=\"link\"} 10000000",
            "bentpipe_link_delay_seconds{session=\"a1\",direction=\"link\"} 0.275",
            "bentpipe_link_dropped_packets_total{session=\"a1\",direction=\"link\",cause=\"queue_full\"} 7",
            "# TYPE bentpipe_link_packets_total counter",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
        assert!(!text.contains("fade") && !text.contains("queue_limit_packets"), "{text}");
        let mut heads: Vec<&str> = text.lines().filter_map(|l| l.strip_prefix("# TYPE ")).collect();
        let all = heads.len();
        heads.dedup();
        assert_eq!(heads.len(), all);
    }
}
