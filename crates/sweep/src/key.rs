//! The name of a run: a hash of all that can change its result.
//!
//! That is the whole resolved scenario, less what only people read (title, parameters as they were given) and
//! what only looks on from outside (captures), and what the simulator computes (its version and the
//! fingerprints of known runs). The scenario is hashed as Rust's derived `Debug` prints it: every field of
//! every type in it, those of tomorrow included, floats to the last bit.

use bentpipe_scenario::Scenario;
use core::fmt::Write as _;

pub(crate) fn key(scenario: &Scenario) -> String {
    key_under(bentpipe_sim::FINGERPRINTS, scenario)
}

fn key_under(fingerprints: &str, scenario: &Scenario) -> String {
    let plain =
        Scenario { title: String::new(), parameters: Vec::new(), captures: Vec::new(), ..scenario.clone() };
    let mut hash = Hash(blake3::Hasher::new());
    // writing into a hash cannot fail
    let _ = write!(hash, "{fingerprints}\n{plain:?}");
    hash.0.finalize().to_hex().to_string()
}

/// What the simulator computes, in short: two that are alike give the same results.
pub(crate) fn semantics() -> String {
    let hash = blake3::hash(bentpipe_sim::FINGERPRINTS.as_bytes()).to_hex();
    format!("{}-{}", bentpipe_sim::SEMANTICS, &hash[..16])
}

struct Hash(blake3::Hasher);

impl core::fmt::Write for Hash {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
#[path = "key_tests.rs"]
mod tests;
