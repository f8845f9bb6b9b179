//! `[sweep]`: the runs that `bentpipe sweep` makes of a file.

use crate::diagnostic::{Diagnostic, Fault, Result, bail, did_you_mean, listed};
use crate::form::{At, Keys as _, optional};
use crate::keys::{FileKeys, PrecisionKeys, SweepKeys};
use crate::lists::one_notation;
use crate::parameters::Parameters;
use crate::source::{Source, Sources};
use crate::value;

const MAX_CELLS: usize = 1_000_000;

/// Number of runs of each point if no file and no option says otherwise.
pub const DEFAULT_SEEDS: u32 = 5;

/// A sweep: one cell for each combination of values, several seeds per cell.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepSpec {
    /// Parameters and their values, as `--set` takes them, in file order.
    pub axes: Vec<(String, Vec<String>)>,
    /// Number of runs of each cell.
    pub seeds: u32,
    /// Metrics to record, as written in the file.
    pub measure: Vec<String>,
    /// Precision up to which seeds are added; `None`: always `seeds` runs.
    pub precision: Option<Precision>,
}

/// The sweep of a file without a `[sweep]` table: no axes, so a single cell.
impl Default for SweepSpec {
    fn default() -> Self {
        Self { axes: Vec::new(), seeds: DEFAULT_SEEDS, measure: vec!["goodput".to_owned()], precision: None }
    }
}

impl SweepSpec {
    /// Adds an axis after the others, or replaces the values of the one of this name.
    pub fn set_axis(&mut self, name: &str, values: Vec<String>) {
        let values = one_notation(values);
        match self.axes.iter_mut().find(|(axis, _)| axis == name) {
            Some(axis) => axis.1 = values,
            None => self.axes.push((name.to_owned(), values)),
        }
    }

    /// Lets axes whose parameter is set keep that value only, and returns the sets of no axis.
    #[must_use]
    pub fn keep(&mut self, sets: &[(String, String)]) -> Vec<(String, String)> {
        for (name, values) in &mut self.axes {
            if let Some((_, value)) = sets.iter().rfind(|(set, _)| set == name) {
                *values = vec![value.clone()];
            }
        }
        sets.iter().filter(|(name, _)| self.axes.iter().all(|(axis, _)| axis != name)).cloned().collect()
    }
}

/// Required precision of a mean.
#[derive(Clone, Debug, PartialEq)]
pub struct Precision {
    /// Metric, one of the sweep's `measure`.
    pub of: String,
    /// Half-width of the 95 % confidence interval divided by the mean, more than 0 and less than 1.
    pub relative: f64,
    /// Maximum number of runs of a cell, at least the sweep's `seeds`.
    pub max_seeds: u32,
}

/// Reads the `[sweep]` table of a scenario file; `None` if there is none.
///
/// # Errors
/// The first error in the table, an axis that is not a parameter, or invalid TOML. The rest of the file is
/// checked by [`crate::load`].
pub fn sweep(source: &Source) -> core::result::Result<Option<SweepSpec>, Box<Diagnostic>> {
    read(source).map_err(|fault| fault.into_diagnostic(&Sources::new(source, &[])))
}

fn read(source: &Source) -> Result<Option<SweepSpec>> {
    let root = value::parse(source)?;
    FileKeys::REF.check(&root, "the file", &[])?;
    let parameters = Parameters::read(&root, &[])?;
    let keys = optional::<SweepKeys>(&root, "sweep")?;
    keys.map(|keys| resolve(&keys, &parameters)).transpose()
}

/// Checks a sweep against the parameters of its file.
pub(crate) fn resolve(given: &At<SweepKeys>, parameters: &Parameters) -> Result<SweepSpec> {
    let keys = &given.value;
    let mut cells = 1_usize;
    for axis in &keys.axes.value {
        if !parameters.names().any(|name| name == axis.name) {
            return Err(parameters.unknown(&axis.name, axis.span));
        }
        cells = cells.saturating_mul(axis.values.len());
    }
    if cells > MAX_CELLS {
        let label = format!("these are {cells}, the limit is {MAX_CELLS}");
        return Err(Fault::new(keys.axes.span, "there are too many combinations", label));
    }
    let measure = keys.measure.as_ref().map_or_else(|| vec!["goodput".to_owned()], |m| m.value.clone());
    let seeds = keys.seeds.map_or(DEFAULT_SEEDS, |s| s.value.0 as u32);
    let precision = keys.precision.as_ref().map(|p| precision(p, seeds, &measure)).transpose()?;
    let axes = keys.axes.value.iter().map(|a| (a.name.clone(), a.values.clone())).collect();
    Ok(SweepSpec { axes, seeds, measure, precision })
}

fn precision(given: &At<PrecisionKeys>, seeds: u32, measure: &[String]) -> Result<Precision> {
    let keys = &given.value;
    let of = &keys.of.value.0;
    if !measure.contains(of) {
        let names = || measure.iter().map(String::as_str);
        return Err(Fault::new(keys.of.span, format!("`{of}` is not measured"), did_you_mean(of, names()))
            .help(format!("help: measured are {}", listed(names()))));
    }
    let relative = keys.relative.fraction("relative")?;
    let max_seeds = keys.max_seeds.map_or(50.max(seeds), |s| s.value.0 as u32);
    if let Some(wrong) = keys.max_seeds.filter(|_| max_seeds < seeds) {
        bail!(wrong.span, "`max_seeds` is less than `seeds`", "that is {seeds}");
    }
    Ok(Precision { of: of.clone(), relative, max_seeds })
}
