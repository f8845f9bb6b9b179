//! Which IPv6 data packets of the host may grow by a structure on the whole path.
//!
//! Sources: RFC 8200, section 5 (every link carries 1280 bytes), RFC 8201 (path MTU discovery), RFC 9293,
//! section 3.7.1 (the MSS option).
//! The host fills its packets up to the MTU of the path and does not know that a structure follows. One that
//! gets too long is lost for good: the router names a size to the host that the host keeps already. So a
//! packet may grow
//!   to what every link carries;
//!   to the longest packet that the host has sent since it last sent one again (it does so when it learns of
//!   a lower MTU);
//!   if it is as long as the MSS option of the peer allows, which was lowered for this.
//! A flow that only sends packets which may not grow could not be told of a lower rate. So now and then one
//! is cut: without its last bytes it has room.
//! In IPv4 few packets carry a structure, and one that is lost comes again without.
//! Deviation: an MTU of the path less than a structure above the last is found by a timeout only.

use bentpipe_advice::tia1039::Structure;
use bentpipe_base::{IpVersion, Packet};

/// Carried by every link.
const LEAST_MTU: u64 = 1280;
/// Headers of IPv6 and TCP without options: those of TCP are counted in the MSS (RFC 6691).
const HEADERS: u64 = 60;

/// What is known of the lengths of packets to the peer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Room {
    /// The longest packet that the peer's MSS option allows, with a structure.
    full: u64,
    /// The longest that the host has sent since it last sent one again.
    longest: u64,
}

impl Room {
    /// Takes the MSS option of the peer's SYN or SYN/ACK, before it is lowered.
    pub(crate) fn hear_syn(&mut self, mss: Option<u16>) {
        self.full = mss.map_or(0, |mss| HEADERS + u64::from(mss));
    }

    /// True if a new data packet that may not grow may do so without as many bytes as a structure has.
    pub(crate) fn has_without_end(&self, packet: &Packet) -> bool {
        let len = packet.wire_len().0;
        packet.ip == IpVersion::V6 && len <= self.longest && !self.is_room(len + Structure::LEN as u64)
    }

    fn is_room(&self, len: u64) -> bool {
        len <= self.longest.max(LEAST_MTU) || len == self.full
    }

    /// Notes a data packet of the host; true if it may grow.
    pub(crate) fn has(&mut self, packet: &Packet, is_again: bool) -> bool {
        if packet.ip == IpVersion::V4 {
            return true;
        }
        let len = packet.wire_len().0;
        self.longest = if is_again { len } else { self.longest.max(len) };
        self.is_room(len + Structure::LEN as u64)
    }
}
