//! Sending programs with a kernel congestion control, and samples of the kernel's TCP state.

use crate::reader::is_temporary;
use bentpipe_os::{Clock, namespace, socket, tcp};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// What a sender does.
#[derive(Clone, Debug)]
pub struct Job {
    /// Destination.
    pub to: SocketAddr,
    /// Congestion control, by its kernel name.
    pub scheme: String,
    /// Bytes to send; `None`: no limit.
    pub bytes: Option<u64>,
    /// Highest rate of the application, bit/s; 0: no limit.
    pub rate: f64,
}

/// A sample of the kernel's TCP state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Time since the start, ns.
    pub at: u64,
    /// Retransmitted segments so far.
    pub retransmits: u32,
    /// Timeouts so far, if the kernel counts them.
    pub timeouts: u16,
    /// Congestion window, segments.
    pub cwnd: u32,
}

/// Result of a sender.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    /// Its local port.
    pub port: u16,
    /// Samples of its TCP state.
    pub samples: Vec<Sample>,
    /// Why it ended early.
    pub failed: Option<String>,
}

/// Connects, in the namespace of the calling thread.
fn connect(job: &Job, end: &AtomicBool) -> Result<TcpStream, String> {
    let fd: OwnedFd = socket::stream(&job.to).map_err(|e| format!("a socket: {e}"))?;
    tcp::set_congestion(&fd, &job.scheme).map_err(|e| format!("{}: {e}", job.scheme))?;
    socket::connect(&fd, &job.to).map_err(|e| format!("{}: {e}", job.to))?;
    let stream = TcpStream::from(fd);
    while stream.peer_addr().is_err() {
        if end.load(Ordering::Relaxed) {
            return Err(format!("{}: no connection in time", job.to));
        }
        if let Ok(Some(error)) = stream.take_error() {
            return Err(format!("{}: {error}", job.to));
        }
        thread::sleep(Duration::from_millis(1));
    }
    stream.set_nonblocking(false).map_err(|e| e.to_string())?;
    // a receiver with a closed window must not block the sender beyond the end
    stream.set_write_timeout(Some(Duration::from_millis(200))).map_err(|e| e.to_string())?;
    Ok(stream)
}

/// Sends in the given namespace until all is sent or `end` is set.
pub fn send(net: impl AsFd, job: &Job, clock: Clock, end: &AtomicBool) -> Sent {
    let connected = namespace::in_network(net, || connect(job, end));
    let stream = match connected.map_err(|e| e.to_string()).and_then(|c| c) {
        Ok(stream) => stream,
        Err(why) => return Sent { failed: Some(why), ..Sent::default() },
    };
    let port = stream.local_addr().map_or(0, |a| a.port());
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watch = scope.spawn(|| samples(&stream, clock, &done));
        let failed = write(&stream, job, clock, end);
        if failed.is_none() {
            // wait for the outstanding acknowledgments
            let _ = stream.shutdown(std::net::Shutdown::Write);
            while !end.load(Ordering::Relaxed) && tcp::unacknowledged(&stream).is_ok_and(|left| left.0 > 0) {
                thread::sleep(Duration::from_millis(5));
            }
        }
        done.store(true, Ordering::Relaxed);
        Sent { port, samples: watch.join().unwrap_or_default(), failed }
    })
}

fn write(mut stream: &TcpStream, job: &Job, clock: Clock, end: &AtomicBool) -> Option<String> {
    let block = vec![0x5a; 128 << 10];
    let (mut left, begin, mut written) = (job.bytes.unwrap_or(u64::MAX), clock.now().0, 0_u64);
    while left > 0 && !end.load(Ordering::Relaxed) {
        let mut n = block.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if job.rate > 0.0 {
            let may = (clock.now().0 - begin) as f64 * job.rate / 8e9;
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

/// Samples the TCP state and keeps the samples that differ.
fn samples(stream: &TcpStream, clock: Clock, done: &AtomicBool) -> Vec<Sample> {
    let mut all: Vec<Sample> = Vec::new();
    loop {
        let is_last = done.load(Ordering::Relaxed);
        if let Ok(info) = tcp::info(stream) {
            let sample = Sample {
                at: clock.now().0,
                retransmits: info.retransmits,
                timeouts: info.timeouts.unwrap_or(0),
                cwnd: info.cwnd,
            };
            if all.last().is_none_or(|last| Sample { at: last.at, ..sample } != *last) {
                all.push(sample);
            }
        }
        if is_last {
            return all;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Segments retransmitted after `from`, ns, and the largest burst, without a gap of a second in it.
pub fn resent(samples: &[Sample], from: u64) -> (u32, u32) {
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
        assert_eq!(resent(&samples, 0), (20, 10));
        assert_eq!(resent(&samples, 2_000_000_000), (10, 10));
        assert_eq!(resent(&[], 0), (0, 0));
    }
}
