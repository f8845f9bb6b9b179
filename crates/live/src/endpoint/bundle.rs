//! Joins consecutive segments of a connection into one super-packet, which the kernel or network card cuts
//! again (TSO). The engine decides about each segment as usual (window, pacing, order). Segments that differ
//! only in their sequence number are joined on output, so the same packets appear on the wire.

use super::Endpoint;
use super::table::ConnId;
use bentpipe_base::{Cx, Flags, Packet, Pkt};
use bentpipe_wire::offload::VnetHeader;
use std::io::IoSlice;

/// Longest payload: an IP packet has at most 65 535 bytes, the headers of IPv6 and TCP at most 40 + 60.
const LONGEST: u32 = 65_535 - 100;
/// Flags that only the last segment may carry.
const LAST: Flags = Flags(Flags::PSH.0 | Flags::FIN.0);

impl Endpoint {
    /// Hands the next packet or super-packet to `send`, as consecutive parts and with its virtio header.
    /// Returns what `send` returned, or `None` when there is nothing to send. The receiver of the packet
    /// completes the checksums.
    pub fn next_super<T>(
        &mut self,
        cx: &mut Cx<'_>,
        send: impl FnOnce(&VnetHeader, &[IoSlice<'_>]) -> T,
    ) -> Option<T> {
        if let Some(reply) = self.replies.pop_front() {
            self.counters.sent += 1;
            return Some(send(&VnetHeader::default(), &[IoSlice::new(&reply)]));
        }
        let (id, mut packet, size) = loop {
            let (id, mut packet) = self.next_segment(cx)?;
            let size = packet.body.len as u16;
            if size > 0 && packet.signal.is_none() {
                self.bundle(cx, id, &mut packet);
            }
            if self.table.get(id).is_some() {
                break (id, packet, size);
            }
            cx.recycle(packet);
        };
        let socket = self.table.get(id)?;
        self.scratch.clear();
        if packet.signal.is_some() {
            let mut joined = Vec::new(); // only IPv4 packets with a structure need it
            let written = socket.emit(&packet, &mut joined, &mut self.scratch);
            debug_assert!(written.is_ok(), "the MSS leaves room for signalling: {written:?}");
            cx.recycle(packet);
            self.counters.sent += 1;
            return written.ok().map(|()| send(&VnetHeader::default(), &[IoSlice::new(&self.scratch)]));
        }
        let note = socket.pair.emit_uncut(&packet, size, &mut self.scratch);
        debug_assert!(note.is_ok(), "the MSS keeps packets within what a header can say: {note:?}");
        let (first, second) = socket.bytes(packet.body);
        let sent = note.ok().map(|note| {
            self.counters.sent += u64::from(packet.body.len.div_ceil(u32::from(size.max(1))).max(1));
            send(&note, &[IoSlice::new(&self.scratch), IoSlice::new(first), IoSlice::new(second)])
        });
        packet.body.len = 0;
        cx.recycle(packet);
        sent
    }

    /// Joins the following segments to `packet`, as long as they fit.
    fn bundle(&mut self, cx: &mut Cx<'_>, id: ConnId, packet: &mut Pkt) {
        let size = packet.body.len;
        let mut end = packet.tcp.seq.at(u64::from(size));
        while packet.tcp.flags.0 & (LAST.0 | Flags::CWR.0 | Flags::SYN.0) == 0
            && packet.body.len.is_multiple_of(size)
            && packet.body.len + size <= LONGEST
        {
            let Some(next) = self.table.get_mut(id).and_then(|socket| socket.next(cx)) else { return };
            let follows =
                next.tcp.seq == end && next.body.off == packet.body.off + u64::from(packet.body.len);
            if !(follows && (1..=size).contains(&next.body.len) && is_alike(packet, &next)) {
                self.held = Some((id, next));
                return;
            }
            packet.body.len += next.body.len;
            packet.tcp.flags.0 |= next.tcp.flags.0 & LAST.0;
            end = next.tcp.seq.at(u64::from(next.body.len));
            cx.recycle(next);
        }
    }
}

/// True if the segments differ only in their sequence number. One with a structure is never joined.
fn is_alike(packet: &Packet, next: &Packet) -> bool {
    if packet.signal.is_some() || next.signal.is_some() {
        return false;
    }
    let mut tcp = next.tcp.clone();
    tcp.seq = packet.tcp.seq;
    tcp.flags.0 &= !LAST.0;
    tcp == packet.tcp && (next.dscp, next.ecn, next.hops) == (packet.dscp, packet.ecn, packet.hops)
}
