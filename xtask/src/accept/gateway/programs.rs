//! iperf3 over a hop with a gateway, for BBR or IPv6. The receiver opens the connection.

use super::hops::{Hop, Receiver, toml};
use super::runs::{Job, Ran};
use crate::Outcome;
use lab::Rig;
use lab::rig::json;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Gives a kernel the old settings: no window scale, no timestamps, 65535 B.
pub(super) const OLD_KERNEL: &str = "cd /proc/sys/net/ipv4 && echo 0 >tcp_window_scaling && echo 0 >tcp_timestamps && echo 4096 131072 131072 >tcp_rmem";
/// Gives a receiver 32 MiB per connection; it announces more than 8 MiB.
const MODERN_KERNEL: &str = "cd /proc/sys/net/ipv4 && echo 4096 33554432 33554432 >tcp_rmem";
/// Gives a sender more room: the default of 4 MB includes bookkeeping and allows 2.4 MB in flight.
pub(super) const SENDER: &str = "echo 4096 16384 67108864 >/proc/sys/net/ipv4/tcp_wmem";

/// A running transfer.
#[derive(Debug)]
pub(super) struct Transfer {
    job: Job,
    result: PathBuf,
}

/// The iperf3 report of a completed transfer.
#[derive(Clone, Debug)]
pub(super) struct Transferred(Value);

impl Transfer {
    /// Starts a transfer of `seconds` over `hop` with loss probability `loss`. `name` must be unique.
    pub(super) fn start(
        rig: &Rig,
        hop: &Hop<'_>,
        loss: f64,
        seed: u64,
        seconds: u64,
        name: &str,
    ) -> Outcome<Self> {
        // the scenario's flow does not run, and scenarios have no BBR
        let place = Hop { tcp: "cubic", ..*hop };
        let file = rig.file(&format!("{name}.toml"), &toml(&[place], loss, (0, seconds)))?;
        let result = rig.path(&format!("{name}.json"));
        let kernel = if hop.receiver == Receiver::Old { OLD_KERNEL } else { MODERN_KERNEL };
        let near = format!("{SENDER}; iperf3 -s -1 >/dev/null; sleep 3");
        let far = format!(
            "{kernel}; sleep 1; exec iperf3 -c near -R -C {} -t {seconds} -J >'{}'",
            hop.tcp,
            result.display()
        );
        let job = Job::programs(rig, &file, seed, &near, &far)?;
        Ok(Self { job, result })
    }

    /// Waits for its end, `seconds` after its start. Returns the run, and iperf3's report.
    pub(super) fn wait(self, seconds: u64) -> Outcome<(Ran, Transferred)> {
        Ok((self.job.wait(seconds)?, Transferred::read(&self.result)?))
    }
}

impl Transferred {
    /// Reads the report of a completed transfer.
    pub(super) fn read(path: &Path) -> Outcome<Self> {
        json(path).map(Self)
    }

    /// Mean goodput of the receiving application from second `from` on, bit/s.
    pub(super) fn rate_bps(&self, from: f64) -> Outcome<f64> {
        let intervals = self.0["intervals"].as_array().into_iter().flatten().map(|i| &i["sum"]);
        let late = intervals.filter(|sum| sum["start"].as_f64().is_some_and(|start| start >= from));
        let (bytes, time) = late.fold((0.0, 0.0), |(bytes, time), sum| {
            let of = |key: &str| sum[key].as_f64().unwrap_or(0.0);
            (bytes + of("bytes"), time + of("seconds"))
        });
        if time > 0.0 { Ok(bytes * 8.0 / time) } else { Err("iperf3 did not run long enough".to_owned()) }
    }

    /// Segments retransmitted by the sender, from TCP_INFO.
    pub(super) fn retransmits(&self) -> Outcome<f64> {
        let told = self.0["end"]["sum_sent"]["retransmits"].as_f64();
        told.ok_or_else(|| "iperf3 does not tell retransmissions".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_count_from_a_second_on() {
        let sum = |start: f64, bytes: u64| serde_json::json!({"sum": {"start": start, "seconds": 1.0, "bytes": bytes}});
        let intervals = [sum(0.0, 5), sum(1.0, 10), sum(2.0, 30)];
        let ended =
            Transferred(serde_json::json!({"intervals": intervals, "end": {"sum_sent": {"retransmits": 3}}}));
        assert!((ended.rate_bps(1.0).unwrap() - 160.0).abs() < 1e-9);
        assert!(ended.rate_bps(3.0).is_err());
        assert_eq!(ended.retransmits(), Ok(3.0));
        assert!(Transferred(Value::Null).retransmits().is_err());
    }
}
