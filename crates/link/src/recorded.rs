//! A recorded series of values, such as measured delays or losses.
//!
//! Each value holds until the next sample. There is no interpolation, because it would hide the steps that
//! handovers make. A series can repeat when it ends.
//!
//! The loss of a packet is drawn with the value at the start of its transmission; its delay is the value at
//! the end. When the delay drops, packets keep their order.

use crate::state::{Process, SHORTEST_STEP, State};
use bentpipe_base::{Cx, Duration, Instant, Probability, Rate};
use std::sync::Arc;

/// A value over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded<T> {
    /// Instants in order, and the value from there on. The first value also holds before its instant.
    pub points: Arc<[(Instant, T)]>,
    /// Repeat after this time, which is later than the last point.
    pub repeat: Option<Duration>,
}

impl<T: Copy> Recorded<T> {
    /// Returns the value at `at`, and until when it holds.
    fn value(&self, at: Instant) -> (Option<T>, Instant) {
        let (value, until) = self.at_instant(at);
        (value.or_else(|| self.points.first().map(|p| p.1)), until)
    }

    /// Returns the value of the last point that is not after `at`, and until when it holds. Time restarts
    /// after each `repeat`.
    fn at_instant(&self, at: Instant) -> (Option<T>, Instant) {
        // without `repeat` the period is practically infinite
        let repeat = self.repeat.map_or(Duration(u64::MAX), |r| r.max(SHORTEST_STEP));
        let within = Duration(at.0 % repeat.0);
        let begin = Instant(at.0 - within.0);
        let after = self.points.partition_point(|p| p.0.0 <= within.0);
        let value = after.checked_sub(1).and_then(|i| self.points.get(i)).map(|p| p.1);
        let next = self.points.get(after).map_or(repeat, |p| Duration(p.0.0).min(repeat));
        (value, begin + next)
    }
}

/// The rate; before the first point it is the link's own.
impl Process for Recorded<Option<Rate>> {
    fn apply(&mut self, at: Instant, _cx: &mut Cx<'_>, state: &mut State) -> Instant {
        let (rate, until) = self.at_instant(at);
        state.rate = rate.unwrap_or(state.rate);
        until
    }
}

impl Process for Recorded<Duration> {
    fn apply(&mut self, at: Instant, _cx: &mut Cx<'_>, state: &mut State) -> Instant {
        let (delay, until) = self.value(at);
        state.one_way = delay.unwrap_or(state.one_way);
        until
    }
}

impl Process for Recorded<Probability> {
    fn apply(&mut self, at: Instant, _cx: &mut Cx<'_>, state: &mut State) -> Instant {
        let (loss, until) = self.value(at);
        state.loss = loss.map_or(state.loss, Probability::get);
        until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_holds_until_the_next_and_the_first_before_it() {
        let points = [(Instant(10), 1), (Instant(20), 2)];
        let series = |repeat| Recorded { points: points.into(), repeat };
        let once = series(None);
        for (at, expected) in [(0, (1, 10)), (10, (1, 20)), (19, (1, 20))] {
            assert_eq!(once.value(Instant(at)), (Some(expected.0), Instant(expected.1)), "{at}");
        }
        assert_eq!(once.value(Instant(20)), (Some(2), Instant::NEVER));
        // 100 us, the shortest
        let again = series(Some(Duration(30)));
        assert_eq!(again.value(Instant(99_999)), (Some(2), Instant(100_000)));
        assert_eq!(again.value(Instant(100_005)), (Some(1), Instant(100_010)));
        let empty = Recorded::<u8> { points: [].into(), repeat: None };
        assert_eq!(empty.value(Instant(5)), (None, Instant::NEVER));
    }
}
