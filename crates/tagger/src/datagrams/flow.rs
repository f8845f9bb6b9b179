//! One flow of datagrams that the host sends.

use super::config::DatagramConfig;
use crate::tagger::NETWORK;
use bentpipe_advice::negotiation::{AskConfig, DatagramExchange, Permit, RateState, WhenRefused};
use bentpipe_advice::tia1039::{self, QOS_FLOW, Structure};
use bentpipe_base::{Cx, Duration, Instant, Packet, Pkt, Rate, Size};
use std::collections::VecDeque;

/// What storing a datagram takes beyond its bytes, at most (`bentpipe_gateway::buffer_size`).
const OVERHEAD: u64 = 1536;

/// Memory that a datagram of this size takes.
pub(super) fn need(size: Size) -> Size {
    Size(size.0 + OVERHEAD)
}

/// Burst time for exponent 0.
const LONGEST_BURST: Duration = Duration::from_millis(500);

/// Paces at a granted rate: the generic cell rate algorithm (ITU-T I.371). Half of the agreed burst time is
/// used, since a path may move packets closer together. Within it datagrams leave at twice the rate: what has
/// waited for the answer would overflow a short queue if it came at once.
#[derive(Clone, Copy, Debug)]
struct Pacer {
    /// When the flow would have sent all that it has sent, at the rate.
    sent_until: Instant,
    /// The same at twice the rate, from the last datagram on.
    next: Instant,
    burst: Duration,
}

impl Pacer {
    fn at(&self) -> Instant {
        self.next.max(Instant(self.sent_until.0.saturating_sub(self.burst.0)))
    }

    fn send(&mut self, now: Instant, rate: Rate, size: Size) {
        let time = rate.time_for(size);
        self.sent_until = self.sent_until.max(now) + time;
        self.next = now + time / 2;
    }
}

/// What happens to the next datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// There is none, or it must wait.
    Wait,
    /// It has waited too long for an answer.
    GiveUp,
    /// It has waited too long at a granted rate, and was dropped.
    Late,
    /// It was sent, after it was held for so long.
    Sent { after: Duration },
}

/// One flow.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) exchange: DatagramExchange,
    /// A copy of its first datagram without the data: what is signalled is a copy of this.
    template: Pkt,
    /// Datagrams that wait, and since when.
    held: VecDeque<(Instant, Pkt)>,
    pub(super) held_bytes: u64,
    pacer: Pacer,
    /// The last datagram of the host.
    pub(super) last: Instant,
    /// It gives its rate back.
    pub(super) is_over: bool,
    /// When it is looked at next.
    pub(super) due: Instant,
}

impl Flow {
    /// A flow that begins with `first`.
    pub(super) fn new(cx: &mut Cx<'_>, first: &Packet, ask: &AskConfig) -> Self {
        let mut template = cx.duplicate(first);
        (template.body.len, template.segment, template.signal) = (0, 0, None);
        template.seal();
        let mut exchange = DatagramExchange::new(ask, first.ip, WhenRefused::Send);
        exchange.keep_changes(0);
        let burst = Duration((LONGEST_BURST.0 >> ask.terms.burst_exponent.min(15)) / 2);
        Self {
            exchange,
            template,
            held: VecDeque::new(),
            held_bytes: 0,
            pacer: Pacer { sent_until: cx.now, next: cx.now, burst },
            last: cx.now,
            is_over: false,
            due: Instant::NEVER,
        }
    }

    pub(super) fn state(&self) -> RateState {
        self.exchange.negotiation().state()
    }

    /// True if there is room for another datagram: beyond a granted rate a flow waits only for so long.
    /// `held` is what waits in all flows.
    pub(super) fn has_room(&mut self, now: Instant, size: Size, held: Size, config: &DatagramConfig) -> bool {
        let waits = Size(self.held_bytes + size.0);
        match self.exchange.permit(now) {
            Permit::At(rate) => {
                waits <= config.queue
                    && Size(held.0 + need(size).0) <= config.memory
                    && rate.time_for(waits) <= self.longest(config)
            }
            // beyond the room of the queue it gives up instead
            _ => true,
        }
    }

    /// The longest time for which a datagram is held at a granted rate.
    fn longest(&self, config: &DatagramConfig) -> Duration {
        config.wait + self.pacer.burst
    }

    /// Memory of what waits.
    pub(super) fn memory(&self) -> Size {
        Size(self.held_bytes + OVERHEAD * self.held.len() as u64)
    }

    /// True once the host has sent nothing for long, and nothing waits.
    pub(super) fn is_silent(&self, now: Instant, config: &DatagramConfig) -> bool {
        self.held.is_empty() && now.since(self.last) >= config.idle
    }

    pub(super) fn hold(&mut self, now: Instant, packet: Pkt) {
        self.held_bytes += packet.wire_len().0;
        self.held.push_back((now, packet));
    }

    /// A datagram of its own with this structure.
    pub(super) fn signal(&self, cx: &mut Cx<'_>, structure: Structure) -> Pkt {
        let mut packet = cx.duplicate(&self.template);
        tia1039::write(&mut packet, &[structure]);
        packet
    }

    /// Sends the next datagram, if it may go; drops one that has waited too long for that, since the rate
    /// was lowered meanwhile. `held` is what waits in all flows.
    pub(super) fn next(&mut self, cx: &mut Cx<'_>, held: Size, config: &DatagramConfig) -> Next {
        let now = cx.now;
        let Some((since, _)) = self.held.front() else { return Next::Wait };
        let waited = now.since(*since);
        let is_full = self.held_bytes > config.queue.0 || held > config.memory;
        let must_wait = self.pacer.at() > now;
        let longest = self.longest(config);
        let permit = self.exchange.permit(now);
        let is_late = match permit {
            Permit::Wait if waited >= config.wait || is_full => return Next::GiveUp,
            Permit::Wait => return Next::Wait,
            Permit::At(_) if must_wait && waited < longest => return Next::Wait,
            Permit::At(_) => must_wait || waited > longest,
            Permit::Plain | Permit::Never => false,
        };
        let Some((_, mut packet)) = self.held.pop_front() else { return Next::Wait };
        let size = packet.wire_len();
        self.held_bytes = self.held_bytes.saturating_sub(size.0);
        if is_late {
            cx.recycle(packet);
            return Next::Late;
        }
        if let Permit::At(rate) = permit {
            packet.dscp = QOS_FLOW;
            self.pacer.send(now, rate, size);
        }
        self.exchange.note_sent(now);
        cx.send(NETWORK, packet);
        Next::Sent { after: waited }
    }

    /// When it must be looked at next.
    pub(super) fn next_at(&mut self, now: Instant, config: &DatagramConfig) -> Instant {
        let data = match (self.held.front(), self.exchange.permit(now)) {
            (None, _) => Instant::NEVER,
            (Some((since, _)), Permit::Wait) => *since + config.wait,
            (Some((since, _)), _) => self.pacer.at().min(*since + self.longest(config)),
        };
        let waits = self.is_over || !self.held.is_empty();
        let idle = if waits { Instant::NEVER } else { self.last + config.idle };
        data.min(idle).min(self.exchange.control_at(self.is_over))
    }

    /// Ends it: what it holds, oldest first, and its template, which must be recycled.
    pub(super) fn end(self) -> (impl Iterator<Item = Pkt>, Pkt) {
        (self.held.into_iter().map(|(_, packet)| packet), self.template)
    }
}
