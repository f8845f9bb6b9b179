//! Errors as exceptions of `bentpipe._errors`.

use bentpipe_report::metric;
use bentpipe_scenario::Diagnostic;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Creates an exception of `bentpipe._errors` from its class and keyword arguments.
fn exception(py: Python<'_>, class: &str, fill: impl FnOnce(&Bound<'_, PyDict>) -> PyResult<()>) -> PyErr {
    let make = || {
        let fields = PyDict::new(py);
        fill(&fields)?;
        py.import("bentpipe._errors")?.getattr(class)?.call((), Some(&fields))
    };
    make().map_or_else(|error| error, PyErr::from_value)
}

/// An error in a scenario or in values given for its parameters. In the words of Python, these were not
/// written behind `--set`.
pub(crate) fn diagnostic(py: Python<'_>, error: &Diagnostic) -> PyErr {
    in_option(py, error, "with_")
}

/// The same for a value of a parameter that was given to `option`. Other options of the command are
/// arguments of the same name.
pub(crate) fn in_option(py: Python<'_>, error: &Diagnostic, option: &str) -> PyErr {
    let mut error = error.clone();
    let place = &mut error.place;
    let given = (place.text.strip_prefix("--")).filter(|_| place.name == "command line");
    if let Some((name, _)) = given.and_then(|text| text.split_once(' ')) {
        let before = "--".len() + name.len() + " ".len();
        place.name = if name == "set" { option } else { name }.to_owned();
        place.text.drain(..before);
        place.offset = place.offset.saturating_sub(before);
        place.column = place.column.saturating_sub(before).max(1);
    }
    exception(py, "ScenarioError", |fields| {
        let place = &error.place;
        fields.set_item("rendered", error.to_string())?;
        fields.set_item("message", &error.message)?;
        fields.set_item("place", (&place.name, place.line, place.column, &place.text))?;
        fields.set_item("label", &error.label)?;
        fields.set_item("help", &error.help)
    })
}

/// A metric that cannot be parsed, or that the run does not have.
pub(crate) fn metric(py: Python<'_>, error: &metric::Error) -> PyErr {
    input(py, &error.to_string())
}

/// An input that is refused, in the words of the command line.
pub(crate) fn input(py: Python<'_>, text: &str) -> PyErr {
    exception(py, "InputError", |fields| fields.set_item("text", text))
}

/// A bug of bentpipe.
pub(crate) fn bug(py: Python<'_>, text: &str) -> PyErr {
    exception(py, "BugError", |fields| fields.set_item("text", text))
}

/// A file or folder that cannot be read or written, in the words of the command line.
pub(crate) fn system(text: &str) -> PyErr {
    PyOSError::new_err(text.to_owned())
}
