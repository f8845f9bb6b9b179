//! The second issue: links that change, pictures and sweeps.

use super::List;
use super::spine::{bad_input, cargo, last_line, style, tests_item, whole_run};
use super::tests::Tests;
use crate::item::{Item, Verdict};
use crate::{bench, pages};

/// Most CPU seconds of the two-hour fade.
const FADE_CPU_S: f64 = 5.0;
/// Runs of the sweep whose use of the cores is measured.
const SWEEP_RUNS: usize = 64;
/// Least share of both cores that it must use.
const BUSY: f64 = 0.90;

/// Prints the whole list; true when every line was met.
pub(super) fn check() -> Result<bool, String> {
    let mut list = List::new();
    let (validated, agrees) = cargo(&["run", "--quiet", "--release", "--package", "bentpipe-validate"]);
    let what = "results beside ns-2, ns-3, two papers and closed forms";
    list.line(1, &Item::new(what, last_line(&validated), Verdict::of(agrees)));
    list.line(
        2,
        &rows(&validated, "over WINDS:", "WINDS: rows 2, 3, 5 within 30 %, the keep-alive cures", true),
    );
    list.line(
        3,
        &rows(&validated, "symmetric link:", "asymmetry at four k, delayed ACKs on and off, reported", false),
    );
    list.line(6, &fade()?);
    for item in bench::items()? {
        list.line(6, &item);
    }
    list.line(5, &cores()?);
    list.line(7, &pages::item(None)?);
    let run = Tests::run()?;
    let holds = |word: &'static str| run.count(move |t| t.name.contains(word));
    list.line(
        4,
        &tests_item("captures read by tshark: no malformed packet, no bad checksum", holds("tshark"), 1),
    );
    list.line(4, &tests_item("tcptrace counts our retransmissions", holds("tcptrace"), 1));
    list.line(
        5,
        &tests_item(
            "a sweep's bytes: threads, shards, kill, full disk",
            run.count(|t| t.program == "sweep"),
            4,
        ),
    );
    list.line(8, &bad_input(&run));
    list.line(8, &tests_item("a trace with a wrong line names the line", holds("wrong_line_is_named"), 1));
    list.line(8, &whole_run(&run));
    for item in style()? {
        list.line(8, &item);
    }
    Ok(list.met)
}

/// The lines of tables of the validation whose names hold `table`; each ends with its verdict.
fn rows(validated: &str, table: &str, what: &str, judged: bool) -> Item {
    let lines: Vec<&str> = validated.lines().filter(|l| l.contains(table)).collect();
    let ending = |word: &str| lines.iter().filter(|l| l.trim_end().ends_with(word)).count();
    let (agree, miss) = (ending("agrees"), ending("MISSES"));
    let figure = format!("{agree} agree, {miss} miss, {} reported", lines.len() - agree - miss);
    let enough = if judged { agree >= 3 } else { lines.len() >= 8 };
    Item::new(what, figure, Verdict::of(enough && miss == 0))
}

/// Two hours of a fade, with all instruments.
fn fade() -> Result<Item, String> {
    let run = bench::timed(&["sim", "scenarios/fade-2h.toml"])?;
    let figure = format!("{:.2} s", run.cpu_s);
    let what = format!("fade-2h, 10 800 s simulated, CPU at most {FADE_CPU_S} s");
    Ok(Item::new(what, figure, Verdict::of(run.cpu_s <= FADE_CPU_S)))
}

/// A sweep keeps all cores busy.
fn cores() -> Result<Item, String> {
    let folder = std::env::temp_dir().join(format!("bentpipe-accept-sweep-{}", std::process::id()));
    let out = folder.display().to_string();
    let seeds = (SWEEP_RUNS / 4).to_string();
    let args = ["sweep", "scenarios/sharing.toml", "--axis", "loss=1e-4,1e-3", "--axis", "tcp=newreno,cubic"];
    let args: Vec<&str> = args.into_iter().chain(["--seeds", &seeds, "--out", &out]).collect();
    let run = bench::timed(&args);
    let _ = std::fs::remove_dir_all(&folder);
    let run = run?;
    let cores = std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
    let share = run.cpu_s / (run.wall_s * cores);
    let figure = format!("{:.1} % of {cores} cores, {:.1} s", share * 100.0, run.wall_s);
    let what = format!("a sweep of {SWEEP_RUNS} runs uses the cores at {:.0} %", BUSY * 100.0);
    Ok(Item::new(what, figure, Verdict::of(share >= BUSY)))
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn rows_of_a_table_are_counted() {
        let text = "WINDS: a  1  agrees\nWINDS: b  2  agrees \nWINDS: c 3 agrees\nWINDS: d  4  -\nOther: e  MISSES\n";
        assert_eq!(
            rows(text, "WINDS", "x", true),
            Item::new("x", "3 agree, 0 miss, 1 reported", Verdict::Pass)
        );
        assert_eq!(rows(text, "Other", "x", true).verdict, Verdict::Miss);
        assert_eq!(rows("", "WINDS", "x", false).verdict, Verdict::Miss);
    }
}
