//! The fault model of the signalling, and hosts that forge and lie: all combinations of three faults, a
//! million random walks, and twenty seconds of a flood.

use crate::accept::list::{List, Outcome, Setup, Tests};

/// The test program, and how much it runs.
const PROGRAM: &str = "--release -p bentpipe-flow-router --test faults";
const FULL: [(&str, &str); 3] =
    [("BENTPIPE_FAULTS", "3"), ("BENTPIPE_WALKS", "1000000"), ("BENTPIPE_FLOOD_SECONDS", "20")];

const PROOFS: &str = "
* up to 3 faults (lost, doubled, late) on each hop of handshake, reduction, raise and answers, IPv4
  combinations_of_faults_in_ipv4
* the same, IPv6
  combinations_of_faults_in_ipv6
* random walks of up to 12 faults, a million with those of the next line
  random_walks_of_faults_in_ipv4
* the same, IPv6
  random_walks_of_faults_in_ipv6
* both ends open at once: both are granted a rate
  both_ends_open_at_once
* 10 % loss both ways, start packets too: at least 95 % of 500 flows granted within 20 RTT
  most_flows_are_granted_a_rate_where_a_tenth_is_lost
* 200 000 forged requests/s for 20 s: goodput at least 0.98, grants unchanged, memory bounded
  a_flood_of_forged_requests_takes_nothing_from_flows_with_a_rate
* 10 and 1000 forged requests/s for 20 s: goodput at least 0.98
  few_forged_requests_per_second_take_little_from_flows_with_a_rate
* forged start packets of a live flow, either side, CD 0 to 7: its grant is unchanged
  forged_start_packets_do_not_change_the_rate_of_a_live_flow
* a receiver that answers more than was offered: the neighbours keep at least 0.98
  a_receiver_that_promises_everything_takes_nothing_from_the_neighbours";

pub(super) fn check(_: &Setup, list: &mut List) -> Outcome {
    let run = Tests::of(PROGRAM, &FULL)?;
    list.proofs(&run, PROOFS);
    list.all_tests("all of these", &run, PROOFS.matches("\n* ").count());
    Ok(())
}
