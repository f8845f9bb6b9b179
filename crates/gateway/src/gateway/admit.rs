//! How a connection enters the table.

use super::{Gateway, PORTS, opens};
use crate::counters::Why;
use crate::flow::Flow;
use crate::policy::{Action, Opening, Side};
use crate::report::End;
use crate::table::{Class, Entry, Key};
use bentpipe_base::{Cx, Flags, Foreign, Packet};

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
            self.end(cx, id, End::Reused);
        }
        if opens(packet) {
            return self.admit(cx, side, (key, is_low), packet);
        }
        // an RST means that there is no connection
        if packet.tcp.flags.has(Flags::RST) {
            return None;
        }
        let mut entry = Entry::new(key, side, is_low, packet, cx.now);
        entry.why = Some(Why::MidStream);
        let id = self.enter(cx, entry)?;
        self.common.counters.pass(Why::MidStream);
        Some(id)
    }

    /// Adds a connection for its SYN.
    fn admit(
        &mut self,
        cx: &mut Cx<'_>,
        side: usize,
        (key, is_low): (Key, bool),
        syn: &Packet,
    ) -> Option<u32> {
        let id = self.enter(cx, Entry::new(key, side, is_low, syn, cx.now))?;
        let begun = self
            .judge(cx, side, key, syn)
            .and_then(|()| Flow::begin(cx, PORTS[side], syn, &mut self.common.shared()));
        match begun {
            Ok(flow) => {
                self.common.counters.begun += 1;
                let flow = self.flows.insert(Box::new(flow));
                self.table.update(id, |e| e.flow = flow);
            }
            Err(why) => {
                self.common.counters.pass(why);
                self.table.update(id, |e| e.why = Some(why));
            }
        }
        Some(id)
    }

    /// Checks whether a connection may be accelerated.
    fn judge(&self, cx: &Cx<'_>, side: usize, key: Key, syn: &Packet) -> Result<(), Why> {
        let config = &self.common.config;
        if !config.accelerate {
            return Err(Why::Bypassed);
        }
        if syn.foreign.has(Foreign::SIGNED) {
            return Err(Why::Signed);
        }
        // all subflows share one window (RFC 8684, section 3.3.1), so one subflow does not show the
        // receiver's free space
        if syn.foreign.has(Foreign::MULTIPATH) {
            return Err(Why::Multipath);
        }
        if self.decide(cx, side, syn) == Action::Pass {
            return Err(Why::Policy);
        }
        let draw = f64::from(self.table.draw(key, syn.tcp.seq.0));
        if draw < config.sample * (f64::from(u32::MAX) + 1.0) {
            return Err(Why::Sampled);
        }
        if !self.table.has_room(Class::Accelerated, &config.limits) {
            return Err(Why::Overload);
        }
        if self.common.memory.is_scarce() {
            return Err(Why::Memory);
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
        self.policy.decide(&Opening { from, to, from_port, port, dscp, side })
    }

    /// Adds a connection to the table, evicting another one if necessary.
    pub(super) fn enter(&mut self, cx: &mut Cx<'_>, entry: Entry) -> Option<u32> {
        self.make_room(cx, entry.class)?;
        self.common.counters.flows += 1;
        Some(self.table.insert(entry))
    }

    /// Makes room for one more entry in `class`; none if that is impossible.
    pub(super) fn make_room(&mut self, cx: &mut Cx<'_>, class: Class) -> Option<()> {
        if self.table.has_room(class, &self.common.config.limits) {
            return Some(());
        }
        let victim = self.table.victim(class, cx.now)?;
        match class {
            Class::Opening => self.common.counters.opening_evicted += 1,
            Class::Accelerated | Class::Passing => self.common.counters.passing_evicted += 1,
        }
        self.end(cx, victim, End::Evicted);
        self.table.has_room(class, &self.common.config.limits).then_some(())
    }

    /// The handshake is complete: moves the connection out of the opening class.
    pub(super) fn promote(&mut self, cx: &mut Cx<'_>, id: u32) {
        let Some(entry) = self.table.get(id).copied() else { return };
        if entry.is_ours() {
            self.common.counters.accelerated += u64::from(entry.why.is_none());
            self.table.update(id, |e| e.class = Class::Accelerated);
            self.journal.note(id);
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
            self.end(cx, id, End::Evicted);
        }
    }

    /// A packet from `side` shows that part of the handshake took another path.
    pub(super) fn disown(&mut self, cx: &mut Cx<'_>, side: usize, id: u32) {
        let Some(entry) = self.table.get(id).copied() else { return };
        if self.flows.get(entry.flow).is_none() {
            return; // it already passes, for another reason
        }
        let why = if entry.is_only_from(side) { Why::OneDirection } else { Why::MidStream };
        self.common.counters.pass(why);
        self.give_up(cx, id, why);
    }

    /// Updates the reason of a connection whose SYN was not seen: `OneDirection` while it is one-sided, else
    /// `MidStream`.
    pub(super) fn look_at_sides(&mut self, id: u32) {
        let Some(entry) = self.table.get(id) else { return };
        let why = match entry.why {
            Some(Why::MidStream) if entry.is_one_sided() => Why::OneDirection,
            Some(Why::OneDirection) if !entry.is_one_sided() && entry.is_from_both() => Why::MidStream,
            _ => return,
        };
        self.table.update(id, |e| e.why = Some(why));
    }
}
