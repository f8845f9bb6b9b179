//! Experiment 2: initial window and segment size.

use super::RTT;
use crate::prelude::*;

pub(super) static INITIAL_WINDOW: CheckTable = CheckTable {
    title: "Time saved by a larger initial window",
    columns: &["packets", "initial window"],
    expected: "round trips",
    intro: "A larger initial window shortens short transfers: two packets save one round trip against one, four save \
        two. The slides use a telnet source, which offers too little to show it; here it is the completion time \
        of transfers in `scenarios/transfer.toml`. Tolerance a tenth of a round trip: the last round is sent at \
        the rate of the link, and has up to four packets more. Where the number of packets lies just beyond a \
        power of two the last round can be a single packet, as for 30 packets: 4 save hardly more than 2. That \
        row is reported only.",
};

pub(super) static SEGMENT_SIZE: CheckTable = CheckTable {
    title: "Larger segments in a window counted in packets",
    columns: &["segment", "over", "window, packets"],
    expected: "ratio of sizes",
    intro: "With a window counted in packets, larger packets carry more: the ratio of the goodputs is that of the \
        sizes, as long as the window limits. 500 s in `scenarios/window.toml`. Tolerance 5 %: larger packets \
        take longer to serialise. With the 128 packets of the slides, all but the smallest fill the link: \
        reported.",
};

pub(super) static SEGMENTS_AND_ERRORS: CheckTable = CheckTable {
    title: "Larger segments and bit errors",
    columns: &["segment", "over", "bit error rate"],
    expected: "expected",
    intro: "Larger packets suffer more from bit errors, so beyond some bit error rate the advantage turns round. The \
        inverse-square-root law, with p growing as the size, leaves larger packets ahead by the root of the \
        ratio; they fall behind where timeouts rule. Judged are the ends: ahead at 1e-7, behind at 1e-4, where \
        two thirds of the packets of 1192 B are lost. Ten runs of 500 s, `scenarios/window.toml`, SACK, 128 \
        packets.",
};

pub(super) fn all() -> Vec<Check> {
    let mut checks = Vec::new();
    for packets in [10, 20, 30, 50, 100] {
        checks.extend([2, 4].map(|iw| saved(packets, iw)));
    }
    for (window, judged) in [("32", true), ("128", false)] {
        checks.extend(["1152", "1728"].map(|segment| clean(segment, window, judged)));
    }
    for ber in ["1e-7", "1e-6", "1e-5", "3e-5", "1e-4"] {
        checks.push(with_errors(ber));
    }
    checks
}

/// A transfer of this many packets.
pub(crate) fn transfer_job(packets: u32, iw: u32) -> Job {
    Job::new("scenarios/transfer.toml", &[("size", &format!("{packets} kB")), ("iw", &iw.to_string())])
}

fn saved(packets: u32, iw: u32) -> Check {
    let jobs = vec![transfer_job(packets, 1), transfer_job(packets, iw)];
    let rounds = f64::from(iw / 2);
    let tolerance = if packets == 30 { Tolerance::Unjudged } else { Tolerance::Absolute(0.1 * RTT) };
    let labels = [&*packets.to_string(), &*format!("{iw} instead of 1")];
    let quantity = Quantity::Difference(Reading::Metric("finished"));
    Check::new(&INITIAL_WINDOW, &labels, quantity, jobs, rounds * RTT, tolerance)
}

/// One connection with this segment size; the window is in packets.
pub(crate) fn segments_job(segment: &str, window: &str, ber: &str) -> Job {
    let sets = [
        ("tcp", "sack"),
        ("segment", &*format!("{segment} B")),
        ("window", &*format!("{window} segments")),
        ("ber", ber),
    ];
    Job::new("scenarios/window.toml", &sets)
}

fn clean(segment: &str, window: &str, judged: bool) -> Check {
    let jobs = [segment, "576"].map(|s| segments_job(s, window, "0")).to_vec();
    let ratio = number(segment) / 576.0;
    let tolerance = if judged { Tolerance::Relative(0.05) } else { Tolerance::Unjudged };
    let labels = [&*format!("{segment} B"), "576 B", window];
    Check::new(&SEGMENT_SIZE, &labels, Quantity::GOODPUT_RATIO, jobs, ratio, tolerance)
}

fn with_errors(ber: &str) -> Check {
    let jobs = ["1152", "576"].map(|s| segments_job(s, "128", ber).seeds(10)).concat();
    let tolerance = match ber {
        "1e-7" => Tolerance::AtLeast(1.0),
        "1e-4" => Tolerance::AtMost(1.0),
        _ => Tolerance::Unjudged,
    };
    let (labels, ratio) = (["1152 B", "576 B", ber], Quantity::GOODPUT_RATIO);
    Check::new(&SEGMENTS_AND_ERRORS, &labels, ratio, jobs, f64::NAN, tolerance)
}
