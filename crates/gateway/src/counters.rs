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
    OptionSpace,
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
    /// Its sender is paced by a model of the path, as BBR is: losses do not slow it down, so there is nothing to gain.
    ModelBased,
    /// Its acceleration was ended: planned stop, or a change of configuration.
    Released,
    /// Its ports began another connection while it was thought alive.
    Reused,
    /// It is over; what still comes are late copies.
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

/// Packets lost in the hop, as far as acknowledgments tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Found missing behind what came after.
    pub found: u64,
    /// Of these, packets that arrived before their repair can have: they were only late.
    pub late: u64,
    /// Copies sent side by side, of which one at least has arrived: of the others nobody tells.
    pub copied: u64,
}

impl Lost {
    /// All losses, when `share` of the copies is lost as of other packets.
    pub fn estimate(&self, share: f64) -> u64 {
        self.found.saturating_sub(self.late) + (self.copied as f64 * share) as u64
    }
}

/// Totals since the gateway began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// Acknowledgments kept from the sender: they tell of a loss that is repaired here, or a later one says more.
    pub acks_withheld: u64,
    /// Segments of the sender that are held here already or that the receiver has.
    pub copies_swallowed: u64,
    /// Packets that were held when their connection ended.
    pub ended_held: u64,
    /// Packets of accelerated connections sent into the hop for the first time.
    pub forwarded: u64,
    /// Packets lost in the hop.
    pub lost: Lost,
    /// Their number: what was found, less what was only late, and of copies as many as the hop loses of others.
    pub losses: u64,
    /// Losses sent again.
    pub repairs: u64,
    /// Packets sent again because the receiver had no room for them.
    pub resent: u64,
    /// Further copies sent ahead of any loss.
    pub copies: u64,
    /// Timeouts of the gateway's own.
    pub timeouts: u64,
    /// Probes of a closed window.
    pub probes: u64,
    /// Packets that passed since there was no room to hold them.
    pub overflow: u64,
    /// Packets that were dropped for want of room, since others of their connection wait before them.
    pub no_room: u64,
    /// Packets that merely pass and were dropped, since too many waited for the hop.
    pub passing_full: u64,
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
    /// Counts a connection that passes.
    pub(crate) const fn pass(&mut self, why: Why) {
        self.passed[why as usize] += 1;
    }

    /// Packets that came in and did not go out, by cause: the key used in reports, and how many.
    pub const fn not_forwarded(&self) -> [(&'static str, u64); 5] {
        [
            ("ack_withheld", self.acks_withheld),
            ("copy_swallowed", self.copies_swallowed),
            ("ended_held", self.ended_held),
            ("no_room", self.no_room),
            ("passing_full", self.passing_full),
        ]
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
        let mut counters = Counters { acks_withheld: 3, ..Counters::default() };
        counters.pass(Why::Signed);
        assert_eq!((counters.passed(Why::Signed), counters.passed(Why::Policy)), (1, 0));
        assert_eq!(counters.not_forwarded()[0], ("ack_withheld", 3));
    }
}
