//! One connection with its bytes: the engine's [`Connection`] knows ranges, and two rings hold their bytes.

use super::ring::Ring;
use super::signal::{Received, add_to_headers, end_of, looks_signalled};
use super::{Ending, Settings, SocketEvent};
use bentpipe_base::{Addr, Body, Cx, Duration, Flags, Instant, IpVersion, Packet, Pkt};
use bentpipe_tcp::timers::Timer;
use bentpipe_tcp::{Connection, State, Tuple};
use bentpipe_wire::offload::{VnetHeader, emit_super_packet};
use bentpipe_wire::{AddressPair, Segment, WireError, emit};
use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeSet;

/// Addresses and ports of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FourTuple {
    /// Our address is the source.
    pub(super) ends: AddressPair,
    pub(super) ours: u16,
    pub(super) peers: u16,
}

/// Addresses for the engine. It never compares them, since the table has already found the connection.
const OURS: Addr = Addr(1);
const PEERS: Addr = Addr(2);

impl FourTuple {
    /// The connection of a packet from the peer.
    pub(super) const fn of(segment: &Segment<'_>) -> Self {
        let ends = match segment.ends {
            AddressPair::V4 { src, dst } => AddressPair::V4 { src: dst, dst: src },
            AddressPair::V6 { src, dst } => AddressPair::V6 { src: dst, dst: src },
        };
        Self { ends, ours: segment.dport, peers: segment.sport }
    }

    /// From two addresses; `None` if they are of different families.
    pub(super) const fn between(ours: (IpAddr, u16), peers: SocketAddr) -> Option<Self> {
        let ends = match (ours.0, peers.ip()) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => AddressPair::V4 { src, dst },
            (IpAddr::V6(src), IpAddr::V6(dst)) => AddressPair::V6 { src, dst },
            _ => return None,
        };
        Some(Self { ends, ours: ours.1, peers: peers.port() })
    }

    pub(super) fn local(&self) -> SocketAddr {
        SocketAddr::new(self.ends.addresses().0, self.ours)
    }

    pub(super) fn remote(&self) -> SocketAddr {
        SocketAddr::new(self.ends.addresses().1, self.peers)
    }

    /// The engine's form of it.
    pub(super) const fn tuple(&self) -> Tuple {
        Tuple { local: (OURS, self.ours), remote: (PEERS, self.peers) }
    }

    /// Converts a packet from the peer to the engine's form.
    pub(super) fn packet(&self, cx: &mut Cx<'_>, received: &Received<'_>) -> Pkt {
        let mut packet = cx.packet();
        let segment = &received.segment;
        packet.ip = match self.ends {
            AddressPair::V4 { .. } => IpVersion::V4,
            AddressPair::V6 { .. } => IpVersion::V6,
        };
        packet.signal = received.signal.map(Box::new);
        (packet.src, packet.sport, packet.dst, packet.dport) = (PEERS, self.peers, OURS, self.ours);
        (packet.hops, packet.dscp, packet.ecn) = (segment.hops, segment.dscp, segment.ecn);
        packet.tcp = segment.tcp.clone();
        packet.body = Body { off: 0, len: segment.payload.len() as u32 };
        packet.seal();
        packet
    }

    /// Writes the bytes of a packet of ours to `out`, which is empty. `payload` includes what is at its end.
    pub(super) fn emit(&self, packet: &Packet, payload: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
        emit(&self.segment(packet, payload), out)?;
        add_to_headers(packet, out)
    }

    /// Writes only the headers, those of a super-packet that is to be cut into pieces of `size`.
    pub(super) fn emit_uncut(
        &self,
        packet: &Packet,
        size: u16,
        out: &mut Vec<u8>,
    ) -> Result<VnetHeader, WireError> {
        emit_super_packet(&self.segment(packet, &[]), packet.body.len as usize, size, out)
    }

    fn segment<'a>(&self, packet: &Packet, payload: &'a [u8]) -> Segment<'a> {
        Segment {
            ends: self.ends,
            sport: self.ours,
            dport: self.peers,
            hops: packet.hops,
            dscp: packet.dscp,
            ecn: packet.ecn,
            tcp: packet.tcp.clone(),
            payload,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// A listener, until it is accepted.
    Listener,
    /// The application.
    Application,
    /// Nobody: it was closed and ends by itself.
    Nobody,
}

/// Most gaps kept in one stream; the peer must retransmit data that would add another. A window of 6 MiB with
/// every second full-sized segment lost has 2 200.
const MAX_GAPS: usize = 8192;

/// If the pacer is called later than this after its release, it starts anew: catching up would be a burst.
const CATCH_UP: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(super) struct Socket {
    pub(super) conn: Connection,
    pub(super) pair: FourTuple,
    pub(super) owner: Owner,
    /// Data written and not acknowledged.
    outgoing: Ring,
    /// Total bytes written.
    written: u64,
    /// Data arrived and not read.
    incoming: Ring,
    /// Events that the application has not read; each is in it once, so a peer cannot make them many.
    pub(super) unread: BTreeSet<SocketEvent>,
    /// The application has shut down its sending side.
    pub(super) shut: bool,
    /// A read found nothing.
    pub(super) wants_read: bool,
    /// A write found too little room.
    pub(super) wants_write: bool,
    pub(super) told_delivered: bool,
    pub(super) ending: Option<Ending>,
    /// The handshake was completed.
    pub(super) opened: bool,
    /// Counted as a connection in TIME-WAIT.
    pub(super) waits: bool,
    /// Ended in the engine; kept only for the application.
    pub(super) over: bool,
    /// In the endpoint's queue of connections that may have something to send.
    pub(super) ready: bool,
    /// Earliest wake-up requested.
    pub(super) armed: Instant,
    /// The latest time at which the engine was asked for a segment.
    clock: Instant,
    /// That time was in the past, and the engine may send more at it.
    behind: bool,
    /// The last byte of a segment that was cut; sent next.
    rest: Option<Pkt>,
    /// State, owner and acknowledged position when progress was last made, and the time of that.
    progress: (State, Owner, u64),
    since: Instant,
    /// Bytes that had arrived when the application closed the connection.
    received_then: u64,
    /// An ICMP error said that our segments cannot be delivered.
    pub(super) unreachable: bool,
}

impl Socket {
    pub(super) fn new(now: Instant, conn: Connection, pair: FourTuple, owner: Owner) -> Self {
        Self {
            progress: (conn.state(), owner, 0),
            conn,
            pair,
            owner,
            outgoing: Ring::default(),
            written: 0,
            incoming: Ring::default(),
            unread: BTreeSet::new(),
            shut: false,
            wants_read: true,
            wants_write: false,
            told_delivered: false,
            ending: None,
            opened: false,
            waits: false,
            over: false,
            ready: false,
            armed: Instant::NEVER,
            clock: now,
            behind: false,
            rest: None,
            since: now,
            received_then: 0,
            unreachable: false,
        }
    }

    /// How a connection ends whose peer stopped answering; reports ICMP errors (RFC 9293, section 3.9.2.2).
    pub(super) const fn timeout_ending(&self) -> Ending {
        if self.unreachable { Ending::Unreachable } else { Ending::TimedOut }
    }

    /// Takes data that the application writes, as much as there is room for; returns the number of bytes.
    pub(super) fn write(&mut self, bytes: &[u8]) -> usize {
        let taken = (self.conn.write(bytes.len() as u64) as usize).min(bytes.len());
        // an application that always has more to write never reaches `settle`
        self.release();
        self.outgoing.write(self.written, &bytes[..taken]);
        self.written += taken as u64;
        taken
    }

    /// Copies data that has arrived to the application; returns the number of bytes.
    pub(super) fn read(&mut self, now: Instant, into: &mut [u8]) -> usize {
        let len = into.len().min(self.conn.readable() as usize);
        let at = self.incoming.base;
        // two FINs at different positions make a byte readable that the peer never sent: it is zero
        self.incoming.reserve(len);
        let (first, second) = self.incoming.get(at, len);
        into[..first.len()].copy_from_slice(first);
        into[first.len()..len].copy_from_slice(second);
        self.incoming.release(at + len as u64);
        self.conn.consume(now, len as u64);
        len
    }

    /// Handles a packet from the peer. A super-packet is passed to the engine as its original segments, since
    /// delayed acknowledgments and windows depend on segment sizes; no acknowledgment is sent between them.
    pub(super) fn receive(&mut self, cx: &mut Cx<'_>, received: &Received<'_>, gso_size: usize) {
        let segment = &received.segment;
        let size = if gso_size == 0 { segment.payload.len().max(1) } else { gso_size };
        let pieces = segment.payload.len().div_ceil(size).max(1);
        for i in 0..pieces {
            let start = i * size;
            let mut piece = segment.clone();
            piece.payload = &segment.payload[start..segment.payload.len().min(start + size)];
            piece.tcp.seq = segment.tcp.seq.at(start as u64);
            if i + 1 < pieces {
                piece.tcp.flags.0 &= !(Flags::FIN.0 | Flags::PSH.0);
            }
            if i > 0 {
                piece.tcp.flags.0 &= !Flags::CWR.0;
            }
            let piece = Received { segment: piece, ..*received };
            self.receive_segment(cx, &piece.of_connection(&self.conn));
        }
    }

    fn receive_segment(&mut self, cx: &mut Cx<'_>, received: &Received<'_>) {
        let segment = &received.segment;
        let opens = self.conn.state() == State::SynSent; // the window is known only after the SYN
        let text = self.data_range_in_window(segment);
        let new = text.filter(|t| !opens && !self.has_arrived(*t));
        if let Some((left, _)) = new
            && left > self.conn.receiver().next()
            && self.conn.receiver().out_of_order().len() >= MAX_GAPS
        {
            return;
        }
        let packet = self.pair.packet(cx, received);
        self.conn.segment(cx, &packet);
        cx.recycle(packet);
        let new = if opens { self.syn_data_range(segment) } else { new };
        // The engine decides what it accepts. Only bytes that newly count as arrived are written, so a
        // segment that it rejected cannot change data.
        if let Some((left, right)) = new.filter(|t| self.has_arrived(*t)) {
            let first = self.position(segment).map_or(0, |p| left.saturating_sub(p));
            let bytes = &segment.payload[first as usize..first as usize + (right - left) as usize];
            self.incoming.write(left - 1, bytes);
        }
    }

    /// Position of a segment's data; the peer's SYN is at 0, the data after it at 1.
    fn position(&self, segment: &Segment<'_>) -> Option<u64> {
        let position = self.conn.receiver().position(segment.tcp.seq)?;
        Some(position + u64::from(segment.tcp.flags.has(Flags::SYN)))
    }

    /// The part of a segment's data that lies in the window, by position.
    fn data_range_in_window(&self, segment: &Segment<'_>) -> Option<(u64, u64)> {
        let (position, receiver) = (self.position(segment)?, self.conn.receiver());
        let left = position.max(receiver.next()).max(1);
        let right = (position + segment.payload.len() as u64).min(receiver.window.right_edge());
        (left < right).then_some((left, right))
    }

    /// The part of the data in a SYN that was accepted with it.
    fn syn_data_range(&self, segment: &Segment<'_>) -> Option<(u64, u64)> {
        let right = (1 + segment.payload.len() as u64).min(1 + self.conn.received());
        (segment.tcp.flags.has(Flags::SYN) && right > 1).then_some((1, right))
    }

    fn has_arrived(&self, (left, right): (u64, u64)) -> bool {
        let receiver = self.conn.receiver();
        if right <= receiver.next() {
            return true;
        }
        let ranges = receiver.out_of_order();
        let i = ranges.partition_point(|r| r.1 <= left);
        ranges.get(i).is_some_and(|r| r.0 <= left && right <= r.1)
    }

    /// Returns the next segment of the engine.
    ///
    /// A pacer's release is handled at the time it was due, not when the thread woke up for it: being late
    /// delays packets but must not lower the rate (the relay does the same with its links). Other timers are
    /// handled at the present time.
    pub(super) fn next(&mut self, cx: &mut Cx<'_>) -> Option<Pkt> {
        if let Some(rest) = self.rest.take() {
            if self.keeps(rest.body) {
                return Some(rest);
            }
            cx.recycle(rest);
        }
        let mut packet = self.next_whole(cx)?;
        if self.conn.may_have_structures_in_payload() {
            self.rest = self.cut_ambiguous(cx, &mut packet);
        }
        Some(packet)
    }

    /// Cuts the last byte off data whose end looks like a structure; returns the rest. One byte less has no
    /// structure at its end, nor has a single byte.
    fn cut_ambiguous(&self, cx: &mut Cx<'_>, packet: &mut Pkt) -> Option<Pkt> {
        let (first, second) = self.bytes(packet.body);
        if packet.signal.is_some() || !looks_signalled(first, second) {
            return None;
        }
        let mut rest = cx.packet();
        (*rest).clone_from(packet);
        packet.body.len -= 1;
        packet.tcp.flags.0 &= !(Flags::FIN.0 | Flags::PSH.0);
        packet.seal();
        rest.body = Body { off: packet.body.off + u64::from(packet.body.len), len: 1 };
        rest.tcp.seq = packet.tcp.seq.at(u64::from(packet.body.len));
        rest.tcp.flags.0 &= !Flags::CWR.0;
        rest.seal();
        Some(rest)
    }

    fn next_whole(&mut self, cx: &mut Cx<'_>) -> Option<Pkt> {
        let now = cx.now;
        let oldest = Instant(now.0.saturating_sub(CATCH_UP.0));
        let mut at = if self.behind { self.clock.max(oldest) } else { self.release_by(now, oldest) };
        loop {
            cx.now = at;
            self.clock = at;
            // a packet since the last call may have set an earlier deadline, and that may have passed
            if self.conn.deadline() <= at {
                self.conn.timer(cx);
            }
            let packet = self.conn.transmit(cx);
            if packet.is_some() || at == now {
                // first ask for further segments at that time
                self.behind = packet.is_some() && at < now;
                cx.now = now;
                return packet;
            }
            at = self.release_by(now, at);
        }
    }

    /// When the pacer's next release was due, if that is past; else the present. Never before `from`.
    fn release_by(&self, now: Instant, from: Instant) -> Instant {
        match self.conn.next_timer() {
            Some((at, Timer::Pace)) if at < now => at.max(self.clock).max(from),
            _ => now,
        }
    }

    /// True if the bytes of a segment are still here: it may be acknowledged before it leaves.
    pub(super) const fn keeps(&self, body: Body) -> bool {
        body.len == 0 || self.outgoing.has(body.off, body.len as usize)
    }

    /// The written bytes of a segment's body.
    pub(super) fn bytes(&self, body: Body) -> (&[u8], &[u8]) {
        match body.len {
            0 => (&[], &[]),
            len => self.outgoing.get(body.off, len as usize),
        }
    }

    /// Writes the bytes of a packet that the engine wants to send.
    pub(super) fn emit(
        &self,
        packet: &Packet,
        joined: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), WireError> {
        let (first, second) = self.bytes(packet.body);
        let end = end_of(packet);
        if second.is_empty() && end.is_empty() {
            return self.pair.emit(packet, first, out);
        }
        joined.clear();
        joined.extend_from_slice(first);
        joined.extend_from_slice(second);
        joined.extend_from_slice(end);
        self.pair.emit(packet, joined, out)
    }

    /// Shuts down the sending side. In SYN-SENT, written data and the FIN wait for the end of the handshake.
    pub(super) fn shut(&mut self) {
        self.shut = true;
        if self.conn.state() != State::SynSent {
            self.conn.close();
        }
    }

    /// Discards acknowledged data; returns the position up to which data is acknowledged.
    fn release(&mut self) -> u64 {
        let una = self.conn.scoreboard().una();
        self.outgoing.release(una.saturating_sub(1).min(self.written));
        una
    }

    /// Discards acknowledged data, and notes the time of the last progress.
    pub(super) fn note_progress(&mut self, now: Instant) {
        let una = self.release();
        let (state, owner, before) = (self.conn.state(), self.owner, self.progress.2);
        // single bytes, acknowledged by zero-window probes, are no progress
        let moved = una >= before + u64::from(self.conn.agreed().mss);
        if moved || (state, owner) != (self.progress.0, self.progress.1) {
            (self.progress, self.since) = ((state, owner, una), now);
            self.unreachable = false;
        }
        if matches!(state, State::TimeWait | State::Closed) {
            self.outgoing.free();
            if self.owner == Owner::Nobody {
                self.incoming.free();
            }
        }
    }

    /// True if all data and our FIN are acknowledged.
    pub(super) fn is_delivered(&self) -> bool {
        self.shut && matches!(self.conn.state(), State::FinWait2 | State::TimeWait)
            || self.ending == Some(Ending::Closed)
    }

    /// The application closes the connection. If it has unread data, the peer is told by a RST that it is
    /// lost (RFC 1122, section 4.2.2.13; RFC 2525, section 2.17).
    pub(super) fn close(&mut self) {
        self.received_then = self.conn.received();
        if self.conn.readable() > 0 {
            self.conn.abort();
        } else if self.written == 0 {
            self.conn.close();
        }
        self.shut();
    }

    /// True if data arrived that nobody will read.
    pub(super) fn has_undeliverable_data(&self) -> bool {
        self.owner == Owner::Nobody
            && self.conn.received() > self.received_then
            && self.conn.state() != State::Closed
    }

    /// When the connection is given up, if there is no progress until then.
    pub(super) fn give_up_at(&self, settings: &Settings) -> Instant {
        match (self.progress.0, self.owner) {
            (State::SynSent | State::SynReceived, _) => self.since + settings.open_timeout,
            (State::FinWait2, Owner::Nobody) => self.since + settings.fin_wait,
            (State::FinWait1 | State::Closing | State::LastAck, Owner::Nobody) => {
                self.since + settings.linger
            }
            _ => Instant::NEVER,
        }
    }

    /// Bytes of memory used by its buffers.
    pub(super) const fn memory(&self) -> usize {
        self.outgoing.capacity() + self.incoming.capacity()
    }
}
