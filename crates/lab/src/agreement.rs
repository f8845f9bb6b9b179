//! The same scenario simulated and with the kernel's TCP, side by side by `bentpipe compare`.

use crate::Outcome;
use crate::rig::Rig;
use serde_json::Value;
use std::time::Duration;

/// One figure of both sides.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// In simulated time.
    pub simulated: f64,
    /// With the kernel.
    pub emulated: f64,
}

impl Pair {
    /// Share by which the emulated one is larger.
    pub fn difference(&self) -> f64 {
        self.emulated / self.simulated - 1.0
    }
}

/// A figure of a report that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Goodput of all flows together, bit/s.
    Goodput,
    /// When the first flow was finished, s.
    Finished,
}

/// Runs both sides of `file` and takes a figure of each; `seconds` is how long the emulated side takes.
///
/// # Errors
/// When one side fails.
pub fn compare(rig: &Rig, file: &str, sets: &[&str], figure: Figure, seconds: u64) -> Outcome<Pair> {
    let mut words = vec!["compare", file, "--json"];
    for set in sets {
        words.extend(if set.starts_with("--") { set.splitn(2, ' ').collect() } else { vec!["--set", set] });
    }
    let text = rig.output(&words, Duration::from_secs(seconds + 120))?;
    let both: Value = serde_json::from_str(&text).map_err(|e| format!("compare {file}: {e}"))?;
    Ok(Pair { simulated: read(&both["simulated"], figure)?, emulated: read(&both["emulated"], figure)? })
}

fn read(report: &Value, figure: Figure) -> Outcome<f64> {
    let value = match figure {
        Figure::Goodput => report["total"]["goodput_bps"].as_f64(),
        Figure::Finished => report["flows"][0]["finished_s"].as_f64(),
    };
    value.ok_or_else(|| format!("a report has no {figure:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_and_compared() {
        let report = serde_json::json!({"total": {"goodput_bps": 2.0}, "flows": [{"finished_s": 3.0}]});
        assert_eq!(read(&report, Figure::Goodput), Ok(2.0));
        assert_eq!(read(&report, Figure::Finished), Ok(3.0));
        assert!(read(&Value::Null, Figure::Goodput).is_err());
        assert!((Pair { simulated: 2.0, emulated: 2.1 }.difference() - 0.05).abs() < 1e-12);
    }
}
