//! Keys that are valid alone but have no effect or no meaning together: each is refused at its position.

use crate::support::{DUMBBELL, bottleneck, edit, loads, points_at, refused};

const TRACE: &str = "capacity = { opportunities_ms = [1, 2, 4] }";
const SLOTS: &str = "orbit = { slots = { delay = [\"10 ms\", \"30 ms\"] } }";

#[test]
fn a_trace_and_another_source_of_rates() {
    refused(&[
        (
            &format!(
                "{TRACE}\norbit = {{ slots = {{ delay = [\"10 ms\", \"30 ms\"], rate = [\"1 Mbit/s\", \"2 Mbit/s\"] }} }}"
            ),
            "the rate of slots and a mahimahi trace exclude each other",
            "[\"1 Mbit/s\", \"2 Mbit/s\"]",
            "the trace already says when bytes may leave",
        ),
        (
            &format!("{TRACE}\nfade = {{ profile = [[\"0 s\", \"5 dB\"]], acm = {{ clear = \"12 dB\" }} }}"),
            "`acm` and a mahimahi trace exclude each other",
            "{ profile = [[\"0 s\", \"5 dB\"]], acm = { clear = \"12 dB\" } }",
            "the trace already says when bytes may leave",
        ),
    ]);
    loads(&bottleneck(&format!("{TRACE}\n{SLOTS}")), &[]);
}

#[test]
fn a_timeline_that_sets_what_is_set_all_the_time() {
    let entry = |lines: &str, change: &str| {
        format!("{}\n[[timeline]]\nat = \"5 s\"\nlink = \"bottleneck\"\n{change}", bottleneck(lines))
    };
    let rate = "rate = \"2 Mbit/s\"";
    for (lines, change, message, underlined, label) in [
        (TRACE, rate, "`rate` has no effect on `bottleneck`", "\"2 Mbit/s\"", "its `capacity` says the rate"),
        (
            "orbit = { slots = { delay = [\"10 ms\", \"30 ms\"], rate = [\"1 Mbit/s\", \"3 Mbit/s\"] } }",
            rate,
            "`rate` has no effect on `bottleneck`",
            "\"2 Mbit/s\"",
            "the slots of its orbit say the rate",
        ),
        (
            SLOTS,
            "delay = \"9 ms\"",
            "`delay` has no effect on `bottleneck`",
            "\"9 ms\"",
            "the slots of its orbit say the delay",
        ),
    ] {
        points_at(&entry(lines, change), message, underlined, label);
    }
    loads(&entry(SLOTS, rate), &[]);
    loads(&entry(TRACE, "delay = \"9 ms\""), &[]);
}

#[test]
fn a_station_with_two_weathers_and_a_pair_with_two_schedules() {
    let both = |there: &str, back: &str| {
        edit(&bottleneck(there), "access = {", &format!("return = {{ {back} }}\naccess = {{"))
    };
    let rain = |sigma: &str| {
        format!(
            "fade = {{ rain = {{ station = \"vsat\", sigma = {sigma}, scale = {sigma} }}, coding = \"uncoded\", clear = \"14 dB\" }}"
        )
    };
    points_at(
        &both(&rain("1.6"), &rain("1.7")),
        "`bottleneck` and `bottleneck-return` share station `vsat` and describe it differently",
        "[dumbbell]",
        "m, sigma, p0, beta and step must be the same, or the stations have two names",
    );
    let slots = |period: &str| {
        format!(
            "orbit = {{ slots = {{ delay = [\"10 ms\", \"30 ms\"], pair = \"sat\", period = \"{period}\" }} }}"
        )
    };
    points_at(
        &both(&slots("15 s"), &slots("10 s")),
        "`bottleneck` and `bottleneck-return` share pair `sat` and describe it differently",
        "[dumbbell]",
        "period and offset must be the same, or the pairs have two names",
    );
    loads(&both(&slots("15 s"), &slots("15 s")), &[]);
}

#[test]
fn a_side_channel_counts_whole_seconds() {
    let with = |every: &str| {
        format!(
            "{DUMBBELL}\n[[instruments]]\nname = \"bert\"\nkind = \"side-channel\"\nlink = \"bottleneck\"\nevery = \"{every}\"\n"
        )
    };
    points_at(
        &with("1.5 s"),
        "`every` is not a whole number of seconds",
        "\"1.5 s\"",
        "a side channel counts errored seconds",
    );
    loads(&with("15 s"), &[]);
}
