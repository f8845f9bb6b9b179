//! Peers that a SYN with a rate structure does not reach.
//!
//! Source: RFC 9293, section 3.8.1 (a lost SYN costs a second), and the way in which TCP Fast Open avoids
//! paths that drop its SYNs (RFC 7413, section 4.1.3.1). A firewall may drop a SYN that carries a structure.
//! The connection then opens with a second SYN, which has none. A host remembers that:
//!   the SYN with a structure was repeated: the next connections to this peer hide their request, for
//!     4 min 2^n after n such findings in a row, at most 34 h
//!   it was not: the peer is forgotten
//! A hidden request follows the handshake, so only the first round trip is without a rate. A SYN that was
//! lost by chance has the same effect for 4 min.

use bentpipe_base::{Duration, Instant};
use std::collections::BTreeMap;

/// How long a finding holds at first.
const FIRST: Duration = Duration::from_secs(240);
/// How often this doubles.
const DOUBLINGS: u8 = 9;
/// Most peers that are remembered; a new one then takes the place of the one that would be tried first.
const MOST: usize = 1024;

/// What is known of one peer.
#[derive(Clone, Copy, Debug)]
struct Finding {
    /// Requests are hidden until then.
    until: Instant,
    /// Findings in a row, less one.
    repeats: u8,
}

/// The peers of a host, by their addresses.
#[derive(Debug)]
pub struct Peers<A>(BTreeMap<A, Finding>);

impl<A> Default for Peers<A> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<A: Ord + Copy> Peers<A> {
    /// True if a SYN to this peer should hide its request.
    pub fn hides(&self, now: Instant, peer: A) -> bool {
        self.0.get(&peer).is_some_and(|finding| now < finding.until)
    }

    /// A connection opened whose SYN had a structure: had it to be repeated?
    #[cold]
    pub fn opened(&mut self, now: Instant, peer: A, repeated: bool) {
        let known = self.0.get(&peer).copied();
        if !repeated {
            self.0.remove(&peer);
        } else if known.is_none_or(|finding| now >= finding.until) {
            // not if another connection, opened at the same time, has found the same
            let repeats = known.map_or(0, |finding| (finding.repeats + 1).min(DOUBLINGS));
            self.make_room(peer);
            self.0.insert(peer, Finding { until: now + FIRST * (1 << repeats), repeats });
        }
    }

    fn make_room(&mut self, peer: A) {
        if self.0.len() >= MOST && !self.0.contains_key(&peer) {
            let soonest = self.0.iter().min_by_key(|(_, finding)| finding.until).map(|(peer, _)| *peer);
            soonest.map(|peer| self.0.remove(&peer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::Addr;

    const PEER: Addr = Addr(7);

    fn at(minutes: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(60) * minutes
    }

    #[test]
    fn the_time_doubles_to_a_day_and_a_half() {
        let mut peers = Peers::default();
        assert!(!peers.hides(at(0), PEER));
        let mut now = at(0);
        let mut lengths = Vec::new();
        for _ in 0..12 {
            peers.opened(now, PEER, true);
            let until = peers.0[&PEER].until;
            assert!(peers.hides(now, PEER) && !peers.hides(until, PEER) && !peers.hides(now, Addr(8)));
            lengths.push(until.since(now).0 / 60_000_000_000);
            now = until;
        }
        assert_eq!(lengths, [4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 2048, 2048]);
    }

    #[test]
    fn a_structure_that_arrives_ends_it() {
        let mut peers = Peers::default();
        peers.opened(at(0), PEER, true);
        peers.opened(at(1), PEER, true); // opened before the first finding
        assert!(!peers.hides(at(4), PEER));
        peers.opened(at(5), PEER, false);
        peers.opened(at(6), PEER, true);
        assert!(peers.hides(at(9), PEER) && !peers.hides(at(10), PEER));
    }

    #[test]
    fn they_are_bounded() {
        let mut peers = Peers::default();
        for n in 0..2 * MOST as u32 {
            peers.opened(at(u64::from(n)), Addr(n), true);
        }
        let last = MOST as u32;
        assert_eq!((peers.0.len(), peers.0.keys().next().copied()), (MOST, Some(Addr(last))));
    }
}
