//! Delivery rate samples.
//!
//! Source: draft-ietf-ccwg-bbr, section 4.1 (delivery rate estimation). Each segment records how much had
//! been delivered, and when, at the time it was sent. Its acknowledgment gives a rate over the longer of the
//! send interval and the ACK interval. Samples taken while the application limited the sender are marked.

use bentpipe_base::shift::Walk;
use bentpipe_base::{Duration, Instant, Rate, Size};

/// A rate at which the path delivered data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Bytes delivered over the interval.
    pub delivered: Size,
    /// The interval.
    pub interval: Duration,
    /// True if the application, not the path, limited the rate.
    pub app_limited: bool,
    /// Bytes delivered in all when the sampled segment was sent; used to count round trips.
    pub prior: u64,
}

impl RateSample {
    /// Returns the rate, rounded down; `None` below 1 bit/s.
    pub fn rate(&self) -> Option<Rate> {
        let bps = u128::from(self.delivered.0) * 8_000_000_000 / u128::from(self.interval.0.max(1));
        Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX))
    }
}

/// State recorded when a segment is sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Snapshot {
    /// Bytes delivered until then.
    pub delivered: u64,
    /// When the last of them were delivered.
    pub delivered_at: Instant,
    /// When the first segment of the current flight was sent.
    pub first_sent: Instant,
    /// The application had nothing more to send.
    pub app_limited: bool,
}

/// Connection-wide state of the estimator.
#[derive(Clone, Debug, Default)]
pub struct DeliveryRate {
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    /// Samples are application-limited until `delivered` passes this.
    app_limited_until: u64,
    /// The best segment of this ACK: the one sent last.
    prior: Option<(Snapshot, Instant)>,
}

impl Snapshot {
    /// Visits the state; the bytes delivered are counted like the positions of `stream`.
    pub(crate) fn shift(&mut self, walk: &mut Walk<'_>, stream: usize) {
        let Self { delivered, delivered_at, first_sent, app_limited } = self;
        walk.position(stream, delivered);
        walk.time(delivered_at);
        walk.time(first_sent);
        walk.same(app_limited);
    }
}

impl DeliveryRate {
    /// Visits the state; the bytes delivered are counted like the positions of `stream`.
    pub(crate) fn shift(&mut self, walk: &mut Walk<'_>, stream: usize) {
        let Self { delivered, delivered_at, first_sent, app_limited_until, prior } = self;
        walk.position(stream, delivered);
        walk.past(delivered_at);
        walk.past(first_sent);
        walk.mark(stream, app_limited_until);
        walk.same(&prior.is_some());
        // of an end that sends nothing: that of its SYN
        if let Some((Snapshot { delivered, delivered_at, first_sent, app_limited }, sent_at)) = prior {
            walk.mark(stream, delivered);
            for at in [delivered_at, first_sent, sent_at] {
                walk.past(at);
            }
            walk.same(app_limited);
        }
    }

    /// Returns the bytes delivered so far.
    #[inline]
    pub const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Called for each segment sent at `now`; `idle` when nothing was in flight before it.
    #[inline]
    pub const fn on_sent(&mut self, now: Instant, idle: bool) -> Snapshot {
        if idle {
            self.first_sent = now;
            self.delivered_at = now;
        }
        Snapshot {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            app_limited: self.app_limited_until > 0,
        }
    }

    /// Records that the application has nothing more to send while `in_flight` bytes are in the network.
    #[inline]
    pub fn app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = (self.delivered + in_flight).max(1);
    }

    /// Called for each segment newly delivered. Without `snap` there will be no sample.
    #[inline]
    pub fn on_delivered(&mut self, now: Instant, len: u64, sent_at: Instant, snap: Option<Snapshot>) {
        self.delivered += len;
        self.delivered_at = now;
        let Some(snap) = snap else {
            self.first_sent = sent_at;
            return;
        };
        if self.prior.is_none_or(|(best, _)| snap.delivered >= best.delivered) {
            self.prior = Some((snap, sent_at));
            self.first_sent = sent_at;
        }
    }

    /// Returns the sample of the ACK whose segments were reported since the last call. An interval below
    /// `min_rtt` (compressed ACKs) gives none.
    #[inline]
    pub fn sample(&mut self, min_rtt: Duration) -> Option<RateSample> {
        if self.app_limited_until > 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        let (snap, sent_at) = self.prior.take()?;
        self.sample_of(snap, sent_at, min_rtt)
    }

    /// Does what [`Self::on_delivered`] and [`Self::sample`] do for an acknowledgment of `len` bytes in
    /// segments that were sent once, the last of them at `sent_at`, without taking the sample.
    #[inline]
    pub(crate) fn on_clean(&mut self, now: Instant, len: u64, sent_at: Instant) {
        self.delivered += len;
        self.delivered_at = now;
        self.first_sent = sent_at;
        self.prior = None;
        if self.app_limited_until > 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
    }

    /// Returns the sample of a segment that was sent at `sent_at`.
    #[inline]
    pub(crate) fn sample_of(
        &self,
        snap: Snapshot,
        sent_at: Instant,
        min_rtt: Duration,
    ) -> Option<RateSample> {
        let send = sent_at.since(snap.first_sent);
        let ack = self.delivered_at.since(snap.delivered_at);
        let interval = send.max(ack);
        if interval < min_rtt || interval.is_zero() {
            return None;
        }
        let delivered = Size(self.delivered - snap.delivered);
        Some(RateSample { delivered, interval, app_limited: snap.app_limited, prior: snap.delivered })
    }
}
