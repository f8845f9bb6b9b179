//! Resolves `tcp = ...`: a scheme by name, or a table with its parameters.

use crate::diagnostic::{Fault, Result};
use crate::form::{At, OrTable};
use crate::keys::{SchemeKeys, bounds};
use crate::source::Span;
use bentpipe_base::Dscp;
use bentpipe_tcp::cc::law::{Range, Value};
use bentpipe_tcp::cc::probing::{ASSUME_PRIORITY, PROBE_DSCP};
use bentpipe_tcp::{Scheme, Stack};

/// Resolves a scheme for `stack`. `served_last` is true if a queue of the network serves low priority last.
pub(super) fn resolve(
    given: &At<OrTable<Scheme, SchemeKeys>>,
    stack: Stack,
    served_last: bool,
) -> Result<Scheme> {
    let (named, keys) = match &given.value {
        OrTable::Plain(scheme) => (At { value: *scheme, span: given.span }, None),
        OrTable::Table(keys) => (keys.scheme, Some(keys)),
    };
    let mut scheme = for_stack(named.value, stack, named.span)?;
    if let Some(recovery) = keys.and_then(|keys| keys.recovery.as_ref()) {
        let target = &mut scheme.recovery;
        target.detection = recovery.value.detection.map_or(target.detection, |v| v.value);
        target.reduction = recovery.value.reduction.map_or(target.reduction, |v| v.value);
        target.frto = recovery.value.frto.map_or(target.frto, |v| v.value);
    }
    if let Some(keys) = keys {
        parameters(keys, &mut scheme)?;
    }
    if keys.is_none_or(|keys| keys.params.iter().all(|(key, _)| *key != ASSUME_PRIORITY)) {
        set_assume_priority(&mut scheme, served_last);
    }
    Ok(scheme)
}

/// Sets the default of whether probes are served last: true if the queues do so and the probes carry the
/// lower-effort code point (RFC 8622).
fn set_assume_priority(scheme: &mut Scheme, served_last: bool) {
    let lower_effort = match scheme.growth.get(PROBE_DSCP) {
        Some(Value::Number(code_point)) => Dscp::new(code_point as u8) == Some(Dscp::LE),
        _ => true,
    };
    // no effect on schemes without probes, which do not have the parameter
    scheme.growth.set(ASSUME_PRIORITY, Value::Switch(served_last && lower_effort));
}

/// Returns the variant of the scheme for the stack.
fn for_stack(scheme: Scheme, stack: Stack, span: Span) -> Result<Scheme> {
    if stack == Stack::Linux && !scheme.on_linux() {
        let known: Vec<_> = Scheme::all().filter(Scheme::on_linux).map(|s| s.name).collect();
        let message = format!("`{}` as Linux has it is not modelled", scheme.name);
        return Err(Fault::new(span, message, format!("one of {}", known.join(", "))));
    }
    Ok(scheme.on(stack))
}

/// Sets the given parameters. Refuses those of other schemes, values out of range and invalid combinations.
fn parameters(keys: &SchemeKeys, scheme: &mut Scheme) -> Result<()> {
    for (key, given) in &keys.params {
        let Some(param) = scheme.growth.algorithm().params.iter().find(|p| p.name == *key) else {
            return Err(not_a_parameter(key, given.span, scheme));
        };
        if !scheme.growth.set(key, given.value) {
            return Err(Fault::new(given.span, format!("`{key}` is out of range"), allowed(param.range)));
        }
    }
    let Err(misfit) = scheme.growth.check() else { return Ok(()) };
    let span = keys
        .params
        .iter()
        .find(|(key, _)| misfit.keys.contains(key))
        .map_or(keys.scheme.span, |(_, v)| v.span);
    let values = misfit.keys.map(|key| {
        let value = scheme.growth.get(key).map_or_else(String::new, shown);
        format!("{key} is {value}")
    });
    Err(Fault::new(span, misfit.message, values.join(", ")))
}

fn not_a_parameter(key: &str, span: Span, scheme: &Scheme) -> Fault {
    let has = |s: &Scheme| s.growth.algorithm().params.iter().any(|p| p.name == key);
    let owners: Vec<_> = Scheme::all().filter(has).map(|s| s.name).collect();
    let message = format!("`{key}` is not a parameter of {}", scheme.name);
    Fault::new(span, message, format!("it belongs to {}", owners.join(", ")))
}

fn allowed(range: Range) -> String {
    match range {
        Range::Number { least, most, .. } => bounds(least, most),
        Range::Switch { .. } => "true or false".to_owned(),
        Range::Time { least, most, .. } => bounds(least, most),
    }
}

fn shown(value: Value) -> String {
    match value {
        Value::Number(v) => v.to_string(),
        Value::Switch(v) => v.to_string(),
        Value::Time(v) => v.to_string(),
    }
}
