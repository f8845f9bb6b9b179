//! Random walks: up to twelve faults anywhere in the life of a short transfer.

use super::faults::{Among, Failures, Fault, KINDS, Traffic, setting};
use super::net::HOPS;
use bentpipe_base::{IpVersion, Purpose, Rng};

const MOST_FAULTS: u64 = 12;

/// The first flow asks with its SYN and with its 128th segment; the second one comes and goes.
fn traffic(ip: IpVersion) -> Traffic {
    Traffic { ip, flows: [([200, 10], 0), ([80, 2], 30)] }
}

/// Faults of a walk. Half of the walks meet any packet, the other half those that signal.
fn faults(seed: u64) -> (Vec<Fault>, Among) {
    let mut rng = Rng::new(seed, "faults", Purpose::Errors);
    let mut below = |n: u64| (rng.unit() * n as f64) as u64;
    let (among, packets) = if seed % 4 < 2 { (Among::All, 320) } else { (Among::Signals, 12) };
    let faults = (0..=below(MOST_FAULTS)).map(|_| Fault {
        hop: below(HOPS as u64) as usize,
        way: below(2) as usize,
        // more at the beginning, where the handshake is
        nth: (below(packets) * (1 + below(2))) as u16 / 2,
        fate: KINDS[below(3) as usize],
    });
    (faults.collect(), among)
}

/// 3000 walks in both versions, or as many as `BENTPIPE_WALKS` says; `version` is 0 or 1.
fn walk(ip: IpVersion, version: u64) {
    let mut failures = Failures::default();
    for seed in (version..setting("BENTPIPE_WALKS", 3000)).step_by(2) {
        let (faults, among) = faults(seed);
        failures.check(traffic(ip), &faults, among);
    }
    failures.report(&format!("walks of up to {MOST_FAULTS} faults in {ip:?}"));
}

#[test]
fn random_walks_of_faults_in_ipv4() {
    walk(IpVersion::V4, 0);
}

#[test]
fn random_walks_of_faults_in_ipv6() {
    walk(IpVersion::V6, 1);
}
