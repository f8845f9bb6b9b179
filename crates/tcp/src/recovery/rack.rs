//! RACK-TLP: time-based loss detection and the tail loss probe.
//!
//! Source: RFC 8985. RACK: a segment is lost if one sent later was delivered and RACK.rtt + reo_wnd have
//! passed since it was sent; reo_wnd is 0 while recovering (or with three SACKed segments) as long as no
//! reordering was seen, else min_RTT/4 times a factor that grows with DSACKs (up to SRTT). Segments not yet
//! due set a timer. TLP: 2 SRTT after the last segment or ACK (plus the worst delayed ACK if one segment is
//! in flight), but no later than the timeout would be, new data or the last segment is sent to draw an ACK.
//! Deviation: the scoreboard is scanned in sequence order, skipping SACKed ranges, in place of a list in
//! sending order: the result is the same.

use super::{AckView, DUP_THRESH, Recovery};
use crate::board::Scoreboard;
use crate::cc::Episode;
use bentpipe_base::shift::Walk;
use bentpipe_base::{Duration, Instant};

/// RFC 8985, section 6.2, step 4: recoveries after which a larger reordering window is reset.
const REO_WND_PERSIST: u8 = 16;
/// RFC 8985, section 7.2: worst case of a peer's delayed ACK.
pub const WCDELACK: Duration = Duration::from_millis(200);
/// Linux: margin added to timers.
pub const LINUX_TIMER: Duration = Duration::from_millis(2);

/// RACK's state.
#[derive(Clone, Debug, Default)]
pub(super) struct Rack {
    /// Of the segments delivered, the one sent last: when it was sent and where it ends.
    newest: Option<(Instant, u64)>,
    /// Its round trip.
    pub(super) rtt: Duration,
    /// Highest position delivered. A segment below it, delivered later and never resent, was reordered.
    fack: u64,
    reordering_seen: bool,
    /// The RFC's reo_wnd_mult, less 1: rounds with a DSACK, until `REO_WND_PERSIST` recoveries have passed.
    reo_wnd_steps: u8,
    /// Recoveries that ended since the last of these rounds.
    recoveries: u8,
    /// A DSACK below this belongs to a round already counted.
    dsack_round: u64,
    /// When the reordering timer is due.
    pub(super) deadline: Option<Instant>,
}

impl Rack {
    /// Visits the state of a sender of `stream`.
    pub(super) fn shift(&mut self, walk: &mut Walk<'_>, stream: usize) {
        let Self { newest, rtt, fack, reordering_seen, reo_wnd_steps, recoveries, dsack_round, deadline } =
            self;
        walk.same(&newest.is_some());
        if let Some((at, end)) = newest {
            walk.past(at);
            walk.mark(stream, end);
        }
        walk.mark(stream, fack);
        walk.mark(stream, dsack_round);
        walk.same(&(*rtt, *reordering_seen, [*reo_wnd_steps, *recoveries]));
        walk.maybe_time(deadline);
    }

    /// Steps 1 to 3 of section 6.2. Linux (`tcp_rack_advance`) uses the round trip of the segment that it
    /// processed last, whether or not that was sent last.
    fn update(&mut self, board: &Scoreboard, view: &AckView<'_>, linux: bool) {
        let digest = view.digest;
        if digest.original_least.is_some_and(|end| end < self.fack) {
            self.reordering_seen = true; // step 3
        }
        self.fack = self.fack.max(board.sacked_ranges().last().map_or(board.una(), |r| r.1));
        if let Some((sent_at, _)) = digest.newest_certain.filter(|_| digest.newest_certain >= self.newest) {
            self.newest = digest.newest_certain;
            self.rtt = digest.now.since(sent_at);
        }
        if let Some((_, sent_at)) = digest.last_certain.filter(|_| linux) {
            self.rtt = digest.now.since(sent_at);
        }
    }

    /// Sets the deadline. Linux waits for the last segment that may be lost, and 2 ms more.
    fn wait_for(&mut self, due: Instant, linux: bool) {
        let at = match self.deadline {
            Some(known) if linux => known.max(due + LINUX_TIMER),
            Some(known) => known.min(due),
            None if linux => due + LINUX_TIMER,
            None => due,
        };
        self.deadline = Some(at);
    }

    /// Step 4: returns the reordering window.
    fn reo_wnd(&mut self, board: &Scoreboard, view: &AckView<'_>, recovering: bool) -> Duration {
        if view.digest.dsack.is_some() && board.una() >= self.dsack_round {
            self.dsack_round = board.next();
            self.reo_wnd_steps = self.reo_wnd_steps.saturating_add(1);
            self.recoveries = 0;
        }
        if !self.reordering_seen && (recovering || board.sacked() >= u64::from(DUP_THRESH) * view.mss) {
            return Duration::ZERO;
        }
        let quarter = view.rtt.min().unwrap_or_default() / 4;
        (quarter * u64::from(self.reo_wnd_steps.saturating_add(1))).min(view.rtt.srtt())
    }

    fn on_recovery_end(&mut self) {
        self.recoveries = self.recoveries.saturating_add(1);
        if self.recoveries >= REO_WND_PERSIST {
            self.reo_wnd_steps = 0;
        }
    }
}

impl Recovery {
    pub(super) fn rack_on_ack(&mut self, board: &mut Scoreboard, view: &AckView<'_>) {
        if self.result.ended {
            self.rack.on_recovery_end();
        }
        self.rack.update(board, view, self.linux);
        self.rack_detect(board, view);
    }

    /// Step 5: marks what is lost and sets the timer for what may be soon.
    pub(super) fn rack_detect(&mut self, board: &mut Scoreboard, view: &AckView<'_>) {
        self.rack.deadline = None;
        let Some(newest) = self.rack.newest else { return };
        if board.is_empty() {
            return;
        }
        let recovering = self.episode != Episode::Open;
        let reo_wnd = self.rack.reo_wnd(board, view, recovering);
        let grace = self.rack.rtt + reo_wnd;
        let mut any = false;
        let mut i = 0;
        while let Some(seg) = board.get(i) {
            let (sent_at, end) = (seg.sent_at, seg.end);
            if seg.sacked {
                i = board.index_beyond_range(i);
                continue;
            }
            if (sent_at, end) >= newest {
                if seg.resends == 0 {
                    break; // originals are in sending order: none beyond was sent earlier
                }
            } else if !seg.lost || seg.resent {
                let due = sent_at + grace;
                if due <= view.digest.now {
                    any |= board.mark_lost(i, true) > 0;
                } else {
                    self.rack.wait_for(due, self.linux);
                }
            }
            i += 1;
        }
        // on Linux an episode begins whenever something is lost and no episode is in progress: if one ends
        // while segments are still lost, the next begins at once and reduces the window again
        if (any || (self.linux && board.lost() > 0)) && self.episode == Episode::Open {
            let first = board.next_lost();
            self.begin_fast_at(board, view, first);
        }
    }
}

/// The tail loss probe's timer and state (section 7).
#[derive(Clone, Copy, Debug, Default)]
pub struct TailProbe {
    /// Stream position at the time of the probe, and whether it was a retransmission.
    outstanding: Option<(u64, bool)>,
}

impl TailProbe {
    /// Visits the state.
    pub(crate) fn shift(&self, walk: &mut Walk<'_>) {
        walk.expect(self.outstanding.is_none(), "a tail loss probe");
    }

    /// Records that a probe was sent.
    pub const fn sent(&mut self, next: u64, resent: bool) {
        self.outstanding = Some((next, resent));
    }

    /// True while a probe waits for its answer.
    #[inline]
    pub const fn is_outstanding(&self) -> bool {
        self.outstanding.is_some()
    }

    /// Takes an acknowledgment up to `una`. `twice`: the original and the probe both arrived (a DSACK, or
    /// without DSACK a duplicate ACK). True if the probe repaired a loss that nothing else detected: the
    /// scheme must respond (section 7.4.2).
    pub fn on_ack(&mut self, una: u64, twice: bool) -> bool {
        let Some((end, resent)) = self.outstanding else { return false };
        if una < end || (una == end && resent && !twice) {
            return false; // later data tells whether both arrived
        }
        self.outstanding = None;
        resent && !twice
    }

    /// Forgets the probe: a timeout or fast recovery took over.
    pub const fn cancel(&mut self) {
        self.outstanding = None;
    }
}
