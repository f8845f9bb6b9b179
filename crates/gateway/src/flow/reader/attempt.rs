//! A new limit, until the reader has kept up with it.

use super::WindowUpdate;
use bentpipe_base::Instant;

/// The last change of the limit by more than a buffer and a tenth.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Attempt {
    from: f64,
    pub(super) to: f64,
    /// Until then an overflow may show that it was too much.
    until: Instant,
    is_proven: bool,
}

impl Attempt {
    /// It shows after a round trip. What arrives beyond the reader's rate then fills what the window shows,
    /// and as much that it may not show.
    pub(super) fn new(news: &WindowUpdate, from: f64, to: f64) -> Self {
        let fills = (2.0 * news.buffer() / (to - from).max(1.0)).min(1.75);
        Self { from, to, until: news.now + news.hop_rtt.mul_f64(1.25 + fills), is_proven: false }
    }

    /// True once, when the reader has kept up with it.
    pub(super) fn prove(&mut self, news: &WindowUpdate) -> bool {
        let is_used = news.used as f64 + news.buffer() / 2.0 >= self.to;
        !self.is_proven && news.now >= self.until && is_used && {
            self.is_proven = true;
            true
        }
    }

    /// True if the change explains an overflow at `at`, after which the reader's rate asks for `after`. If it
    /// asks for less than the limit before, the reader has become slower.
    pub(super) fn was_too_much(&self, news: &WindowUpdate, at: Instant, after: f64) -> bool {
        at < self.until && after >= self.from - news.buffer()
    }
}
