//! BBR, version 3.
//!
//! Source: draft-ietf-ccwg-bbr-06, sections 5.3 to 5.6, cited as (D). As in version 1, the model is a rate
//! and an RTT, and the sender paces at gain x rate. In addition losses above 2 % bound the model
//! (`bbr3/bounds.rs`), and probing is rarer (`bbr3/cycle.rs`, `bbr3/probe_rtt.rs`).
//!   Pacing gains: Startup 2.77 -> Drain 0.5 -> DOWN 0.9 -> CRUISE 1 -> REFILL 1, a round -> UP 1.25 -> DOWN
//!   Window: 2 BDP, in UP 2.25
//!   Bandwidth probes: every 2 to 3 s, or as many rounds as the BDP has segments, at most 63: as often as
//!     Reno would have a loss
//!   max_bw: the largest rate of two probe cycles; bw = min(max_bw, short-term bound); the pace is 1 % lower
//!   ProbeRTT: half a BDP for 200 ms and a round, every 5 s unless a smaller RTT was seen; min_rtt is the
//!     smallest RTT of 10 s
//!   UP ends when the rate has not grown by a quarter for three rounds, on loss, or at the long-term bound if
//!     the last probe lost too much there
//! Deviations: random draws are a hash of the time. The engine reports losses with acknowledgments, so a lost
//! segment is judged by what was in flight when the newest delivered segment was sent. Samples of ProbeRTT
//! are not marked as application-limited. No ECN. Defaults: the draft's.

mod bounds;
mod cycle;
mod probe_rtt;

use self::bounds::{Bounds, Sample};
use super::law::{Algorithm, ControllerStart, Params as _};
use super::standard::splitmix64;
use super::windowed_max::WindowedMax;
use super::{Ack, CongestionControl, Episode, Loss, LossCause, Path, Plan, SentSegment};
use crate::params;
use bentpipe_base::{Cx, Duration, Instant, Rate, Size};
use std::collections::VecDeque;

/// Length of max_bw's maximum filter in cycles.
const MAX_BW_CYCLES: u64 = 2;
/// Length of the maximum filter of ACK aggregation, in rounds.
const EXTRA_ACKED_ROUNDS: u64 = 10;
/// Share of the rate by which the pace is lower, so that queues drain.
const PACING_MARGIN: f64 = 0.01;
/// Smallest window in segments; it keeps the ACK clock running.
const MIN_SEGMENTS: u64 = 4;
/// Shortest time between probes; up to one second is added at random.
const PROBE_WAIT: Duration = Duration::from_secs(2);
/// Largest send quantum in bytes.
const MOST_QUANTUM: u64 = 65_536;

params! {
    /// Parameters of BBR version 3.
    pub struct Bbr3Params {
        /// Time after which ProbeRTT measures the smallest RTT again.
        probe_rtt_interval: Duration = Duration::from_secs(5), from Duration::from_secs(1), to Duration::from_secs(3600);
        /// Shortest time in ProbeRTT; it also lasts at least one round trip.
        probe_rtt_time: Duration = Duration::from_millis(200), from Duration::from_millis(1), to Duration::from_secs(10);
    }
}

/// The entry in the table of schemes (`scheme.rs`).
pub const ALGORITHM: Algorithm = Algorithm {
    ignores_losses: true,
    ..Algorithm::of::<Bbr3Params>("bbr3", |start, values| Box::new(Bbr3::new(start, Bbr3Params::of(values))))
};

/// The phase in which the data was sent that is acknowledged now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum AckPhase {
    #[default]
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// The state machine of (D) 5.1; Down to Up are the cycle ProbeBW.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
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

/// (D) 5.3.1.2: detects that the rate has stopped growing, so the pipe is full.
#[derive(Clone, Copy, Debug, Default)]
struct FullPipe {
    rate: u64,
    rounds: u32,
    /// The present probe has reached the path's rate.
    now: bool,
    /// Startup is over.
    reached: bool,
}

/// State when a segment was sent, kept until it is acknowledged; in bytes.
#[derive(Clone, Copy, Debug)]
struct Sent {
    delivered: u64,
    in_flight: u64,
    lost: u64,
}

/// The BBR version 3 controller.
#[derive(Clone, Debug, Default)]
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
    /// The present samples belong to a probe that has not been evaluated yet.
    probe_sample: bool,
    /// The last probe lost too much; `precautionary`: therefore the present probe stopped at the bound.
    too_high: bool,
    precautionary: bool,
    cycle_at: Instant,
    probe_wait: Duration,
    min_rtt: Option<Duration>,
    min_rtt_at: Instant,
    /// The smallest RTT since the last ProbeRTT, and when it was measured.
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
    /// Starts with the host's initial window.
    pub fn new(start: &ControllerStart<'_>, params: Bbr3Params) -> Self {
        Self {
            params,
            mss: start.mss.0,
            initial: start.initial(),
            max_bw: WindowedMax::new(MAX_BW_CYCLES),
            bounds: Bounds::new(),
            probe_wait: PROBE_WAIT,
            extra: WindowedMax::new(EXTRA_ACKED_ROUNDS),
            cwnd: start.initial(),
            undo: (u64::MAX, (u64::MAX, u64::MAX)),
            ..Self::default()
        }
    }

    /// (D) 5.5.10.3: returns the rate of the model in bits per second.
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

    /// (D) 5.6.4.2: rounds `inflight` up to what the send quantum needs, in bytes.
    fn quantized(&self, inflight: u64) -> u64 {
        let room = if self.state == State::Up { 2 * self.mss } else { 0 };
        inflight.max(3 * self.quantum()).max(self.least()) + room
    }

    fn target(&self) -> u64 {
        self.bdp(1.0).min(self.cwnd)
    }

    /// Returns the rate sample, with the state when its segment was sent.
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

    /// (D) 5.5.10: processes losses reported with this acknowledgment.
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

    /// (D) 5.5.1 and 5.5.5: updates the round count and max_bw.
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

    /// (D) 5.5.9: measures ACK aggregation, which needs a larger window.
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
            self.extra = WindowedMax::new(EXTRA_ACKED_ROUNDS); // in Startup only this sample counts
        }
        self.extra.take(self.rounds, extra);
    }

    fn save_window(&mut self) {
        let whole = !self.recovering && self.state != State::ProbeRtt;
        self.saved = if whole { self.cwnd } else { self.saved.max(self.cwnd) };
    }

    /// (D) 5.6.2: sets the pacing rate.
    fn set_pace(&mut self, path: &Path) {
        if self.max_bw.get() == 0 {
            self.pace = path.spread(State::Startup.pacing_gain(), self.cwnd).map_or(self.pace, Rate::bps);
            return;
        }
        let rate = (self.state.pacing_gain() * self.bw() as f64 * (1.0 - PACING_MARGIN)) as u64;
        if self.full.reached || rate > self.pace {
            self.pace = rate;
        }
    }

    /// (D) 5.6.4: sets the window.
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
            self.update_state(cx.now, path, ack, sample);
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
            // (D) 5.4.1: resumes at the rate of the model after an idle time
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
        let pace = Rate::from_bps(self.pace).or_else(|| path.spread(State::Startup.pacing_gain(), self.cwnd));
        Plan { pace, burst: Size(self.quantum()), ..Plan::window(Size(self.cwnd)) }
    }
}

#[cfg(test)]
mod tests;
