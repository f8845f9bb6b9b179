//! Loss recovery: which bytes are lost, what to resend, how much is in flight.
//!
//! Three separate parts, each in files of its own:
//! - detection: `dupack.rs` (Reno RFC 5681, NewReno RFC 6582, Vegas' early retransmission in
//!   `vegas_retransmit.rs`), `sack.rs` (RFC 6675), `rack.rs` (RFC 8985);
//! - reduction, how the window is reduced during fast recovery: `rate_halving.rs`, `prr.rs` (RFC 9937),
//!   `speedy.rs` (TCP-Swift), or at once;
//! - detection of spurious timeouts: `frto.rs` (RFC 5682).
//!
//! `linux.rs` and `prr_linux.rs` hold what differs on a Linux host.
//!
//! Without SACK each duplicate ACK means that one segment has left the network, so `in_flight` is the flight
//! less one segment per duplicate ACK. That is equivalent to RFC 5681's window inflation, but no scheme ever
//! sees an inflated window.

mod dupack;
mod frto;
mod linux;
mod moved;
mod prr;
mod prr_linux;
mod rack;
mod rate_halving;
mod sack;
mod speedy;
mod vegas_retransmit;

use crate::board::{AckSummary, Scoreboard};
use crate::cc::{Episode, Loss, LossCause};
use crate::config::{Config, Stack};
use crate::rtt::RttEstimator;
use crate::scheme::{Detection, RecoveryParams, Reduction};
use bentpipe_base::Instant;

pub use rack::{LINUX_TIMER, TailProbe, WCDELACK};

/// RFC 5681's threshold of duplicate ACKs.
pub const DUP_THRESH: u32 = 3;

/// An acknowledgment as the recovery module sees it.
#[derive(Clone, Copy, Debug)]
pub struct AckView<'a> {
    /// What it changed on the scoreboard.
    pub digest: &'a AckSummary,
    /// SMSS in bytes.
    pub mss: u64,
    /// The RTT estimator.
    pub rtt: &'a RttEstimator,
    /// The scheme's window when the acknowledgment arrived; used only on Linux.
    pub window: u64,
}

/// What the recovery module found.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecoveryResult {
    /// An episode began: the scheme must respond.
    pub loss: Option<Loss>,
    /// The episode ended with this acknowledgment.
    pub ended: bool,
    /// More was found lost, whether or not an episode began.
    pub lost_more: bool,
    /// The last timeout was spurious.
    pub undo: bool,
    /// The retransmission timer restarts although nothing else requires it.
    pub restart_timer: bool,
}

/// The state of loss recovery.
#[derive(Clone, Debug, Default)]
pub struct Recovery {
    params: RecoveryParams,
    limited_transmit: bool,
    /// The host is a Linux host.
    linux: bool,
    /// The peer selectively acknowledges.
    sack: bool,
    episode: Episode,
    /// The episode ends when this is acknowledged.
    recover: u64,
    dup_acks: u32,
    /// Without SACK: bytes that have left the network according to duplicate ACKs, less what partial ACKs
    /// deflate; if negative, the window is below the scheme's.
    dup_ack_credit: i64,
    /// Start of a segment that is sent whatever the window says.
    forced_resend: Option<u64>,
    /// The first partial ACK of this episode was seen.
    partial_seen: bool,
    /// How many more acknowledgments are checked for an early retransmission.
    early_checks_left: u8,
    limited_sent: u64,
    /// Boxed, because a connection without a loss has none.
    reductions: Option<Box<Reductions>>,
    /// Bytes that the last acknowledgment delivered, duplicate ACKs included.
    linux_delivered: u64,
    mss: u64,
    rack: rack::Rack,
    frto: frto::Frto,
    rescue: Option<u64>,
    /// Linux: a mark reduces the window until more than this is acknowledged.
    ecn_reduction_end: Option<u64>,
    /// What the present acknowledgment, or the reordering timer, has changed so far.
    result: RecoveryResult,
}

/// The state of each way to reduce the window.
#[derive(Clone, Debug, Default)]
struct Reductions {
    halving: rate_halving::RateHalving,
    prr: prr::Prr,
    linux_prr: prr_linux::LinuxPrr,
    speedy: speedy::Speedy,
}

impl Reductions {
    /// Counts a segment of `len` bytes that was sent.
    fn sent(&mut self, len: u64) {
        self.prr.sent(len);
        self.linux_prr.sent();
    }
}

impl Recovery {
    /// Creates the state for a connection with segments of `mss` bytes; `sack` if the peer supports SACK.
    pub fn new(config: &Config, sack: bool, mss: u64) -> Self {
        let params = config.scheme.recovery;
        let detection = match params.detection {
            Detection::Sack | Detection::Rack if !sack => Detection::NewReno,
            other => other,
        };
        Self {
            params: RecoveryParams { detection, ..params },
            limited_transmit: config.limited_transmit,
            linux: config.stack == Stack::Linux,
            sack,
            mss: mss.max(1),
            ..Self::default()
        }
    }

    /// Returns the state of recovery.
    #[inline]
    pub const fn episode(&self) -> Episode {
        self.episode
    }

    /// Returns the detection in force, after the handshake has said whether the peer SACKs.
    pub const fn detection(&self) -> Detection {
        self.params.detection
    }

    /// Returns the bytes estimated to be in the network.
    #[inline]
    pub fn in_flight(&self, board: &Scoreboard) -> u64 {
        match (self.episode, self.params.detection) {
            // RFC 6675 and 3042: before recovery the whole flight counts, except what limited transmit added
            (Episode::Open, Detection::Rack) => board.pipe(),
            (Episode::Open, _) => self.flight(board),
            // with SACK there is no credit
            _ => {
                let counted =
                    self.reductions.as_ref().map_or(0, |of| of.speedy.lost_counted_in_flight(board));
                (board.pipe() + counted).saturating_add_signed(-self.dup_ack_credit)
            }
        }
    }

    /// Returns RFC 5681's FlightSize, less what limited transmit added (RFC 3042, section 2).
    #[inline]
    pub fn flight(&self, board: &Scoreboard) -> u64 {
        board.flight() - self.limited_sent.min(board.flight())
    }

    /// Returns the window in force if the scheme's is `window`.
    #[inline]
    pub fn window(&self, window: u64) -> u64 {
        if self.episode != Episode::Fast && !self.is_reducing() {
            return window;
        }
        match (self.params.reduction, &self.reductions) {
            (Reduction::AtOnce | Reduction::Speedy, _) => window,
            (_, None) => 0,
            (Reduction::RateHalving, Some(of)) => of.halving.window(),
            (Reduction::Prr, Some(of)) if self.linux => of.linux_prr.window(self.mss),
            (Reduction::Prr, Some(of)) => of.prr.window(),
        }
    }

    /// True when a duplicate ACK allows one more new segment beyond the window (RFC 3042).
    #[inline]
    pub const fn limited_transmit(&self, mss: u64) -> bool {
        self.limited_transmit
            && matches!(self.episode, Episode::Open)
            && !matches!(self.params.detection, Detection::Rack)
            && (self.dup_acks == 1 || self.dup_acks == 2)
            && self.limited_sent < self.dup_acks as u64 * mss
    }

    /// Counts a segment sent by limited transmit.
    pub const fn sent_limited(&mut self, len: u64) {
        self.limited_sent += len;
    }

    /// Returns the segment that is sent whatever the window says.
    #[inline]
    pub fn forced(&self, board: &Scoreboard) -> Option<usize> {
        let start = self.forced_resend?;
        if board.is_empty() || start < board.una() {
            return None;
        }
        let i = board.index_above(start);
        board.get(i).filter(|s| !s.sacked).map(|_| i)
    }

    /// True while F-RTO wants new data sent before retransmissions.
    #[inline]
    pub const fn prefers_new(&self) -> bool {
        self.frto.prefers_new()
    }

    /// Records a retransmission for the reductions.
    pub fn on_resent(&mut self, start: u64, len: u64) {
        if self.forced_resend.is_some_and(|f| f <= start) {
            self.forced_resend = None;
        }
        if let Some(of) = &mut self.reductions {
            of.sent(len);
        }
    }

    /// Records new data for the reductions.
    #[inline]
    pub fn on_new(&mut self, board: &Scoreboard, len: u64) {
        match (self.episode, &mut self.reductions) {
            (Episode::Fast, Some(of)) => of.sent(len),
            (_, Some(of)) if self.ecn_reduction_end.is_some() => of.linux_prr.sent(),
            // RACK's limited transmit: what SACKs allow before recovery is no part of FlightSize (RFC 5681,
            // section 3.2)
            (Episode::Open, _) if self.params.detection == Detection::Rack && board.sacked() > 0 => {
                self.limited_sent += len;
            }
            _ => {}
        }
    }

    /// Takes an acknowledgment that was already applied to the scoreboard.
    #[inline]
    pub fn on_ack(&mut self, board: &mut Scoreboard, view: &AckView<'_>) -> RecoveryResult {
        if view.digest.acked > 0 {
            let rack = self.params.detection == Detection::Rack;
            self.limited_sent = if rack { self.limited_sent.min(board.sacked()) } else { 0 };
        }
        let marked = board.marked();
        self.result = RecoveryResult::default();
        if self.linux {
            self.result.ended = self.linux_mark_ends(board);
            self.linux_delivered = self.linux_delivered(view);
            if self.linux_spurious(view) {
                return self.undo(board);
            }
        }
        let sent_new = self.frto.prefers_new();
        if self.frto.is_active() && self.frto.on_ack(board, view) {
            return self.undo(board);
        }
        if sent_new && !self.frto.is_active() && !self.linux {
            // RFC 5682, section 2.1 (3a): the window may be three segments; two were new data, the third is
            // the first hole
            self.forced_resend = Some(board.una());
        }
        let ends = if self.linux { self.linux_ends(board) } else { board.una() >= self.recover };
        if self.episode != Episode::Open && ends {
            self.end();
            self.result.ended = true;
        }
        match self.params.detection {
            Detection::Reno | Detection::NewReno => self.dupack_on_ack(board, view),
            Detection::Vegas => self.early_on_ack(board, view),
            Detection::Sack => self.sack_on_ack(board, view),
            Detection::Rack => self.rack_on_ack(board, view),
        }
        self.linux_continue_reduction();
        self.result.lost_more = board.marked() > marked;
        self.result
    }

    /// True if no loss is being repaired, no timeout is in doubt and nothing is sent out of turn.
    #[inline]
    pub(crate) const fn is_quiet(&self) -> bool {
        matches!(self.episode, Episode::Open)
            && self.forced_resend.is_none()
            && !self.frto.is_active()
            && !self.is_reducing()
    }

    /// Does what [`Self::on_ack`] does for an acknowledgment of new data in this state, if nothing is SACKed
    /// and losses are found by duplicate ACKs or by RFC 6675.
    #[inline]
    pub(crate) fn on_quiet_ack(&mut self) {
        self.limited_sent = 0;
        self.result = RecoveryResult::default();
        self.dup_acks = 0;
    }

    /// Reduces the window by the step of one acknowledgment; `target` is the scheme's window.
    #[inline]
    pub fn reduce(&mut self, board: &Scoreboard, digest: &AckSummary, target: u64, mss: u64, progress: bool) {
        if self.episode != Episode::Fast && !self.is_reducing() {
            return;
        }
        let in_flight = self.in_flight(board);
        let of = self.reductions.get_or_insert_default();
        match self.params.reduction {
            Reduction::AtOnce | Reduction::Speedy => {}
            Reduction::RateHalving => of.halving.on_ack(
                digest.delivered.max(mss.min(self.dup_ack_credit.max(0) as u64)),
                in_flight,
                target,
                mss,
            ),
            Reduction::Prr if self.linux => {
                of.linux_prr.on_ack(self.linux_delivered, in_flight, target, mss, progress);
            }
            Reduction::Prr => {
                let delivered = if digest.delivered == 0 { mss } else { digest.delivered };
                of.prr.on_ack(delivered, in_flight, target, mss, progress);
            }
        }
    }

    /// Begins fast recovery: segment 0 is the first hole.
    fn begin_fast(&mut self, board: &mut Scoreboard, view: &AckView<'_>) {
        board.mark_lost(0, false);
        self.begin_fast_at(board, view, Some(0));
    }

    /// Begins fast recovery with the retransmission of segment `first`.
    fn begin_fast_at(&mut self, board: &Scoreboard, view: &AckView<'_>, first: Option<usize>) {
        self.forced_resend = first.map(|i| board.start_of(i));
        self.episode = Episode::Fast;
        self.recover = board.next();
        self.partial_seen = false;
        self.rescue = None;
        self.begin_reduction(board, view);
        self.result.loss = Some(loss_of(board, first.unwrap_or(0), LossCause::Fast));
        self.result.restart_timer = true;
    }

    fn begin_reduction(&mut self, board: &Scoreboard, view: &AckView<'_>) {
        let before = match self.params.detection {
            Detection::Sack | Detection::Rack => sacked_before(board, view),
            _ => u64::from(self.dup_acks - 1) * view.mss,
        };
        let (flight, is_reducing) = (self.flight(board), self.is_reducing());
        let of = self.reductions.get_or_insert_default();
        of.halving.begin(flight, before);
        // RFC 9937's RecoverFS: outstanding before this acknowledgment, less what was SACKed before it
        let recover_fs = board.flight() - sacked_before(board, view) + view.digest.acked;
        of.prr.begin(recover_fs.max(view.mss));
        if !is_reducing {
            of.linux_prr.begin(view.window, view.mss);
        }
        if self.params.reduction == Reduction::Speedy {
            of.speedy.begin(board);
        }
    }

    fn end_reductions(&mut self) {
        if let Some(of) = &mut self.reductions {
            of.speedy = speedy::Speedy::default();
        }
    }

    fn end(&mut self) {
        self.episode = Episode::Open;
        self.dup_acks = 0;
        self.dup_ack_credit = 0;
        self.forced_resend = None;
        self.rescue = None;
        self.end_reductions();
        self.frto.stop();
    }

    /// Undoes the reaction to a timeout, which was spurious.
    fn undo(&mut self, board: &mut Scoreboard) -> RecoveryResult {
        board.unmark_lost();
        self.end();
        self.result.undo = true;
        self.result
    }

    /// Returns the bytes that an acknowledgment delivered, for the scheme.
    #[inline]
    pub const fn delivered(&self, digest: &AckSummary) -> u64 {
        if self.linux { self.linux_delivered } else { digest.delivered }
    }

    /// Handles a retransmission timeout: everything not SACKed is lost; the first segment is resent.
    pub fn on_timeout(&mut self, board: &mut Scoreboard, now: Instant, repeated: bool) -> Loss {
        board.renege_at_una();
        let loss = if self.linux {
            self.linux_timeout(board, now, repeated)
        } else {
            self.rfc_timeout(board, repeated)
        };
        self.resend_marked(board);
        loss
    }

    /// Resends what was marked lost, as after a timeout, but without congestion: segments were cut to `mss`
    /// bytes, since the path takes no longer ones.
    pub fn resend_cut(&mut self, board: &Scoreboard, mss: u64) {
        self.mss = mss;
        self.frto.stop();
        self.resend_marked(board);
    }

    /// Starts resending what is marked lost, the first segment at once.
    fn resend_marked(&mut self, board: &Scoreboard) {
        self.episode = Episode::Timeout;
        self.recover = board.next();
        self.dup_acks = 0;
        self.dup_ack_credit = 0;
        self.limited_sent = 0;
        self.rescue = None;
        self.end_reductions();
        self.early_checks_left = 0;
        self.rack.deadline = None;
        self.ecn_reduction_end = None;
        self.forced_resend = Some(board.una());
    }

    fn rfc_timeout(&mut self, board: &mut Scoreboard, repeated: bool) -> Loss {
        let cause = if repeated { LossCause::RepeatedTimeout } else { LossCause::Timeout };
        let loss = loss_of(board, 0, cause);
        self.frto.stop();
        if self.params.frto && self.episode != Episode::Timeout {
            self.frto.begin(board.next());
        }
        board.mark_all_lost();
        loss
    }

    /// Returns when RACK's reordering timer is due.
    pub const fn reorder_deadline(&self) -> Option<Instant> {
        self.rack.deadline
    }

    /// Handles the end of RACK's reordering window.
    pub fn on_reorder_timer(&mut self, board: &mut Scoreboard, view: &AckView<'_>) -> RecoveryResult {
        self.result = RecoveryResult::default();
        self.rack_detect(board, view);
        self.linux_continue_reduction();
        self.result
    }

    /// Returns the segment that RFC 6675's NextSeg rules (3) and (4) would send when there is neither loss
    /// nor new data.
    pub fn speculative(&mut self, board: &mut Scoreboard) -> Option<usize> {
        if self.episode == Episode::Fast && self.params.detection == Detection::Sack {
            self.sack_speculative(board)
        } else {
            None
        }
    }
}

/// Returns the bytes SACKed before this acknowledgment.
fn sacked_before(board: &Scoreboard, view: &AckView<'_>) -> u64 {
    board.sacked().saturating_sub(view.digest.newly_sacked)
}

/// Describes the loss of segment `i`.
fn loss_of(board: &Scoreboard, i: usize, cause: LossCause) -> Loss {
    let (last_sent, resends) = board.get(i).map_or((Instant::ZERO, 0), |s| (s.sent_at, s.resends));
    Loss { cause, last_sent, resends: u32::from(resends) }
}
