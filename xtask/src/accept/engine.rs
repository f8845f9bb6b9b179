//! The engine against other people's tests: defects that two public suites of packet scripts found, each with a dialogue; our own scripts; and whether they notice anything.

use super::List;
use super::place::chosen;
use super::spine::tests_item;
use super::tests::Tests;
use crate::item::{Item, Verdict};
use crate::mutants;

/// Parts of the list, by what stands on the command line.
const PARTS: [&str; 3] = ["defects", "scripts", "mutants"];
/// Defects in the order of the table and those it names below, and the dialogues that hold their mends.
const DEFECTS: [(&str, &[&str]); 15] = [
    (
        "1 a segment that is refused gives no timestamp (RFC 5961, 5; RFC 7323, 4.3)",
        &["a_refused_segment_gives_no_timestamp", "a_refused_answer_to_a_syn_ack_gives_no_timestamp"],
    ),
    (
        "2 RACK sees reordering in any segment of an ACK (RFC 8985, 6.2)",
        &["reordering_shows_in_any_segment_of_an_ack", "a_repair_shows_no_reordering"],
    ),
    (
        "3 SACK blocks on an ACK that was overtaken count (RFC 6675)",
        &["an_overtaken_ack_still_reports", "an_overtaken_ack_is_no_duplicate"],
    ),
    ("4 rack.rtt is of the last in sequence (Linux)", &["racks_round_trip_is_of_the_last_in_sequence"]),
    (
        "5 what nobody will read is not acknowledged (Linux; RFC 1122, 4.2.2.13)",
        &["what_nobody_will_read_is_not_acknowledged"],
    ),
    ("6 a reset carries timestamps (RFC 7323, 3.2)", &["a_reset_carries_timestamps"]),
    (
        "7 LISTEN is no closed port; SYN with FIN (RFC 9293, 3.10.7.2)",
        &["a_listener_is_no_closed_port", "a_syn_with_a_fin_opens_or_is_dropped"],
    ),
    ("8 SYN with FIN does not end TIME-WAIT (RFC 9293)", &["a_syn_with_a_fin_does_not_end_time_wait"]),
    (
        "9 ICMP: hopeless calls end, too big lowers the MSS (RFC 9293, 3.9.2.2; RFC 1191; RFC 8201)",
        &[
            "a_call_ends_when_it_is_hopeless",
            "too_big_sends_again_in_pieces",
            "too_big_never_raises_the_size",
        ],
    ),
    (
        "10 FIN in TIME-WAIT is acknowledged; text on a SYN is kept (RFC 9293)",
        &["a_fin_within_the_window_is_acknowledged_in_time_wait", "text_on_the_syn_ack_is_kept"],
    ),
    (
        "11 an ECN SYN falls back; ECN that only answers; CWR by PRR (RFC 3168; Linux)",
        &[
            "a_syn_that_goes_again_does_not_ask",
            "who_only_answers_does_not_ask",
            "linux_lowers_the_window_by_prr",
        ],
    ),
    (
        "12 USER TIMEOUT, keep-alive, cork (RFC 9293, 3.9.1 and 3.8.4)",
        &[
            "the_user_timeout_ends_a_silent_connection",
            "a_dead_peer_is_given_up",
            "a_cork_gives_way_after_200_ms",
        ],
    ),
    ("abort stops the clock of limits", &["time_stops_counting_when_a_connection_ends"]),
    ("timestamps of a hostile peer", &["an_echo_that_cannot_be_gives_no_round_trip"]),
    (
        "Minshall's rule; what was read is acknowledged (Linux)",
        &["one_small_write_is_on_the_way_at_a_time", "what_was_read_to_the_end_is_acknowledged"],
    ),
];

/// Prints the list, or the parts of it that `words` name; true when every line was met.
pub(super) fn check(words: &[String]) -> Result<bool, String> {
    let parts = chosen("engine", words, &PARTS)?;
    let run = Tests::of(&["--package", "bentpipe-tcp", "--package", "bentpipe-live"])?;
    let mut list = List::new();
    for part in parts {
        match part {
            "defects" => DEFECTS.iter().for_each(|(what, names)| list.line(3, &named(&run, what, names))),
            "scripts" => scripts(&run, &mut list),
            _ => list.line(3, &noticed()),
        }
    }
    Ok(list.met)
}

/// Tests by their names: each has to be there, and to pass.
pub(super) fn named(run: &Tests, what: &str, names: &[&str]) -> Item {
    let wanting: Vec<&str> = names.iter().copied().filter(|name| !run.passed(name)).collect();
    let figure = if wanting.is_empty() {
        format!("{} passed", names.len())
    } else {
        format!("failed or missing: {}", wanting.join(", "))
    };
    Item::new(what, figure, Verdict::of(wanting.is_empty()))
}

fn scripts(run: &Tests, list: &mut List) {
    let played = run.count(|t| t.program == "scripts");
    list.line(3, &tests_item("packet scripts by topic, in both profiles", played, 11));
    list.line(3, &named(run, "at least 8 in each topic, a third negative", &["every_topic_is_covered"]));
}

/// Each script fails with the mutant that it names.
fn noticed() -> Item {
    let what = "each script notices the mutant of the file it names";
    match mutants::command(&[]) {
        Ok(()) => Item::new(what, "all", Verdict::Pass),
        Err(why) => Item::new(what, why, Verdict::Miss),
    }
}
