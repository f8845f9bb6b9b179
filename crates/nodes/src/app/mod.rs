//! Applications: what is written, and how it is read.
//!
//! Each end of a connection has a [`Writer`] and a [`Reader`]. They run whenever a segment arrived or a time
//! that they requested has come. The reader runs first, so that a writer finds requests already read.

mod duplex;
mod paced;
mod reader;
mod requests;
mod telnet;

pub use duplex::Duplex;
pub use paced::Paced;
pub use reader::Reader;
pub use requests::{Answerer, Asker};
pub use telnet::Typist;

use bentpipe_base::{Cx, Duration, Instant};
use bentpipe_tcp::State;

/// Interval of paced readers and writers: short against any RTT of interest, long against a packet time.
const TICK: Duration = Duration::from_millis(5);

/// The sending application. Large variants are boxed, because most ends are bulk or silent.
#[derive(Clone, Debug)]
pub enum Writer {
    /// Writes nothing and closes when the peer has closed.
    Silent,
    /// Always has more data.
    Bulk,
    /// Writes what is left of a transfer, then closes.
    Transfer(u64),
    /// Writes at a rate.
    Paced(Paced),
    /// Sends requests and waits for responses.
    Ask(Box<Asker>),
    /// Answers requests.
    Answer(Answerer),
    /// Writes like a user who types.
    Telnet(Box<Typist>),
}

impl Writer {
    /// Writes what it can; returns when it must be called again even if no packet arrives.
    #[inline]
    pub fn run(&mut self, cx: &mut Cx<'_>, conn: &mut impl Duplex) -> Instant {
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
            Self::Paced(paced) => return paced.run(cx.now, conn),
            Self::Ask(asker) => return asker.run(cx, conn),
            Self::Answer(answerer) => answerer.run(conn),
            Self::Telnet(typist) => return typist.run(cx, conn),
        }
        Instant::NEVER
    }
}
