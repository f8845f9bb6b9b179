//! A sender whose packets the tests send one by one: packets of 1000 bytes, an RTT of a second, a hop of 100
//! packets per second.

use super::*;

const PACKET: u64 = 1000;
/// In microseconds.
const TRIP: u64 = 1_000_000;
const HOP: u64 = TRIP / 100;

/// One sender as the gateway sees it.
#[derive(Default)]
struct Play {
    model: Model,
    now: u64,
    /// Acknowledgments to come: time and position.
    acks: std::collections::VecDeque<(u64, u64)>,
    /// When the hop is free.
    free: u64,
    top: u64,
    told: u64,
    window: u64,
}

impl Play {
    fn new(window: u64) -> Self {
        Self { window: window * PACKET, now: 1, ..Self::default() }
    }

    fn seen(&self) -> SenderView {
        SenderView {
            now: Instant(self.now * 1000),
            top: self.top,
            told: self.told,
            edge: self.told + self.window,
            waits: self.free.saturating_sub(self.now) / HOP * PACKET,
            trip: Duration(TRIP * 1000),
            segment: PACKET,
        }
    }

    const fn flight(&self) -> u64 {
        (self.top - self.told) / PACKET
    }

    /// Delivers acknowledgments until `at`.
    fn wait(&mut self, at: u64) {
        while let Some((when, ack)) = self.acks.front().copied().filter(|(when, _)| *when <= at) {
            self.acks.pop_front();
            (self.now, self.told) = (when, ack);
            let seen = self.seen();
            self.model.on_ack(&seen);
        }
        self.now = at;
    }

    /// Sends one packet now.
    fn send(&mut self) {
        self.top += PACKET;
        self.free = self.free.max(self.now) + HOP;
        self.acks.push_back((self.free + TRIP - HOP, self.top));
        let seen = self.seen();
        self.model.sent(&seen, PACKET);
    }

    /// Sends packets at a steady rate per round trip, unless the window is full.
    fn pace(&mut self, rate: u64, until: u64) {
        while self.now < until {
            if (self.flight() + 1) * PACKET <= self.window {
                self.send();
            }
            self.wait(self.now + TRIP / rate);
        }
    }

    /// Plays rounds in which `packets` are sent within a part of the RTT.
    fn rounds(&mut self, packets: impl IntoIterator<Item = u64>, part: f64) {
        for n in packets {
            let begin = self.now;
            self.pace((n as f64 / part) as u64, begin + (TRIP as f64 * part) as u64);
            self.wait(begin + TRIP);
        }
    }

    const fn is_found(&self) -> bool {
        self.model.is_found
    }
}

#[test]
fn rounds_that_fill_the_round_trip_and_double_are_of_a_model() {
    let mut play = Play::new(1000);
    play.rounds([10, 14, 28], 1.0);
    assert!(!play.is_found());
    play.rounds([56, 56, 56], 1.0);
    assert!(play.is_found());
}

#[test]
fn rounds_that_double_in_half_of_the_round_trip_are_of_slow_start_that_is_paced() {
    let mut play = Play::new(1000);
    play.rounds([10, 20, 40, 80, 80], 0.5);
    assert!(!play.is_found());
    // the same in bursts, as slow start without pacing sends
    let mut play = Play::new(1000);
    play.rounds([10, 20, 40, 80, 80], 0.05);
    assert!(!play.is_found());
}

#[test]
fn rounds_that_fill_the_round_trip_and_do_not_grow_are_of_an_application() {
    let mut play = Play::new(1000);
    play.rounds([40; 30], 1.0);
    assert!(!play.is_found() && !play.model.is_over());
    play.rounds([40; 5], 1.0);
    assert!(play.model.is_over(), "it was looked at for long enough");
}

#[test]
fn small_rounds_tell_nothing_and_are_not_counted() {
    let mut play = Play::new(1000);
    play.rounds([5; 60], 1.0);
    assert!(!play.is_found() && !play.model.is_over());
    play.rounds([14, 28, 56, 56, 56], 1.0);
    assert!(play.is_found(), "BBR whose application had little to send at first");
}

/// Fills the window and keeps it full.
fn filled() -> Play {
    let mut play = Play::new(200);
    play.pace(400, TRIP);
    play.pace(400, 5 * TRIP);
    assert!(play.flight() >= 195 && !play.is_found(), "{}", play.flight());
    play
}

#[test]
fn flight_that_is_given_up_while_the_hop_is_busy_is_of_a_model() {
    let mut play = filled();
    let begin = play.now;
    play.pace(35, begin + TRIP * 3 / 2);
    assert!(!play.is_found() && play.flight() < 120);
    play.pace(100, begin + TRIP * 5);
    assert!(play.is_found());
}

#[test]
fn who_goes_on_with_a_burst_had_a_pause() {
    let mut play = filled();
    let begin = play.now;
    play.pace(35, begin + TRIP * 3 / 2);
    play.pace(400, begin + TRIP * 5);
    assert!(!play.is_found());
}

#[test]
fn who_stays_below_the_rate_of_the_hop_is_limited_by_its_application() {
    let mut play = filled();
    let begin = play.now;
    play.pace(50, begin + TRIP * 10);
    assert!(!play.is_found());
}

#[test]
fn who_gives_up_little_is_not_taken_for_a_model() {
    // an application slightly slower than the hop
    let mut play = filled();
    let begin = play.now;
    play.pace(90, begin + TRIP * 12);
    assert!(!play.is_found());
}

#[test]
fn flight_that_is_given_up_after_a_loss_tells_nothing() {
    let mut play = filled();
    let begin = play.now;
    play.wait(begin + TRIP / 2);
    let seen = play.seen();
    play.model.lost(&seen);
    play.pace(35, begin + TRIP);
    play.pace(100, begin + TRIP * 5);
    assert!(!play.is_found());
}

#[test]
fn a_window_that_becomes_smaller_is_no_flight_given_up() {
    let mut play = filled();
    play.window = 105 * PACKET;
    let begin = play.now;
    play.pace(400, begin + TRIP * 8);
    assert!(!play.is_found());
}
