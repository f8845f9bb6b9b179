//! Starts and stops sessions, normally and by SIGKILL, and checks what they leave behind.

use crate::Outcome;
use crate::census::Census;
use crate::rig::Rig;
use crate::stats::Dice;
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
pub struct Cycles {
    /// Number of cycles.
    pub n: u32,
    /// Total time, s.
    pub seconds: f64,
    /// Leftovers found.
    pub leaks: Vec<String>,
}

/// Starts and stops a session `n` times.
pub fn regular(rig: &Rig, n: u32) -> Outcome<Cycles> {
    // the first session creates the folder for sockets
    rig.output(&TRIVIAL, LIMIT)?;
    let before = Census::take(rig)?;
    let since = Instant::now();
    for cycle in 0..n {
        rig.output(&TRIVIAL, LIMIT).map_err(|e| format!("cycle {}: {e}", cycle + 1))?;
    }
    let seconds = since.elapsed().as_secs_f64();
    Ok(Cycles { n, seconds, leaks: Census::leaks(rig, &before, u64::from(n / 2).max(500))? })
}

/// Kills a session `n` times at random moments chosen by `seed`, removes the leftovers, and checks each
/// time. With `uplink` every second session has one.
pub fn killed(rig: &Rig, n: u32, seed: u64, uplink: bool) -> Outcome<Cycles> {
    rig.output(&TRIVIAL, LIMIT)?;
    let before = Census::take(rig)?;
    let (mut dice, mut leaks) = (Dice::new(seed), Vec::new());
    let since = Instant::now();
    for cycle in 0..n {
        let mut words = vec!["emulate", "geo-10m"];
        if uplink && cycle % 2 == 1 {
            words.push("--uplink");
        } else {
            words.extend(["--far", "sleep 60"]);
        }
        words.extend(["--", "sleep", "60"]);
        let mut session = rig.start(&words)?;
        let life = Duration::from_millis(dice.below(LONGEST_LIFE_MS));
        std::thread::sleep(life);
        if session.has_ended()? {
            return Err(format!("{}: it ended by itself: {}", words.join(" "), session.err()));
        }
        session.signal(Signal::KILL);
        drop(session);
        rig.output(&["doctor", "--clean"], LIMIT)?;
        let left = Census::leaks(rig, &before, 1000)?;
        leaks.extend(left.into_iter().map(|l| format!("killed after {} ms: {l}", life.as_millis())));
    }
    Ok(Cycles { n, seconds: since.elapsed().as_secs_f64(), leaks })
}
