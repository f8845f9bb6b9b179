//! Runs the hop in real time: two TUN interfaces, one thread, real-time priority where allowed.

use super::direction::{Direction, Fate, Settings};
use super::record::{Log, Record};
use bentpipe_base::{Duration, Instant};
use bentpipe_os::port::MAX_SUPER;
use bentpipe_os::wait::{set_timer_slack, wait};
use bentpipe_os::{Clock, PacketPort, TunPort, realtime};
use bentpipe_wire::offload::VnetHeader;
use std::io::{self, IoSlice};
use std::sync::atomic::{AtomicBool, Ordering};

/// Longest sleep, ns: the time after which a request to end is noticed.
const LONGEST: u64 = 50_000_000;
/// Packets read before the next deliveries.
const AT_ONCE: usize = 32;
/// Higher than the gateway's, so that the hop is not delayed.
const PRIORITY: u8 = 40;

/// Result of running the hop.
#[derive(Debug, Default)]
pub struct HopResult {
    /// All packets, each direction in order of entry.
    pub records: Vec<Record>,
    /// Packets that an interface refused.
    pub refused: u64,
    /// The scheduling priority it ran with.
    pub priority: String,
}

/// Carries packets from `a` to `b` by the first settings and back by the second, until `end` is set.
///
/// # Errors
/// If an interface fails.
pub fn run(
    mut ports: [TunPort; 2],
    [there, back]: [Settings; 2],
    seed: u64,
    clock: Clock,
    end: &AtomicBool,
) -> io::Result<HopResult> {
    let mut told = HopResult { priority: realtime::raise_to(PRIORITY).to_string(), ..HopResult::default() };
    let mut log = Log::default();
    set_timer_slack()?;
    let mut directions = [Direction::new(there, seed, 0), Direction::new(back, seed, 1)];
    let mut buffer = vec![0; MAX_SUPER];
    while !end.load(Ordering::Relaxed) {
        let next = directions.iter().filter_map(Direction::next).min().unwrap_or(u64::MAX);
        let deadline = Instant(next.min(clock.now().0 + LONGEST));
        wait(&[ports[0].fd(), ports[1].fd()], Some(deadline), &clock, Duration::ZERO)?;
        for side in [0, 1] {
            deliver(&mut directions[side], &mut ports[1 - side], clock, &mut log, &mut told.refused)?;
            let forward = side == 0;
            receive_waiting(&mut ports[side], &mut directions[side], forward, &mut buffer, clock, &mut log)?;
        }
    }
    told.records = log.into_all();
    Ok(told)
}

/// Reads the packets waiting at an interface.
fn receive_waiting(
    port: &mut TunPort,
    direction: &mut Direction,
    forward: bool,
    buffer: &mut [u8],
    clock: Clock,
    log: &mut Log,
) -> io::Result<()> {
    for _ in 0..AT_ONCE {
        let Some(packet) = port.receive(buffer)? else { return Ok(()) };
        let (now, bytes) = (clock.at(packet.at).0, &buffer[..packet.len]);
        let number = log.add(Record::new(now, forward, direction.queued(now), bytes));
        if !direction.enqueue(now, number, bytes) {
            mark(log, number, Fate::Full);
        }
    }
    Ok(())
}

/// Delivers the packets that are due.
fn deliver(
    direction: &mut Direction,
    port: &mut TunPort,
    clock: Clock,
    log: &mut Log,
    refused: &mut u64,
) -> io::Result<()> {
    loop {
        let now = clock.now().0;
        let leaving = direction.take_due(now);
        for number in direction.take_lost() {
            mark(log, number, Fate::Lost);
        }
        let Some(leaving) = leaving else { return Ok(()) };
        let taken = port.send(&VnetHeader::default(), &[IoSlice::new(&leaving.bytes)])?;
        *refused += u64::from(!taken);
        if let Some(record) = log.at(leaving.number) {
            if record.fate.out().is_some() {
                record.duplicate_at = Some(now);
            } else {
                (record.fate, record.due) = (Fate::Out(now), leaving.due);
            }
        }
    }
}

fn mark(log: &mut Log, number: usize, fate: Fate) {
    if let Some(record) = log.at(number) {
        record.fate = fate;
    }
}
