//! Writes `runs.csv`, `cells.csv` and the page.

use crate::error::{Error, file_error};
use crate::pictures::SweepPlot;
use crate::store::{Store, remove_files, write_file};
use crate::table::Table;
use crate::{page, pictures};
use bentpipe_plot::Formats;
use bentpipe_report::csv;
use std::collections::BTreeSet;
use std::path::Path;

/// Name of the page in the folder of a sweep or a search.
pub const PAGE: &str = "report.html";

/// Returns the table of which all files are made.
pub(crate) fn write(manifest: &str, store: &Store, out: &Path, formats: Formats) -> Result<Table, Error> {
    let table = Table::read(manifest, store)?;
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
    for SweepPlot { name, plot, .. } in &drawn {
        let drawn = Formats { svg: true, ..formats }.files(name, |mode| plot.to_svg(mode));
        files.extend(drawn.map_err(|e| Error::Input(format!("{}: {e}", out.join(name).display())))?);
    }
    files.push((PAGE.to_owned(), page::page(&table, &drawn, left_out).into_bytes()));
    for (name, bytes) in &files {
        write_file(&out.join(name), bytes)?;
    }
    // remove files of an earlier sweep, which would be mistaken for those of this one
    let names: BTreeSet<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    remove_files(out, |name| stale(name) && !names.contains(name)).map_err(file_error(out))?;
    Ok(table)
}

/// True for names of files that only some sweeps write.
fn stale(name: &str) -> bool {
    let curve = name.strip_prefix("curve-");
    let curve = curve.and_then(|rest| rest.strip_suffix(".svg").or_else(|| rest.strip_suffix(".png")));
    curve.is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit() || b == b'-'))
        || ["runs.parquet", "cells.parquet"].contains(&name)
}

fn runs(table: &Table) -> String {
    let rows = table.runs.iter().map(|(cell, seed, values)| {
        let mut row = table.cells[*cell].clone();
        row.push(seed.to_string());
        row.extend(values.iter().map(|v| number(*v)));
        row
    });
    csv(table.run_columns(), rows)
}

fn cells(table: &Table) -> String {
    let rows = table.cells.iter().zip(&table.figures).map(|(cell, figures)| {
        let mut row = cell.clone();
        row.extend(figures.iter().flat_map(|f| [number(f.mean), number(f.half_width), f.n.to_string()]));
        row
    });
    csv(table.cell_columns(), rows)
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |v| v.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::example;

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
        for (name, wanted) in [
            ("curve-1.svg", true),
            ("curve-12-3.png", true),
            ("curve-mine.svg", false),
            ("curve-1.jpg", false),
            ("runs.csv", false),
        ] {
            assert_eq!(stale(name), wanted, "{name}");
        }
    }
}
