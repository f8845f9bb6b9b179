//! Tests user commands on a live link step by step, each judged by its result.

use crate::rig::{Rig, wait_for};
use crate::{Outcome, Step};
use serde_json::Value;
use std::time::Duration;

/// Time limit of a step.
const LIMIT: Duration = Duration::from_secs(60);
/// Tolerance for the average of three pings, ms, for real programs on a busy machine.
const NEAR_ENOUGH_MS: f64 = 5.0;

/// Runs all steps.
pub fn run_all(rig: &Rig) -> Vec<Step> {
    let program = rig.program().display().to_string();
    let nested = ["geo-10m", "--", &program, "emulate", "terrestrial"];
    vec![
        ("the device for TUN interfaces is closed", closed(rig)),
        ("emulate", ping(rig, &["geo-10m"], "far", 550.0)),
        ("emulate, by IPv6", ping(rig, &["geo-10m"], "-6 far", 550.0)),
        ("emulate --far", far(rig)),
        ("a link within a link", ping(rig, &nested, "far", 570.0)),
        ("link show, set, outage, reset", link(rig)),
        ("top --once", top(rig)),
        ("compare", compare(rig)),
    ]
}

/// Checks that an ordinary user cannot open /dev/net/tun; for root it does not matter.
fn closed(rig: &Rig) -> Outcome<String> {
    match rig.shell("true 2>/dev/null <>/dev/net/tun", LIMIT) {
        Ok(_) if rig.is_unprivileged() => {
            Err("it can be opened: this run proves nothing about machines where it cannot".into())
        }
        Ok(_) => Ok("open, we are root".into()),
        Err(_) => Ok("closed".into()),
    }
}

fn ping(rig: &Rig, words: &[&str], far: &str, rtt_ms: f64) -> Outcome<String> {
    let ping = ["--", "ping", "-n", "-q", "-c", "3", "-i", "0.2"];
    let far: Vec<&str> = far.split(' ').collect();
    let average = average_ms(&rig.output(&[&["emulate"], words, &ping, &far[..]].concat(), LIMIT)?)?;
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

/// Runs `act` with a session that only sleeps, from when `link show` answers.
fn in_session<T>(rig: &Rig, act: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    let mut session = rig.start(&["emulate", "geo-10m", "--", "sleep", "60"])?;
    wait_for("a session to ask", || {
        let shown = rig.run(&["link", "show", "--json"], LIMIT)?;
        if session.has_ended()? {
            return Err(format!("no session to ask: {} {}", shown.describe(), session.err()));
        }
        Ok(shown.code == Some(0))
    })?;
    let done = act()?;
    drop(session);
    rig.output(&["doctor", "--clean"], LIMIT)?;
    Ok(done)
}

fn link(rig: &Rig) -> Outcome<String> {
    let expect = |command: &str, is: fn(&Value) -> bool| {
        let words: Vec<&str> = ["link"].into_iter().chain(command.split(' ')).collect();
        rig.output(&words, LIMIT)?;
        let text = rig.output(&["link", "show", "--json"], LIMIT)?;
        let state: Value = serde_json::from_str(&text).map_err(|e| format!("link show: {e}: {text}"))?;
        let link = &state["links"][0];
        if is(link) { Ok(()) } else { Err(format!("after {command}: {link}")) }
    };
    in_session(rig, || {
        expect("set loss=1e-3", |link| link["loss"].as_f64().is_some_and(|p| (p - 1e-3).abs() < 1e-9))?;
        expect("outage 30s", |link| link["up"] == false)?;
        expect("reset", |link| link["loss"] == 0.0 && link["up"] == true)?;
        Ok("each seen in the next answer".into())
    })
}

fn top(rig: &Rig) -> Outcome<String> {
    let frame = in_session(rig, || rig.output(&["top", "--once"], LIMIT))?;
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
