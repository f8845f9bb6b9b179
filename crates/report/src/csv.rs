//! Tables as CSV.

use bentpipe_base::names::csv_cell;

/// Formats a table as CSV (RFC 4180, but with LF); cells are quoted where necessary.
pub fn csv(head: Vec<String>, rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut out = String::new();
    for row in core::iter::once(head).chain(rows) {
        let cells: Vec<String> = row.iter().map(|cell| csv_cell(cell)).collect();
        out += &cells.join(",");
        out.push('\n');
    }
    out
}
