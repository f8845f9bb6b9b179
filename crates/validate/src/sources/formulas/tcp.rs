//! Goodput of one connection and of many.

use crate::prelude::*;
use bentpipe_base::trace::DropCause;

/// Payload of a segment, bytes.
const SEGMENT: f64 = 1000.0;
/// TCP and IP headers without options, bytes.
const HEADERS: f64 = 40.0;
/// Rate of the access links, bit/s.
const ACCESS: f64 = 10e6;
/// Bottleneck of `window.toml` and `transfer.toml`, bit/s.
const T1: f64 = 1.544e6;
/// Two-way propagation delay there, s.
const T1_RTT: f64 = 0.585;
/// Time after which the start no longer matters, s.
const SETTLED: u64 = 100;
/// Duration of long runs, s.
const LONG: u64 = 500;

static WINDOW_LIMIT: CheckTable =
    CheckTable { title: "Window limit", columns: &["window, segments"], expected: "W / RTT" };

static SLOW_START: CheckTable =
    CheckTable { title: "Rounds of slow start", columns: &["size", "initial window"], expected: "formula" };

static BIT_ERROR_SHARE: CheckTable = CheckTable {
    title: "Share of packets with bit errors",
    columns: &["packets of", "bit error rate"],
    expected: "1 − (1 − BER)^(8 L)",
};

static SATURATED: CheckTable = CheckTable {
    title: "A saturated link is never idle",
    columns: &["flows", "window, segments"],
    expected: "expected",
};

static LINK_RATE: CheckTable = CheckTable {
    title: "A saturated link carries its rate",
    columns: &["flows", "window, segments"],
    expected: "C / 1.04",
};

/// All checks of this file.
pub(super) fn all() -> Vec<Check> {
    let mut checks = Vec::new();
    checks.extend(["16", "32", "64"].map(window_limit));
    for size_kb in [1, 10, 50, 100, 200] {
        checks.extend([1, 2, 4, 10].map(|iw| slow_start(size_kb, iw)));
    }
    for (segment, ber, flows) in [
        ("1000", "1e-7", "2"),
        ("1000", "1e-6", "10"),
        ("1460", "1e-6", "10"),
        ("256", "1e-5", "40"),
        ("1000", "1e-5", "40"),
    ] {
        checks.push(bit_errors(segment, ber, flows));
    }
    for (flows, window) in [("1", "128"), ("3", "64")] {
        checks.extend([saturated(flows, window), link_rate(flows, window)]);
    }
    checks
}

/// Serialisation time of `bytes` on both access links and the 1.544 Mbit/s bottleneck.
fn serialised(bytes: f64) -> f64 {
    bytes * 8.0 * (2.0 / ACCESS + 1.0 / T1)
}

/// RTT of a full segment and its ACK with empty queues.
fn round_trip() -> f64 {
    T1_RTT + serialised(SEGMENT + HEADERS) + serialised(HEADERS)
}

fn long_run(flows: &str, window: &str, seconds: u64) -> Job {
    let sets =
        [("flows", flows), ("window", &format!("{window} segments")), ("duration", &format!("{seconds} s"))];
    Job::new("scenarios/window.toml", &sets)
}

fn window_limit(window: &str) -> Check {
    let job = long_run("1", window, LONG).measured_from(SETTLED);
    let limit = number(window) * SEGMENT / round_trip();
    let tolerance = Tolerance::Relative(round_trip() / (LONG - SETTLED) as f64);
    Check::new(&WINDOW_LIMIT, &[window], Quantity::GOODPUT, vec![job], limit, tolerance)
}

fn slow_start(size_kb: u32, iw: u32) -> Check {
    let (size, iw_text) = (format!("{size_kb} kB"), iw.to_string());
    let job = Job::new("scenarios/transfer.toml", &[("size", &size), ("iw", &iw_text)]);
    // size in kB equals the number of segments
    let seconds = slow_start_time(f64::from(size_kb), f64::from(iw));
    let options = serialised(40.0) * 2.0 + HEADERS * 8.0 / ACCESS;
    let (time, tolerance) = (Quantity::metric("finished"), Tolerance::Absolute(options));
    Check::new(&SLOW_START, &[&size, &iw_text], time, vec![job], seconds, tolerance)
}

/// Time from SYN to the last ACK of `n` segments, if the second last round is shorter than an RTT.
fn slow_start_time(n: f64, iw: f64) -> f64 {
    let rounds = libm::log2(n / iw + 1.0).ceil();
    let place = n - iw * (libm::exp2(rounds - 1.0) - 1.0);
    let handshake = T1_RTT + 2.0 * serialised(HEADERS);
    let packet_time = (SEGMENT + HEADERS) * 8.0 / T1;
    handshake + rounds * round_trip() + (place - 1.0) * packet_time
}

fn bit_errors(segment: &str, ber: &str, flows: &str) -> Check {
    let sets =
        [("segment", &*format!("{segment} B")), ("ber", ber), ("flows", flows), ("duration", "1000 s")];
    let jobs = Job::new("scenarios/window.toml", &sets).seeds(2);
    let bytes = number(segment) + HEADERS;
    let share = -libm::expm1(8.0 * bytes * libm::log1p(-number(ber)));
    let (labels, lost) = ([&*format!("{bytes} B"), ber], Quantity::LostShare(DropCause::BitError));
    Check::new(&BIT_ERROR_SHARE, &labels, lost, jobs, share, Tolerance::Binomial)
}

fn saturated(flows: &str, window: &str) -> Check {
    let jobs = vec![long_run(flows, window, SETTLED), long_run(flows, window, LONG)];
    let (busy, tolerance) = (Quantity::BottleneckUtilisation, Tolerance::Absolute(1e-4));
    Check::new(&SATURATED, &[flows, window], busy, jobs, 1.0, tolerance)
}

fn link_rate(flows: &str, window: &str) -> Check {
    let jobs = vec![long_run(flows, window, LONG).measured_from(SETTLED)];
    let rate = T1 / 8.0 * SEGMENT / (SEGMENT + HEADERS);
    let tolerance = Tolerance::Relative(1e-4);
    Check::new(&LINK_RATE, &[flows, window], Quantity::GOODPUT, jobs, rate, tolerance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_give_the_values_of_the_literature() {
        // 64 segments of 1000 B in 585 ms: less than 64000 / 0.585 = 109.4 kB/s
        assert!((64.0 * SEGMENT / round_trip() - 108_050.0).abs() < 100.0);
        // as measured with ns-2: 10 segments from a window of 1, and 100 from 4
        assert!((slow_start_time(10.0, 1.0) - 2.96562).abs() < 1e-4);
        assert!((slow_start_time(100.0, 4.0) - 3.75732).abs() < 1e-4);
    }

    #[test]
    fn every_job_reads() {
        for check in all() {
            assert!(check.expected.is_finite(), "{check:?}");
            for job in &check.jobs {
                job.scenario().unwrap_or_else(|e| panic!("{check:?}: {e}"));
            }
        }
    }
}
