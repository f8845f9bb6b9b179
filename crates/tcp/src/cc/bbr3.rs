//! BBR, version 3.
//!
//! Source: draft-ietf-ccwg-bbr-06, sections 5.3 to 5.6, here (D). As version 1, the path is a rate and a
//! round trip, and the sender paces at gain x rate; but losses above 2 % bound the model (`bbr3/bounds.rs`),
//! and probing is rarer (`bbr3/cycle.rs`, `bbr3/probe_rtt.rs`).
//!   Startup 2.77 -> Drain 0.5 -> DOWN 0.9 -> CRUISE 1 -> REFILL 1, a round -> UP 1.25 -> DOWN ..; window 2
//!     BDP, in UP 2.25
//!   probes every 2 to 3 s, or as many rounds as the BDP has segments, at most 63: as often as Reno would
//!     lose
//!   max_bw: the largest rate of two probe cycles; bw = min(max_bw, short-term bound); 1 % is left to the
//!           queue
//!   ProbeRTT: half a BDP for 200 ms and a round, every 5 s unless a smaller round trip was seen; min_rtt is
//!             of 10 s
//!   UP ends when three rounds bring less than a quarter, on loss, or at once at the long-term bound that the
//!     last probe found too high.
//! Deviations: random draws are a hash of the time. A lost segment is judged by what was in flight when the
//! newest delivered one was sent, for the engine tells of losses with acknowledgments. Samples of ProbeRTT
//! are not marked as limited by the application. No ECN. Defaults: the draft's.

mod bounds;
mod cycle;
mod probe_rtt;

use self::bounds::{Bounds, Sample};
use super::law::{Law, Params as _};
use super::standard::mix;
use super::windowed_max::WindowedMax;
use super::{Ack, CongestionControl, Episode, Loss, LossCause, Path, Plan, SentSegment};
use crate::params;
use bentpipe_base::{Cx, Duration, Instant, Rate, Size};
use std::collections::VecDeque;

/// Cycles over which max_bw is the maximum.
const MAX_BW_CYCLES: u64 = 2;
/// Rounds over which the excess of compressed acknowledgments is the maximum.
const EXTRA_ACKED_ROUNDS: u64 = 10;
/// Share of max_bw that is left so that queues drain.
const PACING_MARGIN: f64 = 0.01;
/// Segments in flight that keep an ACK clock going.
const MIN_SEGMENTS: u64 = 4;
/// Shortest time between probes; up to a second is added.
const PROBE_WAIT: Duration = Duration::from_secs(2);
/// Largest send quantum.
const MOST_QUANTUM: u64 = 65_536;

params! {
    /// Parameters of BBR version 3.
    pub struct Bbr3Params {
        /// Time after which ProbeRTT looks for a smaller round trip.
        probe_rtt_interval: Duration = Duration::from_secs(5), from Duration::from_secs(1), to Duration::from_secs(3600);
        /// Length of ProbeRTT, beside a round.
        probe_rtt_time: Duration = Duration::from_millis(200), from Duration::from_millis(1), to Duration::from_secs(10);
    }
}

/// For the table of schemes.
pub const LAW: Law = Law {
    params: Bbr3Params::LIST,
    ..Law::new("bbr3", |start, values| {
        let window = u64::from(start.config.initial_window) * start.mss.0;
        Box::new(Bbr3::new(Bbr3Params::of(values), window, start.mss.0))
    })
};

/// (D) 5.1: what the flow is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl State {
    const fn pacing_gain(self) -> f64 {
        match self {
            Self::Startup => 2.77,
            Self::Drain => 0.5,
            Self::Down => 0.9,
            Self::Up => 1.25,
            Self::Cruise | Self::Refill | Self::ProbeRtt => 1.0,
        }
    }

    const fn cwnd_gain(self) -> f64 {
        match self {
            Self::Up => 2.25,
            Self::ProbeRtt => 0.5,
            _ => 2.0,
        }
    }

    const fn probes_bw(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }

    const fn in_cycle(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }
}

/// Which phase the data was sent in that is acknowledged now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// (D) 5.3.1.2: does the rate still grow?
#[derive(Clone, Copy, Debug, Default)]
struct FullPipe {
    rate: u64,
    rounds: u32,
    /// The present probe has found the end.
    now: bool,
    /// Startup is over.
    reached: bool,
}

/// What was true as segments were sent, until they are acknowledged.
#[derive(Clone, Copy, Debug)]
struct Sent {
    delivered: u64,
    in_flight: u64,
    lost: u64,
}

/// The BBR version 3 controller.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    params: Bbr3Params,
    mss: u64,
    initial: u64,
    state: State,
    ack_phase: AckPhase,
    max_bw: WindowedMax,
    cycles: u64,
    rounds: u64,
    rounds_since_probe: u64,
    round_end: u64,
    round_began: bool,
    full: FullPipe,
    bounds: Bounds,
    /// Samples are of a probe that was not answered yet.
    probe_sample: bool,
    /// The last probe lost too much; and the present one therefore stops at the bound.
    too_high: bool,
    precautionary: bool,
    cycle_at: Instant,
    probe_wait: Duration,
    min_rtt: Option<Duration>,
    min_rtt_at: Instant,
    /// The smallest round trip since the last ProbeRTT, and when it was seen.
    probe_rtt: (Option<Duration>, Instant),
    probe_rtt_expired: bool,
    probe_rtt_until: Option<Instant>,
    probe_rtt_round: bool,
    extra: WindowedMax,
    extra_since: Instant,
    extra_delivered: u64,
    sent: VecDeque<Sent>,
    cwnd: u64,
    saved: u64,
    undo: (u64, (u64, u64)),
    pace: u64,
    recovering: bool,
    lost_before: u64,
    idle: bool,
}

impl Bbr3 {
    /// Starts with a window of `initial` bytes and segments of `mss` bytes.
    pub fn new(params: Bbr3Params, initial: u64, mss: u64) -> Self {
        Self {
            params,
            mss,
            initial,
            state: State::Startup,
            ack_phase: AckPhase::Init,
            max_bw: WindowedMax::new(MAX_BW_CYCLES),
            cycles: 0,
            rounds: 0,
            rounds_since_probe: 0,
            round_end: 0,
            round_began: false,
            full: FullPipe::default(),
            bounds: Bounds::new(),
            probe_sample: false,
            too_high: false,
            precautionary: false,
            cycle_at: Instant::ZERO,
            probe_wait: PROBE_WAIT,
            min_rtt: None,
            min_rtt_at: Instant::ZERO,
            probe_rtt: (None, Instant::ZERO),
            probe_rtt_expired: false,
            probe_rtt_until: None,
            probe_rtt_round: false,
            extra: WindowedMax::new(EXTRA_ACKED_ROUNDS),
            extra_since: Instant::ZERO,
            extra_delivered: 0,
            sent: VecDeque::new(),
            cwnd: initial,
            saved: 0,
            undo: (u64::MAX, (u64::MAX, u64::MAX)),
            pace: 0,
            recovering: false,
            lost_before: 0,
            idle: false,
        }
    }

    /// (D) 5.5.10.3: the rate in force, bits per second.
    fn bw(&self) -> u64 {
        self.max_bw.get().min(self.bounds.short.0)
    }

    const fn least(&self) -> u64 {
        MIN_SEGMENTS * self.mss
    }

    fn quantum(&self) -> u64 {
        (self.pace / 8 / 1000).min(MOST_QUANTUM).max(2 * self.mss)
    }

    fn bdp(&self, gain: f64) -> u64 {
        let Some(rtt) = self.min_rtt else { return self.initial };
        (gain * self.bw() as f64 / 8.0 * rtt.as_secs_f64()) as u64
    }

    /// (D) 5.6.4.2.
    fn quantized(&self, inflight: u64) -> u64 {
        let room = if self.state == State::Up { 2 * self.mss } else { 0 };
        inflight.max(3 * self.quantum()).max(self.least()) + room
    }

    fn target(&self) -> u64 {
        self.bdp(1.0).min(self.cwnd)
    }

    /// The sample, with what was true as its segment was sent.
    fn sample(&mut self, path: &Path, ack: &Ack) -> Option<Sample> {
        let rate = ack.rate?;
        while self.sent.len() > 1 && self.sent.get(1).is_some_and(|s| s.delivered <= rate.prior) {
            self.sent.pop_front();
        }
        let sent = self.sent.front().copied();
        Some(Sample {
            rate: rate.rate().map_or(0, Rate::bps),
            prior: rate.prior,
            delivered: rate.delivered.0,
            app_limited: rate.app_limited,
            in_flight: sent.map_or(path.in_flight.0, |s| s.in_flight),
            lost: path.lost - sent.map_or(path.lost, |s| s.lost.min(path.lost)),
        })
    }

    /// (D) 5.5.10: losses found with this acknowledgment.
    fn take_losses(&mut self, now: Instant, path: &Path, sample: &Sample) {
        if self.bounds.note_loss(path.delivered) {
            self.undo = (self.bounds.long, self.bounds.short);
        }
        if self.probe_sample && sample.too_high() {
            self.too_high = true;
            self.probe_sample = false;
            if !sample.app_limited {
                self.bounds.cut_long_term(sample.in_flight_at_loss(self.mss), self.target());
            }
            if self.state == State::Up {
                self.start_down(now, path);
            }
        }
    }

    /// (D) 5.5.1 and 5.5.5: rounds and max_bw.
    fn take_rate(&mut self, path: &Path, sample: &Sample) {
        self.round_began = sample.prior >= self.round_end;
        if self.round_began {
            self.round_end = path.delivered;
            self.rounds += 1;
            self.rounds_since_probe += 1;
        }
        if sample.rate > 0 && (sample.rate >= self.max_bw.get() || !sample.app_limited) {
            self.max_bw.take(self.cycles, sample.rate);
        }
    }

    /// (D) 5.5.9: acknowledgments that come in bunches need a larger window.
    fn take_aggregation(&mut self, now: Instant, delivered: u64) {
        let expected = |since: Instant| self.bw() as f64 / 8.0 * now.since(since).as_secs_f64();
        let mut due = expected(self.extra_since);
        if self.extra_delivered as f64 <= due {
            self.extra_delivered = 0;
            self.extra_since = now;
            due = 0.0;
        }
        self.extra_delivered += delivered;
        let extra = ((self.extra_delivered as f64 - due).max(0.0) as u64).min(self.cwnd);
        if !self.full.reached {
            self.extra = WindowedMax::new(EXTRA_ACKED_ROUNDS); // in Startup only the present counts
        }
        self.extra.take(self.rounds, extra);
    }

    const fn start_round(&mut self, path: &Path) {
        self.round_end = path.delivered;
    }

    fn save_window(&mut self) {
        let whole = !self.recovering && self.state != State::ProbeRtt;
        self.saved = if whole { self.cwnd } else { self.saved.max(self.cwnd) };
    }

    /// (D) 5.6.2.
    fn set_pace(&mut self, path: &Path) {
        if self.max_bw.get() == 0 {
            self.pace = self.first_pace(path).unwrap_or(self.pace);
            return;
        }
        let rate = (self.state.pacing_gain() * self.bw() as f64 * (1.0 - PACING_MARGIN)) as u64;
        if self.full.reached || rate > self.pace {
            self.pace = rate;
        }
    }

    /// (D) 5.6.4.
    fn set_window(&mut self, path: &Path, acked: u64) {
        let most = self.quantized(self.bdp(self.state.cwnd_gain()) + self.extra.get());
        if self.full.reached {
            self.cwnd = (self.cwnd + acked).min(most);
        } else if self.cwnd < most || path.delivered < self.initial {
            self.cwnd += acked;
        }
        self.cwnd = self.cwnd.max(self.least());
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_window());
        }
        let cap = match self.state {
            State::Down | State::Refill | State::Up => self.bounds.long,
            State::Cruise | State::ProbeRtt => self.bounds.with_headroom(self.mss, self.least()),
            State::Startup | State::Drain => u64::MAX,
        };
        self.cwnd = self.cwnd.min(cap.min(self.bounds.short.1).max(self.least()));
    }

    /// The pace before any rate is known: the window over the round trip, times the gain.
    fn first_pace(&self, path: &Path) -> Option<u64> {
        path.spread(State::Startup.pacing_gain(), self.cwnd).map(Rate::bps)
    }
}

impl CongestionControl for Bbr3 {
    fn on_ack(&mut self, cx: &mut Cx<'_>, path: &Path, ack: &Ack) {
        let found = path.lost > self.lost_before;
        self.lost_before = path.lost;
        if self.recovering && matches!(ack.episode, Episode::Open | Episode::Ended) {
            self.recovering = false;
            self.cwnd = self.cwnd.max(self.saved);
        }
        self.round_began = false;
        let sample = self.sample(path, ack);
        if let Some(sample) = &sample {
            if found {
                self.take_losses(cx.now, path, sample);
            }
            self.bounds.take(sample, path.delivered);
            self.take_rate(path, sample);
            self.bounds.adapt(self.state.probes_bw(), self.max_bw.get(), self.cwnd);
            self.take_aggregation(cx.now, ack.delivered.0);
            self.check_full(sample);
            self.steer(cx.now, path, ack, sample);
        }
        self.take_rtt(cx.now, ack);
        self.check_probe_rtt(cx.now, path);
        self.idle = false;
        if let Some(sample) = &sample {
            self.bounds.advance(sample);
        }
        self.set_pace(path);
        self.set_window(path, ack.delivered.0);
    }

    fn on_loss(&mut self, _cx: &mut Cx<'_>, path: &Path, loss: &Loss) {
        if loss.cause == LossCause::Mark {
            return;
        }
        self.save_window();
        self.recovering = true;
        if loss.cause != LossCause::Fast {
            self.cwnd = path.in_flight.0 + self.mss;
        }
    }

    fn on_sent(&mut self, cx: &mut Cx<'_>, path: &Path, sent: &SentSegment) {
        if path.flight == Size::ZERO && !sent.resent {
            // (D) 5.4.1: after an idle time it goes on at the rate it knew
            self.idle = true;
            self.extra_since = cx.now;
            if self.state.in_cycle() {
                self.pace = self.bw();
            }
        }
        let now =
            Sent { delivered: path.delivered, in_flight: path.in_flight.0 + sent.bytes.0, lost: path.lost };
        match self.sent.back_mut() {
            Some(last) if last.delivered == now.delivered => *last = now,
            _ => self.sent.push_back(now),
        }
    }

    fn on_undo(&mut self, _cx: &mut Cx<'_>, _path: &Path) {
        self.recovering = false;
        self.cwnd = self.cwnd.max(self.saved);
        self.bounds.lost_in_round = false;
        self.bounds.long = self.bounds.long.max(self.undo.0);
        self.bounds.short.0 = self.bounds.short.0.max(self.undo.1.0);
        self.bounds.short.1 = self.bounds.short.1.max(self.undo.1.1);
    }

    fn plan(&self, path: &Path) -> Plan {
        let pace = if self.pace > 0 { Some(self.pace) } else { self.first_pace(path) };
        Plan {
            pace: pace.and_then(Rate::from_bps),
            burst: Size(self.quantum()),
            ..Plan::window(Size(self.cwnd))
        }
    }
}

#[cfg(test)]
mod tests;
