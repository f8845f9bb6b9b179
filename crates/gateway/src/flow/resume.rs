//! Saving and restoring a flow: when its connection sleeps, and after a restart of the gateway.
//!
//! [`SavedState`] holds shifts and edges as sequence numbers; positions here count from a SYN. A connection
//! that slept had nothing in flight: both SYNs are assumed just before the next expected bytes, and
//! everything is as before. After a restart data may be in flight, and the edges are outdated. Then packets
//! pass with translated windows until both sides have sent one: the receiver's acknowledgment and the
//! sender's latest byte are the new anchors. Data between them never reached this gateway, so the sender must
//! repair it; later data is accelerated as usual.

use super::handshake::Handshake;
use super::header::later;
use super::{Flow, Shared};
use crate::config::Config;
use crate::counters::PassReason;
use crate::report::State;
use crate::sides::LAN;
use crate::table::persist::SavedState;
use bentpipe_base::{Cx, Duration, Flags, Instant, Packet, Pkt, Port, Seq};

/// Acknowledgment, top and edge seen since a restart.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ResumePoint {
    /// The receiver's acknowledgment number.
    una: Option<Seq>,
    /// The sender has sent everything before this.
    top: Option<Seq>,
    /// Right edge of the receiver's window.
    edge: Seq,
}

impl Flow {
    /// Returns the state that is needed to pass its packets correctly later on.
    pub(crate) fn persist(&self) -> SavedState {
        let isn = self.handshake.lan().map_or(Seq(0), |lan| lan.isn);
        let mut persist = SavedState {
            mss: self.handshake.mss().min(u64::from(u16::MAX)) as u16,
            sack: self.handshake.sack(),
            timestamps: self.sender.stamps(),
            una: isn.at(self.una),
            next: isn.at(self.sender.top),
            edge: isn.at(self.receiver.edge),
            advertised_edge: isn.at(self.advertised.edge),
            back_una: self.sender.expects().unwrap_or_default(),
            largest: u32::try_from(self.receiver.largest).unwrap_or(u32::MAX),
            hop_rtt: self.hop_rtt.known().unwrap_or(Duration::ZERO),
            lan_rtt: self.handshake.lan_rtt.unwrap_or(Duration::ZERO),
            ..SavedState::default()
        };
        self.handshake.persist(&mut persist);
        persist
    }

    /// Restores a flow. Unless `is_exact` it passes with translated windows until enough is known.
    pub(crate) fn resume(persist: &SavedState, is_exact: bool, config: &Config) -> Self {
        let shake = Handshake::resume(persist);
        let mut flow = Self::new(shake, config);
        flow.state = State::Established;
        flow.receiver.largest = u64::from(persist.largest);
        if !persist.hop_rtt.is_zero() {
            flow.hop_rtt.sample(Instant::ZERO, persist.hop_rtt);
        }
        let beyond = |edge: Seq| 1 + u64::from(edge.0.wrapping_sub(persist.una.0));
        flow.receiver.edge = beyond(persist.edge);
        flow.sender.top = beyond(persist.next);
        (flow.advertised.ack, flow.advertised.edge) = (1, beyond(persist.advertised_edge));
        flow.start_detection(u64::from(persist.largest));
        flow.resume_point = (!is_exact).then(ResumePoint::default);
        flow
    }

    /// From now on packets only pass, with translated windows.
    pub(crate) const fn only_pass(&mut self, why: PassReason) {
        self.pass_reason = Some(why);
    }

    /// Why it only passes; none if it is accelerated.
    pub(crate) const fn why(&self) -> Option<PassReason> {
        self.pass_reason
    }

    /// True if nothing is held or in flight, so that [`Flow::persist`] is complete.
    pub(crate) fn is_at_rest(&self) -> bool {
        let is_open =
            self.state == State::Established && self.fins == (None, None) && self.resume_point.is_none();
        let is_told = self.una == self.sender.top && self.advertised.ack == self.una;
        is_open
            && self.is_accelerated()
            && is_told
            && self.held == 0
            && self.deadline().is_none()
            && self.receiver.stopped.is_none()
    }

    /// Passes a packet after a restart, before both sides have sent one.
    pub(super) fn packet_after_resume(
        &mut self,
        cx: &mut Cx<'_>,
        from: Port,
        mut packet: Pkt,
        shared: &mut Shared,
    ) {
        let mut anchor = self.resume_point.unwrap_or_default();
        let tcp = &packet.tcp;
        if from == LAN {
            let top = tcp.seq.at(packet.seq_len());
            if anchor.top.is_none_or(|old| later(top.0, old.0)) {
                anchor.top = Some(top);
            }
        } else if tcp.flags.has(Flags::ACK) {
            anchor.una = Some(tcp.ack);
            anchor.edge = tcp.ack.at(u64::from(tcp.window) << self.handshake.receiver_shift());
        }
        self.resume_point = Some(anchor);
        if tcp.flags.has(Flags::RST) {
            self.state = State::Closed;
        } else if tcp.flags.has(Flags::FIN) {
            // it ends soon and its positions are unknown: not worth tracking
            self.pass_reason = Some(PassReason::Released);
        } else if let (Some(una), Some(top)) = (anchor.una, anchor.top) {
            self.go_on(una, top, anchor.edge);
        }
        self.translate(from, &mut packet);
        self.pass(cx, from, packet, shared);
    }

    /// Resumes acceleration, once packets from both sides were seen.
    fn go_on(&mut self, una: Seq, top: Seq, edge: Seq) {
        // an acknowledgment of data that has not reached this gateway yet
        let ahead = top.0.wrapping_sub(una.0);
        if ahead.cast_signed() < 0 {
            return;
        }
        self.resume_point = None;
        self.handshake.count_from(una);
        (self.una, self.advertised.ack) = (1, 1);
        self.sender.top = 1 + u64::from(ahead);
        self.receiver.edge = 1 + u64::from(edge.0.wrapping_sub(una.0));
        self.advertised.edge = self.receiver.edge;
    }

    /// Translates a window to the shift that the other side expects.
    pub(super) fn translate(&self, from: Port, packet: &mut Packet) {
        if from == LAN {
            packet.tcp.window = self.handshake.window_for_receiver(packet.tcp.window);
        } else {
            let window = u64::from(packet.tcp.window) << self.handshake.receiver_shift();
            packet.tcp.window =
                window.div_ceil(1 << self.handshake.advertised_shift()).min(u64::from(u16::MAX)) as u16;
        }
    }
}
