//! Chains of links: a link tells the next one of packets before they arrive there.
//!
//! If all packets that enter a link come out of one other link, then that link knows when each arrives as
//! soon as it has sent it. It tells the next link of several at a time, so that an arrival needs no event of
//! its own. The next link does with each, whenever it is called, what it would have done at the time of its
//! arrival: its service is lazy in any case. A packet is told before it arrives, and what a link was told of
//! does not count before its time, so queues, losses and counters are those of links that are not chained.
//! Only a trace would have its packets out of order.

use crate::channel::Channel;
use crate::in_flight::InFlight;
use crate::link::Link;
use crate::mtu::Fragments;
use bentpipe_base::{Cx, Duration, Instant, Packet, Pkt, push_back};

/// Bits of the shortest packet: an IPv4 header.
const SHORTEST: u64 = 160;
/// The least time before an arrival at which a packet must be told: time is counted in nanoseconds.
const BEFORE: u64 = 1;

impl Link {
    /// True if the link can be part of a chain: it does not change, takes packets of all lengths, and each
    /// takes a nanosecond at least.
    pub fn can_be_chained(&self) -> bool {
        let Channel { rate, one_way, mtu, varies, .. } = &self.channel;
        !*varies && mtu.is_none() && !one_way.is_zero() && rate.bps() <= SHORTEST * 1_000_000_000
    }

    /// True if the link answers packets that are too long.
    pub const fn sends_messages(&self) -> bool {
        self.channel.mtu.is_some()
    }

    /// From now on the link tells the next of packets ([`Link::tell_next`]) and delivers none.
    pub const fn tell_ahead(&mut self) {
        (self.channel.is_chained, self.channel.tells) = (true, true);
    }

    /// From now on the link is told of packets ([`Link::expect`]) and receives no others.
    pub const fn expect_ahead(&mut self) {
        (self.channel.is_chained, self.channel.is_told) = (true, true);
    }

    /// True if the link is told of its packets.
    pub const fn is_told(&self) -> bool {
        self.channel.is_told
    }

    /// True if the link tells the next of packets.
    #[inline]
    pub const fn tells(&self) -> bool {
        self.channel.tells
    }

    /// A packet will arrive at `at`, after all others that were told.
    #[inline]
    pub fn expect(&mut self, cx: &mut Cx<'_>, at: Instant, packet: Pkt) {
        push_back(&mut self.expected, (at, packet));
        if self.expected.len() == 1 {
            let deadline = self.deadline_in_chain();
            self.arm(cx, deadline);
        }
    }

    /// Begins to tell the next link: does everything that is due by now.
    pub fn begin_telling(&mut self, cx: &mut Cx<'_>) {
        self.disarm(cx);
        self.take_expected(cx);
        self.catch_up(cx);
    }

    /// The next packet to be told, and when it arrives.
    #[inline]
    pub fn tell_next(&mut self) -> Option<(Instant, Pkt)> {
        self.in_flight.pop()
    }

    /// Ends telling: requests the next call.
    pub fn end_telling(&mut self, cx: &mut Cx<'_>) {
        let deadline = self.deadline_in_chain();
        self.arm(cx, deadline);
    }

    /// Reads what [`Link::expect`] uses, as [`Link::touch`] does.
    #[inline]
    pub fn touch_expected(&self) -> u64 {
        let last = self.expected.back().map_or(Instant::ZERO, |(at, _)| *at);
        self.busy_until.0 ^ self.channel.carry ^ last.0
    }

    /// The packets that are told next, as far as they were sent.
    pub fn untold(&self) -> impl Iterator<Item = &Packet> {
        self.in_flight.all()
    }

    /// Lets the packets arrive whose time has come, each at its time.
    #[inline]
    pub(crate) fn take_expected(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now;
        while self.expected.front().is_some_and(|(at, _)| *at <= now)
            && let Some((at, packet)) = self.expected.pop_front()
        {
            cx.now = at;
            self.arrive(cx, packet);
        }
        cx.now = now;
    }

    /// Implements `wake` for a link that is told of its packets.
    #[inline(never)]
    pub(crate) fn wake_in_chain(&mut self, cx: &mut Cx<'_>) -> (Option<Pkt>, Instant) {
        self.disarm(cx);
        if self.passes_only(cx.now)
            && let Some((at, packet)) = self.expected.pop_front()
        {
            self.count_service(Fragments::of(None, packet.wire_len()), at, self.busy_until);
            return (Some(packet), self.deadline_in_chain());
        }
        self.take_expected(cx);
        self.catch_up(cx);
        (self.deliver(cx), self.deadline_in_chain())
    }

    /// The usual case: the first packet told found an idle link without errors and leaves it now. Then it has
    /// been served. The next one leaves later, since it takes at least a nanosecond ([`SHORTEST`]).
    #[inline]
    fn passes_only(&mut self, now: Instant) -> bool {
        let Some((at, packet)) = self.expected.front() else { return false };
        let is_idle = self.busy_until <= *at && self.in_flight.first_at == Instant::NEVER;
        if !is_idle || !self.queue.is_rested() || !self.channel.is_without_errors() {
            return false;
        }
        let end = self.channel.serialise(*at, Fragments::of(None, packet.wire_len()), true);
        if end + self.channel.one_way != now {
            return false;
        }
        self.busy_until = end;
        true
    }

    /// When a link of a chain must be called next: before the first packet not told arrives at the next link,
    /// or when the first one leaves the chain.
    pub(crate) fn deadline_in_chain(&mut self) -> Instant {
        let tells = self.channel.tells;
        // a service that begins now puts the packet into the next link after this time
        let after = if tells { Duration(self.channel.one_way.0 - BEFORE) } else { Duration::ZERO };
        if let Some(at) = self.in_flight.first_at() {
            return if tells { Instant(at.0 - BEFORE) } else { at };
        }
        if !self.queue.is_empty() {
            return self.busy_until + after;
        }
        match self.expected.front() {
            None => Instant::NEVER,
            Some((at, _)) if tells => (*at).max(self.busy_until) + after,
            Some((at, packet)) => {
                let sent = Fragments::of(None, packet.wire_len());
                let start = (*at).max(self.busy_until);
                self.channel.foresee(start, sent, self.busy_until <= *at) + self.channel.one_way
            }
        }
    }
}

impl InFlight {
    /// Takes the first to arrive.
    #[inline]
    fn pop(&mut self) -> Option<(Instant, Pkt)> {
        let at = self.first_at;
        Some((at, self.pop_until(at)?))
    }
}
