//! What of a connection outlives its state: when it is put to rest, and when the gateway was killed.
//!
//! One that is at rest is known exactly: nothing is held, and both ends agree. After a restart only the shifts can be relied on: the kernel has
//! forwarded meanwhile, and nobody knows how far. Then packets pass with their windows translated until each side has sent one: the receiver's
//! acknowledgment is where the stream begins for us, and what the sender has sent beyond it is not ours to repair (the gateway never saw it).

use super::{Flow, Shared};
use crate::config::Config;
use crate::counters::Why;
use crate::flow::acks::Acks;
use crate::flow::cache::Cache;
use crate::flow::forward::Sender;
use crate::flow::handshake::Handshake;
use crate::flow::receiver::Receiver;
use crate::flow::repair::Recovery;
use crate::flow::trip::Trip;
use crate::flow::window::Shown;
use crate::gateway::{LAN, SATELLITE};
use crate::report::State;
use crate::table::persist::Persist;
use bentpipe_base::{Cx, Flags, Packet, Pkt, Port, Seq};

/// What was seen since a restart.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unsure {
    /// After the last byte of the sender.
    top: Option<Seq>,
    /// The receiver's acknowledgment, and its window in bytes.
    told: Option<(Seq, u64)>,
}

impl Flow {
    /// A connection whose handshake is over, with nothing on its way.
    fn established(shake: Handshake, config: &Config) -> Self {
        let mut shown = Shown::default();
        shown.ack = 1;
        Self {
            state: State::Established,
            why: None,
            shake,
            una: 1,
            cache: Cache::default(),
            trip: Trip::default(),
            receiver: Receiver::new(config.mode),
            recovery: Recovery::default(),
            sender: Sender::default(),
            acks: Acks::default(),
            shown,
            fins: (None, None),
            fins_acked: (false, false),
            active: false,
            held_peak: 0,
            held: 0,
            unsure: None,
        }
    }

    /// From what was kept of it: as it was where `is_exact`, else it passes with its windows translated until enough is known.
    pub(crate) fn resume(persist: &Persist, is_exact: bool, config: &Config) -> Self {
        let base = Seq(persist.una.0.wrapping_sub(1));
        let mut flow = Self::established(Handshake::resume(persist, base), config);
        let place = |seq: Seq| base.offset_near(seq, 1).unwrap_or(1);
        if is_exact {
            flow.sender.top = place(persist.next).max(1);
            flow.receiver.edge = place(persist.edge);
            flow.shown.edge = place(persist.shown_edge);
        } else {
            flow.unsure = Some(Unsure::default());
        }
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
        self.state == State::Established
            && self.why.is_none()
            && self.unsure.is_none()
            && self.fins == (None, None)
            && self.cache.is_empty()
            && self.acks.is_empty()
            && self.una == self.sender.top
            && self.shown.ack == self.una
    }

    /// What has to be known to pass it correctly later on.
    pub(crate) fn persist(&self) -> Persist {
        let mut persist = self.shake.persist();
        if let Some(lan) = self.shake.lan() {
            persist.una = lan.isn.at(self.una);
            persist.next = lan.isn.at(self.cache.forwarded(self.una));
            persist.edge = lan.isn.at(self.receiver.edge);
            persist.shown_edge = lan.isn.at(self.shown.edge);
        }
        persist.back_una = self.sender.acknowledged().unwrap_or_default();
        persist
    }

    /// A packet after a restart: it passes, and tells where the streams are.
    pub(super) fn find_out(&mut self, cx: &mut Cx<'_>, from: Port, mut packet: Pkt, shared: &mut Shared<'_>) {
        let Some(mut unsure) = self.unsure else { return };
        self.ends(&packet);
        let is_fin = packet.tcp.flags.has(Flags::FIN);
        if from == LAN {
            packet.tcp.window = self.shake.window_for_receiver(packet.tcp.window);
            let end = packet.tcp.seq.at(packet.seq_len());
            unsure.top = Some(unsure.top.filter(|top| !super::forward::later(end.0, top.0)).unwrap_or(end));
            shared.shaper.charge(cx.now, shared.shaper.cost(&packet));
            cx.send(SATELLITE, packet);
        } else {
            self.hear(&mut unsure, &mut packet);
            cx.send(LAN, packet);
        }
        self.unsure = Some(unsure);
        if is_fin {
            // too late to learn anything: what is left passes
            self.state = State::Closing;
        } else if let (Some(top), Some((ack, window)), State::Established) =
            (unsure.top, unsure.told, self.state)
        {
            self.begin_again(top, ack, window);
        }
    }

    fn hear(&self, unsure: &mut Unsure, packet: &mut Packet) {
        if !packet.tcp.flags.has(Flags::ACK) {
            return;
        }
        let window = u64::from(packet.tcp.window) << self.shake.receiver_shift();
        let field = window.div_ceil(1 << self.shake.shown_shift());
        packet.tcp.window = u16::try_from(field).unwrap_or(u16::MAX);
        unsure.told = Some((packet.tcp.ack, window));
    }

    /// Enough is known.
    fn begin_again(&mut self, top: Seq, ack: Seq, window: u64) {
        let base = Seq(ack.0.wrapping_sub(1));
        self.shake.rebase(base);
        self.sender.top = base.offset_near(top, 1).unwrap_or(1).max(1);
        self.receiver.edge = 1 + window;
        (self.shown.ack, self.shown.edge) = (1, 1 + window);
        self.unsure = None;
    }
}
