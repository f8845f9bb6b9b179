//! An agent between two hosts with kernel TCP, in each place where it can stand: bytes, refusals, kill, undo.

#![expect(clippy::print_stdout, reason = "a test that cannot run here says so")]
#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "its peers are threads with kernel sockets, timed by the clock"
)]

#[allow(dead_code, reason = "shared with the tests of the gateway, which use more of it")]
#[path = "../gateway/lab.rs"]
mod lab;
mod streams;

use lab::{FAR, HOST, Lab, ROUTER, err, ip, out};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};
use streams::{content, receive};

const PATIENCE: Duration = Duration::from_secs(20);
const RULES: &str = "[[rules]]\naction = \"pass\"\nport = 22\n[[rules]]\nask = \"50 Mbit/s\"\n";

/// Sets up the lab for an agent of this kind, and returns its file.
fn seat(test: &str, kind: &str) -> Option<(Lab, String)> {
    let mut lab = Lab::new(&format!("agent-{test}-{kind}"), true)?;
    lab.service = "agent";
    let interfaces = match kind {
        "host" => {
            lab.seat = HOST;
            "network = \"a0\""
        }
        "inline" => {
            // both hosts on one network, which the router no longer connects
            lab.at(ROUTER, || {
                for interface in ["eth0", "eth1"] {
                    ip(&format!("addr flush dev {interface}")).expect("no addresses");
                }
            });
            lab.at(HOST, || {
                for words in [
                    "addr add 10.77.2.3/24 dev a0",
                    "-6 addr add fd77:2::3/64 dev a0 nodad",
                    "-6 addr del fd77:1::2/64 dev a0",
                ] {
                    ip(words).expect("an address");
                }
            });
            "host = \"eth1\"\nnetwork = \"eth0\""
        }
        _ => "host = \"eth1\"\nnetwork = \"eth0\"",
    };
    let path = lab.folder.join("agent.toml").display().to_string();
    let text = format!("schema = 1\n[deploy]\nkind = \"{kind}\"\n{interfaces}\ndrain = \"1 s\"\n{RULES}");
    fs::write(&path, text).expect("a file");
    Some((lab, path))
}

fn status(lab: &Lab) -> Value {
    let output = lab.gateway(&["status", "--json"]);
    serde_json::from_str(&out(&output)).unwrap_or_else(|e| panic!("{e}: {}", err(&output)))
}

fn patient(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// Address of a host that the other one reaches.
fn address(host: usize, kind: &str, v6: bool) -> IpAddr {
    let text = match (host, kind, v6) {
        (FAR, _, false) => "10.77.2.2",
        (FAR, _, true) => "fd77:2::2",
        (_, "inline", false) => "10.77.2.3",
        (_, "inline", true) => "fd77:2::3",
        (_, _, false) => "10.77.1.2",
        (_, _, true) => "fd77:1::2",
    };
    text.parse().expect("an address")
}

/// An open connection, from `from` to the other host: its ends there and here.
fn connect(lab: &Lab, kind: &str, from: usize, v6: bool) -> [TcpStream; 2] {
    let to = if from == HOST { FAR } else { HOST };
    let at = SocketAddr::new(address(to, kind, v6), 0);
    let listener = lab.at(to, || TcpListener::bind(at)).expect("a listener");
    let at = listener.local_addr().expect("an address");
    let accepted = spawn(move || listener.accept().expect("a connection").0);
    let calling = lab.at(from, || TcpStream::connect_timeout(&at, PATIENCE)).expect("a way through");
    [patient(calling), patient(accepted.join().expect("no panic"))]
}

/// Sends 2 MB, closes that direction, and only then gets an answer of 1 MB.
fn exchange([mut caller, mut answerer]: [TcpStream; 2], seed: u32) {
    let (question, answer) = (content(seed, 2_000_000), content(seed + 1, 1_000_000));
    let heard = receive(answerer.try_clone().expect("a descriptor"));
    caller.write_all(&question).expect("room");
    caller.shutdown(std::net::Shutdown::Write).expect("it is open");
    assert!(heard.join().expect("no panic") == question, "other bytes arrived");
    let heard = receive(caller);
    answerer.write_all(&answer).expect("room");
    drop(answerer);
    assert!(heard.join().expect("no panic") == answer, "other bytes came back");
}

fn carries(kind: &str) {
    let Some((lab, file)) = seat("carries", kind) else { return };
    let before = lab.traces();
    let agent = lab.start(&file);
    let mut seed = 0;
    for from in [HOST, FAR] {
        for v6 in [false, true] {
            seed += 2;
            exchange(connect(&lab, kind, from, v6), seed);
        }
    }
    let nobody = SocketAddr::new(address(FAR, kind, false), 9);
    let refused = lab.at(HOST, || TcpStream::connect_timeout(&nobody, PATIENCE));
    assert_eq!(refused.expect_err("a closed port").kind(), ErrorKind::ConnectionRefused);
    let idle = connect(&lab, kind, HOST, false);
    let status = status(&lab);
    let counters = &status["counters"];
    assert_eq!(
        (&counters["connections"], &counters["refused"], &status["open"]),
        (&6.into(), &1.into(), &1.into())
    );
    assert_eq!(
        status["flows"].as_array().map(|all| all.iter().filter(|f| f["state"] == "open").count()),
        Some(1)
    );
    let (code, log) = agent.end(Signal::TERM);
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("1 connections were reset"), "{log}");
    for mut end in idle {
        assert_eq!(end.read(&mut [0]).expect_err("a reset").kind(), ErrorKind::ConnectionReset);
    }
    assert_eq!(lab.traces(), before);
}

#[test]
fn bytes_are_exact_inline() {
    carries("inline");
}

#[test]
fn bytes_are_exact_on_a_router() {
    carries("routed");
}

#[test]
fn bytes_are_exact_on_the_host() {
    carries("host");
}

/// Reads to the end; returns how it ended, and when.
fn ending(mut stream: TcpStream) -> JoinHandle<(std::io::Result<usize>, Instant)> {
    spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        loop {
            match stream.read(&mut buffer) {
                Ok(1..) => {}
                other => return (other, Instant::now()),
            }
        }
    })
}

fn is_killed(kind: &str) {
    let Some((lab, file)) = seat("killed", kind) else { return };
    let before = lab.traces();
    let agent = lab.start(&file);
    let idle = connect(&lab, kind, HOST, false).map(ending);
    let [mut busy, listening] = connect(&lab, kind, FAR, true);
    let mut ends: Vec<_> = idle.into_iter().chain([ending(listening)]).collect();
    ends.push(spawn(move || {
        let chunk = vec![7; 1 << 16];
        loop {
            if let Err(error) = busy.write_all(&chunk) {
                return (Err(error), Instant::now());
            }
        }
    }));
    std::thread::park_timeout(Duration::from_millis(300));
    let began = Instant::now();
    agent.end(Signal::KILL);
    for end in ends {
        let (how, when) = end.join().expect("no panic");
        let kind = how.expect_err("no clean end").kind();
        assert!(matches!(kind, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{kind}");
        assert!(when.duration_since(began) < Duration::from_secs(2), "{:?}", when.duration_since(began));
    }
    let undone = lab.gateway(&["undo"]);
    assert!(out(&undone).contains("session file removed"), "{}{}", out(&undone), err(&undone));
    assert_eq!(lab.traces(), before);
}

#[test]
fn both_ends_are_reset_when_an_agent_inline_is_killed() {
    is_killed("inline");
}

#[test]
fn both_ends_are_reset_when_an_agent_on_a_router_is_killed() {
    is_killed("routed");
}

#[test]
fn both_ends_are_reset_when_an_agent_on_the_host_is_killed() {
    is_killed("host");
}

#[test]
fn a_check_shows_what_would_change_and_leaves_no_trace() {
    let Some((lab, file)) = seat("check", "host") else { return };
    let before = lab.traces();
    let output = lab.gateway(&["check", &file]);
    assert_eq!(output.status.code(), Some(0), "{}{}", out(&output), err(&output));
    for wanted in [
        "split: the agent ends the host's connections",
        "ip link add dev bentahost mtu 1500",
        "type route hook output",
        "the agent would start",
    ] {
        assert!(out(&output).contains(wanted), "{wanted} is not in\n{}", out(&output));
    }
    assert_eq!((lab.traces(), out(&lab.gateway(&["undo"]))), (before, "nothing to undo\n".to_owned()));
    fs::write(&file, "schema = 1\n[deploy]\nkind = \"host\"\nnetwork = \"a0\"\n").expect("a file");
    let output = lab.gateway(&["run", &file]);
    assert_eq!((output.status.code(), err(&output).contains("the file has no `rules`")), (Some(2), true));
}
