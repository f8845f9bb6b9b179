//! Sockets of the kernel in two network namespaces, between which packets are lost.
#![cfg(feature = "bpf")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "this is test code")]

use bentpipe_base::{Duration, Prefix, Rate};
use bentpipe_kernel_rate::{Grant, KernelRate, Policy, Tuple};
use bentpipe_os::{namespace, socket};
use core::net::{IpAddr, SocketAddr};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration as Time, Instant};

const SENDER: [u8; 4] = [10, 231, 0, 1];
const RECEIVER: [u8; 4] = [10, 231, 0, 2];
const PORT: u16 = 9000;

fn run(command: &str) {
    let mut words = command.split_whitespace();
    let status = Command::new(words.next().unwrap()).args(words).status().unwrap();
    assert!(status.success(), "{command}");
}

fn nft(script: &str) {
    bentpipe_os::nft::run(script).unwrap();
}

/// True if this machine can do it; otherwise says why not.
fn can() -> bool {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: BPF needs root");
        return false;
    }
    match KernelRate::check() {
        Ok(()) => true,
        Err(reason) => {
            eprintln!("skipped: {reason}");
            false
        }
    }
}

/// What the receiver counts: bytes since the start, every 50 ms.
type Samples = Vec<(Time, u64)>;

/// The receiver: reads all that comes over one connection.
fn receive(ready: &mpsc::Sender<u32>, go: &mpsc::Receiver<()>) -> Samples {
    let namespace = namespace::new_network().unwrap();
    ready.send(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()).unwrap();
    go.recv().unwrap();
    run("ip link set lo up");
    run("ip addr add 10.231.0.2/24 dev vb");
    run("ip link set vb up");
    nft("table inet loss {
        chain c {
            type filter hook input priority 0
            tcp dport 9000 meta length > 200 numgen random mod 1000 < 20 drop
        }
    }");
    let listener = TcpListener::bind(SocketAddr::from((RECEIVER, PORT))).unwrap();
    ready.send(0).unwrap();
    let (mut from, _) = listener.accept().unwrap();
    let (start, mut bytes, mut samples) = (Instant::now(), 0, Vec::new());
    let mut buffer = vec![0; 1 << 20];
    loop {
        let n = from.read(&mut buffer).unwrap();
        if n == 0 {
            break;
        }
        bytes += n as u64;
        let at = start.elapsed();
        if samples.last().is_none_or(|(last, _): &(Time, u64)| at - *last >= Time::from_millis(50)) {
            samples.push((at, bytes));
        }
    }
    drop(namespace);
    samples
}

/// Mean rate in Mbit/s between two times in seconds.
fn rate(samples: &Samples, from: f64, to: f64) -> f64 {
    let at = |s: f64| samples.iter().find(|(at, _)| at.as_secs_f64() >= s).unwrap();
    let ((t0, b0), (t1, b1)) = (at(from), at(to));
    (b1 - b0) as f64 * 8e-6 / (*t1 - *t0).as_secs_f64()
}

#[test]
fn a_socket_sends_at_its_rate_whatever_is_lost() {
    if !can() {
        return;
    }
    let peers = vec![Prefix::new(IpAddr::from(RECEIVER), 24).unwrap()];
    let rates = KernelRate::load(&Policy { cgroup: None, peers }).unwrap();
    let ((ready, is_ready), (go, may_go)) = (mpsc::channel(), mpsc::channel());
    let receiver = thread::spawn(move || receive(&ready, &may_go));
    let _sender = namespace::new_network().unwrap();
    let thread = is_ready.recv().unwrap();
    run(&format!("ip link add name va type veth peer name vb netns {thread}"));
    run("ip link set lo up");
    run("ip addr add 10.231.0.1/24 dev va");
    run("ip link set va up");
    run("ip link set va gso_max_segs 1"); // each packet is lost or not
    go.send(()).unwrap();
    is_ready.recv().unwrap();

    let local = SocketAddr::from((SENDER, 40_000));
    let remote = SocketAddr::from((RECEIVER, PORT));
    let tuple = Tuple { local, remote };
    let grant = |mbps: u64| Grant {
        rate: Rate::from_bps(mbps * 1_000_000).unwrap(),
        rtt: Duration::from_millis(1),
        extra: 0,
        threshold: 100,
    };
    rates.set(&tuple, &grant(100)).unwrap();
    let to = socket::stream(&remote).unwrap();
    socket::bind(&to, &local).unwrap();
    socket::connect(&to, &remote).unwrap();
    let mut to = TcpStream::from(to);
    to.set_nonblocking(false).unwrap();
    let (start, block) = (Instant::now(), vec![7; 64 << 10]);
    let mut renewed = Instant::now();
    let phase = |to: &mut TcpStream, until: f64, renewed: &mut Instant, renews: bool| {
        while start.elapsed().as_secs_f64() < until {
            to.write_all(&block).unwrap();
            if renews && renewed.elapsed() > Time::from_millis(500) {
                rates.renew().unwrap();
                *renewed = Instant::now();
            }
        }
    };
    phase(&mut to, 3.0, &mut renewed, true);
    rates.set(&tuple, &grant(40)).unwrap();
    phase(&mut to, 5.0, &mut renewed, true);
    let before = rates.counts();
    // the agent is silent from here on
    phase(&mut to, 8.5, &mut renewed, false);
    drop(to);
    let samples = receiver.join().unwrap();
    let (first, steady, lower) =
        (rate(&samples, 0.0, 0.3), rate(&samples, 0.3, 2.9), rate(&samples, 3.3, 4.9));
    eprintln!("first 0.3 s {first:.1}, steady {steady:.1}, lower {lower:.1}, {:?}", rates.counts());
    // 1448 of 1500 bytes are payload, and 2 % are sent twice
    let share = 1448.0 / 1500.0 * 0.98;
    assert!((steady / (100.0 * share) - 1.0).abs() < 0.03, "{steady}");
    assert!(first > 80.0 * share, "{first}");
    assert!((lower / (40.0 * share) - 1.0).abs() < 0.03, "{lower}");
    assert_eq!((before.adopted, before.fell_back, before.left), (1, 0, 0));
    assert_eq!(rates.counts().left, 1, "the lease has ended");
    let after = rate(&samples, 7.5, 8.3);
    eprintln!("without the agent {after:.1}");
}
