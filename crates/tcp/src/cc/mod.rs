//! Congestion control. The engine reports events to a scheme and asks it for a [`Plan`].
//!
//! The engine calls `plan` before every send and follows all of it: window, pace, burst, probe segments,
//! requested rate and DSCP. It treats all schemes alike. The recovery module decides what is lost, what to
//! retransmit and how much is in flight; a scheme only says how much may be in flight and how fast to send.

pub mod advised;
pub mod bbr;
pub mod bbr3;
#[cfg(test)]
mod bench;
pub mod bic;
pub mod careful_resume;
pub mod cubic;
pub mod explicit_rate;
pub mod fast;
pub mod htcp;
pub mod hybla;
pub mod hystart;
pub mod law;
#[cfg(test)]
mod line;
pub mod linux;
pub mod parallel;
pub mod peach;
pub mod probing;
pub mod quick_start;
pub mod reno;
pub mod standard;
pub mod swift;
pub mod vegas;
pub mod westwood;
mod windowed_max;

use crate::delivery::RateSample;
use crate::limits::Limit;
use bentpipe_advice::negotiation::RateAnswer;
use bentpipe_base::shift::Walk;
use bentpipe_base::{Cx, Dscp, Duration, Instant, Rate, Size};
use core::fmt::Debug;
use standard::Window;

/// What a scheme wants the sender to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Bytes that may be in flight.
    pub window: Size,
    /// Rate at which segments are sent; `None` sends as soon as the window allows.
    pub pace: Option<Rate>,
    /// Header bytes of each segment that the pace counts: it is then the payload rate of full segments.
    pub headers: Size,
    /// Rate above which nothing is sent, whatever `pace` or the host's pacing allows.
    pub most: Option<Rate>,
    /// Bytes that may be sent back to back, whether paced or not.
    pub burst: Size,
    /// Low-priority extra segments, not counted in the window.
    pub probes: Option<ProbeRequest>,
    /// A rate to request from the network (explicit-rate signalling).
    pub requested_rate: Option<Rate>,
    /// DSCP of data segments.
    pub dscp: Dscp,
}

impl Plan {
    /// A plan with a window and nothing else.
    pub const fn window(window: Size) -> Self {
        Self {
            window,
            pace: None,
            headers: Size::ZERO,
            most: None,
            burst: Size::MAX,
            probes: None,
            requested_rate: None,
            dscp: Dscp::DEFAULT,
        }
    }

    /// Returns the bytes that a segment with this payload counts at the pace; a full one counts `mss`.
    pub(crate) fn charge(&self, payload: Size, mss: u64) -> Size {
        Size((payload.0 + self.headers.0) * mss / (mss + self.headers.0).max(1))
    }
}

/// A request to send low-priority probe segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeRequest {
    /// How many more to send.
    pub left: u32,
    /// When they are sent.
    pub clock: ProbeClock,
    /// What they carry.
    pub carry: ProbeCarry,
    /// Their DSCP.
    pub mark: Dscp,
}

/// When probe segments are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeClock {
    /// One per interval.
    Every(Duration),
    /// This many for each segment that an acknowledgment reports without allowing a data segment; an
    /// acknowledgment that reports none counts as one.
    PerAck(u8),
    /// One per interval while no data is due; the interval also starts at the last data segment.
    Spare(Duration),
}

/// What a probe segment carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeCarry {
    /// A copy of the last segment sent.
    LastSent,
    /// Copies of the segments not yet acknowledged or SACKed, in turn, the oldest first.
    OldestInTurn,
    /// A copy of a random one of these, among those copied least.
    Random,
    /// One copy of each of these, the newest first.
    NewestOnce,
}

/// How the sender learns that a probe segment has arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProbeSignal {
    /// By the probe option, which both ends support.
    Option,
    /// By the peer's DSACKs.
    Dsack,
    /// By the echoed timestamps, while no loss is being repaired.
    Timestamps,
    /// Not at all; probes are useless then.
    #[default]
    None,
}

/// State of loss recovery when an acknowledgment is processed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Episode {
    /// No loss is being repaired.
    #[default]
    Open,
    /// Fast recovery.
    Fast,
    /// After a retransmission timeout, until everything sent before it is acknowledged.
    Timeout,
    /// This acknowledgment ended an episode.
    Ended,
}

/// What the connection knows about the path.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// Sender maximum segment size.
    pub mss: Size,
    /// Bytes estimated to be in the network.
    pub in_flight: Size,
    /// RFC 5681's FlightSize: sent and not cumulatively acknowledged, less what limited transmit added.
    pub flight: Size,
    /// The peer's window.
    pub peer_window: Size,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Duration,
    /// Variation of the round-trip time.
    pub rttvar: Duration,
    /// Smallest round-trip time seen; zero before the first sample.
    pub rtt_min: Duration,
    /// Round trips since the connection began.
    pub round: u64,
    /// Stream position up to which data is acknowledged.
    pub una: u64,
    /// Stream position up to which data was sent.
    pub next: u64,
    /// Bytes delivered since the connection began, including SACKed ones.
    pub delivered: u64,
    /// Bytes ever considered lost; it only grows.
    pub lost: u64,
    /// Bytes not yet sent, if the end of the stream is known.
    pub unsent: Option<Size>,
    /// How the sender learns that a probe has arrived.
    pub probes: ProbeSignal,
}

impl Path {
    /// The rate that sends `gain` times `window` bytes per SRTT; `None` before the first RTT sample.
    pub fn spread(&self, gain: f64, window: u64) -> Option<Rate> {
        let bps = || (gain * window as f64 * 8.0 / self.srtt.as_secs_f64()) as u64;
        if self.srtt.is_zero() { None } else { Rate::from_bps(bps()) }
    }
}

/// Returns the payload rate at a rate that counts IP packets with these headers.
fn payload_rate(rate: Rate, mss: u64, headers: u64) -> Option<Rate> {
    let whole = u128::from(mss + headers);
    let bps = u128::from(rate.bps()) * u128::from(mss) / whole.max(1);
    Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX))
}

/// One acknowledgment that delivered data.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// Bytes newly acknowledged or SACKed.
    pub delivered: Size,
    /// Bytes newly acknowledged cumulatively.
    pub acked: Size,
    /// Round-trip time sample.
    pub rtt: Option<Duration>,
    /// Delivery-rate sample.
    pub rate: Option<RateSample>,
    /// A round trip ended: data sent after the previous round's end was acknowledged.
    pub round_ended: bool,
    /// State of loss recovery.
    pub episode: Episode,
    /// What limited the sender before this acknowledgment. A window grows only if it is
    /// [`Limit::CongestionWindow`].
    pub limited_by: Limit,
    /// Probe segments newly acknowledged.
    pub probes: u32,
}

impl Ack {
    /// True if the window of a loss-based scheme may grow: new data is acknowledged, the window was the
    /// limit, and no loss is being repaired.
    #[inline]
    pub fn may_grow(&self) -> bool {
        self.acked > Size::ZERO
            && self.limited_by == Limit::CongestionWindow
            && matches!(self.episode, Episode::Open | Episode::Timeout)
    }
}

/// Kind of congestion signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossCause {
    /// Found by duplicate ACKs, SACK or RACK.
    Fast,
    /// Retransmission timeout.
    Timeout,
    /// The same segment timed out again.
    RepeatedTimeout,
    /// ECN echo.
    Mark,
}

/// A loss or mark that the scheme must react to; at most one per window, except timeouts.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// How it was found.
    pub cause: LossCause,
    /// When the oldest lost segment was last sent.
    pub last_sent: Instant,
    /// How often it had been retransmitted before.
    pub resends: u32,
}

/// The scheme has been replaced by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fallback {
    /// Name of the new scheme.
    pub to: &'static str,
    /// Reason.
    pub why: &'static str,
    /// Time of the change.
    pub at: Instant,
    /// Data segments sent before the change.
    pub segments: u64,
}

/// A segment that was sent.
#[derive(Clone, Copy, Debug)]
pub struct SentSegment {
    /// Payload bytes.
    pub bytes: Size,
    /// It is a retransmission.
    pub resent: bool,
    /// It is a probe.
    pub probe: bool,
}

/// The interface of every scheme.
pub trait CongestionControl: Debug + Send {
    /// Data was delivered.
    fn on_ack(&mut self, cx: &mut Cx<'_>, path: &Path, ack: &Ack);
    /// Data was lost or marked.
    fn on_loss(&mut self, cx: &mut Cx<'_>, path: &Path, loss: &Loss);
    /// The network said something about the sender's rate. The first answer may come right after the scheme
    /// was built; another comes before the acknowledgment that the same segment carries.
    fn on_rate(&mut self, _cx: &mut Cx<'_>, _path: &Path, _answer: RateAnswer) {}
    /// A segment was sent.
    fn on_sent(&mut self, _cx: &mut Cx<'_>, _path: &Path, _sent: &SentSegment) {}
    /// The last loss was spurious: undo the reaction to it.
    fn on_undo(&mut self, _cx: &mut Cx<'_>, _path: &Path) {}
    /// Another mechanism has found out what the path carries: the window becomes `window` and the slow-start
    /// threshold `ssthresh`. A scheme that has no window of its own learns it from what is delivered.
    fn on_jump(&mut self, _cx: &mut Cx<'_>, _path: &Path, _window: Size, _ssthresh: Size) {}
    /// The sender was idle or did not use its window: reduce the window to `window`.
    fn on_restart(&mut self, _cx: &mut Cx<'_>, _path: &Path, _window: Size) {}
    /// What to do next. Has no side effects; called before every send.
    fn plan(&self, path: &Path) -> Plan;
    /// The window, if the plan is that and nothing else, whatever the path, and if the scheme does not look
    /// at what is sent: the engine may then ask for it in place of the plan, and need not call `on_sent`.
    fn window_only(&self) -> Option<Size> {
        None
    }
    /// The window, if acknowledgments change nothing but that and only by [`Window::grow`], and the plan is
    /// as [`Self::window_only`] says: the engine may then let it grow itself.
    fn standard_window(&mut self) -> Option<&mut Window> {
        None
    }
    /// False if the scheme never looks at [`Ack::rate`]: then there is none, and what it needs is not kept.
    fn uses_rates(&self) -> bool {
        true
    }
    /// The scheme that replaced this one, if any.
    fn fallback(&self) -> Option<Fallback> {
        None
    }
    /// Tells `walk` what the state is, so that what repeats itself can be skipped exactly. A scheme that does
    /// not say so is never skipped. One that does must not use [`Path::round`] or [`Ack::round_ended`] while
    /// its state repeats itself.
    fn shift(&mut self, walk: &mut Walk<'_>) {
        walk.refuse("a scheme that cannot be skipped");
    }
    /// The same for what the scheme is only told while its state repeats itself (`told.rs`), at a sender of
    /// `stream` that has acknowledged data up to `una`.
    fn shift_told(&mut self, _walk: &mut Walk<'_>, _stream: usize, _una: u64) {}
    /// Returns the slow-start threshold; `None` if unlimited or unknown.
    fn ssthresh(&self) -> Option<Size> {
        None
    }
}
