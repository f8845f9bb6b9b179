//! Experiment 4: the slow-start burst and a small buffer on board.

use crate::prelude::*;

/// Buffers, packets: those of the slides, and those for the rules W/2 = 64 and W/3 = 43.
pub(crate) const SIZES: [u32; 10] = [24, 30, 34, 36, 40, 43, 50, 64, 80, 120];
/// Time after which slow start is over, s.
const SETTLED_S: f64 = 20.0;

pub(super) static PEAK: CheckTable = CheckTable {
    title: "A larger buffer does not remove the burst of slow start",
    columns: &["buffer, packets"],
    expected: "W / 2",
    intro: "In the last round of slow start two packets leave for each ACK, and ACKs arrive at the rate of the link: \
        of the last 128 packets half must wait, however large the buffer. Window of 128 packets, an ACK for \
        each, `scenarios/burst.toml`. Tolerance one packet.",
};

pub(super) static LATER: CheckTable = CheckTable {
    title: "After slow start the queue is shorter",
    columns: &["buffer, packets"],
    expected: "expected",
    intro: "Longest queue after 20 s over the longest of all, in the same runs: the peak is reached once. Judged is \
        that it is not reached again (0.9 or less).",
};

pub(super) static OVERFLOW: CheckTable = CheckTable {
    title: "The buffer that slow start needs",
    columns: &["ACKs", "buffer, packets"],
    expected: "expected",
    intro: "The slides conclude that an on-board buffer should hold half the window, or a third with delayed ACKs, \
        which let three packets go for two that left. These are upper bounds. A window of 128 packets must lose \
        nothing with 64 and more, and lose packets with 50; with delayed ACKs lose nothing with 36 and more, and \
        lose packets with 30: there ns-2's queue peaks at 31 to 35, not at 43. Packets dropped at the queue in \
        100 s.",
};

pub(crate) static THROUGHPUT: CheckTable = CheckTable {
    title: "Throughput over the on-board buffer",
    columns: &["ACKs", "buffer, packets"],
    expected: "expected",
    intro: "Goodput of the same runs. How much a burst of losses costs depends on details of recovery: reported.",
};

pub(super) static HOPS: CheckTable = CheckTable {
    title: "Switching on board or at the hub: round trip",
    columns: &["topology"],
    expected: "hops",
    intro: "From user to user over a bent pipe are two hops, to the hub and back up; a switch on board makes it one. \
        Shortest round trip of a star over that of a mesh, `scenarios/onboard.toml`. Tolerance 5 %: \
        access links and serialisation are passed once either way.",
};

pub(super) static DROPS: CheckTable = CheckTable {
    title: "Switching on board or at the hub: drops",
    columns: &["topology", "ACKs", "buffer on board, packets", "queue"],
    expected: "expected",
    intro: "Packets dropped in 100 s. In a mesh they are dropped on board only, and the rules above hold there: none \
        with 64 packets, or 36 with delayed ACKs, some with 50 and 30. The hub of a star has a buffer of \
        120 packets, and drops none.",
};

/// The ACK policies: the name on the page, and the scenario's `delayed_ack`.
const POLICIES: [(&str, &str); 2] = [("every", "off"), ("every second", "on")];

/// A run with a buffer of this many packets.
pub(crate) fn burst_job(delayed_ack: &str, buffer: u32) -> Job {
    let sets = [("tcp", "sack"), ("buffer", &*format!("{buffer} packets")), ("delayed_ack", delayed_ack)];
    Job::new("scenarios/burst.toml", &sets)
}

pub(super) fn all() -> Vec<Check> {
    let mut checks = Vec::new();
    for buffer in [64, 80, 120] {
        let (labels, jobs) = ([&*buffer.to_string()], vec![burst_job("off", buffer)]);
        let peak = Quantity::metric("queue_peak[bottleneck]");
        checks.push(Check::new(&PEAK, &labels, peak, jobs, 64.0, Tolerance::Absolute(1.0)));
    }
    for buffer in [30, 34, 40, 50, 64, 80] {
        let jobs = vec![burst_job("off", buffer).recorded()];
        let (labels, peak) = ([&*buffer.to_string()], Quantity::Mean(Reading::LaterPeak(SETTLED_S)));
        checks.push(Check::new(&LATER, &labels, peak, jobs, f64::NAN, Tolerance::AtMost(0.9)));
    }
    for (acks, delayed_ack) in POLICIES {
        for buffer in SIZES {
            let labels = [acks, &*buffer.to_string()];
            let jobs = vec![burst_job(delayed_ack, buffer)];
            checks.push(Check::reported(&THROUGHPUT, &labels, Quantity::GOODPUT, jobs.clone()));
            let (drops, most) = (Quantity::metric("drops[bottleneck].queue_full"), losses(acks, buffer));
            checks.push(Check::new(&OVERFLOW, &labels, drops, jobs, f64::NAN, most));
        }
    }
    checks.extend(star_and_mesh());
    checks
}

fn onboard_job(topology: &str, delayed_ack: &str, buffer: u32) -> Job {
    let sets =
        [("topology", topology), ("buffer", &*format!("{buffer} packets")), ("delayed_ack", delayed_ack)];
    Job::new("scenarios/onboard.toml", &sets)
}

fn star_and_mesh() -> Vec<Check> {
    let jobs = ["star", "mesh"].map(|topology| onboard_job(topology, "off", 64)).to_vec();
    let quantity = Quantity::Ratio(Reading::Metric("rtt_min[flow]"));
    let tolerance = Tolerance::Relative(0.05);
    let mut checks = vec![Check::new(&HOPS, &["star over mesh"], quantity, jobs, 2.0, tolerance)];
    let mut drops = |topology, (acks, delayed_ack), buffer: u32, queue: (&str, &'static str), tolerance| {
        let jobs = vec![onboard_job(topology, delayed_ack, buffer)];
        let labels = [topology, acks, &*buffer.to_string(), queue.0];
        let drops = Quantity::metric(queue.1);
        checks.push(Check::new(&DROPS, &labels, drops, jobs, f64::NAN, tolerance));
    };
    let (up, down) = ("drops[station1-uplink].queue_full", "drops[station2-downlink].queue_full");
    for (policy, buffers) in POLICIES.into_iter().zip([[50, 64], [30, 36]]) {
        for buffer in buffers {
            drops("mesh", policy, buffer, ("on board", down), losses(policy.0, buffer));
            drops("mesh", policy, buffer, ("uplink", up), Tolerance::AtMost(0.0));
        }
        drops("star", policy, buffers[0], ("hub", down), Tolerance::AtMost(0.0));
        drops("star", policy, buffers[0], ("uplink", up), Tolerance::AtMost(0.0));
    }
    checks
}

/// Tolerance for the drops at a buffer size.
fn losses(acks: &str, buffer: u32) -> Tolerance {
    let (needed, too_small) = if acks == "every" { (64, 50) } else { (36, 30) };
    if buffer >= needed {
        Tolerance::AtMost(0.0)
    } else if buffer <= too_small {
        Tolerance::AtLeast(1.0)
    } else {
        Tolerance::Unjudged
    }
}
