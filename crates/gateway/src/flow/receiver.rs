//! What the receiver can take: how far beyond its window may be forwarded.
//!
//! Source: TCP-SuperCharger (SC), equations (3) and (4), in sequence numbers. An ACK i at t_i says E_i = ack_i + a_i, the right edge; between two ACKs the
//! receiver's application reads R = (E_j - E_i) / (t_j - t_i). What is forwarded at f arrives when the edge is at E_i + R (f - t_i + D), so
//!   e <= E_i + R (f - t_i + D)                                                        (4')
//! for the last byte e. Corrections to the paper: the printed (4) sums all packets ever sent, and (3) counts packets forwarded between two ACKs where packets
//! received are meant; the form above needs neither sum.
//!
//! While a receiver keeps up, a is at its largest and R is no more than the rate of arrival. So:
//! - `Mode::Strict`: R as above over 8 ACKs, smoothed with 0.9, and (4').
//! - `Mode::Open`: the receiver is taken to keep up, e <= E_i + room, until its window has fallen below half and stays low: then R is what it reads while it
//!   is busy, sending is paced at R and half the buffer is kept free. While it is not busy for a round trip R grows, by an eighth of the buffer per round
//!   trip and by twice that the next time: one step is held by the free half, and a receiver that has become fast is found in a few round trips.
//!
//! A reader that rests for longer than its buffer lasts discards what is under way, however fast it is. When that happens twice within ten round trips it begins
//! at half of what it got lately, not at what it read while it rested, and is back at the hop's rate in three round trips.
//!
//! A window that is zero at the edge itself stops everything; a smaller window before a hole is the receiver's memory, not its application, and is ignored:
//! the edge never moves left.

use crate::config::Mode;
use bentpipe_base::{Duration, Instant};

/// ACKs between the two that make a sample, in strict mode.
const STRIDE: u32 = 8;
/// A busy spell counts from this long on.
const SPELL: Duration = Duration::from_millis(20);

/// A reader that is slower than the hop.
#[derive(Clone, Copy, Debug)]
struct Slow {
    /// Bytes per second.
    rate: f64,
    /// The next step of growth in bytes per round trip.
    step: f64,
    /// Not busy since.
    idle_since: Instant,
    /// Sending at the rate: when the next byte is due.
    next: Instant,
    /// True when the rate held something back since then.
    held: bool,
}

/// Knowledge of one receiver.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    mode: Mode,
    /// The right edge.
    pub(crate) edge: u64,
    /// The largest window seen.
    pub(crate) largest: u64,
    /// When the last ACK told.
    told: Instant,
    slow: Option<Slow>,
    /// Start of a busy spell, and the edge then. Strict: the ACK a sample begins with.
    busy: Option<(Instant, u64)>,
    /// What it read per second in the last busy spell, however short. Strict: R, 0 while it is unknown.
    drain: f64,
    /// Bytes per second that arrived in order in the last two round trips, and since when and from where the present one counts.
    lately: [f64; 2],
    round: (Instant, u64),
    /// When it first had no room, lately.
    overflow: Option<Instant>,
    /// Since when the window is closed.
    pub(crate) stopped: Option<Instant>,
    /// Strict: ACKs in a sample.
    acks: u32,
}

impl Receiver {
    pub(crate) const fn new(mode: Mode) -> Self {
        Self {
            mode,
            edge: 1,
            largest: 0,
            told: Instant::ZERO,
            slow: None,
            busy: None,
            drain: 0.0,
            lately: [0.0; 2],
            round: (Instant::ZERO, 1),
            overflow: None,
            stopped: None,
            acks: 0,
        }
    }

    /// Window left at `una`.
    pub(crate) const fn window(&self, una: u64) -> u64 {
        self.edge.saturating_sub(una)
    }

    /// An ACK for `una` told `window`; `recovering` says that a hole is or was open, so that windows tell nothing of the application.
    pub(crate) fn told(&mut self, now: Instant, una: u64, window: u64, recovering: bool, d: Duration) {
        self.edge = self.edge.max(una + window);
        self.told = now;
        self.count(now, una, d);
        if recovering {
            self.busy = None;
            return;
        }
        self.largest = self.largest.max(window);
        let window = self.window(una);
        if self.mode == Mode::Strict {
            self.sample(now);
        } else if window * 10 < self.largest * 9 {
            self.is_busy(now, window, d);
        } else {
            self.is_idle(now, d);
        }
    }

    /// What arrives per round trip.
    fn count(&mut self, now: Instant, una: u64, d: Duration) {
        let time = now.since(self.round.0);
        if time >= d.max(Duration::from_millis(1)) {
            let rate = una.saturating_sub(self.round.1) as f64 / time.as_secs_f64();
            (self.lately, self.round) = ([rate, self.lately[0]], (now, una));
        }
    }

    /// Equation (3).
    fn sample(&mut self, now: Instant) {
        self.acks += 1;
        let Some((since, edge)) = self.busy else {
            (self.busy, self.acks) = (Some((now, self.edge)), 0);
            return;
        };
        let time = now.since(since).as_secs_f64();
        if self.acks >= STRIDE && time > 0.0 {
            let rate = (self.edge - edge) as f64 / time;
            self.drain = if self.drain > 0.0 { 0.9 * self.drain + 0.1 * rate } else { rate };
            (self.busy, self.acks) = (Some((now, self.edge)), 0);
        }
    }

    fn is_busy(&mut self, now: Instant, window: u64, d: Duration) {
        let (since, edge) = *self.busy.get_or_insert((now, self.edge));
        let spell = now.since(since);
        if let Some(slow) = &mut self.slow {
            (slow.idle_since, slow.held) = (now, false);
            slow.step = self.largest as f64 / 8.0;
        }
        if spell >= SPELL / 2 {
            self.drain = (self.edge - edge) as f64 / spell.as_secs_f64();
        }
        if spell < SPELL.max(d / 8) {
            return;
        }
        let least = self.largest as f64 / d.as_secs_f64().max(1e-3) / 4.0;
        let rate = ((self.edge - edge) as f64 / spell.as_secs_f64()).max(least);
        match &mut self.slow {
            Some(slow) => {
                // half and half: a spell is short against the drift of a rate, and long against the steps of a reader
                slow.rate = f64::midpoint(slow.rate, rate);
                self.busy = Some((now, self.edge));
            }
            None if window < self.largest / 2 => {
                self.slow(now, rate, self.largest as f64 / 8.0);
                self.busy = Some((now, self.edge));
            }
            None => {}
        }
    }

    fn slow(&mut self, now: Instant, rate: f64, step: f64) {
        self.slow = Some(Slow { rate, step, idle_since: now, next: now, held: false });
    }

    fn is_idle(&mut self, now: Instant, d: Duration) {
        self.busy = None;
        let Some(slow) = &mut self.slow else { return };
        if now.since(slow.idle_since) >= d {
            if slow.held {
                slow.rate += slow.step / d.as_secs_f64().max(1e-3);
                slow.step *= 2.0;
            }
            (slow.idle_since, slow.held) = (now, false);
        }
    }

    /// The window has closed.
    pub(crate) fn stop(&mut self, now: Instant) {
        self.stopped.get_or_insert(now);
    }

    /// It has opened again: after a long stop a reader is approached with care.
    pub(crate) fn reopen(&mut self, now: Instant, d: Duration) {
        let Some(since) = self.stopped.take() else { return };
        if self.mode == Mode::Open
            && let Some((busy, edge)) = self.busy.take()
        {
            self.drain = (self.edge - edge) as f64 / now.since(busy).as_secs_f64().max(1e-3);
        }
        if self.mode == Mode::Open && now.since(since) >= d / 4 {
            let least = self.largest as f64 / d.as_secs_f64().max(1e-3);
            let rate = self.slow.map_or(least, |s| s.rate.max(least / 4.0));
            self.slow(now, rate, self.largest as f64 / 2.0);
        } else {
            self.overflowed(now, d);
        }
    }

    /// Data was discarded for want of room: the reader is slower than what was sent, or rests. What it read while it was busy is its rate, or half of what it got
    /// while it was not.
    pub(crate) fn overflowed(&mut self, now: Instant, d: Duration) {
        if self.mode != Mode::Open || self.slow.is_some() {
            return;
        }
        // a single rest costs one loop; what comes again after a round trip is the reader's nature
        let since = self.overflow.filter(|at| now.since(*at) < d * 10);
        self.overflow = since.or(Some(now));
        if since.is_some_and(|at| now.since(at) > d + d / 5) {
            let trip = d.as_secs_f64().max(1e-3);
            let lately = self.lately[0].max(self.lately[1]) / 2.0;
            let rate = self.drain.max(lately).max(self.largest as f64 / trip);
            self.slow(now, rate, rate * trip / 2.0);
        }
    }

    /// Position up to which may be forwarded now; `room` is what the hop holds.
    pub(crate) fn limit(&mut self, now: Instant, d: Duration, room: u64) -> u64 {
        // without news for a round trip the prediction ends
        let ahead = now.since(self.told).min(d) + d;
        if self.mode == Mode::Strict {
            return self.edge + ((self.drain * ahead.as_secs_f64()) as u64).min(room);
        }
        let Some(slow) = self.slow else { return self.edge + room };
        let predicted = slow.rate * ahead.as_secs_f64();
        if predicted >= room as f64 {
            self.slow = None;
            return self.edge + room;
        }
        (self.edge + predicted as u64).saturating_sub(self.largest / 2)
    }

    /// The reader is known to be slower than the hop.
    pub(crate) const fn is_slow(&self) -> bool {
        self.slow.is_some()
    }

    /// When the reader's rate lets the next byte go.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.slow.map(|slow| slow.next)
    }

    /// The reader's rate, or its edge, holds something back.
    pub(crate) fn held_back(&mut self) {
        if let Some(slow) = &mut self.slow {
            slow.held = true;
        }
    }

    /// `bytes` beyond the edge go out now.
    pub(crate) fn sent(&mut self, now: Instant, bytes: u64) {
        if let Some(slow) = &mut self.slow {
            // a little faster than it reads: the edge, not the pace, is what holds the buffer half full
            let time = Duration::from_secs_f64(bytes as f64 / (slow.rate * 1.05).max(1.0));
            slow.next = slow.next.max(now) + time;
        }
    }

    /// R where one is known, in bytes per second.
    pub(crate) fn rate(&self) -> Option<f64> {
        match self.mode {
            Mode::Strict => Some(self.drain),
            Mode::Open => self.slow.map(|s| s.rate),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const D: Duration = Duration::from_secs(1);
    const WINDOW: u64 = 65_535;

    /// A reader that gets `rate` bytes per second for some seconds, from `una` on.
    fn reads(receiver: &mut Receiver, (from, seconds): (u64, u64), una: &mut u64, rate: u64) {
        for ms in from * 1000..(from + seconds) * 1000 {
            *una += rate / 1000;
            receiver.told(Instant::ZERO + Duration::from_millis(ms), *una, WINDOW, false, D);
        }
    }

    /// Two rests within ten round trips do not make a fast reader a slow one.
    #[test]
    fn who_rests_begins_at_half_of_what_it_got() {
        let (mut receiver, mut una, rate, room) = (Receiver::new(Mode::Open), 1, 3_000_000, 3_750_000);
        reads(&mut receiver, (0, 5), &mut una, rate);
        let at = |s| Instant::ZERO + Duration::from_secs(s);
        receiver.overflowed(at(5), D);
        assert!(!receiver.is_slow(), "a single rest costs what was under way");
        reads(&mut receiver, (5, 2), &mut una, rate);
        receiver.overflowed(at(7), D);
        let begun = receiver.rate().expect("it is slow now");
        assert!((begun / rate as f64 - 0.5).abs() < 0.01, "{begun}");
        // and it is tried again at once: what holds it back is the pace
        for second in 7..10 {
            receiver.held_back();
            reads(&mut receiver, (second, 1), &mut una, begun as u64);
            receiver.limit(at(second + 1), D, room);
        }
        assert!(!receiver.is_slow(), "{:?}", receiver.rate());
    }

    /// A reader that never got more than it could read does not begin above that.
    #[test]
    fn who_is_slow_begins_below_its_rate() {
        let (mut receiver, mut una, rate) = (Receiver::new(Mode::Open), 1, 1_000_000);
        reads(&mut receiver, (0, 8), &mut una, rate);
        for second in [5, 8] {
            receiver.overflowed(Instant::ZERO + Duration::from_secs(second), D);
        }
        let begun = receiver.rate().expect("it is slow");
        assert!((WINDOW as f64..=0.51 * rate as f64).contains(&begun), "{begun}");
    }
}
