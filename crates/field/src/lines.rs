//! Formats the results of a run as text.

use crate::bed::Receiver;
use crate::cell::RunConfig;
use serde_json::Value;
use std::fmt::Write as _;

/// All results as text.
pub fn lines(cell: &RunConfig, figures: &Value) -> String {
    let mut text = String::new();
    for (i, figures) in figures["flows"].as_array().into_iter().flatten().enumerate() {
        flow(&mut text, cell, i, figures);
    }
    let each = |key: &str| list(figures["intervals"].as_array().into_iter().flatten().map(|i| &i[key]));
    let _ = writeln!(text, "hop {}", figures["hop"]);
    let [packets, lost, full] = ["packets", "lost", "full"].map(each);
    let _ = writeln!(text, "  each 10 s: packets {packets}; lost {lost}; full {full}");
    if cell.flows.iter().any(|f| f.receiver != Receiver::Modern) {
        let _ = writeln!(
            text,
            "  bound of an old receiver by these losses: {} Mbit/s from {} s; each 10 s: {}",
            figures["old_bound_mbps"],
            cell.measured_from,
            each("old_bound_mbps")
        );
    }
    if cell.udp > 0.0 {
        let _ = writeln!(text, "udp {}", figures["udp"]);
    }
    let _ = writeln!(text, "watchdog {}", figures["watchdog"]);
    if !figures["gateway"].is_null() {
        let _ = writeln!(text, "gateway {}", figures["gateway"]["flows"]);
    }
    text
}

fn list<'a>(values: impl Iterator<Item = &'a Value>) -> String {
    values.map(Value::to_string).collect::<Vec<_>>().join(" ")
}

fn flow(text: &mut String, cell: &RunConfig, i: usize, flow: &Value) {
    if flow["out_of_order"].is_null() {
        let _ = writeln!(text, "flow {i}: FAILED {}", flow["failed"]);
        return;
    }
    let [scheme, receiver, goodput, read] =
        ["scheme", "receiver", "goodput_mbps", "read_mbps"].map(|key| &flow[key]);
    let (from, tens) = (cell.measured_from, list(flow["goodput_10s_mbps"].as_array().into_iter().flatten()));
    let _ = writeln!(
        text,
        "flow {i} {scheme} {receiver}: {goodput} Mbit/s from {from} s (read {read}); each 10 s: {tens}"
    );
    if !flow["took_s"].is_null() {
        let took = &flow["took_s"];
        let _ = writeln!(text, "  took {took} s from the first data segment to the last byte acknowledged");
    }
    let keys = ["first_transmissions", "out_of_order", "sent_again", "sent_again_share", "lost"];
    let [first, disorder, again, share, lost] = keys.map(|key| &flow[key]);
    let _ = writeln!(
        text,
        "  {first} first transmissions, {disorder} out of order; {again} sent again ({share} of what was new, from {from} s); {lost} lost"
    );
    repairs(text, &flow["repairs"]);
    let keys = ["retransmits", "longest_spell", "retransmits_from_10s", "longest_spell_from_10s", "timeouts"];
    let [all, longest, steady, spell, timeouts] = keys.map(|key| &flow["sender"][key]);
    let _ = writeln!(
        text,
        "  the sender resent {all} (longest spell {longest}), from 10 s on {steady} (spell {spell}); {timeouts} timeouts"
    );
}

fn repairs(text: &mut String, r: &Value) {
    let rows = [
        ("first", "first repairs"),
        ("later", "later repairs"),
        ("from_loss", "loss to repair beyond RTT and queue"),
    ];
    for (name, what) in rows {
        let _ = writeln!(
            text,
            "  {what}: {} of {} within 50 ms, median {} s, 99.9 % {} s, longest {} s",
            r[name]["within_50_ms"], r[name]["n"], r[name]["median_s"], r[name]["p999_s"], r[name]["max_s"]
        );
    }
    let (never, worst) = (&r["never"], &r["worst_shown_at_s"]);
    let _ =
        writeln!(text, "  {never} shown and never repaired; the slowest first repair was shown at {worst} s");
}
