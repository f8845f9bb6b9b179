//! A panic in any thread of a session or a gateway ends the process at once, and traffic goes on as after
//! `kill -9`.

use super::runs::IperfReport;
use crate::accept::list::{List, Outcome, Setup};
use crate::bench;
use lab::passage::{Forwarding, GatewayKind, RouterTestbed};
use lab::rig::Running;
use lab::{Rig, Who, join};
use rustix::process::Signal;
use std::fs;
use std::process::Command;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

/// Time within which the process must have ended.
const AT_ONCE: Duration = Duration::from_millis(100);
const LIMIT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_micros(500);
/// Length of the transfer and time of the panic, s.
const SECONDS: u32 = 6;
const AT: Duration = Duration::from_secs(2);
/// Rate of the accelerated connection, bit/s; the kernel alone then forwards more, differently in each run.
const HOP_BPS: f64 = 100e6;
const HOP: &str = "rate = \"100 Mbit/s\"\nrtt = \"20 ms\"";
/// Threads of a gateway: the main thread, and that which carries packets.
const THREADS: [&str; 2] = ["bentpipe", "bentpipe-path"];

/// What ends the process.
#[derive(Clone, Copy, Debug)]
enum End<'a> {
    /// A panic in the thread of this name.
    Panic(&'a str),
    Kill,
}

pub(super) fn check(setup: &Setup, list: &mut List) -> Outcome {
    // the measuring programs
    setup.bentpipe()?;
    let program = bench::release(&["--example", "panics"])?.join("examples/panics");
    let rig = Rig::new(&program, Who::CurrentUser)?;
    let one = session(&rig, "one")?;
    let names: Vec<String> = threads(one.id())?.into_iter().map(|(name, _)| name).collect();
    drop(one);
    for name in names {
        let ended = session(&rig, &name).and_then(|mut session| {
            let took = end(&rig, &mut session, End::Panic(&name))?;
            Ok((took, session.wait(LIMIT)?.signal))
        });
        let what = format!("emulate: a panic in thread {name} ends it within 100 ms");
        list.judge(what, ended, |(took, signal)| {
            let figure = format!("{:.1} ms, signal {signal:?}", took.as_secs_f64() * 1e3);
            (figure, took <= AT_ONCE && signal == Some(Signal::ABORT.as_raw()))
        });
    }
    rig.output(&["doctor", "--clean"], LIMIT)?;
    let bed = RouterTestbed::new(rig)?;
    let killed = gateway(&bed, End::Kill);
    for name in THREADS {
        let what = format!("gateway: a panic in thread {name} ends it in 100 ms, traffic as after kill -9");
        let both = killed.clone().and_then(|killed| Ok((killed, gateway(&bed, End::Panic(name))?)));
        list.judge(what, both, |((_, killed), (took, after))| {
            let [after_mbps, killed_mbps] = [after, killed].map(|bps| bps / 1e6);
            let ms = took.as_secs_f64() * 1e3;
            let figure = format!("{ms:.1} ms; then {after_mbps:.0} Mbit/s, after kill -9 {killed_mbps:.0}");
            (figure, took <= AT_ONCE && after.min(killed) >= HOP_BPS)
        });
    }
    Ok(())
}

/// Starts a session with all threads that one can have without an uplink; `name` is for its files.
fn session(rig: &Rig, name: &str) -> Outcome<Running> {
    let [out, journal] =
        ["out", "journal"].map(|kind| rig.path(&format!("{kind}-{name}")).display().to_string());
    let words = ["emulate", "geo-10m", "--out", &out, "--journal", &journal, "--", "sleep", "60"];
    let mut session = rig.start(&words)?;
    sleep(AT);
    if session.has_ended()? { Err(session.err()) } else { Ok(session) }
}

/// Names and ids of a process's threads.
fn threads(process: u32) -> Outcome<Vec<(String, String)>> {
    let folder = format!("/proc/{process}/task");
    let one = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry?;
        let name = fs::read_to_string(entry.path().join("comm"))?;
        Ok((name.trim().to_owned(), entry.file_name().to_string_lossy().into_owned()))
    };
    let all: std::io::Result<_> = fs::read_dir(&folder).and_then(|all| all.map(one).collect());
    all.map_err(|e| format!("{folder}: {e}"))
}

/// Ends a process; returns how long that took.
fn end(rig: &Rig, process: &mut Running, how: End<'_>) -> Outcome<Duration> {
    let since = match how {
        End::Kill => {
            process.signal(Signal::KILL);
            Instant::now()
        }
        End::Panic(name) => {
            let id = process.id();
            let thread = threads(id)?.into_iter().find(|(found, _)| found == name);
            let (_, thread) = thread.ok_or_else(|| format!("no thread {name}"))?;
            let since = Instant::now();
            // started directly, since the programs that start each other in the rig take 100 ms
            let sent = Command::new(rig.program()).args(["at", &id.to_string(), &thread]).status();
            sent.map_err(|e| e.to_string())?;
            since
        }
    };
    while !process.has_ended()? {
        if since.elapsed() > LIMIT {
            return Err(format!("it did not end after {how:?}"));
        }
        sleep(POLL_INTERVAL);
    }
    Ok(since.elapsed())
}

/// Ends a gateway during a transfer. Returns how long that took, and the goodput from a second later on,
/// bit/s.
fn gateway(bed: &RouterTestbed, how: End<'_>) -> Outcome<(Duration, f64)> {
    let carrier = Forwarding::Accelerated(GatewayKind::Routed);
    let mut gateway = bed.start_forwarding(carrier, HOP)?;
    let Some(process) = gateway.process() else { return Err("no gateway".to_owned()) };
    let (took, report) = scope(|scope| {
        let transfer = scope.spawn(|| bed.iperf_report(carrier, &format!("-t {SECONDS}"), SECONDS));
        sleep(AT);
        (end(bed.rig(), process, how), join(transfer))
    });
    Ok((took?, IperfReport(report?).rate_bps(AT.as_secs_f64() + 0.99)?))
}
