//! Name of a run: a hash of everything that can change its result.
//!
//! This is the whole resolved scenario, except for the title and given parameters, which are only text, and
//! captures, which only observe; and the version and fingerprints of the simulator. The scenario is hashed
//! as printed by its derived `Debug`, so every field is covered, also new ones, with floats exact to the
//! last bit. The seed comes after it, so that the runs of a cell share the long part of the work.

use bentpipe_scenario::Scenario;

/// What the names of runs that differ in nothing but the seed have in common.
pub(crate) struct CellKey(blake3::Hasher);

impl CellKey {
    pub(crate) fn of(scenario: &Scenario) -> Self {
        Self::with(bentpipe_sim::FINGERPRINTS, scenario)
    }

    fn with(fingerprints: &str, scenario: &Scenario) -> Self {
        let plain = Scenario {
            title: String::new(),
            parameters: Vec::new(),
            captures: Vec::new(),
            seed: 0,
            ..scenario.clone()
        };
        let mut hasher = blake3::Hasher::new();
        hasher.update(format!("{fingerprints}\n{plain:?}").as_bytes());
        Self(hasher)
    }

    pub(crate) fn of_run(&self, seed: u64) -> String {
        self.0.clone().update(&seed.to_le_bytes()).finalize().to_hex().to_string()
    }
}

pub(crate) fn run_key(scenario: &Scenario) -> String {
    CellKey::of(scenario).of_run(scenario.seed)
}

/// Returns a short identifier of the simulator's results: equal identifiers mean equal results.
pub(crate) fn semantics() -> String {
    let hash = blake3::hash(bentpipe_sim::FINGERPRINTS.as_bytes()).to_hex();
    format!("{}-{}", bentpipe_sim::SEMANTICS, &hash[..16])
}

#[cfg(test)]
#[path = "key_tests.rs"]
mod tests;
