//! How the receiving application reads: at once, slowly, with a pause, or not any more.

use super::{Duplex, TICK};
use bentpipe_base::{Instant, Rate, Size};

/// The receiving application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// Reads everything at once.
    Eager,
    /// Reads at most at a rate.
    Slow {
        /// The rate.
        rate: Rate,
        /// Bytes read so far.
        read: u64,
        /// When the first byte could be read.
        since: Option<Instant>,
    },
    /// Reads everything, but nothing between two instants.
    Pause(Instant, Instant),
    /// Reads everything until an instant, then nothing.
    StopAt(Instant),
}

impl Reader {
    /// Reads what it wants; returns when it wants to be called again without a packet arriving.
    #[inline]
    pub fn run(&mut self, now: Instant, conn: &mut impl Duplex) -> Instant {
        let readable = conn.readable();
        if readable == 0 {
            return Instant::NEVER;
        }
        match self {
            Self::Eager => conn.consume(now, readable),
            Self::Slow { rate, read, since } => {
                let began = *since.get_or_insert(now);
                let due = rate.bytes_in(now.since(began)).saturating_sub(Size(*read)).0;
                let take = due.min(readable);
                // what could not be read in time is not caught up: the rate is a ceiling
                *read += take;
                if take == readable {
                    *since = Some(now);
                    *read = 0;
                }
                conn.consume(now, take);
                return now + TICK;
            }
            Self::Pause(from, to) => {
                if now >= *from && now < *to {
                    return *to;
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
