//! F-RTO: detects spurious timeouts.
//!
//! Source: RFC 5682, section 2.1 (basic) and 3.1 (with SACK). After a timeout the first segment is resent. If
//! the next ACK advances (but not past what was sent before the timeout), up to two new segments go out in
//! place of retransmissions; if the ACK after that advances too, for data that was never resent, the
//! originals are arriving and the timeout was spurious. A duplicate ACK at either step ends the test: the
//! timeout was right. Deviation: none. The response is to put back the window from before the timeout (RFC
//! 5682 leaves it open; RFC 4015 does this).

use super::AckView;
use crate::board::Scoreboard;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    #[default]
    Off,
    /// Waiting for the first ACK.
    First,
    /// New data is being sent; waiting for the second ACK.
    Second,
}

/// The test's state.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Frto {
    step: Step,
    /// Where the data sent before the timeout ends.
    pub(super) recover: u64,
}

impl Frto {
    pub(super) const fn begin(&mut self, recover: u64) {
        self.step = Step::First;
        self.recover = recover;
    }

    pub(super) const fn stop(&mut self) {
        self.step = Step::Off;
    }

    pub(super) const fn is_active(&self) -> bool {
        !matches!(self.step, Step::Off)
    }

    pub(super) const fn prefers_new(&self) -> bool {
        matches!(self.step, Step::Second)
    }

    /// Takes an ACK; true when the timeout was spurious.
    pub(super) fn on_ack(&mut self, board: &Scoreboard, view: &AckView<'_>) -> bool {
        let advanced = view.digest.acked > 0;
        match self.step {
            Step::First if advanced && board.una() < self.recover => {
                self.step = Step::Second;
                false
            }
            // section 3.1: a SACK of data sent before the timeout and never resent proves it too
            Step::Second
                if view.digest.original_acked
                    && (advanced || view.digest.newest.is_some_and(|(_, end)| end <= self.recover)) =>
            {
                self.step = Step::Off;
                !view.digest.resent_acked
            }
            Step::First | Step::Second if advanced || view.digest.duplicate => {
                self.step = Step::Off;
                false
            }
            Step::Off | Step::First | Step::Second => false,
        }
    }
}
