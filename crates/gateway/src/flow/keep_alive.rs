//! A byte of a flow that is sent again to keep the channels of the hop (`gateway/keep_alive.rs`).

use super::cache::Piece;
use super::{Flow, Shared};
use crate::report::State;
use crate::sides::SATELLITE;
use bentpipe_base::{Cx, Packet, Pkt};

impl Flow {
    /// Returns a copy of the last byte that was forwarded, and the position behind it.
    pub(crate) fn last_byte(&self, cx: &mut Cx<'_>) -> Option<(u64, Pkt)> {
        let is_data = |p: &&Piece| p.end - p.start == u64::from(p.packet.body.len) && !p.whole();
        let last = self.cache.pieces.back().filter(is_data)?;
        let mut byte = Piece::new(last.start, last.end, cx.duplicate(&last.packet));
        byte.drop_front(last.end - 1);
        Some((last.end, byte.packet))
    }

    /// True if the receiver has everything before `end`.
    pub(crate) const fn has_arrived(&self, end: u64) -> bool {
        self.una >= end
    }

    /// True if the receiver answers data, and not with an RST.
    pub(crate) fn can_keep_alive(&self) -> bool {
        self.is_accelerated() && self.state == State::Established && self.fins == (None, None)
    }

    /// True for the answer to a keep-alive, which repeats an ACK although nothing is missing.
    pub(super) const fn answers_keep_alive(&mut self, is_repeated: bool) -> bool {
        let answers = is_repeated && self.kept_alive > 0;
        self.kept_alive -= answers as u8;
        answers
    }

    /// Sends a byte once more.
    pub(crate) fn send_again(&mut self, cx: &mut Cx<'_>, byte: &Packet, shared: &mut Shared) {
        let mut packet = cx.duplicate(byte);
        self.refresh(&mut packet);
        self.stamp(&mut packet);
        self.kept_alive = self.kept_alive.saturating_add(1);
        shared.shaper.charge(cx.now, shared.shaper.cost(&packet));
        cx.send(SATELLITE, packet);
    }
}
