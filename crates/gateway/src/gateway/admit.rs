//! How a connection enters the table.

use super::Gateway;
use crate::counters::PassReason;
use crate::flow::Flow;
use crate::flow::handshake::Handshake;
use crate::policy::{Action, Side, SynProperties};
use crate::report::EndReason;
use crate::table::{Class, Entry, Key, is_opening_syn};
use bentpipe_base::{Cx, Flags, Packet};

/// Code point of a packet with a structure of TIA-1039.
const QOS_SIGNAL: u8 = 3;

/// True for a SYN that carries a request for a rate. Its sender paces at the rate that it is granted, and the
/// structures in later packets must stay where they are.
fn asks_rate(syn: &Packet) -> bool {
    syn.dscp.get() == QOS_SIGNAL && syn.signal.is_some()
}

impl Gateway {
    /// Returns the connection of a packet, adding it if it is new; none if it is not tracked.
    pub(super) fn connection(
        &mut self,
        cx: &mut Cx<'_>,
        side: usize,
        (key, is_low): (Key, bool),
        packet: &Packet,
    ) -> Option<u32> {
        if let Some(id) = self.table.find(&key) {
            let entry = self.table.get(id)?;
            if entry.side_of(is_low) != side || !entry.is_succeeded_by(side, packet) {
                return Some(id);
            }
            self.end(cx, id, EndReason::Reused);
        }
        if is_opening_syn(packet) {
            return self.admit(cx, side, (key, is_low), packet);
        }
        // an RST means that there is no connection
        if packet.tcp.flags.has(Flags::RST) {
            return None;
        }
        let mut entry = Entry::new(key, side, is_low, packet, cx.now);
        entry.pass_reason = Some(PassReason::MidStream);
        let id = self.enter(cx, entry)?;
        self.shared.counters.pass(PassReason::MidStream);
        Some(id)
    }

    fn admit(
        &mut self,
        cx: &mut Cx<'_>,
        side: usize,
        (key, is_low): (Key, bool),
        syn: &Packet,
    ) -> Option<u32> {
        let id = self.enter(cx, Entry::new(key, side, is_low, syn, cx.now))?;
        match self.may_accelerate(cx, side, key, syn) {
            Ok(()) => {
                self.shared.counters.begun += 1;
                let flow = Flow::new(Handshake::default(), &self.shared.config);
                let flow = self.flows.insert(Box::new(flow));
                self.table.update(id, |e| e.flow = flow);
            }
            Err(why) => {
                self.shared.counters.pass(why);
                self.table.update(id, |e| e.pass_reason = Some(why));
            }
        }
        Some(id)
    }

    fn may_accelerate(&self, cx: &Cx<'_>, side: usize, key: Key, syn: &Packet) -> Result<(), PassReason> {
        let config = &self.shared.config;
        if !config.accelerate {
            return Err(PassReason::Bypassed);
        }
        Handshake::check_options(syn)?;
        if asks_rate(syn) {
            return Err(PassReason::AsksRate);
        }
        if self.decide(cx, side, syn) == Action::Pass {
            return Err(PassReason::Policy);
        }
        let draw = f64::from(self.table.draw(key, syn.tcp.seq.0));
        if draw < config.sample * (f64::from(u32::MAX) + 1.0) {
            return Err(PassReason::Sampled);
        }
        if !self.table.has_room(Class::Accelerated, &config.limits) {
            return Err(PassReason::Overload);
        }
        if self.shared.memory.is_scarce() {
            return Err(PassReason::Memory);
        }
        Ok(())
    }

    /// Returns the policy's action for a SYN. If the addresses are unknown, no rule applies.
    fn decide(&self, cx: &Cx<'_>, side: usize, syn: &Packet) -> Action {
        let (Some(from), Some(to)) = (cx.address(syn.src), cx.address(syn.dst)) else {
            return self.policy.otherwise;
        };
        let side = if side == 0 { Side::Lan } else { Side::Satellite };
        let (from_port, port, dscp) = (syn.sport, syn.dport, syn.dscp.get());
        self.policy.decide(&SynProperties { from, to, from_port, port, dscp, side })
    }

    /// Adds a connection to the table, evicting another one if necessary.
    pub(super) fn enter(&mut self, cx: &mut Cx<'_>, entry: Entry) -> Option<u32> {
        self.make_room(cx, entry.class)?;
        self.shared.counters.flows += 1;
        Some(self.table.insert(entry))
    }

    /// Makes room for one more entry in `class`; none if that is impossible.
    pub(super) fn make_room(&mut self, cx: &mut Cx<'_>, class: Class) -> Option<()> {
        if self.table.has_room(class, &self.shared.config.limits) {
            return Some(());
        }
        let victim = self.table.victim(class, cx.now)?;
        match class {
            Class::Opening => self.shared.counters.opening_evicted += 1,
            Class::Accelerated | Class::Passing => self.shared.counters.passing_evicted += 1,
        }
        self.end(cx, victim, EndReason::Evicted);
        self.table.has_room(class, &self.shared.config.limits).then_some(())
    }

    /// The handshake is complete: moves the connection out of the opening class.
    pub(super) fn promote(&mut self, cx: &mut Cx<'_>, id: u32) {
        let Some(entry) = self.table.get(id).copied() else { return };
        if entry.needs_translation() {
            self.shared.counters.accelerated += u64::from(entry.pass_reason.is_none());
            self.table.update(id, |e| e.class = Class::Accelerated);
            self.note_change(id);
        } else {
            self.pass_on(cx, id);
        }
    }

    /// Moves a connection to the passing class, or forgets it if there is no room even by eviction.
    pub(super) fn pass_on(&mut self, cx: &mut Cx<'_>, id: u32) {
        if self.table.get(id).is_none_or(|e| e.class == Class::Passing) {
            return;
        }
        if self.make_room(cx, Class::Passing).is_some() {
            self.table.update(id, |e| e.class = Class::Passing);
        } else {
            self.end(cx, id, EndReason::Evicted);
        }
    }

    /// A packet from `side` shows that part of the handshake took another path.
    pub(super) fn stop_incomplete(&mut self, cx: &mut Cx<'_>, side: usize, id: u32) {
        let Some(entry) = self.table.get(id).copied() else { return };
        if self.flows.get(entry.flow).is_none() {
            return; // it already passes, for another reason
        }
        let why = if entry.is_only_from(side) { PassReason::OneDirection } else { PassReason::MidStream };
        self.shared.counters.pass(why);
        self.give_up(cx, id, why);
    }

    /// Updates the reason of a connection without a SYN: `OneDirection` or `MidStream`.
    pub(super) fn update_pass_reason(&mut self, id: u32) {
        let Some(entry) = self.table.get(id) else { return };
        let why = match entry.pass_reason {
            Some(PassReason::MidStream) if entry.is_one_sided() => PassReason::OneDirection,
            Some(PassReason::OneDirection) if !entry.is_one_sided() && entry.is_from_both() => {
                PassReason::MidStream
            }
            _ => return,
        };
        self.table.update(id, |e| e.pass_reason = Some(why));
    }
}
