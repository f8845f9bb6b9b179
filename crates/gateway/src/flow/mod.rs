//! One connection that is accelerated.
#![expect(
    dead_code,
    clippy::unused_self,
    clippy::unnecessary_wraps,
    reason = "a connection that only passes does little with what it is given"
)]

pub(crate) mod shaper;

use crate::config::Config;
use crate::counters::{Counters, Why};
use crate::memory::Memory;
use crate::report::{FlowReport, State};
use crate::table::persist::Persist;
use crate::{LAN, SATELLITE};
use bentpipe_base::{Cx, Flags, Instant, Packet, Pkt, Port, Size};
use shaper::{Shaper, Want};

/// What connections have in common.
pub(crate) struct Shared<'a> {
    /// How the gateway works.
    pub(crate) config: &'a Config,
    /// The pacer of the hop.
    pub(crate) shaper: &'a mut Shaper,
    /// Totals.
    pub(crate) counters: &'a mut Counters,
    /// Bytes held.
    pub(crate) memory: &'a mut Memory,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Flow {
    state: State,
    fins: [bool; 2],
    answered: bool,
    persist: Persist,
}

impl Flow {
    /// From a SYN that came in at `from`; [`Flow::packet`] then takes it.
    ///
    /// # Errors
    /// When this connection cannot be accelerated.
    pub(crate) fn begin(
        _: &mut Cx<'_>,
        _: Port,
        _syn: &Packet,
        shared: &mut Shared<'_>,
    ) -> Result<Self, Why> {
        assert!(shared.config.accelerate, "the node asks only for what may be accelerated");
        Ok(Self { state: State::Opening, fins: [false; 2], answered: false, persist: Persist::default() })
    }

    /// From what was kept of it: as it was where `is_exact`, else it passes with its windows translated until enough is known.
    pub(crate) const fn resume(persist: &Persist, _is_exact: bool, _: &Config) -> Self {
        Self { state: State::Established, fins: [false; 2], answered: true, persist: *persist }
    }

    /// From now on it only passes, with its windows translated.
    pub(crate) const fn only_pass(&mut self, _: Why) {}

    /// True when nothing is held or on the way, so that [`Flow::persist`] says all.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.state == State::Established && self.fins == [false; 2]
    }

    /// What has to be known to pass it correctly later on.
    pub(crate) const fn persist(&self) -> Persist {
        self.persist
    }

    /// Why it only passes, when it does.
    pub(crate) const fn why(&self) -> Option<Why> {
        None
    }

    /// A packet of this connection: it is sent, held or given back.
    pub(crate) fn packet(&mut self, cx: &mut Cx<'_>, from: Port, packet: Pkt, _: &mut Shared<'_>) {
        let flags = packet.tcp.flags;
        self.answered |= flags.has(Flags::SYN.with(Flags::ACK));
        if self.answered && self.state == State::Opening && !flags.has(Flags::SYN) {
            self.state = State::Established;
        }
        if flags.has(Flags::FIN) {
            self.fins[usize::from(from != LAN)] = true;
        }
        if flags.has(Flags::RST) || (self.state == State::Closing && packet.seq_len() == 0) {
            self.state = State::Closed;
        } else if self.fins == [true; 2] {
            self.state = self.state.max(State::Closing);
        }
        cx.send(if from == LAN { SATELLITE } else { LAN }, packet);
    }

    /// Its deadline has come, or an early call.
    pub(crate) const fn timer(&mut self, _: &mut Cx<'_>, _: &mut Shared<'_>) {}

    /// When [`Flow::timer`] must be called.
    pub(crate) const fn deadline(&self) -> Option<Instant> {
        None
    }

    /// What it would send if the hop were free now.
    pub(crate) const fn wants(&mut self, _now: Instant, _: &Shared<'_>) -> Option<Want> {
        None
    }

    /// Sends one packet, now that the hop is free for it.
    pub(crate) const fn serve(&mut self, _: &mut Cx<'_>, _: &mut Shared<'_>) -> Size {
        Size::ZERO
    }

    /// How far it is.
    pub(crate) const fn state(&self) -> State {
        self.state
    }

    /// Passes on what is held, and from now on everything.
    pub(crate) const fn release(&mut self, _: &mut Cx<'_>, _: &mut Shared<'_>) {}

    /// Gives back what is held.
    pub(crate) const fn drop_all(&mut self, _: &mut Cx<'_>, _: &mut Shared<'_>) {}

    /// What it has to tell.
    pub(crate) fn report(&self) -> FlowReport {
        FlowReport::default()
    }
}
