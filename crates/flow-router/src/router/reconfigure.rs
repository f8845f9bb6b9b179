//! Changes of the configuration while flows are routed.
//!
//! Rate, utilisation, rules, times of silence and the MTU apply at once: shares follow, and a flow keeps the
//! class that it has. What the state is built on is fixed: the classes, which flows are members of, the
//! sizes of the tables, and the encodings, which flows have agreed on.

use super::FlowRouter;
use crate::charges::Charges;
use crate::config::RouterConfig;
use crate::flow::Timeouts;
use bentpipe_base::Cx;
use core::fmt;

/// What cannot change while flows are routed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fixed {
    /// The encodings.
    Encodings,
    /// The classes.
    Classes,
    /// The sizes of the tables, and the time for which requests wait.
    Limits,
}

impl fmt::Display for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Encodings => "`encodings` cannot change while flows have agreed on rates",
            Self::Classes => "`classes` cannot change while flows are members of them",
            Self::Limits => "`limits` cannot change while tables of these sizes are in use",
        })
    }
}

impl core::error::Error for Fixed {}

impl RouterConfig {
    /// Checks that a router with this configuration can change to `new` ([`FlowRouter::reconfigure`]).
    ///
    /// # Errors
    /// The first thing that differs and cannot change.
    pub fn can_become(&self, new: &Self) -> Result<(), Fixed> {
        let limits = |config: &Self| (config.flows, config.half_open, config.half_open_time);
        let differences = [
            (Fixed::Encodings, self.encodings != new.encodings),
            (Fixed::Classes, self.classes != new.classes),
            (Fixed::Limits, limits(self) != limits(new)),
        ];
        differences.into_iter().find(|(_, differs)| *differs).map_or(Ok(()), |(what, _)| Err(what))
    }
}

impl FlowRouter {
    /// Changes the configuration. Flows keep their state. With other rules charges begin anew, and a flow is
    /// charged to nobody in particular until it asks again.
    ///
    /// # Errors
    /// If something differs that cannot change; the configuration is then the old one.
    pub fn reconfigure(&mut self, cx: &mut Cx<'_>, new: RouterConfig) -> Result<(), Fixed> {
        self.config.can_become(&new)?;
        if self.config.policy != new.policy {
            // the totals are of other rules
            self.charges = Charges::new(new.policy.rules.len());
            self.flows.forget_payers();
        }
        self.config = new;
        self.flows.set_timeouts(Timeouts::of(&self.config));
        self.apply_capacity(cx);
        Ok(())
    }
}
