//! Checks against formulas. Nothing here calls bentpipe's own code: the formulas are written out from the networks'
//! parameters.

use crate::check::{Check, Expected, Quantity, Tolerance};
use crate::group::Group;
use crate::job::{Change, File, Job};

/// Payload of a segment, B.
const SEGMENT: f64 = 1000.0;
/// TCP and IP headers without options, B.
const HEADERS: f64 = 40.0;
/// Rate of the access links, bit/s.
const ACCESS: f64 = 10e6;
/// Bottleneck of `window.toml` and `transfer.toml`, bit/s.
const T1: f64 = 1.544e6;
/// Two-way propagation delay there, s.
const T1_RTT: f64 = 0.585;
/// Bottleneck of `sharing.toml`, bit/s.
const SHARED: f64 = 10e6;
/// Two-way propagation delay there, s.
const SHARED_RTT: f64 = 0.55;
/// Seconds after which no trace of the start is left.
const SETTLED: u64 = 100;
/// Length of long runs, s.
const LONG: u64 = 500;

/// All of them.
pub fn all() -> Vec<Check> {
    let mut checks = Vec::new();
    checks.extend(["16", "32", "64"].map(window_limit));
    for size_kb in [1, 10, 50, 100, 200] {
        checks.extend([1, 2, 4, 10].map(|iw| slow_start(size_kb, iw)));
    }
    for tcp in ["newreno", "sack"] {
        checks.extend(["5e-3", "1e-2"].map(|loss| mathis(tcp, loss)));
    }
    for tcp in ["sack", "cubic"] {
        checks.extend([("40", "1e-3"), ("100", "1e-2")].map(|(flows, loss)| ceiling(tcp, flows, loss)));
    }
    checks.extend(["1e-5", "1e-3", "5e-3", "1e-2"].map(packet_loss));
    checks.extend(
        [
            ("1000", "1e-7", "2"),
            ("1000", "1e-6", "10"),
            ("1460", "1e-6", "10"),
            ("256", "1e-5", "40"),
            ("1000", "1e-5", "40"),
        ]
        .map(|(segment, ber, flows)| bit_errors(segment, ber, flows)),
    );
    for (flows, window) in [("1", "128"), ("3", "64")] {
        checks.extend([saturated(flows, window), link_rate(flows, window)]);
    }
    checks
}

fn check(
    group: Group,
    labels: &[&str],
    quantity: Quantity,
    jobs: Vec<Job>,
    expected: f64,
    tolerance: Tolerance,
) -> Check {
    let labels = labels.iter().map(|l| (*l).to_owned()).collect();
    Check { group, labels, quantity, jobs, expected: Expected::exactly(expected), tolerance }
}

/// Time to serialise `bytes` on both access links and the bottleneck of 1.544 Mbit/s.
fn serialised(bytes: f64) -> f64 {
    bytes * 8.0 * (2.0 / ACCESS + 1.0 / T1)
}

/// Round trip of a full segment and its ACK that meet no queue.
fn round_trip() -> f64 {
    T1_RTT + serialised(SEGMENT + HEADERS) + serialised(HEADERS)
}

fn long_run(flows: &str, window: &str, seconds: u64) -> Job {
    let sets =
        [("flows", flows), ("window", &format!("{window} segments")), ("duration", &format!("{seconds} s"))];
    Job::new(File::Window, &sets)
}

fn window_limit(window: &str) -> Check {
    let job = long_run("1", window, LONG).with(Change::MeasureFrom(SETTLED));
    let limit = number(window) * SEGMENT / round_trip();
    let slack = round_trip() / (LONG - SETTLED) as f64;
    check(Group::WindowLimit, &[window], Quantity::Goodput, vec![job], limit, Tolerance::Relative(slack))
}

fn slow_start(size_kb: u32, iw: u32) -> Check {
    let (size, iw_text) = (format!("{size_kb} kB"), iw.to_string());
    let job = Job::new(File::Transfer, &[("size", &size), ("iw", &iw_text)]);
    // size in kB is the number of segments
    let seconds = slow_start_time(f64::from(size_kb), f64::from(iw));
    let options = serialised(40.0) * 2.0 + HEADERS * 8.0 / ACCESS;
    let tolerance = Tolerance::Absolute(options);
    check(Group::SlowStart, &[&size, &iw_text], Quantity::Completion, vec![job], seconds, tolerance)
}

/// From the SYN to the ACK of the last of `n` segments. Holds while the last but one round is shorter than a round trip.
pub(crate) fn slow_start_time(n: f64, iw: f64) -> f64 {
    let rounds = libm::log2(n / iw + 1.0).ceil();
    let place = n - iw * (libm::exp2(rounds - 1.0) - 1.0);
    let handshake = T1_RTT + 2.0 * serialised(HEADERS);
    let packet_time = (SEGMENT + HEADERS) * 8.0 / T1;
    handshake + rounds * round_trip() + (place - 1.0) * packet_time
}

fn sharing(tcp: &str, loss: &str, flows: &str) -> Job {
    let sets = [
        ("tcp", tcp),
        ("loss", loss),
        ("flows", flows),
        ("jitter", "0.9 ms"),
        ("buffer", "50 packets"),
        ("window", "64 segments"),
        ("duration", &format!("{LONG} s")),
    ];
    Job::new(File::Sharing, &sets)
}

fn mathis(tcp: &str, loss: &str) -> Check {
    let rate = 1.5_f64.sqrt() * SEGMENT / (SHARED_RTT * number(loss).sqrt());
    let jobs = sharing(tcp, loss, "20").seeds(5);
    check(Group::Mathis, &[tcp, loss], Quantity::GoodputPerFlow(20), jobs, rate, Tolerance::Relative(0.10))
}

fn ceiling(tcp: &str, flows: &str, loss: &str) -> Check {
    let most = SHARED / 8.0 * SEGMENT / (SEGMENT + HEADERS) * (1.0 - number(loss));
    let jobs = sharing(tcp, loss, flows).seeds(5);
    let tolerance = Tolerance::Between(0.9 * most, most);
    check(Group::Ceiling, &[tcp, flows, loss], Quantity::Goodput, jobs, most, tolerance)
}

fn packet_loss(loss: &str) -> Check {
    let jobs = sharing("newreno", loss, "20").seeds(5);
    let share = number(loss);
    check(Group::PacketLoss, &["1040 B", loss], Quantity::LostShare, jobs, share, Tolerance::Binomial)
}

fn bit_errors(segment: &str, ber: &str, flows: &str) -> Check {
    let sets =
        [("segment", &*format!("{segment} B")), ("ber", ber), ("flows", flows), ("duration", "1000 s")];
    let jobs = Job::new(File::Window, &sets).seeds(2);
    let bytes = number(segment) + HEADERS;
    let share = -libm::expm1(8.0 * bytes * libm::log1p(-number(ber)));
    let labels = [&*format!("{bytes} B"), ber];
    check(Group::BitErrorShare, &labels, Quantity::CorruptedShare, jobs, share, Tolerance::Binomial)
}

fn saturated(flows: &str, window: &str) -> Check {
    let jobs = vec![long_run(flows, window, SETTLED), long_run(flows, window, LONG)];
    check(Group::Saturated, &[flows, window], Quantity::Busy, jobs, 1.0, Tolerance::Absolute(1e-4))
}

fn link_rate(flows: &str, window: &str) -> Check {
    let jobs = vec![long_run(flows, window, LONG).with(Change::MeasureFrom(SETTLED))];
    let rate = T1 / 8.0 * SEGMENT / (SEGMENT + HEADERS);
    check(Group::LinkRate, &[flows, window], Quantity::Goodput, jobs, rate, Tolerance::Relative(1e-4))
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_give_the_values_of_the_literature() {
        // 64 segments of 1000 B in 585 ms: less than 64000 / 0.585 = 109.4 kB/s
        assert!((64.0 * SEGMENT / round_trip() - 108_050.0).abs() < 100.0);
        // 1.22 segments per round trip and root of p
        assert!((1.5_f64.sqrt() - 1.2247).abs() < 1e-4);
        // what ns-2 measured: 10 segments from a window of 1, and 100 from 4
        assert!((slow_start_time(10.0, 1.0) - 2.96562).abs() < 1e-4);
        assert!((slow_start_time(100.0, 4.0) - 3.75732).abs() < 1e-4);
    }

    #[test]
    fn every_job_reads() {
        for check in all() {
            assert!(check.expected.value.is_finite(), "{check:?}");
            for job in &check.jobs {
                job.scenario().unwrap_or_else(|e| panic!("{check:?}: {e}"));
            }
        }
    }
}
