//! Outages: periods in which everything sent is lost.
//!
//! They stand for shadowing by buildings and trees, or for a terminal that loses its satellite. The time from
//! the end of one to the beginning of the next is M, exactly or as the mean of an exponential distribution.
//! The length is uniform in a range L. The share of time in outage is mean(L) / (M + mean(L)).

use crate::state::{Process, SHORTEST_STEP, State};
use bentpipe_base::trace::DropCause;
use bentpipe_base::{Cx, Duration, Instant, RngSlot};

/// Parameters of recurring outages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outages {
    /// Time from the end of one outage to the beginning of the next: the mean, or exactly this.
    pub every: Duration,
    /// Exponential gaps instead of equal ones.
    pub random: bool,
    /// Shortest outage.
    pub shortest: Duration,
    /// Longest outage; equal to `shortest` for a fixed length.
    pub longest: Duration,
}

/// The outages of one direction. The run begins as if an outage had just ended.
#[derive(Debug)]
pub(crate) struct OutageProcess {
    parameters: Outages,
    rng: RngSlot,
    /// The current or next outage.
    begin: Instant,
    end: Instant,
}

impl OutageProcess {
    pub(crate) fn new(parameters: Outages, rng: RngSlot) -> Self {
        let parameters = Outages { every: parameters.every.max(SHORTEST_STEP), ..parameters };
        Self { parameters, rng, begin: Instant::ZERO, end: Instant::ZERO }
    }
}

impl Process for OutageProcess {
    fn apply(&mut self, at: Instant, cx: &mut Cx<'_>, state: &mut State) -> Instant {
        let Outages { every, random, shortest, longest } = self.parameters;
        while self.end <= at && self.end != Instant::NEVER {
            let rng = cx.rng(self.rng);
            let gap = if random { rng.exponential(every).max(Duration(1)) } else { every };
            self.begin = self.end + gap;
            self.end = self.begin + Duration(rng.between(shortest.0 as f64, longest.0 as f64) as u64);
        }
        if at < self.begin {
            return self.begin;
        }
        state.lost_to = state.lost_to.or(Some(DropCause::Outage));
        self.end
    }
}
