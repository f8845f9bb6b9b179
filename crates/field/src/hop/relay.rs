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
/// Most packets read from an interface before the next deliveries.
const AT_ONCE: usize = 32;
/// Real-time priority: higher than the gateway's, so that the hop is not delayed.
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

/// What both directions share.
struct Relay {
    clock: Clock,
    log: Log,
    refused: u64,
    buffer: Vec<u8>,
}

/// Carries packets from the first port to the second by the first settings, and back by the second, until
/// `end` is set.
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
    let priority = realtime::raise_to(PRIORITY).to_string();
    set_timer_slack()?;
    let mut relay = Relay { clock, log: Log::default(), refused: 0, buffer: vec![0; MAX_SUPER] };
    let mut directions = [Direction::new(there, seed, 0), Direction::new(back, seed, 1)];
    while !end.load(Ordering::Relaxed) {
        let next = directions.iter().filter_map(Direction::next).min().unwrap_or(u64::MAX);
        let deadline = Instant(next.min(clock.now().0 + LONGEST));
        wait(&[ports[0].fd(), ports[1].fd()], Some(deadline), &clock, Duration::ZERO)?;
        for side in [0, 1] {
            relay.deliver(&mut directions[side], &mut ports[1 - side])?;
            relay.receive_waiting(&mut ports[side], &mut directions[side], side == 0)?;
        }
    }
    Ok(HopResult { records: relay.log.into_all(), refused: relay.refused, priority })
}

impl Relay {
    /// Reads the packets waiting at an interface.
    fn receive_waiting(&mut self, port: &mut TunPort, way: &mut Direction, forward: bool) -> io::Result<()> {
        for _ in 0..AT_ONCE {
            let Some(packet) = port.receive(&mut self.buffer)? else { return Ok(()) };
            let (now, bytes) = (self.clock.at(packet.at).0, &self.buffer[..packet.len]);
            let number = self.log.add(Record::new(now, forward, way.queued(now), bytes));
            if !way.enqueue(now, number, bytes) {
                self.log.set_fate(number, Fate::QueueFull);
            }
        }
        Ok(())
    }

    /// Delivers the packets that are due.
    fn deliver(&mut self, way: &mut Direction, port: &mut TunPort) -> io::Result<()> {
        loop {
            let now = self.clock.now().0;
            let leaving = way.take_due(now);
            for number in way.take_lost() {
                self.log.set_fate(number, Fate::Lost);
            }
            let Some(leaving) = leaving else { return Ok(()) };
            let taken = port.send(&VnetHeader::default(), &[IoSlice::new(&leaving.bytes)])?;
            self.refused += u64::from(!taken);
            if let Some(record) = self.log.get_mut(leaving.number) {
                if record.fate.delivered_at().is_some() {
                    record.duplicate_at = Some(now);
                } else {
                    (record.fate, record.due) = (Fate::Delivered(now), leaving.due);
                }
            }
        }
    }
}
