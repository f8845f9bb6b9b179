//! Two hosts whose TCP sends at granted rates: agents of method "kernel" at both ends, a gateway that
//! is a flow router between them.
#![cfg(feature = "bpf")]
#![expect(clippy::print_stdout, reason = "a test that cannot run here says so")]
#![expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "programs are timed by the clock")]

#[path = "../gateway/lab.rs"]
#[allow(dead_code, reason = "shared with the tests of the gateway, which use more of it")]
mod lab;
#[path = "../agent/streams.rs"]
mod streams;

use bentpipe_os::diag::Diag;
use lab::{FAR, Gateway, HOST, Lab, ROUTER, err, out, wait_until};
use rustix::process::{Signal, geteuid};
use serde_json::Value;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};
use streams::{content, receive};

const PATIENCE: Duration = Duration::from_secs(20);
const MBPS: f64 = 60.0;
const RATE: &str = "[policy]\notherwise = \"pass\"\n[rate]\nencodings = [\"tia-1039\"]\nrate = \"60 Mbit/s\"\n\
    return_rate = \"60 Mbit/s\"\nutilisation = 1\n";
const LIMITS: [&str; 2] = ["net/ipv4/tcp_rmem", "net/ipv4/tcp_wmem"];
const GUARD: &str = "bentpipe_guard";
/// A well-formed structure: a request (`bentpipe_advice::tia1039`).
const STRUCTURE: [u8; 16] = [0, 0, 0, 0, 0x61, 0x0D, 0, 0, 0, 0, 0x10, 0, 0, 0x10, 0, 0];

/// Everything that an agent may change where it stands.
fn traces(lab: &Lab) -> String {
    let limits = lab.at(lab.seat, || LIMITS.map(|name| bentpipe_os::sysctl::read(name).expect("a setting")));
    format!("{}\n{limits:?}", lab.traces())
}

/// The two agents, the host's first, and what was there before.
struct Pair {
    lab: Lab,
    before: [String; 2],
    agents: [Option<Gateway>; 2],
    _router: Gateway,
}

const SEATS: [(usize, &str, &str); 2] = [(HOST, "near", "a0"), (FAR, "far", "b0")];

impl Pair {
    fn file(&self, n: usize) -> String {
        let (_, name, network) = SEATS[n];
        let path = self.lab.folder.join(format!("{name}.toml")).display().to_string();
        let text = format!(
            "schema = 1\nmethod = \"kernel\"\n[deploy]\nkind = \"host\"\nnetwork = \"{network}\"\nname = \"{name}\"\n\
             drain = \"300 ms\"\n[[rules]]\naction = \"pass\"\nport = 22\n[[rules]]\nwindow = \"16 MiB\"\n"
        );
        fs::write(&path, text).expect("a file");
        path
    }

    /// Works at the seat of an agent from now on.
    fn at(&mut self, n: usize) -> &Lab {
        (self.lab.service, self.lab.seat) = ("agent", SEATS[n].0);
        &self.lab
    }

    /// An agent that must not start, with another text in the place of `old` in its file; returns its log.
    fn refuse(&mut self, n: usize, old: &str, new: &str) -> String {
        let path = self.file(n);
        let text = fs::read_to_string(&path).expect("its file").replace(old, new);
        fs::write(&path, text).expect("a file");
        let output = self.at(n).gateway(&["run", &path]);
        assert!(!output.status.success(), "{}", err(&output));
        out(&output) + &err(&output)
    }

    fn start(&mut self, n: usize) {
        let file = self.file(n);
        self.agents[n] = Some(self.at(n).start(&file));
    }

    fn new(test: &str) -> Option<Self> {
        if !geteuid().is_root() {
            println!("SKIPPED {test}: a congestion control in BPF needs root");
            return None;
        }
        if let Err(why) = bentpipe_agent::deploy::rates() {
            println!("SKIPPED {test}: {why}");
            return None;
        }
        let lab = Lab::new(&format!("kernel-{test}"), true)?;
        let file = lab.file(RATE);
        let router = lab.start(&file);
        let mut pair = Self { lab, before: Default::default(), agents: [None, None], _router: router };
        for n in [0, 1] {
            pair.before[n] = traces(pair.at(n));
        }
        (0..2).for_each(|n| pair.start(n));
        Some(pair)
    }

    fn ask(&mut self, n: usize, action: &str, more: &[&str]) -> String {
        let name = SEATS[n].1;
        let args = [&[action, "--name", name], more].concat();
        let output = self.at(n).gateway(&args);
        assert!(output.status.success(), "{action}: {}{}", out(&output), err(&output));
        out(&output)
    }

    fn status(&mut self, n: usize) -> Value {
        serde_json::from_str(&self.ask(n, "status", &["--json"])).expect("JSON")
    }

    /// A connection that the host opens: its ends there and at the far host.
    fn connect(&self, v6: bool) -> [TcpStream; 2] {
        let address: IpAddr = if v6 { "fd77:2::2" } else { "10.77.2.2" }.parse().expect("an address");
        let listener =
            self.lab.at(FAR, || TcpListener::bind(SocketAddr::new(address, 0))).expect("a listener");
        let at = listener.local_addr().expect("an address");
        let accepted = spawn(move || listener.accept().expect("a connection").0);
        let calling = self.lab.at(HOST, || TcpStream::connect_timeout(&at, PATIENCE)).expect("a way through");
        let ends = [calling, accepted.join().expect("no panic")];
        for end in &ends {
            end.set_read_timeout(Some(PATIENCE)).expect("a timeout");
            end.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        }
        ends
    }

    /// Congestion control of the host's end of a connection.
    fn control(&self, stream: &TcpStream) -> String {
        let here = stream.local_addr().expect("an address");
        let all = self.lab.at(HOST, || Diag::open().and_then(|mut diag| diag.connections())).expect("a list");
        all.into_iter().find(|one| one.local == here).map_or_else(String::new, |one| one.congestion)
    }
}

/// Bytes with structures between them, so that many packets end like one.
fn structures(seed: u32, len: usize) -> Vec<u8> {
    let mut all = content(seed, len);
    // one piece in three
    all.chunks_exact_mut(4096).step_by(3).flat_map(|piece| piece.chunks_exact_mut(16)).for_each(|place| {
        place.copy_from_slice(&STRUCTURE);
    });
    all
}

/// Sends and closes that direction; returns the seconds until everything has arrived unchanged.
fn carry(mut from: &TcpStream, to: &TcpStream, bytes: &[u8]) -> f64 {
    let heard = receive(to.try_clone().expect("a descriptor"));
    let start = Instant::now();
    from.write_all(bytes).expect("room");
    from.shutdown(Shutdown::Write).expect("it is open");
    assert!(heard.join().expect("no panic") == bytes, "other bytes arrived");
    start.elapsed().as_secs_f64()
}

#[test]
fn hosts_send_at_granted_rates_and_their_bytes_are_exact() {
    let Some(mut pair) = Pair::new("rates") else { return };
    for v6 in [false, true] {
        let [host, far] = pair.connect(v6);
        let bytes = structures(7, 4_000_000);
        let seconds = carry(&host, &far, &bytes);
        let least = bytes.len() as f64 * 8e-6 / MBPS;
        let control = pair.control(&host);
        let state = pair.status(0);
        assert!(control.starts_with("bent_rate"), "v6: {v6}, {seconds} s, it uses {control:?}: {state:#}");
        assert!(seconds > least && seconds < 2.0 * least + 0.3, "{seconds} s, at least {least}");
        // and back, which the far host's kernel paces
        carry(&far, &host, &structures(8, 1_000_000));
    }
    let status = pair.status(0);
    assert_eq!(
        (&status["method"], &status["kernel"]["sockets"][0]),
        (&"kernel".into(), &2.into()),
        "{status:#}"
    );
    let granted =
        |flow: &Value| flow["granted_bps"].as_f64().is_some_and(|bps| bps > 0.0 && bps <= MBPS * 1e6);
    let flows = status["flows"].as_array().expect("flows");
    assert!(flows.len() == 2 && flows.iter().all(granted), "{status:#}");
    let text = pair.ask(0, "status", &[]);
    for wanted in
        ["congestion control bent_rate", "2 got a rate", "raised       net/ipv4/tcp_rmem", "60 Mbit/s"]
    {
        assert!(text.contains(wanted), "{wanted} is not in\n{text}");
    }
    for n in [0, 1] {
        let (code, log) = pair.agents[n].take().expect("it runs").end(Signal::TERM);
        assert_eq!((code, log.contains("ended")), (Some(0), true), "{log}");
        let before = pair.before[n].clone();
        assert_eq!(traces(pair.at(n)), before);
    }
}

/// Starts to send so much that it lasts some seconds, and waits until the rate is used.
fn begin(pair: &Pair) -> ([TcpStream; 2], JoinHandle<f64>) {
    let ends = pair.connect(false);
    let [host, far] = [0, 1].map(|n| ends[n].try_clone().expect("a descriptor"));
    let carried = spawn(move || carry(&host, &far, &content(9, 24_000_000)));
    wait_until("it has a rate", || pair.control(&ends[0]).starts_with("bent_rate"));
    (ends, carried)
}

fn has_guard(lab: &Lab) -> bool {
    lab.at(lab.seat, || bentpipe_os::nft::list_table(GUARD)).is_ok()
}

/// Packets that the guard has dropped.
fn dropped(lab: &Lab) -> u64 {
    let text = lab.at(lab.seat, || bentpipe_os::nft::list_table(GUARD)).expect("the guard");
    let mut words = text.split_whitespace().skip_while(|word| *word != "packets").skip(1);
    words.next().and_then(|count| count.parse().ok()).expect("a counter")
}

#[test]
fn without_the_agent_the_guard_keeps_structures_from_the_host() {
    let Some(mut pair) = Pair::new("guard") else { return };
    let [host, mut far] = pair.connect(false);
    let control = pair.lab.at(FAR, || Diag::open().and_then(|mut diag| diag.connections())).expect("a list");
    assert!(control.iter().any(|one| one.congestion.starts_with("bent_rate")), "{control:?}");
    pair.agents[0].take().expect("it runs").end(Signal::KILL);
    // the router lowers the rate, and says so in packets that the far agent marks. Nobody answers
    let lower = RATE.replace("60 Mbit/s", "20 Mbit/s");
    (pair.lab.service, pair.lab.seat) = ("gateway", ROUTER);
    pair.lab.file(&lower);
    let output = pair.lab.gateway(&["reload"]);
    assert!(output.status.success(), "{}", err(&output));
    let bytes = content(9, 2_000_000);
    let sent = bytes.clone();
    // it may be cut off by the end of the test
    spawn(move || far.write_all(&sent).is_ok());
    let mut got = vec![0; bytes.len() / 4];
    (&host).read_exact(&mut got).expect("it goes on");
    assert!(bytes.starts_with(&got), "other bytes arrived");
    wait_until("a structure is dropped", || dropped(pair.at(0)) > 0);
}

#[test]
fn a_start_that_fails_after_a_kill_leaves_the_guard_to_undo() {
    let Some(mut pair) = Pair::new("refused") else { return };
    let [host, mut far] = pair.connect(false);
    far.write_all(&[1]).expect("room");
    (&host).read_exact(&mut [0]).expect("a byte");
    pair.agents[0].take().expect("it runs").end(Signal::KILL);
    let said = pair.refuse(0, "\"kernel\"", "\"split\"");
    assert!(said.contains("1 connections of an earlier agent") && said.contains("agent undo"), "{said}");
    assert!(has_guard(pair.at(0)));
    // and one that fails when the earlier agent's guard is its own already
    let folder = pair.lab.folder.join("folder");
    fs::create_dir_all(folder.join("full")).expect("a folder");
    let status = format!("[status]\nsocket = \"{}\"\n[[rules]]\naction", folder.display());
    let said = pair.refuse(0, "[[rules]]\naction", &status);
    assert!(said.contains("guarded"), "{said}");
    assert!(has_guard(pair.at(0)));
    let done = pair.ask(0, "undo", &[]);
    assert!(done.contains("1 connections that signalled were reset"), "{done}");
    assert!((&host).read(&mut [0]).is_err(), "it was reset");
    let before = pair.before[0].clone();
    assert_eq!(traces(pair.at(0)), before);
}

#[test]
fn a_flow_whose_agent_is_killed_goes_on_and_undo_leaves_nothing() {
    let Some(mut pair) = Pair::new("killed") else { return };
    let (ends, carried) = begin(&pair);
    pair.agents[0].take().expect("it runs").end(Signal::KILL);
    wait_until("it goes on without a rate", || pair.control(&ends[0]) == "cubic");
    assert!(!carried.is_finished() && has_guard(pair.at(0)), "the guard stays while the flow is open");
    // an agent that is started again takes over
    pair.start(0);
    assert!(has_guard(pair.at(0)));
    pair.agents[0].take().expect("it runs").end(Signal::KILL);
    carried.join().expect("the bytes are exact");
    drop(ends);
    let lab = pair.at(0);
    wait_until("the last flow has ended", || !has_guard(lab));
    assert!(pair.ask(0, "undo", &[]).contains("session file removed"));
    let before = pair.before[0].clone();
    assert_eq!(traces(pair.at(0)), before);
}

#[test]
fn a_flow_that_is_open_at_the_end_is_guarded_and_undo_resets_it() {
    let Some(mut pair) = Pair::new("stopped") else { return };
    let [host, mut far] = pair.connect(false);
    far.write_all(&[1]).expect("room");
    (&host).read_exact(&mut [0]).expect("a byte");
    let (code, log) = pair.agents[0].take().expect("it runs").end(Signal::TERM);
    assert_eq!((code, log.contains("1 connections go on without rates")), (Some(0), true), "{log}");
    far.write_all(&[2]).expect("room");
    (&host).read_exact(&mut [0]).expect("it goes on");
    assert!(has_guard(pair.at(0)));
    let done = pair.ask(0, "undo", &[]);
    assert!(done.contains("1 connections that signalled were reset"), "{done}");
    assert!((&host).read(&mut [0]).is_err(), "it was reset");
    let before = pair.before[0].clone();
    assert_eq!(traces(pair.at(0)), before);
}

#[test]
fn a_check_says_which_method_is_in_force() {
    let Some(mut pair) = Pair::new("check") else { return };
    pair.agents = [None, None];
    for n in [0, 1] {
        pair.ask(n, "undo", &[]);
    }
    let file = pair.file(0);
    let output = pair.at(0).gateway(&["check", &file]);
    for wanted in
        ["kernel: the agent signals", "rates for sockets", "tcp_wmem", GUARD, "the agent would start"]
    {
        assert!(out(&output).contains(wanted), "{wanted} is not in\n{}", out(&output));
    }
    let traces = traces(&pair.lab);
    assert_eq!(traces, pair.before[0]);
}
