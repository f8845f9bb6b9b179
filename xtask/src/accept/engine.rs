//! The engine and the simulator: comparison with other simulators, cost of a run, tests, defects found by
//! two public suites of packet scripts, and whether bentpipe's own scripts detect mutants.

use super::list::{List, Outcome, Setup, Tests, bench, fuzz, style};
use super::tests::properties;
use super::{Part, validation};
use crate::mutants;

pub(super) const PARTS: [Part; 7] = [
    ("validation", validate),
    ("bench", bench),
    ("tests", tests),
    ("fuzz", |_, list| fuzz(list, "fuzz-headers", "random packets")),
    ("style", style),
    ("scripts", scripts),
    ("mutants", scripts_detect_mutants),
];

/// Defects found, and the packet scripts that test their fixes.
const DEFECTS: &str = "
* a segment that is refused gives no timestamp (RFC 5961, 5; RFC 7323, 4.3)
  a_refused_segment_gives_no_timestamp a_refused_answer_to_a_syn_ack_gives_no_timestamp
* RACK sees reordering in any segment of an ACK (RFC 8985, 6.2)
  reordering_shows_in_any_segment_of_an_ack a_repair_shows_no_reordering
* SACK blocks on an ACK that was overtaken count (RFC 6675)
  an_overtaken_ack_still_reports an_overtaken_ack_is_no_duplicate
* rack.rtt is of the last in sequence (Linux)
  racks_round_trip_is_of_the_last_in_sequence
* what nobody will read is not acknowledged (Linux; RFC 1122, 4.2.2.13)
  what_nobody_will_read_is_not_acknowledged
* a reset carries timestamps (RFC 7323, 3.2)
  a_reset_carries_timestamps
* LISTEN is no closed port; SYN with FIN (RFC 9293, 3.10.7.2)
  a_listener_is_no_closed_port a_syn_with_a_fin_opens_or_is_dropped
* SYN with FIN does not end TIME-WAIT (RFC 9293)
  a_syn_with_a_fin_does_not_end_time_wait
* ICMP: hopeless calls end, too big lowers the MSS (RFC 9293, 3.9.2.2; RFC 1191; RFC 8201)
  a_call_ends_when_it_is_hopeless too_big_sends_again_in_pieces too_big_never_raises_the_size
* FIN in TIME-WAIT is acknowledged; text on a SYN is kept (RFC 9293)
  a_fin_within_the_window_is_acknowledged_in_time_wait text_on_the_syn_ack_is_kept
* an ECN SYN falls back; ECN that only answers; CWR by PRR (RFC 3168; Linux)
  a_syn_that_goes_again_does_not_ask who_only_answers_does_not_ask linux_lowers_the_window_by_prr
* USER TIMEOUT, keep-alive, cork (RFC 9293, 3.9.1 and 3.8.4)
  the_user_timeout_ends_a_silent_connection a_dead_peer_is_given_up a_cork_gives_way_after_200_ms
* abort stops the clock of limits
  time_stops_counting_when_a_connection_ends
* timestamps of a hostile peer
  an_echo_that_cannot_be_gives_no_round_trip
* Minshall's rule; what was read is acknowledged (Linux)
  one_small_write_is_on_the_way_at_a_time what_was_read_to_the_end_is_acknowledged";

fn validate(_: &Setup, list: &mut List) -> Outcome {
    validation::all(list, "results beside ns-2, ns-3 and closed forms");
    Ok(())
}

fn tests(setup: &Setup, list: &mut List) -> Outcome {
    let run = setup.tests()?;
    list.all_tests("all tests", run, 1);
    list.tests("segment dialogues", run.count(|t| t.program == "dialogue"), 1);
    let names = properties()?;
    let found = run.count(|t| names.contains(t.function()));
    list.tests("property tests", found, names.len().max(1));
    let limits = run.count(|t| t.function().starts_with("limited_by_"));
    list.tests("what limits a flow is told apart", limits, 1);
    list.tests("wrong input is refused with its place", run.refused_input(), 1);
    Ok(())
}

fn scripts(_: &Setup, list: &mut List) -> Outcome {
    let run = Tests::of("--package bentpipe-tcp --package bentpipe-live", &[])?;
    list.proofs(&run, DEFECTS);
    list.tests("packet scripts by topic, in both profiles", run.count(|t| t.program == "scripts"), 11);
    list.proofs(&run, "\n* at least 8 in each topic, a third negative\nevery_topic_is_covered");
    Ok(())
}

fn scripts_detect_mutants(setup: &Setup, list: &mut List) -> Outcome {
    let what = format!("each script notices the mutant of the file it names{}", setup.short());
    let noticed = mutants::scripts(setup.pick(1, mutants::SAMPLE));
    list.judge(what, noticed, |count| (format!("{count} of them"), true));
    Ok(())
}
