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
        if let Some(given) = given.filter(|g| g.value.is_zero()) {
            return Err(Fault::zero(given.span, key));
        }
    }
    if let Some(guilty) = keys.target.or(keys.interval).filter(|_| codel.target > codel.interval) {
        let label = format!("`target` is {} and `interval` {}", codel.target, codel.interval);
        return Err(Fault::new(guilty.span, "`target` is longer than `interval`", label));
    }
    Ok(codel)
}

fn fq_codel(keys: &FqCodelKeys) -> Result<FqCodel> {
    let default = FqCodel::default();
    if let Some(guilty) = keys.quantum.filter(|q| q.value < FqCodel::LEAST_QUANTUM) {
        let label = format!("at least {} B", FqCodel::LEAST_QUANTUM.0);
        return Err(Fault::new(guilty.span, "`quantum` is too small", label));
    }
    Ok(FqCodel {
        codel: codel(&keys.codel)?,
        quantum: keys.quantum.map_or(default.quantum, |q| q.value),
        flows: keys.flows.map_or(default.flows, |f| f.value.0 as u32),
    })
}
