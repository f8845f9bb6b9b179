//! The runs of a figure, and the check that its file fits the scenario.

use super::FigureJob;
use super::measure::Measure;
use crate::error::Error;
use crate::key::run_key;
use crate::plan::MAX_RUNS;
use bentpipe_report::Unit;
use bentpipe_scenario::figure_file::{Accept, Claim, FigureCurve, Located, PrintedValue, Setting};
use bentpipe_scenario::{Diagnostic, Scenario, load_with};
use bentpipe_sim::reference::in_unit;
use bentpipe_sim::report::names;
use rayon::prelude::*;
use std::collections::BTreeSet;

/// A run.
pub(crate) struct Run {
    pub(crate) seed: u64,
    /// Name in the store.
    pub(crate) key: String,
    /// True for the first one of its cell.
    pub(crate) first: bool,
    /// Index of its curve and its value of x.
    at: (usize, usize),
}

impl Run {
    /// Loads its scenario.
    pub(crate) fn load(&self, job: &FigureJob<'_>) -> Result<Scenario, Error> {
        load(job, self.at, Some(self.seed))
    }
}

/// A curve at a value of x.
pub(crate) struct Cell {
    /// In the order of seeds.
    pub(crate) runs: Vec<Run>,
}

pub(crate) struct Plan {
    /// One for each curve.
    pub(crate) measures: Vec<Measure>,
    /// The unit of all of them.
    pub(crate) unit: Unit,
    /// Curves, then values of x; empty for a curve that is not run.
    pub(crate) cells: Vec<Vec<Cell>>,
    pub(crate) seeds: u32,
}

impl Plan {
    /// Plans all runs, and checks parameters, metrics and units.
    pub(crate) fn new(job: &FigureJob<'_>) -> Result<Self, Error> {
        let file = job.file;
        let measures: Vec<Measure> = file
            .curves
            .iter()
            .map(|c| Measure::parse(&c.measure))
            .collect::<Result<_, _>>()
            .map_err(Error::Figure)?;
        let unit = measures.first().map_or(Unit::Ratio, Measure::unit);
        check(job, &measures, unit).map_err(Error::Figure)?;
        let seeds = seeds(job)?;
        let places = file.across.as_ref().map_or(1, |a| a.values.len());
        if file.curves.len().saturating_mul(places).saturating_mul(seeds as usize) > MAX_RUNS {
            return Err(Error::Input(format!(
                "there are too many runs: points times seeds must not exceed {MAX_RUNS}"
            )));
        }
        let mut plan = Self { measures, unit, cells: Vec::new(), seeds };
        plan.cells = (0..file.curves.len()).map(|n| plan.curve(job, n, places)).collect::<Result<_, _>>()?;
        Ok(plan)
    }

    fn curve(&self, job: &FigureJob<'_>, n: usize, places: usize) -> Result<Vec<Cell>, Error> {
        if !job.file.curves[n].run {
            return Ok(Vec::new());
        }
        let cell = |x: usize| {
            let first = load(job, (n, x), None)?;
            self.measures[n].check(&names(&first), &job.file.curves[n].measure).map_err(Error::Figure)?;
            let room = first.seed.checked_add(u64::from(self.seeds));
            let end = room.ok_or_else(|| {
                Error::Input(format!(
                    "the seed {} leaves no room for {} seeds after it",
                    first.seed, self.seeds
                ))
            })?;
            let run = |seed| {
                let scenario = load(job, (n, x), Some(seed))?;
                Ok(Run { seed, key: run_key(&scenario), first: seed == first.seed, at: (n, x) })
            };
            Ok(Cell { runs: (first.seed..end).map(run).collect::<Result<_, Error>>()? })
        };
        // in their order, so that the first error is always the same one
        let cells: Vec<Result<Cell, Error>> = (0..places).into_par_iter().map(cell).collect();
        cells.into_iter().collect()
    }

    /// Returns a number for the curve and the value of x of a run.
    pub(crate) fn cell(&self, run: &Run) -> usize {
        self.cells[..run.at.0].iter().map(Vec::len).sum::<usize>() + run.at.1
    }

    /// Returns all runs, each once: curves of a table may have the same ones.
    pub(crate) fn distinct(&self) -> Vec<&Run> {
        let mut seen = BTreeSet::new();
        let all = self.cells.iter().flatten().flat_map(|cell| &cell.runs);
        all.filter(|run| seen.insert(run.key.as_str())).collect()
    }
}

/// Returns the number of runs of a cell.
fn seeds(job: &FigureJob<'_>) -> Result<u32, Error> {
    match (&job.file.quick, job.quick) {
        (Some(quick), true) => Ok(quick.seeds),
        (None, true) => Err(Error::Input(
            "the figure has no shorter version\n\
             help: give its file a table [quick] with a tolerance, or leave out --quick"
                .to_owned(),
        )),
        (_, false) => Ok(job.file.seeds),
    }
}

/// Parameters of a cell, the later one of a name wins: the file's, the curve's, those of the shorter
/// version, x.
fn settings<'a>(
    job: &'a FigureJob<'_>,
    at: (usize, usize),
) -> Vec<(&'a Located<String>, &'a Located<String>)> {
    let quick = job.file.quick.as_ref().filter(|_| job.quick).map_or(&[][..], |q| &q.sets);
    let of_curve = &job.file.curves[at.0].sets;
    let sets = job.file.sets.iter().chain(of_curve).chain(quick).map(|s| (&s.name, &s.value));
    sets.chain(job.file.across.as_ref().map(|a| (&a.parameter, &a.values[at.1]))).collect()
}

fn load(job: &FigureJob<'_>, at: (usize, usize), seed: Option<u64>) -> Result<Scenario, Error> {
    let settings = settings(job, at);
    let sets: Vec<(String, String)> =
        settings.iter().map(|(n, v)| (n.value.clone(), v.value.clone())).collect();
    load_with(job.scenario, &sets, seed, job.files)
        .map_err(|diagnostic| Error::Figure(in_figure(diagnostic, &settings, &job.file.curves[at.0])))
}

/// Moves an error of a parameter to its place in the figure file; one of the scenario says which curve it is.
fn in_figure(
    mut diagnostic: Box<Diagnostic>,
    settings: &[(&Located<String>, &Located<String>)],
    curve: &FigureCurve,
) -> Box<Diagnostic> {
    let of = |name: &str| format!("--set {name}=");
    let place = &diagnostic.place;
    let wrong = settings
        .iter()
        .rfind(|(name, _)| place.name == "command line" && place.text.starts_with(&of(&name.value)));
    if let Some((name, value)) = wrong {
        let at_value = place.offset >= of(&name.value).chars().count();
        diagnostic.place = if at_value { value.place.clone() } else { name.place.clone() };
    }
    let words: Vec<String> = settings.iter().map(|(n, v)| format!("{} = {}", n.value, v.value)).collect();
    let with = if words.is_empty() { String::new() } else { format!(" with {}", words.join(", ")) };
    diagnostic.help.push(format!("note: in the curve `{}`{with}", curve.name.value));
    diagnostic
}

/// Checks what can be checked without a run: names of x, units.
fn check(job: &FigureJob<'_>, measures: &[Measure], unit: Unit) -> Result<(), Box<Diagnostic>> {
    let file = job.file;
    if let Some((curve, _)) = file.curves.iter().zip(measures).find(|(_, m)| m.unit() != unit) {
        let label = format!("that of `{}` is {}", file.curves[0].name.value, unit.example());
        return Err(curve.measure.fault("all curves of a figure have the same unit", label));
    }
    if let Some(across) = &file.across {
        let quick = file.quick.iter().flat_map(|q| &q.sets);
        let all = file.sets.iter().chain(file.curves.iter().flat_map(|c| &c.sets)).chain(quick);
        if let Some(Setting { name, .. }) = all.into_iter().find(|s| s.name.value == across.parameter.value) {
            return Err(
                name.fault(format!("`{}` is the parameter of `[x]`", name.value), "leave it out here")
            );
        }
    }
    for point in file.references.iter().flat_map(|r| &r.points) {
        value_in(unit, &point.value)?;
    }
    for statement in &file.statements {
        let Claim::Value { over, accept, .. } = &statement.claim else { continue };
        let unit = if over.is_some() { Unit::Ratio } else { unit };
        let values = match &**accept {
            Accept::Near { expect, .. } => vec![expect],
            Accept::Between { low, high, expect } => [low, high].into_iter().chain(expect).collect(),
        };
        values.into_iter().try_for_each(|v| value_in(unit, v).map(|_| ()))?;
    }
    Ok(())
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
