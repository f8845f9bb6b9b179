//! Writes without limit and closes after a time, as a user does who leaves a download.
//!
//! It never writes far ahead of what is sent: what is written when the time is over is still sent, and the
//! connection should end then.

use super::ByteStream;
use bentpipe_base::{Duration, Instant};

/// Bytes kept ready to be sent. More than one acknowledgment releases, so that the sender never waits; little
/// to be sent after the end.
const AHEAD: u64 = 65_536;

/// Writes without limit for a time.
#[derive(Clone, Copy, Debug)]
pub struct Lasting {
    length: Duration,
    /// When it closes; `None` before the first call, which is at the flow's start.
    until: Option<Instant>,
}

impl Lasting {
    /// Writes for `length`, counted from its first call.
    pub const fn new(length: Duration) -> Self {
        Self { length, until: None }
    }

    /// Writes, or closes; returns when it must be called again.
    pub(super) fn run(&mut self, now: Instant, conn: &mut impl ByteStream) -> Instant {
        let until = *self.until.get_or_insert(now + self.length);
        if now >= until {
            conn.close();
            return Instant::NEVER;
        }
        let room = AHEAD.saturating_sub(conn.unsent());
        if room > 0 {
            conn.write(room);
        }
        until
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_tcp::State;

    /// A connection that has sent some of what was written.
    #[derive(Default)]
    struct Line {
        written: u64,
        sent: u64,
        closed: bool,
    }

    impl ByteStream for Line {
        fn state(&self) -> State {
            State::Established
        }
        fn write(&mut self, bytes: u64) -> u64 {
            self.written += bytes;
            bytes
        }
        fn unacknowledged(&self) -> u64 {
            self.written
        }
        fn unsent(&self) -> u64 {
            self.written - self.sent
        }
        fn readable(&self) -> u64 {
            0
        }
        fn consumed(&self) -> u64 {
            0
        }
        fn consume(&mut self, _now: Instant, _bytes: u64) {}
        fn close(&mut self) {
            self.closed = true;
        }
    }

    #[test]
    fn it_keeps_a_little_ready_and_closes_in_time() {
        let at = |s: u64| Instant(s * 1_000_000_000);
        let (mut app, mut line) = (Lasting::new(Duration::from_secs(20)), Line::default());
        assert_eq!(app.run(at(5), &mut line), at(25), "the time counts from the first call");
        assert_eq!((line.written, line.closed), (AHEAD, false));
        assert_eq!(app.run(at(6), &mut line), at(25));
        assert_eq!(line.written, AHEAD, "nothing was sent meanwhile");
        line.sent = 50_000;
        app.run(at(7), &mut line);
        assert_eq!((line.unsent(), line.written), (AHEAD, AHEAD + 50_000));
        assert_eq!(app.run(at(25), &mut line), Instant::NEVER);
        assert_eq!((line.written, line.closed), (AHEAD + 50_000, true));
    }
}
