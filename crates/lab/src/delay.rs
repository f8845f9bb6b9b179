//! Delay and rate of a link, by the kernel's times of the packets at the user's interface.

use crate::Outcome;
use crate::capture::{self, Seen};
use crate::rig::Rig;
use crate::stats::{median, quantile};
use std::path::Path;
use std::time::Duration;

/// Begins a capture of `$FILTER` into `$FILE` behind the link, and ends it with `finish`.
const CAPTURE: &str = "me=; [ \"$(id -u)\" = 0 ] && me='-Z root'
tcpdump $me -i bent0 -w \"$FILE\" -s 96 -B 8192 --time-stamp-precision=nano --immediate-mode $FILTER 2>\"$FILE.log\" & t=$!
finish() { sleep 0.3; kill -INT $t; wait $t; rm -f \"$FILE.log\"; }
i=0; while ! grep -q 'listening on' \"$FILE.log\"; do i=$((i+1)); [ $i -lt 100 ] || { cat \"$FILE.log\" >&2; exit 9; }; sleep 0.05; done
";

/// Datagrams to the user.
pub(crate) const FROM_FAR: &str = "udp and src host far";

/// A script for the near end of a link: what `filter` lets through is captured into `file` while the script
/// `act` runs.
pub(crate) fn capturing(file: &Path, filter: &str, act: &str) -> String {
    format!("FILE='{}'; FILTER='{filter}'\n{CAPTURE}{act} || exit 8; finish", file.display())
}

/// The packets of a capture, whose file is removed.
pub(crate) fn taken(file: &Path) -> Outcome<Vec<Seen>> {
    let seen = capture::read(file);
    let _ = std::fs::remove_file(file);
    seen
}

/// What pings saw.
#[derive(Clone, Copy, Debug)]
pub struct Pings {
    /// Requests that were sent.
    pub sent: usize,
    /// Replies that came.
    pub came: usize,
    /// Median round trip, ms.
    pub median_ms: f64,
    /// 99th percentile, ms.
    pub p99_ms: f64,
    /// Largest, ms.
    pub max_ms: f64,
}

/// Sends `count` pings over the link that the words of `emulate` name, one every `every_ms`.
pub fn pings(rig: &Rig, emulate: &[&str], far: &str, count: u32, every_ms: u32) -> Outcome<Pings> {
    let seconds = f64::from(every_ms) / 1e3;
    let ping = format!("ping -n -q -c {count} -i {seconds:.3} {far} >&2");
    let limit = Duration::from_secs(60) + Duration::from_millis(u64::from(count * every_ms));
    let file = rig.path("pings.pcap");
    let script = capturing(&file, "icmp or icmp6", &ping);
    rig.output(&[&["emulate"], emulate, &["--", "sh", "-c", &script]].concat(), limit)?;
    let (times, sent) = capture::round_trips(&taken(&file)?);
    Ok(Pings {
        sent,
        came: times.len(),
        median_ms: median(&times),
        p99_ms: quantile(&times, 0.99),
        max_ms: quantile(&times, 1.0),
    })
}

/// Bit/s of IP that come out of a link that is offered `offered_bps` of datagrams in its way to the user,
/// over about `seconds`.
pub fn rate(rig: &Rig, emulate: &[&str], offered_bps: f64, seconds: u32) -> Outcome<f64> {
    /// Nanoseconds until the queue stands.
    const SKIP: u64 = 1_000_000_000;
    let payload_bps = (offered_bps * 1472.0 / 1500.0) as u64;
    let length = seconds + 2;
    // with a clock at the receiver alone: what is in flight at the end does not count
    let datagrams = format!("sleep 1; iperf3 -4 -c far -u -R -l 1472 -b {payload_bps} -t {length} >&2");
    let file = rig.path("rate.pcap");
    let script = capturing(&file, FROM_FAR, &datagrams);
    let words = [&["emulate"], emulate, &["--far", "iperf3 -s -1", "--", "sh", "-c", &script]].concat();
    rig.output(&words, Duration::from_secs(60 + u64::from(length)))?;
    capture::rate(&taken(&file)?, SKIP).ok_or_else(|| "no datagrams came".to_owned())
}
