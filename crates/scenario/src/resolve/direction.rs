//! Resolves one direction of a link.

use super::dynamics;
use super::ground::TraceFiles;
use super::queue::discipline;
use super::series;
use crate::diagnostic::{Fault, Result, bail};
use crate::form::{At, OrTable};
use crate::keys::{AsymmetryKeys, ChannelKeys, DelayKeys, DirectionKeys};
use crate::source::Span;
use crate::types::DirectionSpec;
use bentpipe_base::{Duration, Probability, Rate, Size};
use bentpipe_link::{Discipline, Dynamics, FadeSource, Orbit};

/// Maximum framing; more than any link layer adds.
const MAX_FRAMING: u64 = 65_535;

/// Context in which a direction is resolved.
pub(super) struct DirectionContext<'a> {
    /// Name of the direction in errors.
    pub(super) whose: &'a str,
    pub(super) span: Span,
    /// Rate of the forward direction, while the return direction is resolved.
    pub(super) forward: Option<Rate>,
    pub(super) ground: &'a TraceFiles<'a>,
}

impl DirectionContext<'_> {
    fn missing(&self, key: &str) -> Fault {
        Fault::missing(self.span, self.whose, key)
    }

    pub(super) fn direction(&self, keys: &DirectionKeys) -> Result<DirectionSpec> {
        let (table, span) = match keys.delay.as_ref().map(|given| (&given.value, given.span)) {
            None => return self.channel(&keys.channel, None),
            Some((OrTable::Plain(delay), _)) => return self.channel(&keys.channel, Some(*delay)),
            Some((OrTable::Table(table), span)) => (table, span),
        };
        if table.satellite.is_some() || table.stations.is_some() {
            return self.channel(&keys.channel, Some(geo(table, span)?));
        }
        let series = series::delay(table, span, self.ground)?;
        let slots = keys.channel.orbit.as_ref().and_then(|o| o.value.slots.as_ref());
        if slots.is_some() {
            let label = "the slots of an orbit say the delay, too";
            return Err(Fault::new(span, "a delay over time and slots exclude each other", label));
        }
        let mut spec = self.channel(&keys.channel, Some(series::mean(&series)))?;
        spec.dynamics.get_or_insert_default().delay = Some(series);
        Ok(spec)
    }

    /// Resolves a channel with a known delay.
    pub(super) fn channel(&self, keys: &ChannelKeys, delay: Option<Duration>) -> Result<DirectionSpec> {
        check_framing(keys.framing)?;
        let rate = self.rate(keys.rate.as_ref().ok_or_else(|| self.missing("rate"))?)?;
        let slots = keys.orbit.as_ref().and_then(|o| o.value.slots.as_ref()).map(|s| s.value.delay.value);
        let delay = delay
            .or_else(|| slots.map(|range| Duration(range.least.0.midpoint(range.most.0))))
            .ok_or_else(|| self.missing("delay"))?;
        Ok(DirectionSpec {
            rate,
            delay,
            buffer: keys.buffer.ok_or_else(|| self.missing("buffer"))?.value,
            discipline: keys.discipline.as_ref().map_or_else(|| Ok(Discipline::default()), discipline)?,
            loss: match keys.loss.as_ref().map(|l| &l.value) {
                Some(OrTable::Plain(loss)) => *loss,
                Some(OrTable::Table(_)) | None => Probability::ZERO,
            },
            ber: keys.ber.map_or(Probability::ZERO, |v| v.value),
            framing: keys.framing.map_or(Size::ZERO, |v| v.value),
            dynamics: dynamics::resolve(keys, delay, self.ground)?,
        })
    }

    fn rate(&self, given: &At<OrTable<Rate, AsymmetryKeys>>) -> Result<Rate> {
        let keys = match &given.value {
            OrTable::Plain(rate) => return Ok(*rate),
            OrTable::Table(keys) => keys,
        };
        let forward = self.forward.ok_or_else(|| {
            let label = "only `backward` and `return` have a forward rate to follow from";
            Fault::new(given.span, "this rate has nothing to follow from", label)
        })?;
        asymmetric(keys, forward)
    }
}

/// Returns an error for implausible framing.
pub(super) fn check_framing(given: Option<At<Size>>) -> Result<()> {
    if let Some(guilty) = given.filter(|f| f.value.0 > MAX_FRAMING) {
        bail!(guilty.span, "`framing` is too large", "the limit is {MAX_FRAMING} B");
    }
    Ok(())
}

/// return rate = forward rate * ack / (k * data), RFC 3449 section 3.1.
fn asymmetric(keys: &AsymmetryKeys, forward: Rate) -> Result<Rate> {
    for (key, size) in [("data", keys.data), ("ack", keys.ack)] {
        if size.value.0 == 0 {
            return Err(Fault::zero(size.span, key));
        }
    }
    let k = keys.k.value;
    let bps = forward.bps() as f64 * keys.ack.value.0 as f64 / (k * keys.data.value.0 as f64);
    if k > 0.0 && (1.0..=crate::quantity::RATE.most.0 as f64).contains(&bps) {
        // within the range of a rate
        if let Some(rate) = Rate::from_bps(bps.round() as u64) {
            return Ok(rate);
        }
    }
    let label = format!("with these sizes, k leads from {forward} to {bps:.3} bit/s");
    Err(Fault::new(keys.k.span, "`k` gives no rate", label))
}

/// Delay of a hop between two stations over a geostationary satellite.
fn geo(keys: &DelayKeys, span: Span) -> Result<Duration> {
    let others = [
        ("steps", keys.steps.as_ref().map(|k| k.span)),
        ("trace", keys.trace.as_ref().map(|k| k.span)),
        ("column", keys.column.as_ref().map(|k| k.span)),
        ("every", keys.every.map(|k| k.span)),
        ("repeat", keys.repeat.map(|k| k.span)),
    ];
    if let Some((key, span)) = others.into_iter().find_map(|(key, span)| Some((key, span?))) {
        let label = "these follow from geometry, and do not change";
        return Err(Fault::new(span, format!("`{key}` does not go with `satellite` and `stations`"), label));
    }
    let missing = |key: &str| Fault::missing(span, "`delay`", key);
    let satellite = keys.satellite.ok_or_else(|| missing("satellite"))?;
    let stations = keys.stations.as_ref().ok_or_else(|| missing("stations"))?;
    let [a, b] = &stations.value.0[..] else {
        let label = "a hop leads from one to another: [[latitude, longitude], [latitude, longitude]]";
        return Err(Fault::new(stations.span, "`stations` are two", label));
    };
    let longitude = |angle: f64, span: Span| {
        let fine = (-180.0..=360.0).contains(&angle);
        fine.then_some(angle)
            .ok_or_else(|| Fault::new(span, "this is not a longitude", "from -180 to 360 deg"))
    };
    let place = |(lat, lon): &(At<crate::measure::Degrees>, At<crate::measure::Degrees>)| {
        if !(-90.0..=90.0).contains(&lat.value.0) {
            bail!(lat.span, "this is not a latitude", "from -90 to 90 deg");
        }
        Ok((lat.value.0, longitude(lon.value.0, lon.span)?))
    };
    let satellite = longitude(satellite.value.0, satellite.span)?;
    bentpipe_link::geo::delay(satellite, place(a)?, place(b)?).map_err(|below| {
        let span = if below.station == 0 { a.0.span } else { b.0.span };
        let label = format!("its elevation there is {:.1} deg", below.elevation_deg);
        Fault::new(span, "this station does not see the satellite", label)
    })
}

/// Fills in the link's name where an orbit pair or a rain station has no name.
pub(super) fn fill_in_shared_names(spec: &mut DirectionSpec, link: &str) {
    let Some(dynamics) = &mut spec.dynamics else { return };
    if let Some(Orbit::Slots(slots)) = &mut dynamics.orbit
        && slots.pair.is_empty()
    {
        link.clone_into(&mut slots.pair);
    }
    if let Some(FadeSource::Rain(rain)) = dynamics.fade.as_mut().map(|f| &mut f.source)
        && rain.station.is_empty()
    {
        link.clone_into(&mut rain.station);
    }
}

/// Returns the number of points of steps and profiles, and of opportunities of traces.
pub(super) fn trace_lengths(dynamics: &Dynamics) -> (usize, usize) {
    use bentpipe_link::CapacityTrace;
    let (mut points, mut opportunities) = (0, 0);
    match &dynamics.capacity {
        Some(CapacityTrace::Steps { points: list, .. }) => points += list.len(),
        Some(CapacityTrace::Opportunities { at, .. }) => opportunities += at.len(),
        None => {}
    }
    points += dynamics.delay.as_ref().map_or(0, |series| series.points.len());
    points += dynamics.loss.as_ref().map_or(0, |series| series.points.len());
    if let Some(FadeSource::Profile(list)) = dynamics.fade.as_ref().map(|f| &f.source) {
        points += list.len();
    }
    (points, opportunities)
}
