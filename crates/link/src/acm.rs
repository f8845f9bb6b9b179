//! Adaptive coding and modulation of DVB-S2: under a fade the link gets slower and keeps its errors low.
//!
//! Source: EN 302 307, table 13: Es/N0 for a packet error rate of 1e-7 with normal frames, and bits per symbol. The terminal reports what it
//! receives, the hub decides some time later and leaves a margin (hysteresis) before it goes up again.

use bentpipe_base::{Duration, Instant, Rate};
use std::collections::VecDeque;

/// A modulation and coding: name, ideal Es/N0 in dB, bit/s per Hz.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModCod {
    /// As in the standard: `QPSK 1/2`.
    pub name: &'static str,
    /// Needed Es/N0 in dB.
    pub esn0_db: f64,
    /// Bits per symbol.
    pub efficiency: f64,
}

/// Parameters of the adaptation. The link's own rate is that of the best mode that clear sky allows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Acm {
    /// Es/N0 under clear sky in dB.
    pub clear_db: f64,
    /// Margin in dB that a faster mode needs beyond its threshold before it is taken.
    pub hysteresis_db: f64,
    /// From a change of the signal to the change of the mode.
    pub delay: Duration,
}

/// Modes of DVB-S2, slowest first.
pub const MODES: [ModCod; 10] = [
    ModCod { name: "QPSK 1/4", esn0_db: -2.35, efficiency: 0.490 },
    ModCod { name: "QPSK 1/2", esn0_db: 1.00, efficiency: 0.989 },
    ModCod { name: "QPSK 3/4", esn0_db: 4.03, efficiency: 1.487 },
    ModCod { name: "QPSK 9/10", esn0_db: 6.42, efficiency: 1.789 },
    ModCod { name: "8PSK 2/3", esn0_db: 6.62, efficiency: 1.980 },
    ModCod { name: "8PSK 3/4", esn0_db: 7.91, efficiency: 2.228 },
    ModCod { name: "8PSK 9/10", esn0_db: 10.98, efficiency: 2.679 },
    ModCod { name: "16APSK 3/4", esn0_db: 10.21, efficiency: 2.967 },
    ModCod { name: "16APSK 9/10", esn0_db: 13.13, efficiency: 3.567 },
    ModCod { name: "32APSK 9/10", esn0_db: 16.05, efficiency: 4.453 },
];

/// The fastest mode that this Es/N0 in dB allows; the slowest when it allows none.
pub fn best(esn0_db: f64) -> &'static ModCod {
    &MODES[fastest(esn0_db)]
}

fn fastest(esn0_db: f64) -> usize {
    MODES.iter().rposition(|m| m.esn0_db <= esn0_db).unwrap_or(0)
}

/// What the hub does with the terminal's reports.
#[derive(Debug)]
pub(crate) struct Adaptation {
    parameters: Acm,
    /// The mode that clear sky allows: the link's own rate belongs to it.
    clear: usize,
    /// The mode last decided.
    decided: usize,
    /// Decisions on their way, oldest first.
    coming: VecDeque<(Instant, usize)>,
    /// The mode in use.
    mode: usize,
    /// Es/N0 last reported.
    esn0_db: f64,
}

impl Adaptation {
    pub(crate) fn new(parameters: Acm) -> Self {
        let clear = fastest(parameters.clear_db);
        Self {
            parameters,
            clear,
            decided: clear,
            coming: VecDeque::new(),
            mode: clear,
            esn0_db: parameters.clear_db,
        }
    }

    /// The signal at `at` is weaker than under clear sky by `fade_db`.
    pub(crate) fn report(&mut self, at: Instant, fade_db: f64) {
        self.esn0_db = self.parameters.clear_db - fade_db;
        let allowed = if self.esn0_db < MODES[self.decided].esn0_db {
            fastest(self.esn0_db)
        } else {
            fastest(self.esn0_db - self.parameters.hysteresis_db).max(self.decided)
        };
        // never faster than under clear sky: what scintillation adds for a moment is no reason
        let decided = allowed.min(self.clear);
        if decided != self.decided {
            self.decided = decided;
            self.coming.push_back((at + self.parameters.delay, decided));
        }
    }

    /// Puts into use what was decided for `at` or before; returns when the next decision comes.
    pub(crate) fn catch_up(&mut self, at: Instant) -> Instant {
        while let Some(&(_, mode)) = self.coming.front().filter(|c| c.0 <= at) {
            self.mode = mode;
            self.coming.pop_front();
        }
        self.coming.front().map_or(Instant::NEVER, |c| c.0)
    }

    /// True when the signal is too weak for the mode in use.
    pub(crate) fn is_blind(&self) -> bool {
        self.esn0_db < MODES[self.mode].esn0_db
    }

    /// The rate of the mode in use on a link whose own rate is `rate`.
    pub(crate) fn rate(&self, rate: Rate) -> Rate {
        let ratio = MODES[self.mode].efficiency / MODES[self.clear].efficiency;
        Rate::from_bps((rate.bps() as f64 * ratio + 0.5) as u64).unwrap_or(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(s: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(s)
    }

    fn adaptation() -> Adaptation {
        Adaptation::new(Acm { clear_db: 13.5, hysteresis_db: 0.5, delay: Duration::from_secs(1) })
    }

    #[test]
    fn modes_stand_in_order_of_their_efficiency() {
        assert!(MODES.windows(2).all(|m| m[0].efficiency < m[1].efficiency));
        assert_eq!(
            (best(16.05).name, best(11.0).name, best(-5.0).name),
            ("32APSK 9/10", "16APSK 3/4", "QPSK 1/4")
        );
    }

    #[test]
    fn a_fade_slows_the_link_down_one_delay_later_and_is_blind_until_then() {
        let mut a = adaptation();
        let own = Rate::from_bps(35_670_000).unwrap();
        a.report(second(10), 0.3); // 13.2 dB are enough for 16APSK 9/10
        assert_eq!((a.catch_up(second(10)), a.is_blind(), a.rate(own)), (Instant::NEVER, false, own));
        a.report(second(11), 3.0); // 10.5 dB: 16APSK 3/4
        assert_eq!((a.catch_up(second(11)), a.is_blind(), a.rate(own)), (second(12), true, own));
        assert_eq!((a.catch_up(second(12)), a.is_blind()), (Instant::NEVER, false));
        assert_eq!(a.rate(own).bps(), 29_670_000);
        a.report(second(20), 15.0); // -1.5 dB: QPSK 1/4
        a.catch_up(second(21));
        assert_eq!((a.is_blind(), a.rate(own).bps()), (false, 4_900_000));
        a.report(second(30), 15.9); // -2.4 dB: nothing gets through
        a.catch_up(second(40));
        assert!(a.is_blind());
    }

    #[test]
    fn a_faster_mode_waits_for_the_hysteresis() {
        let mut a = adaptation();
        a.report(second(0), 8.0); // 5.5 dB: QPSK 3/4
        a.catch_up(second(1));
        assert_eq!(MODES[a.mode].name, "QPSK 3/4");
        a.report(second(2), 6.5); // 7.0 dB: QPSK 9/10 with margin, 8PSK 2/3 without
        assert_eq!(a.catch_up(second(2)), second(3));
        a.catch_up(second(3));
        assert_eq!(MODES[a.mode].name, "QPSK 9/10");
        a.report(second(4), 6.39); // 7.11 dB: not quite
        assert_eq!(a.catch_up(second(4)), Instant::NEVER);
        a.report(second(5), 6.37); // 7.13 dB
        a.catch_up(second(6));
        assert_eq!(MODES[a.mode].name, "8PSK 2/3");
        a.report(second(7), 6.8); // 6.70 dB: stays, although it would not be taken
        assert_eq!(a.catch_up(second(7)), Instant::NEVER);
        a.report(second(8), -9.0); // clear sky's mode is the fastest
        a.catch_up(second(9));
        assert_eq!(MODES[a.mode].name, "16APSK 9/10");
    }
}
