//! How connections through the agent begin, fail and end.

use crate::chain::{Chain, file};
use crate::duel::{FAIR, FOUL, LEFT, RIGHT, addresses};
use crate::talk::Talk;
use bentpipe_base::{Duration, Instant};
use bentpipe_live::endpoint::{ConnId, Ending, SocketEvent};
use core::net::SocketAddr;

const SECOND: Duration = Duration::from_secs(1);

fn at(side: usize, port: u16) -> SocketAddr {
    SocketAddr::new(addresses(side)[0], port)
}

/// An open connection without applications: its ids at both ends.
fn open(chain: &mut Chain, from: usize) -> [ConnId; 2] {
    chain.listen(1 - from);
    let own = chain.connect(from, at(1 - from, 80));
    chain.pass(SECOND);
    let calling = chain.ends[1 - from].talks.log.iter().find(|n| n.1 == SocketEvent::Calling).unwrap().0;
    if from == LEFT { [own, calling] } else { [calling, own] }
}

fn ending(chain: &Chain, side: usize, id: ConnId) -> Option<Ending> {
    chain.ends[side].endpoint.ending(id)
}

fn at_time(chain: &mut Chain, limit: Duration, stop: impl FnMut(&mut Chain) -> bool) -> Instant {
    assert!(chain.run(limit, stop), "it does not happen");
    chain.now
}

#[test]
fn a_closed_port_looks_closed_from_both_sides() {
    for from in [LEFT, RIGHT] {
        let mut chain = Chain::new(1, [FAIR, FAIR], file("", ""));
        let id = chain.connect(from, at(1 - from, 81));
        chain.pass(SECOND);
        assert_eq!(ending(&chain, from, id), Some(Ending::Refused));
        let counters = chain.split.counters();
        assert_eq!((counters.refused, chain.split.flows(), chain.passed), (1, 0, 0));
        assert_eq!(chain.split.connections(), [0; 2]);
    }
}

#[test]
fn a_silent_host_looks_silent() {
    let mut chain = Chain::new(1, [FAIR, FAIR], file("", ""));
    let id = chain.connect(LEFT, "10.0.0.77:80".parse().unwrap());
    chain.pass(SECOND * 20);
    assert_eq!((ending(&chain, LEFT, id), chain.split.flows()), (None, 1));
    chain.pass(SECOND * 120);
    assert_eq!(ending(&chain, LEFT, id), Some(Ending::TimedOut));
    chain.pass(SECOND * 20);
    assert_eq!((chain.split.counters().unanswered, chain.split.flows()), (1, 0));
    assert_eq!(chain.split.connections(), [0; 2]);
}

#[test]
fn a_reset_is_carried_through_with_what_came_before_it() {
    for (seed, from) in [(1, LEFT), (2, RIGHT), (3, LEFT), (4, RIGHT)] {
        let weather = if seed > 2 { FOUL } else { FAIR };
        let mut chain = Chain::new(seed, [weather, weather], file("", ""));
        let ids = open(&mut chain, from);
        let (dies, lives) = (1 - from, from);
        chain.ends[dies].endpoint.write(ids[dies], b"last words").unwrap();
        chain.pass(SECOND);
        chain.ends[dies].endpoint.abort(ids[dies]);
        let began = chain.now;
        let told = at_time(&mut chain, SECOND * 3, |c| ending(c, lives, ids[lives]).is_some());
        assert!(told.since(began) < SECOND * 2, "{}", told.since(began));
        assert_eq!(ending(&chain, lives, ids[lives]), Some(Ending::Reset));
        let mut words = [0; 20];
        assert_eq!(chain.ends[lives].endpoint.read(chain.now, ids[lives], &mut words), Ok(10));
        assert_eq!((&words[..10], chain.split.flows()), (&b"last words"[..], 0));
    }
}

#[test]
fn an_end_that_falls_silent_is_no_clean_end_of_the_other() {
    let mut chain = Chain::new(5, [FAIR, FAIR], file("", ""));
    let ids = open(&mut chain, LEFT);
    chain.is_cut[RIGHT] = true;
    chain.ends[LEFT].endpoint.write(ids[LEFT], &vec![1; 50_000]).unwrap();
    chain.ends[LEFT].endpoint.shutdown(ids[LEFT]).unwrap();
    let given_up = at_time(&mut chain, SECOND * 3600, |c| c.split.counters().failed[RIGHT] == 1);
    let told = at_time(&mut chain, SECOND * 3, |c| ending(c, LEFT, ids[LEFT]).is_some());
    assert!(told.since(given_up) < SECOND * 2);
    assert_eq!(ending(&chain, LEFT, ids[LEFT]), Some(Ending::Reset));
}

#[test]
fn an_end_that_comes_back_to_a_dead_connection_is_reset() {
    let mut chain = Chain::new(6, [FAIR, FAIR], file("", ""));
    let ids = open(&mut chain, LEFT);
    chain.is_cut[LEFT] = true;
    chain.ends[RIGHT].endpoint.abort(ids[RIGHT]);
    chain.pass(SECOND * 5);
    // the RST did not reach the host
    assert_eq!((ending(&chain, LEFT, ids[LEFT]), chain.split.flows()), (None, 0));
    chain.is_cut[LEFT] = false;
    chain.ends[LEFT].endpoint.write(ids[LEFT], b"is anybody there?").unwrap();
    chain.pass(SECOND);
    assert_eq!(ending(&chain, LEFT, ids[LEFT]), Some(Ending::Reset));
}

#[test]
fn what_no_rule_takes_passes_untouched() {
    let rule = "action = \"pass\"\nport = 80\n[[rules]]\nport = 81";
    let mut chain = Chain::new(7, [FAIR, FOUL], file(rule, ""));
    chain.listen(RIGHT);
    chain.talk(LEFT, true, Talk::new(1, 50_000, 2, 50_000), Talk::new(2, 50_000, 1, 50_000));
    assert!(chain.run(SECOND * 60, |c| c.all_done()));
    assert_eq!(chain.split.counters().connections, 0);
    assert!(chain.passed > 50);
}

#[test]
fn more_connections_than_the_limit_pass() {
    let mut chain = Chain::new(8, [FAIR, FAIR], file("", "flows = 16"));
    chain.listen(RIGHT);
    for _ in 0..40 {
        chain.connect(LEFT, at(RIGHT, 80));
    }
    chain.pass(SECOND * 2);
    let counters = chain.split.counters();
    assert_eq!((counters.connections, chain.split.flows()), (16, 16));
    assert!(counters.too_many >= 24 && chain.passed >= 48, "{counters:?} {}", chain.passed);
    assert_eq!(chain.ends[RIGHT].endpoint.connections(), 40);
}

#[test]
fn an_agent_that_stops_takes_no_new_connections_and_resets_the_rest() {
    let mut chain = Chain::new(9, [FAIR, FAIR], file("", ""));
    let ids = open(&mut chain, LEFT);
    chain.split.stop_accepting();
    let later = chain.connect(LEFT, at(RIGHT, 80));
    chain.pass(SECOND);
    assert!(chain.passed > 2 && ending(&chain, LEFT, later).is_none());
    let now = chain.now;
    chain.split.abort_all(now);
    chain.pass(SECOND);
    for side in [LEFT, RIGHT] {
        assert_eq!(ending(&chain, side, ids[side]), Some(Ending::Reset));
    }
}
