//! The interface of the data path for deployment and status, and a minimal data path.

use super::record_file::RecordFile;
use crate::status::{FlowPage, FlowStats, GatewayCounters};
use bentpipe_base::{Duration, Instant};
use bentpipe_os::port::MAX_SUPER;
use bentpipe_os::{Clock, PacketPort, wait};
use bentpipe_scenario::gateway_file::GatewayFile;
use bentpipe_wire::offload::SuperPacket;
use std::io::{self, IoSlice, PipeReader, PipeWriter};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};

/// Severity of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Normal operation.
    Info,
    /// Needs attention.
    Warning,
}

/// A log event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Severity.
    pub level: Level,
    /// Kind, one word.
    pub name: &'static str,
    /// Message.
    pub text: String,
}

/// Configuration of a data path.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineConfig {
    /// The gateway file.
    pub file: Arc<GatewayFile>,
    /// If false, nothing is accelerated, whatever the rules say.
    pub accelerate: bool,
    /// File for the records of connections; only used at the start.
    pub keep: Option<RecordFile>,
}

impl EngineConfig {
    /// The configuration according to the file.
    pub fn new(file: GatewayFile) -> Self {
        Self { file: Arc::new(file), accelerate: true, keep: None }
    }
}

/// A data path that runs in its own threads. These calls return quickly.
pub trait Engine: core::fmt::Debug {
    /// Descriptor that becomes readable or reaches its end when the data path has ended by itself.
    fn ended(&self) -> BorrowedFd<'_>;

    /// Returns its counters.
    fn counters(&mut self) -> GatewayCounters;

    /// Returns its connections in table order, at most `most`, starting at index `from`.
    fn flows(&mut self, from: u32, most: usize) -> FlowPage;

    /// Returns connections that have closed since the last call.
    fn take_closed(&mut self) -> Vec<FlowStats>;

    /// Scheduling priority of the data thread, and whether it is real time; `None` if that is not requested.
    fn priority(&self) -> Option<(String, bool)> {
        None
    }

    /// Closes the records of its connections, so that the next data path resumes from their current state.
    ///
    /// # Errors
    /// If no records are left for it; the text says why.
    fn close_records(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Returns events since the last call.
    fn take_events(&mut self) -> Vec<Event> {
        Vec::new()
    }

    /// Changes the configuration without losing connections.
    ///
    /// # Errors
    /// If that is not possible; the text says why.
    fn reconfigure(&mut self, orders: &EngineConfig) -> Result<(), String>;

    /// Stops the data path: forwards held packets, then closes the ports.
    ///
    /// # Errors
    /// If it ended before the stop; the text says why.
    fn stop(self: Box<Self>) -> Result<(), String>;
}

/// Starts a data path between two ports, LAN and satellite.
pub type Start = fn([Box<dyn PacketPort>; 2], &EngineConfig) -> Result<Box<dyn Engine>, String>;

/// Maximum number of super-packets forwarded from one port before the other gets its turn.
const BATCH: usize = 64;

/// Forwards packets unchanged between the ports and knows no connections: the baseline for measuring other
/// data paths.
#[derive(Debug)]
pub struct PassThrough {
    counts: Arc<Counts>,
    /// Reaches its end when the thread ends.
    ended: PipeReader,
    /// Closed to stop the thread.
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

#[derive(Debug, Default)]
struct Counts {
    packets: [AtomicU64; 2],
    bytes: [AtomicU64; 2],
    drops: [AtomicU64; 4],
}

impl PassThrough {
    /// Starts the data path.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(ports: [Box<dyn PacketPort>; 2], _: &EngineConfig) -> Result<Box<dyn Engine>, String> {
        let (counts, open) = (Arc::new(Counts::default()), || io::pipe().map_err(|e| e.to_string()));
        let ((ended, end), (stopped, stop)) = (open()?, open()?);
        let shared = Arc::clone(&counts);
        let carry = move || {
            let _end = end;
            carry(ports, &stopped, &shared)
        };
        let thread = Builder::new().name("bare".to_owned()).spawn(carry).map_err(|e| e.to_string())?;
        Ok(Box::new(Self { counts, ended, stop: Some(stop), thread: Some(thread) }))
    }
}

fn carry(mut ports: [Box<dyn PacketPort>; 2], stopped: &PipeReader, counts: &Counts) -> io::Result<()> {
    const SECOND: u64 = 1_000_000_000;
    let clock = Clock::start();
    let mut buffer = vec![0; MAX_SUPER];
    let mut looked = Instant::ZERO;
    loop {
        let fds = [ports[0].fd(), ports[1].fd(), stopped.as_fd()];
        let ready = wait::wait(&fds, Some(Instant(clock.now().0 + SECOND)), &clock, Duration::ZERO)?;
        for from in (0..2).filter(|i| ready.has(*i)) {
            for _ in 0..BATCH {
                let Some(got) = ports[from].receive(&mut buffer)? else { break };
                let packet = &buffer[..got.len];
                // an unparsable packet counts as one and is forwarded
                let pieces = SuperPacket::parse(packet, &got.vnet).map_or(1, |s| s.pieces());
                counts.packets[from].fetch_add(pieces as u64, Ordering::Relaxed);
                counts.bytes[from].fetch_add(got.len as u64, Ordering::Relaxed);
                // the port counts packets that the kernel does not accept
                let _ = ports[1 - from].send(&got.vnet, &[IoSlice::new(packet)]);
            }
        }
        let now = clock.now();
        if now.since(looked).0 >= SECOND || ready.has(2) {
            looked = now;
            count_drops(&mut ports, counts)?;
        }
        if ready.has(2) {
            return Ok(());
        }
    }
}

/// Reads the drop counters of the ports; for a TUN interface that means reading a file.
fn count_drops(ports: &mut [Box<dyn PacketPort>; 2], counts: &Counts) -> io::Result<()> {
    for (i, port) in ports.iter_mut().enumerate() {
        let drops = port.drops()?;
        counts.drops[2 * i].store(drops.receive, Ordering::Relaxed);
        counts.drops[2 * i + 1].store(drops.send, Ordering::Relaxed);
    }
    Ok(())
}

impl Engine for PassThrough {
    fn ended(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }

    fn counters(&mut self) -> GatewayCounters {
        let both = |pair: &[AtomicU64; 2]| [pair[0].load(Ordering::Relaxed), pair[1].load(Ordering::Relaxed)];
        let names = ["lan_receive", "lan_send", "satellite_receive", "satellite_send"];
        let drops = self.counts.drops.iter().map(|n| n.load(Ordering::Relaxed));
        GatewayCounters {
            packets: both(&self.counts.packets),
            bytes: both(&self.counts.bytes),
            port_drops: names.into_iter().map(str::to_owned).zip(drops).collect(),
            ..GatewayCounters::default()
        }
    }

    fn flows(&mut self, _: u32, _: usize) -> FlowPage {
        FlowPage::default()
    }

    fn take_closed(&mut self) -> Vec<FlowStats> {
        Vec::new()
    }

    fn reconfigure(&mut self, _: &EngineConfig) -> Result<(), String> {
        Ok(())
    }

    fn stop(mut self: Box<Self>) -> Result<(), String> {
        self.stop = None;
        match self.thread.take().map(JoinHandle::join) {
            None | Some(Ok(Ok(()))) => Ok(()),
            Some(Ok(Err(error))) => Err(error.to_string()),
            Some(Err(_)) => Err("its thread has panicked".to_owned()),
        }
    }
}

impl Drop for PassThrough {
    fn drop(&mut self) {
        self.stop = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
