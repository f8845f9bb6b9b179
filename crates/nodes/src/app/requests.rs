//! Requests and responses over one connection, like a browser with a persistent connection.
//!
//! The client writes a request once the connection is open; the server writes its response when it has read
//! the whole request; the client waits for an exponential think time after the last byte of the response and
//! sends the next request. The response time runs from the writing of the first byte of a request to the
//! reading of the last byte of its response: it excludes the handshake, and includes a wait for room in the
//! send buffer and a slow reader.

use super::ByteStream;
use bentpipe_base::histogram::Histogram;
use bentpipe_base::{Cx, Duration, Instant, RngSlot, Size};
use bentpipe_tcp::State;

/// The client.
#[derive(Clone, Debug)]
pub struct RequestClient {
    request: u64,
    response: u64,
    /// Mean think time.
    think: Duration,
    /// Number of requests; `None` for no limit.
    count: Option<u64>,
    rng: RngSlot,
    phase: Phase,
    asked_at: Instant,
    /// Number of complete responses.
    pub completed: u64,
    /// Response times.
    pub times: Histogram,
    /// When the last of `count` responses was complete.
    pub finished_at: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// The connection is not open yet.
    Opening,
    /// This many bytes of a request are not in the send buffer yet.
    Writing(u64),
    /// The response is not complete.
    Waiting,
    /// Think time until this instant.
    Thinking(Instant),
    /// All requests are done, or the peer closed.
    Done,
}

impl RequestClient {
    /// Sends `count` requests of `request` bytes, each for a response of `response` bytes, with a mean think
    /// time of `think` in between, drawn from `rng`.
    ///
    /// Both sizes must be at least 1 B.
    pub fn new(request: Size, response: Size, think: Duration, count: Option<u64>, rng: RngSlot) -> Self {
        assert!(request.0 > 0 && response.0 > 0, "a request and its response have at least one byte");
        Self {
            request: request.0,
            response: response.0,
            think,
            count,
            rng,
            phase: Phase::Opening,
            asked_at: Instant::ZERO,
            completed: 0,
            times: Histogram::default(),
            finished_at: None,
        }
    }

    pub(super) fn run(&mut self, cx: &mut Cx<'_>, conn: &mut impl ByteStream) -> Instant {
        let next = loop {
            match self.phase {
                Phase::Opening if !conn.state().synchronised() => break Instant::NEVER,
                Phase::Thinking(until) if cx.now < until => break until,
                Phase::Opening | Phase::Thinking(_) => self.ask(cx.now, conn),
                Phase::Writing(rest) => match rest - conn.write(rest) {
                    0 => self.phase = Phase::Waiting,
                    rest => {
                        self.phase = Phase::Writing(rest);
                        break Instant::NEVER;
                    }
                },
                Phase::Waiting => {
                    let wanted = self.response.saturating_mul(self.completed + 1);
                    if conn.consumed() < wanted {
                        break Instant::NEVER;
                    }
                    self.completed += 1;
                    self.times.record(cx.now.since(self.asked_at));
                    // no think time after the last response, so that the connection closes at once
                    let last = self.count == Some(self.completed);
                    let think = if last { Duration::ZERO } else { cx.rng(self.rng).exponential(self.think) };
                    self.phase = Phase::Thinking(cx.now + think);
                }
                Phase::Done => break Instant::NEVER,
            }
        };
        if conn.state() == State::CloseWait {
            self.phase = Phase::Done; // no more responses will come
            conn.close();
            return Instant::NEVER;
        }
        next
    }

    fn ask(&mut self, now: Instant, conn: &mut impl ByteStream) {
        if self.count.is_some_and(|n| self.completed >= n) {
            self.finished_at = Some(now);
            self.phase = Phase::Done;
            conn.close();
        } else {
            self.asked_at = now;
            self.phase = Phase::Writing(self.request);
        }
    }
}

/// The server.
#[derive(Clone, Copy, Debug)]
pub struct RequestServer {
    request: u64,
    response: u64,
    written: u64,
}

impl RequestServer {
    /// Answers every `request` bytes with `response` bytes.
    pub fn new(request: Size, response: Size) -> Self {
        assert!(request.0 > 0 && response.0 > 0, "a request and its response have at least one byte");
        Self { request: request.0, response: response.0, written: 0 }
    }

    pub(super) fn run(&mut self, conn: &mut impl ByteStream) {
        let due = (conn.consumed() / self.request).saturating_mul(self.response);
        if due > self.written {
            self.written += conn.write(due - self.written);
        }
        if self.written == due && conn.state() == State::CloseWait {
            conn.close();
        }
    }
}
