//! The gateway's counters.

use bentpipe_base::{Size, report_enum};

report_enum! {
    /// Why a connection is not accelerated.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    #[repr(u8)]
    pub enum PassReason {
        /// Its SYN was not seen: it is older than the gateway, or its handshake took another path.
        MidStream = "mid_stream",
        /// Only one direction passes this gateway.
        OneDirection = "one_direction",
        /// Its segments are signed (RFC 2385, RFC 5925), so headers must not change.
        Signed = "signed",
        /// A subflow of a multipath connection (RFC 8684): all subflows share one window.
        Multipath = "multipath",
        /// The TCP header has no room for an option that must be inserted.
        OptionSpace = "option_space",
        /// A rule excludes it.
        Policy = "policy",
        /// In the control group, chosen at random.
        Sampled = "sampled",
        /// Acceleration is switched off.
        Bypassed = "bypassed",
        /// The limit of accelerated connections is reached.
        Overload = "overload",
        /// The memory limit is reached.
        Memory = "memory",
        /// Its sender paces by a model of the path, as BBR does: acceleration would gain nothing.
        ModelBased = "model_based",
        /// Its acceleration was stopped by a planned stop or a configuration change.
        Released = "released",
        /// A new connection with the same ports began while it was believed to be open.
        Reused = "reused",
        /// It has ended; only late duplicates still arrive.
        Ended = "ended",
        /// It asks the network for a rate in its SYN and paces at what it is granted.
        AsksRate = "asks_rate",
    }
}

/// Packets lost in the hop, as known from acknowledgments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Missing although later packets arrived.
    pub found: u64,
    /// Of these, packets that arrived before their retransmission could have: they were only late.
    pub late: u64,
    /// Copies sent together of which at least one arrived; acknowledgments do not show what happened to the
    /// others.
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
    pub not_tracked: u64,
    /// Acknowledgments withheld: they report a loss repaired here, or a later one replaces them.
    pub acks_withheld: u64,
    /// Segments from the sender that were dropped because the gateway or the receiver already has them.
    pub duplicates_dropped: u64,
    /// Packets that were held when their connection ended.
    pub ended_held: u64,
    /// Packets of accelerated connections sent over the hop for the first time.
    pub forwarded: u64,
    /// Packets lost in the hop.
    pub lost: Lost,
    /// Estimated losses: those found, less those only late, plus those of copies.
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
    /// Bytes sent again to keep the channels of the hop.
    pub keep_alives: u64,
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
    passed: [u64; PassReason::ALL.len()],
    /// Connections evicted during their handshake to make room for newer ones.
    pub opening_evicted: u64,
    /// Unaccelerated connections evicted to make room for newer ones.
    pub passing_evicted: u64,
    /// Reports of ended connections that were not fetched in time.
    pub reports_lost: u64,
}

impl Counters {
    pub(crate) const fn pass(&mut self, why: PassReason) {
        self.passed[why as usize] += 1;
    }

    /// Packets that came in and did not go out, by cause: the key used in reports, and the number.
    pub const fn not_forwarded(&self) -> [(&'static str, u64); 5] {
        [
            ("ack_withheld", self.acks_withheld),
            ("copy_swallowed", self.duplicates_dropped),
            ("ended_held", self.ended_held),
            ("no_room", self.no_room),
            ("passing_full", self.passing_full),
        ]
    }

    /// Connections that passed unaccelerated with `why` as their first reason.
    pub const fn passed(&self, why: PassReason) -> u64 {
        self.passed[why as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_whole_and_in_order() {
        for (i, why) in PassReason::ALL.into_iter().enumerate() {
            assert_eq!(why as usize, i, "{}", why.key());
        }
        let mut counters = Counters { acks_withheld: 3, ..Counters::default() };
        counters.pass(PassReason::Signed);
        assert_eq!((counters.passed(PassReason::Signed), counters.passed(PassReason::Policy)), (1, 0));
        assert_eq!(counters.not_forwarded()[0], ("ack_withheld", 3));
    }
}
