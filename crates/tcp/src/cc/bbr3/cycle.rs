//! BBR version 3's state changes: Startup, Drain and the ProbeBW cycle.
//!
//! Source: draft-ietf-ccwg-bbr-06, cited as (D), sections 5.3.1 to 5.3.3.

use super::bounds::Sample;
use super::{AckPhase, Bbr3, FullPipe, PROBE_WAIT, State, splitmix64};
use crate::cc::{Ack, Path};
use crate::limits::Limit;
use bentpipe_base::{Duration, Instant};

/// The pipe is full if the rate has not grown by this factor for three rounds.
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// Startup ends if this many acknowledgments of a round report losses, and too many of them.
const STARTUP_LOSSES: u32 = 6;
/// Largest number of rounds between probes.
const MOST_ROUNDS: u64 = 63;

impl Bbr3 {
    /// (D) 5.3.1: checks whether the pipe is full.
    pub(super) fn check_full(&mut self, sample: &Sample) {
        if !self.full.now && !sample.app_limited {
            if sample.rate as f64 >= self.full.rate as f64 * FULL_GROWTH {
                self.full.rate = sample.rate;
                self.full.rounds = 0;
            } else if self.round_began {
                self.full.rounds += 1;
                self.full.now = self.full.rounds >= FULL_ROUNDS;
                self.full.reached |= self.full.now;
            }
        }
        let lossy = self.recovering && self.bounds.round_began && self.bounds.events >= STARTUP_LOSSES;
        if !self.full.reached && lossy && sample.too_high() {
            self.full.reached = true;
            self.bounds.long = self.bdp(1.0).max(self.bounds.latest.1);
        }
    }

    pub(super) fn restart_full(&mut self, rate: u64) {
        self.full = FullPipe { rate, reached: self.full.reached, ..FullPipe::default() };
    }

    pub(super) fn start_down(&mut self, now: Instant, path: &Path) {
        self.bounds.forget_congestion();
        let drawn = splitmix64(now.0);
        self.rounds_since_probe = drawn & 1;
        self.probe_wait = PROBE_WAIT + Duration((drawn >> 1) % 1_000_000_000);
        self.cycle_at = now;
        self.ack_phase = AckPhase::ProbeStopping;
        self.round_end = path.delivered;
        self.state = State::Down;
    }

    pub(super) const fn start_refill(&mut self, path: &Path) {
        self.bounds.forget_short_term();
        self.bounds.begin_probe();
        self.precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.round_end = path.delivered;
        self.state = State::Refill;
    }

    pub(super) fn start_up(&mut self, path: &Path, sample: &Sample) {
        self.ack_phase = AckPhase::ProbeStarting;
        self.probe_sample = true;
        self.round_end = path.delivered;
        self.restart_full(sample.rate);
        self.state = State::Up;
        self.bounds.steeper(self.cwnd, self.mss);
    }

    /// (D) 5.3.3.8.3: true if it is time to probe for bandwidth.
    pub(super) fn time_to_probe(&self, now: Instant) -> bool {
        let rounds = (self.target() / self.mss).min(MOST_ROUNDS);
        now > self.cycle_at + self.probe_wait || self.rounds_since_probe >= rounds
    }

    /// (D) 5.3.3.9, `AdaptLongTermModel`. Returns true if it changed the state.
    pub(super) fn adapt_long_term(&mut self, path: &Path, ack: &Ack, sample: &Sample) -> bool {
        if self.ack_phase == AckPhase::ProbeStarting && self.round_began {
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.ack_phase == AckPhase::ProbeStopping && self.round_began {
            self.probe_sample = false;
            self.ack_phase = AckPhase::Init;
            if self.state.in_cycle() {
                self.cycles += u64::from(!sample.app_limited);
                if self.precautionary && !self.too_high {
                    self.start_refill(path);
                    return true;
                }
            }
        }
        if !sample.too_high() && self.bounds.long != u64::MAX {
            self.bounds.long = self.bounds.long.max(sample.in_flight);
            let pressing = ack.limited_by == Limit::CongestionWindow && self.cwnd >= self.bounds.long;
            if self.state == State::Up && pressing {
                self.bounds.raise(ack.delivered, self.mss);
                if self.round_began {
                    self.bounds.steeper(self.cwnd, self.mss);
                }
            }
        }
        false
    }

    /// (D) 5.3.3.9, `IsTimeToGoDown`: true if UP ends.
    pub(super) fn time_to_go_down(&mut self, path: &Path, ack: &Ack, sample: &Sample) -> bool {
        if self.too_high && path.in_flight.0 >= self.bounds.long {
            self.precautionary = true;
            return true;
        }
        if ack.limited_by == Limit::CongestionWindow && self.cwnd >= self.bounds.long {
            self.restart_full(sample.rate); // the bound limits the rate
            return false;
        }
        self.full.now
    }

    /// (D) 5.3.1 to 5.3.3: changes the state.
    pub(super) fn update_state(&mut self, now: Instant, path: &Path, ack: &Ack, sample: &Sample) {
        if self.state == State::Startup && self.full.reached {
            self.state = State::Drain;
        }
        if self.state == State::Drain && path.in_flight.0 <= self.quantized(self.bdp(1.0)) {
            self.start_down(now, path);
        }
        if !self.full.reached || self.adapt_long_term(path, ack, sample) {
            return;
        }
        if self.state == State::Up && self.time_to_go_down(path, ack, sample) {
            self.too_high = false;
            return self.start_down(now, path);
        }
        match self.state {
            State::Down | State::Cruise if self.time_to_probe(now) => self.start_refill(path),
            State::Down => {
                let headroom = self.bounds.with_headroom(self.mss, self.least());
                if path.in_flight.0 <= headroom.min(self.quantized(self.bdp(1.0))) {
                    self.state = State::Cruise;
                }
            }
            State::Refill if self.round_began => self.start_up(path, sample),
            _ => {}
        }
    }
}
