//! What a gateway counts.

use bentpipe_base::Size;

/// Why a connection is not accelerated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Why {
    /// Its SYN was not seen: it is older than the gateway, or its handshake went another way.
    MidStream,
    /// Only one of its directions comes through here.
    OneDirection,
    /// Its segments are signed (RFC 2385, RFC 5925): no header may change.
    Signed,
    /// A subflow of a multipath connection (RFC 8684), whose window belongs to all subflows together.
    Multipath,
    /// No room left for an option that would have to be inserted.
    NoOptionSpace,
    /// A rule says so.
    Policy,
    /// Left alone at random, to be compared with the others.
    Sampled,
    /// The gateway is told to accelerate nothing.
    Bypassed,
    /// As many connections as may be are accelerated already.
    Overload,
    /// As many bytes as may be are held already.
    Memory,
    /// Its acceleration was ended: planned stop, or a change of configuration.
    Released,
    /// It is over; what still comes are late copies.
    Ended,
}

impl Why {
    /// All reasons, in the order reports list them.
    pub const ALL: [Self; 12] = [
        Self::MidStream,
        Self::OneDirection,
        Self::Signed,
        Self::Multipath,
        Self::NoOptionSpace,
        Self::Policy,
        Self::Sampled,
        Self::Bypassed,
        Self::Overload,
        Self::Memory,
        Self::Released,
        Self::Ended,
    ];

    /// The key used in reports.
    pub const fn key(self) -> &'static str {
        match self {
            Self::MidStream => "mid_stream",
            Self::OneDirection => "one_direction",
            Self::Signed => "signed",
            Self::Multipath => "multipath",
            Self::NoOptionSpace => "no_option_space",
            Self::Policy => "policy",
            Self::Sampled => "sampled",
            Self::Bypassed => "bypassed",
            Self::Overload => "overload",
            Self::Memory => "memory",
            Self::Released => "released",
            Self::Ended => "ended",
        }
    }
}

/// Why a packet that came in did not go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Cause {
    /// A duplicate acknowledgment that tells of a loss under repair here.
    DuplicateAck,
    /// An acknowledgment that a later one made useless while it was held.
    StaleAck,
    /// A copy of bytes that are held here anyway.
    HeldCopy,
    /// A copy of bytes that the receiver has.
    KnownCopy,
    /// The connection ended while the packet was held.
    Ended,
}

impl Cause {
    /// All causes, in the order reports list them.
    pub const ALL: [Self; 5] =
        [Self::DuplicateAck, Self::StaleAck, Self::HeldCopy, Self::KnownCopy, Self::Ended];

    /// The key used in reports.
    pub const fn key(self) -> &'static str {
        match self {
            Self::DuplicateAck => "duplicate_ack",
            Self::StaleAck => "stale_ack",
            Self::HeldCopy => "held_copy",
            Self::KnownCopy => "known_copy",
            Self::Ended => "ended",
        }
    }
}

/// Totals since the gateway began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Wire packets that came in from the LAN and from the satellite.
    pub packets: [u64; 2],
    /// Their bytes, IP headers included.
    pub bytes: [Size; 2],
    /// Of the packets those that are not TCP.
    pub not_tcp: u64,
    /// Packets of a followed connection that came from the wrong side: a loop, or forged. They pass.
    pub strays: u64,
    /// Packets of connections that are not followed, since the table is full or there is nothing to follow.
    pub unfollowed: u64,
    /// Packets that came in and did not go out, by cause.
    not_forwarded: [u64; Cause::ALL.len()],
    /// Connections followed.
    pub flows: u64,
    /// Of these the ones that were accelerated from their SYN on.
    pub begun: u64,
    /// Those whose handshake came to its end under acceleration.
    pub accelerated: u64,
    /// Those that passed, by the reason at first.
    passed: [u64; Why::ALL.len()],
    /// Connections that were forgotten while they opened, to make room for others that open.
    pub opening_evicted: u64,
    /// Connections that passed and were forgotten to make room for others that pass.
    pub passing_evicted: u64,
    /// Reports of ended connections that nobody took in time.
    pub reports_lost: u64,
}

impl Counters {
    /// Counts a packet that will not go out.
    #[cfg_attr(not(test), expect(dead_code, reason = "the frame alone keeps no packet back"))]
    pub(crate) const fn keep_back(&mut self, cause: Cause) {
        self.not_forwarded[cause as usize] += 1;
    }

    /// Counts a connection that passes.
    pub(crate) const fn pass(&mut self, why: Why) {
        self.passed[why as usize] += 1;
    }

    /// Packets that came in and did not go out.
    pub const fn not_forwarded(&self, cause: Cause) -> u64 {
        self.not_forwarded[cause as usize]
    }

    /// Connections that passed, by the reason at first.
    pub const fn passed(&self, why: Why) -> u64 {
        self.passed[why as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_whole_and_in_order() {
        for (i, why) in Why::ALL.into_iter().enumerate() {
            assert_eq!(why as usize, i, "{}", why.key());
        }
        let mut counters = Counters::default();
        for (i, cause) in Cause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, i, "{}", cause.key());
            counters.keep_back(cause);
            assert_eq!(counters.not_forwarded(cause), 1);
        }
    }
}
