//! Measures delay and rate of a link by kernel timestamps at the user's interface.

use crate::Outcome;
use crate::capture::{self, CapturedPacket};
use crate::rig::Rig;
use crate::stats::{median, quantile};
use std::path::Path;
use std::time::Duration;

/// Shell code that captures `$FILTER` into `$FILE` at the near end; `finish` stops the capture.
const CAPTURE: &str = "me=; [ \"$(id -u)\" = 0 ] && me='-Z root'
tcpdump $me -i bent0 -w \"$FILE\" -s 96 -B 8192 --time-stamp-precision=nano --immediate-mode $FILTER 2>\"$FILE.log\" & t=$!
finish() { sleep 0.3; kill -INT $t; wait $t; rm -f \"$FILE.log\"; }
i=0; while ! grep -q 'listening on' \"$FILE.log\"; do i=$((i+1)); [ $i -lt 100 ] || { cat \"$FILE.log\" >&2; exit 9; }; sleep 0.05; done
";

/// Filter for datagrams to the user.
pub(crate) const FROM_FAR: &str = "udp and src host far";

/// A script for the near end of a link: captures what matches `filter` into `file` while `act` runs.
pub(crate) fn capturing(file: &Path, filter: &str, act: &str) -> String {
    format!("FILE='{}'; FILTER='{filter}'\n{CAPTURE}{act} || exit 8; finish", file.display())
}

/// Reads the packets of a capture and removes the file.
pub(crate) fn read_and_remove(file: &Path) -> Outcome<Vec<CapturedPacket>> {
    let seen = capture::read(file);
    let _ = std::fs::remove_file(file);
    seen
}

/// Results of pings.
#[derive(Clone, Copy, Debug)]
pub struct Pings {
    /// Requests sent.
    pub sent: usize,
    /// Replies received.
    pub received: usize,
    /// Median round trip, ms.
    pub median_ms: f64,
    /// 99th percentile, ms.
    pub p99_ms: f64,
    /// Largest, ms.
    pub max_ms: f64,
}

/// Sends `count` pings over the link given by the arguments of `emulate`, one every `every_ms`.
pub fn pings(rig: &Rig, emulate: &[&str], far: &str, count: u32, every_ms: u32) -> Outcome<Pings> {
    let seconds = f64::from(every_ms) / 1e3;
    let ping = format!("ping -n -q -c {count} -i {seconds:.3} {far} >&2");
    let limit = Duration::from_secs(60) + Duration::from_millis(u64::from(count * every_ms));
    let file = rig.path("pings.pcap");
    let script = capturing(&file, "icmp or icmp6", &ping);
    rig.output(&[&["emulate"], emulate, &["--", "sh", "-c", &script]].concat(), limit)?;
    let (times, sent) = capture::round_trips(&read_and_remove(&file)?);
    let (median_ms, p99_ms, max_ms) = (median(&times), quantile(&times, 0.99), quantile(&times, 1.0));
    Ok(Pings { sent, received: times.len(), median_ms, p99_ms, max_ms })
}

/// IP rate, bit/s, at the output of a link that is offered datagrams at `offered_bps` for `seconds`.
pub fn rate(rig: &Rig, emulate: &[&str], offered_bps: f64, seconds: u32) -> Outcome<f64> {
    /// Time until the queue is full, ns.
    const SKIP: u64 = 1_000_000_000;
    let payload_bps = (offered_bps * 1472.0 / 1500.0) as u64;
    let length = seconds + 2;
    // measured at the receiver only: datagrams in flight at the end do not count
    let datagrams = format!("sleep 1; iperf3 -4 -c far -u -R -l 1472 -b {payload_bps} -t {length} >&2");
    let file = rig.path("rate.pcap");
    let script = capturing(&file, FROM_FAR, &datagrams);
    let words = [&["emulate"], emulate, &["--far", "iperf3 -s -1", "--", "sh", "-c", &script]].concat();
    rig.output(&words, Duration::from_secs(60 + u64::from(length)))?;
    capture::rate(&read_and_remove(&file)?, SKIP).ok_or_else(|| "no datagrams came".to_owned())
}
