//! Never worse than without a gateway: the matrix, transfers, and which senders are passed unaccelerated.

use super::run::TestBed;
use crate::accept::list::{List, Outcome};
use crate::metadata;
use std::fs;

/// Number of cells run live, and the seed that draws cells.
const LIVE: (&str, &str) = ("48", "13");
/// Number of simulated cells in the short list, and seeds of each.
const FEW: [&str; 2] = ["96", "3"];
/// How many of a hundred senders that cannot gain must be passed unaccelerated.
const RECOGNISED: u32 = 99;

/// The matrix, and a page with a picture.
pub(super) fn matrix(bed: &TestBed, list: &mut List) -> Outcome {
    let folder = metadata::root().join("target/field");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let path = |name: &str| folder.join(name).display().to_string();
    let [page, json, summary] = ["matrix.html", "matrix.json", "matrix.md"].map(path);
    let files = ["--page", &page, "--out", &json, "--summary", &summary];
    let few = ["--sample", FEW[0], "--draw", LIVE.1, "--seeds", FEW[1], "--most", "5"];
    let some = if bed.long { &[][..] } else { &few[..] };
    worst(list, "simulated", &bed.text(&[&["matrix"], some, &files].concat()));
    let [page, json] = ["matrix-live.html", "matrix-live.json"].map(path);
    let (count, seeds) = if bed.long { (LIVE.0, "3") } else { ("4", "2") };
    let live = [
        "matrix", "--live", "--sample", count, "--draw", LIVE.1, "--seeds", seeds, "--most", seeds, "--page",
        &page, "--out", &json,
    ];
    worst(list, "live", &bed.text(&live));
    Ok(())
}

/// Transfers of 10 kB, 100 kB and 1 MB, with 30 seeds.
pub(super) fn transfers(bed: &TestBed, list: &mut List) -> Outcome {
    for bytes in ["10000", "100000", "1000000"] {
        let cells =
            if bed.long { "flows=1,rate=2|24" } else { "flows=1,rate=24,rtt=1000,receiver=old|modern" };
        let words = ["matrix", "--transfer", bytes, "--seeds", "30", "--most", "30", "--only", cells];
        worst(list, &format!("transfers of {bytes} B"), &bed.text(&words));
    }
    Ok(())
}

/// Prints the first line of the program's output, and the cells that are worse.
fn worst(list: &mut List, how: &str, text: &Outcome<String>) {
    let (Ok(text) | Err(text)) = text;
    let first = text.lines().next().unwrap_or_default();
    let figure = first.strip_prefix("worst of ");
    // the lines of an error are shown like cells that are worse
    let cells = text.lines().skip(usize::from(figure.is_some()));
    let worse: Vec<_> = cells.filter(|line| !line.trim_end().ends_with(" ok")).collect();
    let what = format!("with/without, {how}: no cell below 0.97");
    list.line(what, figure.unwrap_or(first).trim_end_matches(':'), figure.is_some() && worse.is_empty());
    for cell in worse {
        let (name, figure) = cell.split_at_checked(63).unwrap_or((cell, ""));
        list.line(name.trim(), figure.trim(), false);
    }
}

pub(super) fn senders(bed: &TestBed, list: &mut List) -> Outcome {
    // fifteen kinds that must not be passed, and two that must
    let text = bed.text(&["recognise", "--runs", "100"]);
    let counts = text.map(|text| text.lines().filter_map(count).collect::<Vec<_>>());
    list.judge("BBR is recognised within 20 round trips, nobody else", counts, |all| {
        let words: Vec<String> = all.iter().map(|(who, n, of)| format!("{who} {n}/{of}")).collect();
        let right = |(who, n, of): &(String, u32, u32)| {
            if who.starts_with("bbr") { *n >= RECOGNISED && *of == 100 } else { *n == 0 && *of == 100 }
        };
        (words.join(", "), all.len() == 17 && all.iter().all(right))
    });
    Ok(())
}

/// Parses `bbr bulk: 99 of 100 passed`.
fn count(line: &str) -> Option<(String, u32, u32)> {
    let (who, counts) = line.split_once(": ")?;
    let words: Vec<&str> = counts.split_whitespace().collect();
    let [n, "of", of, "passed"] = words[..] else { return None };
    Some((who.to_owned(), n.parse().ok()?, of.parse().ok()?))
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn counts_and_worst_cells_are_read() {
        assert_eq!(count("bbr bulk: 99 of 100 passed"), Some(("bbr bulk".to_owned(), 99, 100)));
        assert_eq!(count("bbr bulk: of passed"), None);
        let mut list = List::default();
        worst(
            &mut list,
            "simulated",
            &Ok("worst of 2 cells, 0 of them WORSE than without:\na  1.0  ok\n".to_owned()),
        );
        assert_eq!(list.missed, 0);
        worst(
            &mut list,
            "simulated",
            &Ok("worst of 2 cells, 1 of them WORSE than without:\na  0.9  WORSE\n".to_owned()),
        );
        assert!(list.missed > 0);
        let mut list = List::default();
        worst(&mut list, "simulated", &Err("no program".to_owned()));
        assert!(list.missed > 0);
    }
}
