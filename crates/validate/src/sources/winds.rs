//! Measurements over WINDS in 2009: Lee, Yum and Wan, TCP-SuperCharger, table 1.

use crate::prelude::*;

/// The measurements.
pub static SECTION: Section = Section {
    title: "The WINDS measurements of 2009",
    intro: "Lee, Yum and Wan (*TCP-SuperCharger*, table 1) measured between Hong Kong and Thailand, in January 2009, \
        a TCP that stopped again and again with round trips of more than five seconds, and found that 400 kbit/s \
        of datagrams in the direction of the ACKs cured it. They suspect a channel that is released when idle. \
        That is the model here, an assumption: the channel of the ACKs is released after 0.3 s without a packet, \
        and takes 4.75 s to set up, the difference of the two round trips measured. The transfer's start is \
        chaotic, so goodput counts from 60 s on.",
    pictures: &[],
    tables: &[&GOODPUT, &ROUND_TRIP],
    checks: all,
};

static GOODPUT: CheckTable = CheckTable {
    title: "Goodput over WINDS",
    columns: &["row", "protocol", "window", "datagrams beside it"],
    expected: "measured",
    intro: "`scenarios/winds.toml`. Tolerance 30 % for rows 2, 3 and 5. Row 4 asks for a round trip of 2.1 s, which \
        no fixed time to set up explains: it is reported. Row 1, datagrams at 40 Mbit/s, needs a faster channel \
        than the 24 Mbit/s of the other tests; reported for both (`crates/validate/data/datagrams.toml`).",
};

static ROUND_TRIP: CheckTable = CheckTable {
    title: "Round trips over WINDS",
    columns: &["row", "window", "datagrams beside it"],
    expected: "measured",
    intro: "Median round trip in the same runs. With datagrams beside it the round trip must be that of the channel, \
        within 10 %; without them the time to set up was chosen to fit, which is reported.",
};

fn job(window: &str, keepalive: &str) -> Job {
    Job::new("scenarios/winds.toml", &[("window", window), ("keepalive", keepalive)])
}

fn all() -> Vec<Check> {
    let megabit = 1e6 / 8.0;
    let mut checks = Vec::new();
    for rate in ["24 Mbit/s", "51 Mbit/s"] {
        let jobs = vec![Job::new("crates/validate/data/datagrams.toml", &[("rate", rate)])];
        let (labels, expected) = (["1", "UDP", "-", &*format!("none, channel of {rate}")], 40.0 * megabit);
        checks.push(Check::new(&GOODPUT, &labels, Quantity::GOODPUT, jobs, expected, Tolerance::Unjudged));
    }
    for (row, window, beside, measured) in [
        ("2", "64 KiB", "off", 0.12),
        ("3", "512 KiB", "off", 0.8),
        ("4", "1024 KiB", "off", 4.0),
        ("5", "64 KiB", "on", 0.5),
    ] {
        let tolerance = if row == "4" { Tolerance::Unjudged } else { Tolerance::Relative(0.3) };
        let yes = if beside == "on" { "yes" } else { "no" };
        let (labels, jobs) = ([row, "TCP", window, yes], vec![job(window, beside)]);
        let quantity = Quantity::metric("goodput[flow]");
        checks.push(Check::new(&GOODPUT, &labels, quantity, jobs, measured * megabit, tolerance));
    }
    for (row, beside, measured, tolerance) in
        [("2", "off", 5.78, Tolerance::Unjudged), ("5", "on", 1.03, Tolerance::Relative(0.1))]
    {
        let yes = if beside == "on" { "yes" } else { "no" };
        let (quantity, jobs) = (Quantity::metric("rtt_p50[flow]"), vec![job("64 KiB", beside)]);
        checks.push(Check::new(&ROUND_TRIP, &[row, "64 KiB", yes], quantity, jobs, measured, tolerance));
    }
    checks
}
