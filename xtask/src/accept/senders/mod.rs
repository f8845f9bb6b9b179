//! Satellite congestion controls, simulated and on real paths.

mod figures;
mod live;
mod probes;

use super::Part;
use super::list::{List, Outcome, Setup, Tests};
use super::validation::{TableCheck, tables};

pub(super) const PARTS: [Part; 9] = [
    ("proofs", proofs),
    ("cells", |_, list| tables(list, &CELLS)),
    ("figures", figures::check),
    ("rate", |_, list| tables(list, &RATE)),
    ("case-l", live::short),
    ("case-w", live::long),
    ("probes", probes::check),
    ("mixed", live::mixed),
    ("cpu", live::cpu),
];

/// Checks against other simulators.
const CELLS: [TableCheck; 5] = [
    ("Random loss, without jitter: vegas", 3, "Vegas as the reference sheet says"),
    ("Random loss, CUBIC", 6, "CUBIC as the reference sheet says"),
    ("Random loss, Westwood+ as Linux", 3, "Westwood+ as ns-2's, with what is Linux's own"),
    (
        "Random loss, the order of schemes",
        3,
        "Westwood+, Vegas, SACK and Hybla in the order of ns-2 and Hybla's paper",
    ),
    ("Random loss, BBR", 3, "BBR within 6 % of ns-3 at 1e-4, 1e-3, 1e-2"),
];

const RATE: [TableCheck; 5] = [
    ("Rate of new payload under a grant", 25, "RTT 10 ms to 1 s, loss 0 to 10 %: within 3 % of the ceiling"),
    ("Rate of new payload when acknowledgments are lost", 2, "10 % of the ACKs lost: costs less than 3 %"),
    ("8 MiB under a grant", 1, "8 MiB, RTT 40 ms, loss 2 %: median of 50 at most 0.83 s"),
    ("Segments before the fallback", 1, "loss 20 %: falls back within 5000 packets"),
    ("Fallbacks at a loss of 9 %", 1, "loss 9 %, a million packets: never"),
];

/// The test programs, as arguments for cargo.
const RUNS: [&str; 3] = [
    "-p bentpipe-tcp --lib --test dialogue --test probing --test storm --test hostile",
    "-p bentpipe-sim -p bentpipe-scenario -p bentpipe-cli --test probes --test errors --test endpoint",
    "-p bentpipe-tcp --doc",
];

const PROOFS: &str = "
* Hybla: rho, and growth in time as the reference path's
  hybla::tests::slow_start_grows_by_2_to_the_rho_less_one
  hybla::tests::avoidance_grows_like_the_reference_in_time
  hybla::tests::an_unbounded_start_stops_at_rho_times_the_references_threshold
* CUBIC: W(t), plateau, Reno-friendly region, beta
  cubic::the_window_follows_the_curve cubic::fast_convergence_lowers_the_plateau
  cubic::short_round_trips_follow_reno cubic::a_loss_leaves_beta
* BIC: search, climb and steps beyond the maximum
  bic::tests::the_search_follows_its_closed_form bic::tests::far_from_the_maximum_it_climbs_by_smax
  bic::tests::beyond_the_maximum_steps_double bic::tests::fast_convergence
* BBR v1 and v3: the cycle of gains
  bbr::tests::the_gain_cycle bbr3::tests::the_cycle_of_gains
* Swift's and Peach's windows after an episode, W0 16 to 128
  an_episode_is_counted_probe_by_probe gated_swift_needs_answers_and_stops_at_the_old_window
* an episode counted probe by probe
  an_episode_is_counted_probe_by_probe a_probe_is_outside_of_everything_that_counts_data
  a_copy_may_repair_a_loss
* pushout and threshold: probes change a flow beside by < 1 %
  low_priority_packets_cost_others_less_than_one_percent
* speedy start: a window of 64 in 2 RTT (+5 %)
  a_start_opens_64_segments_in_two_round_trips
* 100 segments: earlier than IW10, 2, 1 by 0.4, 2.3, 3.3 RTT
  a_short_transfer_ends_earlier_than_with_slow_start
* an unknown scheme: a message that says what there is
  an_unknown_scheme a_scheme_that_is_a_number a_wrong_command_line_is_refused_before_anything_is_sent
  swift_is_accepted_with_a_note
* parameters out of range, or of another scheme
  beta_out_of_range a_parameter_of_another_scheme grants_that_cannot_be a_set_out_of_range
  a_parameter_is_set_by_name_kind_and_range
* probes without a signal or priority: the fallback is named
  a_fallback_is_named without_a_signal_it_is_slow_start without_priority_a_quarter_of_the_probes
* all schemes in any weather, and against any peer
  sack_survives_the_storm newreno_survives_the_storm rack_survives_the_storm no_peer_can_break_a_connection
* engine from and to the kernel as an ordinary user: intact
  transfers_of_all_kinds_are_intact";

/// Prefix of the doc-tests of the guide that the crate includes.
const GUIDE: &str = "src/lib.rs - contributing (";

/// Requirements proved by named tests, which must have run and passed.
fn proofs(_: &Setup, list: &mut List) -> Outcome {
    let mut run = Tests::default();
    for words in RUNS {
        run = run.merge(Tests::of(words, &[])?);
    }
    list.proofs(&run, PROOFS);
    let guide = run.count(|t| t.name.contains(GUIDE));
    list.tests("CONTRIBUTING's scheme in 40 lines compiles and runs", guide, 1);
    Ok(())
}
