//! Resolves `[x]`: the values of a parameter, or steps of time.

use super::keys::AcrossKeys;
use super::resolve::{MOST_POINTS, located};
use super::scalars::Coordinate;
use super::types::{Across, Horizontal, Located, Scale, Steps};
use crate::amount::{Amount, parse_amount};
use crate::diagnostic::{Fault, Result, bail};
use crate::form::At;
use crate::gateway_file::OneOrList;
use crate::quantity::Dimension;
use crate::source::{Sources, Span};
use bentpipe_base::Duration;

/// Axes whose values span more than this factor are logarithmic, as in sweeps.
const LOG_SCALE_RATIO: f64 = 20.0;

pub(super) fn across(given: At<AcrossKeys>, sources: &Sources<'_>) -> Result<Across> {
    let At { value: keys, span } = given;
    if keys.time.is_some() {
        return of_time(keys, span, sources);
    }
    let needless = [("from", keys.from), ("to", keys.to)].into_iter().find_map(|(k, s)| Some((k, s?.span)));
    if let Some((key, span)) = needless {
        bail!(span, "`{key}` has no effect without `time`", "leave it out, or give `time`");
    }
    let Some(parameter) = keys.parameter else {
        return Err(Fault::missing(span, "[x]", "parameter")
            .help("help: write parameter = \"...\" with values, or time = \"10 s\" with to = \"1000 s\""));
    };
    let Some(values) = keys.values else { return Err(Fault::missing(span, "[x]", "values")) };
    let parameter = located(parameter.map(|p| p.0), sources);
    let label = keys.label.map_or_else(|| parameter.value.clone(), |l| l.value.0);
    of_parameter(parameter, label, &values, keys.scale, sources)
}

fn of_parameter(
    parameter: Located<String>,
    label: String,
    values: &At<OneOrList<Coordinate>>,
    scale: Option<At<Scale>>,
    sources: &Sources<'_>,
) -> Result<Across> {
    let values = &values.value.0;
    if let Some(one) = values.get(MOST_POINTS) {
        return Err(Fault::too_many(one.span, "values", MOST_POINTS));
    }
    let amounts: Option<Vec<Amount>> = values.iter().map(|v| parse_amount(&v.value.0).ok()).collect();
    let first = amounts.as_ref().and_then(|a| a.first()).map(|a| a.dimension);
    let amounts = amounts.filter(|a| a.iter().all(|v| Some(v.dimension) == first));
    let dimension = first.filter(|_| amounts.is_some());
    let positions: Vec<f64> = amounts.map_or_else(
        || (1..=values.len()).map(|n| n as f64).collect(),
        |a| a.iter().map(|v| v.value).collect(),
    );
    for (n, value) in values.iter().enumerate() {
        if positions[..n].contains(&positions[n]) || values[..n].iter().any(|v| v.value.0 == value.value.0) {
            let message = format!("`values` has {} twice", value.value.0);
            return Err(Fault::new(value.span, message, "the same runs would be made again"));
        }
    }
    let scale = scale_of(scale, dimension, &positions)?;
    let values =
        values.iter().map(|v| Located { value: v.value.0.clone(), place: sources.place(v.span) }).collect();
    Ok(Across { of: Horizontal::Parameter(parameter), values, positions, dimension, label, scale })
}

fn scale_of(given: Option<At<Scale>>, dimension: Option<Dimension>, positions: &[f64]) -> Result<Scale> {
    let lowest = positions.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = positions.iter().copied().fold(0.0, f64::max);
    let wide = lowest > 0.0 && highest > LOG_SCALE_RATIO * lowest;
    let scale =
        given.map_or(if dimension.is_some() && wide { Scale::Log } else { Scale::Linear }, |s| s.value);
    if let Some(given) = given.filter(|s| s.value == Scale::Log && (dimension.is_none() || lowest <= 0.0)) {
        let label = "a logarithmic axis has numbers above zero";
        return Err(Fault::new(given.span, "these values have no logarithm", label)
            .help("help: write scale = \"linear\""));
    }
    Ok(scale)
}

/// The ends of the steps, in seconds.
fn of_time(keys: AcrossKeys, span: Span, sources: &Sources<'_>) -> Result<Across> {
    let needless = [keys.parameter.map(|k| k.span), keys.values.map(|k| k.span)];
    if let Some(span) = needless.into_iter().flatten().next() {
        bail!(span, "`[x]` has a parameter or `time`, not both", "leave one of them out");
    }
    let Some(every) = keys.time else { return Err(Fault::missing(span, "[x]", "time")) };
    let step = every.positive("time")?;
    let from = keys.from.map_or(Duration::ZERO, |f| f.value);
    let Some(to) = keys.to else {
        return Err(Fault::missing(span, "[x]", "to").help("help: it is the end of the last step"));
    };
    if let Some(from) = keys.from.filter(|f| !f.value.0.is_multiple_of(step.0)) {
        bail!(from.span, "`from` is not a multiple of `time`", "steps of runs begin at 0 s");
    }
    if to.value <= from || !(to.value.0 - from.0).is_multiple_of(step.0) {
        bail!(to.span, "`to` is not at the end of a step", "write `from` plus a multiple of `time`");
    }
    let number = (to.value.0 - from.0) / step.0;
    if number > MOST_POINTS as u64 {
        return Err(Fault::too_many(every.span, "steps", MOST_POINTS)
            .help("help: write a longer `time`, or a later `from` or an earlier `to`"));
    }
    let ends = || (1..=number).map(|n| Duration(from.0 + step.0 * n));
    let place = sources.place(every.span);
    let values = ends().map(|end| Located { value: end.to_string(), place: place.clone() }).collect();
    let scale = keys.scale.map_or(Scale::Linear, |s| s.value);
    Ok(Across {
        of: Horizontal::Time(Located { value: Steps { every: step, from, number: number as usize }, place }),
        values,
        positions: ends().map(Duration::as_secs_f64).collect(),
        dimension: Some(Dimension::Time),
        label: keys.label.map_or_else(|| "time".to_owned(), |l| l.value.0),
        scale,
    })
}
