//! The scenarios and the figures of papers that come with the program, by name.

use bentpipe_base::names::{listed, nearest};
use bentpipe_scenario::Source;

/// Names and texts of the files in `papers/`: `003/figure-5`.
pub(crate) const FIGURES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/figures.rs"));

/// The tables of papers and of their items.
pub(crate) const PAPERS: (&str, &str) =
    (include_str!("../papers/papers.csv"), include_str!("../papers/items.csv"));

/// Declares the list from names of files in `scenarios/`.
macro_rules! scenarios {
    ($($name:literal)+) => {
        /// Names and texts.
        const SCENARIOS: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../scenarios/", $name, ".toml")))),+];
    };
}

scenarios! {
    "accelerate"
    "applications"
    "asymmetry"
    "availability"
    "burst"
    "careful-resume"
    "dama"
    "demo"
    "explicit-rate-bound"
    "fade-2h"
    "fade-onset"
    "fade-users"
    "faded"
    "fairness"
    "leo"
    "onboard"
    "parallel"
    "pointing"
    "rain"
    "rate-break"
    "rate-churn"
    "rate-encodings"
    "rate-fade"
    "rate-fairness"
    "rate-jitter"
    "rate-middleboxes"
    "rate-mixed"
    "rate-negotiation"
    "rate-step"
    "rate-transfer"
    "rate-udp"
    "rate-web"
    "sharing"
    "startup"
    "supercharger"
    "supercharger-loss"
    "swift-fairness"
    "swift-goodput"
    "transfer"
    "window"
    "winds"
}

/// Returns the names of the scenarios.
pub(crate) fn names() -> impl Iterator<Item = &'static str> + Clone {
    SCENARIOS.iter().map(|s| s.0)
}

/// Returns what a scenario is about, in a line.
pub(crate) fn title(name: &str) -> Option<&'static str> {
    let text = SCENARIOS.iter().find(|s| s.0 == name)?.1;
    text.lines().find_map(|line| line.strip_prefix("title = \"")?.strip_suffix('"'))
}

/// Returns the scenario of this name, or why there is none, with lines of help.
pub(crate) fn scenario(name: &str) -> Result<Source, (String, Vec<String>)> {
    if let Some((_, text)) = SCENARIOS.iter().find(|s| s.0 == name) {
        return Ok(Source::new(format!("scenarios/{name}.toml"), *text));
    }
    let near = nearest(name, names()).map_or_else(String::new, |n| format!("did you mean `{n}`?"));
    let path = "help: the path of a file ends in .toml, and is relative to the figure file".to_owned();
    Err((near, vec![format!("help: scenarios: {}", listed(names())), path]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_scenario_of_the_repository_is_in_the_program() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
        let files = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap());
        let mut files: Vec<String> =
            files.filter_map(|f| f.strip_suffix(".toml").map(str::to_owned)).collect();
        files.sort();
        let names: Vec<&str> = SCENARIOS.iter().map(|s| s.0).collect();
        assert_eq!(names, files);
        assert!(names.iter().all(|name| scenario(name).is_ok() && title(name).is_some()));
        assert_eq!(scenario("windo").unwrap_err().0, "did you mean `window`?");
    }
}
