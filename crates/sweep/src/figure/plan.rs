//! The runs of a figure, and the check that its file fits the scenario.

use super::FigureJob;
use super::course::Recording;
use super::formula::Formula;
use super::live::{self, LivePlan};
use super::measure::Measure;
use super::settings::{At, defaults, load};
use super::{arguments, units};
use crate::error::Error;
use crate::key::run_key;
use crate::plan::MAX_RUNS;
use bentpipe_report::Unit;
use bentpipe_scenario::figure_file::Statement;
use bentpipe_scenario::{Diagnostic, Scenario};
use rayon::prelude::*;
use std::collections::BTreeSet;

/// A run.
pub(crate) struct Run {
    pub(crate) seed: u64,
    /// Name in the store.
    pub(crate) key: String,
    /// True for the first one of its cell.
    pub(crate) first: bool,
    /// Simulated time times flows, s: about how long it takes, for an order.
    pub(crate) cost: f64,
    at: At,
}

impl Run {
    /// Loads its scenario.
    pub(crate) fn load(&self, job: &FigureJob<'_>) -> Result<Scenario, Error> {
        load(job, self.at, Some(self.seed))
    }
}

/// The runs of a curve at a value of x, or at all of them if x is the time.
pub(crate) struct RunSet {
    /// In the order of seeds.
    pub(crate) runs: Vec<Run>,
}

/// Where the values of a curve come from.
pub(crate) enum Origin {
    /// Runs, for each value of x.
    Runs(Measure, Vec<RunSet>),
    /// A formula, with its values.
    Formula(&'static Formula, Vec<Option<f64>>),
    /// Nowhere: it is not run.
    Nothing(Measure),
}

impl Origin {
    /// Returns the number of its cells with runs.
    const fn cells(&self) -> usize {
        match self {
            Self::Runs(_, sets) => sets.len(),
            Self::Formula(..) | Self::Nothing(_) => 0,
        }
    }

    pub(crate) fn unit(&self) -> Unit {
        match self {
            Self::Runs(measure, _) | Self::Nothing(measure) => measure.unit(),
            Self::Formula(formula, _) => formula.unit,
        }
    }

    /// Returns what is measured, unless it is computed.
    pub(crate) const fn measure(&self) -> Option<&Measure> {
        match self {
            Self::Runs(measure, _) | Self::Nothing(measure) => Some(measure),
            Self::Formula(..) => None,
        }
    }
}

pub(crate) struct Plan {
    /// One for each curve.
    pub(crate) curves: Vec<Origin>,
    /// The unit of all of them.
    pub(crate) unit: Unit,
    pub(crate) seeds: u32,
    /// What is recorded if x is the time.
    pub(crate) recording: Option<Recording>,
}

impl Plan {
    /// Plans all runs, and checks parameters, metrics and units.
    pub(crate) fn new(job: &FigureJob<'_>) -> Result<Self, Error> {
        let plan = Self::of(job, None)?;
        for n in (0..job.file.statements.len()).filter(|n| job.file.statements[*n].known.is_some()) {
            Self::of(job, Some(n))?;
        }
        LivePlan::new(job, live::file_of(job.file).as_ref())?;
        Ok(plan)
    }

    /// Plans the runs of all points, or of those of a statement with its `turn`; the others have none.
    pub(crate) fn of(job: &FigureJob<'_>, turned: Option<usize>) -> Result<Self, Error> {
        let file = job.file;
        let steps = file.across.as_ref().and_then(|a| a.steps());
        let mut curves = Vec::new();
        for curve in &file.curves {
            let from = match &curve.formula {
                Some(name) => arguments::find(name).map(|formula| Origin::Formula(formula, Vec::new())),
                None => Measure::parse(&curve.measure, steps.is_some()).map(Origin::Nothing),
            };
            curves.push(from.map_err(Error::Figure)?);
        }
        let unit = curves.first().map_or(Unit::Ratio, Origin::unit);
        units::check(job, &curves, unit).map_err(Error::Figure)?;
        let seeds = seeds(job)?;
        let places = file.across.as_ref().filter(|_| steps.is_none()).map_or(1, |a| a.values.len());
        if file.curves.len().saturating_mul(places).saturating_mul(seeds as usize) > MAX_RUNS {
            return Err(Error::Input(format!(
                "there are too many runs: points times seeds must not exceed {MAX_RUNS}"
            )));
        }
        let quantities = curves.iter().filter_map(Origin::measure).flat_map(Measure::quantities).cloned();
        let recording = steps.map(|steps| Recording::new(steps.value, quantities));
        let mut plan = Self { curves: Vec::new(), unit, seeds, recording };
        let defaults = if curves.iter().any(|c| c.measure().is_none()) { defaults(job)? } else { Vec::new() };
        for (n, from) in curves.into_iter().enumerate() {
            let at = At { curve: n, x: 0, turned };
            let planned = match from {
                Origin::Formula(formula, _) => of_formula(job, formula, at, &defaults)?,
                Origin::Nothing(measure) if file.curves[n].run => plan.runs(job, measure, at, places)?,
                other => other,
            };
            plan.curves.push(planned);
        }
        Ok(plan)
    }

    fn runs(&self, job: &FigureJob<'_>, measure: Measure, at: At, places: usize) -> Result<Origin, Error> {
        let set = |x: usize| {
            let wanted = |s: usize| needs(&job.file.statements[s], at.curve, x, self.recording.is_some());
            if !at.turned.is_none_or(wanted) {
                return Ok(RunSet { runs: Vec::new() });
            }
            let at = At { x, ..at };
            let first = load(job, at, None)?;
            self.check(job, &measure, &first, at).map_err(Error::Figure)?;
            let room = first.seed.checked_add(u64::from(self.seeds));
            let end = room.ok_or_else(|| {
                Error::Input(format!(
                    "the seed {} leaves no room for {} seeds after it",
                    first.seed, self.seeds
                ))
            })?;
            let run = |seed| {
                let scenario = load(job, at, Some(seed))?;
                let cost = scenario.duration.as_secs_f64() * scenario.flows.len() as f64;
                Ok(Run { seed, key: self.key(&scenario), first: seed == first.seed, cost, at })
            };
            Ok(RunSet { runs: (first.seed..end).map(run).collect::<Result<_, Error>>()? })
        };
        // in their order, so that the first error is always the same one
        let sets: Vec<Result<RunSet, Error>> = (0..places).into_par_iter().map(set).collect();
        let sets = sets.into_iter().collect::<Result<_, _>>()?;
        Ok(Origin::Runs(measure, sets))
    }

    /// Checks that a run has what is measured.
    fn check(
        &self,
        job: &FigureJob<'_>,
        measure: &Measure,
        scenario: &Scenario,
        at: At,
    ) -> Result<(), Box<Diagnostic>> {
        measure.check(scenario, &job.file.curves[at.curve].measure)?;
        let steps = job.file.across.as_ref().and_then(|a| a.steps());
        let shortest = self.recording.as_ref().and_then(|r| r.too_short(scenario));
        if let Some((steps, shortest)) = steps.zip(shortest) {
            let message = format!("a step is too short for runs of {}", scenario.duration);
            return Err(steps.fault(message, format!("at least {shortest}")));
        }
        Ok(())
    }

    /// Returns the name of a run in the store.
    pub(crate) fn key(&self, scenario: &Scenario) -> String {
        let key = run_key(scenario);
        self.recording.as_ref().map_or_else(|| key.clone(), |r| r.key(&key))
    }

    /// Returns a number for the curve and the value of x of a run.
    pub(crate) fn cell(&self, run: &Run) -> usize {
        self.curves[..run.at.curve].iter().map(Origin::cells).sum::<usize>() + run.at.x
    }

    /// Returns how many of these numbers there are.
    pub(crate) fn cells(&self) -> usize {
        self.curves.iter().map(Origin::cells).sum()
    }

    /// Returns all runs, each once: curves of a table may have the same ones.
    pub(crate) fn distinct(&self) -> Vec<&Run> {
        let mut seen = BTreeSet::new();
        let sets = self.curves.iter().flat_map(|from| match from {
            Origin::Runs(_, sets) => &sets[..],
            Origin::Formula(..) | Origin::Nothing(_) => &[],
        });
        sets.flat_map(|set| &set.runs).filter(|run| seen.insert(run.key.as_str())).collect()
    }
}

fn of_formula(
    job: &FigureJob<'_>,
    formula: &'static Formula,
    at: At,
    defaults: &[(String, String)],
) -> Result<Origin, Error> {
    let values = || {
        arguments::check_names(job, at.curve, formula)?;
        let places = job.file.across.as_ref().map_or(1, |a| a.values.len());
        (0..places).map(|x| arguments::value(job, formula, At { x, ..at }, defaults)).collect()
    };
    let values: Result<Vec<Option<f64>>, Box<Diagnostic>> = values();
    Ok(Origin::Formula(formula, values.map_err(Error::Figure)?))
}

/// True if a statement is about this curve at this value of x, or at any if x is the time.
fn needs(statement: &Statement, curve: usize, x: usize, any: bool) -> bool {
    statement.points().iter().any(|point| point.0 == curve && (any || point.1 == x))
}

/// Returns the number of runs of a point.
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
