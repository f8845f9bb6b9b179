//! Random walks: up to twelve faults anywhere in the life of a short transfer.

use super::combos;
use super::faults::{Among, Failures, Fault, KINDS, Traffic, setting};
use super::net::{Fate, HOPS, Net};
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

/// The FIN of the first flow's smaller side passes before its request, and then it sends no data that could
/// be told of a reduction.
#[test]
fn a_request_behind_a_fin_holds_no_share() {
    let faults = [(0, 1, 0), (2, 1, 39)].map(|(hop, way, nth)| Fault { hop, way, nth, fate: Fate::Lose });
    traffic(IpVersion::V4).check(&faults, Among::All).unwrap();
}

/// The response to the first SYN comes a second late, and the response to a reduction is lost: the reduction
/// is repeated long before another second has passed.
#[test]
fn a_late_first_response_does_not_put_off_repetitions() {
    let faults = [
        (2, 1, 0, Fate::Delay),
        (0, 0, 4, Fate::Lose),
        (2, 1, 4, Fate::Lose),
        (2, 1, 2, Fate::Delay),
        (2, 0, 2, Fate::Lose),
        (2, 1, 1, Fate::Lose),
    ];
    let faults = faults.map(|(hop, way, nth, fate)| Fault { hop, way, nth, fate });
    traffic(IpVersion::V6).check(&faults, Among::Signals).unwrap();
}

/// Walks after which a reduction came too late: the round trip was not known, because a response or the data
/// that it allowed was late or a SYN was sent again, or the structure was in data that the receiver had.
#[test]
fn reductions_are_repeated_in_time() {
    for text in [
        "walk 0 0 3 0 2 0 4 0 2 1 4 0 1 0 3 0 2 1 0 2",
        "walk v6 1 0 5 0 0 0 0 0 1 1 3 0 1 1 1 2 1 0 1 0",
        "walk 1 1 4 0 2 0 1 0 2 1 3 2 2 0 2 2 1 0 7 0 1 0 0 0 2 1 4 0",
        "walk 2 0 3 0 1 1 0 0 2 1 1 2 1 1 6 0 2 0 0 2 2 0 4 2",
        "walk 2 1 2 0 2 0 1 2 2 1 3 0 0 0 0 0 0 0 5 2 1 0 4 0 2 0 3 0 2 0 5 2",
    ] {
        named(text, &mut |_| ()).unwrap_or_else(|why| panic!("{text}: {why}"));
    }
}

/// Runs a list of faults: numbers of hop, way, packet and kind. The words `v6`, `walk` and `all` among them
/// choose IPv6, the traffic of walks, and faults of any packet.
fn named(text: &str, look: &mut dyn FnMut(&mut Net<'_>)) -> Result<(), String> {
    let is_said = |word: &str| text.split_whitespace().any(|said| said == word);
    let ip = if is_said("v6") { IpVersion::V6 } else { IpVersion::V4 };
    let traffic = if is_said("walk") { traffic(ip) } else { combos::traffic(ip) };
    let among = if is_said("all") { Among::All } else { Among::Signals };
    let all: Vec<u16> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let fault = |words: &[u16]| Fault {
        hop: words[0].into(),
        way: words[1].into(),
        nth: words[2],
        fate: KINDS[usize::from(words[3])],
    };
    let faults: Vec<Fault> = all.chunks_exact(4).map(fault).collect();
    let mut net = traffic.net(&faults, among);
    look(&mut net);
    let outcome = net.complete();
    look(&mut net);
    outcome
}

/// Shows what the faults in `BENTPIPE_TRACE` do. Without it, that nothing is wrong without faults.
#[test]
fn trace() {
    let text = std::env::var("BENTPIPE_TRACE").unwrap_or_default();
    let outcome = named(&text, &mut |net| {
        net.trace = !text.is_empty();
        for end in net.flows.iter().flat_map(|flow| &flow.ends) {
            println!("{:?}", end.conn.as_ref().and_then(bentpipe_tcp::Connection::rate));
        }
    });
    outcome.unwrap();
}
