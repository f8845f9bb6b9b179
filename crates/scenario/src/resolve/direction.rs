//! Resolves one direction of a link.

use super::dynamics;
use super::queue::discipline;
use super::series;
use super::trace_files::TraceFiles;
use crate::diagnostic::{Fault, Result, fault};
use crate::form::{At, Keys as _, OrTable};
use crate::keys::{AsymmetryKeys, ChannelKeys, DelayKeys, DirectionKeys, MtuKeys};
use crate::measure::Degrees;
use crate::source::Span;
use crate::types::DirectionSpec;
use bentpipe_base::{Duration, Probability, Rate, Size};
use bentpipe_link::{Discipline, FadeSource, Longer, LossDraw, Mtu, Orbit};

/// Maximum framing; more than any link layer adds.
pub(super) const MAX_FRAMING: Size = Size(65_535);
/// Smallest and largest MTU: what every link takes (RFC 791, section 3.2), and the longest packet.
const MTU: (Size, Size) = (Size(68), Size(65_535));

/// What is needed to resolve the keys of a direction.
pub(super) struct DirectionContext<'a> {
    /// Name of the direction in errors.
    pub(super) name_in_errors: &'a str,
    pub(super) span: Span,
    /// Rate of the forward direction, while the return direction is resolved.
    pub(super) forward: Option<Rate>,
    pub(super) files: &'a TraceFiles<'a>,
}

impl DirectionContext<'_> {
    fn missing(&self, key: &str) -> Fault {
        Fault::missing(self.span, self.name_in_errors, key)
    }

    pub(super) fn direction(&self, keys: &DirectionKeys) -> Result<DirectionSpec> {
        let (table, span) = match keys.delay.as_ref().map(|given| (&given.value, given.span)) {
            None => return self.channel(&keys.channel, None),
            Some((OrTable::Plain(delay), _)) => return self.channel(&keys.channel, Some(*delay)),
            Some((OrTable::Table(table), span)) => (table, span),
        };
        if table.satellite.is_some() || table.stations.is_some() {
            return self.channel(&keys.channel, Some(geostationary_delay(table, span)?));
        }
        let series = series::delay(table, span, self.files)?;
        let slots = keys.channel.orbit.as_ref().and_then(|o| o.value.slots.as_ref());
        if slots.is_some() {
            let label = "the slots of an orbit say the delay, too";
            return Err(Fault::new(span, "a delay over time and slots exclude each other", label));
        }
        let mut spec = self.channel(&keys.channel, Some(series::mean(&series)))?;
        spec.dynamics.get_or_insert_default().delay = Some(series);
        Ok(spec)
    }

    /// Resolves a channel. Without `delay`, it gets the mean delay of the slots of its orbit.
    pub(super) fn channel(&self, keys: &ChannelKeys, delay: Option<Duration>) -> Result<DirectionSpec> {
        let rate = self.rate(keys.rate.as_ref().ok_or_else(|| self.missing("rate"))?)?;
        let slots = keys.orbit.as_ref().and_then(|o| o.value.slots.as_ref()).map(|s| s.value.delay.value);
        let delay = delay
            .or_else(|| slots.map(|range| Duration(range.min.0.midpoint(range.max.0))))
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
            loss_draw: loss_draw(keys)?,
            ber: keys.ber.map_or(Probability::ZERO, |v| v.value),
            framing: keys.framing.map_or(Ok(Size::ZERO), |f| f.at_most("framing", MAX_FRAMING))?,
            mtu: keys.mtu.as_ref().map_or(Ok(None), mtu)?,
            dynamics: dynamics::resolve(keys, delay, self.files)?,
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
        return_rate(keys, forward)
    }
}

/// Returns how losses are drawn; an error for gaps beside bit errors.
fn loss_draw(keys: &ChannelKeys) -> Result<LossDraw> {
    let draw = keys.loss_draw.map(|d| d.value).unwrap_or_default();
    match keys.ber.filter(|ber| draw == LossDraw::Gap && !ber.value.is_zero()) {
        Some(ber) => Err(bit_errors_beside_gaps(ber.span)),
        None => Ok(draw),
    }
}

/// The error for a bit error rate where losses are drawn as gaps.
pub(super) fn bit_errors_beside_gaps(span: Span) -> Fault {
    let label =
        "bit errors are drawn for each packet: give `loss` in place of `ber`, or `loss_draw = \"packet\"`";
    Fault::new(span, "`ber` and `loss_draw = \"gap\"` exclude each other", label)
}

fn mtu(given: &At<OrTable<Option<Size>, MtuKeys>>) -> Result<Option<Mtu>> {
    let (size, longer) = match &given.value {
        OrTable::Plain(size) => (At { value: *size, span: given.span }, Longer::default()),
        OrTable::Table(keys) => (keys.size, keys.longer.map(|l| l.value).unwrap_or_default()),
    };
    let Some(value) = size.value else { return Ok(None) };
    let size = At { value, span: size.span };
    let bytes = size.at_least("mtu", MTU.0, "small").and(size.at_most("mtu", MTU.1))?;
    Ok(Some(Mtu { bytes: bytes.0 as u16, longer }))
}

/// Returns the rate of the return direction: forward rate * ack / (k * data), RFC 3449 section 3.1.
fn return_rate(keys: &AsymmetryKeys, forward: Rate) -> Result<Rate> {
    for (key, size) in [("data", keys.data), ("ack", keys.ack)] {
        size.positive(key)?;
    }
    let k = keys.k.value;
    let bps = forward.bps() as f64 * keys.ack.value.0 as f64 / (k * keys.data.value.0 as f64);
    let is_rate = k > 0.0 && (1.0..=crate::quantity::RATE.most.0 as f64).contains(&bps);
    Rate::from_bps(bps.round() as u64).filter(|_| is_rate).ok_or_else(|| {
        fault!(keys.k.span, "`k` gives no rate", "with these sizes, k leads from {forward} to {bps:.3} bit/s")
    })
}

/// Returns the delay of a hop between two stations over a geostationary satellite.
fn geostationary_delay(keys: &DelayKeys, span: Span) -> Result<Duration> {
    let other = keys.given().into_iter().find(|(key, _)| !matches!(*key, "satellite" | "stations"));
    if let Some((key, span)) = other {
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
    let place = |(lat, lon): &(At<Degrees>, At<Degrees>)| Ok::<_, Fault>((latitude(*lat)?, longitude(*lon)?));
    bentpipe_link::geo::delay(longitude(satellite)?, place(a)?, place(b)?).map_err(|below| {
        let span = if below.station == 0 { a.0.span } else { b.0.span };
        let label = format!("its elevation there is {:.1} deg", below.elevation_deg);
        Fault::new(span, "this station does not see the satellite", label)
    })
}

/// Returns the angle if it is a latitude.
pub(super) fn latitude(given: At<Degrees>) -> Result<f64> {
    match given.value.0 {
        angle if (-90.0..=90.0).contains(&angle) => Ok(angle),
        _ => Err(fault!(given.span, "this is not a latitude", "from -90 to 90 deg")),
    }
}

/// Returns the angle if it is a longitude.
pub(super) fn longitude(given: At<Degrees>) -> Result<f64> {
    match given.value.0 {
        angle if (-180.0..=360.0).contains(&angle) => Ok(angle),
        _ => Err(fault!(given.span, "this is not a longitude", "from -180 to 360 deg")),
    }
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
