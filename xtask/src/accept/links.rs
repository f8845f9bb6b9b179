//! Links as their users meet them: adaptive coding, outages, captures, queues of real terminals, recordings.

use super::List;
use super::engine::named;
use super::spine::whole_run;
use super::tests::Tests;

/// What is held, and the tests that hold it.
const LINES: [(&str, &[&str]); 7] = [
    (
        "adaptive coding keeps a margin: a fade that goes on as it did loses nothing",
        &[
            "with_its_margin_adaptive_coding_loses_nothing_in_a_fade_that_goes_on_as_it_did",
            "a_margin_of_one_decibel_is_not_enough_for_a_steep_fade_but_its_slope_is",
        ],
    ),
    (
        "an outage is told apart from losses, and a reset does not end it silently",
        &["an_outage_is_told_apart_from_losses", "an_outage_of_the_links_own_outlasts_a_reset"],
    ),
    (
        "a capture file per place: Wireshark and tcptrace count our retransmissions",
        &[
            "a_capture_holds_every_packet_and_the_cause_of_each_drop",
            "tshark_counts_our_retransmissions",
            "tcptrace_counts_our_retransmissions",
        ],
    ),
    (
        "drop from the front",
        &[
            "an_arrival_takes_the_place_of_the_oldest",
            "a_large_arrival_takes_the_place_of_as_many_as_it_needs_and_no_more",
        ],
    ),
    (
        "CoDel (RFC 8289)",
        &[
            "the_first_drop_comes_an_interval_after_the_target_and_the_next_by_the_control_law",
            "codel_keeps_the_delay_of_one_flow_short_and_the_link_busy",
            "with_ecn_codel_marks_and_nothing_is_sent_again",
        ],
    ),
    (
        "FQ-CoDel (RFC 8290)",
        &[
            "flows_take_turns_and_keep_their_own_order",
            "a_flow_that_becomes_active_is_served_before_those_that_have_a_backlog",
            "under_fq_codel_a_call_hears_nothing_of_the_others_and_they_share",
        ],
    ),
    (
        "delay and loss that were recorded: mahimahi, delays per 10 ms, IRTT",
        &[
            "a_recorded_delay_and_loss_are_those_of_their_interval",
            "a_delay_per_line_holds_for_an_interval_and_a_loss_keeps_the_delay",
            "a_table_of_irtt_says_which_way_a_packet_was_lost",
            "recordings_are_read_as_the_steps_that_they_are",
            "a_wrong_line_is_named",
        ],
    ),
];

/// Prints the whole list; true when every line was met.
pub(super) fn check() -> Result<bool, String> {
    let mut list = List::new();
    let run = Tests::run()?;
    for (what, names) in LINES {
        list.line(4, &named(&run, what, names));
    }
    list.line(
        4,
        &named(&run, "`starlink` among the profiles, each with its source", &["the_profiles_are_complete"]),
    );
    list.line(8, &whole_run(&run));
    Ok(list.met)
}
