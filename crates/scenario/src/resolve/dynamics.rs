//! Resolves what changes on a direction: capacity, orbit, bursts, outages, access. `fade` resolves fades.

use super::trace_files::{Steps, TraceFiles};
use super::{exactly_one, fade, series};
use crate::diagnostic::{Fault, Result, bail, fault};
use crate::form::{At, OrTable};
use crate::keys::{
    BurstKeys, CapacityKeys, ChannelKeys, DamaKeys, HandoverKeys, OrbitKeys, OutageKeys, PassKeys, SlotsKeys,
};
use crate::lists::Pairs;
use bentpipe_base::{Duration, Instant, Probability, Size};
use bentpipe_link::{
    Access, CapacityTrace, Dama, Dynamics, Fade, FadeEffect, GilbertElliott, Handover, IdleRelease, Orbit,
    Outages, Pass, SHORTEST_STEP, Slots,
};
use std::sync::Arc;

/// Bytes that a sending opportunity of a mahimahi trace carries: the MTU of mahimahi.
const MAHIMAHI_MTU: Size = Size(1504);
/// Range of `altitude` in km.
const ALTITUDES: (f64, f64) = (160.0, 100_000.0);
/// Range of `min_elevation` in degrees.
const ELEVATIONS: (f64, f64) = (0.0, 85.0);

/// Resolves the dynamics of a direction with one-way delay `delay`; `None` if nothing changes.
pub(super) fn resolve(
    keys: &ChannelKeys,
    delay: Duration,
    files: &TraceFiles<'_>,
) -> Result<Option<Box<Dynamics>>> {
    let dynamics = Dynamics {
        changes: Vec::new(),
        capacity: keys.capacity.as_ref().map(|c| capacity(c, files)).transpose()?,
        delay: None,
        loss: match keys.loss.as_ref().map(|l| (&l.value, l.span)) {
            Some((OrTable::Table(loss), span)) => Some(series::loss(loss, span, files)?),
            _ => None,
        },
        orbit: keys.orbit.as_ref().map(orbit).transpose()?,
        fade: keys.fade.as_ref().map(fade::resolve).transpose()?,
        bursts: keys.bursts.as_ref().map(bursts).transpose()?,
        outages: keys.outages.as_ref().map(outages).transpose()?,
        access: access(keys, delay)?,
    };
    if let (Some(CapacityTrace::Opportunities { .. }), Some(dama)) = (&dynamics.capacity, &keys.dama) {
        let label = "the trace already says when a packet may begin";
        return Err(Fault::new(dama.span, "`dama` and a mahimahi trace exclude each other", label));
    }
    check_mahimahi_conflicts(keys, &dynamics)?;
    Ok((!dynamics.is_constant()).then(|| Box::new(dynamics)))
}

/// Returns an error for a mahimahi trace together with another source of rates.
fn check_mahimahi_conflicts(keys: &ChannelKeys, dynamics: &Dynamics) -> Result<()> {
    if !matches!(dynamics.capacity, Some(CapacityTrace::Opportunities { .. })) {
        return Ok(());
    }
    let slots = keys.orbit.as_ref().and_then(|o| o.value.slots.as_ref());
    let slots = slots.and_then(|s| s.value.rate.as_ref().map(|r| r.span));
    let acm = |f: &Fade| matches!(f.effect, FadeEffect::Acm(_));
    let acm = keys.fade.as_ref().filter(|_| dynamics.fade.as_ref().is_some_and(acm)).map(|f| f.span);
    for (what, span) in [("the rate of slots", slots), ("`acm`", acm)] {
        if let Some(span) = span {
            let message = format!("{what} and a mahimahi trace exclude each other");
            return Err(Fault::new(span, message, "the trace already says when bytes may leave"));
        }
    }
    Ok(())
}

/// Returns an error for times shorter than [`SHORTEST_STEP`].
pub(super) fn interval(key: &str, given: At<Duration>) -> Result<Duration> {
    given.at_least(key, SHORTEST_STEP, "short")
}

pub(super) fn interval_or(key: &str, given: Option<At<Duration>>, default: Duration) -> Result<Duration> {
    given.map_or(Ok(default), |given| interval(key, given))
}

/// Returns an error unless each time is later than the one before.
pub(super) fn check_times_increase<T>(key: &str, pairs: &Pairs<Instant, T>) -> Result<()> {
    for two in pairs.0.windows(2) {
        let (before, after) = (two[0].0, two[1].0);
        if before.value >= after.value {
            let label = format!("the one before is at {}", Duration(before.value.0));
            return Err(Fault::new(after.span, format!("`{key}` goes back in time"), label));
        }
    }
    Ok(())
}

fn capacity(given: &At<CapacityKeys>, files: &TraceFiles<'_>) -> Result<CapacityTrace> {
    let keys = &given.value;
    let steps = |points: Steps| {
        let repeat = keys.repeat.map(|r| repeat(r, &points)).transpose()?;
        Ok(CapacityTrace::Steps { points, repeat })
    };
    let opportunities = |at: Arc<[Duration]>| match (keys.repeat, at.last()) {
        (None, Some(&period)) => Ok(CapacityTrace::Opportunities { at, period, size: MAHIMAHI_MTU }),
        (Some(repeat), _) => {
            let label = "a mahimahi trace starts over at its last instant";
            Err(Fault::new(repeat.span, "`repeat` goes with `steps` and `file`", label))
        }
        (None, None) => Err(Fault::new(given.span, "the trace is empty", "")),
    };
    match (&keys.steps, &keys.file, &keys.mahimahi, &keys.opportunities_ms) {
        (Some(list), None, None, None) => {
            check_times_increase("steps", &list.value)?;
            steps(list.value.0.iter().map(|(at, rate)| (at.value, rate.value)).collect())
        }
        (None, Some(file), None, None) => steps(files.steps(file)?),
        (None, None, Some(file), None) => opportunities(files.trace(file)?),
        (None, None, None, Some(list)) => opportunities(Arc::clone(&list.value.0)),
        _ => Err(exactly_one(given.span, "capacity", "steps, file, mahimahi, opportunities_ms")),
    }
}

/// Checks the time after which `points` repeat.
pub(super) fn repeat<T>(given: At<Duration>, points: &[(Instant, T)]) -> Result<Duration> {
    let last = points.last().map_or(Duration::ZERO, |p| Duration(p.0.0));
    if given.value > last && given.value >= SHORTEST_STEP {
        return Ok(given.value);
    }
    Err(fault!(given.span, "`repeat` is not later than the last step", "the last step is at {last}"))
}

fn orbit(given: &At<OrbitKeys>) -> Result<Orbit> {
    match (&given.value.pass, &given.value.slots) {
        (Some(keys), None) => pass(&keys.value).map(Orbit::Pass),
        (None, Some(keys)) => slots(&keys.value).map(Orbit::Slots),
        _ => Err(exactly_one(given.span, "orbit", "pass, slots")),
    }
}

fn pass(keys: &PassKeys) -> Result<Pass> {
    let elevation = keys.min_elevation.map(|e| e.map(|degrees| degrees.0));
    Ok(Pass {
        altitude_km: keys.altitude.map(|km| km.0).within("altitude", ALTITUDES, " km")?,
        min_elevation_deg: elevation.map_or(Ok(10.0), |e| e.within("min_elevation", ELEVATIONS, " deg"))?,
        every: interval_or("every", keys.every, Duration::from_secs(1))?,
        pace: 1.0,
    })
}

fn slots(keys: &SlotsKeys) -> Result<Slots> {
    let period = interval_or("period", keys.period, Duration::from_secs(15))?;
    if let Some(offset) = keys.offset.filter(|o| o.value >= period) {
        bail!(offset.span, "`offset` is too long", "it is less than the period of {period}");
    }
    Ok(Slots {
        period,
        offset: keys.offset.map_or(Duration::ZERO, |o| o.value),
        delay: (keys.delay.value.min, keys.delay.value.max),
        // an empty name is replaced by the link's name later
        pair: keys.pair.as_ref().map_or_else(String::new, |p| p.value.0.clone()),
        jitter: keys.jitter.map_or(Duration::ZERO, |j| j.value),
        jitter_step: interval_or("jitter_step", keys.jitter_step, Duration::from_millis(10))?,
        rate: keys.rate.map(|r| (r.value.min, r.value.max)),
        handover: keys.handover.as_ref().map_or(Ok(Handover::Seamless), |h| handover(h, period))?,
        reorder: keys.reorder.is_some_and(|r| r.value),
    })
}

fn handover(given: &At<OrTable<Handover, HandoverKeys>>, period: Duration) -> Result<Handover> {
    let OrTable::Table(keys) = &given.value else { return Ok(Handover::Seamless) };
    let HandoverKeys { outage, loss, time } = **keys;
    let (handover, longest, span) = match (outage, loss, time) {
        (Some(outage), None, None) => {
            let most = outage.value.max;
            (Handover::Outage(outage.value.min, most), most, outage.span)
        }
        (None, Some(loss), Some(time)) => (Handover::Loss(loss.value, time.value), time.value, time.span),
        _ => bail!(given.span, "this is not a handover", "write either `outage`, or `loss` and `time`"),
    };
    if longest >= period {
        bail!(span, "the handover lasts a whole slot", "a slot lasts {period}");
    }
    Ok(handover)
}

fn bursts(given: &At<BurstKeys>) -> Result<GilbertElliott> {
    let keys = &given.value;
    match (keys.good, keys.bad, keys.loss, keys.burst) {
        (Some(good), Some(bad), None, None) => Ok(GilbertElliott {
            good: interval("good", good)?,
            bad: interval("bad", bad)?,
            loss_good: keys.loss_good.map_or(Probability::ZERO, |p| p.value),
            loss_bad: keys.loss_bad.map_or(Probability::ONE, |p| p.value),
        }),
        (None, None, Some(loss), Some(burst)) => {
            if let Some(wrong) = keys.loss_good.or(keys.loss_bad) {
                let label = "with `loss` and `burst` all loss is in bad spells";
                return Err(Fault::new(wrong.span, "this goes with `good` and `bad`", label));
            }
            from_mean(loss, burst)
        }
        _ => {
            bail!(given.span, "these are not bursts", "write either `good` and `bad`, or `loss` and `burst`");
        }
    }
}

/// Resolves bursts of mean duration B with mean loss probability P. The mean good duration is B (1 - P) / P,
/// see `gilbert_elliott.rs`.
fn from_mean(loss: At<Probability>, burst: At<Duration>) -> Result<GilbertElliott> {
    let bad = interval("burst", burst)?;
    let p = loss.map(Probability::get).fraction("loss")?;
    let good = (bad.0 as f64 * (1.0 - p) / p).round();
    if good < SHORTEST_STEP.0 as f64 || good > crate::quantity::YEAR as f64 {
        let label = format!("good spells of {:.3e} s are not between {SHORTEST_STEP} and a year", good / 1e9);
        return Err(Fault::new(loss.span, "`loss` and `burst` do not fit together", label));
    }
    let (loss_good, loss_bad) = (Probability::ZERO, Probability::ONE);
    Ok(GilbertElliott { good: Duration(good as u64), bad, loss_good, loss_bad })
}

fn outages(given: &At<OutageKeys>) -> Result<Outages> {
    let keys = &given.value;
    Ok(Outages {
        shortest: interval("length", keys.length.map(|length| length.min))?,
        longest: keys.length.value.max,
        every: interval("every", keys.every)?,
        random: keys.random.is_none_or(|r| r.value),
    })
}

fn access(keys: &ChannelKeys, delay: Duration) -> Result<Option<Access>> {
    match (&keys.dama, &keys.idle_release) {
        (None, None) => Ok(None),
        (Some(given), None) => dama(&given.value, delay).map(|d| Some(Access::Dama(d))),
        (None, Some(given)) => {
            let idle = interval("idle", given.value.idle)?;
            Ok(Some(Access::IdleRelease(IdleRelease { idle, setup: given.value.setup.value })))
        }
        (Some(_), Some(second)) => {
            let label = "a direction has one kind of access";
            Err(Fault::new(second.span, "`dama` and `idle_release` exclude each other", label))
        }
    }
}

fn dama(keys: &DamaKeys, delay: Duration) -> Result<Dama> {
    let frame = interval_or("frame", keys.frame, Duration::from_micros(26_500))?;
    let latency = keys.latency.map_or(delay * 2 + frame * 2, |l| l.value);
    Ok(Dama { frame, latency, free: keys.free.map(|f| f.value) })
}
