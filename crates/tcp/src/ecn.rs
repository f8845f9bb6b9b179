//! Explicit congestion notification.
//!
//! Source: RFC 3168, section 6.1. Who asks says so on its SYN, who agrees on its SYN/ACK; new data is then
//! ECT. A mark (CE) is echoed by every acknowledgment until the sender says CWR; the sender takes an echo for
//! a loss, once in a window, and says CWR with its next new data. A SYN that stays without an answer goes
//! again without asking: some middlebox drops it (section 6.1.1.1). A host may only answer (Linux' default,
//! `tcp_ecn = 2`). In a Linux host a mark lowers the window as a loss does, by PRR and not at once
//! (`tcp_enter_cwr`): so CWR leaves with the first segment after the echo, not after half a window was
//! acknowledged. Until more than that window is acknowledged nothing grows, no echo counts, and a loss does
//! not lower it again.

use crate::cc::{Episode, Loss, LossCause};
use crate::config::EcnUse;
use crate::connection::Connection;
use crate::options::Agreed;
use bentpipe_base::{Cx, Ecn, Flags, Packet, Size};

/// ECN's state.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EcnState {
    /// A CE mark arrived and no CWR since: acknowledgments carry ECE.
    pub(crate) echo: bool,
    /// The next new data segment carries CWR.
    pub(crate) send_cwr: bool,
    /// One reduction per window: until this is acknowledged.
    pub(crate) reduced_until: u64,
}

/// Does `mode` and what the peer's SYN says make ECN?
pub(crate) const fn agrees(mode: EcnUse, syn: Flags) -> bool {
    let (ece, cwr) = (syn.has(Flags::ECE), syn.has(Flags::CWR));
    match mode {
        EcnUse::Off => false,
        _ if !syn.has(Flags::ACK) => ece && cwr,
        EcnUse::Answer => false, // nobody asked
        EcnUse::Ask => ece && !cwr,
    }
}

impl Connection {
    /// What our SYN says, sent for the first time or again, or our SYN/ACK once it is known what was
    /// `agreed`.
    pub(crate) fn ecn_of_syn(&self, agreed: Option<&Agreed>) -> Flags {
        let first = self.board.get(0).is_none_or(|syn| syn.resends == 0);
        match agreed {
            None if self.config.ecn == EcnUse::Ask && first => Flags::ECE.with(Flags::CWR),
            Some(agreed) if agreed.ecn => Flags::ECE,
            _ => Flags(0),
        }
    }

    /// RFC 3168, section 6.1.3: CE is echoed until the sender says CWR.
    pub(crate) fn congestion_experienced(&mut self, segment: &Packet) {
        if !self.agreed.ecn {
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

    /// RFC 3168, section 6.1.2: whatever the window was reduced for, CWR says so, and no echo counts for a
    /// round trip.
    pub(crate) const fn tell_reduction(&mut self) {
        self.ecn.reduced_until = self.board.next();
        self.ecn.send_cwr = self.agreed.ecn;
    }

    /// RFC 3168, section 6.1.2: an ECN echo halves the window once per round trip.
    pub(crate) fn ecn_echo(&mut self, cx: &mut Cx<'_>, segment: &Packet) -> bool {
        if !self.agreed.ecn || !segment.tcp.flags.has(Flags::ECE) {
            return false;
        }
        if self.board.una() >= self.ecn.reduced_until
            && self.recovery.episode() == Episode::Open
            && !self.recovery.is_reducing()
        {
            let window = self.cwnd();
            let loss = Loss {
                cause: LossCause::Mark,
                bytes: Size::ZERO,
                last_sent: self.last_sent,
                resends: 0,
                window_then: window,
            };
            self.answer_loss(cx, &loss, 0);
            self.recovery.reduce_for_mark(&self.board, window.0);
        }
        true
    }
}
