//! Reserved rates: datagrams beside TCP that fills the link, and what senders may say to flow routers.

use super::simulator::{Simulator, drops, goodput_bps, named};
use super::{COUNT, PERCENT};
use crate::accept::list::{Bound, List, Outcome, Setup, Tests};
use serde_json::Value;

/// The calls of `rate-udp` that keep their rates, of payload.
const KEPT: [(&str, f64); 2] = [("film", 2e6), ("alarm", 3e6)];
/// The rate of its link, bit/s.
const LINK_BPS: f64 = 10e6;

/// The test programs, as arguments for cargo.
const RUNS: [&str; 2] =
    ["-p bentpipe-flow-router", "-p bentpipe-nodes -p bentpipe-sim --test rated --test rate_udp"];

const PROOFS: &str = "
* reserved rates are kept beside TCP; the lowest priority is refused first, preempted second
  reserved_rates_are_kept_and_the_lowest_priority_gives_way
* lent capacity is given back within one packet time
  lent_capacity_is_given_back_within_one_packet_time packets_are_marked_by_reservation_and_delay_priority
* data begins with the answer; the application's datagrams are exact
  data_begins_with_the_answer_and_no_structure_reaches_the_application
  hostile_structures_do_not_reach_the_application
* a peer or a path that does not signal; lost requests and answers
  without_a_peer_or_a_router_that_signals_it_is_plain a_lost_request_or_answer_is_repeated
* reductions and preemption come in datagrams of the router's and are returned
  a_preempted_flow_is_told_in_a_datagram_until_it_has_answered
  reductions_and_the_loss_of_a_rate_are_returned_and_obeyed
* an idle maximum rate ends, a guaranteed one only when it is given back
  an_idle_maximum_rate_ends_and_a_guaranteed_one_only_when_it_is_given_back
  after_a_silence_it_asks_again_unless_the_rate_is_held a_rate_is_given_back_at_the_end
* CD 3: confirmations, lost and repeated
  a_repeated_confirmation_says_nothing_new_and_a_higher_one_nothing
  a_lost_confirmation_costs_nothing_where_the_response_passes
* CD 4 and 6: missed starts
  a_missed_start_is_asked_for_until_the_sender_repeats_it a_flow_whose_start_was_lost_is_asked_to_repeat_it
* CD 5: another rate
  another_rate_replaces_the_one_before_when_it_is_answered
* CD 7: the end
  a_rate_that_is_given_back_is_free_at_once_and_only_once
* one forged request takes nothing from others
  a_request_takes_from_others_only_when_its_response_passes while_requests_are_not_trusted_they_reserve_nothing
* restart from another address
  a_flow_that_moves_takes_its_reservation_with_it_once a_move_needs_a_flow_and_a_rule_for_both_addresses
  an_available_rate_moves_without_a_second_share
* charging
  who_pays_is_known_by_the_rule_of_the_payer bytes_are_charged_to_the_payer
* composite rates, classes, burst time, authorisation
  both_rates_of_a_composite_one_add_up a_tcp_flow_has_its_guaranteed_rate_and_a_share
  classes_divide_by_weight the_burst_time_halves_with_each_step a_tcp_flow_gets_no_more_than_its_rule_allows
* a rate each way in one handshake
  a_handshake_settles_a_rate_each_way
* an encrypted IPv6 flow is known by its label
  a_flow_behind_encryption_is_known_by_its_label";

pub(super) fn udp(_: &Setup, list: &mut List) -> Outcome {
    let sim = Simulator::build()?;
    for ip in ["4", "6"] {
        let report = sim.run("rate-udp", &[("ip", ip)], 1)?;
        for (name, payload) in KEPT {
            let kept = goodput_bps(&report, name).map(|bps| bps / payload - 1.0);
            let what = format!("IPv{ip}: {name} beside TCP, difference from its rate");
            list.figure(&what, kept.map(f64::abs), Bound::Most(0.002), PERCENT);
            list.figure(&format!("IPv{ip}: {name}, lost"), lost(&report, name), Bound::Most(0.0), COUNT);
        }
        let states = ["film", "series", "trailer", "alarm"].map(|name| state(&report, name));
        list.judge(format!("IPv{ip}: the trailer is refused, the series preempted"), Ok(states), |states| {
            let told = states.join(", ");
            (told, states == ["granted", "refused", "refused", "granted"])
        });
        let link = named(&report, "links", "bottleneck")?;
        let carried = link["carried_bps"].as_f64().ok_or_else(|| "no carried_bps in the report".to_owned());
        let what = format!("IPv{ip}: what calls do not use is lent, utilisation");
        list.figure(&what, carried.map(|bps| bps / LINK_BPS), Bound::Least(0.98), PERCENT);
    }
    let off = sim.run("rate-udp", &[("encoding", "off"), ("discipline", "fifo")], 1)?;
    let link = named(&off, "links", "bottleneck").and_then(drops);
    list.figure("without signalling, fifo: drops of the link", link, Bound::Nothing, COUNT);
    list.figure("without signalling, fifo: film, lost", lost(&off, "film"), Bound::Least(100.0), COUNT);
    Ok(())
}

pub(super) fn verbs(_: &Setup, list: &mut List) -> Outcome {
    let runs: Vec<Tests> = RUNS.iter().map(|words| Tests::of(words, &[])).collect::<Outcome<_>>()?;
    let run = runs.into_iter().fold(Tests::default(), Tests::merge);
    list.proofs(&run, PROOFS);
    list.all_tests("all of these", &run, 1);
    Ok(())
}

/// Datagrams of a flow that were lost.
fn lost(report: &Value, flow: &str) -> Outcome<f64> {
    let lost = &named(report, "flows", flow)?["udp"]["lost"];
    lost.as_f64().ok_or_else(|| format!("{flow} is no flow of datagrams"))
}

/// What became of the rate of a flow; empty if it asked for none.
fn state(report: &Value, flow: &str) -> String {
    let state = named(report, "flows", flow).ok().and_then(|flow| flow["rate"]["state"].as_str());
    state.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod unit {
    use super::*;
    use serde_json::json;

    #[test]
    fn states_and_losses_are_found_by_name() {
        let report = json!({"flows": [
            {"name": "a", "udp": {"lost": 3}, "rate": {"state": "refused"}}, {"name": "b"},
        ]});
        assert_eq!((lost(&report, "a"), state(&report, "a")), (Ok(3.0), "refused".to_owned()));
        assert!(lost(&report, "b").is_err() && state(&report, "b").is_empty());
    }
}
