//! The live part of a figure, as a figure of its own: its curves and values of x, without statements.

use crate::error::Error;
use crate::figure::plan::{Origin, RunSet};
use crate::figure::{FigureJob, Plan, Run};
use bentpipe_scenario::figure_file::{Across, FigureFile, Live, Quick};
use bentpipe_scenario::{Diagnostic, SimulatedOnly};

/// Returns the figure of what is run live; `None` without `[live]`. Its shorter version has the parameters and
/// seeds of the simulated runs.
pub(crate) fn file_of(file: &FigureFile) -> Option<FigureFile> {
    let live = file.live.as_ref()?;
    let curve = |n: &usize| {
        let mut curve = file.curves[*n].clone();
        curve.run = true;
        curve
    };
    Some(FigureFile {
        curves: live.curves.iter().map(curve).collect(),
        across: file.across.as_ref().map(|across| only(across, &live.at)),
        quick: Some(Quick { sets: live.sets.clone(), seeds: live.seeds, tolerance: 0.0 }),
        live: None,
        references: Vec::new(),
        statements: Vec::new(),
        ..file.clone()
    })
}

/// Keeps some of the values of a parameter. A run has all steps of time, whichever are wanted.
fn only(across: &Across, at: &[usize]) -> Across {
    if across.steps().is_some() {
        return across.clone();
    }
    Across {
        values: at.iter().map(|n| across.values[*n].clone()).collect(),
        positions: at.iter().map(|n| across.positions[*n]).collect(),
        ..across.clone()
    }
}

/// What a figure runs live, with the simulated runs beside it.
pub(crate) struct LivePlan<'a> {
    pub(crate) of: &'a Live,
    /// The figure of [`file_of`].
    pub(crate) job: FigureJob<'a>,
    pub(crate) plan: Plan,
}

impl<'a> LivePlan<'a> {
    /// Plans the runs of `file`, which is [`file_of`] the job's; `None` without `[live]`.
    pub(crate) fn new(job: &FigureJob<'a>, file: Option<&'a FigureFile>) -> Result<Option<Self>, Error> {
        let (Some(of), Some(file)) = (&job.file.live, file) else { return Ok(None) };
        let job = FigureJob { file, quick: true, command: job.command.clone(), ..*job };
        let plan = Plan::of(&job, None)?;
        let planned = Self { of, job, plan };
        for run in planned.runs() {
            if let Some(what) = run.load(&planned.job)?.simulated_only() {
                return Err(Error::Figure(simulated_only(of, &what)));
            }
        }
        Ok(Some(planned))
    }

    /// Returns all live runs, each with the seed of a simulated one. Curves may have the same ones.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &Run> {
        let sets = self.plan.curves.iter().flat_map(|origin| match origin {
            Origin::Runs(_, sets) => &sets[..],
            Origin::Formula(..) | Origin::Nothing(_) => &[],
        });
        sets.flat_map(move |set| self.runs_of(set))
    }

    /// Returns the live runs of a set.
    pub(crate) fn runs_of<'b>(&self, set: &'b RunSet) -> impl Iterator<Item = &'b Run> + use<'b> {
        set.runs.iter().take(self.of.runs as usize)
    }
}

fn simulated_only(live: &Live, what: &SimulatedOnly) -> Box<Diagnostic> {
    Box::new(Diagnostic {
        message: format!("a run of `[live]` exists in simulated time only: {}", what.what),
        place: live.place.clone(),
        label: what.why.to_owned(),
        help: vec![format!("help: name other curves or values of x, or run it {}", what.instead)],
    })
}
