//! Writes the page of the book and the summary for the terminal.

use crate::check::{CheckResult, Verdict};
use crate::figures::Figure;
use crate::format::row;
use crate::table::{NOTHING, Table};
use bentpipe_report::aligned;
use core::fmt::Write as _;

/// The page with places for the result, for figures and for tables of checks.
const TEMPLATE: &str = include_str!("../data/page.md");

/// A part of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A line as it is.
    Text(&'static str),
    /// The summary.
    Result,
    /// The table and picture of a figure file.
    Figure(&'static str),
    /// A table of checks in code, by its title.
    Checks(&'static str),
}

/// The parts of the page, in order.
pub fn parts() -> impl Iterator<Item = Part> {
    TEMPLATE.lines().map(|line| {
        let place = line.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
        match place.map(|place| place.split_once(' ').unwrap_or((place, ""))) {
            Some(("result", _)) => Part::Result,
            Some(("figure", path)) => Part::Figure(path),
            Some(("checks", title)) => Part::Checks(title),
            _ => Part::Text(line),
        }
    })
}

/// The figures of the page.
///
/// # Errors
/// The first file that cannot be read.
pub fn figures() -> Result<Vec<Figure>, String> {
    let figure = |part| if let Part::Figure(path) = part { Some(Figure::read(path)) } else { None };
    parts().filter_map(figure).collect()
}

/// Puts results of checks together by their tables.
pub fn tables(judged: &[CheckResult]) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    for j in judged {
        let of = j.check.table;
        if tables.last().is_none_or(|t| t.title != of.title) {
            tables.push(crate::format::table(of, j));
        }
        if let Some(table) = tables.last_mut() {
            table.rows.push(row(j));
        }
    }
    tables
}

/// The whole page.
pub fn markdown(tables: &[Table]) -> String {
    let mut out = String::new();
    let mut figures = figures().into_iter().flatten();
    for part in parts() {
        match part {
            Part::Text(line) => writeln!(out, "{line}"),
            Part::Result => {
                let _ = writeln!(out, "{}.", summary(tables));
                misses(&mut out, tables);
                Ok(())
            }
            Part::Figure(_) => {
                let title = figures.next().map(|f| f.title().to_owned()).unwrap_or_default();
                write!(out, "{}", find(tables, &title))
            }
            Part::Checks(title) => write!(out, "{}", find(tables, title)),
        }
        .unwrap_or(());
    }
    out
}

fn find(tables: &[Table], title: &str) -> String {
    tables.iter().find(|t| t.title == title).map_or_else(String::new, table)
}

/// The result in one line, without Markdown.
pub fn summary(tables: &[Table]) -> String {
    let rows = || tables.iter().flat_map(|t| t.rows.iter().map(move |row| (t, row)));
    let count = |v| rows().filter(|(_, row)| row.verdict == v).count();
    let (agrees, misses) = (count(Verdict::Agrees), count(Verdict::Misses));
    let worst = rows()
        .filter(|(_, row)| row.verdict != Verdict::Differs)
        .filter_map(|(table, row)| Some((row.used?, table.name(row))))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map_or(String::new(), |(used, name)| {
            format!(", worst uses {:.0} % of its tolerance ({name})", used * 100.0)
        });
    let (checks, unjudged, known) = (agrees + misses, count(Verdict::Unjudged), count(Verdict::Differs));
    format!(
        "{checks} checks, {agrees} passed, {misses} missed{worst}; {unjudged} more reported without verdict, \
         {known} of papers that are known to differ"
    )
}

fn misses(out: &mut String, tables: &[Table]) {
    for table in tables {
        for row in table.rows.iter().filter(|row| row.verdict == Verdict::Misses) {
            let from =
                if row.expected == NOTHING { String::new() } else { format!(", expected {}", row.expected) };
            let name = table.name(row);
            let _ = writeln!(
                out,
                "\n**Missed:** {name}: {}{from}; allowed {}.",
                row.ours.trim_end(),
                row.allowed
            );
        }
    }
}

fn table(table: &Table) -> String {
    let mut out = table.head.clone();
    let mut line = |cells: &[String], verdict: &str| {
        let _ = writeln!(out, "| {} | {verdict} |", cells.join(" | "));
    };
    let rule = |n: usize| if n < table.words { "---" } else { "--:" }.to_owned();
    line(&table.columns, "verdict");
    line(&(0..table.columns.len()).map(rule).collect::<Vec<_>>(), "---");
    for row in &table.rows {
        line(
            &row.cells,
            match row.verdict {
                Verdict::Agrees => "agrees",
                Verdict::Misses => "**misses**",
                Verdict::Differs => "differs",
                Verdict::Unjudged => NOTHING,
            },
        );
    }
    out + &table.foot
}

/// All rows, one per line, for the terminal.
pub fn terminal(tables: &[Table]) -> String {
    let mut rows = Vec::new();
    for table in tables {
        for row in &table.rows {
            let verdict = match row.verdict {
                Verdict::Agrees => "agrees",
                Verdict::Misses => "MISSES",
                Verdict::Differs => "differs",
                Verdict::Unjudged => "-",
            };
            let cells = [&table.name(row), &row.ours, &row.expected, &row.allowed, verdict];
            rows.push(cells.map(|cell| cell.trim_end().to_owned()));
        }
    }
    aligned(&rows, &[0, 4])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Row;
    use std::slice;

    fn row(ours: &str, used: f64, verdict: Verdict) -> Row {
        Row {
            name: "sack, loss = 1e-2".to_owned(),
            ours: format!("{ours} Mbit/s"),
            expected: "3.3637 Mbit/s".to_owned(),
            allowed: "3.1619 to 3.5655".to_owned(),
            cells: ["as in ns-2", "sack, loss = 1e-2", "5", ours, "3.3637", "3.1619 to 3.5655"]
                .map(str::to_owned)
                .into(),
            used: Some(used),
            verdict,
        }
    }

    #[test]
    fn a_miss_is_hard_to_overlook() {
        let title = "Random loss, with sender jitter".to_owned();
        let columns = ["statement", "value", "runs", "bentpipe, Mbit/s", "ns-2, Mbit/s", "accepted"];
        let rows =
            vec![row("3.335 ± 0.0447", 0.14, Verdict::Agrees), row("3.04 ± 0.0447", 1.6, Verdict::Misses)];
        let table =
            Table { title, columns: columns.map(str::to_owned).into(), words: 2, rows, ..Table::default() };
        let page = markdown(slice::from_ref(&table));
        let line =
            "| as in ns-2 | sack, loss = 1e-2 | 5 | 3.335 ± 0.0447 | 3.3637 | 3.1619 to 3.5655 | agrees |";
        assert!(page.contains(line), "{page}");
        let missed = "**Missed:** Random loss, with sender jitter: sack, loss = 1e-2: 3.04 ± 0.0447 Mbit/s, expected \
                      3.3637 Mbit/s; allowed 3.1619 to 3.5655.";
        assert!(page.contains(missed), "{page}");
        let beginning = "2 checks, 1 passed, 1 missed, worst uses 160 % of its tolerance (Random";
        assert!(summary(slice::from_ref(&table)).starts_with(beginning));
        assert!(terminal(slice::from_ref(&table)).contains("MISSES"));
    }

    #[test]
    fn what_is_known_to_differ_is_no_miss_and_has_its_reason_below() {
        let title = "Random loss, with sender jitter".to_owned();
        let foot = "\n*more*: there is less. It holds with `loss = 0`.\n".to_owned();
        let rows = vec![row("3.335", 0.14, Verdict::Agrees), row("3.04", 1.6, Verdict::Differs)];
        let table = Table { title, foot, rows, ..Table::default() };
        let summary = summary(slice::from_ref(&table));
        assert!(summary.starts_with("1 checks, 1 passed, 0 missed, worst uses 14 %"), "{summary}");
        assert!(summary.ends_with("1 of papers that are known to differ"), "{summary}");
        let page = markdown(slice::from_ref(&table));
        assert!(page.contains("| differs |\n\n*more*: there is less.") && !page.contains("Missed"), "{page}");
    }
}
