//! A change to links: how to apply it, and its form in a journal.

use super::messages::{LinkValues, MAX_TIME_AND_RATE};
use bentpipe_base::{Duration, NodeId};
use bentpipe_driver::LiveNetwork;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A change as written to a journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordedChange {
    pub(super) on: Vec<String>,
    pub(super) act: LinkChange,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LinkChange {
    Set(LinkValues),
    OutageNs(u64),
    Reset,
}

/// Applies a change read from a journal at the network's present time; `links` are those of the network.
///
/// # Errors
/// A message if the change cannot be parsed or applied.
pub fn replay_change(json: &str, net: &mut LiveNetwork, links: &[(Arc<str>, NodeId)]) -> Result<(), String> {
    let made: RecordedChange = serde_json::from_str(json).map_err(|e| e.to_string())?;
    for name in &made.on {
        let id = links.iter().find(|l| *l.0 == **name).map(|l| l.1);
        let id = id.ok_or_else(|| format!("there is no link direction `{name}`"))?;
        made.act.check()?;
        made.act.apply(net, name, id)?;
    }
    Ok(())
}

impl LinkChange {
    /// Returns an error if a value is out of range.
    pub(super) fn check(&self) -> Result<(), String> {
        match self {
            Self::Set(values) => values.change().map(|_| ()),
            Self::OutageNs(ns) if *ns == 0 || *ns > MAX_TIME_AND_RATE.0 => {
                Err("length_ns is out of range".to_owned())
            }
            Self::OutageNs(_) | Self::Reset => Ok(()),
        }
    }

    /// Applies the change to one direction, now.
    pub(super) fn apply(&self, net: &mut LiveNetwork, name: &str, id: NodeId) -> Result<(), String> {
        // from now on super-packets are cut into wire packets, because losses and rates act on wire packets
        net.network.pass_whole = false;
        let Some((link, mut cx)) = net.network.link(id) else {
            return Err(format!("`{name}` is not a link"));
        };
        match self {
            Self::Set(values) => {
                let change = values.change()?;
                link.change(&mut cx, name, &change);
                if change.rate.is_some() {
                    net.with(|network| network.tell_rate(id, change.rate));
                }
            }
            Self::OutageNs(ns) => link.outage(&mut cx, name, Duration(*ns)),
            Self::Reset => {
                link.reset(&mut cx, name);
                net.with(|network| network.tell_rate(id, None));
            }
        }
        Ok(())
    }
}
