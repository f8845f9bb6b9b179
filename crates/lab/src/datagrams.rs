//! Measures losses by the sequence numbers in iperf3 datagrams.

use crate::Outcome;
use crate::rig::Rig;
use crate::speed::iperf;
use crate::stats::binomial_bounds;
use serde_json::Value;

/// IPv4 and UDP headers, bytes. With IPv6 a datagram of 1500 B would need two packets.
const HEADERS: f64 = 28.0;

/// A stream of datagrams to the user.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    /// IP length of a datagram, bytes.
    pub ip_len: u32,
    /// IP rate, bit/s.
    pub rate_bps: f64,
    /// Duration, s.
    pub seconds: u32,
}

/// Result of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// Datagrams sent, up to the last that arrived.
    pub sent: u64,
    /// Datagrams lost.
    pub lost: u64,
    /// Datagrams that arrived after a later one.
    pub out_of_order: u64,
}

impl Tally {
    /// Loss ratio.
    pub fn share(&self) -> f64 {
        self.lost as f64 / self.sent.max(1) as f64
    }

    /// Lowest and highest number of losses for a loss probability `p`, and whether the losses lie within;
    /// `outside` is the probability of a false alarm.
    pub fn within(&self, p: f64, outside: f64) -> (u64, u64, bool) {
        let (low, high) = binomial_bounds(self.sent, p, outside);
        (low, high, (low..=high).contains(&self.lost))
    }
}

/// Sends `stream` over the link given by the arguments of `emulate`.
pub fn send(rig: &Rig, emulate: &[&str], stream: &Stream) -> Outcome<Tally> {
    let payload = stream.ip_len - HEADERS as u32;
    let rate = (stream.rate_bps * (f64::from(stream.ip_len) - HEADERS) / f64::from(stream.ip_len)) as u64;
    tally(&iperf(rig, emulate, &format!("-u -l {payload} -b {rate}"), stream.seconds)?.0)
}

/// Reads the summary of a receiving iperf3 client.
pub(crate) fn tally(result: &Value) -> Outcome<Tally> {
    let sum = &result["end"]["sum"];
    let stream = &result["end"]["streams"][0]["udp"];
    let read = |v: &Value, what: &str| {
        v.as_u64().ok_or_else(|| format!("iperf3 gives no {what}: {}", result["error"]))
    };
    Ok(Tally {
        sent: read(&sum["packets"], "packets")?,
        lost: read(&sum["lost_packets"], "lost_packets")?,
        out_of_order: read(&stream["out_of_order"], "out_of_order")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_read_and_judged() {
        let result = serde_json::json!({"end": {
            "sum": {"packets": 100_000, "lost_packets": 1062}, "streams": [{"udp": {"out_of_order": 0}}]
        }});
        let tally = tally(&result).unwrap();
        assert_eq!(tally, Tally { sent: 100_000, lost: 1062, out_of_order: 0 });
        assert_eq!(tally.within(0.01, 0.05), (939, 1062, true));
        assert!(!Tally { lost: 1063, ..tally }.within(0.01, 0.05).2);
        assert!(super::tally(&serde_json::json!({"error": "refused"})).unwrap_err().contains("refused"));
    }
}
