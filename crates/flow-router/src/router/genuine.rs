//! Which packets belong to a live TCP connection.
//!
//! Own mechanism against forged packets, with the idea of RFC 5961: who does not see a connection does not
//! know its sequence numbers.
//!   of the sender: |SEQ - next| <= window, where next is the highest sequence number that has passed
//!   of the receiver: |ACK - next| <= window
//!   window = what the flow sends in a second at its grant, at least 1 MiB and at most 2^28 bytes
//! A SYN is none of a live connection. It may begin another one with these ports, if its host has forgotten
//! the former: then the peer answers it with a SYN/ACK, and the state of the former ends. Other packets
//! change no state; a request among them gets at most what the flow would be offered. A flow whose packets
//! all jump (it was on another path) is forgotten when it counts as silent, and asked again.
//! Deviations: datagrams have no numbers, and an RST without ACK is believed; both are as safe as the source
//! is checked elsewhere.

use super::{FlowRouter, has};
use crate::flow::{Flow, Phase, bps};
use crate::flows::FlowKey;
use crate::telling::UNTOLD;
use bentpipe_advice::tia1039::{Kind, QOS_SIGNAL, replace, structures};
use bentpipe_base::{Duration, Flags, Instant, Packet, Proto, Rate, Seq};

/// Bounds of the window in bytes.
const WINDOW: (u64, u64) = (1 << 20, 1 << 28);

/// So far behind, the last structure is no longer compared with: numbers wrap.
const FORGOTTEN: u32 = 1 << 30;

/// Who sent a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// The sender of the flow.
    Sender,
    /// Its receiver.
    Receiver,
}

/// The sequence numbers of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Numbers {
    /// The highest that has passed.
    next: Option<Seq>,
    /// When it passed.
    next_at: Instant,
    /// Where the last data began that carried a structure of this router.
    told_at: Option<Seq>,
    /// What a SYN/ACK acknowledges that answers the last SYN on these ports, and who sent that SYN.
    anew: Option<(By, Seq)>,
    /// When its SYN passed last.
    pub(crate) syn_at: Option<Instant>,
    /// True once its SYN has passed again.
    pub(crate) is_syn_again: bool,
    /// True once its FIN or RST has passed.
    pub(crate) has_ended: bool,
}

impl Flow {
    /// True if a sequence number is near those that its sender uses.
    fn is_near(&self, number: Seq) -> bool {
        let window = (self.grant / 8).clamp(WINDOW.0, WINDOW.1);
        self.numbers.next.is_none_or(|next| {
            let distance = number.0.wrapping_sub(next.0).cast_signed();
            u64::from(distance.unsigned_abs()) <= window
        })
    }

    /// True for data sent again, if new data passes too, the last at most `within` ago: the receiver may
    /// have it, and drops what it has with everything that it carries. And if it may have carried a structure
    /// before: with another one it may be lost for the same reason. Other data that is sent again is all that
    /// a sender has left at the end of its stream, and it must hear of a reduction then too.
    pub(crate) fn is_sent_again(&self, now: Instant, packet: &Packet, within: Duration) -> bool {
        let end = packet.tcp.seq.at(packet.seq_len());
        let is_old = |next: Seq| end.0.wrapping_sub(next.0).cast_signed() <= 0;
        let was_told = |told: Seq| packet.tcp.seq.0.wrapping_sub(told.0).cast_signed() <= 0;
        let is_stream = packet.proto == Proto::Tcp && self.numbers.next.is_some_and(is_old);
        is_stream && (now.since(self.numbers.next_at) < within || self.numbers.told_at.is_some_and(was_told))
    }

    /// True if new data has passed of late.
    pub(crate) fn has_new_data(&self, now: Instant) -> bool {
        now.since(self.numbers.next_at) < UNTOLD
    }

    /// A packet of the sender carries a structure of this router.
    pub(crate) const fn note_told(&mut self, packet: &Packet) {
        self.numbers.told_at = Some(packet.tcp.seq);
    }

    /// A packet of the sender has passed.
    fn advance(&mut self, now: Instant, packet: &Packet) {
        let end = packet.tcp.seq.at(packet.seq_len());
        if packet.tcp.flags.has(Flags::SYN) {
            self.numbers.syn_at = Some(now);
            self.numbers.is_syn_again |= self.numbers.next == Some(end);
        }
        self.numbers.has_ended |= packet.tcp.flags.has(Flags::FIN) || packet.tcp.flags.has(Flags::RST);
        let is_further = |next: Seq| end.0.wrapping_sub(next.0).cast_signed() > 0;
        if self.numbers.next.is_none_or(is_further) {
            (self.numbers.next, self.numbers.next_at) = (Some(end), now);
            // half of all numbers later it would compare as told
            let is_near = |told: &Seq| end.0.wrapping_sub(told.0) < FORGOTTEN;
            self.numbers.told_at = self.numbers.told_at.filter(is_near);
        }
    }
}

impl FlowRouter {
    /// False for a packet that is none of the live connection with its addresses.
    pub(super) fn is_genuine(&mut self, key: &FlowKey, packet: &Packet, by: By) -> bool {
        let is_syn = has(packet, Flags::SYN);
        let Some(flow) = self.flows.get_mut(key).filter(|_| packet.proto == Proto::Tcp) else { return true };
        if flow.phase == Phase::Closed {
            if is_syn {
                self.remove(key);
            }
            return true;
        }
        if !flow.has_sent {
            return true;
        }
        let has_ack = has(packet, Flags::ACK);
        if is_syn && !has_ack {
            flow.numbers.anew = Some((by, packet.tcp.seq.at(1)));
            return false;
        }
        if is_syn {
            let is_anew = flow.numbers.anew.is_some_and(|(of, number)| of != by && number == packet.tcp.ack);
            if is_anew {
                self.remove(key);
            }
            return is_anew;
        }
        match by {
            By::Sender => flow.is_near(packet.tcp.seq),
            By::Receiver => !has_ack || flow.is_near(packet.tcp.ack),
        }
    }

    /// Notes the sequence number of a genuine packet of the sender.
    pub(super) fn note_number(&mut self, now: Instant, key: &FlowKey, packet: &Packet) {
        if packet.proto == Proto::Tcp
            && let Some(flow) = self.flows.get_mut(key)
        {
            flow.advance(now, packet);
        }
    }

    /// Lowers the requests in a packet that is not genuine to what the flow would be offered.
    pub(super) fn lower_only(&mut self, key: &FlowKey, packet: &mut Packet) {
        if packet.dscp != QOS_SIGNAL {
            return;
        }
        let Some((class, reserved)) = self.flows.get(key).map(|flow| (flow.class, flow.reserved)) else {
            return;
        };
        let level = self.classes.level(class);
        for (index, structure) in structures(packet).as_slice().iter().enumerate() {
            if !structure.is_supported() || !structure.kind().is_some_and(Kind::is_request) {
                continue;
            }
            let mut offer = *structure;
            offer.set_available(Rate::from_bps(bps(structure.available()).min(level)));
            offer.set_guaranteed(Rate::from_bps(bps(structure.guaranteed()).min(reserved)));
            if offer != *structure {
                offer.set_changed(true);
                replace(packet, index, &offer);
            }
        }
    }
}
