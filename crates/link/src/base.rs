//! What the rest of a direction's story begins with.

use bentpipe_base::{Duration, Probability, Rate, Size};

/// What a direction is like before anything changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Base {
    /// Rate.
    pub rate: Rate,
    /// One-way propagation delay.
    pub one_way: Duration,
    /// Bytes that each packet takes on the link beyond its own.
    pub framing: Size,
    /// Loss probability per packet.
    pub loss: Probability,
    /// Bit error rate.
    pub ber: Probability,
}
