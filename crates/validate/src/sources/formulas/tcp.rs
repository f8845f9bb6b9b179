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
/// Bottleneck of `sharing.toml`, bit/s.
const SHARED: f64 = 10e6;
/// Two-way propagation delay there, s.
const SHARED_RTT: f64 = 0.55;
/// Time after which the start no longer matters, s.
const SETTLED: u64 = 100;
/// Duration of long runs, s.
const LONG: u64 = 500;

pub(super) static WINDOW_LIMIT: CheckTable = CheckTable {
    title: "Window limit",
    columns: &["window, segments"],
    expected: "W / RTT",
    intro: "Goodput from 100 s to 500 s of one connection, where RTT is propagation plus the \
        serialisation of one segment and its ACK on each link. Tolerance 0.15 %: the ends of the interval can cut \
        one window, in 400 s.",
};

pub(crate) static SLOW_START: CheckTable = CheckTable {
    title: "Rounds of slow start",
    columns: &["size", "initial window"],
    expected: "formula",
    intro: "With n segments and an initial window w, the last segment leaves in round k = ⌈log₂(n/w + 1)⌉ and is \
        the m-th of its round, m = n − w (2^(k−1) − 1). The transfer takes one round trip for the handshake, k for the \
        rounds, and m − 1 packet times of the bottleneck. Tolerance 0.6 ms: TCP options on SYN and SYN-ACK (at most 40 \
        B each) and the ACK before the first segment.",
};

pub(super) static MATHIS: CheckTable = CheckTable {
    title: "Inverse-square-root law",
    columns: &["TCP", "loss"],
    expected: "1.22 MSS / (RTT √p)",
    intro: "Mean goodput of one of twenty flows in `scenarios/sharing.toml`, with jitter. Tolerance 10 %: the law \
        leaves out timeouts, the receive window and queueing. It holds where random loss, not the queue, decides.",
};

pub(super) static CEILING: CheckTable = CheckTable {
    title: "Ceiling of retransmission",
    columns: &["TCP", "flows", "loss"],
    expected: "C (1 − p)",
    intro: "What retransmission can reach at most on a link of rate C (payload, without headers) that loses \
        packets: each is sent 1/(1 − p) times. It must not be exceeded, and with flows and windows enough SACK and CUBIC must \
        reach 90 % of it.",
};

pub(super) static PACKET_LOSS: CheckTable = CheckTable {
    title: "Share of packets lost",
    columns: &["packets of", "loss"],
    expected: "p",
    intro: "Packets that the satellite hop lost, of those it sent, in five runs of twenty NewReno connections. \
        Tolerance: counts that the binomial distribution yields in all but one of 10 000 cases.",
};

pub(super) static BIT_ERROR_SHARE: CheckTable = CheckTable {
    title: "Share of packets with bit errors",
    columns: &["packets of", "bit error rate"],
    expected: "1 − (1 − BER)^(8 L)",
    intro: "The same for bit errors, in `scenarios/window.toml`. A packet of L bytes arrives when all \
        its 8 L bits do.",
};

pub(super) static SATURATED: CheckTable = CheckTable {
    title: "A saturated link is never idle",
    columns: &["flows", "window, segments"],
    expected: "expected",
    intro: "Share of the time from 100 s to 500 s that the bottleneck spent serialising, with windows larger \
        than the network holds and no loss. Tolerance 1e-4: a packet in service at either end is 1.3e-5.",
};

pub(super) static LINK_RATE: CheckTable = CheckTable {
    title: "A saturated link carries its rate",
    columns: &["flows", "window, segments"],
    expected: "C / 1.04",
    intro: "Goodput of the same interval: 1000 of every 1040 B that the link's rate carries. Tolerance 1e-4, \
        as above; so the rate holds in the long run although no packet's time is a whole number of nanoseconds.",
};

/// All checks of this file.
pub(super) fn all() -> Vec<Check> {
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
    let job = long_run("1", window, LONG).with(Change::MeasureFrom(SETTLED));
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
    Job::new("scenarios/sharing.toml", &sets)
}

fn mathis(tcp: &str, loss: &str) -> Check {
    let rate = 1.5_f64.sqrt() * SEGMENT / (SHARED_RTT * number(loss).sqrt());
    let (jobs, goodput) = (sharing(tcp, loss, "20").seeds(5), Quantity::Mean(Reading::GoodputOf("")));
    Check::new(&MATHIS, &[tcp, loss], goodput, jobs, rate, Tolerance::Relative(0.10))
}

fn ceiling(tcp: &str, flows: &str, loss: &str) -> Check {
    let most = SHARED / 8.0 * SEGMENT / (SEGMENT + HEADERS) * (1.0 - number(loss));
    let jobs = sharing(tcp, loss, flows).seeds(5);
    let tolerance = Tolerance::Between(0.9 * most, most);
    Check::new(&CEILING, &[tcp, flows, loss], Quantity::GOODPUT, jobs, most, tolerance)
}

fn packet_loss(loss: &str) -> Check {
    let jobs = sharing("newreno", loss, "20").seeds(5);
    let lost = Quantity::LostShare(DropCause::PacketLoss);
    Check::new(&PACKET_LOSS, &["1040 B", loss], lost, jobs, number(loss), Tolerance::Binomial)
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
    let jobs = vec![long_run(flows, window, LONG).with(Change::MeasureFrom(SETTLED))];
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
        // 1.22 segments per round trip and root of p
        assert!((1.5_f64.sqrt() - 1.2247).abs() < 1e-4);
        // as measured with ns-2: 10 segments from a window of 1, and 100 from 4
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
