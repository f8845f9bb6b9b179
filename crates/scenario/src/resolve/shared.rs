//! Directions that share the rain of a station or the slots of a pair must define them equally.

use crate::diagnostic::{Fault, Result};
use crate::source::Span;
use crate::types::LinkSpec;
use bentpipe_link::{FadeSource, Orbit, Rain};
use std::collections::BTreeMap;

/// Returns an error if directions define the same station or pair differently. `span`: the network.
pub(super) fn check(links: &[LinkSpec], span: Span) -> Result<()> {
    let mut rains: BTreeMap<&str, (Rain, &str)> = BTreeMap::new();
    let mut schedules = BTreeMap::new();
    let sides = links.iter().flat_map(|l| [(&l.forward, &l.name), (&l.backward, &l.reverse_name)]);
    for (side, name) in sides {
        let Some(dynamics) = &side.dynamics else { continue };
        if let Some(FadeSource::Rain(rain)) = dynamics.fade.as_ref().map(|f| &f.source) {
            // scale and scintillation may differ between directions
            let weather = Rain { scale: 1.0, scintillation_db: 0.0, ..rain.clone() };
            let (first, of) = rains.entry(&rain.station).or_insert((weather.clone(), name));
            if *first != weather {
                let label = "m, sigma, p0, beta and step must be the same, or the stations have two names";
                return Err(differ(span, [of, name], &format!("station `{}`", rain.station), label));
            }
        }
        if let Some(Orbit::Slots(slots)) = &dynamics.orbit {
            let times = (slots.period, slots.offset);
            let (first, of) = *schedules.entry(slots.pair.as_str()).or_insert((times, &**name));
            if first != times {
                let label = "period and offset must be the same, or the pairs have two names";
                return Err(differ(span, [of, name], &format!("pair `{}`", slots.pair), label));
            }
        }
    }
    Ok(())
}

fn differ(span: Span, [a, b]: [&str; 2], what: &str, label: &str) -> Fault {
    Fault::new(span, format!("`{a}` and `{b}` share {what} and describe it differently"), label)
}
