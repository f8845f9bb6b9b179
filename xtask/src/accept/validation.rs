//! Checks tables of the validation by their names.

use super::list::{List, Outcome, last_line, run_cargo};
use crate::item::Item;

/// Prefix of the names of tables, the least number of their rows that agree, and the requirement in words.
pub(super) type TableCheck = (&'static str, usize, &'static str);

/// Runs the whole validation and prints a line; returns its output.
pub(super) fn all(list: &mut List, what: &str) -> String {
    let (text, ok) = run_cargo(&["run", "--quiet", "--release", "--bin", "bentpipe-validate"], &[]);
    list.line(what, last_line(&text), ok);
    text
}

/// Prints a line for each of the tables; runs only these.
pub(super) fn tables(list: &mut List, tables: &[TableCheck]) -> Outcome {
    for asked in tables {
        let (table, _, what) = *asked;
        let package = ["run", "--quiet", "--release", "--bin", "bentpipe-validate"];
        let (text, ok) = run_cargo(&[&package[..], &["--", "--only", table]].concat(), &[]);
        if ok {
            list.item(&judged(asked, &text));
        } else {
            list.miss(what, text.lines().next().unwrap_or("bentpipe-validate did not run"));
        }
    }
    Ok(())
}

/// Judges the rows, each of which ends with its verdict.
fn judged(&(_, least, what): &TableCheck, text: &str) -> Item {
    let (agree, miss, _) = count(text, "");
    let figure = match text.lines().collect::<Vec<_>>()[..] {
        // a single row shows its figure: after its name, separated by two or more spaces
        [row] => row.split("  ").map(str::trim).filter(|s| !s.is_empty()).nth(1).unwrap_or(row).to_owned(),
        _ => format!("{agree} agree, {miss} miss"),
    };
    Item::new(what, figure, agree >= least && miss == 0)
}

/// Counts rows whose names contain `table`: those that agree, that miss, and that are only reported.
pub(super) fn count(text: &str, table: &str) -> (usize, usize, usize) {
    let rows = || text.lines().filter(|l| l.contains(table));
    let ending = |word: &str| rows().filter(|l| l.trim_end().ends_with(word)).count();
    let (agree, miss) = (ending("agrees"), ending("MISSES"));
    (agree, miss, rows().count() - agree - miss)
}

#[cfg(test)]
mod unit {
    use super::*;
    use crate::item::Verdict;

    #[test]
    fn rows_are_counted_and_one_row_says_its_figure() {
        let asked = |rows| ("t", rows, "w");
        let two = "t: a  1.0  2.0 s  -5 % (6 %)  agrees\nt: b  1.0  2.0  -  agrees \nu: c 1 -\n";
        assert_eq!((count(two, ""), count(two, "u:")), ((2, 0, 1), (0, 0, 1)));
        assert_eq!(judged(&asked(2), two), Item::new("w", "2 agree, 0 miss", Verdict::Pass));
        assert_eq!(judged(&asked(3), two).verdict, Verdict::Miss);
        assert_eq!(
            judged(&asked(1), "t: a  0.82 s  0.83  MISSES\n"),
            Item::new("w", "0.82 s", Verdict::Miss)
        );
        let mixed = "t: a  1  2  x  agrees\nt: b  1  2  x  MISSES\n";
        assert_eq!(judged(&asked(0), mixed).verdict, Verdict::Miss);
    }
}
