//! Timestamps of segments (RFC 7323): our clock, the peer's, and PAWS.

use crate::connection::Connection;
use bentpipe_base::{Cx, Duration, Instant, Packet, Phase, Phases, Timestamps};

/// RFC 7323, section 5.5: TS.Recent is not trusted after 24 days without a segment.
const PAWS_IDLE: Duration = Duration::from_secs(24 * 24 * 3600);

/// Timestamps (RFC 7323).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TimestampClock {
    /// TS.Recent, what it leaves out, and when it was set.
    pub(crate) recent: u32,
    pub(crate) recent_phase: Phase,
    pub(crate) recent_at: Instant,
    /// Last.ACK.sent.
    pub(crate) last_ack_sent: u64,
    /// When something last depended on the milliseconds of a timestamp.
    pub(crate) chosen_at: Instant,
}

impl Connection {
    /// Adds the timestamps of a segment with an acknowledgment, if both ends send them.
    #[inline]
    pub(crate) fn stamp(&self, packet: &mut Packet, now: Instant) {
        if self.negotiated.timestamps {
            self.put_stamps(packet, now, (self.clock.recent, self.clock.recent_phase));
        }
    }

    /// The same, with this echo.
    #[inline]
    pub(crate) fn put_stamps(&self, packet: &mut Packet, now: Instant, (echo, echo_phase): (u32, Phase)) {
        packet.tcp.timestamps = Some(Timestamps { value: self.timestamp(now), echo });
        packet.tcp.phases = Phases { value: Phase::of(now), echo: echo_phase };
    }

    /// Returns the time of our timestamp clock: milliseconds from a random start.
    #[inline]
    pub(crate) const fn timestamp(&self, now: Instant) -> u32 {
        self.random_values.timestamp.wrapping_add((now.0 / 1_000_000) as u32)
    }

    /// PAWS (RFC 7323, section 5). One that is not older to the nanosecond is never rejected, wherever the
    /// milliseconds begin.
    #[inline]
    pub(crate) fn paws_rejects(&mut self, cx: &Cx<'_>, ts: Timestamps, phase: Phase) -> bool {
        let ahead = ts.value.wrapping_sub(self.clock.recent) as i32;
        if ahead < 0 || (ahead == 0 && phase.ns() < self.clock.recent_phase.ns()) {
            self.clock.chosen_at = cx.now;
        }
        ahead < 0 && cx.now.since(self.clock.recent_at) < PAWS_IDLE
    }

    /// RFC 7323, section 4.3: takes TS.Recent from a segment at or below Last.ACK.sent.
    #[inline]
    pub(crate) fn take_timestamp(&mut self, cx: &Cx<'_>, segment: &Packet, left: u64) {
        if let (Some(ts), true) = (segment.tcp.timestamps, self.negotiated.timestamps)
            && left <= self.clock.last_ack_sent
        {
            (self.clock.recent, self.clock.recent_phase) = (ts.value, segment.tcp.phases.value);
            self.clock.recent_at = cx.now;
        }
    }
}
