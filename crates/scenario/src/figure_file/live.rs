//! Resolves `[live]`: what is run with real packets.

use super::keys::LiveKeys;
use super::resolve::{Context, settings};
use super::types::{Live, Located, Tolerance};
use crate::diagnostic::{Fault, Result, bail};
use crate::form::At;
use crate::gateway_file::OneOrList;
use crate::scalars::Text;
use crate::source::Span;

const DEFAULT_TOLERANCE: f64 = 0.05;

/// `seeds` are those of the file.
pub(super) fn live(given: At<LiveKeys>, seeds: u32, context: &Context<'_>) -> Result<Live> {
    let At { value: keys, span } = given;
    let tolerance = match keys.tolerance {
        Some(At { value: Tolerance::Share(share), span }) if share >= 1.0 => {
            bail!(span, "the tolerance of `[live]` is below 100 %", "with this one 0 is accepted");
        }
        Some(given) => context.located(given),
        None => Located { value: Tolerance::Share(DEFAULT_TOLERANCE), place: context.sources.place(span) },
    };
    let runs = keys.runs.map_or(1, |r| r.value.0 as u32);
    let seeds = match keys.seeds {
        Some(At { value: few, span }) if few.0 < u64::from(runs) => {
            bail!(span, "`seeds` is less than `runs`", "each live run has a simulated one with its seed");
        }
        Some(given) => given.value.0 as u32,
        None => seeds.max(runs),
    };
    let at = match &keys.at {
        Some(at) => indices(&at.value.0, |one| context.place(one))?,
        None => (0..context.across.as_ref().map_or(1, |a| a.values.len())).collect(),
    };
    Ok(Live {
        curves: curves(keys.curves, span, context)?,
        at,
        sets: settings(keys.set, context.sources),
        runs,
        seeds,
        place: context.sources.place(span),
        tolerance,
        notes: keys.notes.map(|n| n.value.0),
    })
}

fn curves(given: Option<At<OneOrList<Text>>>, span: Span, context: &Context<'_>) -> Result<Vec<usize>> {
    let Some(names) = given else {
        let runs = |n: &usize| context.curves[*n].run && context.curves[*n].formula.is_none();
        let all: Vec<usize> = (0..context.curves.len()).filter(runs).collect();
        if all.is_empty() {
            return Err(Fault::new(span, "no curve is run that could be live", "")
                .help("help: write curves = [\"...\"] with names of curves that have `run = false`"));
        }
        return Ok(all);
    };
    indices(&names.value.0, |name| {
        let curve = context.curve(&name.value.0, name.span)?;
        if let Some(formula) = &context.curves[curve].formula {
            let message = format!("the curve `{}` is computed by {}", name.value.0, formula.value);
            bail!(name.span, "{message}", "a formula has no packets: leave it out");
        }
        Ok(curve)
    })
}

/// Returns the indices of what is named, in their order. None may be named twice.
fn indices<T>(names: &[At<T>], index: impl Fn(&At<T>) -> Result<usize>) -> Result<Vec<usize>> {
    let mut all = Vec::new();
    for name in names {
        let index = index(name)?;
        if all.contains(&index) {
            bail!(name.span, "this is named twice", "leave it out");
        }
        all.push(index);
    }
    all.sort_unstable();
    Ok(all)
}
