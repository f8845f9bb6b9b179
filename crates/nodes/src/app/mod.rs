//! Applications: how data is written, and how it is read.
//!
//! Each end of a connection has a [`Writer`] and a [`ReaderState`]. They run whenever a segment arrived or a
//! time that they requested has come. The reader runs first, so that a writer finds requests already read.

mod lasting;
mod reader;
mod requests;
mod telnet;

pub use lasting::Lasting;
pub use reader::{Reader, ReaderState};
pub use requests::{RequestClient, RequestServer};
pub use telnet::TelnetClient;

use bentpipe_base::{Cx, Duration, Instant, Rate};
use bentpipe_tcp::{Connection, State};

/// Interval of paced readers and writers: short compared with any RTT of interest, long compared with the
/// time for a packet.
const TICK: Duration = Duration::from_millis(5);

/// Two streams of bytes, one each way. The engine's [`Connection`] implements it; a driver that runs the same
/// applications over something else, such as a kernel socket, has its own implementation.
pub trait ByteStream {
    /// State of the connection; `CloseWait` once the peer's stream has ended and ours has not.
    fn state(&self) -> State;
    /// Writes `bytes` bytes; returns how many the send buffer accepted.
    fn write(&mut self, bytes: u64) -> u64;
    /// Bytes written and not yet acknowledged.
    fn unacknowledged(&self) -> u64;
    /// Bytes written and not yet sent; 0 where that is unknown.
    fn unsent(&self) -> u64 {
        0
    }
    /// In-order bytes of the peer's stream that can be read.
    fn readable(&self) -> u64;
    /// Bytes of the peer's stream that were read.
    fn consumed(&self) -> u64;
    /// Reads `bytes`, not more than are readable.
    fn consume(&mut self, now: Instant, bytes: u64);
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
    fn unacknowledged(&self) -> u64 {
        Self::unacknowledged(self)
    }
    fn unsent(&self) -> u64 {
        let board = self.scoreboard();
        let sent = board.next().max(1).saturating_sub(board.una().max(1));
        Self::unacknowledged(self).saturating_sub(sent)
    }
    #[inline]
    fn readable(&self) -> u64 {
        Self::readable(self)
    }
    fn consumed(&self) -> u64 {
        self.received() - Self::readable(self)
    }
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see `ReaderState::run`")]
    fn consume(&mut self, now: Instant, bytes: u64) {
        Self::consume(self, now, bytes);
    }
    fn close(&mut self) {
        Self::close(self);
    }
}

/// The sending application. Large variants are boxed, because most ends are bulk or silent.
#[derive(Clone, Debug)]
pub enum Writer {
    /// Writes nothing and closes when the peer has closed.
    Silent,
    /// Always has more data.
    Bulk,
    /// Writes the rest of a transfer, then closes.
    Transfer(u64),
    /// Writes at a rate.
    Paced(Paced),
    /// Always has more data, and closes after a time.
    Lasting(Lasting),
    /// Sends requests and waits for responses.
    Requests(Box<RequestClient>),
    /// Answers requests.
    Responses(RequestServer),
    /// Writes like a user who types.
    Telnet(Box<TelnetClient>),
}

impl Writer {
    /// Writes as much as it can; returns when it must be called again even if no packet arrives.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "called for every segment, mostly to do nearly nothing")]
    pub fn run(&mut self, cx: &mut Cx<'_>, conn: &mut impl ByteStream) -> Instant {
        match self {
            Self::Silent if conn.state() == State::CloseWait => conn.close(),
            Self::Silent => {}
            Self::Bulk => {
                conn.write(u64::MAX);
            }
            _ => return self.run_other(cx, conn),
        }
        Instant::NEVER
    }

    #[inline(never)]
    fn run_other(&mut self, cx: &mut Cx<'_>, conn: &mut impl ByteStream) -> Instant {
        match self {
            Self::Silent | Self::Bulk => {}
            Self::Transfer(left) => {
                if *left > 0 {
                    *left -= conn.write(*left);
                }
                if *left == 0 && conn.state().synchronised() {
                    conn.close();
                }
            }
            Self::Paced(paced) => return paced.run(cx.now, conn),
            Self::Lasting(lasting) => return lasting.run(cx.now, conn),
            Self::Requests(client) => return client.run(cx, conn),
            Self::Responses(server) => server.run(conn),
            Self::Telnet(client) => return client.run(cx, conn),
        }
        Instant::NEVER
    }
}

/// Writes at a rate once the connection is open: a sensor, or a stream that is coded at a constant rate.
#[derive(Clone, Copy, Debug)]
pub struct Paced {
    rate: Rate,
    since: Option<Instant>,
    written: u64,
}

impl Paced {
    /// Writes at `rate`.
    pub const fn new(rate: Rate) -> Self {
        Self { rate, since: None, written: 0 }
    }

    fn run(&mut self, now: Instant, conn: &mut impl ByteStream) -> Instant {
        if conn.state() == State::SynSent {
            return Instant::NEVER;
        }
        let began = *self.since.get_or_insert(now);
        let due = self.rate.bytes_in(now.since(began)).0;
        if due > self.written {
            self.written += conn.write(due - self.written);
        }
        now + TICK
    }
}
