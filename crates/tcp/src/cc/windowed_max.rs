//! Maximum of recent values.
//!
//! Source: draft-cardwell-iccrg-bbr-congestion-control-00, section 4.1.1.3: the maximum over a window of
//! round trips. A value is dropped when a later one is at least as large, so the stored values decrease from
//! front to back, and the front is the maximum. Kathleen Nichols' filter keeps only three values.

use std::collections::VecDeque;

/// The largest value in a window of times; a time is any counter that never decreases.
#[derive(Clone, Debug, Default)]
pub(super) struct WindowedMax {
    /// Length of the window in times.
    span: u64,
    samples: VecDeque<(u64, u64)>,
}

impl WindowedMax {
    /// Creates a window of `span` times, at least one.
    pub(super) const fn new(span: u64) -> Self {
        Self { span, samples: VecDeque::new() }
    }

    /// Adds `value` at `time`.
    pub(super) fn take(&mut self, time: u64, value: u64) {
        while self.samples.back().is_some_and(|(_, v)| *v <= value) {
            self.samples.pop_back();
        }
        if self.samples.back().is_none_or(|(t, _)| *t != time) {
            self.samples.push_back((time, value));
        }
        while self.samples.front().is_some_and(|(t, _)| t + self.span <= time) {
            self.samples.pop_front();
        }
    }

    /// Returns the maximum; 0 before the first value.
    pub(super) fn get(&self) -> u64 {
        self.samples.front().map_or(0, |(_, v)| *v)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_of_the_window_is_kept_and_forgotten() {
        let mut m = WindowedMax::new(3);
        let seen: Vec<u64> = [5, 9, 4, 3, 2, 8, 1]
            .into_iter()
            .enumerate()
            .map(|(t, v)| {
                m.take(t as u64, v);
                m.get()
            })
            .collect();
        assert_eq!(seen, [5, 9, 9, 9, 4, 8, 8]);
    }

    /// Several values at one time; every window is compared with a linear search.
    #[test]
    fn it_agrees_with_a_search() {
        let values: Vec<u64> = (0..400u64).map(|i| i * i * 7919 % 101).collect();
        let mut m = WindowedMax::new(10);
        for (i, v) in values.iter().enumerate() {
            let time = i as u64 / 3;
            m.take(time, *v);
            let from = (time + 1).saturating_sub(10) as usize * 3;
            assert_eq!(m.get(), *values[from..=i].iter().max().unwrap());
        }
    }
}
