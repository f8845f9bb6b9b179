//! Cells of other simulators (1).

use crate::accept::List;
use crate::accept::place::Place;
use crate::accept::spine::cargo;
use crate::item::{Item, Verdict};

/// A table of the validation, or several whose names begin alike.
pub(super) struct Asked {
    /// The beginning of its name.
    pub(super) table: &'static str,
    /// Rows that are judged, at least.
    pub(super) rows: usize,
    /// What was asked, in words.
    pub(super) what: &'static str,
}

const LINES: [Asked; 5] = [
    Asked { table: "Random loss, without jitter: vegas", rows: 3, what: "Vegas as the reference sheet says" },
    Asked { table: "Random loss, CUBIC", rows: 6, what: "CUBIC as the reference sheet says" },
    Asked { table: "Random loss, Westwood+", rows: 3, what: "Westwood+ as ns-2's, with what is Linux's own" },
    Asked {
        table: "Random loss, the order of schemes",
        rows: 3,
        what: "Westwood+, Vegas, SACK and Hybla in the order of ns-2 and Hybla's paper",
    },
    Asked { table: "Random loss, BBR", rows: 3, what: "BBR within 6 % of ns-3 at 1e-4, 1e-3, 1e-2" },
];

pub(super) fn check(_: &Place, list: &mut List) {
    for asked in &LINES {
        list.line(1, &of_the_validation(asked));
    }
}

/// Makes the runs of the table, and only those.
pub(super) fn of_the_validation(asked: &Asked) -> Item {
    let package = ["run", "--quiet", "--release", "--package", "bentpipe-validate"];
    let (text, ok) = cargo(&[&package[..], &["--", "--only", asked.table]].concat());
    if ok {
        judged(asked, &text)
    } else {
        Item::new(asked.what, text.lines().next().unwrap_or("bentpipe-validate did not run"), Verdict::Miss)
    }
}

/// From the rows, each of which ends with its verdict.
fn judged(asked: &Asked, text: &str) -> Item {
    let ending = |word: &str| text.lines().filter(|l| l.trim_end().ends_with(word)).count();
    let (agree, miss) = (ending("agrees"), ending("MISSES"));
    let figure = match text.lines().collect::<Vec<_>>()[..] {
        // one row says its figure itself: behind its name, two spaces and more
        [row] => row.split("  ").map(str::trim).filter(|s| !s.is_empty()).nth(1).unwrap_or(row).to_owned(),
        _ => format!("{agree} agree, {miss} miss"),
    };
    Item::new(asked.what, figure, Verdict::of(agree >= asked.rows && miss == 0))
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn rows_are_counted_and_one_row_says_its_figure() {
        let asked = |rows| Asked { table: "t", rows, what: "w" };
        let two = "t: a  1.0  2.0 s  -5 % (6 %)  agrees\nt: b  1.0  2.0  -  agrees\n";
        assert_eq!(judged(&asked(2), two), Item::new("w", "2 agree, 0 miss", Verdict::Pass));
        assert_eq!(judged(&asked(3), two).verdict, Verdict::Miss);
        assert_eq!(
            judged(&asked(1), "t: a  0.82 s  0.83  MISSES\n"),
            Item::new("w", "0.82 s", Verdict::Miss)
        );
        assert_eq!(
            judged(&asked(0), "t: a  1  2  x  agrees\nt: b  1  2  x  MISSES\n").verdict,
            Verdict::Miss
        );
    }
}
