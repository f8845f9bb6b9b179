//! Values of the arguments of a formula: those of x, of the curve, of the file, of the scenario.

use super::FigureJob;
use super::formula::{Argument, Arguments, Formula};
use super::settings::{At, settings};
use bentpipe_base::names::{listed, nearest};
use bentpipe_scenario::figure_file::Located;
use bentpipe_scenario::{Diagnostic, Dimension, parse_amount};

/// Finds a formula by its name.
pub(crate) fn find(name: &Located<String>) -> Result<&'static Formula, Box<Diagnostic>> {
    Formula::named(&name.value).ok_or_else(|| {
        let near = nearest(&name.value, Formula::names());
        let label = near.map_or_else(String::new, |near| format!("did you mean `{near}`?"));
        let mut fault = name.fault(format!("there is no formula `{}`", name.value), label);
        fault.help.push(format!("help: formulas: {}", listed(Formula::names())));
        fault
    })
}

/// Checks that every name in `set` of a curve with a formula is an argument of it.
pub(crate) fn check_names(
    job: &FigureJob<'_>,
    curve: usize,
    formula: &Formula,
) -> Result<(), Box<Diagnostic>> {
    let known = || formula.arguments.iter().map(|a| a.name);
    let sets = &job.file.curves[curve].sets;
    let Some(wrong) = sets.iter().find(|s| !known().any(|name| name == s.name.value)) else { return Ok(()) };
    let near = nearest(&wrong.name.value, known());
    let label = near.map_or_else(String::new, |near| format!("did you mean `{near}`?"));
    let message = format!("the formula {} has no argument `{}`", formula.name, wrong.name.value);
    Err(help(wrong.name.fault(message, label), formula))
}

/// Returns the value of the formula of a curve at a value of x. `defaults` are the scenario's parameters.
pub(crate) fn value(
    job: &FigureJob<'_>,
    formula: &Formula,
    at: At,
    defaults: &[(String, String)],
) -> Result<Option<f64>, Box<Diagnostic>> {
    let given = settings(job, at);
    let place = || job.file.curves[at.curve].formula.as_ref().unwrap_or(&job.file.curves[at.curve].name);
    let mut values = Vec::new();
    let mut pieces = Vec::new();
    for argument in formula.arguments {
        let name = argument.name;
        let here = given.iter().rfind(|(n, _)| n.value == name).map(|(_, value)| *value);
        let default = defaults.iter().find(|(n, _)| n == name).map(|(_, text)| text.as_str());
        let Some(text) = here.map(|v| v.value.as_str()).or(default) else {
            let missing = || {
                let message = format!("the formula {} has no value for `{name}`", formula.name);
                help(place().fault(message, format!("give `{name}` in `set` of the curve")), formula)
            };
            values.push((name, argument.default.ok_or_else(missing)?));
            continue;
        };
        let amount = parse_amount(text).ok();
        match amount.map(|a| (a.dimension, a.value)) {
            Some((dimension, value)) if dimension == argument.dimension => values.push((name, value)),
            // a window in segments
            Some((Dimension::Pieces, value)) if in_segments(argument, formula) => pieces.push((name, value)),
            _ => {
                let label = format!("{name} is {}", argument.words);
                let message = format!("`{name}` of the formula {} cannot be {text}", formula.name);
                return Err(help(here.unwrap_or_else(place).fault(message, label), formula));
            }
        }
    }
    let mss = values.iter().find(|(name, _)| *name == "mss").map_or(f64::NAN, |(_, mss)| *mss);
    values.extend(pieces.into_iter().map(|(name, number)| (name, number * mss)));
    Ok(formula.value(&Arguments(values)))
}

/// True if the argument can be a number of segments.
fn in_segments(argument: &Argument, formula: &Formula) -> bool {
    argument.dimension == Dimension::Bytes
        && argument.name != "mss"
        && formula.arguments.iter().any(|a| a.name == "mss")
}

fn help(mut fault: Box<Diagnostic>, formula: &Formula) -> Box<Diagnostic> {
    fault.help.push(format!("help: arguments of {}: {}", formula.name, formula.arguments_in_words()));
    fault
}
