//! Tests user commands on a live link step by step, each judged by its result.

use crate::Outcome;
use crate::rig::{Rig, Running};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Time limit of a step.
const LIMIT: Duration = Duration::from_secs(60);
/// Tolerance for the average of three pings, ms, for real programs on a busy machine.
const NEAR_ENOUGH_MS: f64 = 5.0;

/// A step and its result.
#[derive(Debug)]
pub struct Step {
    /// What is tested.
    pub what: &'static str,
    /// A figure, or the error.
    pub outcome: Outcome<String>,
}

/// Runs all steps.
pub fn walk(rig: &Rig) -> Vec<Step> {
    let step = |what, outcome| Step { what, outcome };
    vec![
        step("the device for TUN interfaces is closed", closed(rig)),
        step("emulate", ping(rig, &["geo-10m"], "far", 550.0)),
        step("emulate, by IPv6", ping(rig, &["geo-10m"], "-6 far", 550.0)),
        step("emulate --far", far(rig)),
        step(
            "a link within a link",
            ping(rig, &["geo-10m", "--", "$BENTPIPE", "emulate", "terrestrial"], "far", 570.0),
        ),
        step("link show, set, outage, reset", link(rig)),
        step("top --once", top(rig)),
        step("compare", compare(rig)),
    ]
}

/// Checks that an ordinary user cannot open /dev/net/tun; for root it does not matter.
fn closed(rig: &Rig) -> Outcome<String> {
    match rig.shell("true 2>/dev/null <>/dev/net/tun", LIMIT) {
        Ok(_) if rig.is_ordinary() => {
            Err("it can be opened: this run proves nothing about machines where it cannot".into())
        }
        Ok(_) => Ok("open, we are root".into()),
        Err(_) => Ok("closed".into()),
    }
}

fn ping(rig: &Rig, words: &[&str], far: &str, rtt_ms: f64) -> Outcome<String> {
    let program = rig.program().display().to_string();
    let mut all: Vec<&str> = vec!["emulate"];
    all.extend(words.iter().map(|w| if *w == "$BENTPIPE" { program.as_str() } else { w }));
    all.extend(["--", "ping", "-n", "-q", "-c", "3", "-i", "0.2"]);
    all.extend(far.split(' '));
    let average = average_ms(&rig.output(&all, LIMIT)?)?;
    let figure = format!("average of 3 pings {average:.2} ms, of {rtt_ms} ms");
    if (average - rtt_ms).abs() < NEAR_ENOUGH_MS { Ok(figure) } else { Err(figure) }
}

/// Reads the average of ping's last line: `rtt min/avg/max/mdev = 550.2/550.3/550.4/0.1 ms`.
fn average_ms(text: &str) -> Outcome<f64> {
    let values = text.lines().find_map(|l| l.strip_prefix("rtt min/avg/max/mdev = "));
    let average = values.and_then(|v| v.split('/').nth(1)?.parse().ok());
    average.ok_or_else(|| format!("ping says: {text}"))
}

fn far(rig: &Rig) -> Outcome<String> {
    let near = "sleep 1; iperf3 -c far -R -t 3 -J";
    let words = ["emulate", "terrestrial", "--far", "iperf3 -s -1 >/dev/null", "--", "sh", "-c", near];
    let result: Value =
        serde_json::from_str(&rig.output(&words, LIMIT)?).map_err(|e| format!("iperf3: {e}"))?;
    let rate = crate::speed::received_bps(&result)?;
    let figure = format!("{:.1} Mbit/s over 100 Mbit/s", rate / 1e6);
    if (20e6..100e6).contains(&rate) { Ok(figure) } else { Err(figure) }
}

/// Starts a session that only sleeps and waits until `link show` answers.
fn session(rig: &Rig) -> Outcome<Running> {
    let mut session = rig.start(&["emulate", "geo-10m", "--", "sleep", "60"])?;
    let since = Instant::now();
    loop {
        let shown = rig.run(&["link", "show", "--json"], LIMIT)?;
        if shown.code == Some(0) {
            return Ok(session);
        }
        if session.has_ended()? || since.elapsed() > Duration::from_secs(15) {
            return Err(format!("no session to ask: {} {}", shown.story(), session.err()));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn show(rig: &Rig) -> Outcome<Value> {
    let text = rig.output(&["link", "show", "--json"], LIMIT)?;
    serde_json::from_str(&text).map_err(|e| format!("link show: {e}: {text}"))
}

fn link(rig: &Rig) -> Outcome<String> {
    let session = session(rig)?;
    let loss = |state: &Value| state["links"][0]["loss"].as_f64();
    let expect = |what: &str, is: bool, state: &Value| {
        if is { Ok(()) } else { Err(format!("after {what}: {}", state["links"][0])) }
    };
    rig.output(&["link", "set", "loss=1e-3"], LIMIT)?;
    let state = show(rig)?;
    expect("set loss=1e-3", loss(&state).is_some_and(|p| (p - 1e-3).abs() < 1e-9), &state)?;
    rig.output(&["link", "outage", "30s"], LIMIT)?;
    let state = show(rig)?;
    expect("outage 30s", state["links"][0]["up"] == Value::Bool(false), &state)?;
    rig.output(&["link", "reset"], LIMIT)?;
    let state = show(rig)?;
    expect("reset", loss(&state) == Some(0.0) && state["links"][0]["up"] == Value::Bool(true), &state)?;
    drop(session);
    rig.output(&["doctor", "--clean"], LIMIT)?;
    Ok("each seen in the next answer".into())
}

fn top(rig: &Rig) -> Outcome<String> {
    let session = session(rig)?;
    let frame = rig.output(&["top", "--once"], LIMIT)?;
    drop(session);
    rig.output(&["doctor", "--clean"], LIMIT)?;
    if frame.contains("geo-10m") { Ok(format!("{} lines", frame.lines().count())) } else { Err(frame) }
}

fn compare(rig: &Rig) -> Outcome<String> {
    rig.output(&["compare", "scenarios/transfer.toml", "--set", "size=20 kB"], LIMIT * 2)?;
    Ok("both sides ran".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pings_summary_is_read() {
        let text = "3 packets transmitted\nrtt min/avg/max/mdev = 550.231/550.301/550.4/0.07 ms\n";
        assert!((average_ms(text).unwrap() - 550.301).abs() < 1e-9);
        assert!(average_ms("nothing").is_err());
    }
}
