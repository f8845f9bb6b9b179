//! Input to the endpoint: packets from the wire, and timers.

use super::app::is_a_host;
use super::icmp::IcmpError;
use super::signal::Received;
use super::socket::{FourTuple, Owner, Socket};
use super::table::ConnId;
use super::{Ending, Endpoint};
use bentpipe_base::{Cx, Flags, Pkt};
use bentpipe_tcp::timers::Timer;
use bentpipe_tcp::{Icmp, Offer, State, reset_for, reset_in_listen};
use bentpipe_wire::offload::VnetHeader;
use bentpipe_wire::{Fault, Ipv4, Layout, Segment, parse};
use std::sync::Arc;

/// Limit of queued replies to packets of no connection: a flood is not answered packet for packet.
const MAX_REPLIES: usize = 256;
/// Smallest MSS we use, even if the peer offers less: otherwise every byte of payload would cost a record
/// (Linux: `tcp_min_snd_mss`).
pub(super) const LEAST_MSS: u16 = 48;

impl Endpoint {
    /// Handles a packet that begins with its IP header. `vnet` says whether its checksum was already verified
    /// and how a super-packet is to be cut; for a packet from a wire it is the default.
    pub fn packet(&mut self, cx: &mut Cx<'_>, bytes: &[u8], vnet: &VnetHeader) {
        self.counters.received += 1;
        let mut segment = match parse(bytes) {
            Ok(segment) => segment,
            Err(error) => {
                let other = matches!(error.fault, Fault::Protocol(_));
                *(if other { &mut self.counters.not_tcp } else { &mut self.counters.malformed }) += 1;
                if other && let Some(said) = IcmpError::read(bytes) {
                    self.icmp_error(cx, said);
                }
                return;
            }
        };
        if !self.settings.has_port(segment.dport) {
            self.counters.not_ours += 1;
            return;
        }
        let seen_to = vnet.flags & (VnetHeader::NEEDS_CSUM | VnetHeader::DATA_VALID) != 0;
        if !seen_to && !checksums_hold(bytes) {
            self.counters.bad_checksum += 1;
            return;
        }
        if !self.is_between_hosts(&segment) {
            self.counters.not_ours += 1;
            return;
        }
        if let Some(mss) = &mut segment.tcp.mss {
            *mss = (*mss).max(LEAST_MSS);
        }
        let pair = FourTuple::of(&segment);
        match self.table.find(&pair) {
            Some(id) if self.reopens_time_wait(id, &segment) => {
                self.over(id, Ending::Closed);
                self.unknown_connection(cx, pair, Received::new(bytes, segment));
            }
            Some(id) => {
                let gso_size = if vnet.gso_type == VnetHeader::GSO_NONE { 0 } else { vnet.gso_size };
                if let Some(socket) = self.table.get_mut(id) {
                    socket.receive(cx, &Received::new(bytes, segment), usize::from(gso_size));
                    if socket.has_undeliverable_data() {
                        // RFC 1122, section 4.2.2.13: a RST says that the data was lost; no ACK precedes it
                        socket.conn.abort();
                    }
                }
                self.mark(id);
            }
            None => self.unknown_connection(cx, pair, Received::new(bytes, segment)),
        }
    }

    /// Handles an ICMP message about a segment of ours.
    fn icmp_error(&mut self, cx: &mut Cx<'_>, said: IcmpError) {
        let Some(id) = self.table.find(&said.pair) else { return };
        let Some(socket) = self.table.get_mut(id) else { return };
        if socket.conn.icmp(cx, said.seq, said.what) {
            socket.unreachable |= matches!(said.what, Icmp::Unreachable { .. });
            self.mark(id);
        }
    }

    /// Handles all timers that are due by now.
    pub fn timer(&mut self, cx: &mut Cx<'_>) {
        while let Some(id) = self.table.take_due(cx.now) {
            let Some(socket) = self.table.get_mut(id) else { continue };
            // `Socket::next` handles the pacer's release, at the time it was due
            let paces = matches!(socket.conn.next_timer(), Some((_, Timer::Pace)));
            if socket.conn.deadline() <= cx.now && !paces {
                socket.conn.timer(cx);
            }
            let gives_up = socket.give_up_at(&self.settings) <= cx.now;
            if gives_up && socket.conn.state() == State::FinWait2 {
                // all our data arrived; a later packet from the peer finds no connection and gets a RST
                self.forget(id);
                continue;
            }
            if gives_up {
                socket.ending = socket.ending.or(Some(socket.timeout_ending()));
                socket.conn.abort();
            }
            self.mark(id);
        }
    }

    /// True if the packet comes from another host to us, with valid addresses and ports (no "LAND" packet).
    pub(super) fn is_between_hosts(&self, segment: &Segment<'_>) -> bool {
        let ((src, dst), own) = (segment.ends.addresses(), &self.settings.addresses);
        let ports = segment.sport != 0 && segment.dport != 0;
        if self.settings.transparent {
            return ports && is_a_host(src) && is_a_host(dst) && src != dst;
        }
        ports && is_a_host(src) && own.contains(&dst) && !own.contains(&src)
    }

    /// True if the SYN ends TIME-WAIT: it must lie beyond all that the old connection sent (RFC 9293, section
    /// 3.10.7.4, and RFC 6191).
    fn reopens_time_wait(&self, id: ConnId, segment: &Segment<'_>) -> bool {
        let Some(socket) = self.table.get(id) else { return false };
        let receiver = socket.conn.receiver();
        // a SYN with FIN does not reopen: it gets a challenge ACK
        let kind = segment.tcp.flags.0 & (Flags::SYN.0 | Flags::ACK.0 | Flags::RST.0 | Flags::FIN.0);
        socket.conn.state() == State::TimeWait
            && kind == Flags::SYN.0
            && self.listeners.contains_key(&segment.dport)
            && receiver.position(segment.tcp.seq).is_some_and(|p| p > receiver.next())
    }

    /// True if one more connection may wait at `port`. When the backlog is full, the oldest half-open
    /// connection is dropped without a RST: its address may be forged.
    fn makes_room(&mut self, port: u16) -> bool {
        let is_full = |e: &Self| {
            let crowded = e.listeners.get(&port).is_none_or(|l| l.waiting >= l.backlog);
            crowded || e.table.len() >= e.settings.max_connections
        };
        if !is_full(self) {
            return true;
        }
        self.counters.overflowed += 1;
        while let Some(id) = self.listeners.get_mut(&port).and_then(|l| l.syn_queue.pop_front()) {
            if self.table.get(id).is_some_and(is_half_open) {
                self.forget(id);
                break;
            }
        }
        !is_full(self)
    }

    /// Adds a connection to those that wait at `port`.
    fn add_to_syn_queue(&mut self, port: u16, id: ConnId) {
        let Some(listener) = self.listeners.get_mut(&port) else { return };
        listener.waiting += 1;
        // entries of connections that have opened or ended are removed only when the list has grown
        if listener.syn_queue.len() >= 2 * listener.backlog {
            listener.syn_queue.retain(|id| self.table.get(*id).is_some_and(is_half_open));
        }
        listener.syn_queue.push_back(id);
    }

    /// Handles a packet that belongs to no connection: a SYN to a listener, or a packet to answer with RST.
    fn unknown_connection(&mut self, cx: &mut Cx<'_>, pair: FourTuple, received: Received<'_>) {
        let received = received.of_listener();
        let (packet, segment) = (pair.packet(cx, &received), &received.segment);
        let listener = self.listeners.get(&segment.dport);
        let offer = listener.and_then(|l| {
            let config = if pair.local().is_ipv4() { &l.v4 } else { &l.v6 };
            Offer::new(&packet, Arc::clone(config))
        });
        let answer = if listener.is_some() { reset_in_listen } else { reset_for };
        if let Some(offer) = offer {
            // without room in the backlog the SYN is ignored: the client retransmits it
            if self.makes_room(segment.dport) {
                let chance = self.chance(cx);
                let mut conn = offer.complete(cx, chance);
                self.keep_secret(cx, &mut conn);
                let id = self.table.add(pair, Socket::new(cx.now, conn, pair, Owner::Listener));
                self.add_to_syn_queue(segment.dport, id);
                self.mark(id);
            }
        } else if let Some(rst) = answer(cx, &packet) {
            self.reply(cx, pair, rst);
        }
        cx.recycle(packet);
    }

    /// Queues a RST to a packet of no connection.
    pub(super) fn reply(&mut self, cx: &mut Cx<'_>, pair: FourTuple, rst: Pkt) {
        self.counters.refused += 1;
        if self.replies.len() < MAX_REPLIES {
            let mut bytes = Vec::new();
            if pair.emit(&rst, &[], &mut bytes).is_ok() {
                self.replies.push_back(bytes);
            }
        }
        cx.recycle(rst);
    }
}

/// True if the connection is in SYN-RECEIVED.
fn is_half_open(socket: &Socket) -> bool {
    socket.owner == Owner::Listener && !socket.opened
}

/// True if the checksums of TCP and of the IPv4 header are correct.
pub(super) fn checksums_hold(bytes: &[u8]) -> bool {
    let header =
        bytes.first().is_none_or(|b| b >> 4 != 4) || Ipv4::new(bytes).is_ok_and(|ip| ip.checksum_holds());
    header && Layout::of(bytes).is_ok_and(|layout| layout.sum(bytes).fold() == 0xffff)
}
