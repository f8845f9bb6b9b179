//! The ends of a host's connections, the living and the past.
//!
//! A connection that is over (RFC 9293: CLOSED, after TIME-WAIT) leaves its place to the next, and its ports
//! may be used again; its counters stay to be looked at until another connection between the same ports is
//! over. One that was never established does not count: an old SYN that comes late opens such a one (RFC
//! 9293, section 3.5), and its figures would hide those of the flow.

use crate::app::{Reader, Writer};
use bentpipe_base::{Addr, Instant, Pkt};
use bentpipe_tcp::{Connection, Tuple};
use std::collections::BTreeMap;

/// A connection with the applications on it.
#[derive(Debug)]
pub struct Endpoint {
    /// The connection.
    pub conn: Connection,
    /// What writes.
    pub(crate) writer: Writer,
    pub(crate) reader: Reader,
    /// Earliest wake-up asked for and not yet seen.
    pub(crate) armed: Instant,
    /// When an application wants to run again.
    pub(crate) app_at: Instant,
}

impl Endpoint {
    pub(crate) const fn new(conn: Connection, writer: Writer, reader: Reader) -> Self {
        Self { conn, writer, reader, armed: Instant::NEVER, app_at: Instant::NEVER }
    }

    /// The application that writes, to look at what it measured.
    pub const fn writer(&self) -> &Writer {
        &self.writer
    }
}

/// Local port, remote address, remote port.
type Key = (u16, Addr, u16);

/// All ends. The first lies in place: most hosts have one, and a pointer less counts.
#[derive(Debug)]
pub(crate) struct Ends {
    first: Option<Endpoint>,
    more: Vec<Option<Endpoint>>,
    /// Places in `more` that are free.
    free: Vec<u32>,
    /// Place of each living connection.
    demux: BTreeMap<Key, u32>,
    past: BTreeMap<Key, Box<Endpoint>>,
}

impl Ends {
    pub(crate) const EMPTY: Self = Self {
        first: None,
        more: Vec::new(),
        free: Vec::new(),
        demux: BTreeMap::new(),
        past: BTreeMap::new(),
    };

    #[inline]
    pub(crate) fn get_mut(&mut self, i: usize) -> Option<&mut Endpoint> {
        if i == 0 { self.first.as_mut() } else { self.more.get_mut(i - 1)?.as_mut() }
    }

    fn get(&self, i: usize) -> Option<&Endpoint> {
        if i == 0 { self.first.as_ref() } else { self.more.get(i - 1)?.as_ref() }
    }

    /// Where the connection is that a segment belongs to.
    #[inline]
    pub(crate) fn find(&self, packet: &Pkt) -> Option<usize> {
        // most hosts have one connection
        if let Some(only) = &self.first
            && self.more.is_empty()
        {
            let t = only.conn.tuple();
            if t.local.1 == packet.dport && t.remote == (packet.src, packet.sport) {
                return Some(0);
            }
        }
        self.demux.get(&(packet.dport, packet.src, packet.sport)).map(|i| *i as usize)
    }

    /// The living connection, else the last one that is over. One that is not established stands behind one
    /// that was.
    pub(crate) fn look_up(&self, key: Key) -> Option<&Endpoint> {
        let living = self.demux.get(&key).and_then(|i| self.get(*i as usize));
        let past = self.past.get(&key).map(|end| &**end);
        living.filter(|end| was_established(end)).or(past).or(living)
    }

    /// Adds an end; returns its place.
    pub(crate) fn add(&mut self, tuple: Tuple, end: Endpoint) -> usize {
        let i = if self.first.is_none() {
            self.first = Some(end);
            0
        } else if let Some(i) = self.free.pop() {
            self.more[i as usize - 1] = Some(end);
            i as usize
        } else {
            self.more.push(Some(end));
            self.more.len()
        };
        self.demux.insert(key_of(tuple), i as u32);
        i
    }

    /// The connection at place `i` is over.
    #[cold]
    pub(crate) fn retire(&mut self, i: usize) {
        let end = if i == 0 {
            self.first.take()
        } else {
            self.free.push(i as u32);
            self.more.get_mut(i - 1).and_then(Option::take)
        };
        if let Some(end) = end {
            let key = key_of(end.conn.tuple());
            self.demux.remove(&key);
            if was_established(&end) || !self.past.contains_key(&key) {
                self.past.insert(key, Box::new(end));
            }
        }
    }
}

const fn was_established(end: &Endpoint) -> bool {
    end.conn.stats().established_at.is_some()
}

const fn key_of(tuple: Tuple) -> Key {
    (tuple.local.1, tuple.remote.0, tuple.remote.1)
}
