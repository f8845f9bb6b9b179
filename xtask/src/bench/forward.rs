//! Exact fast-forward: a flow limited by its window for 500 s, and a year of rain.

use super::{Bench, measure};
use crate::Outcome;
use crate::item::Item;
use lab::stats::median;

/// Runs of each length.
const RUNS: usize = 9;
const MOST_WINDOW_MS: f64 = 5.0;
const MOST_YEAR_S: f64 = 60.0;

pub(super) fn items(bench: &Bench) -> Outcome<Vec<Item>> {
    let items = vec![window(bench)?, year(bench)?];
    for item in &items {
        println!("{item}");
    }
    Ok(items)
}

fn cpu_s(bench: &Bench, scenario: &str, duration: &str) -> Outcome<f64> {
    let scenario = bench.root.join("scenarios").join(scenario).display().to_string();
    let args = ["sim".to_owned(), scenario, "--json".to_owned(), format!("--set=duration={duration}")];
    Ok(measure::run(&bench.bentpipe, &args, &bench.output)?.cpu_s)
}

/// The time beside that of a run of one second, most of which is the start of the program.
fn window(bench: &Bench) -> Outcome<Item> {
    let times = |duration| -> Outcome<Vec<f64>> {
        (0..RUNS).map(|_| cpu_s(bench, "window.toml", duration)).collect()
    };
    let ms = 1e3 * (median(&times("500 s")?) - median(&times("1 s")?));
    let what = format!("window.toml, 500 s, with fast-forward: at most {MOST_WINDOW_MS} ms");
    Ok(Item::new(what, format!("{ms:.1} ms"), ms <= MOST_WINDOW_MS))
}

fn year(bench: &Bench) -> Outcome<Item> {
    let time_s = cpu_s(bench, "availability.toml", "31536000 s")?;
    let what = format!("availability.toml, a year, with fast-forward: at most {MOST_YEAR_S} s");
    Ok(Item::new(what, format!("{time_s:.1} s"), time_s <= MOST_YEAR_S))
}
