//! Tests a running gateway with a scripted data path.

use super::deployment::Deployment;
use super::engine::{Engine, EngineConfig, Event};
use super::run::{RunningGateway, StatusServices};
use super::sandbox::Sandbox;
use super::session::Session;
use crate::status::{FlowPage, FlowStats, GatewayCounters, Reply, Request, Verdict};
use bentpipe_scenario::Source;
use bentpipe_scenario::gateway_file::{GatewayFile, load};
use bentpipe_service::{Client, Registry};
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::{env, fs, process, thread};

const FILE: &str = "schema = 1\n[satellite]\n[deploy]\nkind = \"routed\"\nlan = \"a\"\nsatellite = \"b\"\n";

/// Configurations that the data path received, and the connections that it will report.
#[derive(Debug, Default)]
struct Script {
    closed: Vec<FlowStats>,
    told: Vec<bool>,
    bytes: [u64; 2],
}

#[derive(Debug)]
struct Puppet {
    script: Arc<Mutex<Script>>,
    ended: PipeReader,
    _end: PipeWriter,
}

impl Engine for Puppet {
    fn ended(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }

    fn counters(&mut self) -> GatewayCounters {
        GatewayCounters {
            bytes: self.script.lock().unwrap().bytes,
            accelerated: 3,
            ..GatewayCounters::default()
        }
    }

    fn flows(&mut self, from: u32, most: usize) -> FlowPage {
        let flow = |n: u32| FlowStats { lan: format!("10.0.0.1:{n}"), ..FlowStats::default() };
        let next = Some(from.saturating_add(most as u32)).filter(|n| *n < 5000);
        FlowPage { all: 5000, flows: (from..5000).take(most).map(flow).collect(), next }
    }

    fn take_closed(&mut self) -> Vec<FlowStats> {
        core::mem::take(&mut self.script.lock().unwrap().closed)
    }

    fn reconfigure(&mut self, orders: &EngineConfig) -> Result<(), String> {
        self.script.lock().unwrap().told.push(orders.accelerate);
        Ok(())
    }

    fn stop(self: Box<Self>) -> Result<(), String> {
        Ok(())
    }
}

struct Stage {
    gateway: RunningGateway,
    services: StatusServices,
    script: Arc<Mutex<Script>>,
    folder: PathBuf,
    file: GatewayFile,
    log: Vec<Event>,
}

impl Stage {
    fn new(name: &str, more: &str) -> Self {
        let folder = env::temp_dir().join(format!("bentpipe-run-{name}-{}", process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let more = more.replace("FOLDER", &folder.display().to_string());
        let file = load(&Source::new("gw.toml", format!("{FILE}{more}"))).unwrap();
        let session = Session { socket: folder.join("g.sock"), ..Session::default() };
        let services = StatusServices::open(&file, &session).unwrap();
        let script = Arc::new(Mutex::new(Script::default()));
        let (ended, end) = io::pipe().unwrap();
        let engine = Puppet { script: Arc::clone(&script), ended, _end: end };
        let gateway =
            RunningGateway::new(EngineConfig::new(file.clone()), Box::new(engine), Sandbox::default());
        Self { gateway, services, script, folder, file, log: Vec::new() }
    }

    /// Runs `act` on the gateway as its main loop does.
    fn with<T>(
        &mut self,
        act: impl FnOnce(&mut RunningGateway, &mut Deployment<'_>, &mut StatusServices) -> T,
    ) -> T {
        let (file, log) = (self.file.clone(), &mut self.log);
        let mut deployment = Deployment {
            path: "gw.toml",
            read: &|| Ok(file.clone()),
            registry: Registry::at(&self.folder),
            start: |_, _| Err("not started here".to_owned()),
            replace: false,
            log: &mut |event| log.push(event.clone()),
        };
        act(&mut self.gateway, &mut deployment, &mut self.services)
    }

    /// Closes `n` connections in both groups; the accelerated ones have `times` the goodput of the others.
    fn end_connections(&mut self, n: u64, times: f64) {
        for i in 0..n {
            let bps = 1_000_000 + 10_000 * i;
            let flow = |bps: u64, why: Option<&str>| FlowStats {
                goodput_bps: Some(bps),
                acked_bytes: 1_000_000,
                why_passing: why.map(str::to_owned),
                ..FlowStats::default()
            };
            let closed = &mut self.script.lock().unwrap().closed;
            closed.extend([flow((bps as f64 * times) as u64, None), flow(bps, Some("sampled"))]);
        }
        self.with(RunningGateway::periodic_work);
    }

    /// Sends a request over the socket while the gateway serves it.
    fn ask(&mut self, request: Request) -> Reply {
        let path = self.folder.join("g.sock");
        let ask = move || Client::connect(&path).unwrap().ask(&request, Some).unwrap();
        let asking = thread::Builder::new().spawn(ask).unwrap();
        while !asking.is_finished() {
            self.with(RunningGateway::answer_requests);
            thread::yield_now();
        }
        asking.join().unwrap()
    }

    fn says(&self, name: &str) -> usize {
        self.log.iter().filter(|event| event.name == name).count()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn when_it_is_slower_it_says_so_and_stops_accelerating() {
    let mut stage = Stage::new("slower", "[policy]\nsample = \"10 %\"\nbypass_when_slower = true\n");
    stage.end_connections(5, 0.5);
    assert!(stage.log.is_empty(), "too few to say anything: {:?}", stage.log);
    stage.end_connections(50, 0.5);
    assert_eq!((stage.says("gain"), stage.says("bypass")), (1, 1), "{:?}", stage.log);
    assert!(
        stage.log[0].text.starts_with("ACCELERATED CONNECTIONS ARE SLOWER: 0.50 times"),
        "{:?}",
        stage.log
    );
    assert_eq!(stage.script.lock().unwrap().told, [false]);
    stage.end_connections(50, 0.5);
    assert_eq!(stage.script.lock().unwrap().told, [false], "it is said once");
    let Reply::Status(status) = stage.ask(Request::Status) else { panic!("no status") };
    assert!(status.bypass.is_some_and(|why| why.contains("SLOWER")));
    assert_eq!(status.sample.map(|s| s.verdict), Some(Verdict::Slower));
    // reloading an unchanged file also re-enables acceleration
    let Reply::Done { message } = stage.ask(Request::Reload) else { panic!("not reloaded") };
    assert_eq!(message, "gw.toml is in effect");
    assert_eq!(stage.script.lock().unwrap().told, [false, true]);
    let Reply::Status(status) = stage.ask(Request::Status) else { panic!("no status") };
    assert_eq!((status.bypass, status.sample.map(|s| s.verdict)), (None, Some(Verdict::TooFew)));
}

#[test]
fn a_gain_is_told_and_nothing_is_stopped() {
    let mut stage = Stage::new("faster", "[policy]\nsample = \"10 %\"\nbypass_when_slower = true\n");
    stage.end_connections(50, 40.0);
    assert_eq!((stage.says("gain"), stage.says("bypass")), (1, 0));
    assert!(
        stage.log[0].text.starts_with("accelerated connections are 40.00 times as fast"),
        "{:?}",
        stage.log
    );
    let mut plain = Stage::new("plain", "");
    plain.end_connections(50, 0.1);
    assert!(plain.log.is_empty(), "nobody asked for a comparison");
    let mut warned = Stage::new("warned", "[policy]\nsample = \"10 %\"\n");
    warned.end_connections(50, 0.1);
    assert_eq!((warned.says("gain"), warned.says("bypass")), (1, 0));
    assert!(warned.script.lock().unwrap().told.is_empty());
}

#[test]
fn connections_that_end_are_recorded() {
    let mut stage = Stage::new("records", "[status]\nrecords = \"FOLDER/flows.csv\"\n");
    stage.end_connections(3, 2.0);
    stage.end_connections(1, 2.0);
    let text = fs::read_to_string(stage.folder.join("flows.csv")).unwrap();
    assert_eq!(text.lines().count(), 1 + 8, "{text}");
    // a failed write counts as lost records; none was lost here
    let Reply::Status(status) = stage.ask(Request::Status) else { panic!("no status") };
    assert_eq!(status.records_lost, 0);
}

#[test]
fn connections_come_in_pages() {
    let mut stage = Stage::new("pages", "");
    let Reply::Flows(page) = stage.ask(Request::Flows { from: 10, most: 2 }) else { panic!("no page") };
    assert_eq!((page.all, page.flows.len(), page.flows[0].lan.as_str()), (5000, 2, "10.0.0.1:10"));
    let Reply::Flows(page) = stage.ask(Request::Flows { from: 0, most: usize::MAX }) else {
        panic!("no page")
    };
    assert_eq!((page.flows.len(), page.next), (1000, Some(1000)), "an answer has its limit");
}

#[test]
fn throughput_is_that_of_the_time_between_two_looks() {
    let mut stage = Stage::new("rates", "");
    stage.with(RunningGateway::periodic_work);
    stage.script.lock().unwrap().bytes = [1_000_000, 0];
    stage.with(RunningGateway::periodic_work);
    let status = stage.with(|gateway, deployment, s| gateway.status(deployment, s.records.as_ref()));
    assert!(status.throughput_bps[0] > 8e6 && status.throughput_bps[1] < 1.0, "{:?}", status.throughput_bps);
}
