//! Checks of a figure file that need no run: units, and the name of x.

use super::FigureJob;
use super::plan::Origin;
use bentpipe_report::Unit;
use bentpipe_scenario::Diagnostic;
use bentpipe_scenario::figure_file::{Accept, Claim, Located, PrintedValue, Setting, Tolerance};
use bentpipe_sim::reference::in_unit;

pub(crate) fn check(job: &FigureJob<'_>, curves: &[Origin], unit: Unit) -> Result<(), Box<Diagnostic>> {
    let file = job.file;
    if let Some((curve, _)) = file.curves.iter().zip(curves).find(|(_, from)| from.unit() != unit) {
        let label = format!("that of `{}` is {}", file.curves[0].name.value, unit.example());
        let place = curve.formula.as_ref().unwrap_or(&curve.measure);
        return Err(place.fault("all curves of a figure have the same unit", label));
    }
    x(job, curves)?;
    for point in file.references.iter().flat_map(|r| &r.points) {
        value_in(unit, &point.value)?;
    }
    if let Some(live) = &file.live
        && let Tolerance::Amount(amount) = live.tolerance.value
        && in_unit(unit, amount).is_none()
    {
        let label = format!("that is {}, or a share", unit.example());
        return Err(live.tolerance.fault("`tolerance` of `[live]` does not fit what is drawn", label));
    }
    for statement in &file.statements {
        let Claim::Value { over, accept, .. } = &statement.claim else { continue };
        let unit = if over.is_some() { Unit::Ratio } else { unit };
        let values = match &**accept {
            Accept::Near { expect, .. } => vec![expect],
            Accept::Range { low, high, expect } => [low, high, expect].into_iter().flatten().collect(),
        };
        values.into_iter().try_for_each(|v| value_in(unit, v).map(|_| ()))?;
    }
    Ok(())
}

/// The parameter of x is set nowhere else. If nothing is run, it is an argument of a formula.
fn x(job: &FigureJob<'_>, curves: &[Origin]) -> Result<(), Box<Diagnostic>> {
    let file = job.file;
    let Some(parameter) = file.across.as_ref().and_then(|a| a.parameter()) else { return Ok(()) };
    let quick = file.quick.iter().flat_map(|q| &q.sets).chain(file.live.iter().flat_map(|l| &l.sets));
    let all = file.sets.iter().chain(file.curves.iter().flat_map(|c| &c.sets)).chain(quick);
    if let Some(Setting { name, .. }) = all.into_iter().find(|s| s.name.value == parameter.value) {
        return Err(name.fault(format!("`{}` is the parameter of `[x]`", name.value), "leave it out here"));
    }
    let mut names = Vec::new();
    for from in curves {
        match from {
            Origin::Formula(formula, _) => names.extend(formula.arguments.iter().map(|a| a.name)),
            Origin::Runs(..) | Origin::Nothing(_) => return Ok(()),
        }
    }
    if names.contains(&parameter.value.as_str()) {
        return Ok(());
    }
    let label = "the formulas do not depend on it";
    let mut fault = parameter.fault(format!("no formula has an argument `{}`", parameter.value), label);
    names.sort_unstable();
    names.dedup();
    fault.help.push(format!("help: their arguments: {}", names.join(", ")));
    Err(fault)
}

/// Returns a printed value in the unit of the metric.
fn value_in(unit: Unit, value: &Located<PrintedValue>) -> Result<f64, Box<Diagnostic>> {
    in_unit(unit, value.value.amount).ok_or_else(|| {
        let mut fault = value.fault("this does not fit what is drawn", format!("that is {}", unit.example()));
        fault.help.push(
            "help: give a [[references]] table its `unit`, or write each value with its unit".to_owned(),
        );
        fault
    })
}
