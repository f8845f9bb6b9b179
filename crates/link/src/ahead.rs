//! Chains of links: a link tells the next one of packets before they arrive there.
//!
//! If all packets that enter a link come out of one other link, then that link knows when each arrives as
//! soon as it has sent it. It tells the next link of several at a time, so that an arrival needs no event of
//! its own. The next link does with each, whenever it is called, what it would have done at the time of its
//! arrival: its service is lazy in any case. A packet is told before it arrives, and what a link was told of
//! does not count before its time, so queues, losses and counters are those of links that are not chained.
//! Only a trace would have its packets out of order.

use crate::channel::{Channel, Special};
use crate::in_flight::InFlight;
use crate::link::Link;
use crate::mtu::Fragments;
use bentpipe_base::{Cx, Duration, Instant, Packet, Pkt, Size, Slot, push_back};

/// Bits of the shortest packet: an IPv4 header.
const SHORTEST: u64 = 160;
/// The least time before an arrival at which a packet must be told: time is counted in nanoseconds.
const BEFORE: u64 = 1;

/// A packet that a link was told of.
#[derive(Debug)]
pub(crate) struct Expected {
    /// When it arrives.
    pub(crate) at: Instant,
    /// Its length, stored here because it is read before the packet is in a near cache.
    len: u32,
    pub(crate) packet: Pkt,
}

impl Link {
    /// True if the link can tell the next one of packets: it does not change, takes packets of all lengths,
    /// and each takes a nanosecond at least.
    pub fn can_tell(&self) -> bool {
        let Channel { rate, one_way, special, .. } = &self.channel;
        let is_usual = *special == Special::Nothing || special.is_chained();
        is_usual && !one_way.is_zero() && rate.bps() <= SHORTEST * 1_000_000_000
    }

    /// True if the link can be told of packets: nor does it lose them. So the packet that is told first
    /// leaves when it was foreseen, and the event for that is known since it arrived, or since the packet
    /// before left.
    pub fn can_be_told(&self) -> bool {
        self.can_tell() && self.channel.is_without_errors()
    }

    /// True if the link answers packets that are too long.
    pub const fn sends_messages(&self) -> bool {
        self.channel.mtu.is_some()
    }

    /// From now on the link tells the next of packets ([`Link::tell_next`]) and delivers none.
    pub const fn tell_ahead(&mut self) {
        self.channel.special = if self.is_told() { Special::Middle } else { Special::First };
    }

    /// From now on the link is told of packets ([`Link::expect`]) and receives no others.
    pub const fn expect_ahead(&mut self) {
        self.channel.special = if self.tells() { Special::Middle } else { Special::Last };
    }

    /// True if the link is told of its packets.
    pub const fn is_told(&self) -> bool {
        matches!(self.channel.special, Special::Middle | Special::Last)
    }

    /// True if the link tells the next of packets.
    #[inline]
    pub const fn tells(&self) -> bool {
        matches!(self.channel.special, Special::First | Special::Middle)
    }

    /// A packet will arrive at `at`, after all others that were told.
    #[inline]
    pub fn expect(&mut self, cx: &mut Cx<'_>, at: Instant, packet: Pkt) {
        push_back(&mut self.expected, Expected { at, len: packet.wire_len().0 as u32, packet });
        if self.expected.len() == 1 {
            self.arm_in_chain(cx);
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
        self.arm_in_chain(cx);
    }

    /// Reads what [`Link::expect`] uses, as [`Link::touch`] does.
    #[inline]
    pub fn touch_expected(&self) -> u64 {
        let last = self.expected.back().map_or(Instant::ZERO, |last| last.at);
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
        while self.expected.front().is_some_and(|first| first.at <= now)
            && let Some(Expected { at, packet, .. }) = self.expected.pop_front()
        {
            cx.now = at;
            self.arrive(cx, packet);
        }
        cx.now = now;
    }

    /// Implements `wake` for a link that is told of its packets.
    #[inline]
    pub(crate) fn wake_in_chain(&mut self, cx: &mut Cx<'_>) -> Option<Pkt> {
        self.disarm(cx);
        if self.passes_only(cx.now)
            && let Some(Expected { at, len, packet }) = self.expected.pop_front()
        {
            self.count_service(whole(len), at, self.busy_until);
            if self.expected.front().is_some_and(|next| next.at < self.busy_until) {
                self.take_expected(cx);
            }
            self.arm_in_chain(cx);
            return Some(packet);
        }
        self.take_expected(cx);
        self.catch_up(cx);
        let packet = self.deliver(cx);
        self.arm_in_chain(cx);
        packet
    }

    /// The usual case: the first packet told found an idle link and leaves it now. Then it has
    /// been served. The next one leaves later, since it takes at least a nanosecond ([`SHORTEST`]).
    #[inline]
    fn passes_only(&mut self, now: Instant) -> bool {
        let Some(&Expected { at, len, .. }) = self.expected.front() else { return false };
        let is_idle = self.busy_until <= at && self.in_flight.first_at == Instant::NEVER;
        if !is_idle || !self.queue.is_rested() {
            return false;
        }
        let end = self.channel.serialise(at, whole(len), true);
        if end + self.channel.one_way != now {
            return false;
        }
        self.busy_until = end;
        true
    }

    /// Requests the next call: before the first packet not told arrives at the next link, or when the first
    /// one leaves the chain.
    pub(crate) fn arm_in_chain(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now;
        let (deadline, since) = if self.tells() {
            (self.next_to_tell(), now)
        } else if let Some(at) = self.in_flight.first_at() {
            (at, now)
        } else if !self.queue.is_empty() {
            (self.busy_until, now)
        } else if let Some(&Expected { at, len, .. }) = self.expected.front() {
            // it finds the link idle: those before have left, and it is still here only if they were sent
            // when it arrived
            (self.channel.foresee(at, whole(len)) + self.channel.one_way, at.max(now))
        } else {
            return;
        };
        if deadline < self.armed {
            self.armed = deadline;
            cx.wake_since(Slot(0), deadline, since);
        }
    }

    /// The last time at which the first packet not told can be told.
    fn next_to_tell(&self) -> Instant {
        // a packet whose service begins arrives at the next link after this time
        let after = Duration(self.channel.one_way.0 - BEFORE);
        match self.in_flight.first_at() {
            Some(at) => Instant(at.0 - BEFORE),
            None if !self.queue.is_empty() => self.busy_until + after,
            None => {
                self.expected.front().map_or(Instant::NEVER, |first| first.at.max(self.busy_until) + after)
            }
        }
    }
}

/// A packet of `len` bytes, in one piece.
#[inline]
fn whole(len: u32) -> Fragments {
    Fragments::of(None, Size(u64::from(len)))
}

impl InFlight {
    /// Takes the first to arrive.
    #[inline]
    fn pop(&mut self) -> Option<(Instant, Pkt)> {
        let at = self.first_at;
        Some((at, self.pop_until(at)?))
    }
}
