//! Describes a change in words.
//!
//! An outage hides a link's loss probability: the text shows its value without the outage.

use super::link_change::LinkChange;
use super::messages::LinkValues;
use bentpipe_base::{Duration, Probability};
use bentpipe_link::{Capacity, LinkSnapshot, UserChanges};

/// The state of a direction at one moment, and what a user has changed on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observation {
    pub(super) snapshot: LinkSnapshot,
    pub(super) user: UserChanges,
}

/// Returns a description of the change.
pub(super) fn describe(act: &LinkChange, before: &Observation, after: &Observation) -> String {
    let said = match act {
        LinkChange::OutageNs(ns) => return outage(Duration(*ns), before, after),
        LinkChange::Set(values) => set(values, before, after),
        LinkChange::Reset => format!("reset: {}", differences(before, after)),
    };
    said + &outage_text(after).map_or_else(String::new, |why| format!("; {why}"))
}

/// Describes an outage. An outage never shortens one that is already running.
fn outage(length: Duration, before: &Observation, after: &Observation) -> String {
    match after.user.outage_until {
        Some(end) if before.user.outage_until == Some(end) => {
            format!("nothing gets through until {end}: an earlier outage lasts longer")
        }
        Some(end) => format!("nothing gets through for {length}, until {end}"),
        None => "the outage is over already".to_owned(),
    }
}

fn set(values: &LinkValues, before: &Observation, after: &Observation) -> String {
    let (was, now) = (&before.snapshot, &after.snapshot);
    let mut list = Vec::new();
    let mut add = |name: &str, now: String, was: String| list.push(format!("{name} {now} (was {was})"));
    if values.rate_bps.is_some() {
        add("rate", rate(now), rate(was));
    }
    if values.delay_ns.is_some() {
        add("delay", now.one_way.to_string(), was.one_way.to_string());
    }
    if values.buffer_packets.is_some() || values.buffer_bytes.is_some() {
        add("buffer", limit(now), limit(was));
    }
    if let Some(loss) = values.loss {
        add("loss", chance(loss), chance(was.packet_loss));
    }
    if let Some(ber) = values.ber {
        add("bit error rate", chance(ber), chance(was.ber));
    }
    list.extend(values.up.map(|up| if up { "up" } else { "down" }.to_owned()));
    list.extend(ended(before).filter(|_| values.up == Some(true)));
    list.join(", ")
}

/// Lists the differences, or says that there are none.
fn differences(before: &Observation, after: &Observation) -> String {
    let (was, now) = (&before.snapshot, &after.snapshot);
    let all = [
        (rate(was), rate(now), "rate"),
        (was.one_way.to_string(), now.one_way.to_string(), "delay"),
        (limit(was), limit(now), "buffer"),
        (chance(was.packet_loss), chance(now.packet_loss), "loss"),
        (chance(was.ber), chance(now.ber), "bit error rate"),
    ];
    let changed = all.into_iter().filter(|(was, now, _)| was != now);
    let mut list: Vec<String> = changed.map(|(was, now, name)| format!("{name} {now} (was {was})")).collect();
    list.extend(
        before.user.change.up.map(|up| format!("not {} any more", if up { "held up" } else { "down" })),
    );
    list.extend(ended(before));
    if list.is_empty() { "nothing had been changed".to_owned() } else { list.join(", ") }
}

/// Text for an outage that a user ends early by `up` or `reset`.
fn ended(before: &Observation) -> Option<String> {
    before.user.outage_until.map(|end| format!("the outage until {end} is over"))
}

/// Text for a link that is down, and until when.
fn outage_text(seen: &Observation) -> Option<String> {
    if !seen.snapshot.dark {
        return None;
    }
    Some(match (seen.user.change.up, seen.user.outage_until) {
        (Some(false), None) => "nothing gets through".to_owned(),
        (Some(false), Some(end)) => format!("nothing gets through: it is down, and in an outage until {end}"),
        (_, Some(end)) => format!("nothing gets through until {end}"),
        (_, None) => "nothing gets through: an outage of the link itself".to_owned(),
    })
}

fn rate(look: &LinkSnapshot) -> String {
    look.rate.map_or("nothing".to_owned(), |r| r.to_string())
}

fn limit(look: &LinkSnapshot) -> String {
    match look.queue_limit {
        Capacity::Packets(n) => format!("{n} packets"),
        Capacity::Bytes(n) => n.to_string(),
    }
}

fn chance(p: f64) -> String {
    // at most four significant digits
    let rounded = format!("{p:.3e}").parse().ok().and_then(Probability::new);
    rounded.map_or_else(|| p.to_string(), |p| p.to_string())
}
