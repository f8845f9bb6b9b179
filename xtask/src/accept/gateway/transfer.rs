//! Transfers during which the gateway is killed, killed and restarted, or stopped normally.
//!
//! As in TCP-SuperCharger, the receiver opens each connection. It checks every byte and the end of the
//! stream. The sender uses CUBIC.

use super::routed::{Routed, SENDER};
use crate::Outcome;
use lab::passage::Host;
use lab::stats::median;
use lab::{Running, join};
use rustix::net::sockopt::set_tcp_congestion;
use rustix::process::Signal;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

const PIECE: usize = 1 << 16;
/// Interval of the goodput over time, s.
const STEP_S: f64 = 0.2;
/// A transfer without data for this long has failed.
const PATIENCE: Duration = Duration::from_secs(150);
/// Stack size of a thread that only copies.
const STACK: usize = 1 << 18;
/// Time until a restart: as `RestartSec` of the systemd unit.
const RESTART: Duration = Duration::from_secs(1);

/// What happens to the gateway, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GatewayEvent {
    Absent,
    /// `kill -9`.
    Killed,
    /// `kill -9`, and another gateway is started a second later.
    Restarted,
    Stopped,
}

pub(super) struct TransferRecord {
    /// True if every byte was right and the stream ended after the last.
    pub intact: bool,
    pub bytes: u64,
    /// Time from opening to end, s.
    pub seconds: f64,
    /// Bytes in each interval.
    pub intervals: Vec<u64>,
}

impl TransferRecord {
    /// A word for a figure if it is not intact.
    pub(super) const fn damage(&self) -> &'static str {
        if self.intact { "" } else { " NOT INTACT" }
    }

    /// Goodput between two times, s since the opening; bit/s.
    pub(super) fn goodput(&self, from: f64, to: f64) -> f64 {
        let (first, last) = ((from / STEP_S) as usize, (to / STEP_S) as usize);
        let bytes: u64 = self.intervals.iter().take(last).skip(first).sum();
        bytes as f64 * 8.0 / (last.saturating_sub(first) as f64 * STEP_S)
    }

    /// The first time after `from` at which two seconds with this goodput start, s since `from`.
    pub(super) fn reaches(&self, bps: f64, from: f64) -> Option<f64> {
        let end = self.intervals.len() as f64 * STEP_S;
        let mut times = (0..).map(|i| from + f64::from(i) * STEP_S).take_while(|t| t + 2.0 < end);
        times.find(|t| self.goodput(*t, t + 2.0) >= bps).map(|t| t - from)
    }

    /// The lowest interval between two times, as a share of the median of the `before` seconds before them.
    pub(super) fn lowest_share(&self, from: f64, to: f64, before: f64) -> f64 {
        let part = |from: f64, to: f64| {
            let (first, last) = ((from / STEP_S).ceil() as usize, (to / STEP_S) as usize);
            self.intervals.iter().take(last).skip(first).map(|n| *n as f64).collect::<Vec<_>>()
        };
        let usual = median(&part(from - before, from));
        part(from, to).into_iter().fold(f64::INFINITY, f64::min) / usual
    }
}

/// Fills `out` with the stream of a transfer from byte `at`. The contents do not repeat.
fn fill(stream: u32, at: u64, out: &mut [u8]) {
    for (i, byte) in out.iter_mut().enumerate() {
        let position = at + i as u64;
        let mut word = (u64::from(stream) << 40 ^ position >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // the finisher of SplitMix64 (Steele, Lea, Flood, 2014)
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        *byte = (word ^ word >> 31).to_be_bytes()[(position & 7) as usize];
    }
}

/// Serves transfers until all `n` have started. The receiver requests a stream number and length.
fn serve(listener: &TcpListener, n: usize) -> Outcome<()> {
    let text = |e: std::io::Error| format!("sending: {e}");
    for _ in 0..n {
        let (mut stream, _) = listener.accept().map_err(text)?;
        let send = move || -> std::io::Result<()> {
            let (mut number, mut bytes) = ([0; 4], [0; 8]);
            stream.read_exact(&mut number)?;
            stream.read_exact(&mut bytes)?;
            let (number, bytes) = (u32::from_be_bytes(number), u64::from_be_bytes(bytes));
            let (mut piece, mut at) = (vec![0; PIECE], 0);
            while at < bytes {
                let len = (bytes - at).min(PIECE as u64) as usize;
                fill(number, at, &mut piece[..len]);
                stream.write_all(&piece[..len])?;
                at += len as u64;
            }
            Ok(())
        };
        // the receiver notices missing data
        Builder::new().stack_size(STACK).spawn(send).map_err(text)?;
    }
    Ok(())
}

fn receive(to: SocketAddr, number: u32, bytes: u64) -> Outcome<TransferRecord> {
    let text = |e: std::io::Error| format!("transfer {number}: {e}");
    let since = Instant::now();
    let mut stream = TcpStream::connect_timeout(&to, PATIENCE).map_err(text)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(text)?;
    stream.write_all(&[&number.to_be_bytes()[..], &bytes.to_be_bytes()].concat()).map_err(text)?;
    let mut course = TransferRecord { intact: true, bytes: 0, seconds: 0.0, intervals: Vec::new() };
    let (mut got, mut wanted) = (vec![0; PIECE], vec![0; PIECE]);
    loop {
        let n = match stream.read(&mut got) {
            Ok(0) => break,
            Ok(n) => n,
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) => return Err(format!("transfer {number} after {} bytes: {e}", course.bytes)),
        };
        fill(number, course.bytes, &mut wanted[..n]);
        course.intact &= got[..n] == wanted[..n];
        course.bytes += n as u64;
        let interval = (since.elapsed().as_secs_f64() / STEP_S) as usize;
        course.intervals.resize(course.intervals.len().max(interval + 1), 0);
        course.intervals[interval] += n as u64;
    }
    course.seconds = since.elapsed().as_secs_f64();
    course.intact &= course.bytes == bytes;
    Ok(course)
}

/// A trial: the transfers, and what happens to the gateway.
pub(super) struct Trial<'a> {
    /// Rate of the hop, with a unit.
    pub rate: &'a str,
    pub transfers: u32,
    pub bytes: u64,
    pub v6: bool,
    pub event: GatewayEvent,
    /// When it happens, s after the first opening.
    pub at: f64,
}

pub(super) struct TrialResult {
    /// Transfers in the order of their numbers.
    pub transfers: Vec<TransferRecord>,
    /// Transfers that had ended before the event.
    pub ended_before: u32,
    /// When the new gateway was running, s after the first opening.
    pub restarted_at: Option<f64>,
    /// Most connections that the new gateway took over and accelerated.
    pub accelerated_again: usize,
    /// The largest window that it advertised to one of their senders.
    pub largest_window: u64,
}

pub(super) fn run(place: &Routed, trial: &Trial<'_>) -> Outcome<TrialResult> {
    let gateway = (trial.event != GatewayEvent::Absent).then(|| place.gateway(trial.rate)).transpose()?;
    let address: IpAddr = SENDER[usize::from(trial.v6)].parse().map_err(|_| "no address".to_owned())?;
    let listener = place.at(Host::Sender, || {
        let listener = TcpListener::bind(SocketAddr::new(address, 0)).map_err(|e| e.to_string())?;
        // accepted connections inherit it
        set_tcp_congestion(&listener, "cubic").map_err(|e| e.to_string())?;
        Ok(listener)
    })?;
    let to = listener.local_addr().map_err(|e| e.to_string())?;
    let (ended, since) = (AtomicU32::new(0), Instant::now());
    thread::scope(|scope| {
        let served = scope.spawn(|| serve(&listener, trial.transfers as usize));
        let courses = scope.spawn(|| place.at(Host::Receiver, || receive_all(trial, to, &ended)));
        let met = apply_event(place, trial, gateway, &ended, since);
        let courses = join(courses)?;
        join(served)?;
        Ok(TrialResult { transfers: courses, ..met? })
    })
}

fn receive_all(trial: &Trial<'_>, to: SocketAddr, ended: &AtomicU32) -> Outcome<Vec<TransferRecord>> {
    thread::scope(|scope| {
        let one = |number| {
            let receive = move || {
                let course = receive(to, number, trial.bytes);
                ended.fetch_add(1, Ordering::Relaxed);
                course
            };
            // threads inherit the namespace
            Builder::new().stack_size(STACK).spawn_scoped(scope, receive).map_err(|e| e.to_string())
        };
        let threads: Vec<_> = (0..trial.transfers).map(one).collect::<Outcome<_>>()?;
        threads.into_iter().map(join).collect()
    })
}

/// Kills, restarts or stops the gateway as the trial says, and stops it when all transfers have ended.
fn apply_event(
    place: &Routed,
    trial: &Trial<'_>,
    mut gateway: Option<Running>,
    ended: &AtomicU32,
    since: Instant,
) -> Outcome<TrialResult> {
    let all_over = || ended.load(Ordering::Relaxed) == trial.transfers;
    let wait = |until: Duration| {
        while since.elapsed() < until && !all_over() {
            thread::sleep(Duration::from_millis(5));
        }
    };
    wait(Duration::from_secs_f64(trial.at));
    let ended_before = ended.load(Ordering::Relaxed);
    let mut met = TrialResult {
        transfers: Vec::new(),
        ended_before,
        restarted_at: None,
        accelerated_again: 0,
        largest_window: 0,
    };
    match &mut gateway {
        Some(gateway) if trial.event == GatewayEvent::Stopped => gateway.signal(Signal::TERM),
        Some(gateway) => Routed::kill(gateway)?,
        None => {}
    }
    if trial.event == GatewayEvent::Restarted {
        wait(since.elapsed() + RESTART);
        let new = place.gateway(trial.rate)?;
        met.restarted_at = Some(since.elapsed().as_secs_f64());
        while !all_over() {
            let flows = place.flows()?;
            let again: Vec<_> = flows.iter().filter(|f| is_accelerated_again(f)).collect();
            met.accelerated_again = met.accelerated_again.max(again.len());
            met.largest_window =
                again.iter().filter_map(|f| f["shown_bytes"].as_u64()).fold(met.largest_window, u64::max);
            wait(since.elapsed() + Duration::from_secs(1));
        }
        gateway = Some(new);
    }
    wait(Duration::MAX);
    drop(gateway);
    Ok(met)
}

/// True for a flow that was not seen opening, is accelerated, and had data acknowledged.
fn is_accelerated_again(flow: &serde_json::Value) -> bool {
    flow["why_passing"].is_null() && flow["opened_from"].is_null() && flow["acked_bytes"].as_u64() > Some(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_course_is_judged_by_its_intervals() {
        // 1 Mbyte/s, nothing for a second from 4 s on, a low interval at 8 s
        let mut intervals = vec![200_000; 60];
        intervals[20..25].fill(0);
        intervals[40] = 80_000;
        let course = TransferRecord { intact: true, bytes: 0, seconds: 12.0, intervals };
        assert!((course.goodput(0.0, 4.0) - 8e6).abs() < 1.0);
        assert!((course.reaches(7.9e6, 4.0).unwrap() - 1.0).abs() < 1e-9);
        assert_eq!(course.reaches(9e6, 0.0), None);
        assert!((course.lowest_share(6.0, 10.0, 1.0) - 0.4).abs() < 1e-9);
        assert!(course.lowest_share(4.0, 5.0, 2.0).abs() < 1e-9);
    }

    #[test]
    fn streams_differ_everywhere_and_do_not_depend_on_how_they_are_cut() {
        let (mut whole, mut part) = ([0; 4096], [0; 100]);
        fill(3, 5, &mut whole);
        fill(3, 1005, &mut part);
        assert_eq!(part, whole[1000..1100]);
        for other in [4, 5] {
            let mut out = [0; 4096];
            fill(other, 5, &mut out);
            let same = out.iter().zip(&whole).filter(|(a, b)| a == b).count();
            assert!(same < 64, "{same} of 4096");
        }
        let mut later = [0; 4096];
        fill(3, 5 + 4096, &mut later);
        assert!(later.iter().zip(&whole).filter(|(a, b)| a == b).count() < 64);
    }
}
