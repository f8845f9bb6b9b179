//! Firewalls on the router: what `check` reports about them, and what happens if a start stops the site's
//! traffic.
//!
//! `BENTPIPE_STARTS` is the number of starts of each kind; the acceptance test uses many.

use crate::lab::{FAR, HOST, Lab, ROUTER, echo, err, ip, out, wait_until};
use bentpipe_os::{Clock, namespace};
use rustix::process::Signal;
use serde_json::Value;
use std::env;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::thread::{self, Builder, JoinHandle, park_timeout};
use std::time::Duration;

/// More addresses of the far host, used as peers.
const PEERS: [&str; 4] = ["10.77.2.11", "10.77.2.12", "10.77.2.13", "10.77.2.14"];

fn shell(script: &str) -> Result<(), String> {
    let done =
        Command::new("sh").args(["-ec", script]).stdin(Stdio::null()).output().map_err(|e| e.to_string())?;
    if done.status.success() { Ok(()) } else { Err(format!("{script}: {}", err(&done))) }
}

/// Returns typical firewalls: hosts of the LAN may open connections to the satellite side, not vice versa.
fn firewalls() -> Vec<(&'static str, String)> {
    let iptables = "IPT -P FORWARD DROP
        IPT -A FORWARD -i eth1 -o eth0 -j ACCEPT
        IPT -A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT";
    let nft = "nft -f - <<'END'
table inet site {
    chain forward {
        type filter hook forward priority 0; policy drop;
        ct state established,related accept
        iifname \"eth1\" oifname \"eth0\" accept
    }
}
END";
    vec![
        ("nft", nft.to_owned()),
        ("iptables-nft", iptables.replace("IPT", "iptables-nft")),
        ("iptables-legacy", iptables.replace("IPT", "iptables-legacy")),
    ]
}

/// Sets up a firewall on the router; prints a line and returns false if its program is missing.
fn build(lab: &Lab, test: &str, tool: &str, script: &str) -> bool {
    if let Err(why) = shell(&format!("command -v {tool}")) {
        println!("SKIPPED {test}: {why}");
        return false;
    }
    lab.at(ROUTER, || shell(script)).expect("a firewall");
    true
}

fn starts() -> u64 {
    env::var("BENTPIPE_STARTS").ok().and_then(|n| n.parse().ok()).unwrap_or(1)
}

#[test]
fn a_firewall_that_would_drop_the_sites_traffic_is_named_and_its_rules_mend_it() {
    for (tool, script) in firewalls() {
        let Some(lab) = Lab::new(&format!("mend-{tool}"), true) else { return };
        if !build(&lab, "mend", tool, &script) {
            return;
        }
        let mut early = lab.connect(false);
        echo(&mut early, 10_000);
        let (file, before) = (lab.file(""), lab.traces());
        for verb in ["check", "run"] {
            let refused = lab.gateway(&[verb, &file]);
            let text = out(&refused) + &err(&refused);
            assert_eq!(refused.status.code(), Some(2), "{tool}: {text}");
            assert!(text.contains("would drop traffic that it accepts today"), "{tool}: {text}");
            assert_eq!(lab.traces(), before);
        }
        let json: Value =
            serde_json::from_str(&out(&lab.gateway(&["check", &file, "--json"]))).expect("JSON");
        let findings = json["findings"].as_array().expect("a list");
        let bad: Vec<&Value> = findings.iter().filter(|f| f["standing"] == "bad").collect();
        assert_eq!(bad.len(), 1, "{tool}: {json}");
        let mends: Vec<&str> =
            bad[0]["mends"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
        for mend in mends.iter().filter_map(|m| m.strip_prefix("sudo ")) {
            lab.at(ROUTER, || shell(mend)).unwrap_or_else(|why| panic!("{tool}: {why}"));
        }
        let checked = lab.gateway(&["check", &file]);
        assert_eq!(checked.status.code(), Some(0), "{tool}: {}", out(&checked));
        assert!(out(&checked).contains("ok  firewalls"), "{}", out(&checked));
        let gateway = lab.start(&file);
        let mut late = lab.connect(false);
        for stream in [&mut early, &mut late] {
            echo(stream, 1_000_000);
        }
        // the firewall still blocks what it blocked before
        let listener = lab.at(HOST, || TcpListener::bind("10.77.1.2:0")).expect("a listener");
        let to = listener.local_addr().expect("an address");
        let opened = lab.at(FAR, || TcpStream::connect_timeout(&to, Duration::from_millis(500)));
        assert!(opened.is_err(), "{tool}: from outside");
        assert_eq!(gateway.end(Signal::TERM).0, Some(0));
    }
}

const TALKS: u8 = 0;
const SILENT: u8 = 1;
const ENDS: u8 = 2;

/// Connections from the host to peers; each sends an echo request a few times a second.
struct Talk {
    manner: Arc<AtomicU8>,
    echoes: Arc<[AtomicU64; 4]>,
    threads: Vec<JoinHandle<()>>,
}

impl Talk {
    fn begin(lab: &Lab) -> Self {
        let (manner, echoes) = (Arc::new(AtomicU8::new(TALKS)), Arc::new([const { AtomicU64::new(0) }; 4]));
        let talk = |i: usize| {
            let mut stream = lab.connect_to(PEERS[i]);
            stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
            let (manner, echoes) = (Arc::clone(&manner), Arc::clone(&echoes));
            let act = move || {
                let mut piece = [7; 200];
                while manner.load(Ordering::Relaxed) != ENDS {
                    if manner.load(Ordering::Relaxed) == TALKS {
                        if stream.write_all(&piece).is_err() || stream.read_exact(&mut piece).is_err() {
                            return;
                        }
                        echoes[i].fetch_add(1, Ordering::Relaxed);
                    }
                    park_timeout(Duration::from_millis(100));
                }
            };
            Builder::new().spawn(act).expect("a thread")
        };
        let threads = (0..PEERS.len()).map(talk).collect();
        Self { manner, echoes, threads }
    }

    fn set(&self, manner: u8) {
        self.manner.store(manner, Ordering::Relaxed);
    }

    fn echoes(&self) -> Vec<u64> {
        self.echoes.iter().map(|n| n.load(Ordering::Relaxed)).collect()
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        self.set(ENDS);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn add_peers(lab: &Lab) {
    lab.at(FAR, || {
        for peer in PEERS {
            ip(&format!("addr add {peer}/24 dev b0")).expect("an address");
        }
    });
}

#[test]
fn a_start_that_stops_traffic_is_undone() {
    // `check` cannot see this one: it drops packets from the gateway before the forward chains and before the
    // counters
    let raw = "nft 'add table inet raw; add chain inet raw pre { type filter hook prerouting priority -500; }; add rule inet raw pre iifname { bentlan, bentsat } drop'";
    let mut all = firewalls();
    all.push(("nft", raw.to_owned()));
    let behind = |(n, (tool, script)): (usize, (&'static str, String))| {
        let Some(lab) = Lab::new(&format!("back-{n}"), true) else { return };
        if !build(&lab, "back", tool, &script) {
            return;
        }
        add_peers(&lab);
        let talk = Talk::begin(&lab);
        wait_until("echoes", || talk.echoes().iter().all(|n| *n > 0));
        let file = lab.watched_file("30 s", "firewall = \"ignore\"\n");
        let before = lab.traces();
        for start in 0..starts() {
            let gateway = lab.start(&file);
            let since = Clock::start();
            let (status, log) = gateway.wait();
            let took = since.now().as_secs_f64();
            assert_eq!(status, Some(3), "{tool} {n}, start {start}: {log}");
            assert!(log.contains("traffic stopped after"), "{log}");
            assert!(took < 5.0, "{tool} {n}, start {start}: {took} s");
            assert_eq!(lab.traces(), before, "{tool} {n}");
            let then = talk.echoes();
            // lost packets are retransmitted after an RTO
            wait_until("connections that go on", || {
                talk.echoes().iter().zip(&then).all(|(now, then)| *now > then + 2)
            });
            let why = log.lines().rev().nth(1).unwrap_or_default();
            println!("{tool} {n}, start {start}: undone {took:.1} s after the start: {why}");
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> =
            all.into_iter().enumerate().map(|one| scope.spawn(move || behind(one))).collect();
        for thread in threads {
            thread.join().expect("no start went wrong");
        }
    });
}

/// Sends datagrams to each peer that nobody answers, until stopped.
fn one_way(lab: &Lab, manner: Arc<AtomicU8>) -> JoinHandle<()> {
    // sockets that are never read, so that no host sends port unreachable
    let deaf: Vec<UdpSocket> =
        PEERS.iter().map(|p| lab.at(FAR, || UdpSocket::bind((*p, 4000))).expect("a socket")).collect();
    let net = lab.net(HOST);
    let act = move || {
        let _deaf = deaf;
        let socket = namespace::in_network(&net, || UdpSocket::bind("10.77.1.2:0"))
            .expect("a namespace")
            .expect("a socket");
        while manner.load(Ordering::Relaxed) != ENDS {
            for peer in PEERS {
                let to = SocketAddr::new(peer.parse::<IpAddr>().expect("an address"), 4000);
                let _ = socket.send_to(&[1; 200], to);
            }
            park_timeout(Duration::from_millis(50));
        }
    };
    Builder::new().spawn(act).expect("a thread")
}

#[test]
fn a_start_beside_traffic_that_merely_ends_is_left_alone() {
    let beside = |kind: &'static str| {
        let Some(lab) = Lab::new(&format!("beside-{kind}"), true) else { return };
        add_peers(&lab);
        let file = lab.watched_file("6 s", "");
        if kind == "loss" {
            let lossy = "nft 'add table inet loss; add chain inet loss i { type filter hook input priority 0; }; add chain inet loss o { type filter hook output priority 0; }; add rule inet loss i numgen random mod 5 0 drop; add rule inet loss o numgen random mod 5 0 drop'";
            lab.at(FAR, || shell(lossy)).expect("a far host that loses packets");
        }
        for start in 0..starts() {
            let talk = (kind != "one-way").then(|| Talk::begin(&lab));
            let ends = Arc::new(AtomicU8::new(TALKS));
            let datagrams = (kind == "one-way").then(|| one_way(&lab, Arc::clone(&ends)));
            let gateway = lab.start(&file);
            if let Some(talk) = talk.as_ref() {
                // active peers are known before the start; with this much loss perhaps not all of them
                let known = if kind == "loss" { "peers answered" } else { "4 peers answered" };
                assert!(gateway.lines.contains(known), "{}", gateway.lines);
                talk.set(match kind {
                    "silent" => SILENT,
                    "ending" => ENDS,
                    _ => TALKS,
                });
            }
            park_timeout(Duration::from_secs(7));
            let (status, log) = gateway.end(Signal::TERM);
            assert_eq!(status, Some(0), "{kind}, start {start}: {log}");
            ends.store(ENDS, Ordering::Relaxed);
            drop(talk);
            if let Some(datagrams) = datagrams {
                datagrams.join().expect("no panic");
            }
        }
        println!("{} starts beside {kind} traffic, none undone", starts());
    };
    thread::scope(|scope| {
        let kinds = ["silent", "ending", "one-way", "loss"];
        let threads = kinds.map(|kind| scope.spawn(move || beside(kind)));
        for thread in threads {
            thread.join().expect("no start went wrong");
        }
    });
}
