//! HyStart++.
//!
//! Source: RFC 9406. Per round, the smallest of at least 8 RTT samples is compared with the last round's: a
//! rise of clamp(last/8, 4 ms, 16 ms) enters Conservative Slow Start (growth / 4) for up to 5 rounds; if the
//! RTT falls below the baseline again it was a false alarm and slow start resumes, else congestion avoidance
//! begins. Deviation: none. Values as in section 4.3; access-delay jitter of tens of milliseconds ends slow
//! start too early on some satellite paths.

use bentpipe_base::Duration;

/// RTT samples that a round needs before it is compared.
const N_RTT_SAMPLE: u32 = 8;
/// Divisor of growth in Conservative Slow Start.
pub const CSS_GROWTH_DIVISOR: u64 = 4;
/// Rounds in Conservative Slow Start.
const CSS_ROUNDS: u32 = 5;
/// Segments of growth per ACK at most when unpaced: L of section 4.3.
pub const L_UNPACED: u64 = 8;

/// Bounds of the RTT rise that ends slow start.
const RISE: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(16));

/// Phase of slow start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Ordinary slow start.
    #[default]
    SlowStart,
    /// Conservative Slow Start.
    Conservative,
    /// Slow start is over.
    Done,
}

/// The HyStart++ detector.
#[derive(Clone, Debug, Default)]
pub struct Hystart {
    phase: Phase,
    last_round_min: Option<Duration>,
    round_min: Option<Duration>,
    samples: u32,
    /// The RTT at which Conservative Slow Start began.
    baseline: Duration,
    css_rounds: u32,
}

impl Hystart {
    /// Processes an acknowledgment's RTT sample; `round_ended` if it ends a round. Returns the new phase.
    pub fn on_ack(&mut self, rtt: Option<Duration>, round_ended: bool) -> Phase {
        if let Some(rtt) = rtt {
            self.round_min = Some(self.round_min.map_or(rtt, |m| m.min(rtt)));
            self.samples += 1;
            self.judge();
        }
        if round_ended {
            self.end_round(); // the sample still belongs to the round that ends
        }
        self.phase
    }

    fn end_round(&mut self) {
        self.last_round_min = self.round_min.take();
        self.samples = 0;
        if self.phase == Phase::Conservative {
            self.css_rounds += 1;
            if self.css_rounds >= CSS_ROUNDS {
                self.phase = Phase::Done;
            }
        }
    }

    fn judge(&mut self) {
        let (Some(now), true) = (self.round_min, self.samples >= N_RTT_SAMPLE) else { return };
        match self.phase {
            Phase::SlowStart => {
                let Some(last) = self.last_round_min else { return };
                let rise = (last / 8).clamp(RISE.0, RISE.1);
                if now >= last + rise {
                    self.baseline = now;
                    self.css_rounds = 0;
                    self.phase = Phase::Conservative;
                }
            }
            Phase::Conservative if now < self.baseline => self.phase = Phase::SlowStart,
            Phase::Conservative | Phase::Done => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(v: u64) -> Duration {
        Duration::from_millis(v)
    }

    fn round(h: &mut Hystart, rtt: Duration) -> Phase {
        for _ in 0..7 {
            h.on_ack(Some(rtt), false);
        }
        h.on_ack(Some(rtt), true)
    }

    #[test]
    fn a_lasting_rise_ends_slow_start_after_five_rounds() {
        let mut h = Hystart::default();
        assert_eq!(round(&mut h, ms(100)), Phase::SlowStart);
        assert_eq!(round(&mut h, ms(111)), Phase::SlowStart); // below 100 / 8 = 12.5
        assert_eq!(round(&mut h, ms(125)), Phase::Conservative);
        for _ in 0..3 {
            assert_eq!(round(&mut h, ms(130)), Phase::Conservative);
        }
        assert_eq!(round(&mut h, ms(130)), Phase::Done);
    }

    #[test]
    fn a_passing_rise_resumes_slow_start_and_the_clamp_holds() {
        let mut h = Hystart::default();
        round(&mut h, ms(560));
        assert_eq!(round(&mut h, ms(575)), Phase::SlowStart); // the threshold is 16 ms, not 560 / 8 = 70
        assert_eq!(round(&mut h, ms(591)), Phase::Conservative);
        assert_eq!(round(&mut h, ms(580)), Phase::SlowStart);
    }
}
