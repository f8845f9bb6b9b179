//! What a flow router costs on one core, and the flows below whose mean length it limits a trunk.

use crate::accept::list::{List, Outcome, Setup};
use crate::accept::setup::run_cargo;

/// Columns of the benchmark's table.
const COLUMNS: usize = 5;
/// Rows of the table, and sentences below it.
const ROWS: usize = 3;
const TRUNKS: usize = 2;

pub(super) fn cost(_: &Setup, list: &mut List) -> Outcome {
    let (text, ok) = run_cargo(&["bench", "--quiet", "--package", "bentpipe-flow-router"], &[]);
    let rows: Vec<Vec<&str>> = text.lines().filter_map(row).collect();
    for row in &rows {
        let figure = format!(
            "{} ns a packet, {} ns a SCONE packet, {} flows set up per second",
            row[1], row[2], row[4]
        );
        list.line(format!("{} flows with a rate (reported)", row[0]), figure, true);
    }
    let trunks: Vec<&str> = text.lines().map(str::trim).filter(|line| line.contains("(Y/X)")).collect();
    for trunk in &trunks {
        let (rate, length) = trunk.split_once(": ").unwrap_or((trunk, ""));
        list.line(format!("{rate}: mean flow below which the router limits (reported)"), length, true);
    }
    list.line("the benchmark ran", "", ok && rows.len() == ROWS && trunks.len() == TRUNKS);
    Ok(())
}

/// The numbers of a row of the table.
fn row(line: &str) -> Option<Vec<&str>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let are_numbers = words.len() == COLUMNS && words.iter().all(|word| word.parse::<f64>().is_ok());
    are_numbers.then_some(words)
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn rows_are_numbers() {
        assert_eq!(
            row("   1000   119   259   1112   899000"),
            Some(vec!["1000", "119", "259", "1112", "899000"])
        );
        assert_eq!((row("flows  ns ns ns ns"), row("1 2 3 4")), (None, None));
    }
}
