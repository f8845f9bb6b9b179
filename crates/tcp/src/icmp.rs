//! What routers and the peer's host say of a segment of ours: ICMP.
//!
//! Sources: RFC 9293, section 3.9.2.2 (what ends a call, and what does not), RFC 1191 and RFC 8201 (path MTU
//! discovery), RFC 5927 (whom to believe).
//! - Only a message that quotes a segment in flight is believed: `SND.UNA <= quoted < SND.NXT` (RFC 5927,
//!   section 4.1).
//! - "Unreachable" ends a connection that is not open yet, if trying again cannot help (hard); Linux
//!   (`tcp_v4_err`) ends it for any. An open one is ended by neither (RFC 5927, section 5.2): who can guess
//!   four numbers could else end any.
//! - "Too big" lowers the MSS. What is longer goes again in pieces, at once, and that is no sign of
//!   congestion: the window stays. Where longer segments have arrived before, it must be a change of path or
//!   a lie: it waits for a timeout of the segment it quotes (RFC 5927, section 7.2). Linux does not wait
//!   (`tcp_mtu_reduced`).
//!
//! The MSS is not raised again (RFC 1191, section 6.3, allows that after ten minutes); schemes keep the
//! segment that they began with as their unit of growth.

use crate::connection::Connection;
use crate::state::{Event, State};
use crate::timers::Timer;
use bentpipe_base::{Cx, Instant, Seq};

/// What is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Icmp {
    /// It was not delivered. `hard`: and will not be, there is no such protocol or port.
    Unreachable {
        /// Trying again does not help.
        hard: bool,
    },
    /// It is longer than a link takes.
    TooBig {
        /// The longest that fits: payload and options of TCP, which is what the MSS option counts.
        segment: u16,
    },
}

/// A message that waits for a timeout: the longest segment, and where the one begins that it quotes.
pub(crate) type Doubted = (u16, u64);

impl Connection {
    /// Takes what a message says of the segment that begins with sequence number `quoted`. True if it can be
    /// true: the segment is in flight.
    pub fn icmp(&mut self, cx: &mut Cx<'_>, quoted: Seq, said: Icmp) -> bool {
        let (una, next) = (self.board.una(), self.board.next());
        let Some(position) = self.iss.offset_near(quoted, una).filter(|p| (una..next).contains(p)) else {
            return false;
        };
        match said {
            Icmp::Unreachable { hard } => {
                let opens = matches!(self.state, State::SynSent | State::SynReceived);
                if opens && (hard || self.linux()) {
                    self.events.push(Event::Unreachable);
                    self.limits.stop(cx.now);
                    self.enter_closed();
                }
            }
            Icmp::TooBig { segment }
                if self.state.synchronised() && self.agreed.is_shorter(&self.config, segment) =>
            {
                let longer =
                    self.board.longest_delivered() > u64::from(self.agreed.mss_of(&self.config, segment));
                if longer && !self.linux() {
                    self.doubted.get_or_insert((segment, position));
                } else {
                    self.lower_mss(cx.now, segment);
                }
            }
            Icmp::TooBig { .. } => {}
        }
        true
    }

    /// The retransmission timer expired: a message about a segment that did not arrive since was true.
    pub(crate) fn believe_doubted(&mut self, now: Instant) {
        if let Some((segment, position)) = self.doubted.take()
            && position >= self.board.una()
            && self.agreed.is_shorter(&self.config, segment)
        {
            self.lower_mss(now, segment);
        }
    }

    fn lower_mss(&mut self, now: Instant, segment: u16) {
        self.agreed.mss = self.agreed.mss_of(&self.config, segment);
        self.doubted = None;
        if self.board.cut(self.mss()) {
            self.recovery.resend_cut(&self.board, self.mss());
            self.tail_probe.cancel();
            self.timers.stop(Timer::TailProbe);
            self.timers.stop(Timer::Reorder);
            self.restart_retransmit_timer(now);
        }
    }
}
