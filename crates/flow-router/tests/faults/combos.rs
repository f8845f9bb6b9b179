//! Every combination of up to three faults of the packets that signal: the handshake, a reduction and its
//! answer, raises and their answers.

use super::faults::{Among, Failures, Fault, Traffic, combinations, most_faults, places};
use super::net::HOPS;
use bentpipe_base::IpVersion;
use bentpipe_tcp::RateState;

/// The first flow asks with its SYN and every 128 segments; the second one comes, stays for
/// long enough to see a reduction that is not repeated, and goes.
pub(crate) fn traffic(ip: IpVersion) -> Traffic {
    Traffic { ip, flows: [([570, 10], 0), ([160, 0], 160)] }
}

/// Packets that signal on each hop and way in a run without faults.
fn counted(traffic: Traffic) -> [[u16; 2]; HOPS] {
    let mut net = traffic.net(&[], Among::Signals);
    net.complete().unwrap();
    assert!(net.watch.compared > 100, "the sums of grants were compared {} times", net.watch.compared);
    let changes =
        net.flows[0].ends[0].conn.as_ref().and_then(bentpipe_tcp::Connection::rate).unwrap().changes;
    assert_eq!(
        changes.iter().map(|change| change.cause).collect::<Vec<_>>(),
        ["granted", "reduced", "raised"]
    );
    net.signalled
}

/// Runs all single faults and a quarter of the pairs, or all combinations of as many as `BENTPIPE_FAULTS`
/// says.
fn all_combinations(ip: IpVersion) {
    let (most, every) = most_faults().map_or((2, 4), |most| (most, 1));
    let traffic = traffic(ip);
    let places = places(&counted(traffic), 1);
    let mut failures = Failures::default();
    for n in 1..=most {
        let every = if n > 1 { every } else { 1 };
        let mut number = 0;
        combinations(&places, n as usize, &mut |faults: &[Fault]| {
            if number % every == 0 {
                failures.check(traffic, faults, Among::Signals);
            }
            number += 1;
        });
    }
    failures.report(&format!("combinations of up to {most} faults of {} in {ip:?}", places.len()));
}

#[test]
fn combinations_of_faults_in_ipv4() {
    all_combinations(IpVersion::V4);
}

#[test]
fn combinations_of_faults_in_ipv6() {
    all_combinations(IpVersion::V6);
}

/// RFC 9293, section 3.5, figure 7: the SYNs cross. Each request is repeated after the handshake.
#[test]
fn both_ends_open_at_once() {
    for ip in [IpVersion::V4, IpVersion::V6] {
        // more than the first window: behind its FIN an end asks nothing
        let traffic = Traffic { flows: [([570, 160], 0), ([160, 0], 160)], ..traffic(ip) };
        let mut net = traffic.net(&[], Among::Signals);
        net.flows[0].opens_at_once = true;
        net.complete().unwrap();
        let states: Vec<_> = net.flows[0].states().collect();
        assert!(states.iter().all(|s| matches!(s, RateState::Granted | RateState::Reduced)), "{states:?}");
    }
}
