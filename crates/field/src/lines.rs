//! Formats the results of a run as text.

use crate::bed::Receiver;
use crate::cell::Cell;
use serde_json::Value;
use std::fmt::Write as _;

/// All results as text.
pub fn lines(cell: &Cell, figures: &Value) -> String {
    let mut text = String::new();
    for (i, figures) in figures["flows"].as_array().into_iter().flatten().enumerate() {
        flow(&mut text, cell, i, figures);
    }
    let each = |key: &str| {
        let all = figures["intervals"].as_array().into_iter().flatten();
        all.map(|i| i[key].to_string()).collect::<Vec<_>>().join(" ")
    };
    let _ = writeln!(text, "hop {}", figures["hop"]);
    let _ = writeln!(
        text,
        "  each 10 s: packets {}; lost {}; full {}",
        each("packets"),
        each("lost"),
        each("full")
    );
    if cell.flows.iter().any(|f| f.receiver != Receiver::Modern) {
        let _ = writeln!(
            text,
            "  bound of an old receiver by these losses: {} Mbit/s from {} s; each 10 s: {}",
            figures["old_bound_mbps"],
            cell.from,
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

fn list(values: &Value) -> String {
    values.as_array().into_iter().flatten().map(Value::to_string).collect::<Vec<_>>().join(" ")
}

fn flow(text: &mut String, cell: &Cell, i: usize, flow: &Value) {
    if flow["out_of_order"].is_null() {
        let _ = writeln!(text, "flow {i}: FAILED {}", flow["failed"]);
        return;
    }
    let _ = writeln!(
        text,
        "flow {i} {} {}: {} Mbit/s from {} s (read {}); each 10 s: {}",
        flow["scheme"],
        flow["receiver"],
        flow["goodput_mbps"],
        cell.from,
        flow["read_mbps"],
        list(&flow["goodput_10s_mbps"])
    );
    if !flow["took_s"].is_null() {
        let took = &flow["took_s"];
        let _ = writeln!(text, "  took {took} s from the first data segment to the last byte acknowledged");
    }
    let _ = writeln!(
        text,
        "  {} first transmissions, {} out of order; {} sent again ({} of what was new, from {} s); {} lost",
        flow["first_transmissions"],
        flow["out_of_order"],
        flow["sent_again"],
        flow["sent_again_share"],
        cell.from,
        flow["lost"]
    );
    repairs(text, &flow["repairs"]);
    let s = &flow["sender"];
    let _ = writeln!(
        text,
        "  the sender resent {} (longest spell {}), from 10 s on {} (spell {}); {} timeouts",
        s["retransmits"],
        s["longest_spell"],
        s["retransmits_from_10s"],
        s["longest_spell_from_10s"],
        s["timeouts"]
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
