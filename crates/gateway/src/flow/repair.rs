//! Losses in the hop: found and repaired here, so that the sender need not.
//!
//! Sources: TCP-SuperCharger (SC) has no loss; RACK (RFC 8985) for time-based detection; Snoop (Balakrishnan
//! et al., 1995) for repair from the middle; Liu and Lee (WCNC 2013) for the observation that recovery of a
//! full window is limited by flow control. The rules:
//! - The hop keeps order. Data that was last sent before other data that has arrived is lost. So is the head
//!   if an ACK for it is repeated more than the RTT, twice its variation and 10 ms after its last copy was
//!   sent. An arrival too early for the last copy is credited to the one before.
//! - After a hole the receiver keeps only data within its window [h, E). Data that is sent beyond E before
//!   the repair arrives is discarded. So at each new hole everything sent beyond E is due again, right behind
//!   the repair, and new data follows without a pause.
//! - No ACK for 1.5 D + 4 var: the head is sent again, at most 3 times with doubled timeouts; then the sender
//!   must retransmit.
//! - Missing data was lost if the receiver had advertised room for it before it arrived. Otherwise it was
//!   refused: then everything that has arrived since was refused too, and `reader.rs` is told.
//! - Zero window (una at the edge): sending stops, the head probes the window once per second (RFC 9293,
//!   section 3.8.6.1), and when it opens everything that arrived while it was closed is due again.

use super::cache::{AckCredit, PieceState};
use super::reorder::Reordering;
use super::{Flow, Shared};
use crate::counters::Lost;
use bentpipe_base::{Cx, Duration, Instant};

/// Delay beyond the RTT after which a repeated ACK means that the head is missing.
const LATE: Duration = Duration::from_millis(10);
/// Timeouts before repair is left to the sender.
const TRIES: u32 = 3;
/// Interval between zero-window probes.
pub(super) const PROBE: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, Default)]
pub(crate) struct Recovery {
    /// End of the last hole: until it has arrived, windows show nothing about the application.
    hole_end: u64,
    /// Time of the last progress, or of the first transmission with nothing else outstanding.
    progress: Option<Instant>,
    /// Timeouts since then.
    tries: u32,
    /// When the next zero-window probe is sent.
    probe_at: Option<Instant>,
    /// A probe is due.
    pub(super) probe: bool,
    /// When data was last refused: data that was sent before then shows nothing about losses of the hop.
    refused_at: Instant,
    timeout: Duration,
    order: Reordering,
    /// Copies of each packet, and whether new data has precedence over them.
    pub(super) copies: u8,
    pub(super) spare: bool,
    pub(super) losses: Lost,
    pub(super) timeouts: u64,
}

impl Recovery {
    pub(super) fn deadline(&self) -> Option<Instant> {
        let timeout = self.progress.filter(|_| self.tries < TRIES && self.probe_at.is_none() && !self.probe);
        let timeout = timeout.map(|since| since + self.timeout * (1 << self.tries));
        [timeout, self.probe_at].into_iter().flatten().min()
    }

    /// True if the gateway's own retries are used up.
    pub(super) const fn exhausted(&self) -> bool {
        self.tries >= TRIES
    }

    /// True if the data at `start` is missing, not only due because the receiver had no room for it.
    pub(super) const fn is_hole(&self, start: u64) -> bool {
        start < self.hole_end
    }

    pub(super) fn sent(&mut self, now: Instant, timeout: Duration) {
        if self.progress.is_none() {
            self.progress = Some(now);
            self.timeout = timeout;
        }
    }
}

impl Flow {
    /// Processes an acknowledgment from the receiver: `una`, SACK blocks and window.
    pub(super) fn process_ack(
        &mut self,
        cx: &mut Cx<'_>,
        una: u64,
        window: u64,
        sacks: &[(u64, u64)],
        shared: &mut Shared,
    ) {
        let now = cx.now;
        let shortest = self.hop_rtt.recent_minimum().0.saturating_sub(Duration::from_millis(1).0);
        let mut credit = AckCredit::default();
        let advanced = una > self.una;
        self.una = self.una.max(una);
        self.cache.acknowledge(cx, self.una, shortest, &mut credit);
        for range in sacks {
            self.cache.sack(cx, *range, shortest, &mut credit);
        }
        if let Some(sent) = credit.sample {
            self.hop_rtt.sample(now, now.since(sent));
        }
        let order = &mut self.recovery.order;
        if let Some(sent) = credit.late_sent {
            order.late(now, sent, self.hop_rtt.smoothed());
        }
        if let Some(sent) = credit.sent {
            order.arrived(sent);
        }
        if advanced || credit.sent.is_some() {
            self.recovery.tries = 0;
            self.recovery.progress = (!self.cache.pieces.is_empty()).then_some(now);
            self.recovery.timeout = self.hop_rtt.timeout();
        }
        if let Some(reset) = self.sender.reset.as_mut().filter(|_| advanced) {
            reset.moved = now;
        }
        // the receiver has SACKed the head but does not acknowledge it, so it has dropped it
        if self.cache.pieces.front().is_some_and(|p| p.state == PieceState::Sacked && p.start <= self.una) {
            self.cache.renege();
        }
        let steady = self.una >= self.recovery.hole_end && self.cache.sacked.is_empty();
        let before = self.receiver.edge;
        let reach = self.reach(now, shared);
        self.receiver.on_ack(now, (self.una, window), steady, self.hop_rtt.smoothed(), reach);
        let was_closed = self.receiver.stopped.is_some();
        self.stop_or_go(now);
        let is_repeated = !advanced && credit.sent.is_none() && !was_closed;
        let lost = if self.answers_keep_alive(is_repeated) || self.receiver.stopped.is_some() {
            0
        } else {
            self.detect(now, (before, reach), (advanced, was_closed), credit.sent)
        };
        shared.shaper.losses.count(now, self.recovery.copies, credit.arrived, lost);
        shared.shaper.losses.late(self.recovery.copies, credit.late);
        for losses in [&mut self.recovery.losses, &mut shared.counters.lost] {
            losses.found += u64::from(lost);
            losses.late += u64::from(credit.late);
            losses.copied += u64::from(credit.copied);
        }
    }

    /// The end of the forwarded data, and how far beyond the edge the hop allows.
    fn reach(&self, now: Instant, shared: &Shared) -> (u64, u64) {
        (self.cache.forwarded(self.una), self.advertised.room(&self.path(now, shared)))
    }

    /// A packet without an acknowledgment after this time was lost or refused.
    fn late(&self, now: Instant) -> Duration {
        self.hop_rtt.smoothed() + LATE.max(self.recovery.order.window(now)) + self.hop_rtt.variation * 2
    }

    /// Finds the data that did not get through, and whether the hop lost it or the receiver refused it.
    /// Returns the number of segments lost in the hop. `before` is the edge before this acknowledgment.
    fn detect(
        &mut self,
        now: Instant,
        (before, reach): (u64, (u64, u64)),
        (advanced, was_closed): (bool, bool),
        sent: Option<Instant>,
    ) -> u32 {
        let (edge, una, sack) = (self.receiver.edge, self.una, self.handshake.sack());
        let (mut holes, mut lost, mut hole_end) = (0, 0, self.recovery.hole_end);
        // when the refused data was sent
        let mut refused = None;
        let receiver = &self.receiver;
        let refused_at = self.recovery.refused_at;
        let mut found = |(start, end): (u64, u64), sent: Instant, segments: u32| {
            if start >= edge && start > una {
                return false;
            }
            holes += 1;
            // the data behind a refused head was refused as well
            if start <= una && receiver.had_no_room(una, end) {
                refused = Some(sent);
            }
            if refused.is_some() || sent <= refused_at {
                return false;
            }
            hole_end = hole_end.max(end);
            let counts = end <= before && (sack || start <= una);
            lost += if counts { segments } else { 0 };
            counts
        };
        if let Some(sent) = sent {
            let sent = Instant(sent.0.saturating_sub(self.recovery.order.window(now).0));
            // SACK cuts pieces at the edges of data that has arrived, so nothing of this piece has; without
            // SACK only its first segment is known to be missing
            self.cache.overtaken(sent, |piece| {
                found((piece.start, piece.end), piece.sent, if sack { piece.segments() } else { 1 })
            });
        }
        let overdue = Instant(now.0.saturating_sub(self.late(now).0));
        let head = self.cache.pieces.front().filter(|p| p.state == PieceState::InFlight && p.start <= una);
        if !advanced
            && let Some((range, sent)) =
                head.filter(|p| p.sent <= overdue).map(|p| ((p.start, p.end), p.sent))
        {
            let counted = found(range, sent, 1);
            if let Some(head) = self.cache.pieces.front_mut() {
                head.counted = counted;
            }
            self.cache.make_due(0);
        }
        self.recovery.hole_end = hole_end;
        // data that arrived while the window was closed was refused
        if was_closed && self.cache.rewind(una, overdue) {
            refused = refused.or(Some(now));
        }
        if holes > 0 || refused.is_some() {
            self.cache.rewind(if refused.is_some() { una } else { edge }, Instant::NEVER);
        }
        if let Some(sent) = refused {
            self.recovery.refused_at = now;
            self.receiver.overflowed((now, sent), una, self.hop_rtt.smoothed(), reach);
        }
        lost
    }

    /// Stops sending if the receiver's window is closed, and resumes when it opens.
    fn stop_or_go(&mut self, now: Instant) {
        let closed = self.receiver.window(self.una) == 0 && !self.cache.is_empty();
        if closed && self.receiver.stopped.is_none() {
            self.receiver.stopped = Some(now);
            self.recovery.probe_at = Some(now + PROBE);
            self.recovery.progress = None;
        } else if !closed && self.receiver.stopped.take().is_some() {
            (self.recovery.probe_at, self.recovery.probe) = (None, false);
            (self.recovery.progress, self.recovery.tries) = (Some(now), 0);
            self.recovery.timeout = self.hop_rtt.timeout();
        }
    }

    /// True if the receiver may still expect `una`, whatever is in flight: its window is closed, a hole is
    /// being repaired, or no ACK arrived for a round trip.
    pub(super) fn may_stand_still(&self, now: Instant) -> bool {
        let silent = |since| now.since(since) > self.late(now);
        self.receiver.stopped.is_some()
            || self.una < self.recovery.hole_end
            || self.recovery.progress.is_some_and(silent)
    }

    /// Handles an expired timeout or a due probe.
    pub(super) fn timeouts(&mut self, cx: &Cx<'_>, shared: &mut Shared) {
        if self.recovery.deadline().is_none_or(|at| at > cx.now) {
            return;
        }
        if self.recovery.probe_at.take().is_some() {
            self.recovery.probe = true;
            return;
        }
        self.recovery.tries += 1;
        self.recovery.timeouts += 1;
        shared.counters.timeouts += 1;
        self.head_again();
    }

    pub(super) fn head_again(&mut self) {
        if let Some(head) = self.cache.pieces.front() {
            self.recovery.hole_end = self.recovery.hole_end.max(head.end);
            self.cache.make_due(0);
        }
    }

    pub(super) fn probed(&mut self, now: Instant, shared: &mut Shared) {
        shared.counters.probes += 1;
        (self.recovery.probe_at, self.recovery.probe) = (Some(now + PROBE), false);
    }
}
