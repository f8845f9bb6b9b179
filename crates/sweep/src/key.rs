//! Name of a run: a hash of everything that can change its result.
//!
//! This is the whole resolved scenario, except for the title and given parameters, which are only text, and
//! captures, which only observe; and the version and fingerprints of the simulator. The scenario is hashed
//! as printed by its derived `Debug`, so every field is covered, also new ones, with floats exact to the
//! last bit.

use bentpipe_scenario::Scenario;

pub(crate) fn run_key(scenario: &Scenario) -> String {
    run_key_with(bentpipe_sim::FINGERPRINTS, scenario)
}

fn run_key_with(fingerprints: &str, scenario: &Scenario) -> String {
    let plain =
        Scenario { title: String::new(), parameters: Vec::new(), captures: Vec::new(), ..scenario.clone() };
    blake3::hash(format!("{fingerprints}\n{plain:?}").as_bytes()).to_hex().to_string()
}

/// Returns a short identifier of the simulator's results: equal identifiers mean equal results.
pub(crate) fn semantics() -> String {
    let hash = blake3::hash(bentpipe_sim::FINGERPRINTS.as_bytes()).to_hex();
    format!("{}-{}", bentpipe_sim::SEMANTICS, &hash[..16])
}

#[cfg(test)]
#[path = "key_tests.rs"]
mod tests;
