//! Stops the process of a receiver behind a gateway by signals: iperf3 at both ends, an old receiver by
//! kernel settings, which opens the connection. Short stops are timed here, because a shell needs 10 ms
//! just to start a program that waits.

use super::hops::{Hop, toml};
use super::runs::{IperfReport, Job, RunResult, SENDER};
use crate::Outcome;
use lab::chain::{OLD_KERNEL, pid};
use lab::rig::{Rig, json};
use lab::stats::Random;
use rustix::process::{Pid, Signal, kill_process};
use std::fmt;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Duration of a run with short stops, and start of its measured interval, s.
const RESTING_S: (u64, f64) = (60, 25.0);
/// Length of a short stop, its longest accepted length, and times between two stops, ms.
const STOP_LENGTH: Duration = Duration::from_millis(10);
const LONGEST_STOP: Duration = Duration::from_millis(12);
const BETWEEN_MS: (u64, u64) = (200, 1600);
/// When a process is stopped for good, and when it is killed after that, s.
const STOP_S: (u64, u64) = (20, 40);

/// Result of a run with short stops.
pub(super) struct ShortStops {
    /// Goodput of the receiving application at full rate, bit/s.
    pub rate_bps: f64,
    pub stops: u64,
    pub doubts: String,
}

/// Runs a receiver whose process is stopped at random times for 10 ms, or never.
pub(super) fn with_short_stops(rig: &Rig, stops: bool) -> Outcome<ShortStops> {
    let (seconds, from) = RESTING_S;
    let name = format!("resting-{stops}");
    let [result, id] = ["json", "id"].map(|n| rig.path(&format!("{name}.{n}")));
    let (result_at, id_at) = (result.display(), id.display());
    let far = format!(
        "{OLD_KERNEL}; sleep 1
iperf3 -c near -R -C cubic -t {seconds} -J >'{result_at}' & p=$!
echo $p >'{id_at}.part'; mv '{id_at}.part' '{id_at}'; wait $p"
    );
    let near = format!("{SENDER}; iperf3 -s -1 >/dev/null; sleep 2");
    let job = start(rig, (&name, true), &near, &far, seconds + 10)?;
    let rests = if stops { stop_at_random(&id, Duration::from_secs(seconds)) } else { Ok((0, 0)) };
    // wait for the run even if the stops failed
    let ran = end(job, true, seconds + 10)?;
    let (stops, long) = rests?;
    let lengths = format!(" ({long} stops longer than {} ms)", LONGEST_STOP.as_millis());
    let doubts = ran.doubts() + if long > 0 { &lengths } else { "" };
    Ok(ShortStops { rate_bps: IperfReport(json(&result)?).rate_bps(from)?, stops, doubts })
}

/// Stops the process with the id in a file at random times. Returns how many stops, and how many too long.
fn stop_at_random(id: &Path, time: Duration) -> Outcome<(u64, u64)> {
    let id = Pid::from_raw(pid(id)? as i32).ok_or("a process without a number")?;
    let (mut dice, begin, (least, more)) = (Random::new(1), Instant::now(), BETWEEN_MS);
    let (mut count, mut long) = (0, 0);
    while begin.elapsed() < time {
        sleep(Duration::from_millis(least + dice.below(more)));
        let stopped = Instant::now();
        if kill_process(id, Signal::STOP).is_err() {
            break;
        }
        sleep(STOP_LENGTH);
        kill_process(id, Signal::CONT).map_err(|e| format!("waking the receiver: {e}"))?;
        count += 1;
        long += u64::from(stopped.elapsed() > LONGEST_STOP);
    }
    Ok((count, long))
}

/// How a sender's connection ended.
pub(super) struct ConnectionEnd {
    /// Exit code of the sender's program.
    pub code: u64,
    /// Time after the receiver's process was killed, s.
    pub after_s: f64,
    /// Connections left in its kernel seconds later, except in TIME-WAIT.
    pub left: u64,
    /// Most bytes that a gateway held.
    pub held: f64,
}

impl fmt::Display for ConnectionEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, after_s, left, held } = self;
        write!(f, "code {code} after {after_s:.2} s, {left} connections left")?;
        if *held > 0.0 { write!(f, ", {:.2} MB held at most", held / 1e6) } else { Ok(()) }
    }
}

impl ConnectionEnd {
    /// True if both ended alike and within one round trip of each other.
    pub(super) fn ended_like(&self, other: &Self) -> bool {
        (self.code, self.left) == (other.code, other.left) && (self.after_s - other.after_s).abs() < 1.0
    }
}

/// Stops a receiver for good and kills it later, its buffer full. Returns the end that the sender sees.
pub(super) fn killed(rig: &Rig, gateway: bool) -> Outcome<ConnectionEnd> {
    let name = format!("killed-{gateway}");
    let paths = ["code", "at", "end", "left"].map(|n| rig.path(&format!("{name}.{n}")));
    let [code, killed, ended, left] = paths.each_ref().map(|path| path.display());
    let (stop, wait) = STOP_S;
    let far = format!(
        "{OLD_KERNEL}; sleep 1
iperf3 -c near -R -C cubic -t 600 >/dev/null & p=$!
sleep {stop}; kill -STOP $p; sleep {wait}; kill -KILL $p; date +%s.%N >'{killed}'; sleep 60"
    );
    let near = format!(
        "{SENDER}; iperf3 -s -1 >/dev/null 2>&1; echo $? >'{code}'; date +%s.%N >'{ended}'; sleep 3; ss -Htan | grep -vc TIME-WAIT >'{left}' || true"
    );
    let seconds = stop + wait + 10;
    let ran = end(start(rig, (&name, gateway), &near, &far, seconds)?, gateway, seconds)?;
    let [code, killed, ended, left] = paths;
    Ok(ConnectionEnd {
        code: number(&code)? as u64,
        after_s: number(&ended)? - number(&killed)?,
        left: number(&left)? as u64,
        held: if gateway { ran.gateway(Hop::OLD.name, "held_peak_bytes")? } else { 0.0 },
    })
}

fn start(rig: &Rig, (name, gateway): (&str, bool), near: &str, far: &str, seconds: u64) -> Outcome<Job> {
    let file = rig.file(&format!("{name}.toml"), &toml(&[Hop { gateway, ..Hop::OLD }], 0.0, (0, seconds)))?;
    Job::programs(rig, &file, 1, near, far)
}

fn end(job: Job, gateway: bool, seconds: u64) -> Outcome<RunResult> {
    let ran = job.wait(seconds)?;
    if gateway && ran.gateway(Hop::OLD.name, "flows/accelerated")? < 1.0 {
        return Err("no flow was accelerated".to_owned());
    }
    Ok(ran)
}

/// Reads a number from a file and removes the file.
fn number(path: &Path) -> Outcome<f64> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let _ = fs::remove_file(path);
    text.trim().parse().map_err(|_| format!("{}: {text}", path.display()))
}
