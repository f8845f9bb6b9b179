//! Formats the results of a run as text.

use crate::bed::Receiver;
use crate::cell::RunConfig;
use serde_json::Value;

/// Returns the results as text.
pub fn lines(cell: &RunConfig, figures: &Value) -> String {
    let flows = elements(&figures["flows"]).enumerate();
    let mut lines: Vec<String> = flows.flat_map(|(i, figures)| flow(cell, i, figures)).collect();
    let each = |key: &str| list(elements(&figures["intervals"]).map(|i| &i[key]));
    lines.push(format!("hop {}", figures["hop"]));
    let [packets, lost, full] = ["packets", "lost", "full"].map(each);
    lines.push(format!("  each 10 s: packets {packets}; lost {lost}; full {full}"));
    if cell.flows.iter().any(|f| f.receiver != Receiver::Modern) {
        let (bound, from, tens) = (&figures["old_bound_mbps"], cell.measured_from, each("old_bound_mbps"));
        lines.push(format!(
            "  bound of an old receiver by these losses: {bound} Mbit/s from {from} s; each 10 s: {tens}"
        ));
    }
    if cell.udp > 0.0 {
        lines.push(format!("udp {}", figures["udp"]));
    }
    lines.push(format!("watchdog {}", figures["watchdog"]));
    if !figures["gateway"].is_null() {
        lines.push(format!("gateway {}", figures["gateway"]["flows"]));
    }
    lines.join("\n") + "\n"
}

fn elements(array: &Value) -> impl Iterator<Item = &Value> {
    array.as_array().into_iter().flatten()
}

fn list<'a>(values: impl Iterator<Item = &'a Value>) -> String {
    values.map(Value::to_string).collect::<Vec<_>>().join(" ")
}

fn flow(cell: &RunConfig, i: usize, flow: &Value) -> Vec<String> {
    if flow["out_of_order"].is_null() {
        return vec![format!("flow {i}: FAILED {}", flow["failed"])];
    }
    let keys = ["scheme", "receiver", "goodput_mbps", "read_mbps", "took_s"];
    let [scheme, receiver, goodput, read, took] = keys.map(|key| &flow[key]);
    let (from, tens) = (cell.measured_from, list(elements(&flow["goodput_10s_mbps"])));
    let mut lines = vec![format!(
        "flow {i} {scheme} {receiver}: {goodput} Mbit/s from {from} s (read {read}); each 10 s: {tens}"
    )];
    if !took.is_null() {
        lines.push(format!("  took {took} s from the first data segment to the last byte acknowledged"));
    }
    let keys = ["first_transmissions", "out_of_order", "sent_again", "sent_again_share", "lost"];
    let [first, disorder, again, share, lost] = keys.map(|key| &flow[key]);
    lines.push(format!(
        "  {first} first transmissions, {disorder} out of order; {again} sent again ({share} of what was new, from {from} s); {lost} lost"
    ));
    for (name, what) in [
        ("first", "first repairs"),
        ("later", "later repairs"),
        ("from_loss", "loss to repair beyond RTT and queue"),
    ] {
        let keys = ["within_50_ms", "n", "median_s", "p999_s", "max_s"];
        let [within, n, median, p999, longest] = keys.map(|key| &flow["repairs"][name][key]);
        lines.push(format!(
            "  {what}: {within} of {n} within 50 ms, median {median} s, 99.9 % {p999} s, longest {longest} s"
        ));
    }
    let [never, worst] = ["never", "worst_shown_at_s"].map(|key| &flow["repairs"][key]);
    lines
        .push(format!("  {never} shown and never repaired; the slowest first repair was shown at {worst} s"));
    let keys = ["retransmits", "longest_spell", "retransmits_from_10s", "longest_spell_from_10s", "timeouts"];
    let [all, longest, steady, spell, timeouts] = keys.map(|key| &flow["sender"][key]);
    lines.push(format!(
        "  the sender resent {all} (longest spell {longest}), from 10 s on {steady} (spell {spell}); {timeouts} timeouts"
    ));
    lines
}
