//! Requirements proved by named tests, which must have run and passed.

use crate::Outcome;
use crate::accept::list::{List, Proof};
use crate::accept::setup::Setup;
use crate::accept::tests::Tests;

/// The test programs, as arguments for cargo.
const RUNS: [&str; 3] = [
    "-p bentpipe-tcp --lib --test dialogue --test probing --test storm --test hostile",
    "-p bentpipe-sim -p bentpipe-scenario -p bentpipe-cli --test probes --test errors_tcp --test errors_parameters --test endpoint",
    "-p bentpipe-tcp --doc",
];

const PROOFS: [Proof; 14] = [
    (
        "Hybla: rho, and growth in time as the reference path's",
        &[
            "hybla::tests::slow_start_grows_by_2_to_the_rho_less_one",
            "hybla::tests::avoidance_grows_like_the_reference_in_time",
            "hybla::tests::an_unbounded_start_stops_at_rho_times_the_references_threshold",
        ],
    ),
    (
        "CUBIC: W(t), plateau, Reno-friendly region, beta",
        &[
            "cubic::the_window_follows_the_curve",
            "cubic::fast_convergence_lowers_the_plateau",
            "cubic::short_round_trips_follow_reno",
            "cubic::a_loss_leaves_beta",
        ],
    ),
    (
        "BIC: search, climb and steps beyond the maximum",
        &[
            "bic::tests::the_search_follows_its_closed_form",
            "bic::tests::far_from_the_maximum_it_climbs_by_smax",
            "bic::tests::beyond_the_maximum_steps_double",
            "bic::tests::fast_convergence",
        ],
    ),
    ("BBR v1 and v3: the cycle of gains", &["bbr::tests::the_gain_cycle", "bbr3::tests::the_cycle_of_gains"]),
    (
        "Swift's and Peach's windows after an episode, W0 16 to 128",
        &["an_episode_is_counted_probe_by_probe", "gated_swift_needs_answers_and_stops_at_the_old_window"],
    ),
    (
        "an episode counted probe by probe",
        &[
            "an_episode_is_counted_probe_by_probe",
            "a_probe_is_outside_of_everything_that_counts_data",
            "a_copy_may_repair_a_loss",
        ],
    ),
    (
        "pushout and threshold: probes change a flow beside by < 1 %",
        &["low_priority_packets_cost_others_less_than_one_percent"],
    ),
    ("speedy start: a window of 64 in 2 RTT (+5 %)", &["a_start_opens_64_segments_in_two_round_trips"]),
    (
        "100 segments: earlier than IW10, 2, 1 by 0.4, 2.3, 3.3 RTT",
        &["a_short_transfer_ends_earlier_than_with_slow_start"],
    ),
    (
        "an unknown scheme: a message that says what there is",
        &[
            "an_unknown_scheme",
            "a_scheme_that_is_a_number",
            "a_wrong_command_line_is_refused_before_anything_is_sent",
            "swift_is_accepted_with_a_note",
        ],
    ),
    (
        "parameters out of range, or of another scheme",
        &[
            "beta_out_of_range",
            "a_parameter_of_another_scheme",
            "grants_that_cannot_be",
            "a_set_out_of_range",
            "a_parameter_is_set_by_name_kind_and_range",
        ],
    ),
    (
        "probes without a signal or priority: the fallback is named",
        &[
            "a_fallback_is_named",
            "without_a_signal_it_is_slow_start",
            "without_priority_a_quarter_of_the_probes",
        ],
    ),
    (
        "all schemes in any weather, and against any peer",
        &[
            "sack_survives_the_storm",
            "newreno_survives_the_storm",
            "rack_survives_the_storm",
            "no_peer_can_break_a_connection",
        ],
    ),
    ("engine from and to the kernel as an ordinary user: intact", &["transfers_of_all_kinds_are_intact"]),
];

/// Prefix of the doc-tests of the guide that the crate includes.
const GUIDE: &str = "src/lib.rs - contributing (";

pub(super) fn check(_: &Setup, list: &mut List) -> Outcome {
    let run = RUNS
        .iter()
        .map(|words| Tests::of(&words.split(' ').collect::<Vec<_>>(), &[]))
        .try_fold(Tests::default(), |all, run| Ok::<_, String>(all.and(run?)))?;
    list.proofs(&run, &PROOFS);
    let guide = run.count(|t| t.name.contains(GUIDE));
    list.tests("CONTRIBUTING's scheme in 40 lines compiles and runs", guide, 1);
    Ok(())
}
