//! `bentpipe replay`: repeats a live run in simulated time.

use crate::outcome::Failure;
use bentpipe_live::replay::replay;
use std::path::Path;

/// Replays the journal at `path`; returns the text, and true if the result is the same.
pub(crate) fn run(path: &Path, json: bool) -> Result<(String, bool), Failure> {
    let replayed = replay(path).map_err(Failure::input)?;
    let same = replayed.same();
    if json {
        let value = serde_json::json!({
            "packets": replayed.packets,
            "changes": replayed.changes,
            "delivered": replayed.delivered,
            "until_s": replayed.until.as_secs_f64(),
            "digest": replayed.digest.to_hex().as_str(),
            "recorded": replayed.recorded.map(|r| r.to_hex().to_string()),
            "same": same,
        });
        return Ok((format!("{value:#}\n"), same != Some(false)));
    }
    let verdict = match same {
        Some(true) => "the output is the same, byte for byte",
        Some(false) => "THE OUTPUT DIFFERS from that of the recorded run",
        None => "the journal ends before its run did: there is nothing to compare with",
    };
    let text = format!(
        "{} super-packets in, {} changes, {} packets out, {:.3} s\n{verdict}\ndigest {}\n",
        replayed.packets,
        replayed.changes,
        replayed.delivered,
        replayed.until.as_secs_f64(),
        replayed.digest
    );
    Ok((text, same != Some(false)))
}
