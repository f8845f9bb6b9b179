//! What there is: congestion control schemes and their parameters.

use crate::json::to_python;
use bentpipe_tcp::Scheme;
use bentpipe_tcp::cc::law::Value as Setting;
use pyo3::prelude::*;
use serde_json::{Map, Value, json};

/// The built-in schemes by name, each with its parameters: default (times in seconds) and meaning.
#[pyfunction]
pub(crate) fn schemes(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let all: Map<String, Value> =
        Scheme::all().take(Scheme::NAMES.len()).map(|s| (s.name.to_owned(), parameters(&s))).collect();
    to_python(py, &all.into())
}

fn parameters(scheme: &Scheme) -> Value {
    let one = |(param, value): (&'static bentpipe_tcp::cc::law::Param, Setting)| {
        let default = match value {
            Setting::Number(number) => json!(number),
            Setting::Switch(on) => json!(on),
            Setting::Time(time) => json!(time.as_secs_f64()),
        };
        (param.name.to_owned(), json!({ "default": default, "doc": param.doc.join(" ") }))
    };
    scheme.growth.params().map(one).collect::<Map<_, _>>().into()
}
