//! Throughput and losses of a link by iperf3, and the lateness of its packets by the session's own figures.

use crate::Outcome;
use crate::rig::{Rig, take_json};
use crate::stats::binomial_bounds;
use serde_json::Value;
use std::time::Duration;

/// IPv4 and UDP headers, bytes. With IPv6 a datagram of 1500 B would need two packets.
const HEADERS: f64 = 28.0;

/// Lateness from `bentpipe link show --json`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timing {
    /// Packets that left the link.
    pub packets: u64,
    /// Median, us.
    pub p50_us: f64,
    /// 99th percentile, us.
    pub p99_us: f64,
    /// Largest, us.
    pub max_us: f64,
    /// Packets lost outside the link: not read, or refused by an interface.
    pub port_drops: u64,
}

/// Load towards the user.
#[derive(Clone, Copy, Debug)]
pub enum Load {
    /// Datagrams of 1500 B at this IP rate, bit/s.
    Datagrams(f64),
    /// This many TCP connections with CUBIC.
    Tcp(u32),
}

/// Result of a loaded link.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Goodput, bit/s.
    pub goodput_bps: f64,
    /// Lateness of packets.
    pub timing: Timing,
}

/// Loads the link given by the arguments of `emulate`.
pub fn load(rig: &Rig, emulate: &[&str], load: Load, seconds: u32) -> Outcome<Loaded> {
    let words = match load {
        Load::Datagrams(bps) => format!("-u -l 1472 -b {}", (bps * 1472.0 / 1500.0) as u64),
        Load::Tcp(streams) => format!("-C cubic -P {streams}"),
    };
    let (result, state) = iperf(rig, emulate, &words, seconds)?;
    Ok(Loaded { goodput_bps: received_bps(&result)?, timing: timing(&state)? })
}

/// Runs iperf3 as receiver at the near end; returns its report and the session's state afterwards.
fn iperf(rig: &Rig, emulate: &[&str], words: &str, seconds: u32) -> Outcome<(Value, Value)> {
    let (result, state) = (rig.path("load.json"), rig.path("state.json"));
    let (result_at, state_at) = (result.display(), state.display());
    let script = format!(
        "sleep 1; iperf3 -4 -c far -R {words} -t {seconds} -J >'{result_at}' || exit 8; \"$BENTPIPE\" link show --json >'{state_at}'"
    );
    let words = [&["emulate"], emulate, &["--far", "iperf3 -s -1", "--", "sh", "-c", &script]].concat();
    let done = rig.run(&words, Duration::from_secs(u64::from(seconds) + 60))?;
    let (result, state) = (take_json(&result), take_json(&state));
    done.succeeded(&format!("iperf3 over {}", emulate.join(" ")))?;
    Ok((result?, state?))
}

/// Rate received by an iperf3 client, bit/s.
pub fn received_bps(result: &Value) -> Outcome<f64> {
    let end = &result["end"];
    let bps = end["sum_received"]["bits_per_second"].as_f64().or(end["sum"]["bits_per_second"].as_f64());
    bps.ok_or_else(|| format!("iperf3 gives no rate: {}", result["error"]))
}

/// Reads the lateness from a session's state.
pub fn timing(state: &Value) -> Outcome<Timing> {
    let timing = &state["timing"];
    let count =
        |name: &str| timing[name].as_u64().ok_or_else(|| format!("timing.{name} is missing in {state}"));
    let us = |name: &str| timing[name].as_f64().unwrap_or(f64::NAN);
    Ok(Timing {
        packets: count("packets")?,
        p50_us: us("p50_us"),
        p99_us: us("p99_us"),
        max_us: us("max_us"),
        port_drops: count("port_receive_drops")? + count("port_send_drops")?,
    })
}

/// Losses on all links of a session, by direction and cause.
pub fn drops(state: &Value) -> Vec<(String, u64)> {
    let mut all = Vec::new();
    for link in state["links"].as_array().into_iter().flatten() {
        let name = link["name"].as_str().unwrap_or("?");
        let drops = link["drops"].as_array().into_iter().flatten();
        let count = |drop: &Value| {
            (format!("{name} {}", drop[0].as_str().unwrap_or("?")), drop[1].as_u64().unwrap_or(0))
        };
        all.extend(drops.map(count));
    }
    all
}

/// Result of a stream of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossCount {
    /// Datagrams sent, up to the last that arrived.
    pub sent: u64,
    /// Datagrams lost.
    pub lost: u64,
    /// Datagrams that arrived after a later one.
    pub out_of_order: u64,
}

impl LossCount {
    /// Lowest and highest number of losses for a loss probability `p`, and whether the losses lie within;
    /// `outside` is the probability of a false alarm.
    pub fn within(&self, p: f64, outside: f64) -> (u64, u64, bool) {
        let (low, high) = binomial_bounds(self.sent, p, outside);
        (low, high, (low..=high).contains(&self.lost))
    }
}

/// Sends datagrams to the user over the link given by the arguments of `emulate`; IP length and rate.
pub fn send(rig: &Rig, emulate: &[&str], ip_len: u32, rate_bps: f64, seconds: u32) -> Outcome<LossCount> {
    let payload = ip_len - HEADERS as u32;
    let rate = (rate_bps * (f64::from(ip_len) - HEADERS) / f64::from(ip_len)) as u64;
    tally(&iperf(rig, emulate, &format!("-u -l {payload} -b {rate}"), seconds)?.0)
}

/// Reads the summary of a receiving iperf3 client.
pub(crate) fn tally(result: &Value) -> Outcome<LossCount> {
    let sum = &result["end"]["sum"];
    let stream = &result["end"]["streams"][0]["udp"];
    let read = |v: &Value, what: &str| {
        v.as_u64().ok_or_else(|| format!("iperf3 gives no {what}: {}", result["error"]))
    };
    Ok(LossCount {
        sent: read(&sum["packets"], "packets")?,
        lost: read(&sum["lost_packets"], "lost_packets")?,
        out_of_order: read(&stream["out_of_order"], "out_of_order")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read() {
        let state = serde_json::json!({
            "timing": {"packets": 7, "p50_us": 20.5, "p99_us": 81.0, "max_us": 99.0, "port_receive_drops": 1, "port_send_drops": 2},
            "links": [{"name": "link", "drops": [["loss", 3]]}, {"name": "link-return", "drops": []}]
        });
        let timing = timing(&state).unwrap();
        assert_eq!((timing.packets, timing.port_drops), (7, 3));
        assert_eq!(drops(&state), [("link loss".to_owned(), 3)]);
        assert!(super::timing(&serde_json::json!({})).is_err());
    }

    #[test]
    fn a_summary_is_read_and_judged() {
        let result = serde_json::json!({"end": {
            "sum": {"packets": 100_000, "lost_packets": 1062}, "streams": [{"udp": {"out_of_order": 0}}]
        }});
        let tally = tally(&result).unwrap();
        assert_eq!(tally, LossCount { sent: 100_000, lost: 1062, out_of_order: 0 });
        assert_eq!(tally.within(0.01, 0.05), (939, 1062, true));
        assert!(!LossCount { lost: 1063, ..tally }.within(0.01, 0.05).2);
        assert!(super::tally(&serde_json::json!({"error": "refused"})).unwrap_err().contains("refused"));
    }
}
