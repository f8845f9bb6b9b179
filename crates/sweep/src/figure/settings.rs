//! Parameters of the cells of a figure, and their scenarios.

use super::FigureJob;
use crate::error::Error;
use bentpipe_scenario::figure_file::{FigureCurve, Located, Setting};
use bentpipe_scenario::{Diagnostic, ParamValue, Scenario, load_with};

/// Which cell a run belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    pub(crate) curve: usize,
    /// Index of the value of x.
    pub(crate) x: usize,
    /// The statement whose `turn` is added.
    pub(crate) turned: Option<usize>,
}

/// The name of a parameter and its value.
pub(crate) type Pair<'a> = (&'a Located<String>, &'a Located<String>);

fn pair(setting: &Setting) -> Pair<'_> {
    (&setting.name, &setting.value)
}

fn of_quick<'a>(job: &'a FigureJob<'_>) -> &'a [Setting] {
    job.file.quick.as_ref().filter(|_| job.quick).map_or(&[], |q| &q.sets)
}

/// Returns the parameters of a cell, the later one of a name wins: the file's, the curve's, those of the
/// shorter version, x, those that turn a statement.
pub(crate) fn settings<'a>(job: &'a FigureJob<'_>, at: At) -> Vec<Pair<'a>> {
    let file = job.file;
    let turned = at.turned.and_then(|s| file.statements[s].known.as_ref());
    let sets = file.sets.iter().chain(&file.curves[at.curve].sets).chain(of_quick(job)).map(pair);
    let x = file.across.as_ref().and_then(|a| Some((a.parameter()?, &a.values[at.x])));
    sets.chain(x).chain(turned.map_or(&[][..], |k| &k.turn).iter().map(pair)).collect()
}

/// Loads the scenario of a cell. `seed` replaces that of the file.
pub(crate) fn load(job: &FigureJob<'_>, at: At, seed: Option<u64>) -> Result<Scenario, Error> {
    load_set(job, &settings(job, at), seed, Some(&job.file.curves[at.curve]))
}

/// Returns the parameters of the scenario without those of curves and of x, as text.
pub(crate) fn defaults(job: &FigureJob<'_>) -> Result<Vec<(String, String)>, Error> {
    let sets: Vec<Pair<'_>> = job.file.sets.iter().chain(of_quick(job)).map(pair).collect();
    let scenario = load_set(job, &sets, None, None)?;
    let text = |value| match value {
        ParamValue::Text(text) => text,
        ParamValue::Number(n) => n.to_string(),
        ParamValue::Integer(n) => n.to_string(),
        ParamValue::Switch(on) => on.to_string(),
    };
    Ok(scenario.parameters.into_iter().map(|(name, value)| (name, text(value))).collect())
}

fn load_set(
    job: &FigureJob<'_>,
    settings: &[Pair<'_>],
    seed: Option<u64>,
    curve: Option<&FigureCurve>,
) -> Result<Scenario, Error> {
    let sets: Vec<(String, String)> =
        settings.iter().map(|(n, v)| (n.value.clone(), v.value.clone())).collect();
    load_with(job.scenario, &sets, seed, job.files)
        .map_err(|diagnostic| Error::Figure(in_figure(diagnostic, settings, curve)))
}

/// Moves an error of a parameter to its place in the figure file; one of the scenario says which curve it is.
fn in_figure(
    mut diagnostic: Box<Diagnostic>,
    settings: &[Pair<'_>],
    curve: Option<&FigureCurve>,
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
    let Some(curve) = curve else { return diagnostic };
    let words: Vec<String> = settings.iter().map(|(n, v)| format!("{} = {}", n.value, v.value)).collect();
    let with = if words.is_empty() { String::new() } else { format!(" with {}", words.join(", ")) };
    diagnostic.help.push(format!("note: in the curve `{}`{with}", curve.name.value));
    diagnostic
}
