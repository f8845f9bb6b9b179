//! What was changed, in words.

use super::act::Act;
use bentpipe_base::{Duration, Instant, Probability};
use bentpipe_link::{Capacity, Look};
use core::fmt::Write as _;

/// What was done, in words.
pub(super) fn words(act: &Act, before: &Look, after: &Look, at: Instant) -> String {
    let values = match act {
        Act::OutageNs(ns) => {
            let length = Duration(*ns);
            return format!("nothing gets through for {length}, until {}", at + length);
        }
        Act::Reset => return format!("as the link has it: {}", differences(before, after)),
        Act::Set(values) => values,
    };
    let mut out = String::new();
    let mut add = |name: &str, now: String, was: String| {
        let comma = if out.is_empty() { "" } else { ", " };
        let _ = write!(out, "{comma}{name} {now} (was {was})");
    };
    if values.rate_bps.is_some() {
        add("rate", rate(after), rate(before));
    }
    if values.delay_ns.is_some() {
        add("delay", after.one_way.to_string(), before.one_way.to_string());
    }
    if values.buffer_packets.is_some() || values.buffer_bytes.is_some() {
        add("buffer", limit(after), limit(before));
    }
    if let Some(loss) = values.loss {
        add("loss", chance(loss), chance(before.packet_loss));
    }
    if let Some(ber) = values.ber {
        add("bit error rate", chance(ber), chance(before.ber));
    }
    if let Some(up) = values.up {
        let comma = if out.is_empty() { "" } else { ", " };
        let _ = write!(out, "{comma}{}", if up { "up" } else { "down: nothing gets through" });
    }
    out
}

/// What is different, or that nothing is.
fn differences(before: &Look, after: &Look) -> String {
    let all = [
        (rate(before), rate(after), "rate"),
        (before.one_way.to_string(), after.one_way.to_string(), "delay"),
        (limit(before), limit(after), "buffer"),
        (chance(before.packet_loss), chance(after.packet_loss), "loss"),
        (chance(before.ber), chance(after.ber), "bit error rate"),
    ];
    let changed = all.into_iter().filter(|(was, now, _)| was != now);
    let list: Vec<String> = changed.map(|(was, now, name)| format!("{name} {now} (was {was})")).collect();
    if list.is_empty() { "nothing was different".to_owned() } else { list.join(", ") }
}

fn rate(look: &Look) -> String {
    look.rate.map_or("nothing".to_owned(), |r| r.to_string())
}

fn limit(look: &Look) -> String {
    match look.queue_limit {
        Capacity::Packets(n) => format!("{n} packets"),
        Capacity::Bytes(n) => n.to_string(),
    }
}

fn chance(p: f64) -> String {
    // no more digits than one would write
    let rounded = format!("{p:.3e}").parse().ok().and_then(Probability::new);
    rounded.map_or_else(|| p.to_string(), |p| p.to_string())
}
