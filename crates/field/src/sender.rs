//! Sending programs with a kernel congestion control, and samples of the kernel's TCP state.

use crate::cell::Flow;
use crate::reader::is_temporary;
use bentpipe_os::{Clock, namespace, socket, tcp};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// A sample of the kernel's TCP state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Time since the start, ns.
    pub at: u64,
    /// Retransmitted segments so far.
    pub retransmits: u32,
    /// Timeouts so far, if the kernel counts them.
    pub timeouts: u16,
}

/// Result of a sender.
#[derive(Clone, Debug, Default)]
pub struct SenderResult {
    /// Samples of its TCP state.
    pub samples: Vec<Sample>,
    /// Why it ended early.
    pub failed: Option<String>,
}

/// Connects from the namespace of the calling thread.
fn connect(to: SocketAddr, scheme: &str, end: &AtomicBool) -> Result<TcpStream, String> {
    let fd: OwnedFd = socket::stream(&to).map_err(|e| format!("a socket: {e}"))?;
    tcp::set_congestion(&fd, scheme).map_err(|e| format!("{scheme}: {e}"))?;
    socket::connect(&fd, &to).map_err(|e| format!("{to}: {e}"))?;
    let stream = TcpStream::from(fd);
    while stream.peer_addr().is_err() {
        if end.load(Ordering::Relaxed) {
            return Err(format!("{to}: no connection in time"));
        }
        if let Ok(Some(error)) = stream.take_error() {
            return Err(format!("{to}: {error}"));
        }
        thread::sleep(Duration::from_millis(1));
    }
    stream.set_nonblocking(false).map_err(|e| e.to_string())?;
    // a receiver with a closed window must not block the sender after the end of the run
    stream.set_write_timeout(Some(Duration::from_millis(200))).map_err(|e| e.to_string())?;
    Ok(stream)
}

/// Sends the data of `flow` from the given namespace to `to`, until all is sent or `end` is set.
pub fn send(net: impl AsFd, to: SocketAddr, flow: &Flow, clock: Clock, end: &AtomicBool) -> SenderResult {
    let connected = namespace::in_network(net, || connect(to, &flow.scheme, end));
    let stream = match connected.map_err(|e| e.to_string()).and_then(|c| c) {
        Ok(stream) => stream,
        Err(why) => return SenderResult { failed: Some(why), ..SenderResult::default() },
    };
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watch = scope.spawn(|| samples(&stream, clock, &done));
        let failed = write(&stream, flow, clock, end);
        if failed.is_none() {
            // samples go on until all data are acknowledged
            let _ = stream.shutdown(std::net::Shutdown::Write);
            while !end.load(Ordering::Relaxed) && tcp::unacknowledged(&stream).is_ok_and(|left| left.0 > 0) {
                thread::sleep(Duration::from_millis(5));
            }
        }
        done.store(true, Ordering::Relaxed);
        SenderResult { samples: watch.join().unwrap_or_default(), failed }
    })
}

fn write(mut stream: &TcpStream, flow: &Flow, clock: Clock, end: &AtomicBool) -> Option<String> {
    let block = vec![0x5a; 128 << 10];
    let (mut left, begin, mut written) = (flow.bytes.unwrap_or(u64::MAX), clock.now().0, 0_u64);
    while left > 0 && !end.load(Ordering::Relaxed) {
        let mut n = block.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if flow.app_rate > 0.0 {
            let may = (clock.now().0 - begin) as f64 * flow.app_rate / 8e9;
            n = n.min((may - written as f64).max(0.0) as usize);
            if n == 0 {
                thread::sleep(Duration::from_millis(2));
                continue;
            }
        }
        match stream.write(&block[..n]) {
            Ok(n) => {
                written += n as u64;
                left -= n as u64;
            }
            Err(e) if is_temporary(&e) => {}
            Err(e) => return Some(e.to_string()),
        }
    }
    None
}

/// Samples the TCP state until `done` is set; keeps the samples that differ from the one before.
fn samples(stream: &TcpStream, clock: Clock, done: &AtomicBool) -> Vec<Sample> {
    let mut all: Vec<Sample> = Vec::new();
    loop {
        let is_last = done.load(Ordering::Relaxed);
        if let Ok(info) = tcp::info(stream) {
            let (at, timeouts) = (clock.now().0, info.timeouts.unwrap_or(0));
            let sample = Sample { at, retransmits: info.retransmits, timeouts };
            if all.last().is_none_or(|last| Sample { at, ..*last } != sample) {
                all.push(sample);
            }
        }
        if is_last {
            return all;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Segments retransmitted from time `from` (ns) on, and the most in one burst. A burst ends when a second
/// passes without a retransmission.
pub fn retransmission_counts(samples: &[Sample], from: u64) -> (u32, u32) {
    const APART: u64 = 1_000_000_000;
    let (mut all, mut spell, mut longest, mut last) = (0, 0, 0, 0_u64);
    for pair in samples.windows(2) {
        let more = pair[1].retransmits.saturating_sub(pair[0].retransmits);
        if more == 0 || pair[1].at < from {
            continue;
        }
        if pair[1].at - last > APART {
            spell = 0;
        }
        last = pair[1].at;
        all += more;
        spell += more;
        longest = longest.max(spell);
    }
    (all, longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spells_are_told_apart_by_a_second() {
        let s = |ms: u64, retransmits| Sample { at: ms * 1_000_000, retransmits, ..Sample::default() };
        let samples = [s(0, 0), s(100, 5), s(600, 9), s(1500, 10), s(4000, 13), s(4100, 13), s(4900, 20)];
        assert_eq!(retransmission_counts(&samples, 0), (20, 10));
        assert_eq!(retransmission_counts(&samples, 2_000_000_000), (10, 10));
        assert_eq!(retransmission_counts(&[], 0), (0, 0));
    }
}
