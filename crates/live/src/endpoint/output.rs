//! Output of the endpoint: packets, events for applications, and the removal of ended connections.

use super::socket::Owner;
use super::table::ConnId;
use super::{Ending, Endpoint, SocketEvent};
use bentpipe_base::{Cx, Instant, Pkt};
use bentpipe_tcp::{Event, State};

/// Most room that an application waits for, bytes. If it waited for half of a large buffer, the other half
/// might be in flight already, and the sender would stand still with data at hand.
const MOST_ROOM: u64 = 128 << 10;

impl Endpoint {
    /// Writes the next packet with its checksums into `out`; false if there is none. Connections take turns.
    pub fn next_packet(&mut self, cx: &mut Cx<'_>, out: &mut Vec<u8>) -> bool {
        out.clear();
        if let Some(reply) = self.replies.pop_front() {
            out.extend_from_slice(&reply);
            self.counters.sent += 1;
            return true;
        }
        while let Some((id, packet)) = self.next_segment(cx) {
            let Some(socket) = self.table.get(id) else { continue };
            let written = socket.emit(&packet, &mut self.scratch, out);
            cx.recycle(packet);
            if written.is_ok() {
                self.counters.sent += 1;
                return true;
            }
            debug_assert!(false, "the MSS keeps packets within what a header can say: {written:?}");
        }
        false
    }

    /// Returns the next segment to send; connections take turns.
    pub(super) fn next_segment(&mut self, cx: &mut Cx<'_>) -> Option<(ConnId, Pkt)> {
        if let Some((id, packet)) = self.held.take() {
            if self.table.get(id).is_some_and(|socket| socket.keeps(packet.body)) {
                return Some((id, packet));
            }
            cx.recycle(packet);
        }
        while let Some(id) = self.ready.pop_front() {
            let Some(socket) = self.table.get_mut(id) else { continue };
            let Some(packet) = socket.next(cx) else {
                socket.ready = false;
                self.settle(cx.now, id);
                continue;
            };
            self.ready.push_back(id);
            return Some((id, packet));
        }
        None
    }

    /// Reports the events of a connection that has nothing more to send for now, and sets its timer.
    fn settle(&mut self, now: Instant, id: ConnId) {
        if self.take_events(id) {
            self.mark(id);
        }
        let Some(socket) = self.table.get_mut(id).filter(|s| !s.over) else { return };
        socket.note_progress(now);
        if socket.conn.state() == State::Closed {
            self.over(id, Ending::Aborted);
            return;
        }
        if socket.conn.state() == State::TimeWait && !socket.waits {
            if self.in_time_wait >= self.settings.max_time_wait {
                self.over(id, Ending::Closed);
                return;
            }
            socket.waits = true;
            self.in_time_wait += 1;
        }
        let at = socket.conn.deadline().min(socket.give_up_at(&self.settings));
        self.table.arm(id, at);
        self.tell(id);
    }

    /// Handles the engine's events; true if the connection has something to send after all.
    fn take_events(&mut self, id: ConnId) -> bool {
        let Some(socket) = self.table.get_mut(id) else { return false };
        let mut more = false;
        while let Some(event) = socket.conn.event() {
            match event {
                Event::Established if socket.owner == Owner::Listener => {
                    if let Some(listener) = self.listeners.get_mut(&socket.pair.local().port()) {
                        listener.accept_queue.push_back(id);
                        socket.opened = true;
                        self.inbox.tell(id, &mut socket.unread, SocketEvent::Calling);
                    }
                }
                Event::Established => {
                    socket.opened = true;
                    let stats = socket.conn.stats();
                    if let Some(at) = stats.established_at.filter(|_| socket.conn.asked_in_syn()) {
                        self.peers.opened(at, socket.pair.remote().ip(), stats.timeouts > 0);
                    }
                    if socket.shut {
                        socket.conn.close();
                        more = true;
                    }
                    self.inbox.tell(id, &mut socket.unread, SocketEvent::Connected);
                }
                Event::PeerClosed => self.inbox.tell(id, &mut socket.unread, SocketEvent::PeerClosed),
                Event::Closed => _ = socket.ending.get_or_insert(Ending::Closed),
                Event::TimedOut => socket.ending = socket.ending.or(Some(socket.timeout_ending())),
                Event::Unreachable => _ = socket.ending.get_or_insert(Ending::Unreachable),
                Event::Reset => {
                    socket.ending.get_or_insert(if socket.opened { Ending::Reset } else { Ending::Refused });
                }
            }
        }
        more
    }

    /// Reports events of a connection's streams.
    fn tell(&mut self, id: ConnId) {
        let Some(socket) = self.table.get_mut(id) else { return };
        if socket.owner == Owner::Nobody {
            return;
        }
        if socket.wants_read && socket.conn.readable() > 0 {
            socket.wants_read = false;
            self.inbox.tell(id, &mut socket.unread, SocketEvent::Readable);
        }
        let half = socket.conn.config().send_buffer.map_or(0, |b| b.0 / 2);
        if socket.wants_write && !socket.shut && socket.conn.send_room() >= half.clamp(1, MOST_ROOM) {
            socket.wants_write = false;
            self.inbox.tell(id, &mut socket.unread, SocketEvent::Writable);
        }
        if !socket.told_delivered && socket.is_delivered() {
            socket.told_delivered = true;
            self.inbox.tell(id, &mut socket.unread, SocketEvent::Delivered);
        }
    }

    /// Handles a connection that ended in the engine; the reason is `ending` unless another is known.
    pub(super) fn over(&mut self, id: ConnId, ending: Ending) {
        let Some(socket) = self.table.get_mut(id) else { return };
        socket.ending.get_or_insert(ending);
        if socket.owner != Owner::Application {
            self.forget(id);
            return;
        }
        socket.over = true;
        self.in_time_wait -= usize::from(core::mem::take(&mut socket.waits));
        self.tell(id);
        self.table.free_addresses(id);
        if let Some(socket) = self.table.get_mut(id) {
            self.inbox.tell(id, &mut socket.unread, SocketEvent::Ended);
        }
    }

    /// Removes a connection.
    pub(super) fn forget(&mut self, id: ConnId) {
        self.disown(id);
        if let Some(socket) = self.table.remove(id) {
            self.in_time_wait -= usize::from(socket.waits);
        }
    }

    /// Removes the owner of a connection; it no longer waits to be accepted.
    pub(super) fn disown(&mut self, id: ConnId) {
        let Some(socket) = self.table.get_mut(id) else { return };
        if core::mem::replace(&mut socket.owner, Owner::Nobody) == Owner::Listener
            && let Some(listener) = self.listeners.get_mut(&socket.pair.local().port())
        {
            listener.waiting = listener.waiting.saturating_sub(1);
        }
    }
}
