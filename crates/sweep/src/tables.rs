//! `runs.csv`, `cells.csv` and the page, from the manifest and the store.

use crate::pictures::Picture;
use crate::plan::lost;
use crate::stats::{half_width, mean};
use crate::store::{Store, remove, write_file};
use crate::{Error, file_error, metric_error, page, pictures};
use bentpipe_sim::metric::Metric;
use rayon::prelude::*;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// What tables and pictures show.
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) axes: Vec<String>,
    pub(crate) metrics: Vec<Metric>,
    pub(crate) cells: Vec<Vec<String>>,
    /// Cell, seed, a value per metric.
    pub(crate) runs: Vec<(usize, u64, Vec<Option<f64>>)>,
    /// For each cell and metric what its runs gave.
    pub(crate) figures: Vec<Vec<Figure>>,
}

/// A metric in a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Figure {
    pub(crate) mean: Option<f64>,
    /// Of the 95 % interval.
    pub(crate) half_width: Option<f64>,
    /// Runs that have a value.
    pub(crate) n: usize,
}

fn broken() -> Error {
    Error::Input("sweep.json is not one that bentpipe wrote".to_owned())
}

fn texts(value: &Value) -> Result<Vec<String>, Error> {
    let list = value.as_array().ok_or_else(broken)?;
    list.iter().map(|v| v.as_str().map(str::to_owned).ok_or_else(broken)).collect()
}

fn read(manifest: &str) -> Result<Value, Error> {
    let value: Value = serde_json::from_str(manifest).map_err(|_| broken())?;
    if value["schema"] == 1 && value["semantics"] == crate::key::semantics() {
        return Ok(value);
    }
    Err(Error::Input(
        "the sweep was made by another version of bentpipe, whose results cannot be mixed with this one's\n\
         help: merge with the version that made the runs, or sweep again"
            .to_owned(),
    ))
}

/// Keys of all runs of a sweep. They become names of files: nothing but a hash is let through.
pub(crate) fn keys(manifest: &str) -> Result<Vec<String>, Error> {
    let value = read(manifest)?;
    let runs = value["runs"].as_array().ok_or_else(broken)?;
    let is_hash = |k: &&str| k.len() == 64 && k.bytes().all(|b| b.is_ascii_hexdigit());
    runs.iter().map(|r| r["key"].as_str().filter(is_hash).map(str::to_owned).ok_or_else(broken)).collect()
}

fn table(manifest: &str, store: &Store) -> Result<Table, Error> {
    let value = read(manifest)?;
    let metrics = texts(&value["measure"])?;
    let metrics: Vec<Metric> =
        metrics.iter().map(|t| Metric::parse(t).map_err(|e| metric_error(t, e))).collect::<Result<_, _>>()?;
    let axes = texts(&value["axes"])?;
    let cells: Vec<Vec<String>> =
        value["cells"].as_array().ok_or_else(broken)?.iter().map(texts).collect::<Result<_, _>>()?;
    if cells.iter().any(|c| c.len() != axes.len()) {
        return Err(broken());
    }
    let listed: Vec<(&Value, String)> =
        value["runs"].as_array().ok_or_else(broken)?.iter().zip(keys(manifest)?).collect();
    let one = |(run, key): &(&Value, String)| {
        let cell = run["cell"].as_u64().map(|c| c as usize).filter(|c| *c < cells.len());
        let (cell, seed) = cell.zip(run["seed"].as_u64()).ok_or_else(broken)?;
        let report = store.read(key).ok_or_else(|| lost(key))?;
        let values = metrics.iter().map(|m| m.of_json(&report).map_err(|e| metric_error(m.text(), e)));
        Ok((cell, seed, values.collect::<Result<_, _>>()?))
    };
    let runs: Vec<(usize, u64, Vec<Option<f64>>)> = listed.par_iter().map(one).collect::<Result<_, _>>()?;
    let figures = figures(cells.len(), metrics.len(), &runs);
    let title = value["title"].as_str().unwrap_or_default().to_owned();
    Ok(Table { title, axes, metrics, cells, runs, figures })
}

fn figures(cells: usize, metrics: usize, runs: &[(usize, u64, Vec<Option<f64>>)]) -> Vec<Vec<Figure>> {
    let mut values = vec![vec![Vec::new(); metrics]; cells];
    for (cell, _, of_run) in runs {
        for (list, value) in values[*cell].iter_mut().zip(of_run) {
            list.extend(*value);
        }
    }
    let figure = |v: &Vec<f64>| Figure { mean: mean(v), half_width: half_width(v), n: v.len() };
    values.iter().map(|cell| cell.iter().map(figure).collect()).collect()
}

/// Writes everything that people read.
pub(crate) fn write(manifest: &str, store: &Store, out: &Path) -> Result<(), Error> {
    let table = table(manifest, store)?;
    let (drawn, left_out) = pictures::draw(&table);
    let mut files: Vec<(String, Vec<u8>)> = vec![
        ("runs.csv".to_owned(), runs(&table).into_bytes()),
        ("cells.csv".to_owned(), cells(&table).into_bytes()),
    ];
    #[cfg(feature = "parquet")]
    files.extend([
        ("runs.parquet".to_owned(), crate::parquet::runs(&table)?),
        ("cells.parquet".to_owned(), crate::parquet::cells(&table)?),
    ]);
    for Picture { name, plot, .. } in &drawn {
        files.push((format!("{name}.svg"), plot.to_svg(bentpipe_plot::Mode::Standalone).into_bytes()));
    }
    files.push(("report.html".to_owned(), page::page(&table, &drawn, left_out).into_bytes()));
    for (name, bytes) in &files {
        write_file(&out.join(name), bytes)?;
    }
    // what an earlier sweep left in this folder would be taken for this one's
    let names: BTreeSet<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    remove(out, |name| stale(name) && !names.contains(name)).map_err(file_error(out))
}

/// True of names that some sweep might have written and another not.
fn stale(name: &str) -> bool {
    let curve = name.strip_prefix("curve-").and_then(|rest| rest.strip_suffix(".svg"));
    curve.is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit() || b == b'-'))
        || ["runs.parquet", "cells.parquet"].contains(&name)
}

/// Names of the columns of `runs.csv`.
pub(crate) fn run_columns(table: &Table) -> Vec<String> {
    let metrics = table.metrics.iter().map(Metric::column);
    table.axes.iter().cloned().chain(["seed".to_owned()]).chain(metrics).collect()
}

/// Names of the columns of `cells.csv`.
pub(crate) fn cell_columns(table: &Table) -> Vec<String> {
    let of = |c: String| [format!("{c}_mean"), format!("{c}_half_width_95"), format!("{c}_n")];
    table.axes.iter().cloned().chain(table.metrics.iter().flat_map(|m| of(m.column()))).collect()
}

fn runs(table: &Table) -> String {
    let rows = table.runs.iter().map(|(cell, seed, values)| {
        let mut row = table.cells[*cell].clone();
        row.push(seed.to_string());
        row.extend(values.iter().map(|v| number(*v)));
        row
    });
    csv([run_columns(table)].into_iter().chain(rows))
}

fn cells(table: &Table) -> String {
    let rows = table.cells.iter().zip(&table.figures).map(|(cell, figures)| {
        let mut row = cell.clone();
        row.extend(figures.iter().flat_map(|f| [number(f.mean), number(f.half_width), f.n.to_string()]));
        row
    });
    csv([cell_columns(table)].into_iter().chain(rows))
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |v| v.to_string())
}

/// RFC 4180, with bare line feeds.
fn csv(rows: impl Iterator<Item = Vec<String>>) -> String {
    let field = |f: &String| {
        if f.contains([',', '"', '\n', '\r']) { format!("\"{}\"", f.replace('"', "\"\"")) } else { f.clone() }
    };
    let mut out = String::new();
    for row in rows {
        out += &row.iter().map(field).collect::<Vec<_>>().join(",");
        out.push('\n');
    }
    out
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Two axes, two metrics; a run of the second cell has no value.
    pub(crate) fn example() -> Table {
        let cells = [["1e-3", "reno, old"], ["1e-2", "reno, old"]].map(|c| c.map(str::to_owned).to_vec());
        let runs = vec![
            (0, 1, vec![Some(1e6), Some(2.0)]),
            (0, 2, vec![Some(3e6), Some(2.0)]),
            (1, 1, vec![Some(0.5), None]),
        ];
        Table {
            title: "a <b> & c".to_owned(),
            axes: vec!["loss".to_owned(), "tcp".to_owned()],
            metrics: ["goodput", "finished[x1]"].map(|m| Metric::parse(m).unwrap()).to_vec(),
            figures: figures(2, 2, &runs),
            cells: cells.to_vec(),
            runs,
        }
    }

    #[test]
    fn columns_have_units_and_rows_what_was_measured() {
        let table = example();
        assert_eq!(
            runs(&table),
            "loss,tcp,seed,goodput_bps,finished[x1]_s\n\
             1e-3,\"reno, old\",1,1000000,2\n1e-3,\"reno, old\",2,3000000,2\n1e-2,\"reno, old\",1,0.5,\n"
        );
        assert_eq!(
            cells(&table),
            "loss,tcp,goodput_bps_mean,goodput_bps_half_width_95,goodput_bps_n,\
             finished[x1]_s_mean,finished[x1]_s_half_width_95,finished[x1]_s_n\n\
             1e-3,\"reno, old\",2000000,12706000,2,2,0,2\n1e-2,\"reno, old\",0.5,,1,,,0\n"
        );
    }

    #[test]
    fn what_an_earlier_sweep_left_is_known_by_its_name() {
        for (name, wanted) in
            [("curve-1.svg", true), ("curve-12-3.svg", true), ("curve-mine.svg", false), ("runs.csv", false)]
        {
            assert_eq!(stale(name), wanted, "{name}");
        }
    }

    #[test]
    fn a_manifest_that_is_none_is_refused() {
        for text in ["", "{}", "[]", "{\"schema\":1}"] {
            assert!(keys(text).is_err(), "{text}");
        }
        let with = |key: &str| {
            format!(
                "{{\"schema\":1,\"semantics\":\"{}\",\"runs\":[{{\"key\":\"{key}\"}}]}}",
                crate::key::semantics()
            )
        };
        assert!(keys(&with(&"0".repeat(64))).is_ok());
        for key in ["../../etc/passwd", "", &"g".repeat(64)] {
            assert!(keys(&with(key)).is_err(), "{key}");
        }
    }
}
