//! The receiving application ("reader"): how far beyond the receiver's right edge may be forwarded.
//!
//! Source: TCP-SuperCharger (SC), equation (4): forwarded data must find room when it arrives. A packet
//! forwarded while the known edge is E arrives an RTT D later, when a reader of rate R has moved the edge to
//! E + R D. So `ahead = e - E` may be R D less the part of the buffer (size W) that shall stay free. A change
//! of R by more than half a buffer per RTT cannot be seen in time; the goal is to lose one RTT of data for
//! it, not two.
//!
//! - No limit (`ahead` is none): the reader is faster than the hop, and only the hop limits.
//! - **Control**: `ahead` is changed once, and a round trip later the window is observed for half a round
//!   trip. The middle between its minimum and maximum shall be half the buffer: `ahead += middle - W/2`.
//!   Sending is clocked by the edge, so the rate matches the reader's. If the reader is sometimes idle (the
//!   window is fully open), it is faster than the limit: `ahead` grows by half a buffer, and by twice as much
//!   each further time. But arrival bursts grow with the rate, so `ahead` never grows by more than the
//!   minimum window leaves room for. A receiver may keep a whole window more than it can show (Linux without
//!   window scaling does), so it counts as idle only after that would have filled.
//! - **Overflow**: arriving data was refused. R is measured while the full buffer is read, from the first
//!   movement of the edge to the last. `ahead` becomes R D minus W/2 if that is less than before. A reader
//!   that only paused empties its buffer at once and continues at its previous rate. If that overflows again,
//!   bursts are larger than the buffer, and the rate becomes 3/4 of one that it kept up with lately.
//! - **Bursts**: a hop with frames of F seconds delivers R F at once. The window variation of an idle reader
//!   gives F; the part of the buffer that R F leaves free may be sent at once.
//! - **A reader that has become faster** empties the half-full buffer within milliseconds: the edge gives a
//!   measure of the new R, exact to some per cent. If the window stays fully open, `ahead` follows at once. A
//!   limit that it kept up with in the last minute is more exact, and taken if it lies near that measure.
//! - **A limit a little too high** lets the window fall slowly. While it is not fully open, the edge moves at
//!   R: measured over a quarter of a round trip, this gives the right limit before the buffer is full.
//! - **A new limit is proven** (`attempt.rs`) when a reader that cannot keep up would have overflowed. An
//!   overflow before that forbids jumps for a while, each time twice as long until one is proven; but not if
//!   R is below the limit before, since then the reader has changed.

mod attempt;
mod busy;
mod drain;
mod edges;
mod pacing;
mod update;

use attempt::Attempt;
use bentpipe_base::{Duration, Instant};
use busy::BusyReader;
use drain::{BufferDrain, FEW};
use edges::{Edges, Quarter};
pub(crate) use update::WindowUpdate;

/// From this share of the largest window on, everything but the latest arrivals has been read.
const WHOLE: f64 = 0.9;
/// Share of the buffer that arrival bursts may fill.
const FILL: f64 = 0.92;
/// How long the edge is extrapolated without an ACK: on links with frames ACKs come in bursts.
const BUNCH: Duration = Duration::from_millis(60);
/// Shortest observation, and shortest wait before a jump.
const LEAST_LOOK: Duration = Duration::from_millis(50);
/// A limit at least this share of the right one was nearly right.
const NEAR: f64 = 0.9;
/// How long a rate is remembered.
const MEMORY: Duration = Duration::from_secs(60);
/// Factor for a rate that overflowed again.
const LESS: f64 = 0.75;
/// Round trips without jumps after a wrong one: at first, and at most.
const DISTRUST: (u64, u64) = (8, 256);

#[derive(Clone, Copy, Debug)]
struct WindowObservation {
    from: Instant,
    /// Half a round trip after the first window seen.
    until: Option<Instant>,
    least: f64,
    most: f64,
    /// When the limit first held data back since the last change.
    held: Option<Instant>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Reader {
    ahead: Option<f64>,
    tried: Attempt,
    step: f64,
    /// By how much `ahead` was last raised.
    gain: f64,
    /// `ahead` comes from a measured rate and was not changed since.
    is_measured: bool,
    /// How far beyond the edge was forwarded at the end of the last observations.
    used: [f64; 3],
    look: Option<WindowObservation>,
    drain: Option<BufferDrain>,
    edges: Edges,
    /// Since when the window is not fully open, and the edge then.
    behind: Option<(Instant, u64)>,
    /// The reader's rate while it is busy.
    busy: Option<BusyReader>,
    /// When the limit was last set.
    changed: Instant,
    /// How fast the reader emptied its buffer after having been behind.
    caught_up: Option<Quarter>,
    /// Largest recent `ahead` that it kept up with.
    taken: Option<(Instant, f64)>,
    /// It could not have read faster than `taken`: it was busy.
    is_most: bool,
    /// The last `ahead` that was too much.
    too_much: Option<(Instant, f64)>,
    overflowed: Option<Instant>,
    /// Last change of the limit after an overflow.
    settled: Instant,
    /// The limit comes from a jump; until when no jump is allowed, and for how many round trips.
    jumped: bool,
    no_jump: (Instant, u64),
    /// Until then no ACK reports on data sent now: only pacing prevents an overflow.
    blind: Instant,
    /// Pacing by token bucket: tokens in bytes, time of the last refill, and bucket size.
    tokens: f64,
    filled: Instant,
    burst: f64,
    /// Seconds for which the hop seemed to collect data before a burst, from the window variation of an idle
    /// reader in the last two observations.
    bunches: [f64; 2],
    /// The same from an overflow, with its time: ACKs of a burst may come only after the burst was read.
    bunched: Option<(Instant, f64)>,
    told: Instant,
    rate: f64,
    spread: f64,
}

impl Reader {
    /// Processes an acknowledgment. Not `steady`: a hole is or was open, so windows show nothing.
    pub(crate) fn on_ack(&mut self, news: &WindowUpdate, steady: bool) {
        self.told = news.now;
        self.edges.follow(news);
        if self.drain.is_some() {
            self.drained(news);
        } else if steady {
            self.note_pace(news);
            self.prove(news);
            self.jump(news);
            self.slow_down(news);
            self.observe_window(news);
        }
        self.rate = self.ahead.map_or(0.0, |a| (a + news.buffer() / 2.0).max(0.0) / news.seconds());
        let half = news.buffer() / 2.0;
        let calm = self.largest_burst(news) / half;
        // if the limit holds nothing back, the edge does not clock sending
        let is_clock = self.ahead.is_some_and(|ahead| news.used as f64 + half * 1.25 > ahead);
        self.spread = match self.ahead {
            Some(ahead) if is_clock => (1.0 + 0.05 * calm) * (ahead + news.buffer()) / news.seconds(),
            _ => self.rate,
        };
    }

    /// If the reader kept up with a new limit, notes it, and raises it again if the reader is idle.
    fn prove(&mut self, news: &WindowUpdate) {
        let Some(ahead) = self.ahead.filter(|_| self.tried.prove(news)) else { return };
        let jumped = core::mem::take(&mut self.jumped);
        if jumped {
            // what went wrong before was no sign of a reader that cannot be followed
            self.no_jump.1 = 0;
        }
        let is_most = self.is_most && self.taken.is_some_and(|taken| taken.1 >= ahead);
        self.note_sustained(news, ahead.min(self.tried.to), is_most);
        if jumped && news.is_whole() && self.step > news.buffer() / 2.0 {
            self.grow(news, news.room as f64);
        }
    }

    /// Detects when the reader falls behind and when it has caught up.
    fn note_pace(&mut self, news: &WindowUpdate) {
        if !news.is_whole() {
            self.behind.get_or_insert((news.now, news.edge));
            if news.window() < 0.6 * news.buffer() {
                self.caught_up = None;
            }
        } else if let Some((since, _)) = self.behind.take()
            && self.ahead.is_some()
            && news.now.since(since) >= news.hop_rtt / 4
        {
            self.caught_up = Some(self.edges.last_quarter(news));
        }
    }

    /// Raises the limit for a reader that has become faster.
    fn jump(&mut self, news: &WindowUpdate) {
        let Some(read) = self.caught_up.filter(|r| news.now.since(r.at) >= LEAST_LOOK.max(news.hop_rtt / 16))
        else {
            return;
        };
        self.caught_up = None;
        let Some(ahead) = self.ahead.filter(|_| news.now >= self.no_jump.0) else { return };
        let taken = if_recent(self.taken, news.now).unwrap_or(0.0);
        let measured = news.ahead_at(read.measured);
        // measured in milliseconds: a limit that the reader kept up with is more exact
        let is_known = taken >= news.scaled(measured, NEAR);
        let to = if is_known { taken.min(news.ahead_at(read.most)) } else { measured };
        let to = to.min(news.room as f64);
        if news.ahead_at(read.least) > ahead + news.buffer() / 2.0 {
            self.leap(news, to);
            self.step = if is_known && self.is_most { 0.0 } else { to / 4.0 };
        }
    }

    /// Lowers the limit if the buffer would be full before the window could show what a change now does.
    fn slow_down(&mut self, news: &WindowUpdate) {
        if news.is_whole() {
            self.busy = None;
            return;
        }
        let busy = self.busy.get_or_insert_with(|| BusyReader::new(news));
        busy.follow(news);
        let Some((rate, falls)) = busy.rates(news) else { return };
        let after = news.ahead_at(rate);
        // if it falls by more than a window, this comes too late
        let falls = falls * news.seconds();
        if news.window() < falls
            && falls < news.buffer() * 1.5
            && news.now.since(self.changed) >= news.hop_rtt
            && self.ahead.unwrap_or(news.room as f64) > after + news.buffer() / 4.0
        {
            (self.step, self.gain, self.jumped) = (0.0, 0.0, false);
            let taken = if_recent(self.taken, news.now).unwrap_or(after);
            if news.scaled(taken, NEAR) <= after {
                (self.taken, self.is_most) = (Some((news.now, after)), true);
            }
            self.settled = news.now;
            self.set(news, after);
            self.is_measured = true;
        }
    }

    fn observe_window(&mut self, news: &WindowUpdate) {
        let look = self.look.get_or_insert_with(|| fresh(news, Duration::ZERO));
        if news.now < look.from {
            return;
        }
        look.least = look.least.min(news.window());
        look.most = look.most.max(news.window());
        let usual = LEAST_LOOK.max(news.hop_rtt / 2);
        if news.now < *look.until.get_or_insert(news.now + usual) {
            return;
        }
        let half = news.buffer() / 2.0;
        let look = *look;
        // not if only what it keeps beyond its window was filling before
        let is_busy = self.busy.is_some_and(|busy| busy.rates(news).is_some());
        let is_idle = look.most >= WHOLE * news.buffer() && !is_busy;
        // a receiver may keep a whole window more than it shows, which fills before the window falls; but not
        // if bursts fill and empty the buffer
        let fills = news.hop_rtt.mul_f64(news.buffer() / self.gain.max(half)).max(usual);
        let bursts = look.least < WHOLE * news.buffer() && news.is_whole();
        if is_idle && !bursts && look.held.is_some() && news.now < look.from + fills {
            return;
        }
        // pacing takes time to use a higher limit, and the effect shows a round trip later
        let effect = look.held.map_or(look.from, |held| held + news.hop_rtt);
        let middle =
            f64::midpoint(look.least, if is_busy { news.window().max(look.least) } else { look.most });
        let swing = if is_idle { look.most - look.least } else { 0.0 };
        self.bunches = [self.bunches[1], swing / news.rate_at(self.ahead.unwrap_or(news.used as f64))];
        self.burst = self.largest_burst(news);
        if is_idle {
            self.note_sustained(news, self.used[0], false);
        }
        self.used = [self.used[1], self.used[2], news.used as f64];
        match self.ahead {
            None if look.most < half => self.set(news, news.used as f64 + middle - half),
            Some(_) if middle > half && effect > look.from => {
                let wait = effect.since(news.now);
                self.look = Some(WindowObservation { held: look.held, ..fresh(news, wait) });
            }
            Some(ahead) if is_idle && look.held.is_some() => {
                let burst = (news.buffer() - look.least).max(1.0);
                let most = (ahead + news.buffer()) * FILL * news.buffer() / burst - news.buffer();
                self.grow(news, most.max(ahead));
            }
            Some(ahead) if !is_idle => {
                self.note_sustained(news, ahead, true);
                self.is_measured = false;
                self.step = half;
                self.set(news, ahead + (middle - half).clamp(-half, half));
            }
            _ => self.look = Some(fresh(news, Duration::ZERO)),
        }
    }

    /// Raises the limit: the reader was idle, and the limit held data back.
    fn grow(&mut self, news: &WindowUpdate, most: f64) {
        let Some(ahead) = self.ahead else { return };
        let half = news.buffer() / 2.0;
        // at the measured rate half a buffer should be filled
        let is_faster = core::mem::take(&mut self.is_measured) && news.now >= self.no_jump.0;
        let to = if_recent(self.taken, news.now).filter(|taken| is_faster && *taken > ahead + half);
        if let Some(to) = to.filter(|to| *to <= most) {
            return self.leap(news, to);
        }
        let step = self.step.max(half);
        // half of the way towards a limit that was recently too high, then small steps
        let near = if_recent(self.too_much, news.now).filter(|too_much| ahead < *too_much);
        let step = near.map_or(step, |near| step.min(((0.9 * near - ahead) / 2.0).max(half / 2.0)));
        let to = (ahead + step).min(most);
        self.gain = to - ahead;
        if step > half {
            self.leap(news, to);
            self.jumped = false;
        } else {
            self.set(news, to);
        }
        self.step = step * 2.0;
    }

    /// A large step: for a round trip no acknowledgment reports on data sent from now on.
    fn leap(&mut self, news: &WindowUpdate, ahead: f64) {
        self.gain = ahead - self.ahead.unwrap_or(ahead);
        self.jumped = true;
        self.settle(news, ahead);
        self.go_blind(news);
    }

    /// Lets only pacing prevent an overflow. Up to half a buffer may go in a burst and then waits at the
    /// reader, unless the hop itself delivers in bursts.
    fn go_blind(&mut self, news: &WindowUpdate) {
        self.blind = news.now + news.hop_rtt;
        let half = news.buffer() / 2.0;
        self.burst = self.largest_burst(news);
        self.tokens = if self.burst < half { 0.0 } else { half };
        self.filled = news.now;
    }

    /// Bytes that may be sent at once: half a buffer, or less if the bursts of the hop need more of it.
    fn largest_burst(&self, news: &WindowUpdate) -> f64 {
        let half = news.buffer() / 2.0;
        let told = if_recent(self.bunched, news.now).unwrap_or(0.0);
        let bunch = self.bunches[0].min(self.bunches[1]).max(told);
        let burst = self.ahead.map_or(0.0, |ahead| bunch * news.rate_at(ahead));
        (FILL * news.buffer() - burst).clamp(half / 8.0, half)
    }

    /// Sets a limit; observation starts when the first data sent now is acknowledged.
    fn settle(&mut self, news: &WindowUpdate, ahead: f64) {
        self.set(news, ahead);
        self.look = Some(fresh(news, news.hop_rtt + news.hop_rtt / 4));
    }

    /// Notes that the reader kept up with `ahead`.
    fn note_sustained(&mut self, news: &WindowUpdate, ahead: f64, is_most: bool) {
        let ahead = ahead.min(news.room as f64);
        if if_recent(self.taken, news.now).is_none_or(|most| ahead >= most) {
            (self.taken, self.is_most) = (Some((news.now, ahead)), is_most);
        }
    }

    /// Sets a limit, whose effect shows a round trip later.
    fn set(&mut self, news: &WindowUpdate, ahead: f64) {
        if (ahead - self.tried.to).abs() > news.buffer().max(ahead / 10.0) {
            self.tried = Attempt::new(news, self.ahead.unwrap_or(ahead), ahead);
        }
        self.ahead = (ahead < news.room as f64).then(|| ahead.max(-news.buffer() / 2.0));
        self.look = Some(fresh(news, news.hop_rtt));
        self.changed = news.now;
    }

    /// Data sent at `sent`, arriving at `una`, was refused.
    pub(crate) fn overflow(&mut self, news: &WindowUpdate, sent: Instant) {
        if self.drain.is_some() {
            return;
        }
        let now = news.now;
        let again = self.overflowed.is_some_and(|at| now.since(at) < news.hop_rtt * 4);
        self.overflowed = Some(now);
        let filling = self.behind.take().map_or(0.0, |(since, edge)| {
            news.edge.saturating_sub(edge) as f64 / now.since(since).as_secs_f64().max(1e-3)
        });
        let busy = self.busy.take().and_then(|busy| busy.rates(news)).map(|rates| rates.0);
        let last = (now, news.edge);
        let first = news.is_whole().then_some(last);
        let is_old = sent < self.settled;
        let (una, before) = (news.una, last);
        self.drain = Some(BufferDrain {
            since: now,
            una,
            first,
            last,
            before,
            moves: 0,
            filling,
            busy,
            again,
            is_old,
        });
        self.caught_up = None;
        self.go_blind(news);
        self.drained(news);
    }

    /// Follows the edge while the full buffer is being read.
    fn drained(&mut self, news: &WindowUpdate) {
        let Some(drain) = &mut self.drain else { return };
        if news.edge > drain.last.1 {
            if drain.first.is_none() {
                drain.first = Some((news.now, news.edge));
            }
            (drain.before, drain.last) = (drain.last, (news.now, news.edge));
            drain.moves += 1;
        }
        let is_read = drain.first.is_some() && news.is_whole();
        if !is_read && news.una < drain.una + news.largest && news.now.since(drain.since) < news.hop_rtt * 2 {
            return;
        }
        let drain = *drain;
        self.drain = None;
        let before = self.ahead.unwrap_or(news.room as f64);
        let now = news.now;
        if !drain.is_old {
            self.settled = now;
        }
        let rate = match drain.rate() {
            None if is_read => None,
            // a buffer that filled slowly shows the rate more exactly
            Some(rate) if drain.moves >= FEW => {
                Some(drain.busy.filter(|busy| (NEAR * rate..rate).contains(busy)).unwrap_or(rate))
            }
            rate => Some(rate.unwrap_or(0.0).max(drain.filling)),
        };
        let after = rate.map_or(f64::INFINITY, |rate| news.ahead_at(rate));
        (self.step, self.gain) = (0.0, 0.0);
        self.blind = now + news.hop_rtt;
        let was_too_much = self.tried.was_too_much(news, drain.since, after);
        if was_too_much && (after < before || drain.again && !drain.is_old) {
            self.too_much = Some((now, before));
        }
        if after < before {
            let was_far = after < news.scaled(before, NEAR);
            if core::mem::take(&mut self.jumped) && was_too_much && was_far {
                let n = (self.no_jump.1 * 2).clamp(DISTRUST.0, DISTRUST.1);
                (self.no_jump, self.taken) = ((now + news.hop_rtt * n, n), None);
            }
            self.settle(news, after);
            self.is_measured = true;
        } else if drain.is_old || after < news.scaled(before, 1.1) {
            self.settle(news, before);
        } else if drain.again || self.largest_burst(news) < news.buffer() / 4.0 {
            // no more than it kept up with recently, and less each time
            let taken = if_recent(self.taken.take(), now).filter(|taken| *taken >= news.scaled(before, 0.5));
            self.bunched = Some((now, news.buffer() / news.rate_at(before)));
            let most = taken.map_or(before, |taken| taken.min(before));
            self.settle(news, news.scaled(most, LESS));
        } else {
            self.settle(news, before);
        }
    }

    /// Position up to which data may be forwarded; `room` is how far beyond the edge the hop allows.
    pub(crate) fn limit(&self, now: Instant, edge: u64, room: u64, trip: Duration, buffer: u64) -> u64 {
        if let Some(drain) = &self.drain {
            let rate = drain.rate().unwrap_or(0.0);
            let ahead = rate * trip.as_secs_f64() - buffer as f64 / 2.0;
            let ahead = ahead.min(self.ahead.unwrap_or(room as f64)).max(0.0);
            return edge + (ahead as u64).min(room);
        }
        let Some(ahead) = self.ahead else { return edge + room };
        let moved = self.rate * now.since(self.told).min(BUNCH).as_secs_f64();
        let ahead = (ahead + moved).min(room as f64);
        if ahead >= 0.0 { edge + ahead as u64 } else { edge.saturating_sub((-ahead) as u64) }
    }

    /// Read rate in bytes per second; none if it is not below the hop's.
    pub(crate) fn rate(&self) -> Option<f64> {
        match &self.drain {
            Some(drain) => Some(drain.rate().unwrap_or(0.0)),
            None => self.ahead.map(|_| self.rate),
        }
    }

    /// Notes that the limit, not only pacing, holds data back.
    pub(crate) fn held_back(&mut self, now: Instant) {
        if let Some(look) = &mut self.look {
            look.held.get_or_insert(now);
        }
    }
}

fn fresh(news: &WindowUpdate, wait: Duration) -> WindowObservation {
    WindowObservation { from: news.now + wait, until: None, least: f64::INFINITY, most: 0.0, held: None }
}

/// The remembered value, unless it is too old.
fn if_recent(value: Option<(Instant, f64)>, now: Instant) -> Option<f64> {
    value.filter(|(at, _)| now.since(*at) < MEMORY).map(|(_, value)| value)
}
