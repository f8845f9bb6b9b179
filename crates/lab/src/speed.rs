//! Throughput of a link by iperf3, and the lateness of its packets by the session's own figures.

use crate::Outcome;
use crate::rig::{Rig, take_json};
use serde_json::Value;
use std::time::Duration;

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
    /// The session's whole state at the end.
    pub state: Value,
}

/// Loads the link given by the arguments of `emulate`.
pub fn load(rig: &Rig, emulate: &[&str], load: Load, seconds: u32) -> Outcome<Loaded> {
    let words = match load {
        Load::Datagrams(bps) => format!("-u -l 1472 -b {}", (bps * 1472.0 / 1500.0) as u64),
        Load::Tcp(streams) => format!("-C cubic -P {streams}"),
    };
    let (result, state) = iperf(rig, emulate, &words, seconds)?;
    Ok(Loaded { goodput_bps: received_bps(&result)?, timing: timing(&state)?, state })
}

/// Runs iperf3 as receiver at the near end; returns its report and the session's state afterwards.
pub(crate) fn iperf(rig: &Rig, emulate: &[&str], words: &str, seconds: u32) -> Outcome<(Value, Value)> {
    let (result, state) = (rig.path("load.json"), rig.path("state.json"));
    let script = format!(
        "sleep 1; iperf3 -4 -c far -R {words} -t {seconds} -J >'{}' || exit 8; \"$BENTPIPE\" link show --json >'{}'",
        result.display(),
        state.display()
    );
    let words = [&["emulate"], emulate, &["--far", "iperf3 -s -1", "--", "sh", "-c", &script]].concat();
    let done = rig.run(&words, Duration::from_secs(u64::from(seconds) + 60))?;
    let (result, state) = (take_json(&result), take_json(&state));
    if done.code != Some(0) {
        return Err(format!("iperf3 over {}: {}", emulate.join(" "), done.story()));
    }
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
        for drop in link["drops"].as_array().into_iter().flatten() {
            let cause = drop[0].as_str().unwrap_or("?");
            all.push((
                format!("{} {cause}", link["name"].as_str().unwrap_or("?")),
                drop[1].as_u64().unwrap_or(0),
            ));
        }
    }
    all
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
}
