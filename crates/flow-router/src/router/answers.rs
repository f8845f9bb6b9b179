//! Packets against the managed direction: responses of receivers, and the ends of connections.
//!
//! Grant = min(offer, AR of the response). A response more than 1 % below the offer says that the flow is
//! limited elsewhere: that is then its limit in the division. A response that matches no offer counts only if
//! it is below the grant: then a router behind this one has reduced the flow. AR = 0 and GR = 0 is a refusal:
//! the flow goes on without a rate. These packets pass unchanged; requests in them concern the other
//! direction.

use super::genuine::By;
use super::tell::MOST_TRIES;
use super::{FlowRouter, SENDERS, has, is_readable, is_untouchable};
use crate::flow::{Phase, bps};
use crate::flows::FlowKey;
use crate::telling::Unheard;
use bentpipe_advice::negotiation::Encoding;
use bentpipe_advice::tia1039::{Kind, QOS_SIGNAL, Structure, structures};
use bentpipe_base::{Cx, Flags, Instant, Packet, Pkt};

const SYN_ACK: Flags = Flags::SYN.with(Flags::ACK);

impl FlowRouter {
    /// A packet to the senders.
    pub(super) fn inward(&mut self, cx: &mut Cx<'_>, packet: Pkt) {
        if is_readable(&packet) && !is_untouchable(&packet) {
            self.answers(cx.now, &packet);
        }
        cx.send(SENDERS, packet);
    }

    fn answers(&mut self, now: Instant, packet: &Packet) {
        let tells = self.speaks(Encoding::Tia1039);
        if packet.flow_label().is_some() {
            if tells {
                self.hidden_answers(now, packet);
            }
            return;
        }
        let key = FlowKey::reverse_of(packet);
        if !self.is_genuine(&key, packet, By::Receiver) {
            return;
        }
        if has(packet, SYN_ACK)
            && let Some(flow) = self.flows.get_mut(&key)
        {
            flow.take_syn_ack(now);
        }
        let mut is_answered = false;
        if tells && packet.dscp == QOS_SIGNAL {
            for structure in structures(packet).as_slice() {
                if structure.is_supported() && structure.kind() == Some(Kind::Response) {
                    self.response(now, key, structure);
                    is_answered = true;
                }
            }
        }
        let is_waiting = self.flows.get(&key).is_some_and(|flow| flow.phase == Phase::HalfOpen);
        if has(packet, SYN_ACK) && !is_answered && is_waiting {
            // the receiver does not signal
            self.note_answer(now, &key);
            self.lapse(now, key);
        }
        if has(packet, Flags::RST) {
            if is_waiting {
                self.note_answer(now, &key);
            }
            self.close(now, key);
        }
    }

    /// Responses in packets whose ports cannot be read: the structure names the label of the other direction.
    fn hidden_answers(&mut self, now: Instant, packet: &Packet) {
        for structure in structures(packet).as_slice() {
            if structure.is_supported() && structure.kind() == Some(Kind::Response) {
                let key = FlowKey::labelled(packet.dst, packet.src, structure.flow_label());
                self.response(now, key, structure);
            }
        }
    }

    fn response(&mut self, now: Instant, key: FlowKey, response: &Structure) {
        let (available, guaranteed) = (bps(response.available()), bps(response.guaranteed()));
        let is_refusal = available == 0 && guaranteed == 0;
        let Some(flow) = self.flows.get_mut(&key).filter(|flow| flow.is_negotiating()) else { return };
        (flow.last, flow.unheard) = (now, Unheard::default());
        match flow.offers.answer(now, available, guaranteed) {
            Some(_) if is_refusal => return self.refuse(now, key),
            Some(offer) => {
                if !offer.is_inserted {
                    self.settle_move(&key);
                    self.settle_claim(key, offer.guaranteed, guaranteed);
                }
                let Some(flow) = self.flows.get_mut(&key) else { return };
                let (was_half_open, before) = (flow.phase == Phase::HalfOpen, flow.reserved);
                flow.take_response(now, (available, guaranteed), &offer);
                // only the last offer may have been lowered: a reservation may have grown since an older one
                if offer.guaranteed == before {
                    flow.reserved = before.min(guaranteed);
                }
                let reserved = flow.reserved;
                self.reservations.lower(key, reserved);
                self.flows.schedule(key);
                self.update_pool();
                if was_half_open {
                    self.note_answer(now, &key);
                    self.set_phase(now, key, Phase::Capable);
                }
            }
            None if 0 < available && available < flow.grant => flow.take_lower(now, available, guaranteed),
            None => {}
        }
        self.recount(&key);
        self.review_trust(now);
    }

    /// The flow has no rate. It is not asked for one, because it knows the answer.
    pub(super) fn refuse(&mut self, now: Instant, key: FlowKey) {
        let Some(flow) = self.flows.get_mut(&key) else { return };
        flow.missed.tries = MOST_TRIES;
        if flow.phase == Phase::HalfOpen {
            self.note_answer(now, &key);
        }
        self.set_phase(now, key, Phase::Plain);
        self.review_trust(now);
    }
}
