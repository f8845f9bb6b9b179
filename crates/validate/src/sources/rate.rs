//! Explicit rate: goodput at a granted rate compared with the capacity of the path.

use crate::prelude::*;

const COLUMNS: &[&str] = &["round trip", "loss", "fallback above"];

static STEADY: CheckTable =
    CheckTable { title: "Rate of new payload under a grant", columns: COLUMNS, expected: "ceiling" };

static LONG: CheckTable = CheckTable {
    title: "Rate of new payload under a grant, long round trips",
    columns: COLUMNS,
    expected: "ceiling",
};

static ACK_LOSS: CheckTable = CheckTable {
    title: "Rate of new payload when acknowledgments are lost",
    columns: &["loss of data", "loss of acknowledgments"],
    expected: "with all of them",
};

static TRANSFER: CheckTable =
    CheckTable { title: "8 MiB under a grant", columns: &["round trip", "loss"], expected: "ideal" };

static RIVALS: CheckTable =
    CheckTable { title: "The same 8 MiB with other schemes", columns: &["TCP", "loss"], expected: "" };

static FALLBACK: CheckTable = CheckTable {
    title: "Segments before the fallback at a loss of 20 %",
    columns: &["fallback above"],
    expected: "",
};

static PATIENCE: CheckTable = CheckTable {
    title: "Fallbacks at a loss of 9 % in a million packets",
    columns: &["fallback above"],
    expected: "",
};

/// Rate of the path and of the grant, B/s.
const RATE: f64 = 100e6 / 8.0;
/// Payload share of a packet.
const PAYLOAD: f64 = 1448.0 / 1500.0;

fn job(sets: &[(&str, &str)]) -> Job {
    Job::new("scenarios/explicit-rate-bound.toml", sets)
}

fn steady(group: &'static CheckTable, (rtt, size): (&str, &str), loss: &str, fallback: &str) -> Check {
    let job = job(&[("rtt", rtt), ("size", size), ("loss", loss), ("fallback", fallback)]);
    let ceiling = RATE * (1.0 - number(loss)) * PAYLOAD;
    let steady = Quantity::metric("steady[flow]");
    Check::new(group, &[rtt, loss, fallback], steady, vec![job], ceiling, Tolerance::Relative(0.03))
}

pub(super) fn all() -> Vec<Check> {
    const LOSSES: [(&str, &str); 5] =
        [("0", "0.1"), ("0.01", "0.1"), ("0.05", "0.1"), ("0.09", "0.1"), ("0.1", "0.2")];
    let mut checks = Vec::new();
    for (loss, fallback) in LOSSES {
        for path in [("10 ms", "20 MB"), ("40 ms", "20 MB")] {
            checks.push(steady(&STEADY, path, loss, fallback));
        }
        for path in [("200 ms", "80 MB"), ("550 ms", "120 MB"), ("1 s", "200 MB")] {
            checks.push(steady(&LONG, path, loss, fallback));
        }
    }
    for loss in ["0", "0.05"] {
        let with = |ack_loss| job(&[("loss", loss), ("size", "20 MB"), ("ack_loss", ack_loss)]);
        let (ratio, least) = (Quantity::Ratio(Reading::Metric("steady[flow]")), Tolerance::AtLeast(0.97));
        checks.push(Check::new(&ACK_LOSS, &[loss, "0.1"], ratio, vec![with("0.1"), with("0")], 1.0, least));
    }
    let median = Quantity::Median(Reading::Metric("finished"));
    let runs = job(&[("loss", "0.02")]).seeds(50);
    let latest = Tolerance::AtMost(0.83);
    checks.push(Check::new(&TRANSFER, &["40 ms", "0.02"], median, runs, ideal(), latest));
    for tcp in ["cubic", "bbr", "bbr3", "hybla", "westwood"] {
        let runs = job(&[("loss", "0.02"), ("tcp", tcp)]).seeds(11);
        checks.push(Check::reported(&RIVALS, &[tcp, "0.02"], median, runs));
    }
    let segments = Quantity::Maximum(Reading::SegmentsBeforeFallback);
    let runs = job(&[("loss", "0.2"), ("size", "10 MB")]).seeds(5);
    checks.push(Check::new(&FALLBACK, &["0.1"], segments, runs, f64::NAN, Tolerance::AtMost(5000.0)));
    let runs = vec![job(&[("loss", "0.09"), ("size", "1400 MB")])];
    let fallbacks = Quantity::Mean(Reading::Fallbacks);
    checks.push(Check::new(&PATIENCE, &["0.1"], fallbacks, runs, 0.0, Tolerance::AtMost(0.0)));
    checks
}

/// Ideal duration, s: handshake, packets, one round of repairs, the last acknowledgment.
fn ideal() -> f64 {
    const RTT: f64 = 0.04;
    let bytes = f64::from(8 << 20) / PAYLOAD / (1.0 - 0.02);
    3.0 * RTT + bytes / RATE
}
