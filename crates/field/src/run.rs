//! One run: creates the bed, sends and receives over the hop, and keeps the hop's record.

use crate::bed::{TestBed, receiver};
use crate::cell::RunConfig;
use crate::datagrams;
use crate::gateway::{self, Gateway};
use crate::hop::relay::{self, HopResult};
use crate::reader::{self, Reader};
use crate::sender::{self, SenderResult};
use crate::watch::{self, Stall, WatchedThreads};
use bentpipe_os::{Clock, namespace};
use serde_json::Value;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

/// Raw results of a run.
#[derive(Debug, Default)]
pub struct RunResult {
    /// The hop's record.
    pub hop: HopResult,
    /// Samples of the senders' TCP state.
    pub sent: Vec<SenderResult>,
    /// Bytes that each receiver had read, every 100 ms.
    pub bytes_read: Vec<Vec<u64>>,
    /// UDP datagrams sent and received.
    pub udp: [u64; 2],
    /// Stalls of the machine.
    pub stalls: Vec<Stall>,
    /// Duration, ns.
    pub length: u64,
    /// The gateway's status and its flows, or the errors.
    pub gateway: Option<[Result<Value, String>; 2]>,
}

/// Interval between the entries of [`RunResult::bytes_read`].
pub const READ_INTERVAL: Duration = Duration::from_millis(100);
const PORT: u16 = 5201;

/// A temporary directory that is removed on drop.
pub(crate) struct TemporaryFolder(pub(crate) PathBuf);

impl TemporaryFolder {
    pub(crate) fn new(name: &str) -> Result<Self, String> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("bentpipe-{name}-{}-{n}", std::process::id()));
        create(&path).map(|()| Self(path))
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn create(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))
}

/// Runs the bed once.
///
/// # Errors
/// If the bed or the gateway cannot be started, or the hop fails.
pub fn run(cell: &RunConfig) -> Result<RunResult, String> {
    let kinds: Vec<_> = cell.flows.iter().map(|f| f.receiver).collect();
    let (bed, ports) = TestBed::new(&kinds, cell.wmem)?;
    let kept = TemporaryFolder::new("field")?;
    let text = gateway::file(cell.rate, 2.0 * cell.delay, &cell.gateway_lines);
    let gateway =
        cell.gateway.as_ref().map(|program| Gateway::start(&bed, program, &kept.0, &text)).transpose()?;
    let ran = run_in_bed(cell, &bed, ports, gateway.as_ref());
    drop(gateway);
    if let Some(out) = &cell.out {
        create(out)?;
        let _ = fs::copy(kept.0.join("gateway.log"), out.join("gateway.log"));
        let _ = fs::copy(kept.0.join("gateway.toml"), out.join("gateway.toml"));
    }
    ran
}

fn run_in_bed(
    cell: &RunConfig,
    bed: &TestBed,
    ports: [bentpipe_os::TunPort; 2],
    gateway: Option<&Gateway>,
) -> Result<RunResult, String> {
    let (end, over, watched) = (AtomicBool::new(false), AtomicBool::new(false), WatchedThreads::default());
    let totals: Vec<AtomicU64> = cell.flows.iter().map(|_| AtomicU64::new(0)).collect();
    let mut listeners = Vec::new();
    for (i, place) in bed.receivers.iter().enumerate() {
        let at = SocketAddr::from((receiver(i), PORT));
        listeners.push(place.within(|| TcpListener::bind(at).map_err(|e| format!("{at}: {e}")))?);
    }
    let sender = bed.sender.within(|| namespace::network().map_err(|e| e.to_string()))?;
    let clock = Clock::start();
    thread::scope(|scope| {
        let hop = scope.spawn(|| relay::run(ports, cell.settings(), cell.seed, clock, &over));
        let watch = scope.spawn(|| watch::watch(clock, &watched, &end));
        for ((listener, flow), total) in listeners.iter().zip(&cell.flows).zip(&totals) {
            let (end, watched) = (&end, &watched);
            scope.spawn(move || {
                watched.add_this_thread();
                receive(listener, flow.reader, clock, total, end);
            });
        }
        let mut senders = Vec::new();
        for (i, flow) in cell.flows.iter().enumerate() {
            let to = SocketAddr::from((receiver(i), PORT));
            let (end, sender) = (&end, &sender);
            senders.push(scope.spawn(move || sender::send(sender, to, flow, clock, end)));
        }
        let udp = (cell.udp > 0.0).then(|| scope.spawn(|| datagrams::run(bed, cell.udp, clock, &end)));
        let mut read: Vec<Vec<u64>> = vec![Vec::new(); cell.flows.len()];
        let all = (cell.seconds * 1e9) as u64;
        let mut note = 0;
        while clock.now().0 < all && !senders.iter().all(ScopedJoinHandle::is_finished) {
            note += READ_INTERVAL.as_nanos() as u64;
            thread::sleep(Duration::from_nanos(note.saturating_sub(clock.now().0)));
            for (series, total) in read.iter_mut().zip(&totals) {
                series.push(total.load(Ordering::Relaxed));
            }
        }
        let length = clock.now().0;
        let gateway = gateway.map(|g| [g.ask(bed, "status"), g.ask(bed, "flows")]);
        end.store(true, Ordering::Relaxed);
        let broken = |_| "a thread panicked".to_owned();
        let sent: Result<Vec<SenderResult>, String> =
            senders.into_iter().map(|s| s.join().map_err(broken)).collect();
        over.store(true, Ordering::Relaxed);
        let hop = hop.join().map_err(broken)?.map_err(|e| format!("the hop: {e}"))?;
        let udp = udp.map_or(Ok(Ok([0; 2])), |udp| udp.join().map_err(broken))??;
        let gaps = watch.join().map_err(broken)?;
        Ok(RunResult { hop, sent: sent?, bytes_read: read, udp, stalls: gaps, length, gateway })
    })
}

/// Accepts one connection and reads from it.
fn receive(listener: &TcpListener, how: Reader, clock: Clock, total: &AtomicU64, end: &AtomicBool) {
    let _ = listener.set_nonblocking(true);
    while !end.load(Ordering::Relaxed) {
        if let Ok((mut stream, _)) = listener.accept() {
            let _ = stream.set_nonblocking(false);
            return reader::read(&mut stream, how, clock, total, end);
        }
        thread::sleep(Duration::from_millis(2));
    }
}
