//! Resolves `[[timeline]]`: changes of links during the run.

use super::direction::bit_errors_beside_gaps;
use super::names::Directions;
use crate::diagnostic::{Fault, Result, bail};
use crate::form::At;
use crate::keys::TimelineKeys;
use crate::source::Span;
use crate::types::{Direction, DirectionSpec, LinkSpec};
use bentpipe_base::{Duration, Instant};
use bentpipe_link::{Change, LossDraw, Orbit};
use std::collections::BTreeMap;
use std::sync::Arc;

const MAX_CHANGES: usize = 20_000;

/// Periods in which the timeline takes a direction down: start, end, position in the file. A change of `up`
/// is a period without length.
type Outages = BTreeMap<Direction, Vec<(Instant, Instant, Span)>>;

pub(super) fn apply(timeline: &[At<TimelineKeys>], links: &mut [LinkSpec], duration: Duration) -> Result<()> {
    let names = Directions::new(links);
    let found: Vec<_> = timeline.iter().map(|entry| names.find(&entry.value.link)).collect();
    let mut outages = Outages::new();
    let mut count = 0;
    for (entry, direction) in timeline.iter().zip(found) {
        let keys = &entry.value;
        if keys.at.value.0 >= duration.0 {
            bail!(keys.at.span, "this change comes after the run", "the run lasts {duration}");
        }
        let direction = direction?;
        let (change, back) = change(entry)?;
        has_effect(entry, links[direction.link].direction(direction.backward))?;
        let changes = changes_of(links, direction);
        changes.push((keys.at.value, change));
        count += 1;
        if let Some(back) = back {
            outages.entry(direction).or_default().push((keys.at.value, back, entry.span));
            if back.0 < duration.0 {
                changes.push((back, Change { up: Some(true), ..Change::default() }));
                count += 1;
            }
        } else if change.up.is_some() {
            outages.entry(direction).or_default().push((keys.at.value, keys.at.value, entry.span));
        }
        if count > MAX_CHANGES {
            let label = format!("the limit is {MAX_CHANGES}, and an outage is two");
            return Err(Fault::new(entry.span, "there are too many changes", label));
        }
    }
    for side in links.iter_mut().flat_map(|link| [&mut link.forward, &mut link.backward]) {
        if side.dynamics.as_ref().is_some_and(|dynamics| !dynamics.changes.is_empty())
            && let Some(dynamics) = &mut Arc::make_mut(side).dynamics
        {
            // stable: of two changes at the same time, the later one in the file wins
            dynamics.changes.sort_by_key(|(at, _)| *at);
        }
    }
    outages.into_values().try_for_each(check_overlap)
}

fn changes_of(links: &mut [LinkSpec], direction: Direction) -> &mut Vec<(Instant, Change)> {
    let link = &mut links[direction.link];
    let side = if direction.backward { &mut link.backward } else { &mut link.forward };
    &mut Arc::make_mut(side).dynamics.get_or_insert_default().changes
}

/// Returns an error for a property that other dynamics of the direction override.
fn has_effect(entry: &At<TimelineKeys>, side: &DirectionSpec) -> Result<()> {
    let keys = &entry.value;
    if let Some(ber) = keys.ber.filter(|ber| side.loss_draw == LossDraw::Gap && !ber.value.is_zero()) {
        return Err(bit_errors_beside_gaps(ber.span));
    }
    let Some(dynamics) = &side.dynamics else { return Ok(()) };
    let slots = match &dynamics.orbit {
        Some(Orbit::Slots(slots)) => Some(slots),
        _ => None,
    };
    let slots_set_rate = slots.is_some_and(|slots| slots.rate.is_some());
    for (key, given, is_overridden, why) in [
        ("rate", keys.rate.map(|v| v.span), dynamics.capacity.is_some(), "its `capacity` says the rate"),
        ("rate", keys.rate.map(|v| v.span), slots_set_rate, "the slots of its orbit say the rate"),
        ("delay", keys.delay.map(|v| v.span), slots.is_some(), "the slots of its orbit say the delay"),
        ("delay", keys.delay.map(|v| v.span), dynamics.delay.is_some(), "its own `delay` changes over time"),
        ("loss", keys.loss.map(|v| v.span), dynamics.loss.is_some(), "its own `loss` changes over time"),
    ] {
        if let Some(span) = given.filter(|_| is_overridden) {
            return Err(Fault::new(span, format!("`{key}` has no effect on `{}`", keys.link.value.0), why));
        }
    }
    Ok(())
}

/// Returns the change of an entry, and the end of its outage if it has one.
fn change(entry: &At<TimelineKeys>) -> Result<(Change, Option<Instant>)> {
    let keys = &entry.value;
    if let (Some(up), Some(_)) = (keys.up, keys.outage) {
        let label = "an outage takes the link down and brings it up again";
        return Err(Fault::new(up.span, "`up` and `outage` exclude each other", label));
    }
    let outage = keys.outage.map(|outage| outage.positive("outage")).transpose()?;
    let change = Change {
        rate: keys.rate.map(|v| v.value),
        delay: keys.delay.map(|v| v.value),
        buffer: keys.buffer.map(|v| v.value),
        loss: keys.loss.map(|v| v.value),
        ber: keys.ber.map(|v| v.value),
        up: outage.map(|_| false).or(keys.up.map(|v| v.value)),
    };
    if change == Change::default() {
        bail!(entry.span, "this entry changes nothing", "give rate, delay, buffer, loss, ber, outage or up");
    }
    Ok((change, outage.map(|length| keys.at.value + length)))
}

/// Returns an error for overlapping outages: the link would come up at the end of the first.
fn check_overlap(mut outages: Vec<(Instant, Instant, Span)>) -> Result<()> {
    outages.sort_by_key(|(from, ..)| *from);
    for two in outages.windows(2) {
        let ((from, to, _), (next, _, span)) = (two[0], two[1]);
        if next < to || (next == from && to > from) {
            let label = format!("one lasts from {} to {}", Duration(from.0), Duration(to.0));
            return Err(Fault::new(span, "this falls into an outage", label));
        }
    }
    Ok(())
}
