//! Helpers for headers.

use bentpipe_base::{Packet, SackList};

/// True if sequence number `a` is later than `b`.
pub(super) const fn later(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() > 0
}

/// Replaces the SACK blocks and updates the header length.
pub(super) fn set_sack(packet: &mut Packet, sack: SackList) {
    let before = packet.tcp.wire_len();
    packet.tcp.sack = sack;
    packet.header_len = (packet.header_len + packet.tcp.wire_len()).saturating_sub(before);
}
