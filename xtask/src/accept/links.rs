//! Time-varying links, pictures, sweeps, adaptive coding, outages, captures, terminal queues, recordings.

use super::list::{List, Outcome, Setup, bench, style};
use super::{Part, speed, validation};
use crate::bench::timed;
use crate::pages;

pub(super) const PARTS: [Part; 6] = [
    ("validation", validate),
    ("bench", bench),
    ("cost", cost),
    ("pages", |_, list| pages::item(None).map(|item| list.item(&item))),
    ("tests", tests),
    ("style", style),
];

/// CPU time limit of the two-hour fade, s.
const FADE_CPU_S: f64 = 5.0;
const PROOFS: &str = "
* adaptive coding keeps a margin: a fade that goes on as it did loses nothing
  with_its_margin_adaptive_coding_loses_nothing_in_a_fade_that_goes_on_as_it_did
  a_margin_of_one_decibel_is_not_enough_for_a_steep_fade_but_its_slope_is
* an outage is told apart from losses, and a reset does not end it silently
  an_outage_is_told_apart_from_losses an_outage_of_the_links_own_outlasts_a_reset
* a capture file per place: Wireshark and tcptrace count our retransmissions
  a_capture_holds_every_packet_and_the_cause_of_each_drop tshark_counts_our_retransmissions
  tcptrace_counts_our_retransmissions
* drop from the front
  an_arrival_takes_the_place_of_the_oldest a_large_arrival_takes_the_place_of_as_many_as_it_needs_and_no_more
* CoDel (RFC 8289)
  the_first_drop_comes_an_interval_after_the_target_and_the_next_by_the_control_law
  codel_keeps_the_delay_of_one_flow_short_and_the_link_busy with_ecn_codel_marks_and_nothing_is_sent_again
* FQ-CoDel (RFC 8290)
  flows_take_turns_and_keep_their_own_order
  a_flow_that_becomes_active_is_served_before_those_that_have_a_backlog
  under_fq_codel_a_call_hears_nothing_of_the_others_and_they_share
* delay and loss that were recorded: mahimahi, delays per 10 ms, IRTT
  a_recorded_delay_and_loss_are_those_of_their_interval
  a_delay_per_line_holds_for_an_interval_and_a_loss_keeps_the_delay
  a_table_of_irtt_says_which_way_a_packet_was_lost recordings_are_read_as_the_steps_that_they_are
  a_wrong_line_is_named
* `starlink` among the profiles, each with its source
  the_profiles_are_complete";

fn validate(_: &Setup, list: &mut List) -> Outcome {
    let text = validation::all(list, "results beside ns-2, ns-3, two papers and closed forms");
    let mut rows = |table: &str, what: &str, is_enough: fn(usize, usize) -> bool| {
        let (agree, miss, reported) = validation::count(&text, table);
        let figure = format!("{agree} agree, {miss} miss, {reported} reported");
        let met = is_enough(agree, agree + miss + reported) && miss == 0;
        list.line(what, figure, met);
    };
    rows("over WINDS:", "WINDS: rows 2, 3, 5 within 30 %, the keep-alive cures", |agree, _| agree >= 3);
    rows("an asymmetric link:", "asymmetry at four k, delayed ACKs on and off, reported", |_, all| all >= 8);
    Ok(())
}

fn cost(setup: &Setup, list: &mut List) -> Outcome {
    let fade = timed(&["sim", "scenarios/fade-2h.toml"]);
    let what = format!("fade-2h, 10 800 s simulated, CPU at most {FADE_CPU_S} s");
    list.judge(what, fade, |(cpu_s, _)| (format!("{cpu_s:.2} s"), cpu_s <= FADE_CPU_S));
    speed::sweep(setup, list)
}

fn tests(setup: &Setup, list: &mut List) -> Outcome {
    let run = setup.tests()?;
    let holds = |word: &'static str| run.count(move |t| t.name.contains(word));
    list.tests("captures read by tshark: no malformed packet, no bad checksum", holds("tshark"), 1);
    list.tests("tcptrace counts our retransmissions", holds("tcptrace"), 1);
    let sweeps = run.count(|t| t.program == "sweep");
    list.tests("a sweep's bytes: threads, shards, kill, full disk", sweeps, 4);
    list.tests("wrong input is refused with its place", run.refused_input(), 1);
    list.tests("a trace with a wrong line names the line", holds("wrong_line_is_named"), 1);
    list.proofs(run, PROOFS);
    list.all_tests("all tests", run, 1);
    Ok(())
}
