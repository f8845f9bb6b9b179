//! Tables for a terminal.

use crate::pictures::unit;
use crate::rounding::mean_and_half_width;
use crate::table::Table;
use bentpipe_report::aligned;
use core::fmt::Write as _;

/// Maximum number of rows; the page and the CSV file have more.
const MOST_ROWS: usize = 30;

/// Lays out the table of combinations, ending in a newline.
pub(crate) fn cells(table: &Table) -> String {
    let units: Vec<(String, f64)> = table.metrics.iter().map(unit).collect();
    let head = table.axes.iter().chain(units.iter().map(|(label, _)| label)).cloned().collect();
    let mut rows: Vec<Vec<String>> = vec![head];
    for (cell, figures) in table.cells.iter().zip(&table.figures) {
        let values = figures.iter().zip(&units).map(|(f, (_, scale))| mean_and_half_width(f, *scale));
        rows.push(cell.iter().cloned().chain(values).collect());
    }
    cut(rows, &(0..table.axes.len()).collect::<Vec<_>>(), "combinations are in cells.csv and on the page")
}

/// Lays out the first rows below a head, as [`aligned`] does, and says where the others are.
pub(crate) fn cut(mut rows: Vec<Vec<String>>, left: &[usize], others: &str) -> String {
    let left_out = rows.len().saturating_sub(1 + MOST_ROWS);
    rows.truncate(1 + MOST_ROWS);
    let mut out = aligned(&rows, left);
    if left_out > 0 {
        let _ = writeln!(out, "{left_out} more {others}.");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::example;

    #[test]
    fn columns_are_aligned_and_a_long_table_says_where_the_rest_is() {
        let mut table = example();
        assert_eq!(
            cells(&table),
            "loss  tcp        goodput, Mbit/s  end of the transfer of x1, s\n\
             1e-3  reno, old           2 ± 13                         2 ± 0\n\
             1e-2  reno, old             5e-7                      no value\n"
        );
        table.cells = vec![table.cells[0].clone(); 32];
        table.figures = vec![table.figures[0].clone(); 32];
        let text = cells(&table);
        assert_eq!(text.lines().count(), 1 + MOST_ROWS + 1);
        assert!(text.ends_with("\n2 more combinations are in cells.csv and on the page.\n"), "{text}");
    }
}
