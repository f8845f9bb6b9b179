//! Asymmetric links: RFC 3449.

use crate::prelude::*;

/// Links with a slow return direction.
pub static SECTION: Section = Section {
    title: "Asymmetric links",
    intro: "RFC 3449 (BCP 69), section 3.1: with k the ratio of the rates over the ratio of the sizes of data \
        packets and ACKs, the return is congested when more than one ACK is sent per k data packets. \
        `scenarios/asymmetry.toml`: a GEO link of 10 Mbit/s, data packets of 1500 B, ACKs of 40 B, a queue of \
        100 packets before the return, SACK with a window of 1 MB, 500 s. The rule says when ACKs queue, not \
        what that costs: all of it is reported beside the rule, nothing is judged.",
    pictures: &[],
    tables: &[&GOODPUT, &RATIO, &QUEUE],
    checks: all,
};

const COLUMNS: &[&str] = &["k", "ACK for", "return, by the rule"];

static GOODPUT: CheckTable = CheckTable {
    title: "Goodput over an asymmetric link",
    columns: COLUMNS,
    expected: "expected",
    intro: "Goodput of the one connection. The first rows are those of a symmetric link.",
};

static RATIO: CheckTable = CheckTable {
    title: "Goodput over that of a symmetric link",
    columns: COLUMNS,
    expected: "by the rule",
    intro: "1 where nothing is lost. Where the rule finds the return congested it says nothing about how much is \
        left: ACKs that are dropped at the queue are made good by later ones, and those that wait make the round \
        trip longer.",
};

static QUEUE: CheckTable = CheckTable {
    title: "ACKs that wait for the return",
    columns: COLUMNS,
    expected: "by the rule",
    intro: "Mean queue in front of the return, of at most 100. By the rule it is empty or full; just at the limit it \
        can be anything.",
};

/// The k of a link with the same rate in both directions.
const SYMMETRIC: &str = "0.0266666667";
/// Buffer of the return direction, packets.
const FULL: f64 = 100.0;

fn all() -> Vec<Check> {
    let mut checks = Vec::new();
    for (acks, delayed_ack, segments) in [("every segment", "off", 1.0), ("every second", "on", 2.0)] {
        let job = |k: &str| Job::new("scenarios/asymmetry.toml", &[("k", k), ("delayed_ack", delayed_ack)]);
        for k in [SYMMETRIC, "0.5", "1", "2", "4"] {
            let ratio = number(k);
            let (rule, left, waiting) = if ratio < segments {
                ("fits", 1.0, 0.0)
            } else if ratio > segments {
                ("congested", f64::NAN, FULL)
            } else {
                ("just fits", 1.0, f64::NAN)
            };
            let labels = [if k == SYMMETRIC { "0.027" } else { k }, acks, rule];
            let check = |group, quantity, jobs, expected| {
                Check::new(group, &labels, quantity, jobs, expected, Tolerance::Unjudged)
            };
            checks.push(check(&GOODPUT, Quantity::GOODPUT, vec![job(k)], f64::NAN));
            if k != SYMMETRIC {
                checks.push(check(&RATIO, Quantity::GOODPUT_RATIO, vec![job(k), job(SYMMETRIC)], left));
            }
            let queue = Quantity::metric("queue_mean[bottleneck-return]");
            checks.push(check(&QUEUE, queue, vec![job(k)], waiting));
        }
    }
    checks
}
