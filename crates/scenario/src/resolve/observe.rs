//! Resolves `[[instruments]]`, `[[captures]]` and `[[references]]`.

use super::dynamics::interval;
use super::names::Directions;
use super::{check_order, unique_name};
use crate::amount::parse_amount;
use crate::diagnostic::{Fault, Result, bail};
use crate::form::At;
use crate::keys::{CaptureKeys, InstrumentKeys, InstrumentWord, ReferenceKeys};
use crate::types::{CaptureSpec, FlowSpec, InstrumentKind, InstrumentSpec, ReferenceSpec};
use bentpipe_base::{Duration, Instant, Rate, Size};
use std::collections::BTreeSet;

const MAX_INSTRUMENTS: usize = 1000;
/// Maximum number of intervals, summed over all instruments.
const MAX_INTERVALS: u64 = 2_000_000;
/// Default rate of a side channel, as in the paper.
const SIDE_CHANNEL_RATE: Rate = Rate::from_bps(256_000).expect("more than zero");
const SECOND: Duration = Duration::from_secs(1);
const MAX_CAPTURES: usize = 1000;
const MAX_REFERENCES: usize = 1000;
/// Minimum number of bytes recorded of a packet: enough for its headers.
const LEAST_SNAP: Size = Size(64);
/// Maximum number of bytes recorded of a packet: packets are never longer.
const MOST_SNAP: Size = Size(65_535);
/// Minimum size of a capture file: enough for the file header and some packets.
const LEAST_LIMIT: Size = Size(4096);
const MOST_LIMIT: Size = Size(1 << 40);
const LIMIT: Size = Size(64 << 20);

pub(super) fn instruments(
    given: &[At<InstrumentKeys>],
    names: &Directions<'_>,
    flows: &[FlowSpec],
    duration: Duration,
) -> Result<Vec<InstrumentSpec>> {
    let mut all: Vec<InstrumentSpec> = Vec::new();
    let mut taken = BTreeSet::new();
    let mut intervals = 0_u64;
    for instrument in given {
        let keys = &instrument.value;
        let name = unique_name(&mut taken, &keys.name, instrument.span, ("instruments", MAX_INSTRUMENTS))?;
        let every = interval("every", keys.every)?;
        if keys.kind.value == InstrumentWord::SideChannel && !every.0.is_multiple_of(SECOND.0) {
            let label = "a side channel counts errored seconds";
            return Err(Fault::new(keys.every.span, "`every` is not a whole number of seconds", label));
        }
        intervals = intervals.saturating_add(duration.0.div_ceil(every.0));
        if intervals > MAX_INTERVALS {
            let label = format!("all instruments together have at most {MAX_INTERVALS}");
            return Err(Fault::new(keys.every.span, "there are too many intervals", label));
        }
        all.push(InstrumentSpec { name, link: names.find(&keys.link)?, kind: kind(keys, flows)?, every });
    }
    Ok(all)
}

fn kind(keys: &InstrumentKeys, flows: &[FlowSpec]) -> Result<InstrumentKind> {
    use InstrumentWord::{Bins, Counters, SideChannel};
    match (keys.kind.value, keys.rate, &keys.flow) {
        (SideChannel, rate, None) => {
            Ok(InstrumentKind::SideChannel { rate: rate.map_or(SIDE_CHANNEL_RATE, |r| r.value) })
        }
        (Counters, None, None) => Ok(InstrumentKind::Counters),
        (Bins, None, None) => Err(Fault::new(keys.kind.span, "bins have no `flow`", "`flow` must be given")),
        (Bins, None, Some(name)) => {
            let word = &name.value.0;
            let names = flows.iter().map(|f| &*f.name);
            let flow = names.clone().position(|name| name == word);
            let flow = flow.ok_or_else(|| Fault::unknown(name.span, "flow", word, names))?;
            Ok(InstrumentKind::Bins { flow })
        }
        (Counters | Bins, Some(rate), _) => bail!(rate.span, "only a side channel has a rate"),
        (SideChannel | Counters, _, Some(flow)) => bail!(flow.span, "only bins have a flow"),
    }
}

/// Resolves references. Metrics are not checked here: the reader of the report does that.
pub(super) fn references(given: &[At<ReferenceKeys>]) -> Result<Vec<ReferenceSpec>> {
    if let Some(one) = given.get(MAX_REFERENCES) {
        return Err(Fault::too_many(one.span, "references", MAX_REFERENCES));
    }
    let resolve = |reference: &At<ReferenceKeys>| {
        let keys = &reference.value;
        let written = keys.value.value.0.trim().to_owned();
        let value = parse_amount(&written).map_err(|why| Fault::new(keys.value.span, why, ""))?;
        Ok(ReferenceSpec {
            metric: keys.metric.value.0.clone(),
            value,
            written,
            source: keys.source.value.0.clone(),
        })
    };
    given.iter().map(resolve).collect()
}

pub(super) fn captures(
    given: &[At<CaptureKeys>],
    names: &Directions<'_>,
    duration: Duration,
) -> Result<Vec<CaptureSpec>> {
    let mut all: Vec<CaptureSpec> = Vec::new();
    for capture in given {
        let keys = &capture.value;
        let at = names.find(&keys.link)?;
        if all.len() == MAX_CAPTURES {
            return Err(Fault::too_many(capture.span, "captures", MAX_CAPTURES));
        }
        if all.iter().any(|c| c.link == at) {
            let message = format!("two captures of `{}`", keys.link.value.0);
            return Err(Fault::new(keys.link.span, message, "one records all packets of a direction"));
        }
        let (from, to) = times(capture, duration)?;
        let snap = size("snap", keys.snap, MOST_SNAP, (LEAST_SNAP, MOST_SNAP))?;
        let limit = size("limit", keys.limit, LIMIT, (LEAST_LIMIT, MOST_LIMIT))?;
        all.push(CaptureSpec { link: at, from, to, snap, limit });
    }
    Ok(all)
}

fn times(capture: &At<CaptureKeys>, duration: Duration) -> Result<(Instant, Instant)> {
    let keys = &capture.value;
    let end = Instant(duration.0);
    let from = keys.from.unwrap_or(At { value: Instant::ZERO, span: capture.span });
    let to = keys.to.unwrap_or(At { value: end, span: from.span });
    if let Some(late) = [from, to].into_iter().find(|t| t.value > end) {
        bail!(late.span, "the capture goes beyond the run", "the run lasts {duration}");
    }
    check_order("capture", from, to)?;
    Ok((from.value, to.value))
}

fn size(key: &str, given: Option<At<Size>>, default: Size, (least, most): (Size, Size)) -> Result<Size> {
    let Some(given) = given else { return Ok(default) };
    if (least..=most).contains(&given.value) {
        return Ok(given.value);
    }
    let label = format!("from {} B to {} B", least.0, most.0);
    Err(Fault::new(given.span, format!("`{key}` is out of range"), label))
}
