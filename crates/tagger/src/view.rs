//! What can be seen of a flow from outside.

use crate::flow::{Flow, Phase};
use crate::table::FlowKey;
use bentpipe_advice::negotiation::RateState;
use bentpipe_base::{Duration, Instant, Rate};

/// How far a flow is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowPhase {
    /// The handshake is under way.
    Opening,
    /// Both ends signal.
    Open,
    /// It has ended.
    Closed,
}

/// A flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowView {
    /// Its ends.
    pub flow: FlowKey,
    /// The host opened it.
    pub is_ours: bool,
    /// How far it is.
    pub phase: FlowPhase,
    /// Since when.
    pub since: Instant,
    /// The rate that it asks for first.
    pub asked: Option<Rate>,
    /// The rate that it has.
    pub granted: Option<Rate>,
    /// The state of its request.
    pub state: RateState,
    /// Smoothed round-trip time; zero if it is not known.
    pub srtt: Duration,
}

impl Flow {
    pub(crate) fn view(&self, flow: FlowKey) -> FlowView {
        FlowView {
            flow,
            is_ours: self.is_ours,
            phase: match self.phase {
                Phase::Opening => FlowPhase::Opening,
                Phase::Open => FlowPhase::Open,
                Phase::Closing => FlowPhase::Closed,
            },
            since: self.since,
            asked: self.negotiation.config().asked(),
            granted: self.told,
            state: self.negotiation.state(),
            srtt: self.track.srtt,
        }
    }
}
