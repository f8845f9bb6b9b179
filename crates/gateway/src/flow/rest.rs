//! A connection that sleeps, and one whose gateway died: what is kept of it, and how it goes on.
//!
//! What is kept ([`Persist`]) names shifts and edges by sequence numbers; positions here count from a SYN. A
//! connection that slept had nothing on the way: both SYNs are taken to lie just before what is expected
//! next, and everything is as it was. After a restart something may be on the way, and the edges are old.
//! Then packets pass, their windows translated, until both sides have spoken: the receiver's acknowledgment
//! and the sender's latest byte are the new anchors. What lies between them never came to this gateway, so it
//! is the sender's own to repair, and what comes after is accelerated as ever.

use super::handshake::Handshake;
use super::{Flow, Shared};
use crate::config::Config;
use crate::counters::Why;
use crate::report::State;
use crate::sides::LAN;
use crate::table::persist::Persist;
use bentpipe_base::{Cx, Duration, Flags, Instant, Packet, Pkt, Port, Seq};

/// What has been heard since a restart.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Anchor {
    /// The receiver expects this.
    una: Option<Seq>,
    /// The sender has sent everything before.
    top: Option<Seq>,
    /// Right edge of the receiver.
    edge: Seq,
}

impl Flow {
    /// What has to be known to pass it correctly later on.
    pub(crate) fn persist(&self) -> Persist {
        let isn = self.shake.lan().map_or(Seq(0), |lan| lan.isn);
        let mut persist = Persist {
            mss: self.shake.mss().min(u64::from(u16::MAX)) as u16,
            sack: self.shake.sack(),
            timestamps: self.sender.stamps(),
            una: isn.at(self.una),
            next: isn.at(self.sender.top),
            edge: isn.at(self.receiver.edge),
            shown_edge: isn.at(self.shown.edge),
            back_una: self.sender.acked(),
            largest: u32::try_from(self.receiver.largest).unwrap_or(u32::MAX),
            hop_trip: self.trip.known().unwrap_or(Duration::ZERO),
            lan_trip: self.shake.lan_trip.unwrap_or(Duration::ZERO),
            ..Persist::default()
        };
        self.shake.persist(&mut persist);
        persist
    }

    /// From what was kept of it: as it was where `is_exact`, else it passes with its windows translated until
    /// enough is known.
    pub(crate) fn resume(persist: &Persist, is_exact: bool, config: &Config) -> Self {
        let shake = Handshake::resume(persist);
        let mut flow = Self::new(shake, config);
        flow.state = State::Established;
        flow.receiver.largest = u64::from(persist.largest);
        if !persist.hop_trip.is_zero() {
            flow.trip.sample(Instant::ZERO, persist.hop_trip);
        }
        let beyond = |edge: Seq| 1 + u64::from(edge.0.wrapping_sub(persist.una.0));
        flow.receiver.edge = beyond(persist.edge);
        flow.sender.top = beyond(persist.next);
        (flow.shown.ack, flow.shown.edge) = (1, beyond(persist.shown_edge));
        flow.judge(u64::from(persist.largest));
        flow.anchor = (!is_exact).then(Anchor::default);
        flow
    }

    /// From now on it only passes, with its windows translated.
    pub(crate) const fn only_pass(&mut self, why: Why) {
        self.why = Some(why);
    }

    /// Why it only passes, when it does.
    pub(crate) const fn why(&self) -> Option<Why> {
        self.why
    }

    /// True when nothing is held or on the way, so that [`Flow::persist`] says all.
    pub(crate) fn is_at_rest(&self) -> bool {
        let is_open = self.state == State::Established && self.fins == (None, None) && self.anchor.is_none();
        let is_told = self.una == self.sender.top && self.shown.ack == self.una;
        is_open
            && self.works()
            && is_told
            && self.held == 0
            && self.deadline().is_none()
            && self.receiver.stopped.is_none()
    }

    /// A packet after a restart, before both sides have spoken.
    pub(super) fn anchored(&mut self, cx: &mut Cx<'_>, from: Port, mut packet: Pkt, shared: &mut Shared<'_>) {
        let mut anchor = self.anchor.unwrap_or_default();
        let tcp = &packet.tcp;
        if from == LAN {
            let top = tcp.seq.at(packet.seq_len());
            if anchor.top.is_none_or(|old| top.0.wrapping_sub(old.0).cast_signed() > 0) {
                anchor.top = Some(top);
            }
        } else if tcp.flags.has(Flags::ACK) {
            anchor.una = Some(tcp.ack);
            anchor.edge = tcp.ack.at(u64::from(tcp.window) << self.shake.receiver_shift());
        }
        self.anchor = Some(anchor);
        if tcp.flags.has(Flags::RST) {
            self.state = State::Closed;
        } else if tcp.flags.has(Flags::FIN) {
            // its end is near and its positions are not known: not worth a second way to follow ends
            self.why = Some(Why::Released);
        } else if let (Some(una), Some(top)) = (anchor.una, anchor.top) {
            self.go_on(una, top, anchor.edge);
        }
        self.translate(from, &mut packet);
        self.pass(cx, from, packet, shared);
    }

    /// Both sides have spoken.
    fn go_on(&mut self, una: Seq, top: Seq, edge: Seq) {
        // an acknowledgment of what the sender has not sent here yet: it will
        let ahead = top.0.wrapping_sub(una.0);
        if ahead.cast_signed() < 0 {
            return;
        }
        self.anchor = None;
        self.shake.count_from(una);
        (self.una, self.shown.ack) = (1, 1);
        self.sender.top = 1 + u64::from(ahead);
        self.receiver.edge = 1 + u64::from(edge.0.wrapping_sub(una.0));
        self.shown.edge = self.receiver.edge;
    }

    /// Tells a window as the other side must read it.
    pub(super) fn translate(&self, from: Port, packet: &mut Packet) {
        if from == LAN {
            packet.tcp.window = self.shake.window_for_receiver(packet.tcp.window);
        } else {
            let window = u64::from(packet.tcp.window) << self.shake.receiver_shift();
            packet.tcp.window =
                window.div_ceil(1 << self.shake.shown_shift()).min(u64::from(u16::MAX)) as u16;
        }
    }
}
