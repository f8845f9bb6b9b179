//! Applications: what is written, and how it is read.

use bentpipe_base::{Duration, Instant, Rate, Size};
use bentpipe_tcp::{Connection, State};

/// How often a paced reader or writer looks: small against any RTT of interest, large against a packet time.
const TICK: Duration = Duration::from_millis(5);

/// The sending application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// Writes nothing and closes when the peer has closed.
    Silent,
    /// Always has more.
    Bulk,
    /// Writes what is left of a transfer, then closes.
    Transfer(u64),
    /// Writes at a rate; `written` bytes so far.
    Paced {
        /// The rate.
        rate: Rate,
        /// When it began.
        since: Option<Instant>,
        /// Bytes written so far.
        written: u64,
    },
}

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

impl Writer {
    /// Writes what it can; returns when it wants to be called again without a packet arriving.
    #[inline]
    pub fn run(&mut self, now: Instant, conn: &mut Connection) -> Instant {
        match self {
            Self::Silent => {
                if conn.peer_closed() && conn.state() == State::CloseWait {
                    conn.close();
                }
            }
            Self::Bulk => {
                if conn.send_room() > 0 {
                    conn.write(u64::MAX);
                }
            }
            Self::Transfer(left) => {
                if *left > 0 {
                    *left -= conn.write(*left);
                }
                if *left == 0 && conn.state().synchronised() {
                    conn.close();
                }
            }
            Self::Paced { rate, since, written } => {
                if conn.state() == State::SynSent {
                    return Instant::NEVER;
                }
                let began = *since.get_or_insert(now);
                let due = rate.bytes_in(now.since(began)).0;
                if due > *written {
                    *written += conn.write(due - *written);
                }
                return now + TICK;
            }
        }
        Instant::NEVER
    }
}

impl Reader {
    /// Reads what it wants; returns when it wants to be called again without a packet arriving.
    #[inline]
    pub fn run(&mut self, now: Instant, conn: &mut Connection) -> Instant {
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
