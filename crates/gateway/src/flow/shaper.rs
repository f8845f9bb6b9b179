//! The pacer of the hop: without a rate, all that a gateway does that only passes.

use crate::config::Config;
use bentpipe_base::{Instant, Pkt, Size};

/// Who may send.
#[derive(Debug)]
pub(crate) enum Turn {
    /// The connection with this number.
    Flow(u32),
    /// This packet, which belongs to none.
    Pass(Pkt),
}

/// What a connection has to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// Something that was lost.
    Repair,
    /// New data, or a further copy.
    Data,
}

/// Says who may send into the hop, and when.
#[derive(Debug, Default)]
pub(crate) struct Shaper {}

impl Shaper {
    /// For a gateway that works as `config` says.
    pub(crate) const fn new(_: &Config) -> Self {
        Self {}
    }

    /// The configuration has changed.
    pub(crate) const fn configure(&mut self, _: &Config) {}

    /// A connection has something to send.
    pub(crate) const fn request(&mut self, _flow: u32, _: Want) {}

    /// Lets a packet that is nobody's pass in its turn; gives it back when it may go at once.
    pub(crate) const fn pass(&mut self, packet: Pkt) -> Result<(), Pkt> {
        Err(packet)
    }

    /// Who may send now.
    pub(crate) const fn next(&mut self, _now: Instant) -> Option<Turn> {
        None
    }

    /// The connection whose turn it was sent `size` and wants to send more.
    pub(crate) const fn sent(&mut self, _now: Instant, _flow: u32, _size: Size, _wants: Option<Want>) {}

    /// A connection is gone.
    pub(crate) const fn forget(&mut self, _flow: u32) {}

    /// When somebody's turn comes.
    pub(crate) const fn deadline(&self) -> Option<Instant> {
        None
    }
}
