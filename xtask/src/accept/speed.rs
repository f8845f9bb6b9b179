//! Speed of the simulator, with the same bytes whatever the build and the number of threads.

use super::Part;
use super::list::{List, Outcome, Setup, Tests, bench};
use crate::bench::timed;

pub(super) const PARTS: [Part; 3] = [("cost", bench), ("sweep", sweep), ("bytes", bytes)];

/// Runs of the sweep that measures the use of the cores.
const SWEEP_RUNS: usize = 64;
/// Required utilisation of all cores.
const BUSY: f64 = 0.97;

const PROOFS: &str = "
* a short way through TCP does what the long way does
  both_ways_do_the_same
* a sweep's bytes do not depend on threads and shards
  one_thread_two_threads_and_shards_give_the_same_bytes
* a run's bytes do not depend on threads and fast-forward
  one_thread_two_threads_and_no_fast_forward_give_the_same_bytes
  a_folder_with_captures_is_the_same_without_fast_forward every_scenario_is_the_same
* 1000 random networks with skips, and 1000 with links that are told ahead, are as with an event for each arrival
  random_networks_are_the_same_1 random_networks_are_the_same_2
  random_networks_are_the_same_3 random_networks_are_the_same_4
  networks_with_chains_are_the_same_1 networks_with_chains_are_the_same_2
  networks_with_chains_are_the_same_3 networks_with_chains_are_the_same_4
  in_a_dumbbell_the_links_behind_the_shared_one_are_told";

/// A sweep whose runs take unequal times.
pub(super) fn sweep(_: &Setup, list: &mut List) -> Outcome {
    let folder = std::env::temp_dir().join(format!("bentpipe-accept-sweep-{}", std::process::id()));
    let out = folder.display().to_string();
    let seeds = (SWEEP_RUNS / 4).to_string();
    let args = ["sweep", "scenarios/sharing.toml", "--axis", "loss=1e-4,1e-2", "--axis", "tcp=newreno,cubic"];
    let sweep = timed(&[&args[..], &["--seeds", &seeds, "--out", &out]].concat());
    let _ = std::fs::remove_dir_all(&folder);
    let what = format!("a sweep of {SWEEP_RUNS} runs uses the cores at {:.0} %", BUSY * 100.0);
    list.judge(what, sweep, |(cpu_s, wall_s)| {
        let cores = std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
        let share = cpu_s / (wall_s * cores);
        (format!("{:.1} % of {cores} cores, {wall_s:.1} s", share * 100.0), share >= BUSY)
    });
    Ok(())
}

fn bytes(_: &Setup, list: &mut List) -> Outcome {
    for (build, words) in [("debug", ""), ("release", "--release ")] {
        let golden = Tests::of(&format!("{words}--package bentpipe-sim --test golden"), &[])?;
        list.all_tests(&format!("the committed report of every scenario, {build} build"), &golden, 1);
    }
    let run = Tests::of(
        "--package bentpipe-tcp --package bentpipe-sim --package bentpipe-sweep --package bentpipe-cli",
        &[],
    )?;
    list.proofs(&run, PROOFS);
    Ok(())
}
