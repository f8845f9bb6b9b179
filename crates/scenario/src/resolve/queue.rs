//! Resolves `discipline`, the queue discipline of a direction.

use super::exactly_one;
use crate::diagnostic::{Fault, Result};
use crate::form::{At, OrTable};
use crate::keys::{CodelKeys, DisciplineKeys, FqCodelKeys};
use bentpipe_link::{Codel, Discipline, FqCodel};

pub(super) fn discipline(given: &At<OrTable<Discipline, DisciplineKeys>>) -> Result<Discipline> {
    let keys = match &given.value {
        OrTable::Plain(discipline) => return Ok(*discipline),
        OrTable::Table(keys) => keys,
    };
    match (&keys.codel, &keys.fq_codel) {
        (Some(keys), None) => codel(&keys.value).map(Discipline::Codel),
        (None, Some(keys)) => fq_codel(&keys.value).map(Discipline::FqCodel),
        _ => Err(exactly_one(given.span, "discipline", "codel, fq_codel")),
    }
}

fn codel(keys: &CodelKeys) -> Result<Codel> {
    let default = Codel::default();
    let codel = Codel {
        target: keys.target.map_or(default.target, |t| t.value),
        interval: keys.interval.map_or(default.interval, |i| i.value),
        ecn: keys.ecn.map_or(default.ecn, |e| e.value),
    };
    for (key, given) in [("target", keys.target), ("interval", keys.interval)] {
        given.map(|given| given.positive(key)).transpose()?;
    }
    if let Some(wrong) = keys.target.or(keys.interval).filter(|_| codel.target > codel.interval) {
        let label = format!("`target` is {} and `interval` {}", codel.target, codel.interval);
        return Err(Fault::new(wrong.span, "`target` is longer than `interval`", label));
    }
    Ok(codel)
}

fn fq_codel(keys: &FqCodelKeys) -> Result<FqCodel> {
    let (default, least) = (FqCodel::default(), FqCodel::LEAST_QUANTUM);
    Ok(FqCodel {
        codel: codel(&keys.codel)?,
        quantum: keys.quantum.map_or(Ok(default.quantum), |q| q.at_least("quantum", least, "small"))?,
        flows: keys.flows.map_or(default.flows, |f| f.value.0 as u32),
    })
}
