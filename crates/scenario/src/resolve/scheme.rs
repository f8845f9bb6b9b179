//! `tcp = ...`: a scheme by name, or a table that changes its parameters.

use crate::diagnostic::{Fault, Result};
use crate::form::At;
use crate::keys::{SchemeForm, SchemeKeys};
use crate::scalars::SchemeName;
use crate::source::Span;
use bentpipe_tcp::cc::cubic::CubicParams;
use bentpipe_tcp::cc::vegas::VegasParams;
use bentpipe_tcp::{Growth, Scheme, Stack};

/// Most segments that Vegas may keep in the queue.
const MOST_QUEUED: f64 = 1e6;

/// Schemes that a Linux host has.
const OF_LINUX: [&str; 4] = ["reno", "newreno", "sack", "cubic"];

pub(super) fn resolve(given: &At<SchemeForm>, stack: Stack) -> Result<Scheme> {
    let keys = match &given.value {
        SchemeForm::Named(SchemeName(scheme)) => return on(*scheme, stack, given.span),
        SchemeForm::Table(keys) => keys,
    };
    let mut scheme = on(keys.scheme.value.0, stack, keys.scheme.span)?;
    if let Some(recovery) = &keys.recovery {
        let target = &mut scheme.recovery;
        target.detection = recovery.value.detection.map_or(target.detection, |v| v.value);
        target.reduction = recovery.value.reduction.map_or(target.reduction, |v| v.value);
        target.frto = recovery.value.frto.map_or(target.frto, |v| v.value);
    }
    check_keys(keys, &scheme)?;
    match &mut scheme.growth {
        Growth::Reno => {}
        Growth::Vegas(params) => vegas(keys, params)?,
        Growth::Cubic(params) => cubic(keys, params)?,
    }
    Ok(scheme)
}

/// The scheme as the stack has it.
fn on(scheme: Scheme, stack: Stack, span: Span) -> Result<Scheme> {
    if stack == Stack::Linux && !OF_LINUX.contains(&scheme.name) {
        let message = format!("a Linux host has no `{}`", scheme.name);
        return Err(Fault::new(span, message, format!("one of {}", OF_LINUX.join(", "))));
    }
    Ok(scheme.on(stack))
}

/// Refuses parameters of another scheme.
fn check_keys(keys: &SchemeKeys, scheme: &Scheme) -> Result<()> {
    let (is_cubic, is_vegas) =
        (matches!(scheme.growth, Growth::Cubic(_)), matches!(scheme.growth, Growth::Vegas(_)));
    let foreign = [
        ("beta", keys.beta.map(|v| v.span), is_cubic || is_vegas, "cubic and vegas"),
        ("c", keys.c.map(|v| v.span), is_cubic, "cubic"),
        ("fast_convergence", keys.fast_convergence.map(|v| v.span), is_cubic, "cubic"),
        ("hystart", keys.hystart.map(|v| v.span), is_cubic, "cubic"),
        ("alpha", keys.alpha.map(|v| v.span), is_vegas, "vegas"),
        ("gamma", keys.gamma.map(|v| v.span), is_vegas, "vegas"),
    ];
    for (key, span, known, owner) in foreign {
        if let Some(span) = span.filter(|_| !known) {
            let message = format!("`{key}` is not a parameter of {}", scheme.name);
            return Err(Fault::new(span, message, format!("it belongs to {owner}")));
        }
    }
    Ok(())
}

fn cubic(keys: &SchemeKeys, params: &mut CubicParams) -> Result<()> {
    if let Some(beta) = keys.beta {
        params.beta = within("beta", beta, (0.1, 0.95))?;
    }
    if let Some(c) = keys.c {
        params.c = within("c", c, (1e-3, 100.0))?;
    }
    params.fast_convergence = keys.fast_convergence.map_or(params.fast_convergence, |v| v.value);
    params.hystart = keys.hystart.map_or(params.hystart, |v| v.value);
    Ok(())
}

fn vegas(keys: &SchemeKeys, params: &mut VegasParams) -> Result<()> {
    for (key, given, target) in [
        ("alpha", keys.alpha, &mut params.alpha),
        ("beta", keys.beta, &mut params.beta),
        ("gamma", keys.gamma, &mut params.gamma),
    ] {
        if let Some(given) = given {
            *target = within(key, given, (0.0, MOST_QUEUED))?;
        }
    }
    if let Some(guilty) = keys.alpha.or(keys.beta).filter(|_| params.alpha > params.beta) {
        let label = format!("alpha is {}, beta is {}", params.alpha, params.beta);
        return Err(Fault::new(guilty.span, "`alpha` is more than `beta`", label));
    }
    Ok(())
}

fn within(key: &str, given: At<f64>, (least, most): (f64, f64)) -> Result<f64> {
    if (least..=most).contains(&given.value) {
        return Ok(given.value);
    }
    Err(Fault::new(given.span, format!("`{key}` is out of range"), format!("from {least} to {most}")))
}
