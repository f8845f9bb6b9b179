//! Buffers that grow with what a connection can use.
//!
//! Own mechanism; the parts are those of a host's TCP: right-sizing of the window (`tcp/window.rs`), and a
//! send buffer of twice what is under way. What is lost fills a buffer until it is repaired: a round trip
//! later, or two if it is lost again. So at a known rate a buffer holds three round trips:
//!   outgoing: 3 * granted rate * RTT; without a rate twice what is sent and not acknowledged
//!   incoming: 3 * returned rate * RTT, open at once; what right-sizing wishes for
//! A rate alone gives no memory, since many connections are idle: some data must have gone that way. Nobody
//! vouches for a rate that was returned to a peer: a path without routers returns what was asked. So for that
//! a buffer gets a smaller part of the memory.

use super::admission::{Memory, Pair, power_of_two};
use super::{FlowKey, HOST, NETWORK, Split};
use bentpipe_base::{Duration, Rate, Size};
use bentpipe_tcp::Connection;

/// Round trips that a buffer holds.
const ROUND_TRIPS: u64 = 3;
/// So many bytes came before a rate counts.
const USED: u64 = 64 << 10;
/// A buffer grows by at most this part of the memory that is left.
const PART: u64 = 4;
/// The same for a rate that was returned and not used yet.
const RETURNED_PART: u64 = 16;

/// Bytes in [`ROUND_TRIPS`] at this rate; 0 if one of both is not known.
fn held(rate: Option<Rate>, rtt: Duration) -> u64 {
    let bits = u128::from(rate.map_or(0, Rate::bps)) * u128::from(rtt.0) / 1_000_000_000;
    u64::try_from(bits / 8).unwrap_or(u64::MAX).saturating_mul(ROUND_TRIPS)
}

impl Pair {
    /// Grows with what `connection` can use; returns what its window should be at once.
    fn fit(&mut self, memory: &mut Memory, connection: &Connection) -> u64 {
        let rtt = connection.rtt().srtt();
        let board = connection.scoreboard();
        let granted = connection.rate().and_then(|rate| rate.granted);
        let sends = match granted.filter(|_| board.una() + connection.unacknowledged() > USED) {
            Some(rate) => held(Some(rate), rtt),
            None => board.flight().saturating_mul(2),
        };
        let returned = held(connection.returned_rate().filter(|_| connection.received() > USED), rtt);
        let mut grow = |size: &mut u64, wanted: u64, part: u64| {
            if wanted > *size {
                *size = memory.grow(*size, power_of_two(wanted).min(self.most), part);
            }
        };
        grow(&mut self.outgoing, sends, PART);
        grow(&mut self.incoming, connection.window().wished(), PART);
        grow(&mut self.incoming, returned, RETURNED_PART);
        returned
    }
}

impl Split {
    /// Makes the buffers of a connection as large as it can use, as far as there is memory; true if one has
    /// grown.
    pub(super) fn fit(&mut self, key: &FlowKey) -> bool {
        let before = self.memory.reserved;
        let Some(flow) = self.flows.get_mut(key) else { return false };
        let (Some(grant), ids) = (&mut flow.grant, flow.ids) else { return false };
        for side in [HOST, NETWORK] {
            let Some(id) = ids[side] else { continue };
            let Some(connection) = self.ends[side].connection(id) else { continue };
            let pair = &mut grant.0[side];
            let opened = pair.fit(&mut self.memory, connection);
            self.ends[side].allow(id, Size(pair.outgoing), Size(pair.incoming), Size(opened));
        }
        self.memory.reserved > before
    }
}
