//! Writes at a rate: a sensor, or a stream that is coded at a constant rate.

use super::{Duplex, TICK};
use bentpipe_base::{Instant, Rate};
use bentpipe_tcp::State;

/// Writes at a rate once the connection is open.
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

    pub(super) fn run(&mut self, now: Instant, conn: &mut impl Duplex) -> Instant {
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
