//! Adaptive coding and modulation of DVB-S2: in a fade the link gets slower, so that its error rate stays
//! low.
//!
//! Source: EN 302 307, table 13: Es/N0 for a packet error rate of 1e-7 with normal frames, and bits per
//! symbol; annex D: the terminal reports its signal, the hub decides, and the mode changes `delay` later.
//!
//! A mode is left before it fails. It is kept while Es/N0 is at least its threshold plus the margin
//!
//! ```text
//! M = 1 dB + max(0, s) delay        s: slope of the attenuation in dB/s over the last `delay`
//! ```
//!
//! so that, if the fade continues at this slope, Es/N0 stays at least 1 dB above the threshold until the new
//! mode is in use. Only a fade that gets steeper loses packets. A faster mode needs its threshold, the margin
//! and a hysteresis. A configured margin replaces M; with 0 dB the link loses everything for `delay` at every
//! step down. The slowest mode is kept as long as it works.
//!
//! Deviation: a modem filters its reports over time; here the slope is that of two reports, a delay apart.

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

/// Parameters of the adaptation. The link's own rate is that of the fastest mode under clear sky with the
/// margin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Acm {
    /// Es/N0 under clear sky in dB.
    pub clear_db: f64,
    /// Es/N0 in dB that a faster mode needs in addition to its threshold and the margin.
    pub hysteresis_db: f64,
    /// Margin in dB to the threshold of a mode; `None`: 1 dB plus the growth of the fade in the last `delay`.
    pub margin_db: Option<f64>,
    /// Time from a change of the signal to the change of the mode.
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

/// Index of the fastest mode that this Es/N0 in dB allows; the slowest when it allows none.
fn fastest(esn0_db: f64) -> usize {
    MODES.iter().rposition(|m| m.esn0_db <= esn0_db).unwrap_or(0)
}

/// Margin in dB, without the part for the slope.
const MARGIN_DB: f64 = 1.0;
/// Reports stored for each delay.
const REMEMBERED: u64 = 16;

/// The hub's decisions from the terminal's reports.
#[derive(Debug)]
pub(crate) struct Adaptation {
    parameters: Acm,
    /// The mode under clear sky, which gives the link's own rate.
    clear: usize,
    /// Decisions not yet in effect, oldest first.
    pending: VecDeque<(Instant, usize)>,
    /// The mode in use.
    mode: usize,
    /// Es/N0 last reported.
    esn0_db: f64,
    /// Time and fade of the last report that is at least a delay old, and of some of those since.
    reports: VecDeque<(Instant, f64)>,
}

impl Adaptation {
    pub(crate) fn new(parameters: Acm) -> Self {
        let clear = fastest(parameters.clear_db - parameters.margin_db.unwrap_or(MARGIN_DB));
        Self {
            parameters,
            clear,
            pending: VecDeque::new(),
            mode: clear,
            esn0_db: parameters.clear_db,
            reports: VecDeque::new(),
        }
    }

    /// Returns the margin in dB at `at` under a fade of `fade_db`.
    fn margin(&mut self, at: Instant, fade_db: f64) -> f64 {
        if let Some(given) = self.parameters.margin_db {
            return given;
        }
        let delay = self.parameters.delay;
        // if the second is at least a delay old, the first is no longer needed
        while self.reports.get(1).is_some_and(|r| at.since(r.0) >= delay) {
            self.reports.pop_front();
        }
        let growth = self.reports.front().map_or(0.0, |&(then, before)| {
            let time = at.since(then);
            if time.is_zero() { 0.0 } else { (fade_db - before) * (delay.0 as f64 / time.0 as f64) }
        });
        if self.reports.back().is_none_or(|r| at.since(r.0) >= Duration(delay.0 / REMEMBERED)) {
            self.reports.push_back((at, fade_db));
        }
        MARGIN_DB + growth.max(0.0)
    }

    /// Handles a report: at `at` the signal is weaker than under clear sky by `fade_db`.
    pub(crate) fn report(&mut self, at: Instant, fade_db: f64) {
        self.esn0_db = self.parameters.clear_db - fade_db;
        let safe = self.esn0_db - self.margin(at, fade_db);
        let last = self.pending.back().map_or(self.mode, |c| c.1);
        let allowed = if safe < MODES[last].esn0_db {
            fastest(safe)
        } else {
            fastest(safe - self.parameters.hysteresis_db).max(last)
        };
        // never faster than under clear sky, even when scintillation strengthens the signal
        let decided = allowed.min(self.clear);
        if decided != last {
            self.pending.push_back((at + self.parameters.delay, decided));
        }
    }

    /// Applies the decisions due by `at`; returns when the next one is due.
    pub(crate) fn catch_up(&mut self, at: Instant) -> Instant {
        while let Some(&(_, mode)) = self.pending.front().filter(|c| c.0 <= at) {
            self.mode = mode;
            self.pending.pop_front();
        }
        self.pending.front().map_or(Instant::NEVER, |c| c.0)
    }

    /// True if the signal is too weak for the mode in use.
    pub(crate) fn signal_too_weak(&self) -> bool {
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
        let delay = Duration::from_secs(1);
        Adaptation::new(Acm { clear_db: 13.5, hysteresis_db: 0.5, margin_db: Some(0.0), delay })
    }

    #[test]
    fn modes_stand_in_order_of_their_efficiency() {
        assert!(MODES.windows(2).all(|m| m[0].efficiency < m[1].efficiency));
        let names = [16.05, 11.0, -5.0].map(|esn0_db| MODES[fastest(esn0_db)].name);
        assert_eq!(names, ["32APSK 9/10", "16APSK 3/4", "QPSK 1/4"]);
    }

    #[test]
    fn a_fade_slows_the_link_down_one_delay_later_and_is_blind_until_then() {
        let mut a = adaptation();
        let own = Rate::from_bps(35_670_000).unwrap();
        a.report(second(10), 0.3); // 13.2 dB are enough for 16APSK 9/10
        assert_eq!((a.catch_up(second(10)), a.signal_too_weak(), a.rate(own)), (Instant::NEVER, false, own));
        a.report(second(11), 3.0); // 10.5 dB: 16APSK 3/4
        assert_eq!((a.catch_up(second(11)), a.signal_too_weak(), a.rate(own)), (second(12), true, own));
        assert_eq!((a.catch_up(second(12)), a.signal_too_weak()), (Instant::NEVER, false));
        assert_eq!(a.rate(own).bps(), 29_670_000);
        a.report(second(20), 15.0); // -1.5 dB: QPSK 1/4
        a.catch_up(second(21));
        assert_eq!((a.signal_too_weak(), a.rate(own).bps()), (false, 4_900_000));
        a.report(second(30), 15.9); // -2.4 dB: nothing gets through
        a.catch_up(second(40));
        assert!(a.signal_too_weak());
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
        a.report(second(7), 6.8); // 6.70 dB: kept, although it would not be chosen
        assert_eq!(a.catch_up(second(7)), Instant::NEVER);
        a.report(second(8), -9.0); // clear sky's mode is the fastest
        a.catch_up(second(9));
        assert_eq!(MODES[a.mode].name, "16APSK 9/10");
    }

    #[test]
    fn the_margin_follows_what_the_fade_grew_by_in_a_delay() {
        let delay = Duration::from_secs(1);
        let mut a = Adaptation::new(Acm { clear_db: 16.5, hysteresis_db: 0.5, margin_db: None, delay });
        let step = |i: u64| Instant::ZERO + Duration::from_millis(100) * i;
        let mut margin = |i, fade| (a.margin(step(i), fade) * 1000.0 + 0.5) as u64;
        assert_eq!((0..20).map(|i| margin(i, 0.0)).max(), Some(1000));
        // 0.5 dB/s: after half a delay half of it, after a delay all
        let seen: Vec<_> = (20..40).map(|i| margin(i, 0.05 * (i - 19) as f64)).collect();
        assert_eq!((seen[4], seen[9], seen[19]), (1250, 1500, 1500));
        // a decreasing fade needs only the fixed part
        assert_eq!((40..60).map(|i| margin(i, 1.0 - 0.05 * (i - 39) as f64)).next_back(), Some(1000));
        assert!(a.reports.len() <= REMEMBERED as usize + 2, "{}", a.reports.len());
    }

    #[test]
    fn the_own_rate_is_that_of_the_mode_that_clear_sky_allows_with_the_margin() {
        let mode = |margin_db| {
            let delay = Duration::from_secs(1);
            let mut a = Adaptation::new(Acm { clear_db: 16.5, hysteresis_db: 0.5, margin_db, delay });
            a.report(second(1), 0.0);
            assert_eq!(a.catch_up(second(9)), Instant::NEVER);
            MODES[a.mode].name
        };
        assert_eq!(
            [Some(0.0), Some(1.0), None, Some(40.0)].map(mode),
            ["32APSK 9/10", "16APSK 9/10", "16APSK 9/10", "QPSK 1/4"]
        );
    }
}
