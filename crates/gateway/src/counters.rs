//! What a gateway counts.

/// Counters of a gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets of accelerated flows sent to the satellite for the first time.
    pub forwarded: u64,
    /// Losses found in the hop.
    pub losses: u64,
    /// Losses sent again.
    pub repairs: u64,
    /// Packets sent again because the receiver had no room for them.
    pub resent: u64,
    /// Second copies.
    pub copies: u64,
    /// Timeouts of the gateway's own.
    pub timeouts: u64,
    /// Probes of a closed window.
    pub probes: u64,
    /// ACKs that the sender does not see.
    pub acks_withheld: u64,
    /// Segments of the sender that the gateway holds or the receiver has.
    pub copies_swallowed: u64,
    /// Packets that passed since there was no room to hold them.
    pub overflow: u64,
}
