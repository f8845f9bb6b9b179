//! What `bentpipe papers --live` measures with real packets, beside the simulated values.

use super::table::{Row, Verdicts, rows};
use super::{Folder, papers, timed};
use crate::Outcome;
use crate::accept::list::{List, Setup};
use std::fs;

/// What is asked for, and the figure that has it.
const FIGURES: [(&str, &str); 6] = [
    ("004, figure 8: throughput of five receivers", "004/figure-8"),
    ("000, figure 2: 8 MB with 2 % loss", "000/figure-2"),
    ("002: goodput of windows", "002/window"),
    ("002: time of transfers", "002/initial-window"),
    ("001: five minutes of a fade at real speed", "001/live"),
    ("003, figure 5 at 1e-2: twenty connections of ours", "003/figure-5"),
];
/// Items that only live runs decide, and the figures that have them.
const ITEMS: [(&str, &str); 3] = [("001-28", "001/live"), ("002-16", "002/live"), ("003-15", "003/live")];
/// Longest time, s.
const MOST_S: f64 = 900.0;

pub(super) fn live(_: &Setup, list: &mut List) -> Outcome {
    let folder = Folder::new("live")?;
    let mut names: Vec<&str> = FIGURES.iter().chain(&ITEMS).map(|(_, figure)| *figure).collect();
    names.sort_unstable();
    names.dedup();
    let (time_s, status) = timed(papers(&folder.0, &[&names[..], &["--live"]].concat())?)?;
    let met = time_s <= MOST_S && status == Some(0);
    list.line("papers --live: at most 15 minutes, exit 0", format!("{time_s:.0} s, exit {status:?}"), met);
    let out = folder.0.join("papers");
    let path = out.join("live.csv");
    let values = rows(&fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?)?;
    for (what, figure) in FIGURES {
        let of: Vec<&Row> = values.iter().filter(|row| row["figure"] == figure).collect();
        let (text, met) = judge(&of);
        list.line(format!("{what}: within 5 % of the simulated value, or in its interval"), text, met);
    }
    let agree = Verdicts::read(&out)?.with("agrees");
    for (item, _) in ITEMS {
        let met = agree.iter().any(|agrees| agrees == item);
        list.line(format!("{item} is decided by a live run"), if met { "agrees" } else { "does not" }, met);
    }
    Ok(())
}

/// How many values there are, the largest difference, and what does not agree.
fn judge(values: &[&Row]) -> (String, bool) {
    let number = |row: &Row, column: &str| row[column].parse::<f64>().unwrap_or(f64::NAN);
    let difference = |row: &&Row| number(row, "live") / number(row, "simulated") - 1.0;
    let worst = values.iter().map(difference).max_by(|a, b| a.abs().total_cmp(&b.abs()));
    let others: Vec<String> = values
        .iter()
        .filter(|row| row["verdict"] != "agrees")
        .map(|row| format!("; {} {} {}", row["curve"], row["x"], row["verdict"]))
        .collect();
    let worst = worst.unwrap_or(f64::NAN) * 100.0;
    let text = format!("{} values, at most {worst:+.1} %{}", values.len(), others.concat());
    (text, !values.is_empty() && others.is_empty())
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn all_values_of_a_figure_agree_or_are_named() {
        let rows = rows(
            "figure,curve,x,live,simulated,verdict\na,\"1, 2\",5 s,98,100,agrees\na,3,,103,100,agrees\n\
             b,4,7 s,90,100,untrusted\n",
        )
        .unwrap();
        let all: Vec<&Row> = rows.iter().collect();
        assert_eq!(judge(&all[..2]), ("2 values, at most +3.0 %".to_owned(), true));
        assert_eq!(judge(&all), ("3 values, at most -10.0 %; 4 7 s untrusted".to_owned(), false));
        assert!(!judge(&[]).1);
    }
}
