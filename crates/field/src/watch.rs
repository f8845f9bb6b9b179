//! A watchdog that measures how long the machine kept an ordinary thread and the receiving threads from
//! running (/proc/PID/task/TID/schedstat). It tells a stalled machine from a failed run.

use bentpipe_os::Clock;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Shortest stall to report, ns: 64 KB last 22 ms at 24 Mbit/s.
pub const SHORTEST_STALL: u64 = 15_000_000;
const GLANCE: Duration = Duration::from_millis(1);

/// A stall: its end and its length, ns.
pub type Stall = (u64, u64);

/// Threads whose time in the run queue counts too: the path of their statistics, and how long each has
/// waited there so far, ns.
#[derive(Debug, Default)]
pub struct WatchedThreads(Mutex<Vec<(String, u64)>>);

impl WatchedThreads {
    /// Adds the calling thread.
    pub fn add_this_thread(&self) {
        let path = format!("/proc/self/task/{}/schedstat", rustix::thread::gettid().as_raw_nonzero());
        let waited = waited(&path).unwrap_or(0);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((path, waited));
    }
}

/// Watches until `end` is set. Returns the stalls over 5 ms.
pub fn watch(clock: Clock, watched: &WatchedThreads, end: &AtomicBool) -> Vec<Stall> {
    const WORTH: u64 = 5_000_000;
    let (mut gaps, mut last, mut round) = (Vec::new(), clock.now().0, 0_u32);
    while !end.load(Ordering::Relaxed) {
        thread::sleep(GLANCE);
        let now = clock.now().0;
        let late = (now - last).saturating_sub(GLANCE.as_nanos() as u64);
        last = now;
        if late > WORTH {
            gaps.push((now, late));
        }
        round += 1;
        // the kernel counts a wait when it ends, so reading this less often splits no stall
        if !round.is_multiple_of(5) {
            continue;
        }
        for (path, before) in watched.0.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
            let Some(waits) = waited(path) else { continue };
            let more = waits.saturating_sub(*before);
            *before = waits;
            if more > WORTH {
                gaps.push((now, more));
            }
        }
    }
    gaps
}

fn waited(path: &str) -> Option<u64> {
    parse(&fs::read_to_string(path).ok()?)
}

/// The second number of schedstat: the time for which a thread was runnable but did not run, ns.
fn parse(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_thread_has_waited_some_time() {
        assert_eq!(parse("12 345 6"), Some(345));
        assert_eq!(parse("12"), None);
        let watched = WatchedThreads::default();
        watched.add_this_thread();
        let list = watched.0.lock().unwrap();
        assert!(waited(&list[0].0).is_some(), "{list:?}");
    }
}
