//! Tests the engine as a real TCP against the kernel or itself over a live link, byte by byte.

use crate::Outcome;
use crate::rig::Rig;
use crate::scenario::OneLink;
use crate::stats::{Random, slope};
use serde_json::{Value, json};
use std::time::Duration;

/// Two programs at the ends of a link that run transfers and check them.
const PEERS: &str = include_str!("peers.py");
/// Time limit of the transfers of one call.
const LIMIT: Duration = Duration::from_secs(900);

/// The TCP implementation at an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tcp {
    /// The engine of bentpipe.
    Engine,
    /// The kernel.
    Kernel,
}

/// The combinations that include the engine.
pub const PAIRS: [(Tcp, Tcp); 3] =
    [(Tcp::Engine, Tcp::Kernel), (Tcp::Kernel, Tcp::Engine), (Tcp::Engine, Tcp::Engine)];

/// One transfer.
#[derive(Clone, Debug)]
pub struct TransferRequest {
    /// Sender and receiver.
    pub pair: (Tcp, Tcp),
    /// True from the near end to the far end.
    pub from_near: bool,
    /// True over IPv6.
    pub v6: bool,
    /// Length, bytes.
    pub bytes: u64,
    /// Seed of the contents.
    pub seed: u64,
    /// The sender's congestion control; for the engine also further arguments.
    pub tcp: Vec<String>,
}

/// Result of a transfer whose data arrived intact.
#[derive(Clone, Debug)]
pub struct TransferResult {
    /// Duration, s: to the last acknowledgment if the engine sends, to the end at the receiver if the
    /// kernel does.
    pub seconds: f64,
    /// The flow in the report of the engine as sender.
    pub flow: Value,
    /// Kernel as receiver: seconds since its start, and bytes read, at most every 50 ms.
    pub curve: Vec<(f64, f64)>,
}

impl TransferResult {
    /// Rate, bit/s, at which the kernel as receiver delivered data, from `start_s` until `share` of the
    /// `bytes`: the slope of the line through its curve. This excludes the opening of the window and the
    /// last repairs. In-order data arrives in bursts of a round trip, which the line averages.
    pub fn delivered_bps(&self, start_s: f64, share: f64, bytes: u64) -> Outcome<f64> {
        let most = share * bytes as f64;
        let between: Vec<_> =
            self.curve.iter().copied().filter(|(at, n)| *at >= start_s && *n <= most).collect();
        let slope = slope(&between).ok_or_else(|| format!("{} points after {start_s} s", between.len()))?;
        Ok(slope * 8.0)
    }
}

/// A link between two hosts, and the kernel settings at its ends.
#[derive(Clone, Copy, Debug)]
pub struct Link<'a> {
    /// The link.
    pub link: OneLink<'a>,
    /// Initial receive buffer of the kernel, bytes, twice the initial window. It grows up to 32 MiB.
    pub first_buffer: u64,
}

impl Link<'_> {
    /// 24 Mbit/s, RTT 1000 ms, like the WINDS measurements. Loses data that the near end sends.
    pub const W: Self = Self::linux(["24 Mbit/s", "500 ms", "3 MB"], (0.0, 0.01));
    /// 100 Mbit/s, RTT 40 ms, 2 % loss.
    pub const L: Self = Self::linux(["100 Mbit/s", "20 ms", "1 MB"], (0.0, 0.02));
    /// Short delay, with loss in both directions.
    pub const BAD: Self = Self::linux(["200 Mbit/s", "2 ms", "200 kB"], (0.01, 0.01));

    /// A link with the default receive buffer of Linux; `loss` is towards the near end and the far end.
    const fn linux([rate, delay, buffer]: [&'static str; 3], (loss, loss_back): (f64, f64)) -> Self {
        let link = OneLink { rate, delay, buffer, loss, loss_back, ..OneLink::CLEAN };
        Self { link, first_buffer: 131_072 }
    }
}

impl TransferRequest {
    fn json(&self) -> Value {
        let name = |tcp| if tcp == Tcp::Engine { "engine" } else { "kernel" };
        json!({
            "mode": [name(self.pair.0), name(self.pair.1)],
            "from": if self.from_near { "near" } else { "far" },
            "v6": self.v6,
            "bytes": self.bytes,
            "seed": self.seed,
            "tcp": self.tcp,
        })
    }
}

/// Runs `all` one after the other over one link; an error if the data of one did not arrive intact.
pub fn run(rig: &Rig, link: &Link<'_>, seed: u64, all: &[TransferRequest]) -> Outcome<Vec<TransferResult>> {
    let scenario = rig.file(&format!("transfers-{seed}.toml"), &OneLink { seed, ..link.link }.toml())?;
    let peers = rig.file("peers.py", PEERS)?;
    let list: Vec<_> = all.iter().map(TransferRequest::json).collect();
    let plan = rig.file(&format!("plan-{seed}.json"), &Value::from(list).to_string())?;
    let (program, folder) = (rig.program().display().to_string(), rig.path("").display().to_string());
    // the socket buffers of both kernels
    let room = format!(
        "echo 4096 {} 33554432 >/proc/sys/net/ipv4/tcp_rmem; echo 4096 16384 33554432 >/proc/sys/net/ipv4/tcp_wmem",
        link.first_buffer
    );
    let far = format!("{room}; exec python3 '{peers}' far '{program}' '{folder}'");
    let near = format!("{room}; exec python3 '{peers}' near '{program}' '{folder}' '{plan}'");
    let text = rig.output(
        &["emulate", &scenario, "--far", &far, "--far-ready", "off", "--", "sh", "-c", &near],
        LIMIT,
    )?;
    let results: Vec<Value> = serde_json::from_str(&text).map_err(|e| format!("{e}: {text}"))?;
    if results.len() != all.len() {
        return Err(format!("{} of {} transfers, seed {seed}", results.len(), all.len()));
    }
    let read = |(one, request): (&Value, &TransferRequest)| match one["fault"].as_str() {
        Some("") => Ok(TransferResult {
            seconds: one["seconds"].as_f64().unwrap_or(0.0),
            flow: one["flow"].clone(),
            curve: one["curve"].as_array().into_iter().flatten().filter_map(point).collect(),
        }),
        fault => Err(format!("{request:?}: {}", fault.unwrap_or("no result"))),
    };
    results.iter().zip(all).map(read).collect()
}

fn point(value: &Value) -> Option<(f64, f64)> {
    Some((value[0].as_f64()?, value[1].as_f64()?))
}

/// `count` transfers of all kinds with random sizes up to 2 MB, uniform on a logarithmic scale.
pub fn random_transfers(count: usize, seed: u64, schemes: &[&str]) -> Vec<TransferRequest> {
    let mut dice = Random::new(seed);
    (0..count)
        .map(|i| {
            let pair = PAIRS[i % 3];
            let digits = dice.below(21);
            let tcp = match pair.0 {
                Tcp::Engine => vec![schemes[dice.below(schemes.len() as u64) as usize].to_owned()],
                Tcp::Kernel => vec!["cubic".to_owned()],
            };
            let bytes = (1 << digits) + dice.below(1 << digits);
            let (from_near, v6) = (i / 3 % 2 == 0, i / 6 % 2 == 1);
            TransferRequest { pair, from_near, v6, bytes, seed: seed + i as u64, tcp }
        })
        .collect()
}

/// Goodput of the engine's sender on one core, over a veth pair to the kernel's TCP on another.
const FLOOD: &str = "
unshare --net -- sleep 1000 & f=$!
trap 'kill $f' EXIT
sleep 0.3
far() { nsenter --target $f --net -- \"$@\"; }
mac=02:62:65:6e:74:01
ip link add name v0 address $mac mtu $MTU type veth peer name v1 address $mac mtu $MTU netns $f
ip link set v0 arp off; ip addr add 10.55.0.1/24 dev v0; ip link set v0 up
far ip link set v1 arp off; far ip addr add 10.55.0.2/24 dev v1; far ip link set v1 up
far taskset -c 1 python3 -c '
import socket
s = socket.create_server((\"10.55.0.2\", 5000)); c, _ = s.accept(); b = bytearray(1 << 20)
while c.recv_into(b): pass
c.close()' & r=$!
sleep 0.5
truncate -s $BYTES \"$FILE\"
taskset -c 0 \"$BENTPIPE\" send 10.55.0.2:5000 \"$FILE\" --tcp $TCP --json; code=$?
rm -f \"$FILE\"; ip link del v0
exit $code";

/// Sends `bytes` from one core and returns the goodput, bit/s. Needs root and two cores.
pub fn flood(rig: &Rig, bytes: u64, tcp: &str) -> Outcome<f64> {
    let file = rig.path("flood");
    let script = format!("FILE='{}'; BYTES={bytes}; TCP='{tcp}'; MTU=1500\n{FLOOD}", file.display());
    let text = rig.shell(&script, Duration::from_secs(120))?;
    let report: Value = serde_json::from_str(&text).map_err(|e| format!("{e}: {text}"))?;
    report["flows"][0]["goodput_bps"].as_f64().ok_or_else(|| "no goodput in the report".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The curve has a slow start and ends with a repair; only the rate in between counts.
    #[test]
    fn what_is_delivered_is_a_slope() {
        let json = json!([[0.0, 0], [5.0, 100], [10.0, 1000], [11.0, 2000], [12.0, 3000], [30.0, 4000]]);
        let curve = json.as_array().into_iter().flatten().filter_map(point).collect();
        let result = TransferResult { seconds: 30.0, flow: Value::Null, curve };
        assert_eq!(result.delivered_bps(10.0, 0.97, 4000), Ok(8000.0));
        assert!(result.delivered_bps(40.0, 0.97, 4000).is_err());
    }

    #[test]
    fn a_mixture_has_all_kinds_and_sizes() {
        let orders = random_transfers(240, 1, &["cubic", "bbr"]);
        for pair in PAIRS {
            for (near, v6) in [(true, true), (true, false), (false, true), (false, false)] {
                assert!(orders.iter().any(|o| (o.pair, o.from_near, o.v6) == (pair, near, v6)));
            }
        }
        assert!(orders.iter().any(|o| o.bytes < 100) && orders.iter().any(|o| o.bytes > 1 << 20));
        assert!(orders.iter().all(|o| (1..=2 << 20).contains(&o.bytes)));
        assert!(orders.iter().any(|o| o.tcp == ["bbr"]) && orders.iter().any(|o| o.tcp == ["cubic"]));
    }
}
