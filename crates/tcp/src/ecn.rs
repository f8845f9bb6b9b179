//! Explicit congestion notification.
//!
//! Source: RFC 3168, section 6.1. A host requests ECN in its SYN, and the peer accepts it in its SYN/ACK;
//! new data is then ECT. The receiver echoes a mark (CE) in every acknowledgment until the sender sends CWR.
//! The sender treats an echo as a loss, once in a window, and sends CWR with its next new data. A SYN
//! without an answer is resent without the request, since some middleboxes drop it (section 6.1.1.1). A host
//! may accept without requesting (Linux' default, `tcp_ecn = 2`). On Linux a mark reduces the window as a
//! loss does, by PRR and not at once (`tcp_enter_cwr`): so CWR is sent with the first segment after the echo,
//! not after half a window was acknowledged. Until something beyond the data outstanding at the mark is
//! acknowledged, the window does not grow, echoes are ignored, and a loss does not reduce it again.

use crate::cc::{Episode, Loss, LossCause};
use crate::config::EcnUse;
use crate::connection::Connection;
use crate::options::NegotiatedOptions;
use bentpipe_base::{Cx, Ecn, Flags, Packet};

/// ECN's state.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EcnState {
    /// A CE mark arrived and no CWR since: acknowledgments carry ECE.
    pub(crate) echo: bool,
    /// The next new data segment carries CWR.
    pub(crate) send_cwr: bool,
    /// Echoes are ignored until this is acknowledged: one reduction per window.
    pub(crate) reduced_until: u64,
}

/// True if `mode` and the flags of the peer's SYN or SYN/ACK enable ECN.
pub(crate) const fn ecn_agreed(mode: EcnUse, syn: Flags) -> bool {
    let (ece, cwr) = (syn.has(Flags::ECE), syn.has(Flags::CWR));
    match mode {
        EcnUse::Off => false,
        _ if !syn.has(Flags::ACK) => ece && cwr,
        EcnUse::AcceptOnly => false, // we did not request it
        EcnUse::Request => ece && !cwr,
    }
}

impl Connection {
    /// Returns the ECN flags of our SYN, first or resent, or of our SYN/ACK once `agreed` is known.
    pub(crate) fn ecn_of_syn(&self, agreed: Option<&NegotiatedOptions>) -> Flags {
        let first = self.board.get(0).is_none_or(|syn| syn.resends == 0);
        match agreed {
            None if self.config.ecn == EcnUse::Request && first => Flags::ECE.with(Flags::CWR),
            Some(agreed) if agreed.ecn => Flags::ECE,
            _ => Flags(0),
        }
    }

    /// RFC 3168, section 6.1.3: echoes CE until the sender sends CWR.
    pub(crate) fn congestion_experienced(&mut self, segment: &Packet) {
        if !self.negotiated.ecn {
            return;
        }
        if segment.tcp.flags.has(Flags::CWR) {
            self.ecn.echo = false;
        }
        if segment.ecn == Ecn::Ce {
            self.ecn.echo = true;
            self.rcv.ack_now();
        }
    }

    /// RFC 3168, section 6.1.2: announces a reduction by CWR, and ignores echoes for a round trip.
    pub(crate) const fn announce_reduction(&mut self) {
        self.ecn.reduced_until = self.board.next();
        self.ecn.send_cwr = self.negotiated.ecn;
    }

    /// RFC 3168, section 6.1.2: reduces the window for an ECN echo, once per round trip.
    pub(crate) fn ecn_echo(&mut self, cx: &mut Cx<'_>, segment: &Packet) {
        if !self.negotiated.ecn || !segment.tcp.flags.has(Flags::ECE) {
            return;
        }
        if self.board.una() >= self.ecn.reduced_until
            && self.recovery.episode() == Episode::Open
            && !self.recovery.is_reducing()
        {
            let window = self.cwnd();
            let loss = Loss { cause: LossCause::Mark, last_sent: self.last_sent, resends: 0 };
            self.report_loss(cx, &loss, 0);
            self.recovery.reduce_for_mark(&self.board, window.0);
        }
    }
}
