//! Explicit-rate signalling, simulated and in real packets: the figures of Roberts' paper, fairness over
//! distances, flows that come and go, a trunk that breaks, pages, queues, boxes on the path, old and new
//! together, datagrams, faults; kernel hosts behind agents; the fuzzer of the encodings, and the tests.

mod agents;
mod bed;
mod churn;
mod cost;
mod course;
mod deployed;
mod encodings;
mod faults;
mod jitter;
mod kills;
mod live;
mod middleboxes;
mod mixed;
mod paths;
mod scone;
mod simulator;
mod trunk;
mod udp;
mod web;

use super::Part;
use super::list::{Bound, List, MBIT_S, Outcome, Setup, Tests, Unit, fuzz};
use simulator::{Simulator, goodput_bps, granted_bps};

pub(super) const PARTS: [Part; 24] = [
    ("figures", figures),
    ("fairness", fairness),
    ("churn", churn::churn),
    ("trunk", trunk::trunk),
    ("web", web::web),
    ("jitter", jitter::jitter),
    ("middleboxes", middleboxes::middleboxes),
    ("mixed", mixed::mixed),
    ("live", live::check),
    ("agents", agents::check),
    ("satellite", agents::satellite),
    ("deployed", deployed::check),
    ("kills", kills::check),
    ("beside", paths::mixed),
    ("rewritten", paths::rewritten),
    ("lost", paths::lost),
    ("encodings", encodings::encodings),
    ("scone", scone::check),
    ("cost", cost::cost),
    ("fuzz", |_, list| fuzz(list, "fuzz-advice", "random signalling")),
    ("udp", udp::udp),
    ("verbs", udp::verbs),
    ("faults", faults::check),
    ("tests", tests),
];

const SECONDS: Unit = Unit("s", 1.0, 3);
const PERCENT: Unit = Unit("%", 0.01, 2);
const COUNT: Unit = Unit("packets", 1.0, 0);
const TIMES: Unit = Unit("times", 1.0, 2);

/// Figure 1: 30 Mbit/s as the rate field holds it, bit/s.
const GRANTED_BPS: u64 = 29_984_000;
/// Figure 3 does not name its path; a satellite hop fits its times.
const SATELLITE: [(&str, &str); 2] = [("rtt", "500 ms"), ("size", "8 MiB")];
/// Figure 3: losses, and the longest time under a granted rate, s.
const FIGURE_3: [(&str, f64); 2] = [("0", 1.8), ("0.1", 3.2)];
/// An ordinary sender to a receiver with an old window.
const ORDINARY: [(&str, &str); 2] = [("encoding", "off"), ("window", "64 KiB")];
/// Share of a link's rate that its flow router gives away, unless a part says otherwise.
const SHARE: f64 = 0.95;
/// Seeds: of most measurements, and of figure 3 under a granted rate.
const SEEDS: u64 = 5;
const MANY_SEEDS: u64 = 20;

/// The test programs, as arguments for cargo.
const RUNS: [&str; 4] = [
    "-p bentpipe-advice -p bentpipe-flow-router",
    "-p bentpipe-driver -p bentpipe-live --test signal --test rate --test endpoint_kernel",
    "-p bentpipe-tcp --lib --test signalling --test encodings --test hostile",
    "-p bentpipe-scenario -p bentpipe-sim --test scenarios --test rate_scenarios",
];

/// Test programs or modules of them, and how many tests each has at least.
const PROGRAMS: [(&str, &str, usize); 8] = [
    ("bentpipe_advice", "encodings, and one end's part of the exchange", 40),
    ("bentpipe_flow_router", "parts of the flow router", 40),
    ("exchange", "the flow router between two ends", 15),
    ("limits", "what the flow router limits", 15),
    ("signalling", "signalling in the packets of a connection", 15),
    ("signal", "signalling in real packets", 6),
    ("rate", "two ends and flow routers over the relay", 7),
    ("rate_keys", "keys of scenarios, wrong ones refused with their place", 10),
];

const PROOFS: &str = "
* figure 1: starts at the lowest rate of the path, IPv4 and IPv6
  a_sender_starts_at_the_lowest_rate_on_its_path the_first_segment_goes_at_the_granted_rate
* DSCP and structures of each packet
  each_packet_has_its_code_point_and_its_structures no_byte_of_a_stream_is_signalling
* an answer that nobody lowered is not believed
  an_answer_that_nobody_lowered_is_not_believed a_rate_that_nobody_lowers_is_not_believed
* a peer without signalling; lost SYNs, answers and requests
  without_a_signalling_peer_it_is_plain_tcp after_a_lost_syn_the_ack_asks
  after_a_lost_answer_the_first_data_asks requests_are_repeated_until_they_are_answered
* a reduction is obeyed within a round trip, and repeated once in one
  a_reduction_is_obeyed_within_a_round_trip
  a_reduction_is_repeated_once_per_round_trip_until_it_is_answered
* a broken trunk: all flows slow down within 2 round trips
  all_flows_slow_down_within_two_round_trips_of_a_break
  when_the_rate_falls_every_flow_is_told_in_its_next_packet
* forged answers do not raise a rate
  forged_answers_do_not_raise_a_rate a_response_above_the_offer_gains_nothing
* forged requests do not keep shares
  requests_that_nobody_answers_do_not_keep_shares many_waiting_requests_get_shares_only_with_their_responses
* who ignores a reduction is held to it, who obeys is not dropped
  a_sender_that_ignores_a_reduction_is_held_to_it_after_the_grace_time a_sender_that_obeys_is_not_dropped
* flows without signalling count, and pass unchanged
  a_flow_without_signalling_is_a_member_from_its_first_payload_on what_it_does_not_understand_passes_unchanged
* guaranteed rates: refused, or a lower priority preempted
  what_does_not_fit_is_refused_or_preempts_a_lower_priority
* real packets: read and written exactly; code points and places
  what_a_node_sends_is_what_it_said any_bytes_leave_as_they_came the_packets_are_those_of_the_source
* figure 1 over the relay, with real packets
  three_routers_answer_a_real_request
* no structure is taken for data, no data for a structure
  a_stream_is_exact_while_routers_insert_reductions data_that_looks_like_structures_is_data
  rewritten_code_points_corrupt_no_stream who_does_not_know_of_the_agreement_gets_no_structures
  without_a_node_that_reads_structures_nothing_is_stripped
* a kernel that does not signal; a link whose rate a user changes
  a_kernel_that_does_not_signal_gets_ordinary_connections a_link_s_new_rate_is_divided
* shares are max-min fair
  shares_are_max_min_fair equal_members_get_what_the_general_rule_gives
* advice: a limit, repeated, never raised, of several the lowest for 67 s; not without both SYNs
  advice_limits_the_rate_and_nothing_else the_lowest_advice_of_a_period_holds
  a_lower_rate_comes_with_the_next_option_and_a_higher_one_late it_is_used_only_if_both_syns_have_it
  a_signal_is_lowered_to_the_share_of_its_flow a_signal_is_never_raised_and_advice_is_not_enforced
* Quick-Start: a round at the approved rate, void behind a plain router, ended by a loss
  an_approved_rate_is_sent_at_for_a_round_trip a_router_that_knows_nothing_voids_it
  a_loss_in_the_first_round_ends_the_quick_start a_forged_answer_is_not_believed
  requests_share_what_is_unused_and_was_not_approved
* no structure can break a connection
  no_structure_can_break_a_connection_that_signals no_peer_can_break_a_connection";

fn figures(_: &Setup, list: &mut List) -> Outcome {
    let sim = Simulator::build()?;
    for ip in ["4", "6"] {
        let what = format!("figure 1, IPv{ip}: asks for 100, gets 35, then 30 Mbit/s: {GRANTED_BPS} bit/s");
        let granted = sim.run("rate-negotiation", &[("ip", ip)], 1).and_then(|report| granted_bps(&report));
        list.judge(what, granted, |bps| (format!("{bps} bit/s"), bps == GRANTED_BPS));
    }
    let what = format!("figure 2, 8 MB, 40 ms, loss 0.02 both ways, median of {SEEDS}");
    list.figure(&what, sim.median_time(&[("ack_loss", "0.02")], SEEDS), Bound::Most(0.85), SECONDS);
    let newreno = [&ORDINARY[..], &[("tcp", "newreno")]].concat();
    let what = "the same, newreno, 64 KiB; 28 s in the paper";
    list.figure(what, sim.median_time(&newreno, SEEDS), Bound::Nothing, SECONDS);
    for (loss, most) in FIGURE_3 {
        let what = format!("figure 3, 8 MiB, 500 ms, loss {loss} both ways, median of {MANY_SEEDS}");
        let sets = [&SATELLITE[..], &[("loss", loss), ("ack_loss", loss)]].concat();
        list.figure(&what, sim.median_time(&sets, MANY_SEEDS), Bound::Most(most), SECONDS);
    }
    for tcp in ["newreno", "cubic"] {
        for (loss, paper) in [("0", "66 s"), ("0.1", "1411 s")] {
            let what = format!("the same, {tcp}, 64 KiB, loss {loss}; {paper} in the paper");
            let sets = [&SATELLITE[..], &ORDINARY[..], &[("loss", loss), ("tcp", tcp)]].concat();
            list.figure(&what, sim.median_time(&sets, SEEDS), Bound::Nothing, SECONDS);
        }
    }
    Ok(())
}

fn fairness(_: &Setup, list: &mut List) -> Outcome {
    let sim = Simulator::build()?;
    // how many times the goodput of the far sender the near one has
    let ratio = |sets: &[(&str, &str)], seed: u64| -> Outcome<f64> {
        let report = sim.run("rate-fairness", sets, seed)?;
        Ok(goodput_bps(&report, "near")? / goodput_bps(&report, "far")?)
    };
    let ratios: Outcome<Vec<f64>> = (1..=SEEDS).map(|seed| ratio(&[], seed)).collect();
    let largest = ratios.map(|all| all.iter().map(|ratio| (ratio - 1.0).abs()).fold(0.0, f64::max));
    let what = format!("RTT 4 and 80 ms: largest difference of goodput, {SEEDS} seeds");
    list.figure(&what, largest, Bound::Most(0.01), PERCENT);
    let newreno = [&ORDINARY[..], &[("tcp", "newreno")]].concat();
    list.judge("the same, newreno, 64 KiB: near has 12 to 18 times as much", ratio(&newreno, 1), |ratio| {
        (format!("{ratio:.2} times"), (12.0..=18.0).contains(&ratio))
    });
    let modern = [("encoding", "off"), ("tcp", "cubic")];
    list.figure("the same, cubic, 16 MiB", ratio(&modern, 1), Bound::Nothing, TIMES);
    Ok(())
}

fn tests(_: &Setup, list: &mut List) -> Outcome {
    let runs: Vec<Tests> = RUNS.iter().map(|words| Tests::of(words, &[])).collect::<Outcome<_>>()?;
    let run = runs.into_iter().fold(Tests::default(), Tests::merge);
    for (program, what, least) in PROGRAMS {
        list.tests(what, run.count(|t| t.is_of(program)), least);
    }
    list.proofs(&run, PROOFS);
    list.all_tests("all of these", &run, 1);
    Ok(())
}
