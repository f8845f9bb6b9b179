//! The ends of a host's connections, open and closed.
//!
//! A closed connection (RFC 9293: CLOSED, after TIME-WAIT) frees its entry and its ports. Its counters can be
//! read until another connection between the same ports has closed. A connection that was never established
//! does not replace them: an old duplicate SYN that arrives late opens such a connection (RFC 9293, section
//! 3.5), and its counters would hide those of the real one.

use crate::app::{Reader, ReaderState, Writer};
use bentpipe_base::{Addr, Cx, Instant, Pkt, Slot};
use bentpipe_tcp::{Connection, Tuple};
use std::collections::BTreeMap;

/// A connection with the applications on it.
#[derive(Debug)]
pub struct Endpoint {
    /// The connection.
    pub conn: Connection,
    /// The sending application, with its measurements.
    pub writer: Writer,
    pub(crate) reader: ReaderState,
    /// Earliest wake-up requested and not yet received.
    pub(crate) armed: Instant,
    /// That wake-up comes last: it is for a timer that most often has moved on when it is due.
    pub(crate) rests: bool,
    /// A later wake-up of that kind that is requested too.
    pub(crate) behind: Instant,
    /// When an application wants to run again.
    pub(crate) app_at: Instant,
}

impl Endpoint {
    pub(crate) const fn new(conn: Connection, writer: Writer, reader: Reader) -> Self {
        let reader = ReaderState::new(reader);
        let never = Instant::NEVER;
        Self { conn, writer, reader, armed: never, rests: false, behind: never, app_at: never }
    }

    /// See [`crate::Host::touch`].
    #[inline]
    pub(crate) const fn touch(&self) -> u64 {
        self.armed.0 ^ self.app_at.0 ^ matches!(self.writer, Writer::Bulk) as u64 ^ self.reader.touch()
    }

    /// The wake-up requested has come. A later one may wait behind it: with a short timer for each segment,
    /// as that of jitter, the retransmission timer needs no request for each.
    #[inline]
    pub(crate) fn disarm(&mut self) {
        self.armed = self.behind;
        self.rests = self.behind != Instant::NEVER;
        self.behind = Instant::NEVER;
    }

    /// Requests the next wake-up, unless one is requested by then already.
    #[inline]
    pub(crate) fn arm(&mut self, cx: &mut Cx<'_>, slot: Slot) {
        if self.app_at >= self.armed && self.conn.none_due_before(self.armed) {
            return;
        }
        self.arm_earlier(cx, slot);
    }

    #[inline(never)]
    fn arm_earlier(&mut self, cx: &mut Cx<'_>, slot: Slot) {
        let known = self.armed.min(self.app_at);
        let deadline = self.conn.deadline_before(known).unwrap_or(known);
        if deadline < self.armed {
            if self.rests {
                self.behind = self.armed;
            }
            self.armed = deadline;
            self.rests = self.app_at > deadline && self.conn.rests();
            if self.rests {
                cx.wake_last(slot, deadline);
            } else {
                cx.wake(slot, deadline);
            }
        }
    }
}

/// Local port, remote address, remote port.
type Key = (u16, Addr, u16);

/// All ends. Most hosts have one at most, and each is made when its connection opens: a host without one is
/// small.
#[derive(Debug, Default)]
pub(crate) struct ConnectionTable {
    first: Option<Box<Endpoint>>,
    /// Made with the second connection, or when the first closes.
    more: Option<Box<More>>,
}

/// What only a host with several connections, or with closed ones, has.
#[derive(Debug, Default)]
struct More {
    /// All but the first.
    ends: Vec<Option<Box<Endpoint>>>,
    /// Indices of free entries.
    free: Vec<u32>,
    /// Index of each open connection. The first is missing while there was never more than one at a time.
    demux: BTreeMap<Key, u32>,
    past: BTreeMap<Key, Box<Endpoint>>,
}

impl ConnectionTable {
    #[inline]
    pub(crate) fn get_mut(&mut self, i: usize) -> Option<&mut Endpoint> {
        if i == 0 {
            self.first.as_deref_mut()
        } else {
            self.more.as_mut()?.ends.get_mut(i - 1)?.as_deref_mut()
        }
    }

    /// All places in order of their indices; in an empty one there is none.
    pub(crate) fn all(&mut self) -> impl Iterator<Item = Option<&mut Endpoint>> {
        let more = self.more.iter_mut().flat_map(|more| &mut more.ends);
        core::iter::once(&mut self.first).chain(more).map(Option::as_deref_mut)
    }

    fn get(&self, i: usize) -> Option<&Endpoint> {
        if i == 0 { self.first.as_deref() } else { self.more.as_ref()?.ends.get(i - 1)?.as_deref() }
    }

    /// True if there was never more than one connection at a time.
    #[inline]
    fn is_single(&self) -> bool {
        self.more.as_ref().is_none_or(|more| more.ends.is_empty())
    }

    /// The connection of a host that has never had more than one at a time.
    #[inline]
    pub(crate) fn only(&self) -> Option<&Endpoint> {
        self.first.as_deref().filter(|_| self.is_single())
    }

    /// Returns the index of the connection that a segment belongs to.
    #[inline]
    pub(crate) fn find(&self, packet: &Pkt) -> Option<usize> {
        // most hosts have one connection
        if let Some(only) = self.only() {
            let t = only.conn.tuple();
            if t.local.1 == packet.dport && t.remote == (packet.src, packet.sport) {
                return Some(0);
            }
        }
        let more = self.more.as_ref()?;
        more.demux.get(&(packet.dport, packet.src, packet.sport)).map(|i| *i as usize)
    }

    /// Returns the open connection, else the last closed one. A closed one that was established has
    /// precedence over an open one that is not. If there is none with this port of the peer, a NAT may have
    /// changed it: then that with another one.
    pub(crate) fn look_up<'a>(&'a self, key: Key) -> Option<&'a Endpoint> {
        let of = |living: Option<&u32>, past: Option<&'a Box<Endpoint>>| {
            let living = living.and_then(|i| self.get(*i as usize));
            living.filter(|end| was_established(end)).or(past.map(|end| &**end)).or(living)
        };
        let more = self.more.as_deref();
        let past = more.and_then(|more| more.past.get(&key));
        let near_past = || more.and_then(|more| nearest(&more.past, key));
        if let Some(only) = self.only() {
            let key_of_only = key_of(only.conn.tuple());
            let is_near = (key_of_only.0, key_of_only.1) == (key.0, key.1);
            let exact = of(Some(&0).filter(|_| key_of_only == key), past);
            return exact.or_else(|| of(Some(&0).filter(|_| is_near), near_past()));
        }
        let exact = of(more?.demux.get(&key), past);
        exact.or_else(|| of(more.and_then(|more| nearest(&more.demux, key)), near_past()))
    }

    /// Adds an end; returns its index.
    pub(crate) fn add(&mut self, tuple: Tuple, end: Box<Endpoint>) -> usize {
        let is_single = self.is_single();
        let Some(first) = &self.first else {
            self.first = Some(end);
            if let Some(more) = self.more.as_mut().filter(|_| !is_single) {
                more.demux.insert(key_of(tuple), 0);
            }
            return 0;
        };
        let more = self.more.get_or_insert_default();
        let i = if let Some(i) = more.free.pop() {
            more.ends[i as usize - 1] = Some(end);
            i as usize
        } else {
            if is_single {
                more.demux.insert(key_of(first.conn.tuple()), 0);
            }
            more.ends.push(Some(end));
            more.ends.len()
        };
        more.demux.insert(key_of(tuple), i as u32);
        i
    }

    /// Frees the only end there is or was, if it is at this port: the run is over, and nothing more is read.
    pub(crate) fn free_only(&mut self, port: u16) {
        if self.more.is_none() {
            self.first.take_if(|end| end.conn.tuple().local.1 == port);
        }
    }

    /// Removes the closed connection at index `i`; keeps its counters.
    #[cold]
    pub(crate) fn retire(&mut self, i: usize) {
        let more = self.more.get_or_insert_default();
        let end = if i == 0 {
            self.first.take()
        } else {
            more.free.push(i as u32);
            more.ends.get_mut(i - 1).and_then(Option::take)
        };
        if let Some(end) = end {
            let key = key_of(end.conn.tuple());
            more.demux.remove(&key);
            if was_established(&end) || !more.past.contains_key(&key) {
                more.past.insert(key, end);
            }
        }
    }
}

/// What belongs to the same local port and peer, with the highest port of the peer.
fn nearest<T>(map: &BTreeMap<Key, T>, (port, peer, _): Key) -> Option<&T> {
    map.range((port, peer, 0)..=(port, peer, u16::MAX)).next_back().map(|(_, found)| found)
}

const fn was_established(end: &Endpoint) -> bool {
    end.conn.stats().established_at.is_some()
}

const fn key_of(tuple: Tuple) -> Key {
    (tuple.local.1, tuple.remote.0, tuple.remote.1)
}
