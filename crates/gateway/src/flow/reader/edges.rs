//! Recent right edges: how fast the reader empties its buffer.

use super::WindowUpdate;
use bentpipe_base::{Duration, Instant};
use std::collections::VecDeque;

/// Number of edges remembered, and their distance as a share of the buffer.
const TRAIL: (usize, f64) = (24, 1.0 / 16.0);
/// Error of a time between two acknowledgments: programs read in steps, hosts and links delay.
const JITTER: Duration = Duration::from_millis(2);

#[derive(Clone, Debug, Default)]
pub(super) struct Edges(VecDeque<(Instant, u64)>);

/// The rate, in bytes per second, at which the last quarter of a buffer was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quarter {
    pub(super) at: Instant,
    pub(super) measured: f64,
    /// Bounds: reading may have begun and ended between two acknowledgments, and their times are not exact.
    pub(super) least: f64,
    pub(super) most: f64,
}

impl Edges {
    pub(super) fn follow(&mut self, news: &WindowUpdate) {
        let least = (news.buffer() * TRAIL.1) as u64;
        if self.0.back().is_none_or(|last| news.edge >= last.1 + least) {
            if self.0.len() == TRAIL.0 {
                self.0.pop_front();
            }
            self.0.push_back((news.now, news.edge));
        }
    }

    pub(super) fn last_quarter(&self, news: &WindowUpdate) -> Quarter {
        let quarter = news.edge.saturating_sub((news.buffer() / 4.0) as u64);
        let from = self.0.iter().rposition(|(_, edge)| *edge <= quarter).unwrap_or(0);
        let (since, edge) = self.0.get(from).copied().unwrap_or((news.now, news.edge));
        let mut inner = self.0.range((from + 1).min(self.0.len())..).filter(|(at, _)| *at < news.now);
        let ends = inner.next().zip(inner.next_back()).map_or(Duration::ZERO, |(a, b)| b.0.since(a.0));
        let time = news.now.since(since);
        let rate = |time: Duration| news.edge.saturating_sub(edge) as f64 / time.as_secs_f64();
        let (measured, least) = (rate(time.max(JITTER)), rate(time + JITTER));
        let most = if ends > JITTER { rate(Duration(ends.0 - JITTER.0)) } else { f64::INFINITY };
        Quarter { at: news.now, measured, least, most }
    }
}
