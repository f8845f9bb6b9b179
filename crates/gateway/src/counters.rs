//! The gateway's counters.

use bentpipe_base::Size;

/// Why a connection is not accelerated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Why {
    /// Its SYN was not seen: it is older than the gateway, or its handshake took another path.
    MidStream,
    /// Only one direction passes this gateway.
    OneDirection,
    /// Its segments are signed (RFC 2385, RFC 5925), so headers must not change.
    Signed,
    /// A subflow of a multipath connection (RFC 8684): all subflows share one window.
    Multipath,
    /// The TCP header has no room for an option that must be inserted.
    OptionSpace,
    /// A rule excludes it.
    Policy,
    /// In the control group, chosen at random.
    Sampled,
    /// Acceleration is switched off.
    Bypassed,
    /// The limit of accelerated connections is reached.
    Overload,
    /// The memory limit is reached.
    Memory,
    /// Its sender paces by a model of the path, as BBR does. Losses do not slow it down, so acceleration
    /// would gain nothing.
    ModelBased,
    /// Its acceleration was stopped by a planned stop or a configuration change.
    Released,
    /// A new connection with the same ports began while it was believed to be open.
    Reused,
    /// It has ended; only late duplicates still arrive.
    Ended,
}

impl Why {
    /// All reasons, in the order reports list them.
    pub const ALL: [Self; 14] = [
        Self::MidStream,
        Self::OneDirection,
        Self::Signed,
        Self::Multipath,
        Self::OptionSpace,
        Self::Policy,
        Self::Sampled,
        Self::Bypassed,
        Self::Overload,
        Self::Memory,
        Self::ModelBased,
        Self::Released,
        Self::Reused,
        Self::Ended,
    ];

    /// The key used in reports.
    pub const fn key(self) -> &'static str {
        match self {
            Self::MidStream => "mid_stream",
            Self::OneDirection => "one_direction",
            Self::Signed => "signed",
            Self::Multipath => "multipath",
            Self::OptionSpace => "option_space",
            Self::Policy => "policy",
            Self::Sampled => "sampled",
            Self::Bypassed => "bypassed",
            Self::Overload => "overload",
            Self::Memory => "memory",
            Self::ModelBased => "model_based",
            Self::Released => "released",
            Self::Reused => "reused",
            Self::Ended => "ended",
        }
    }
}

/// Packets lost in the hop, as known from acknowledgments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Missing although later packets arrived.
    pub found: u64,
    /// Of these, packets that arrived before their retransmission could have: they were only late.
    pub late: u64,
    /// Copies sent together of which at least one arrived; acknowledgments do not tell about the others.
    pub copied: u64,
}

impl Lost {
    /// Estimates all losses, assuming that copies are lost at rate `share`.
    pub fn estimate(&self, share: f64) -> u64 {
        self.found.saturating_sub(self.late) + (self.copied as f64 * share) as u64
    }
}

/// Totals since the gateway started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Wire packets received from the LAN and from the satellite.
    pub packets: [u64; 2],
    /// Their bytes, IP headers included.
    pub bytes: [Size; 2],
    /// Of these packets, those that are not TCP.
    pub not_tcp: u64,
    /// Packets of a tracked connection that came from the wrong side: a loop, or forged. They pass.
    pub strays: u64,
    /// Packets of untracked connections: the table is full, or there is nothing to track.
    pub unfollowed: u64,
    /// Acknowledgments withheld from the sender, because they report a loss that the gateway repairs, or
    /// because a later one says more.
    pub acks_withheld: u64,
    /// Segments from the sender that were dropped because the gateway or the receiver already has them.
    pub copies_swallowed: u64,
    /// Packets that were held when their connection ended.
    pub ended_held: u64,
    /// Packets of accelerated connections sent over the hop for the first time.
    pub forwarded: u64,
    /// Packets lost in the hop.
    pub lost: Lost,
    /// Estimated number of losses: those found, less those that were only late, plus the estimated losses of
    /// copies.
    pub losses: u64,
    /// Retransmissions of lost packets.
    pub repairs: u64,
    /// Packets sent again because the receiver had no room for them.
    pub resent: u64,
    /// Redundant copies, sent before any loss is known.
    pub copies: u64,
    /// The gateway's own retransmission timeouts.
    pub timeouts: u64,
    /// Zero-window probes.
    pub probes: u64,
    /// Packets that passed because there was no room to hold them.
    pub overflow: u64,
    /// Packets dropped because there was no room and others of their connection were queued before them.
    pub no_room: u64,
    /// Packets of flows that only pass, dropped because too many were queued for the hop.
    pub passing_full: u64,
    /// Tracked connections.
    pub flows: u64,
    /// Of these, connections accelerated from their SYN on.
    pub begun: u64,
    /// Connections whose handshake was completed under acceleration.
    pub accelerated: u64,
    /// Connections that passed unaccelerated, by their first reason.
    passed: [u64; Why::ALL.len()],
    /// Connections evicted during their handshake to make room for newer ones.
    pub opening_evicted: u64,
    /// Unaccelerated connections evicted to make room for newer ones.
    pub passing_evicted: u64,
    /// Reports of ended connections that were not fetched in time.
    pub reports_lost: u64,
}

impl Counters {
    /// Counts an unaccelerated connection.
    pub(crate) const fn pass(&mut self, why: Why) {
        self.passed[why as usize] += 1;
    }

    /// Packets that came in and did not go out, by cause: the key used in reports, and the number.
    pub const fn not_forwarded(&self) -> [(&'static str, u64); 5] {
        [
            ("ack_withheld", self.acks_withheld),
            ("copy_swallowed", self.copies_swallowed),
            ("ended_held", self.ended_held),
            ("no_room", self.no_room),
            ("passing_full", self.passing_full),
        ]
    }

    /// Connections that passed unaccelerated with `why` as their first reason.
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
        let mut counters = Counters { acks_withheld: 3, ..Counters::default() };
        counters.pass(Why::Signed);
        assert_eq!((counters.passed(Why::Signed), counters.passed(Why::Policy)), (1, 0));
        assert_eq!(counters.not_forwarded()[0], ("ack_withheld", 3));
    }
}
