//! BBR, version 1.
//!
//! Source: Cardwell, Cheng, Gunn, Yeganeh, Jacobson, "BBR: congestion-based congestion control", ACM Queue
//! 14(5), 2016, and draft-cardwell-iccrg-bbr-congestion-control-00 (2017), sections 4.1 to 4.3, cited as (D).
//! BBR models the path by BtlBw, the largest delivery rate of the last 10 round trips, and RTprop, the
//! smallest RTT of the last 10 s. It paces at gain x BtlBw and keeps at most cwnd_gain x BtlBw x RTprop in
//! flight. Losses do not change the model.
//!   Startup: gain 2/ln 2 = 2.885 until BtlBw has not grown by a quarter for three round trips
//!   Drain: the inverse of that gain until one BDP is in flight
//!   ProbeBW: gains 5/4, 3/4, 1, 1, 1, 1, 1, 1, one RTprop each; cwnd_gain 2
//!   ProbeRTT: four segments for 200 ms and a round trip, when RTprop was not measured again for 10 s
//! Recovery ((D) 4.2.3.4): packet conservation for the first round trip; the window is restored at the end.
//! Deviations: the first phase of ProbeBW is a hash of the time, not a random number; samples of ProbeRTT are
//! not marked as application-limited (they are below the maximum anyway); only a smaller sample renews RTprop
//! (`take_rtt`); no policer detection (Linux has one). Defaults: the paper's.

use super::law::{Algorithm, ControllerStart, Params as _};
use super::standard::splitmix64;
use super::windowed_max::WindowedMax;
use super::{Ack, CongestionControl, Episode, Loss, LossCause, Path, Plan, SentSegment};
use crate::params;
use bentpipe_base::{Cx, Duration, Instant, Rate, Size};

/// Length of BtlBw's maximum filter in round trips ((D) 4.1.1.3).
const BTLBW_ROUNDS: u64 = 10;
/// 2/ln 2: the smallest gain with which the rate doubles per round ((D) 4.3.2).
const HIGH_GAIN: f64 = 2.885;
/// Pacing gains of the ProbeBW cycle ((D) 4.3.4).
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Startup ends when BtlBw has not grown by this factor for three round trips ((D) 4.3.2.2).
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// Smallest window in segments; it keeps the ACK clock running ((D) 4.2.3.2).
const MIN_SEGMENTS: u64 = 4;
/// Largest send quantum in bytes ((D) 4.2.2).
const MOST_QUANTUM: u64 = 65_536;

params! {
    /// Parameters of BBR.
    pub struct BbrParams {
        /// Largest amount in flight, in bandwidth-delay products.
        cwnd_gain: f64 = 2.0, from 1.0, to 10.0;
        /// RTprop expires after this time, and ProbeRTT measures it again.
        rtprop_window: Duration = Duration::from_secs(10), from Duration::from_secs(1), to Duration::from_secs(3600);
        /// Shortest time in ProbeRTT; it also lasts at least one round trip.
        probe_rtt_time: Duration = Duration::from_millis(200), from Duration::from_millis(1), to Duration::from_secs(10);
        /// A loss in Startup stops growth for a round trip (draft, Linux). Off: it does not, for random
        /// losses.
        startup_conserves: bool = true;
    }
}

/// The entry in the table of schemes (`scheme.rs`).
pub const ALGORITHM: Algorithm = Algorithm {
    ignores_losses: true,
    ..Algorithm::of::<BbrParams>("bbr", |start, values| Box::new(Bbr::new(start, BbrParams::of(values))))
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Doubles the rate per round until the pipe is full.
    #[default]
    Startup,
    /// Drains the queue that Startup built.
    Drain,
    /// Cycles through the gains; `phase` indexes `CYCLE`.
    ProbeBw { phase: usize },
    /// Drains the path to measure RTprop.
    ProbeRtt,
}

/// The BBR controller.
#[derive(Clone, Debug, Default)]
pub struct Bbr {
    params: BbrParams,
    mss: u64,
    state: State,
    btlbw: WindowedMax,
    rounds: u64,
    /// Bytes delivered when the round began; it ends when a segment sent after that is delivered.
    round_end: u64,
    round_began: bool,
    rtprop: Option<Duration>,
    rtprop_at: Instant,
    rtprop_expired: bool,
    /// Startup: BtlBw when it last grew by a quarter, and round trips since then.
    full_bw: u64,
    full_rounds: u32,
    filled: bool,
    phase_began: Instant,
    /// ProbeRTT: earliest end, and whether a round trip has passed.
    probe_rtt_until: Option<Instant>,
    probe_rtt_round: bool,
    initial: u64,
    cwnd: u64,
    /// The window to restore after recovery or ProbeRTT.
    saved: u64,
    recovering: bool,
    conserving: bool,
    /// Bits per second; 0 before the first round trip is known.
    pace: u64,
    lost_before: u64,
    idle: bool,
}

impl Bbr {
    /// Starts with the host's initial window.
    pub fn new(start: &ControllerStart<'_>, params: BbrParams) -> Self {
        Self {
            params,
            mss: start.mss.0,
            btlbw: WindowedMax::new(BTLBW_ROUNDS),
            initial: start.initial(),
            cwnd: start.initial(),
            ..Self::default()
        }
    }

    fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => HIGH_GAIN,
            State::Drain => 1.0 / HIGH_GAIN,
            State::ProbeBw { phase } => CYCLE[phase],
            State::ProbeRtt => 1.0,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::Startup | State::Drain => HIGH_GAIN,
            State::ProbeBw { .. } => self.params.cwnd_gain,
            State::ProbeRtt => 1.0,
        }
    }

    /// Returns the send quantum in bytes: the largest burst ((D) 4.2.2).
    fn quantum(&self) -> u64 {
        match self.pace {
            0..1_200_000 => self.mss,
            1_200_000..24_000_000 => 2 * self.mss,
            fast => (fast / 8 / 1000).min(MOST_QUANTUM),
        }
    }

    /// Returns `gain` bandwidth-delay products plus three send quanta, in bytes ((D) 4.2.3.2).
    fn inflight(&self, gain: f64) -> u64 {
        let Some(rtprop) = self.rtprop else { return self.initial };
        let bdp = self.btlbw.get() as f64 / 8.0 * rtprop.as_secs_f64();
        (gain * bdp) as u64 + 3 * self.quantum()
    }

    /// Updates the round count and BtlBw ((D) 4.1.1).
    fn take_rate(&mut self, path: &Path, ack: &Ack) {
        self.round_began = false;
        let Some(sample) = ack.rate else { return };
        if sample.prior >= self.round_end {
            self.round_end = path.delivered;
            self.rounds += 1;
            self.round_began = true;
            self.conserving = false;
        }
        let rate = sample.rate().map_or(0, Rate::bps);
        if rate >= self.btlbw.get() || !sample.app_limited {
            self.btlbw.take(self.rounds, rate);
        }
        self.check_full(sample.app_limited);
    }

    /// Checks whether Startup has filled the pipe ((D) 4.3.2.2).
    fn check_full(&mut self, app_limited: bool) {
        if self.filled || !self.round_began || app_limited {
            return;
        }
        if self.btlbw.get() as f64 >= self.full_bw as f64 * FULL_GROWTH {
            self.full_bw = self.btlbw.get();
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.filled = self.full_rounds >= FULL_ROUNDS;
    }

    /// Updates RTprop ((D) 4.1.2). An equal sample does not renew it, as in Linux since the end of 2020 and
    /// in draft-ietf-ccwg-bbr: with exact or coarse clocks equal samples are common and would prevent
    /// ProbeRTT.
    fn take_rtt(&mut self, now: Instant, ack: &Ack) {
        self.rtprop_expired = self.rtprop.is_some() && now.since(self.rtprop_at) > self.params.rtprop_window;
        if let Some(rtt) = ack.rtt
            && (self.rtprop_expired || self.rtprop.is_none_or(|least| rtt < least))
        {
            self.rtprop = Some(rtt);
            self.rtprop_at = now;
        }
    }

    /// Changes state ((D) 4.3.3 and 4.3.4). `before` is what was in flight before this acknowledgment.
    fn update_state(&mut self, now: Instant, path: &Path, before: u64, lost: bool) {
        if let State::ProbeBw { phase } = self.state {
            let gain = CYCLE[phase];
            let full = now.since(self.phase_began) > self.rtprop.unwrap_or_default();
            let next = if gain > 1.0 {
                full && (lost || before >= self.inflight(gain))
            } else {
                full || (gain < 1.0 && before <= self.inflight(1.0))
            };
            if next {
                self.enter_phase(now, (phase + 1) % CYCLE.len());
            }
        }
        if self.state == State::Startup && self.filled {
            self.state = State::Drain;
        }
        if self.state == State::Drain && path.in_flight.0 <= self.inflight(1.0) {
            self.enter_probe_bw(now);
        }
    }

    /// Enters ProbeBW in any phase except the one with gain 3/4.
    fn enter_probe_bw(&mut self, now: Instant) {
        let drawn = splitmix64(now.0) as usize % (CYCLE.len() - 1);
        self.enter_phase(now, if drawn == 0 { 0 } else { drawn + 1 });
    }

    const fn enter_phase(&mut self, now: Instant, phase: usize) {
        self.state = State::ProbeBw { phase };
        self.phase_began = now;
    }

    /// Enters and leaves ProbeRTT ((D) 4.3.5).
    fn check_probe_rtt(&mut self, now: Instant, path: &Path) {
        if self.state != State::ProbeRtt && self.rtprop_expired && !self.idle {
            self.save_window();
            self.state = State::ProbeRtt;
            self.probe_rtt_until = None;
        }
        if self.state != State::ProbeRtt {
            return;
        }
        let Some(until) = self.probe_rtt_until else {
            if path.in_flight.0 <= MIN_SEGMENTS * self.mss {
                self.probe_rtt_until = Some(now + self.params.probe_rtt_time);
                (self.probe_rtt_round, self.round_end) = (false, path.delivered);
            }
            return;
        };
        self.probe_rtt_round |= self.round_began;
        if self.probe_rtt_round && now > until {
            self.rtprop_at = now;
            self.cwnd = self.cwnd.max(self.saved);
            if self.filled {
                self.enter_probe_bw(now);
            } else {
                self.state = State::Startup;
            }
        }
    }

    const fn save_window(&mut self) {
        let whole = !self.recovering && !matches!(self.state, State::ProbeRtt);
        if whole || self.cwnd > self.saved {
            self.saved = self.cwnd;
        }
    }

    /// Sets the pacing rate ((D) 4.2.1). Until the pipe is full it only rises.
    fn set_pace(&mut self, path: &Path) {
        if self.btlbw.get() == 0 {
            self.pace = path.spread(HIGH_GAIN, self.cwnd).map_or(self.pace, Rate::bps);
            return;
        }
        let rate = (self.pacing_gain() * self.btlbw.get() as f64) as u64;
        if self.filled || rate > self.pace {
            self.pace = rate;
        }
    }

    /// Sets the window ((D) 4.2.3).
    fn set_window(&mut self, path: &Path, delivered: u64, lost: u64) {
        let target = self.inflight(self.cwnd_gain());
        if self.recovering {
            self.cwnd = self.cwnd.saturating_sub(lost).max(self.mss);
            if self.conserving {
                self.cwnd = self.cwnd.max(path.in_flight.0 + delivered);
            }
        }
        if !self.conserving {
            if self.filled {
                self.cwnd = (self.cwnd + delivered).min(target);
            } else if self.cwnd < target || path.delivered < self.initial {
                self.cwnd += delivered;
            }
            self.cwnd = self.cwnd.max(MIN_SEGMENTS * self.mss);
        }
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(MIN_SEGMENTS * self.mss);
        }
    }
}

impl CongestionControl for Bbr {
    fn on_ack(&mut self, cx: &mut Cx<'_>, path: &Path, ack: &Ack) {
        let lost = path.lost - self.lost_before;
        self.lost_before = path.lost;
        if self.recovering && matches!(ack.episode, Episode::Open | Episode::Ended) {
            self.recovering = false;
            self.conserving = false;
            self.cwnd = self.cwnd.max(self.saved);
        }
        self.take_rate(path, ack);
        self.take_rtt(cx.now, ack);
        self.update_state(cx.now, path, path.in_flight.0 + ack.delivered.0, lost > 0);
        self.check_probe_rtt(cx.now, path);
        self.idle = false;
        self.set_pace(path);
        self.set_window(path, ack.delivered.0, lost);
    }

    fn on_loss(&mut self, _cx: &mut Cx<'_>, path: &Path, loss: &Loss) {
        match loss.cause {
            LossCause::Fast => {
                self.save_window();
                self.recovering = true;
                if self.filled || self.params.startup_conserves {
                    self.conserving = true;
                    self.round_end = path.delivered;
                    self.cwnd = path.in_flight.0.max(self.mss) + self.mss;
                }
            }
            LossCause::Timeout | LossCause::RepeatedTimeout => {
                self.save_window();
                self.recovering = true;
                self.conserving = false;
                self.cwnd = self.mss;
            }
            LossCause::Mark => {} // version 1 does not react to ECN
        }
    }

    /// (D) 4.2.1 and 4.3.4.4: resumes at BtlBw after an idle time.
    fn on_sent(&mut self, _cx: &mut Cx<'_>, path: &Path, sent: &SentSegment) {
        if path.flight == Size::ZERO && !sent.resent {
            self.idle = true;
            if matches!(self.state, State::ProbeBw { .. }) {
                self.pace = self.btlbw.get();
            }
        }
    }

    fn on_undo(&mut self, _cx: &mut Cx<'_>, _path: &Path) {
        self.recovering = false;
        self.conserving = false;
        self.cwnd = self.cwnd.max(self.saved);
    }

    fn plan(&self, path: &Path) -> Plan {
        let pace = Rate::from_bps(self.pace).or_else(|| path.spread(HIGH_GAIN, self.cwnd));
        Plan { pace, burst: Size(self.quantum()), ..Plan::window(Size(self.cwnd)) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::Line;
    use super::*;
    use crate::cc::law::Growth;

    /// 8 Mbit/s and 100 ms: 1000 segments per second, a BDP of 100 segments.
    fn line() -> Line {
        Line::new(Growth::of(&ALGORITHM), 8, Duration::from_millis(100))
    }

    fn seconds(s: u64) -> Duration {
        Duration::from_secs(s)
    }

    /// ProbeBW paces at 5/4, 3/4 and six times 1, one RTprop each.
    #[test]
    fn the_gain_cycle() {
        let mut l = line();
        l.run(seconds(3), |_| ());
        let mut phases: Vec<(Instant, f64)> = Vec::new();
        l.run(seconds(6), |l| {
            let gain = libm::round(l.gain() * 20.0) / 20.0;
            if phases.last().is_none_or(|(_, last)| (last - gain).abs() > 0.01) {
                phases.push((l.now, gain));
            }
        });
        let inner = &phases[1..phases.len() - 1];
        assert!(inner.len() >= 18, "{phases:?}");
        let up = inner.iter().position(|p| p.1 > 1.2).expect("a phase up");
        for three in inner[up..].windows(4).step_by(3) {
            let [(up, a), (down, b), (cruise, c), (end, _)] = three else { panic!() };
            assert!(
                (a - 1.25).abs() < 0.01 && (b - 0.75).abs() < 0.01 && (c - 1.0).abs() < 0.01,
                "{three:?}"
            );
            let lasted =
                [down.since(*up), cruise.since(*down), end.since(*cruise)].map(Duration::as_secs_f64);
            assert!((0.09..0.16).contains(&lasted[0]), "up: {lasted:?}");
            assert!((0.02..0.11).contains(&lasted[1]), "down: {lasted:?}");
            assert!((0.59..0.65).contains(&lasted[2]), "six phases: {lasted:?}");
        }
    }

    /// Startup fills the pipe and Drain empties the queue: then about one BDP is in flight.
    #[test]
    fn startup_fills_and_drain_empties() {
        let mut l = line();
        let mut longest = Duration::ZERO;
        l.run(Duration::from_millis(700), |l| longest = longest.max(l.queue()));
        assert!(l.delivered() > 250_000, "{}", l.delivered());
        assert!(longest <= Duration::from_millis(250), "at most the cwnd gain less one BDP: {longest}");
        l.run(Duration::from_millis(1300), |_| ());
        assert!(l.queue() <= Duration::from_millis(40), "{}", l.queue());
        assert!((90..=140).contains(&l.in_flight()), "{}", l.in_flight());
    }

    /// ProbeRTT comes every ten seconds: four segments for 200 ms and a round trip.
    #[test]
    fn probe_rtt_comes_every_ten_seconds() {
        let mut l = line();
        l.run(seconds(3), |_| ());
        let mut low: Vec<(Instant, Instant)> = Vec::new();
        l.run(seconds(30), |l| {
            if l.in_flight() <= MIN_SEGMENTS {
                match low.last_mut() {
                    Some((_, end)) if l.now.since(*end) < seconds(1) => *end = l.now,
                    _ => low.push((l.now, l.now)),
                }
            }
        });
        assert!((2..=3).contains(&low.len()), "{low:?}");
        for (from, to) in &low {
            let lasted = to.since(*from).as_secs_f64();
            assert!((0.2..0.45).contains(&lasted), "{lasted}");
        }
        let gap = low[1].0.since(low[0].0).as_secs_f64();
        assert!((10.0..11.5).contains(&gap), "{gap}");
    }

    #[test]
    fn random_losses_say_nothing() {
        let mut l = line();
        l.lose_one_in = 50;
        l.run(seconds(3), |_| ());
        let before = l.delivered();
        l.run(seconds(20), |_| ());
        let share = (l.delivered() - before) as f64 / 20e6;
        assert!(share > 0.98 * 0.93, "{share} of 8 Mbit/s, of which 98 % can arrive");
    }

    /// BtlBw follows a lower rate within ten round trips and a higher one within a few cycles.
    #[test]
    fn it_follows_the_path() {
        let mut l = line();
        l.run(seconds(4), |_| ());
        l.rate = Rate::from_bps(2_000_000).unwrap();
        l.run(seconds(8), |_| ());
        assert!((0.7..1.3).contains(&l.gain()), "down: {}", l.gain());
        l.rate = Rate::from_bps(8_000_000).unwrap();
        let before = l.delivered();
        l.run(seconds(20), |_| ());
        assert!(l.delivered() - before > 14_000_000, "up: {}", l.delivered() - before);
    }
}
