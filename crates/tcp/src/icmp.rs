//! ICMP messages from routers or the peer's host about a segment of ours.
//!
//! Sources: RFC 9293, section 3.9.2.2 (which messages end a connection), RFC 1191 and RFC 8201 (path MTU
//! discovery), RFC 5927 (which messages to believe).
//! - Only a message that quotes a segment in flight is believed: `SND.UNA <= quoted < SND.NXT` (RFC 5927,
//!   section 4.1).
//! - "Unreachable" ends a connection that is not open yet, if trying again cannot help (hard); Linux
//!   (`tcp_v4_err`) ends it for any. An open one is not ended (RFC 5927, section 5.2): otherwise anyone who
//!   guesses four numbers could end it.
//! - "Too big" lowers the MSS. Longer segments are resent in pieces, at once. That is no sign of congestion,
//!   so the window stays. If longer segments have arrived before, either the path has changed or the message
//!   is false: it takes effect only after a timeout of the segment it quotes (RFC 5927, section 7.2). Linux
//!   does not wait (`tcp_mtu_reduced`).
//!
//! The MSS is not raised again (RFC 1191, section 6.3, allows that after ten minutes). Schemes keep the
//! initial segment size as their unit of growth.

use crate::connection::Connection;
use crate::state::{Event, State};
use crate::timers::Timer;
use bentpipe_base::{Cx, Instant, Seq};

/// Content of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Icmp {
    /// The segment was not delivered.
    Unreachable {
        /// There is no such protocol or port: trying again does not help.
        hard: bool,
    },
    /// The segment is longer than a link takes.
    TooBig {
        /// The longest that fits, in bytes of payload and TCP options, as the MSS option counts.
        segment: u16,
    },
}

impl Connection {
    /// Handles a message about the segment that begins with sequence number `quoted`. Returns true if it is
    /// credible: the segment is in flight.
    pub fn icmp(&mut self, cx: &mut Cx<'_>, quoted: Seq, said: Icmp) -> bool {
        let (una, next) = (self.board.una(), self.board.next());
        let Some(position) = self.iss.offset_near(quoted, una).filter(|p| (una..next).contains(p)) else {
            return false;
        };
        match said {
            Icmp::Unreachable { hard } => {
                let opens = matches!(self.state, State::SynSent | State::SynReceived);
                if opens && (hard || self.linux()) {
                    self.end(cx.now, Event::Unreachable);
                }
            }
            Icmp::TooBig { segment }
                if self.state.synchronised() && self.negotiated.is_shorter(&self.config, segment) =>
            {
                let longer =
                    self.board.longest_delivered() > u64::from(self.negotiated.mss_of(&self.config, segment));
                if longer && !self.linux() {
                    self.pending_too_big.get_or_insert((segment, position));
                } else {
                    self.lower_mss(cx.now, segment);
                }
            }
            Icmp::TooBig { .. } => {}
        }
        true
    }

    /// Applies a doubted message after a timeout, if the segment that it quotes has not arrived.
    pub(crate) fn apply_pending_too_big(&mut self, now: Instant) {
        if let Some((segment, position)) = self.pending_too_big.take()
            && position >= self.board.una()
            && self.negotiated.is_shorter(&self.config, segment)
        {
            self.lower_mss(now, segment);
        }
    }

    fn lower_mss(&mut self, now: Instant, segment: u16) {
        self.negotiated.mss = self.negotiated.mss_of(&self.config, segment);
        self.pending_too_big = None;
        if self.board.split_to_mss(self.mss()) {
            self.recovery.resend_cut(&self.board, self.mss());
            self.tail_probe.cancel();
            self.disarm_tail_probe(now);
            self.timers.stop(Timer::Reorder);
            self.restart_retransmit_timer(now);
        }
    }
}
