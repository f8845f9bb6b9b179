//! Congestion control: a scheme hears events and answers one question, [`Plan`].
//!
//! The engine asks `plan` before every send and obeys all of it: window, pace, burst, probe segments, rate
//! wish and marking. No scheme is special to the engine. What was lost, what to resend and how much is in
//! flight is the recovery module's business; a scheme only says how much it would like to have in flight, and
//! how fast.

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
pub mod peach_plus;
pub mod probing;
pub mod reno;
pub mod standard;
pub mod swift;
pub mod vegas;
pub mod westwood;
mod windowed_max;

use crate::config::{Config, Stack};
use crate::delivery::RateSample;
use crate::limits::Limit;
use bentpipe_base::{Cx, Dscp, Duration, Instant, Rate, Size};
use core::fmt::Debug;

/// What a scheme wants the sender to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Bytes that may be in flight.
    pub window: Size,
    /// Rate at which segments leave; `None` sends as soon as the window allows.
    pub pace: Option<Rate>,
    /// Bytes that may leave back to back, whether paced or not.
    pub burst: Size,
    /// Low-priority extra segments outside the window.
    pub probes: Option<Probes>,
    /// A rate to ask the network for (explicit-rate signalling).
    pub ask: Option<Rate>,
    /// Code point of data segments.
    pub mark: Dscp,
}

impl Plan {
    /// Nothing but a window.
    pub const fn window(window: Size) -> Self {
        Self { window, pace: None, burst: Size::MAX, probes: None, ask: None, mark: Dscp::DEFAULT }
    }
}

/// A wish for low-priority probe segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probes {
    /// How many more.
    pub left: u32,
    /// When they are sent.
    pub clock: ProbeClock,
    /// What they carry.
    pub carry: ProbeCarry,
    /// Their code point.
    pub mark: Dscp,
}

/// When probe segments are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeClock {
    /// One per interval.
    Every(Duration),
    /// This many per segment that an acknowledgment tells of and that lets no data segment go; per
    /// acknowledgment that tells of none.
    PerAck(u8),
    /// One per interval while no data waits for its time, the last data segment counted.
    Spare(Duration),
}

/// What a probe segment carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeCarry {
    /// A copy of the last segment sent.
    LastSent,
    /// A copy of each segment not yet acknowledged, SACKed ones excepted, from the oldest on, in turn.
    OldestInTurn,
    /// A copy of any of these, at random, the least copied first.
    Random,
    /// A copy of each of these once, the newest first.
    NewestOnce,
}

/// How the arrival of a probe segment is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProbeSignal {
    /// By the probe option, which both ends understand.
    Option,
    /// By the peer's DSACKs.
    Dsack,
    /// By the peer's echoes of their timestamps, while no loss is being repaired.
    Timestamps,
    /// Not at all: probes are of no use.
    #[default]
    None,
}

/// Where loss recovery stands as an acknowledgment is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Episode {
    /// No loss is being repaired.
    Open,
    /// Fast recovery.
    Fast,
    /// After a retransmission timeout, until everything sent before it is acknowledged.
    Timeout,
    /// This acknowledgment ended an episode.
    Ended,
}

/// What the connection knows of the path. Read-only to a scheme.
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
    /// Stream position acknowledged.
    pub una: u64,
    /// Stream position sent.
    pub next: u64,
    /// Bytes delivered since the connection began, SACKed ones included.
    pub delivered: u64,
    /// Bytes ever believed lost; it only grows.
    pub lost: u64,
    /// Bytes not yet sent, once the end of the stream is known.
    pub rest: Option<Size>,
    /// How probe segments would be known to have arrived.
    pub probes: ProbeSignal,
}

impl Path {
    /// The rate at which `gain` times `window` bytes leave within a round trip; none before the first sample.
    pub fn spread(&self, gain: f64, window: u64) -> Option<Rate> {
        let bps = || (gain * window as f64 * 8.0 / self.srtt.as_secs_f64()) as u64;
        if self.srtt.is_zero() { None } else { Rate::from_bps(bps()) }
    }
}

/// One acknowledgment that delivered something.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// Bytes newly known to have arrived, cumulatively or selectively.
    pub delivered: Size,
    /// Bytes newly acknowledged cumulatively.
    pub acked: Size,
    /// Bytes newly SACKed.
    pub newly_sacked: Size,
    /// Duplicates reported by DSACK that probe segments of our own caused.
    pub own_dsacks: u32,
    /// Round-trip time sample.
    pub rtt: Option<Duration>,
    /// Delivery-rate sample.
    pub rate: Option<RateSample>,
    /// A round trip ended: data sent after the previous round's end was acknowledged.
    pub round_ended: bool,
    /// State of loss recovery.
    pub episode: Episode,
    /// What held the sender back before this acknowledgment. A window grows only while
    /// [`Limit::CongestionWindow`].
    pub limited_by: Limit,
    /// The acknowledgment carries an ECN echo.
    pub marked: bool,
    /// Probe segments newly acknowledged.
    pub probes: u32,
    /// A rate granted by the network.
    pub granted: Option<Grant>,
}

impl Ack {
    /// True when a window that answers losses may grow by this acknowledgment: new data is acknowledged, the
    /// window was the limit, and no loss is being repaired.
    #[inline]
    pub fn may_grow(&self) -> bool {
        self.acked > Size::ZERO
            && self.limited_by == Limit::CongestionWindow
            && matches!(self.episode, Episode::Open | Episode::Timeout)
    }
}

/// A rate granted by the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The rate.
    pub rate: Rate,
    /// Why it changed.
    pub why: GrantReason,
}

/// Why a granted rate changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantReason {
    /// Answer to our request.
    Response,
    /// The network lowered it.
    Reduced,
}

/// Why a scheme should slow down.
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

/// A loss (or mark) that the scheme must answer; at most one per window, except timeouts.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// How it was found.
    pub cause: LossCause,
    /// Bytes newly believed lost.
    pub bytes: Size,
    /// When the oldest lost segment was last sent.
    pub last_sent: Instant,
    /// How often it had been resent before.
    pub resends: u32,
    /// Congestion window when it was first sent.
    pub window_then: Size,
}

/// A scheme has become another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fallback {
    /// The name of what it is now.
    pub to: &'static str,
    /// Why.
    pub why: &'static str,
    /// Since when.
    pub at: Instant,
    /// Data segments that were sent before.
    pub segments: u64,
}

/// A segment was sent.
#[derive(Clone, Copy, Debug)]
pub struct SentSegment {
    /// Payload bytes.
    pub bytes: Size,
    /// It is a retransmission.
    pub resent: bool,
    /// It is a probe.
    pub probe: bool,
}

/// Every scheme: what to do next.
pub trait CongestionControl: Debug + Send {
    /// Something was delivered.
    fn on_ack(&mut self, cx: &mut Cx<'_>, path: &Path, ack: &Ack);
    /// Something was lost or marked.
    fn on_loss(&mut self, cx: &mut Cx<'_>, path: &Path, loss: &Loss);
    /// A segment was sent.
    fn on_sent(&mut self, _cx: &mut Cx<'_>, _path: &Path, _sent: &SentSegment) {}
    /// The last loss was spurious.
    fn on_undo(&mut self, _cx: &mut Cx<'_>, _path: &Path) {}
    /// The sender was idle or left its window unused: do not exceed `window` until it is earned again.
    fn on_restart(&mut self, _cx: &mut Cx<'_>, _path: &Path, _window: Size) {}
    /// What to do next. Pure; asked before every send.
    fn plan(&self, path: &Path) -> Plan;
    /// What the scheme became when it could not go on as itself; `None` while it is itself.
    fn fallback(&self) -> Option<Fallback> {
        None
    }
    /// Slow-start threshold, for traces; `None` when unlimited or unknown.
    fn ssthresh(&self) -> Option<Size> {
        None
    }
}

/// Builds the controller that `config` names, for segments of `mss` bytes with `headers` bytes before them;
/// `granted` came with the handshake.
pub fn build(
    config: &Config,
    mss: Size,
    headers: Size,
    granted: Option<Grant>,
) -> Box<dyn CongestionControl> {
    let start = law::Start { mss, headers, config, granted };
    match config.stack {
        Stack::Rfc => config.scheme.growth.build(&start),
        Stack::Linux => config.scheme.growth.build_linux(&start),
    }
}
