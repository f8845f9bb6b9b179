//! Starts and stops sessions, normally and by SIGKILL, and checks what they leave behind.

use crate::Outcome;
use crate::census::SystemState;
use crate::rig::Rig;
use crate::stats::Random;
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// A session with a trivial command.
const TRIVIAL: [&str; 4] = ["emulate", "geo-10m", "--", "true"];
/// Time limit of a start or a clean-up.
const LIMIT: Duration = Duration::from_secs(30);
/// A session is killed within this time: some before they are ready, some long after.
const LONGEST_LIFE_MS: u64 = 500;

/// Result of many starts and stops.
#[derive(Clone, Debug)]
pub struct StartStopResult {
    /// Time of each, ms.
    pub each_ms: f64,
    /// Leftovers found.
    pub leaks: Vec<String>,
}

/// Starts and stops a session `n` times.
pub fn start_and_stop(rig: &Rig, n: u32) -> Outcome<StartStopResult> {
    // the first session creates the folder for sockets
    rig.output(&TRIVIAL, LIMIT)?;
    let before = SystemState::take(rig)?;
    let since = Instant::now();
    for cycle in 0..n {
        rig.output(&TRIVIAL, LIMIT).map_err(|e| format!("cycle {}: {e}", cycle + 1))?;
    }
    let each_ms = since.elapsed().as_secs_f64() * 1e3 / f64::from(n);
    Ok(StartStopResult { each_ms, leaks: SystemState::leaks(rig, &before, u64::from(n / 2).max(500))? })
}

/// Kills a session `n` times at random moments chosen by `seed`, removes the leftovers, and checks each
/// time. With `uplink` every second session has one.
pub fn kill_sessions(rig: &Rig, n: u32, seed: u64, uplink: bool) -> Outcome<StartStopResult> {
    rig.output(&TRIVIAL, LIMIT)?;
    let before = SystemState::take(rig)?;
    let (mut dice, mut leaks) = (Random::new(seed), Vec::new());
    let since = Instant::now();
    for cycle in 0..n {
        let kind = if uplink && cycle % 2 == 1 {
            &["--uplink"][..]
        } else {
            &["--far", "sleep 60", "--far-ready", "off"]
        };
        let words = [&["emulate", "geo-10m"], kind, &["--", "sleep", "60"]].concat();
        let mut session = rig.start(&words)?;
        let life = Duration::from_millis(dice.below(LONGEST_LIFE_MS));
        std::thread::sleep(life);
        if session.has_ended()? {
            return Err(format!("{}: it ended by itself: {}", words.join(" "), session.err()));
        }
        session.signal(Signal::KILL);
        drop(session);
        rig.output(&["doctor", "--clean"], LIMIT)?;
        let left = SystemState::leaks(rig, &before, 1000)?;
        leaks.extend(left.into_iter().map(|l| format!("killed after {} ms: {l}", life.as_millis())));
    }
    Ok(StartStopResult { each_ms: since.elapsed().as_secs_f64() * 1e3 / f64::from(n), leaks })
}
