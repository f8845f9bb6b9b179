//! The agent was killed: its connections are reset at both ends.

use crate::chain::{Chain, file};
use crate::duel::{FAIR, LEFT, RIGHT, addresses};
use bentpipe_agent::split::{FlowKey, Split};
use bentpipe_base::{Duration, World};
use bentpipe_live::endpoint::{Ending, SocketEvent};
use core::net::SocketAddr;
use std::sync::Arc;

#[test]
fn both_ends_of_an_idle_connection_are_reset() {
    let mut chain = Chain::new(1, [FAIR, FAIR], file("", ""));
    chain.listen(RIGHT);
    let left = chain.connect(LEFT, SocketAddr::new(addresses(RIGHT)[0], 80));
    chain.pass(Duration::from_secs(1));
    chain.ends[RIGHT].endpoint.accept(80);
    let right = chain.ends[RIGHT].talks.log.iter().find(|n| n.1 == SocketEvent::Calling).unwrap().0;
    let view = chain.split.views(chain.now, 1).remove(0);
    let key = FlowKey { host: view.host.parse().unwrap(), remote: view.remote.parse().unwrap() };
    let successor = Split::new(&mut World::new(77), Arc::new(file("", "")), [1500; 2]);
    chain.replace(successor, &[key]);
    chain.pass(Duration::from_secs(1));
    let ending = |chain: &Chain, side: usize, id| chain.ends[side].endpoint.ending(id);
    assert_eq!((ending(&chain, LEFT, left), ending(&chain, RIGHT, right)), (None, None));
    chain.split.probe();
    chain.pass(Duration::from_secs(1));
    assert_eq!(ending(&chain, LEFT, left), Some(Ending::Reset));
    assert_eq!(ending(&chain, RIGHT, right), Some(Ending::Reset));
}
