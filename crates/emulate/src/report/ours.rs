//! The scenario's own flows, as their sockets measured them.

use super::Flows;
use crate::flows::Outcome;

impl From<Outcome> for Flows {
    fn from(outcome: Outcome) -> Self {
        let Outcome { flows, record, faults, .. } = outcome;
        Self { reports: flows, record, faults, of_scenario: true }
    }
}
