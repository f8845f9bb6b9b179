//! A reader that always has data: the right edge moves at its rate, and the window falls by what arrives
//! beyond it.

use super::{LEAST_LOOK, WindowUpdate};
use bentpipe_base::{Duration, Instant};

/// Time, edge and window at one acknowledgment.
type Mark = (Instant, u64, f64);

/// Two marks, so that a rate is measured over a quarter to half of a round trip.
#[derive(Clone, Copy, Debug)]
pub(super) struct BusyReader {
    older: Mark,
    newer: Mark,
}

impl BusyReader {
    /// Starts at an acknowledgment that shows a window that is not fully open.
    pub(super) fn new(news: &WindowUpdate) -> Self {
        let mark = mark(news);
        Self { older: mark, newer: mark }
    }

    pub(super) fn follow(&mut self, news: &WindowUpdate) {
        if news.now.since(self.newer.0) >= least_time(news) {
            (self.older, self.newer) = (self.newer, mark(news));
        }
    }

    /// The read rate and the speed at which the window falls, bytes per second, once they can be measured.
    pub(super) fn rates(&self, news: &WindowUpdate) -> Option<(f64, f64)> {
        let (since, edge, window) = self.older;
        let time = news.now.since(since);
        let seconds = time.as_secs_f64();
        (time >= least_time(news))
            .then(|| ((news.edge - edge) as f64 / seconds, (window - news.window()) / seconds))
    }
}

/// A rate is measured over at least this time.
fn least_time(news: &WindowUpdate) -> Duration {
    LEAST_LOOK.max(news.hop_rtt / 4)
}

fn mark(news: &WindowUpdate) -> Mark {
    (news.now, news.edge, news.window())
}
