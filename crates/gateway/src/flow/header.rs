//! Small things about headers.

use bentpipe_base::{Packet, SackList};

/// Sequence number `a` is later than `b`.
pub(super) const fn later(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() > 0
}

/// Other SACK blocks; the header's length follows.
pub(super) fn set_sack(packet: &mut Packet, sack: SackList) {
    let before = packet.tcp.wire_len();
    packet.tcp.sack = sack;
    packet.header_len = (packet.header_len + packet.tcp.wire_len()).saturating_sub(before);
}
