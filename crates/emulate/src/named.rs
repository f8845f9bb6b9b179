//! A scenario for a named link profile: two hosts, `far` and `near`, and the link between them.

use bentpipe_base::{Duration, Rate, Size};
use bentpipe_link::{Capacity, Change};
use bentpipe_scenario::{Diagnostic, Place, Scenario, Source, load};
use std::sync::Arc;

/// The scenario of a named link profile. Forward is from `far` to `near`, where the user is.
///
/// # Errors
/// When there is no profile of this name; the error lists those that exist.
pub fn profile_scenario(name: &str, seed: Option<u64>) -> Result<Scenario, Box<Diagnostic>> {
    // quote the name, so that it cannot contain TOML syntax
    let quoted = serde_json::Value::from(name).to_string();
    let text = format!(
        r#"schema = 1
title = {quoted}
duration = "31536000 s"
hosts = [{{ name = "far" }}, {{ name = "near" }}]

[[links]]
name = "link"
from = "far"
to = "near"
profile = {quoted}

[[flows]]
name = "down"
from = "far"
to = "near"
"#
    );
    load(&Source::new("named link", &text), &[], seed).map_err(|mut fault| {
        // the user has not seen the generated file, only the name
        let line = format!("emulate {name}");
        fault.place = Place::find("command line", &line, line.len() - name.len(), line.len());
        fault
    })
}

/// Changes both directions of a named link before it starts, as `bentpipe link set` does. If rate or delay
/// change and no queue limit is given, it becomes the bandwidth-delay product.
pub fn change(scenario: &mut Scenario, change: &Change) {
    for link in &mut scenario.links {
        let round_trip = [&link.forward, &link.backward].map(|d| change.delay.unwrap_or(d.delay));
        let round_trip = round_trip[0] + round_trip[1];
        for direction in [&mut link.forward, &mut link.backward].map(Arc::make_mut) {
            direction.rate = change.rate.unwrap_or(direction.rate);
            direction.delay = change.delay.unwrap_or(direction.delay);
            direction.loss = change.loss.unwrap_or(direction.loss);
            direction.ber = change.ber.unwrap_or(direction.ber);
            if let Some(buffer) = change.buffer {
                direction.buffer = buffer;
            } else if change.rate.is_some() || change.delay.is_some() {
                direction.buffer = Capacity::Bytes(bandwidth_delay(direction.rate, round_trip));
            }
        }
    }
}

/// Bytes that `rate` carries in `time`; at least two full packets.
pub fn bandwidth_delay(rate: Rate, time: Duration) -> Size {
    let bits = u128::from(rate.bps()) * u128::from(time.0) / 1_000_000_000;
    Size((bits / 8).clamp(3000, 1 << 40) as u64)
}

/// Name, queue size and bandwidth-delay product of the directions whose queue holds less than that product.
pub fn small_queues(scenario: &Scenario) -> Vec<(String, String, String)> {
    let mut all = Vec::new();
    for link in &scenario.links {
        let round_trip = link.forward.delay + link.backward.delay;
        for (name, direction) in [(&link.name, &link.forward), (&link.reverse_name, &link.backward)] {
            let wants = bandwidth_delay(direction.rate, round_trip);
            let (has, text) = match direction.buffer {
                // assume full-sized packets
                Capacity::Packets(n) => (Size(u64::from(n) * 1500), format!("{n} packets")),
                Capacity::Bytes(bytes) => (bytes, bytes.to_string()),
            };
            if has.0 < wants.0 && wants.0 > 3000 {
                all.push((name.to_string(), text, wants.to_string()));
            }
        }
    }
    all
}
