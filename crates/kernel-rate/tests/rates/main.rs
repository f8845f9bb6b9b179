//! Sockets of the kernel that send at the rate that they were given.
#![cfg(feature = "bpf")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "this is test code")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the kernel's sockets have real time"
)]

mod rig;

use bentpipe_base::{Duration, Prefix, Rate};
use bentpipe_kernel_rate::{Counts, Grant, KernelRate, Policy, Tuple, guard};
use bentpipe_os::{nft, tcp};
use rig::{PORT, Rig, connect, end, write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration as Time, Instant};

/// True if this machine can do it; otherwise says why not.
fn can() -> bool {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: BPF needs root");
        return false;
    }
    KernelRate::check().inspect_err(|reason| eprintln!("skipped: {reason}")).is_ok()
}

fn grant(mbps: u64) -> Grant {
    let rate = Rate::from_bps(mbps * 1_000_000).unwrap();
    Grant { rate, rtt: Duration::from_millis(1), extra: 0, threshold: 100 }
}

fn tuple(v6: bool, from: u16, to: u16) -> Tuple {
    Tuple { local: end(v6, 0, from), remote: end(v6, 1, to) }
}

/// Checks the rate of the last `seconds` of a flow with `mbps`, of whose packets 2 % are lost.
fn check(rig: &Rig, seconds: f64, mbps: f64, header: f64) {
    let (got, due) = (rig.rate(seconds), mbps * (1500.0 - header) / 1500.0 * 0.98);
    eprintln!("{got:.1} of {due:.1} Mbit/s");
    assert!((got / due - 1.0).abs() < 0.04, "{got} of {due}");
}

/// A rate from the first segment on, a lower one, and the end of the agent.
fn from_the_start(rates: &KernelRate, rig: &Rig) {
    let renew = || rates.renew().unwrap();
    let tuple = tuple(false, 4001, PORT);
    rates.set(&tuple, &grant(100)).unwrap();
    let mut to = connect(false, 4001, PORT);
    write(&mut to, 0.4, renew);
    check(rig, 0.4, 100.0, 52.0);
    write(&mut to, 2.0, renew);
    check(rig, 1.9, 100.0, 52.0);
    rates.set(&tuple, &grant(40)).unwrap();
    write(&mut to, 1.5, renew);
    check(rig, 1.2, 40.0, 52.0);
    assert_eq!(rates.counts(), Counts { adopted: 1, ..Counts::default() });
    write(&mut to, 2.5, || {});
    assert_eq!(rates.counts().left, 1, "the lease has ended");
    let after = tcp::info(&to).unwrap();
    eprintln!("without the agent: {:.1} Mbit/s, cwnd {}", rig.rate(0.4), after.cwnd);
    renew();
    write(&mut to, 0.6, renew);
    check(rig, 0.4, 40.0, 52.0);
    rates.forget(&tuple);
    write(&mut to, 0.1, renew);
    assert_eq!(rates.counts(), Counts { adopted: 2, left: 2, ..Counts::default() });
}

/// The rate comes when the connection is open, and the path is IPv6.
fn later(rates: &KernelRate, rig: &Rig) {
    let renew = || rates.renew().unwrap();
    let mut to = connect(true, 4002, PORT);
    write(&mut to, 0.3, renew);
    rates.set(&tuple(true, 4002, PORT), &Grant { extra: 16, ..grant(60) }).unwrap();
    write(&mut to, 1.5, renew);
    check(rig, 1.0, 60.0, 72.0 + 16.0);
    assert_eq!(rates.counts().adopted, 3);
}

/// After silence only the initial window is sent, until the rate is confirmed.
fn silent(rates: &KernelRate) {
    let window = |to: &TcpStream| tcp::info(to).unwrap().cwnd;
    let renew = || rates.renew().unwrap();
    let tuple = tuple(false, 4003, PORT);
    rates.set(&tuple, &grant(50)).unwrap();
    let mut to = connect(false, 4003, PORT);
    write(&mut to, 0.2, renew);
    assert!(window(&to) > 32);
    for _ in 0..5 {
        thread::sleep(Time::from_millis(500));
        renew();
    }
    write(&mut to, 0.2, renew);
    assert_eq!(window(&to), 10);
    rates.set(&tuple, &grant(50)).unwrap();
    write(&mut to, 0.2, renew);
    assert!(window(&to) > 32);
    // silence during which the lease ends: CUBIC starts from the window that is left
    thread::sleep(Time::from_millis(2500));
    let (before, left) = (tcp::info(&to).unwrap().bytes_acked, rates.counts().left);
    write(&mut to, 0.1, || {});
    let info = tcp::info(&to).unwrap();
    assert_eq!(rates.counts().left, left + 1);
    let acked = (info.bytes_acked - before).div_ceil(info.mss.0);
    assert!(u64::from(info.cwnd) <= 10 + acked, "{} after {acked} segments", info.cwnd);
}

/// More is lost than a rate explains.
fn lossy(rates: &KernelRate) {
    let renew = || rates.renew().unwrap();
    rates.set(&tuple(false, 4004, PORT + 1), &grant(100)).unwrap();
    let mut to = connect(false, 4004, PORT + 1);
    write(&mut to, 0.3, renew);
    assert_eq!(rates.counts().fell_back, 0, "4096 packets take half a second");
    let start = Instant::now();
    while rates.counts().fell_back == 0 && start.elapsed() < Time::from_secs(5) {
        write(&mut to, 0.02, renew);
    }
    assert_eq!(rates.counts().fell_back, 1);
}

#[test]
fn sockets_send_at_their_rates_whatever_is_lost() {
    if !can() {
        return;
    }
    let peers = [false, true].map(|v6| Prefix::new(end(v6, 1, 0).ip(), 24).unwrap());
    let policy = Policy { cgroup: None, peers: peers.to_vec() };
    // an agent of another network namespace, whose rates are not ours
    let other = KernelRate::load(&policy).unwrap();
    let rig = Rig::new();
    let rates = KernelRate::load(&policy).unwrap();
    assert_ne!(rates.name(), other.name());
    for name in [rates.name(), other.name()] {
        assert!(tcp::congestion_controls().unwrap().iter().any(|one| one == name), "{name}");
    }
    for port in 4001..4005 {
        other.set(&tuple(port == 4002, port, PORT), &grant(1)).unwrap();
    }
    from_the_start(&rates, &rig);
    later(&rates, &rig);
    silent(&rates);
    lossy(&rates);
    assert_eq!((rates.counts().refused, other.counts()), (0, Counts::default()));
    let names = [rates.name().to_owned(), other.name().to_owned()];
    drop((rates, other));
    assert!(!tcp::congestion_controls().unwrap().iter().any(|name| names.contains(name)));
    // the guard is taken by the kernel, twice as well as once, and removed
    for script in [guard::script(&peers), guard::script(&peers), guard::removal(), guard::removal()] {
        nft::run(&script).unwrap();
    }
    assert!(nft::list_table(guard::TABLE).is_err());
}
