//! How the receiving application reads: at once, slowly, at two rates in turn, with pauses, or for a time.

use super::{ByteStream, TICK};
use bentpipe_base::{Duration, Instant, Rate, Size};

/// How the receiving application reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// Reads all data at once.
    Eager,
    /// Reads at most at this rate.
    Slow(Rate),
    /// Reads at most at two rates alternately.
    Turns {
        /// The two rates.
        rates: [Rate; 2],
        /// Time for which each rate holds.
        each: Duration,
    },
    /// Reads all data at once, except during pauses.
    Pause {
        /// Start of the first pause.
        from: Instant,
        /// End of the first pause.
        to: Instant,
        /// Period of repeated pauses, from start to start; `None`: a single pause.
        every: Option<Duration>,
    },
    /// Reads all data at once until this time, then nothing.
    StopAt(Instant),
}

/// The receiving application of one connection.
#[derive(Clone, Copy, Debug)]
pub struct ReaderState {
    reader: Reader,
    /// Number of the current turn, from 0.
    turn: u64,
    /// Bytes read since `since`.
    read: u64,
    /// When the rate limit began to count; `None` before the first byte.
    since: Option<Instant>,
}

impl ReaderState {
    /// Returns the state of a reader that has read nothing so far.
    pub const fn new(reader: Reader) -> Self {
        Self { reader, turn: 0, read: 0, since: None }
    }

    /// True if it reads all data at once, always.
    pub(crate) const fn is_eager(&self) -> bool {
        matches!(self.reader, Reader::Eager)
    }

    /// See [`crate::Host::touch`].
    #[inline]
    pub(crate) const fn touch(&self) -> u64 {
        self.turn ^ matches!(self.reader, Reader::Eager) as u64
    }

    /// Reads; returns when it must be called again even if no packet arrives.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "called for every segment, mostly to do nearly nothing")]
    pub fn run(&mut self, now: Instant, conn: &mut impl ByteStream) -> Instant {
        let readable = conn.readable();
        if readable == 0 {
            return Instant::NEVER;
        }
        if self.reader == Reader::Eager {
            conn.consume(now, readable);
            return Instant::NEVER;
        }
        self.run_slow(now, conn, readable)
    }

    #[inline(never)]
    fn run_slow(&mut self, now: Instant, conn: &mut impl ByteStream, readable: u64) -> Instant {
        match self.reader {
            Reader::Slow(rate) => {
                conn.consume(now, self.allowed(rate, now, readable));
                return now + TICK;
            }
            Reader::Turns { rates, each } => {
                let turn = now.0 / each.0.max(1);
                if core::mem::replace(&mut self.turn, turn) != turn {
                    self.read = 0;
                    self.since = self.since.map(|since| since.max(Instant(turn * each.0)));
                }
                conn.consume(now, self.allowed(rates[(turn % 2) as usize], now, readable));
                return now + TICK;
            }
            Reader::Pause { from, to, every } => {
                let period = every.map_or(u64::MAX, |every| every.0.max(1));
                let into = now.since(from).0 % period;
                let left = to.since(from).0.saturating_sub(into);
                if now >= from && left > 0 {
                    return now + Duration(left);
                }
            }
            Reader::StopAt(at) if now >= at => return Instant::NEVER,
            Reader::Eager | Reader::StopAt(_) => {}
        }
        conn.consume(now, readable);
        Instant::NEVER
    }

    /// Returns how much of `readable` the rate allows now.
    fn allowed(&mut self, rate: Rate, now: Instant, readable: u64) -> u64 {
        let began = *self.since.get_or_insert(now);
        let due = rate.bytes_in(now.since(began)).saturating_sub(Size(self.read)).0;
        let take = due.min(readable);
        // time in which the buffer was empty is not made up for: the rate is an upper limit
        self.read += take;
        if take == readable {
            self.since = Some(now);
            self.read = 0;
        }
        take
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_tcp::State;

    /// A connection with a constant number of readable bytes, which counts the bytes read.
    struct Full(u64, u64);

    impl ByteStream for Full {
        fn state(&self) -> State {
            State::Established
        }
        fn write(&mut self, _bytes: u64) -> u64 {
            0
        }
        fn unacknowledged(&self) -> u64 {
            0
        }
        fn consumed(&self) -> u64 {
            self.1
        }
        fn close(&mut self) {}
        fn readable(&self) -> u64 {
            self.0
        }
        fn consume(&mut self, _now: Instant, bytes: u64) {
            self.1 += bytes;
        }
    }

    fn reads(reader: Reader, until_ms: u64) -> Vec<u64> {
        let mut reader = ReaderState::new(reader);
        let (mut conn, mut at, mut seen) = (Full(1 << 40, 0), Instant::ZERO, Vec::new());
        for second in 1..=until_ms / 1000 {
            while at < Instant(second * 1_000_000_000) {
                at = reader.run(at, &mut conn).min(at + TICK);
            }
            seen.push(core::mem::take(&mut conn.1));
        }
        seen
    }

    #[test]
    fn rates_come_in_turn() {
        let bps = |n| Rate::from_bps(n).unwrap();
        let reader = Reader::Turns { rates: [bps(8_000_000), bps(800_000)], each: Duration::from_secs(2) };
        let seen = reads(reader, 6000);
        for (i, (got, expected)) in seen.iter().zip([1e6, 1e6, 1e5, 1e5, 1e6, 1e6]).enumerate() {
            // it reads every 5 ms
            assert!((*got as f64 - expected).abs() < 0.006 * 1e6, "second {i}: {seen:?}");
        }
    }

    #[test]
    fn pauses_come_again() {
        let at = |s: u64| Instant(s * 1_000_000_000);
        let reader = Reader::Pause { from: at(2), to: at(3), every: Some(Duration::from_secs(3)) };
        let is_read: Vec<bool> = reads(reader, 9000).iter().map(|n| *n > 0).collect();
        assert_eq!(is_read, [true, true, false, true, true, false, true, true, false]);
    }
}
