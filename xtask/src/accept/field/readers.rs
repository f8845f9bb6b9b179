//! Receivers of 65 535 B whose program reads slowly, in turns, or stops (5): all simulated, and live; without `--long` one live case of each kind.

use super::run::Bed;
use crate::accept::List;
use crate::accept::place::judge;
use crate::item::{Item, Verdict};
use lab::Outcome;

const A_FEW: [&str; 3] = ["12 Mbit/s", "24/2 Mbit/s every 5 s", "stops of 0.5 s"];
/// Cases that there are.
const CASES: usize = 26;

pub(super) fn check(bed: &Bed, list: &mut List) {
    told(list, (5, "readers, simulated"), bed.text(&["readers"]), CASES);
    if bed.long {
        told(list, (5, "readers, live"), bed.text(&["readers", "--live"]), CASES);
        return;
    }
    for case in A_FEW {
        told(list, (5, "readers, live"), bed.text(&["readers", "--live", "--only", case]), 1);
    }
}

/// The lines that the program prints: what, figures, verdict.
pub(super) fn told(list: &mut List, (number, how): (u32, &str), text: Outcome<String>, expected: usize) {
    let items = text.map(|text| text.lines().map(|l| item(how, l)).collect::<Vec<_>>());
    match items {
        Ok(items) => {
            for item in &items {
                list.line(number, item);
            }
            if items.len() != expected {
                let figure = format!("{} of {expected}", items.len());
                list.line(number, &Item::new(format!("{how}: cases"), figure, Verdict::Miss));
            }
        }
        Err(why) => list.line(number, &judge(how, Err::<(), _>(why), |()| (String::new(), false))),
    }
}

fn item(how: &str, line: &str) -> Item {
    let (rest, verdict) = line.trim_end().rsplit_once(' ').unwrap_or((line, ""));
    let (what, figure) = rest.trim_end().split_once("  ").unwrap_or((rest, ""));
    Item::new(format!("{how}: {}", what.trim()), figure.trim(), Verdict::of(verdict == "ok"))
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn a_line_is_an_item() {
        let line = "24/2 Mbit/s every 5 s        1.99 Mbit/s (asked 9.82), 5339 sent again (at most 42711)              MISS";
        let figure = "1.99 Mbit/s (asked 9.82), 5339 sent again (at most 42711)";
        assert_eq!(item("live", line), Item::new("live: 24/2 Mbit/s every 5 s", figure, Verdict::Miss));
        assert_eq!(item("live", &line.replace("MISS", "ok")).verdict, Verdict::Pass);
        assert_eq!(item("live", "").verdict, Verdict::Miss);
    }
}
