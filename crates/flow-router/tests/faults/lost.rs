//! Signalling that is lost: 10 % of all packets in both directions, start packets too.

use super::end::{Flow, host};
use super::faults::{SEGMENT, most_faults, rate};
use super::net::{Entering, Fate, Net, RTT};
use bentpipe_base::{IpVersion, Purpose, Rng};
use bentpipe_flow_router::RouterConfig;
use std::sync::Arc;

const FLOWS: usize = 500;
const LOSS: f64 = 0.1;

/// Flows that were granted a rate within 20 round trips of their establishment.
fn granted_in_time(ip: IpVersion, seed: u64) -> usize {
    let (config, mut rng) = (Arc::new(host(ip)), Rng::new(seed, "loss", Purpose::Errors));
    let flows = (0..FLOWS).map(|n| Flow::new(&config, n, 0, [500 * SEGMENT, 0])).collect();
    let sites = [RouterConfig::new(rate(500_000_000)), RouterConfig::new(rate(450_000_000))];
    let mut net =
        Net::new(
            &sites,
            flows,
            |entering: Entering| {
                if entering.hop == 1 && rng.unit() < LOSS { Fate::Lose } else { Fate::Pass }
            },
        );
    net.complete().unwrap();
    let in_time = |flow: &&Flow| {
        let conn = flow.ends[0].conn.as_ref().unwrap();
        let first = conn.rate().and_then(|rate| rate.changes.first().map(|change| change.at));
        let since = conn.stats().established_at.unwrap();
        first.is_some_and(|at| at.since(since) <= RTT * 20)
    };
    net.flows.iter().filter(in_time).count()
}

#[test]
fn most_flows_are_granted_a_rate_where_a_tenth_is_lost() {
    // both only where all is run
    let versions =
        if most_faults() > Some(2) { vec![IpVersion::V4, IpVersion::V6] } else { vec![IpVersion::V4] };
    let mut lines = Vec::new();
    for ip in versions {
        let granted = granted_in_time(ip, 1);
        assert!(granted * 100 >= FLOWS * 95, "{ip:?}: {granted}");
        lines.push(format!("{ip:?}: {granted} of {FLOWS} granted within 20 RTT"));
    }
    println!("{}", lines.join("; "));
}
