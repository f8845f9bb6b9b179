//! Resolves `[[middleboxes]]`, each at the start of a link direction.

use super::names::Directions;
use super::unique_name;
use crate::diagnostic::{Fault, Result, bail};
use crate::form::At;
use crate::gateway_file::DscpClass;
use crate::keys::MiddleboxKeys;
use crate::lists::Pairs;
use crate::types::MiddleboxSpec;
use bentpipe_base::{Dscp, Duration};
use bentpipe_nodes::{DscpRule, MiddleboxConfig};
use std::collections::BTreeSet;

const MAX_MIDDLEBOXES: usize = 1000;

pub(super) fn resolve(
    given: &[At<MiddleboxKeys>],
    names: &Directions<'_>,
    duration: Duration,
) -> Result<Vec<MiddleboxSpec>> {
    let mut all = Vec::new();
    let (mut taken, mut places) = (BTreeSet::new(), BTreeSet::new());
    for middlebox in given {
        let keys = &middlebox.value;
        let of = ("middleboxes", MAX_MIDDLEBOXES);
        let name = unique_name(&mut taken, &keys.name, middlebox.span, of)?;
        let hop = names.find(&keys.link)?;
        if let Some(from) = keys.from.filter(|from| from.value.0 >= duration.0) {
            bail!(from.span, "this middlebox begins after the run", "the run lasts {duration}");
        }
        let config = config(keys)?;
        if config == (MiddleboxConfig { from: config.from, ..MiddleboxConfig::default() }) {
            let label = "give it `dscp`, `dscp_map`, `drop` or `nat = true`";
            return Err(Fault::new(middlebox.span, "this middlebox does nothing", label));
        }
        if !keys.enabled.is_none_or(|e| e.value) {
            continue;
        }
        if !places.insert(hop) {
            let message = format!("two middleboxes before `{}`", keys.link.value.0);
            return Err(Fault::new(keys.link.span, message, "this is the second"));
        }
        all.push(MiddleboxSpec { name, hop, config });
    }
    Ok(all)
}

fn config(keys: &MiddleboxKeys) -> Result<MiddleboxConfig> {
    let dscp = match (&keys.dscp, &keys.dscp_map) {
        (None, None) => DscpRule::Keep,
        (Some(all), None) => DscpRule::All(code_point(all.value)),
        (None, Some(pairs)) => DscpRule::Map(map(&pairs.value)?),
        (Some(all), Some(_)) => {
            return Err(Fault::new(all.span, "`dscp` and `dscp_map` exclude each other", "drop one of them"));
        }
    };
    let mut drops = Vec::new();
    for unwanted in keys.drop.iter().flat_map(|list| &list.value.0) {
        if drops.contains(&unwanted.value) {
            bail!(unwanted.span, "`drop` says this twice", "drop one of them");
        }
        drops.push(unwanted.value);
    }
    let from = keys.from.map_or_else(Default::default, |from| from.value);
    Ok(MiddleboxConfig { from, dscp, drops, nat: keys.nat.is_some_and(|nat| nat.value) })
}

fn map(pairs: &Pairs<DscpClass, DscpClass>) -> Result<Vec<(Dscp, Dscp)>> {
    let mut all: Vec<(Dscp, Dscp)> = Vec::new();
    for (before, after) in &pairs.0 {
        let pair = (code_point(before.value), code_point(after.value));
        if all.iter().any(|(known, _)| *known == pair.0) {
            bail!(before.span, "`dscp_map` has this DSCP twice", "each becomes one other");
        }
        all.push(pair);
    }
    Ok(all)
}

/// The parser has checked the range.
fn code_point(class: DscpClass) -> Dscp {
    Dscp::new(class.0).unwrap_or_default()
}
