//! What senders signal: requests, confirmations, and the end of a guaranteed rate.
//!
//! CD 1, 5 and 6 are requests; the other kinds pass with a change of state at most. A request marks down what
//! its source may not have (`policy.rs`), is admitted or refused (`admission.rs`), and gets the share that
//! its flow has as a member. The others make room from then on. Deviations: a flow known to be limited
//! elsewhere is counted with that limit until the response shows that it gets more; when the table of flows
//! is full, a request still gets its share of the available rate, but no reservation and no state; so does
//! one behind the FIN of its connection. A request may be forged: a guaranteed rate that does not fit
//! without preemption is only offered, and taken from others when the response passes; while requests are
//! not trusted (`half_open.rs`), so is one that fits.

use super::FlowRouter;
use crate::admission::{Demand, Verdict};
use crate::charges::Payer;
use crate::flow::{Missed, Phase, bps};
use crate::flows::FlowKey;
use crate::policy::{Allowance, uses_available};
use crate::telling::Telling;
use bentpipe_advice::tia1039::{Kind, QOS_SIGNAL, Structure, replace, structures};
use bentpipe_base::{Addr, Cx, Instant, Packet, Rate};

impl FlowRouter {
    /// Handles the structures of a packet from the senders.
    pub(super) fn signals(&mut self, cx: &Cx<'_>, key: FlowKey, packet: &mut Packet) {
        if packet.dscp != QOS_SIGNAL {
            return;
        }
        for (index, structure) in structures(packet).as_slice().iter().enumerate() {
            let kind = structure.kind().filter(|_| structure.is_supported());
            match kind {
                Some(Kind::Request | Kind::Renegotiate | Kind::ResendStart) => {
                    let offer = self.request(cx, key, packet.src, structure);
                    if offer != *structure {
                        replace(packet, index, &offer);
                    }
                }
                Some(Kind::Confirmation) => self.confirm(key, structure),
                Some(Kind::Close) => self.close(cx.now, key),
                _ => {}
            }
        }
    }

    /// Returns a request with what the flow is offered.
    fn request(&mut self, cx: &Cx<'_>, key: FlowKey, source: Addr, asked: &Structure) -> Structure {
        self.counts.requests += 1;
        let allowance = self.config.policy.allowance(cx.address(source));
        let mut offer = *asked;
        allowance.apply(&mut offer);
        let is_kept = self.enter(cx.now, key, allowance.class, &offer);
        let former = if is_kept { self.former(cx, key, asked, &allowance) } else { None };
        let class = self.flows.get(&key).map_or(allowance.class, |flow| flow.class);
        self.reserve(key, class, is_kept, former, &mut offer);
        // what it continues does not use its share any more
        let freed = former.and_then(|former| self.suspend(&former));
        let limit = bps(offer.available());
        let counted = self.note_asked(cx.now, key, limit, offer);
        let share = self.share_asked(&key, class, limit, counted);
        if let Some((class, limit)) = freed {
            self.classes.add(class, limit);
        }
        if share < limit {
            offer.set_available(Rate::from_bps(share));
        }
        if asked.guaranteed().is_some() && offer.guaranteed().is_none() {
            self.counts.refused += 1;
        }
        if offer != *asked {
            offer.set_changed(true);
        }
        self.note_payer(cx, &key, &allowance, &offer);
        self.note_offer(cx.now, &key, &offer, share);
        self.review_trust(cx.now);
        offer
    }

    /// Notes who pays for a flow.
    fn note_payer(&mut self, cx: &Cx<'_>, key: &FlowKey, sender: &Allowance, offer: &Structure) {
        let is_receiver = offer.charges_receiver();
        let [_, receiver] = key.addresses();
        let rule =
            if is_receiver { self.config.policy.allowance(cx.address(receiver)).rule } else { sender.rule };
        if let Some(flow) = self.flows.get_mut(key) {
            flow.payer = Payer { rule, is_receiver };
        }
    }

    /// Makes a flow one that has asked; false if it has no state.
    fn enter(&mut self, now: Instant, key: FlowKey, class: usize, offer: &Structure) -> bool {
        let asks = offer.available().is_some() || offer.guaranteed().is_some();
        match self.flows.get(&key).map(|flow| flow.phase) {
            Some(Phase::HalfOpen | Phase::Capable) if asks => return true,
            Some(Phase::HalfOpen | Phase::Capable) => {
                self.lapse(now, key);
                return false;
            }
            Some(Phase::Plain) if !asks => return false,
            Some(Phase::Plain) => {
                if let Some(flow) = self.flows.get_mut(&key) {
                    flow.missed = Missed::default(); // it may be asked again
                }
                self.set_phase(now, key, Phase::HalfOpen);
                return self.make_room(now, &key);
            }
            // after its FIN it would hold a share that nothing gives back
            Some(Phase::Closed) if self.flows.get(&key).is_some_and(|flow| flow.numbers.has_ended) => {
                return false;
            }
            Some(Phase::Closed) => self.remove(&key),
            None => {}
        }
        asks && self.add(now, key, Phase::HalfOpen, class) && self.make_room(now, &key)
    }

    /// If too many wait for a response, the one that has waited longest gives way; false if that is this one.
    fn make_room(&mut self, now: Instant, key: &FlowKey) -> bool {
        let Some(oldest) = self.half_open.overflow() else { return true };
        self.lapse(now, oldest);
        oldest != *key
    }

    /// Admits the guaranteed or maximum rate of a request, or lowers it to what the flow has. `former`: the
    /// flow that it continues.
    fn reserve(
        &mut self,
        key: FlowKey,
        class: usize,
        is_kept: bool,
        former: Option<FlowKey>,
        offer: &mut Structure,
    ) {
        let (wanted, before) = (bps(offer.guaranteed()), self.reservations.rate(&key));
        let demand = Demand { class, rate: wanted, priority: offer.preemption_priority() };
        let reservable = self.reservable(class);
        let verdict = if is_kept {
            self.reservations.judge(&key, demand, reservable, former.as_ref())
        } else {
            Verdict::Refused
        };
        let mut claim = None;
        match verdict {
            _ if wanted == 0 => self.reservations.lower(key, 0),
            Verdict::Refused => offer.set_guaranteed(Rate::from_bps(before.min(wanted))),
            Verdict::Fits if former.is_none() && !self.half_open.distrusts() => {
                // others lose nothing
                self.reservations.ask(key, demand, reservable);
            }
            Verdict::Fits | Verdict::Preempts => claim = Some(demand),
        }
        let reserved = self.reservations.rate(&key);
        if let Some(flow) = self.flows.get_mut(&key) {
            (flow.reserved, flow.claim, flow.moved_from) = (reserved, claim, former);
        }
        self.update_pool();
    }

    /// The response to an offer has passed: what it claims is taken from others now. If that is not possible
    /// any more, the flow keeps what it has and is told so.
    pub(super) fn settle_claim(&mut self, key: FlowKey, offered: u64, guaranteed: u64) {
        let Some(flow) = self.flows.get_mut(&key) else { return };
        let Some(claim) = flow.claim.take_if(|claim| claim.rate == offered) else { return };
        let demand = Demand { rate: claim.rate.min(guaranteed), ..claim };
        if demand.rate == 0 {
            return;
        }
        let reservable = self.reservable(claim.class);
        for other in self.reservations.ask(key, demand, reservable).unwrap_or_default() {
            self.preempt(&other);
        }
        let reserved = self.reservations.rate(&key);
        if let Some(flow) = self.flows.get_mut(&key) {
            flow.reserved = reserved;
        }
        self.update_pool();
    }

    /// A flow has lost its reservation; it is told in its next packet.
    pub(super) fn preempt(&mut self, key: &FlowKey) {
        self.counts.preempted += 1;
        if let Some(flow) = self.flows.get_mut(key) {
            flow.reserved = 0;
        }
        self.flows.schedule(*key);
    }

    /// Notes what a flow asked for, and returns the limit with which it is counted from now on.
    fn note_asked(&mut self, now: Instant, key: FlowKey, limit: u64, offer: Structure) -> Option<u64> {
        let flow = self.flows.get_mut(&key).filter(|flow| flow.is_negotiating())?;
        flow.asked = limit;
        flow.agreed = offer;
        flow.last = now;
        self.flows.schedule(key);
        self.recount(&key);
        self.flows.get(&key)?.counted
    }

    /// Notes what a flow was offered. An offer below its grant is a reduction in the flow's own packet.
    fn note_offer(&mut self, now: Instant, key: &FlowKey, offer: &Structure, share: u64) {
        let Some(flow) = self.flows.get_mut(key).filter(|flow| flow.is_negotiating()) else { return };
        flow.agreed = *offer;
        let rates = (bps(offer.available()), flow.offered_guaranteed());
        flow.offers.push(now, rates, false);
        if flow.phase == Phase::Capable && flow.must_be_told(share) {
            let grace = flow.grace();
            let telling = flow.telling.get_or_insert_with(|| Telling::begin(now, rates, grace));
            let is_new = telling.tell(now, rates, grace);
            // not if the flow itself asked for less
            let is_ours = share < flow.asked || flow.reserved < flow.promised;
            self.counts.reductions += u64::from(is_new && is_ours);
        }
    }

    /// CD 3: the sender uses no more than this.
    fn confirm(&mut self, key: FlowKey, confirmed: &Structure) {
        let Some(flow) = self.flows.get_mut(&key).filter(|flow| flow.is_negotiating()) else { return };
        let (available, guaranteed) = (bps(confirmed.available()), bps(confirmed.guaranteed()));
        flow.reserved = flow.reserved.min(guaranteed);
        flow.promised = flow.promised.min(guaranteed);
        if uses_available(&flow.agreed) && available > 0 && available < flow.grant {
            flow.grant = available;
            flow.elsewhere = Some(available);
        }
        self.reservations.lower(key, guaranteed);
        self.flows.schedule(key);
        self.update_pool();
        self.recount(&key);
    }
}
