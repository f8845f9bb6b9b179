//! Receivers with a 65 535 B window whose program reads slowly, at alternating rates, or with stops. All
//! are simulated and run live; without `--long` only one live case of each kind.

use super::run::TestBed;
use crate::accept::list::{List, Outcome};
use crate::item::Item;

const A_FEW: [&str; 3] = ["12 Mbit/s", "24/2 Mbit/s every 5 s", "stops of 0.5 s"];
const CASES: usize = 26;

/// Number of connection kinds whose captures before and after the gateway are compared.
const KINDS: usize = 6;

pub(super) fn check(bed: &TestBed, list: &mut List) -> Outcome {
    lines(list, "readers, simulated", &bed.text(&["readers"])?, CASES);
    if bed.long {
        lines(list, "readers, live", &bed.text(&["readers", "--live"])?, CASES);
        return Ok(());
    }
    for case in A_FEW {
        lines(list, "readers, live", &bed.text(&["readers", "--live", "--only", case])?, 1);
    }
    Ok(())
}

/// Checks what the gateway must not change.
pub(super) fn untouched(bed: &TestBed, list: &mut List) -> Outcome {
    lines(list, "before and after the gateway", &bed.text(&["untouched"])?, KINDS);
    Ok(())
}

/// Parses the program's output lines: case, figures, verdict.
fn lines(list: &mut List, how: &str, text: &str, expected: usize) {
    text.lines().for_each(|line| list.item(&item(how, line)));
    let n = text.lines().count();
    if n != expected {
        list.miss(format!("{how}: cases"), &format!("{n} of {expected}"));
    }
}

fn item(how: &str, line: &str) -> Item {
    let (rest, verdict) = line.trim_end().rsplit_once(' ').unwrap_or((line, ""));
    let (what, figure) = rest.trim_end().split_once("  ").unwrap_or((rest, ""));
    Item::new(format!("{how}: {}", what.trim()), figure.trim(), verdict == "ok")
}

#[cfg(test)]
mod unit {
    use super::*;
    use crate::item::Verdict;

    #[test]
    fn a_line_is_an_item() {
        let line = "24/2 Mbit/s every 5 s        1.99 Mbit/s (asked 9.82), 5339 sent again (at most 42711)              MISS";
        let figure = "1.99 Mbit/s (asked 9.82), 5339 sent again (at most 42711)";
        assert_eq!(item("live", line), Item::new("live: 24/2 Mbit/s every 5 s", figure, Verdict::Miss));
        assert_eq!(item("live", &line.replace("MISS", "ok")).verdict, Verdict::Pass);
        assert_eq!(item("live", "").verdict, Verdict::Miss);
    }
}
