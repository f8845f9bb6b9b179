//! Formatting of numbers and tables.

use crate::link::Counts;
use bentpipe_base::names::csv_cell;
use core::fmt::Write as _;

/// Formats "0.9 of 1.54 Mbit/s"; only the part if the whole is unknown.
pub(crate) fn part_of_rate(part: f64, whole: u64) -> String {
    if whole == 0 {
        return rate(part);
    }
    let (unit, name) = unit_of(whole as f64);
    format!("{} of {} {name}", decimals(part / unit, 3), decimals(whole as f64 / unit, 3))
}

/// Formats "1.54 Mbit/s".
pub(crate) fn rate(bps: f64) -> String {
    let (unit, name) = unit_of(bps);
    format!("{} {name}", decimals(bps / unit, 3))
}

fn unit_of(bps: f64) -> (f64, &'static str) {
    match bps {
        b if b >= 1e9 => (1e9, "Gbit/s"),
        b if b >= 1e6 => (1e6, "Mbit/s"),
        b if b >= 1e3 => (1e3, "kbit/s"),
        _ => (1.0, "bit/s"),
    }
}

/// Formats "3.1 MB".
pub(crate) fn bytes(n: u64) -> String {
    let (unit, name) = match n {
        1_000_000.. => (1e6, "MB"),
        1_000.. => (1e3, "kB"),
        _ => (1.0, "B"),
    };
    format!("{} {name}", decimals(n as f64 / unit, 2))
}

/// Formats whole percent, with more digits if the result would be 0 or 100 but is neither.
pub(crate) fn percent(share: f64) -> String {
    let p = share * 100.0;
    if (p > 0.0 && p < 1.0) || (p < 100.0 && p > 99.5) { format!("{p:.2} %") } else { format!("{p:.0} %") }
}

/// Formats "1 flow" or "2 flows".
pub(crate) fn counted(n: u64, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// Lays out rows of the same length as lines. The columns `left` are aligned to the left, the others to the
/// right.
pub fn aligned<R: AsRef<[String]>>(rows: &[R], left: &[usize]) -> String {
    let columns = rows.first().map_or(0, |row| row.as_ref().len());
    let width = |n: usize| rows.iter().map(|row| row.as_ref()[n].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let cell = |(n, (cell, width)): (usize, (&String, &usize))| {
            if left.contains(&n) { format!("{cell:width$}") } else { format!("{cell:>width$}") }
        };
        let cells: Vec<String> = row.as_ref().iter().zip(&widths).enumerate().map(cell).collect();
        let _ = writeln!(out, "{}", cells.join("  ").trim_end());
    }
    out
}

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

/// Formats counts as "2 mid stream, 1 signed".
pub(crate) fn counts_in_words(counts: &Counts) -> String {
    let each: Vec<String> = counts.iter().map(|(key, n)| format!("{n} {}", key.replace('_', " "))).collect();
    each.join(", ")
}

/// Formats at most `digits` decimals, without trailing zeros.
pub fn decimals(v: f64, digits: usize) -> String {
    let text = format!("{v:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(part_of_rate(900_123.0, 1_544_000), "0.9 of 1.544 Mbit/s");
        assert_eq!(part_of_rate(900_123.0, 0), "900.123 kbit/s");
        assert_eq!(rate(0.0), "0 bit/s");
        assert_eq!(percent(0.932), "93 %");
        assert_eq!(percent(0.0042), "0.42 %");
        assert_eq!(percent(0.9978), "99.78 %");
        assert_eq!(decimals(100.0, 3), "100");
    }
}
