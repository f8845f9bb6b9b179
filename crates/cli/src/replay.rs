//! `bentpipe replay`: repeats a live run in simulated time.

use crate::outcome::Failure;
use bentpipe_live::replay::replay;
use std::path::Path;

/// Replays the journal at `path`; returns the text, and true if the result is known to be the same.
pub(crate) fn run(path: &Path, json: bool) -> Result<(String, bool), Failure> {
    let replayed = replay(path).map_err(Failure::input)?;
    let (verdict, is_same) = verdict(replayed.same());
    if json {
        let value = serde_json::json!({
            "packets": replayed.packets,
            "changes": replayed.changes,
            "delivered": replayed.delivered,
            "until_s": replayed.until.as_secs_f64(),
            "digest": replayed.digest.to_hex().as_str(),
            "recorded": replayed.recorded.map(|r| r.to_hex().to_string()),
            "same": replayed.same(),
        });
        return Ok((format!("{value:#}\n"), is_same));
    }
    let text = format!(
        "{} super-packets in, {} changes, {} packets out, {:.3} s\n{verdict}\ndigest {}\n",
        replayed.packets,
        replayed.changes,
        replayed.delivered,
        replayed.until.as_secs_f64(),
        replayed.digest
    );
    Ok((text, is_same))
}

/// Returns the comparison with the recorded run in words, and true if the output is known to be the same.
const fn verdict(same: Option<bool>) -> (&'static str, bool) {
    match same {
        Some(true) => ("the output is the same, byte for byte", true),
        Some(false) => ("THE OUTPUT DIFFERS from that of the recorded run", false),
        None => ("the journal ends before its run did: there is nothing to compare with", false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_output_is_a_success() {
        assert!(verdict(Some(true)).1);
        assert!(!verdict(Some(false)).1);
        let (words, met) = verdict(None);
        assert!(!met && words.contains("ends before its run did"));
    }
}
