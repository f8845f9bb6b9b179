//! Resolves the keys of a figure file: names of curves, values of x, points of sources.

use super::axis;
use super::keys::{CurveKeys, FigureKeys, PrintedKeys, QuickKeys};
use super::live;
use super::scalars::{Coordinate, Printed, ScenarioText, Settings};
use super::statements;
use super::types::{
    Across, Cost, FigureCurve, FigureFile, Located, PrintedPoint, PrintedPoints, PrintedValue, Quick, Scale,
    ScenarioRef, Setting, Tolerance,
};
use crate::amount::parse_amount;
use crate::diagnostic::{Fault, Result, bail, fault};
use crate::form::At;
use crate::quantity::Dimension;
use crate::scalars::Text;
use crate::source::{Source, Sources, Span};
use crate::sweep::DEFAULT_SEEDS;

const MOST_CURVES: usize = 32;
const MOST_REFERENCES: usize = 64;
pub(super) const MOST_POINTS: usize = 1000;

/// What the parts of a figure refer to: its curves and its values of x.
pub(super) struct Context<'a> {
    pub(super) sources: &'a Sources<'a>,
    pub(super) curves: Vec<FigureCurve>,
    pub(super) across: Option<Across>,
}

impl Context<'_> {
    pub(super) fn located<T>(&self, at: At<T>) -> Located<T> {
        located(at, self.sources)
    }

    /// Returns the index of the curve called `name`.
    pub(super) fn curve(&self, name: &str, span: Span) -> Result<usize> {
        let names = || self.curves.iter().map(|c| c.name.value.as_str());
        names().position(|n| n == name).ok_or_else(|| Fault::unknown(span, "curve", name, names()))
    }

    /// Returns the index of a value of x.
    pub(super) fn place(&self, at: &At<Coordinate>) -> Result<usize> {
        let Some(across) = &self.across else {
            bail!(at.span, "there is no `[x]` to be at", "a table has one value in each row: leave `at` out");
        };
        let text = &at.value.0;
        let names = || across.values.iter().map(|v| v.value.as_str());
        let amount = position(across, text);
        let same = |(n, name): (usize, &str)| {
            name == text || amount.is_some() && amount == across.positions.get(n).copied()
        };
        names().enumerate().position(same).ok_or_else(|| {
            Fault::unknown(at.span, "value", text, names()).help("help: these are the values of `[x]`")
        })
    }
}

pub(super) fn located<T>(at: At<T>, sources: &Sources<'_>) -> Located<T> {
    Located { place: sources.place(at.span), value: at.value }
}

pub(super) fn file(keys: FigureKeys, source: &Source, sources: &Sources<'_>) -> Result<FigureFile> {
    let text = |given: Option<At<Text>>| given.map(|t| t.value.0);
    let measure = keys.measure.map(|m| located(m.map(|t| t.0), sources));
    let across = keys.x.map(|x| axis::across(x, sources)).transpose()?;
    let curves = curves(keys.curves, measure.as_ref(), sources)?;
    let context = Context { sources, curves, across };
    let references = keys.references.map_or_else(Vec::new, |r| r.value);
    if let Some(one) = references.get(MOST_REFERENCES) {
        return Err(Fault::too_many(one.span, "references", MOST_REFERENCES));
    }
    let references = references.into_iter().map(|r| printed(r.value, &context)).collect::<Result<_>>()?;
    let items = statements::items(keys.item);
    let statements = statements::all(keys.statements.map_or_else(Vec::new, |s| s.value), &items, &context)?;
    let seeds = keys.seeds.map_or(DEFAULT_SEEDS, |s| s.value.0 as u32);
    Ok(FigureFile {
        title: keys.title.value.0,
        paper: text(keys.paper),
        items,
        source: text(keys.source),
        scenario: scenario(keys.scenario, source, sources),
        sets: settings(keys.set, sources),
        scale: keys.scale.map_or(Scale::Linear, |s| s.value),
        seeds,
        cost: keys.cost.map_or(Cost::Normal, |c| c.value),
        quick: keys.quick.map(|q| quick(q.value, sources)).transpose()?,
        live: keys.live.map(|l| live::live(l, seeds, &context)).transpose()?,
        notes: text(keys.notes),
        references,
        statements,
        across: context.across,
        curves: context.curves,
    })
}

/// A text of several lines is a scenario. It keeps its place in the file, so that its errors point there.
fn scenario(given: At<ScenarioText>, source: &Source, sources: &Sources<'_>) -> ScenarioRef {
    let At { value: ScenarioText(text), span } = given;
    if !text.contains('\n') {
        return ScenarioRef::Named(located(At { value: text, span }, sources));
    }
    let whole = source.text();
    let written = whole.get(span.start as usize..span.end as usize).unwrap_or("");
    let inside = written.trim_start_matches('\'').trim_end_matches('\'');
    if inside.trim_start() != text.trim_start() {
        // escapes: the text differs from what is written
        return ScenarioRef::Inline(Source::new(format!("scenario of {}", source.name()), text));
    }
    let before = whole.get(..span.start as usize).unwrap_or("");
    let lines = "\n".repeat(before.matches('\n').count());
    let columns =
        before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + written.find(inside).unwrap_or(0);
    ScenarioRef::Inline(Source::new(source.name(), format!("{lines}{}{inside}", " ".repeat(columns))))
}

pub(super) fn settings(given: Option<At<Settings>>, sources: &Sources<'_>) -> Vec<Setting> {
    let all = given.map_or_else(Vec::new, |s| s.value.0);
    let one = |(span, name, value): (Span, String, At<String>)| Setting {
        name: located(At { value: name, span }, sources),
        value: located(value, sources),
    };
    all.into_iter().map(one).collect()
}

fn quick(keys: QuickKeys, sources: &Sources<'_>) -> Result<Quick> {
    let Tolerance::Share(tolerance) = keys.tolerance.value else {
        bail!(
            keys.tolerance.span,
            "the tolerance of `quick` is a share",
            "write it in percent, as in \"20 %\""
        );
    };
    if tolerance >= 1.0 {
        bail!(keys.tolerance.span, "the tolerance of `quick` is below 100 %", "with this one 0 is accepted");
    }
    Ok(Quick {
        sets: settings(keys.set, sources),
        seeds: keys.seeds.map_or(1, |s| s.value.0 as u32),
        tolerance,
    })
}

fn curves(
    given: At<Vec<At<CurveKeys>>>,
    measure: Option<&Located<String>>,
    sources: &Sources<'_>,
) -> Result<Vec<FigureCurve>> {
    if given.value.is_empty() || given.value.len() > MOST_CURVES {
        bail!(given.span, "these are no curves of a figure", "it has from 1 to {MOST_CURVES}");
    }
    let mut all: Vec<FigureCurve> = Vec::new();
    for At { value: keys, .. } in given.value {
        let (name, span) = (keys.name.value.0, keys.name.span);
        if all.iter().any(|c| c.name.value == name) {
            return Err(Fault::taken(span, "curves", &name));
        }
        let name = located(At { value: name, span }, sources);
        if let (Some(formula), Some(measure)) = (&keys.formula, &keys.measure) {
            let label = format!("the formula {} gives a value of its own: leave it out", formula.value.0);
            return Err(Fault::new(measure.span, "`measure` has no effect beside `formula`", label));
        }
        if let (Some(_), Some(run)) = (&keys.formula, &keys.run) {
            bail!(run.span, "`run` has no effect beside `formula`", "a formula is not run: leave it out");
        }
        let measure = keys.measure.map(|m| located(m.map(|t| t.0), sources)).or_else(|| measure.cloned());
        let measure =
            measure.unwrap_or_else(|| Located { value: "goodput".to_owned(), place: name.place.clone() });
        let run = keys.run.is_none_or(|r| r.value);
        let formula = keys.formula.map(|f| located(f.map(|t| t.0), sources));
        all.push(FigureCurve { name, sets: settings(keys.set, sources), measure, formula, run });
    }
    Ok(all)
}

fn printed(keys: PrintedKeys, context: &Context<'_>) -> Result<PrintedPoints> {
    let curve = match keys.curve {
        Some(curve) if context.across.is_none() => {
            bail!(curve.span, "points of a table name their rows", "leave `curve` out");
        }
        Some(curve) => Some(context.curve(&curve.value.0, curve.span)?),
        None => None,
    };
    if let Some(unit) = &keys.unit {
        parse_amount(&format!("1 {}", unit.value.0)).map_err(|why| Fault::new(unit.span, why, ""))?;
    }
    if keys.points.value.0.len() > MOST_POINTS {
        return Err(Fault::too_many(keys.points.span, "points", MOST_POINTS));
    }
    let unit = keys.unit.as_ref().map(|u| u.value.0.as_str());
    let point = |(x, y): (At<Coordinate>, At<Printed>)| {
        let place = match &context.across {
            None => context.curve(&x.value.0, x.span)? as f64 + 1.0,
            Some(across) if across.dimension.is_some() => coordinate(across, &x)?,
            Some(_) => context.place(&x)? as f64 + 1.0,
        };
        let across = context.across.as_ref();
        let equal = across.and_then(|a| {
            let n = a.positions.iter().position(|p| p.total_cmp(&place).is_eq());
            n.and_then(|n| a.values.get(n))
        });
        let x = equal.map_or(x.value.0, |v| v.value.clone());
        Ok(PrintedPoint { place, x, value: context.located(y.map(|y| with_unit(y.0, unit))) })
    };
    let points = keys.points.value.0.into_iter().map(point).collect::<Result<_>>()?;
    if keys.source.value.0.trim().is_empty() {
        bail!(
            keys.source.span,
            "`source` is empty",
            "say where the numbers are printed, and how they were read"
        );
    }
    let name = keys.name.map_or_else(|| "printed".to_owned(), |n| n.value.0);
    Ok(PrintedPoints { name, curve, points, source: keys.source.value.0 })
}

/// Returns the place of a number on the axis; `None` if it does not fit.
fn position(across: &Across, text: &str) -> Option<f64> {
    let amount = parse_amount(text).ok()?;
    (Some(amount.dimension) == across.dimension).then_some(amount.value)
}

/// Returns the place of a point's x on an axis of numbers. It need not be one of the values.
fn coordinate(across: &Across, x: &At<Coordinate>) -> Result<f64> {
    let place = position(across, &x.value.0).ok_or_else(|| {
        let like = across.values.first().map_or("", |v| v.value.as_str());
        fault!(x.span, "this is no value of `[x]`", "write it as {like}")
    })?;
    if across.scale == Scale::Log && place <= 0.0 {
        bail!(x.span, "a logarithmic axis has no place for this", "it is above zero");
    }
    Ok(place)
}

/// Gives a bare number the unit.
fn with_unit(value: PrintedValue, unit: Option<&str>) -> PrintedValue {
    let bare = value.amount.dimension == Dimension::Bare && !value.text.contains('%');
    let Some(unit) = unit.filter(|_| bare) else { return value };
    let text = format!("{} {unit}", value.text);
    parse_amount(&text).map_or(value, |amount| PrintedValue { text, amount })
}
