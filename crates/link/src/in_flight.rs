//! Packets that a link has sent and that have not arrived.

use crate::moved;
use bentpipe_base::shift::Walk;
use bentpipe_base::{Instant, Packet, Pkt, push_back};
use std::collections::VecDeque;

/// Packets in flight, first to arrive first. The first is stored inline: most links carry one at a time.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct InFlight {
    first: Option<Pkt>,
    pub(crate) first_at: Instant,
    rest: VecDeque<(Instant, Pkt)>,
}

impl Default for InFlight {
    fn default() -> Self {
        Self { first: None, first_at: Instant::NEVER, rest: VecDeque::new() }
    }
}

impl InFlight {
    /// The first to arrive.
    #[inline]
    pub(crate) fn first(&self) -> Option<&Packet> {
        self.first.as_deref()
    }

    /// The packets, first to arrive first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Packet> {
        self.first.as_deref().into_iter().chain(self.rest.iter().map(|(_, packet)| &**packet))
    }

    /// Number of packets.
    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    /// Visits the packets.
    pub(crate) fn shift(&mut self, walk: &mut Walk<'_>) {
        let Self { first, first_at, rest } = self;
        walk.time(first_at);
        walk.same(&rest.len());
        if let Some(first) = first {
            walk.inner(&mut **first);
        }
        moved::packets(walk, rest.iter_mut().map(|(at, packet)| (at, packet)));
    }

    /// Adds a packet behind the others. It arrives after them even if `at` is earlier.
    #[inline]
    pub(crate) fn push(&mut self, at: Instant, packet: Pkt) {
        if self.first.is_none() {
            self.first = Some(packet);
            self.first_at = at;
        } else {
            push_back(&mut self.rest, (at, packet));
        }
    }

    /// Adds a packet that may arrive before others.
    pub(crate) fn insert(&mut self, at: Instant, packet: Pkt) {
        if at < self.first_at {
            if let Some(first) = self.first.replace(packet) {
                self.rest.push_front((self.first_at, first));
            }
            self.first_at = at;
        } else {
            let place = self.rest.partition_point(|p| p.0 <= at);
            self.rest.insert(place, (at, packet));
        }
    }

    #[inline]
    pub(crate) const fn first_at(&self) -> Option<Instant> {
        self.first_at.as_deadline()
    }

    #[inline]
    pub(crate) fn pop_until(&mut self, now: Instant) -> Option<Pkt> {
        if self.first_at > now {
            return None;
        }
        let next = self.rest.pop_front();
        self.first_at = next.as_ref().map_or(Instant::NEVER, |next| next.0);
        core::mem::replace(&mut self.first, next.map(|next| next.1))
    }
}
