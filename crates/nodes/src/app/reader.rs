//! How the receiving application reads: at once, slowly, at two rates in turn, with pauses, or for a time.

use super::{Duplex, TICK};
use bentpipe_base::{Duration, Instant, Rate, Size};

/// The receiving application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// Reads everything at once.
    Eager,
    /// Reads at most at a rate.
    Slow {
        /// The rate.
        rate: Rate,
        /// Bytes read since `since`.
        read: u64,
        /// When the rate limit began to count; `None` before the first byte.
        since: Option<Instant>,
    },
    /// Reads at most at two rates in turn.
    Turns {
        /// The rates.
        rates: [Rate; 2],
        /// Length of a turn.
        each: Duration,
        /// Number of the current turn, from 0.
        turn: u64,
        /// Bytes read since `since`.
        read: u64,
        /// When the rate limit began to count; `None` before the first byte.
        since: Option<Instant>,
    },
    /// Reads everything, but nothing between two instants.
    Pause(Instant, Instant),
    /// Reads everything, with periodic pauses.
    Pauses {
        /// Start of the first pause.
        from: Instant,
        /// Its end.
        to: Instant,
        /// Time from one pause to the next.
        every: Duration,
    },
    /// Reads everything until an instant, then nothing.
    StopAt(Instant),
}

impl Reader {
    /// Reads; returns when it must be called again even if no packet arrives.
    #[inline]
    pub fn run(&mut self, now: Instant, conn: &mut impl Duplex) -> Instant {
        let readable = conn.readable();
        if readable == 0 {
            return Instant::NEVER;
        }
        match self {
            Self::Eager => conn.consume(now, readable),
            Self::Slow { rate, read, since } => {
                conn.consume(now, paced(*rate, now, readable, (read, since)));
                return now + TICK;
            }
            Self::Turns { rates, each, turn, read, since } => {
                let at_hand = now.0 / each.0.max(1);
                if core::mem::replace(turn, at_hand) != at_hand {
                    (*read, *since) = (0, since.map(|since| since.max(Instant(at_hand * each.0))));
                }
                let rate = rates[(at_hand % 2) as usize];
                conn.consume(now, paced(rate, now, readable, (read, since)));
                return now + TICK;
            }
            Self::Pause(from, to) => {
                if now >= *from && now < *to {
                    return *to;
                }
                conn.consume(now, readable);
            }
            Self::Pauses { from, to, every } => {
                let into = Duration(now.since(*from).0 % every.0.max(1));
                let left = to.since(*from).0.saturating_sub(into.0);
                if now >= *from && left > 0 {
                    return now + Duration(left);
                }
                conn.consume(now, readable);
            }
            Self::StopAt(at) => {
                if now < *at {
                    conn.consume(now, readable);
                }
            }
        }
        Instant::NEVER
    }
}

/// Returns how much of `readable` the rate allows now. `read` bytes were read since `since`.
fn paced(rate: Rate, now: Instant, readable: u64, (read, since): (&mut u64, &mut Option<Instant>)) -> u64 {
    let began = *since.get_or_insert(now);
    let due = rate.bytes_in(now.since(began)).saturating_sub(Size(*read)).0;
    let take = due.min(readable);
    // no catching up after the buffer was empty: the rate is an upper limit
    *read += take;
    if take == readable {
        *since = Some(now);
        *read = 0;
    }
    take
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_tcp::State;

    /// A connection with a constant number of readable bytes, which counts the bytes read.
    struct Full(u64, u64);

    impl Duplex for Full {
        fn state(&self) -> State {
            State::Established
        }
        fn write(&mut self, _bytes: u64) -> u64 {
            0
        }
        fn send_room(&self) -> u64 {
            0
        }
        fn unacknowledged(&self) -> u64 {
            0
        }
        fn consumed(&self) -> u64 {
            self.1
        }
        fn peer_closed(&self) -> bool {
            false
        }
        fn close(&mut self) {}
        fn readable(&self) -> u64 {
            self.0
        }
        fn consume(&mut self, _now: Instant, bytes: u64) {
            self.1 += bytes;
        }
    }

    fn reads(mut reader: Reader, until_ms: u64) -> Vec<u64> {
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
        let reader = Reader::Turns {
            rates: [bps(8_000_000), bps(800_000)],
            each: Duration::from_secs(2),
            turn: 0,
            read: 0,
            since: None,
        };
        let seen = reads(reader, 6000);
        for (i, (got, expected)) in seen.iter().zip([1e6, 1e6, 1e5, 1e5, 1e6, 1e6]).enumerate() {
            // it reads every 5 ms
            assert!((*got as f64 - expected).abs() < 0.006 * 1e6, "second {i}: {seen:?}");
        }
    }

    #[test]
    fn pauses_come_again() {
        let at = |s: u64| Instant(s * 1_000_000_000);
        let reader = Reader::Pauses { from: at(2), to: at(3), every: Duration::from_secs(3) };
        let is_read: Vec<bool> = reads(reader, 9000).iter().map(|n| *n > 0).collect();
        assert_eq!(is_read, [true, true, false, true, true, false, true, true, false]);
    }
}
