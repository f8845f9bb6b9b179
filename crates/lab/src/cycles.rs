//! Starts and stops, regular and by force, and what they leave behind.

use crate::Outcome;
use crate::census::Census;
use crate::rig::Rig;
use crate::stats::Dice;
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// A link with a trivial command.
const TRIVIAL: [&str; 4] = ["emulate", "geo-10m", "--", "true"];
/// How long a start or a clean-up may take.
const LIMIT: Duration = Duration::from_secs(30);
/// A session is killed after less than this: some before it is ready, some long after.
const LONGEST_LIFE_MS: u64 = 500;

/// What many starts and stops came to.
#[derive(Clone, Debug)]
pub struct Cycles {
    /// How many.
    pub n: u32,
    /// Seconds for all.
    pub seconds: f64,
    /// What they left behind.
    pub leaks: Vec<String>,
}

/// Starts and stops a link `n` times.
pub fn regular(rig: &Rig, n: u32) -> Outcome<Cycles> {
    // the first one makes the folder for sockets
    rig.output(&TRIVIAL, LIMIT)?;
    let before = Census::take(rig)?;
    let since = Instant::now();
    for cycle in 0..n {
        rig.output(&TRIVIAL, LIMIT).map_err(|e| format!("cycle {}: {e}", cycle + 1))?;
    }
    let seconds = since.elapsed().as_secs_f64();
    Ok(Cycles { n, seconds, leaks: Census::leaks(rig, &before, u64::from(n / 2).max(500))? })
}

/// Kills a session `n` times at moments that `seed` chooses, has the leftovers removed, and looks each time.
/// With `uplink` every second one has one.
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
