//! The interface of an application to its connection.

use bentpipe_base::Instant;
use bentpipe_tcp::{Connection, State};

/// Two streams of bytes, one each way. The engine's [`Connection`] implements it; a driver that runs the same
/// applications over something else, such as a kernel socket, has its own implementation.
pub trait ByteStream {
    /// State of the connection.
    fn state(&self) -> State;
    /// Writes `bytes` bytes; returns how many the send buffer accepted.
    fn write(&mut self, bytes: u64) -> u64;
    /// Free space of the send buffer in bytes.
    fn send_room(&self) -> u64;
    /// Bytes written and not yet acknowledged.
    fn unacknowledged(&self) -> u64;
    /// In-order bytes of the peer's stream that can be read.
    fn readable(&self) -> u64;
    /// Bytes of the peer's stream that were read.
    fn consumed(&self) -> u64;
    /// Reads `bytes`, not more than are readable.
    fn consume(&mut self, now: Instant, bytes: u64);
    /// True once the peer's stream has ended.
    fn peer_closed(&self) -> bool;
    /// Closes our stream after the bytes written so far.
    fn close(&mut self);
}

impl ByteStream for Connection {
    fn state(&self) -> State {
        Self::state(self)
    }
    fn write(&mut self, bytes: u64) -> u64 {
        Self::write(self, bytes)
    }
    fn send_room(&self) -> u64 {
        Self::send_room(self)
    }
    fn unacknowledged(&self) -> u64 {
        Self::unacknowledged(self)
    }
    fn readable(&self) -> u64 {
        Self::readable(self)
    }
    fn consumed(&self) -> u64 {
        self.received() - Self::readable(self)
    }
    fn consume(&mut self, now: Instant, bytes: u64) {
        Self::consume(self, now, bytes);
    }
    fn peer_closed(&self) -> bool {
        Self::peer_closed(self)
    }
    fn close(&mut self) {
        Self::close(self);
    }
}
