//! What tests prove (1, 2, 3, 4, 8, 9): each is named, and must have run and passed.

use crate::accept::List;
use crate::accept::place::Place;
use crate::accept::tests::Tests;
use crate::item::{Item, Verdict};

/// The programs in which the tests are, as cargo is told of them.
const RUNS: [&str; 3] = [
    "-p bentpipe-tcp --lib --test dialogue --test probing --test storm --test hostile",
    "-p bentpipe-sim -p bentpipe-scenario -p bentpipe-cli --test probes --test errors_tcp --test errors_parameters --test endpoint",
    "-p bentpipe-tcp --doc",
];

/// A line: its number, what was asked, and the tests that prove it. A test that says a figure is the first.
struct Proof(u32, &'static str, &'static [&'static str]);

const PROOFS: [Proof; 14] = [
    Proof(
        1,
        "Hybla: rho, and growth in time as the reference path's",
        &[
            "hybla::tests::slow_start_grows_by_2_to_the_rho_less_one",
            "hybla::tests::avoidance_grows_like_the_reference_in_time",
            "hybla::tests::an_unbounded_start_stops_at_rho_times_the_references_threshold",
        ],
    ),
    Proof(
        1,
        "CUBIC: W(t), plateau, Reno-friendly region, beta",
        &[
            "cubic::the_window_follows_the_curve",
            "cubic::fast_convergence_lowers_the_plateau",
            "cubic::short_round_trips_follow_reno",
            "cubic::a_loss_leaves_beta",
        ],
    ),
    Proof(
        1,
        "BIC: search, climb and steps beyond the maximum",
        &[
            "bic::tests::the_search_follows_its_closed_form",
            "bic::tests::far_from_the_maximum_it_climbs_by_smax",
            "bic::tests::beyond_the_maximum_steps_double",
            "bic::tests::fast_convergence",
        ],
    ),
    Proof(
        1,
        "BBR v1 and v3: the cycle of gains",
        &["bbr::tests::the_gain_cycle", "bbr3::tests::the_cycle_of_gains"],
    ),
    Proof(
        1,
        "Swift's and Peach's windows after an episode, W0 16 to 128",
        &["an_episode_is_counted_probe_by_probe", "gated_swift_needs_answers_and_stops_at_the_old_window"],
    ),
    Proof(
        2,
        "an episode counted probe by probe",
        &[
            "an_episode_is_counted_probe_by_probe",
            "a_probe_is_outside_of_everything_that_counts_data",
            "a_copy_may_repair_a_loss",
        ],
    ),
    Proof(
        3,
        "pushout and threshold: probes change a flow beside by < 1 %",
        &["low_priority_packets_cost_others_less_than_one_percent"],
    ),
    Proof(
        4,
        "speedy start: a window of 64 in 2 RTT (+5 %)",
        &["a_start_opens_64_segments_in_two_round_trips"],
    ),
    Proof(
        4,
        "100 segments: earlier than IW10, 2, 1 by 0.4, 2.3, 3.3 RTT",
        &["a_short_transfer_ends_earlier_than_with_slow_start"],
    ),
    Proof(
        9,
        "an unknown scheme: a message that says what there is",
        &[
            "an_unknown_scheme",
            "a_scheme_that_is_a_number",
            "a_wrong_command_line_is_refused_before_anything_is_sent",
            "swift_is_accepted_with_a_note",
        ],
    ),
    Proof(
        9,
        "parameters out of range, or of another scheme",
        &[
            "beta_out_of_range",
            "a_parameter_of_another_scheme",
            "grants_that_cannot_be",
            "a_set_out_of_range",
            "a_parameter_is_set_by_name_kind_and_range",
        ],
    ),
    Proof(
        9,
        "probes without a signal or priority: the fallback is named",
        &[
            "a_fallback_is_named",
            "without_a_signal_it_is_slow_start",
            "without_priority_a_quarter_of_the_probes",
        ],
    ),
    Proof(
        9,
        "all schemes in any weather, and against any peer",
        &[
            "sack_survives_the_storm",
            "newreno_survives_the_storm",
            "rack_survives_the_storm",
            "no_peer_can_break_a_connection",
        ],
    ),
    Proof(
        6,
        "engine from and to the kernel as an ordinary user: intact",
        &["transfers_of_all_kinds_are_intact"],
    ),
];

/// How rustdoc names what it compiles and runs of the guide, which the crate includes.
const GUIDE: &str = "src/lib.rs - contributing (";

pub(super) fn check(_: &Place, list: &mut List) {
    let run = RUNS
        .iter()
        .map(|words| Tests::of(&words.split(' ').collect::<Vec<_>>()))
        .try_fold(Tests::default(), |all, run| Ok::<_, String>(all.and(run?)))
        .unwrap_or_else(|why| {
            list.line(1, &Item::new("the tests", why.lines().next().unwrap_or_default(), Verdict::Miss));
            Tests::default()
        });
    let mut proofs: Vec<_> =
        PROOFS.iter().map(|Proof(number, what, tests)| (*number, proved(&run, what, tests))).collect();
    proofs.push((8, guide(&run)));
    proofs.sort_by_key(|(number, _)| *number);
    for (number, item) in proofs {
        list.line(number, &item);
    }
}

/// A test that is missing, failed or could not run here proves nothing.
fn proved(run: &Tests, what: &str, tests: &[&str]) -> Item {
    let could_not = |test: &str| run.skipped.iter().any(|s| test == s || test.ends_with(&format!("::{s}")));
    let lost = tests.iter().find(|test| !run.passed(test) || could_not(test));
    let figure = lost.map_or_else(
        || match tests.iter().find_map(|test| run.figure(test)) {
            Some(said) => said.to_owned(),
            None if tests.len() == 1 => format!("{} passed", tests[0]),
            None => format!("{} tests passed", tests.len()),
        },
        |test| format!("{test} did not run and pass"),
    );
    Item::new(what, figure, Verdict::of(lost.is_none()))
}

fn guide(run: &Tests) -> Item {
    let what = "CONTRIBUTING's scheme in 40 lines compiles and runs";
    let (n, failed) = run.count(|t| t.name.contains(GUIDE));
    Item::new(what, format!("{} passed, {failed} failed", n - failed), Verdict::of(n > 0 && failed == 0))
}

#[cfg(test)]
mod unit {
    use super::*;

    fn run() -> Tests {
        let test = |name: &str, passed| crate::accept::tests::Test {
            program: "p".to_owned(),
            name: name.to_owned(),
            passed,
        };
        Tests {
            all: vec![test("a::grows", true), test("b", true), test("c", false), test("d", true)],
            skipped: vec!["d".to_owned()],
            said: vec![("b".to_owned(), "2 RTT".to_owned())],
        }
    }

    #[test]
    fn every_named_test_must_have_run_and_passed() {
        let of = |tests: &[&str]| proved(&run(), "w", tests);
        assert_eq!(of(&["grows"]), Item::new("w", "grows passed", Verdict::Pass));
        assert_eq!(of(&["a::grows", "b"]), Item::new("w", "2 RTT", Verdict::Pass));
        // failed, could not run here, not there
        for lost in ["c", "d", "e"] {
            let figure = format!("{lost} did not run and pass");
            assert_eq!(of(&["b", lost]), Item::new("w", figure, Verdict::Miss));
        }
    }

    #[test]
    fn the_guide_is_found_among_the_documentation() {
        let mut run = run();
        assert_eq!(guide(&run).verdict, Verdict::Miss);
        let name = "crates/tcp/src/lib.rs - contributing (line 78)".to_owned();
        run.all.push(crate::accept::tests::Test {
            program: "doc bentpipe_tcp".to_owned(),
            name,
            passed: true,
        });
        assert_eq!(guide(&run).verdict, Verdict::Pass);
    }
}
