//! Tables that other libraries take over without a copy, by the Arrow PyCapsule interface.

use crate::error;
use crate::watch::engine;
use arrow_array::cast::AsArray as _;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use bentpipe_sim::Record;
use bentpipe_sim::record::Series;
use bentpipe_sweep::CellTable;
use core::ffi::CStr;
use pyo3::IntoPyObjectExt as _;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};
use std::sync::Arc;

/// Names that the interface prescribes.
const STREAM: &CStr = c"arrow_array_stream";
const SCHEMA: &CStr = c"arrow_schema";

/// Columns of equal length.
#[pyclass(frozen, module = "bentpipe._native")]
#[derive(Debug)]
pub(crate) struct Table(RecordBatch);

/// A column and its name.
pub(crate) type Column = (String, ArrayRef);

#[pymethods]
impl Table {
    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Number of rows.
    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    /// The values of a column as a list, `None` where there is no value; no list if there is no such column.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyList>>> {
        self.0.column_by_name(name).map(|array| list(py, array)).transpose()
    }

    /// The table as a stream of the Arrow C interface. No other schema can be requested.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // the interface lets a producer ignore a request that it cannot serve
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), STREAM)
    }

    /// The names and types of the columns as a schema of the Arrow C interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.0.schema().as_ref());
        PyCapsule::new_with_value(py, schema.map_err(|e| faulty(py, &e))?, SCHEMA)
    }
}

impl Table {
    pub(crate) fn new(py: Python<'_>, columns: Vec<Column>) -> PyResult<Self> {
        let field = |(name, array): &Column| Field::new(name, array.data_type().clone(), true);
        let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
        let arrays = columns.into_iter().map(|(_, array)| array).collect();
        RecordBatch::try_new(Arc::new(schema), arrays).map(Self).map_err(|e| faulty(py, &e))
    }
}

/// Columns of different lengths: only a bug makes them.
fn faulty(py: Python<'_>, error: &ArrowError) -> PyErr {
    error::bug(py, &error.to_string())
}

fn list<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Bound<'py, PyList>> {
    match array.data_type() {
        DataType::Float64 => PyList::new(py, array.as_primitive::<Float64Type>().iter().collect::<Vec<_>>()),
        DataType::Int64 => PyList::new(py, array.as_primitive::<Int64Type>().iter().collect::<Vec<_>>()),
        _ => {
            let texts = array.as_string::<i32>().iter().map(|text| text.into_bound_py_any(py));
            PyList::new(py, texts.collect::<PyResult<Vec<_>>>()?)
        }
    }
}

/// Numbers of which some are missing.
pub(crate) fn numbers(values: impl Iterator<Item = Option<f64>>) -> ArrayRef {
    Arc::new(values.map(|v| v.filter(|v| !v.is_nan())).collect::<Float64Array>())
}

/// Texts.
pub(crate) fn texts<'a>(values: impl Iterator<Item = &'a str>) -> ArrayRef {
    // the array asks for the number of values
    Arc::new(StringArray::from_iter_values(values.collect::<Vec<_>>()))
}

/// Counts, which are far below 2^63.
pub(crate) fn counts(values: impl Iterator<Item = usize>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values.map(|n| n as i64)))
}

/// The course of a run in the form of `series.csv`: a row for each interval and flow or link direction.
pub(crate) fn series(py: Python<'_>, record: &Record) -> PyResult<Table> {
    let make = || {
        let times = record.time_s.len();
        let all: Vec<(&str, &Series)> = (record.flows.iter().map(|s| ("flow", s)))
            .chain(record.links.iter().map(|s| ("link", s)))
            .collect();
        let rows = || (0..times).flat_map(|i| all.iter().map(move |(kind, s)| (i, *kind, *s)));
        let mut columns: Vec<Column> = vec![
            ("time_s".to_owned(), numbers(rows().map(|(i, ..)| record.time_s.get(i).copied()))),
            ("kind".to_owned(), texts(rows().map(|(_, kind, _)| kind))),
            ("name".to_owned(), texts(rows().map(|(.., series)| series.name.as_str()))),
        ];
        let firsts = record.flows.first().into_iter().chain(record.links.first());
        for key in firsts.flat_map(|s| s.columns.iter().map(|c| c.key)) {
            let value = |(i, _, s): (usize, &str, &Series)| s.column(key).and_then(|c| c.get(i)).copied();
            columns.push((key.to_owned(), numbers(rows().map(value))));
        }
        columns
    };
    Table::new(py, engine(py, make)?)
}

/// The cells of a sweep. The axes in `numeric` were given as numbers, and are numbers again.
pub(crate) fn cells(py: Python<'_>, table: &CellTable, numeric: &[String]) -> PyResult<Table> {
    let mut columns: Vec<Column> = Vec::new();
    for (name, values) in &table.axes {
        let whole: Option<Vec<i64>> = values.iter().map(|v| v.parse().ok()).collect();
        let array = match whole {
            _ if !numeric.contains(name) => texts(values.iter().map(String::as_str)),
            Some(whole) => Arc::new(Int64Array::from_iter_values(whole)),
            None => numbers(values.iter().map(|v| v.parse().ok())),
        };
        columns.push((name.clone(), array));
    }
    for metric in &table.metrics {
        let bound = |sign: f64| {
            let both = metric.mean.iter().zip(&metric.half_width);
            numbers(both.map(move |(mean, half)| Some(mean.as_ref()? + sign * half.as_ref()?)))
        };
        columns.extend([
            (metric.name.clone(), numbers(metric.mean.iter().copied())),
            (format!("{}_low", metric.name), bound(-1.0)),
            (format!("{}_high", metric.name), bound(1.0)),
            (format!("{}_n", metric.name), counts(metric.n.iter().copied())),
        ]);
    }
    Table::new(py, columns)
}
