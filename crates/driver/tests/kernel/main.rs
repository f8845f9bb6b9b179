//! The data path with the real kernel: TCP between two hosts in network namespaces, over the path.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test: what is skipped is printed, what fails may panic"
)]

mod frames;
mod lab;
mod nodes;
mod traffic;

use bentpipe_base::{Rate, Size};
use bentpipe_gateway::{Config, Gateway};
use lab::{Door, Lab, at, ip};
use nodes::{Holder, Meddler};
use std::net::UdpSocket;
use std::process::Command;
use std::time::Duration;

const MEMORY: Size = Size(64 << 20);

/// Creates a lab, or prints why that is not possible.
fn lab(test: &str, door: Door) -> Option<Lab> {
    Lab::new(door).inspect_err(|why| println!("SKIPPED {test}: {why}")).ok()
}

/// A gateway that passes everything.
fn gateway() -> Gateway {
    Gateway::new(Config { accelerate: false, ..Config::default() })
}

/// A gateway that accelerates, for a hop of this rate or of an unknown one.
fn accelerating(mbps: Option<u64>) -> Gateway {
    Gateway::new(Config { rate: mbps.and_then(|m| Rate::from_bps(m * 1_000_000)), ..Config::default() })
}

#[test]
fn a_hundred_conversations_are_accelerated_intact() {
    let test = "a_hundred_conversations_are_accelerated_intact";
    let Some(lab) = lab(test, Door::Veth) else { return };
    for rate in [None, Some(500)] {
        let path = lab.start(accelerating(rate), MEMORY).unwrap();
        settings(&lab, |v6| traffic::conversations(&lab, v6, 14));
        let ended = path.end();
        let report = ended.node.lock().unwrap().report();
        println!("{test}, rate {rate:?}: {:?}", ended.counters);
        assert!(report.counters.accelerated >= 112, "{:?}", report.counters);
        assert_eq!(report.held.0, 0, "nothing is kept");
    }
}

/// Runs `each` with and without timestamps and SACK, over IPv4 and IPv6.
fn settings(lab: &Lab, each: impl Fn(bool)) {
    for (timestamps, sack) in [("1", "1"), ("0", "1"), ("1", "0"), ("0", "0")] {
        lab.set("net/ipv4/tcp_timestamps", timestamps);
        lab.set("net/ipv4/tcp_sack", sack);
        [false, true].into_iter().for_each(&each);
    }
}

#[test]
fn a_hundred_conversations_pass_intact() {
    let test = "a_hundred_conversations_pass_intact";
    let Some(lab) = lab(test, Door::Veth) else { return };
    for offloads in [true, false] {
        if !lab.offloads(offloads) && !offloads {
            println!("SKIPPED {test} with offloads off: no ethtool, or it cannot");
            continue;
        }
        let path = lab.start(gateway(), MEMORY).unwrap();
        settings(&lab, |v6| traffic::conversations(&lab, v6, 14));
        let counters = path.end().counters;
        println!("{test}, offloads {offloads}: {counters:?}");
        assert_eq!(
            counters.ports.iter().map(|p| p.sent).sum::<u64>(),
            counters.untouched,
            "all as they came"
        );
        assert_eq!(
            counters.other.iter().sum::<u64>() - counters.other[1],
            0,
            "all TCP is read: {counters:?}"
        );
    }
}

#[test]
fn what_a_node_changes_keeps_every_byte() {
    let test = "what_a_node_changes_keeps_every_byte";
    let Some(lab) = lab(test, Door::Veth) else { return };
    for offloads in [true, false] {
        if !lab.offloads(offloads) && !offloads {
            println!("SKIPPED {test} with offloads off: no ethtool, or it cannot");
            continue;
        }
        let path = lab.start(Meddler::default(), MEMORY).unwrap();
        settings(&lab, |v6| traffic::conversations(&lab, v6, 14));
        for v6 in [false, true] {
            traffic::refusals(&lab, v6);
        }
        let outcome = path.end();
        println!(
            "{test}, offloads {offloads}: {:?} {:?}",
            outcome.counters,
            outcome.node.lock().unwrap().did
        );
        assert!(
            outcome.node.lock().unwrap().did.iter().all(|n| *n > 0),
            "{:?}",
            outcome.node.lock().unwrap().did
        );
        assert_eq!(outcome.counters.options_short, 0);
    }
}

#[test]
fn what_is_not_tcp_gets_through() {
    let test = "what_is_not_tcp_gets_through";
    let Some(lab) = lab(test, Door::Veth) else { return };
    let path = lab.start(gateway(), MEMORY).unwrap();
    for v6 in [false, true] {
        traffic::datagrams(&lab, v6);
        traffic::refusals(&lab, v6);
        let to = at(1, v6, 0).ip();
        match lab.at(0, || Command::new("ping").args(["-c3", "-i0.2", "-s3000"]).arg(to.to_string()).output())
        {
            Err(e) => println!("SKIPPED {test}, pings: no program ping: {e}"),
            Ok(out) => assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout)),
        }
    }
    let counters = path.end().counters;
    assert!(counters.other[1] > 0 && counters.other[2] > 0, "{counters:?}");
}

/// An ICMP "packet too big" from behind the gateway reaches the sender.
#[test]
fn a_smaller_mtu_behind_the_gateway_is_heard_of() {
    let test = "a_smaller_mtu_behind_the_gateway_is_heard_of";
    let Some(lab) = lab(test, Door::Veth) else { return };
    let path = lab.start(gateway(), MEMORY).unwrap();
    lab.at(1, || {
        ip("link add d0 mtu 1280 type veth peer name d1").unwrap();
        ip("link set d0 up").unwrap();
        ip("link set d1 up").unwrap();
        ip("addr add 10.66.0.1/24 dev d0").unwrap();
    });
    lab.set("net/ipv4/ip_forward", "1");
    let socket = lab.at(0, || UdpSocket::bind(at(0, false, 5004))).unwrap();
    socket.connect("10.66.0.9:9").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    socket.send(&[0; 1400]).unwrap();
    let _ = socket.recv(&mut [0; 10]); // time for the ICMP message
    let route = lab.at(0, || Command::new("ip").args(["route", "get", "10.66.0.9"]).output()).unwrap();
    let route = String::from_utf8_lossy(&route.stdout).into_owned();
    assert!(route.contains("mtu 1280"), "{route}");
    path.end();
}

#[test]
fn a_bump_in_the_wire_is_one_wire() {
    let test = "a_bump_in_the_wire_is_one_wire";
    let Some(lab) = lab(test, Door::Inline) else { return };
    let path = lab.start(gateway(), MEMORY).unwrap();
    for v6 in [false, true] {
        traffic::conversations(&lab, v6, 14);
        traffic::datagrams(&lab, v6);
        traffic::refusals(&lab, v6);
    }
    let counters = path.end().counters;
    println!("{test}: {counters:?}");
    assert!(counters.other[0] > 0, "ARP passes too: {counters:?}");
    assert_eq!(counters.ports.iter().map(|p| p.sent).sum::<u64>(), counters.untouched, "all as they came");
    let path = lab.start(Meddler::default(), MEMORY).unwrap();
    for v6 in [false, true] {
        traffic::conversations(&lab, v6, 14);
    }
    path.end();
}

#[test]
fn frames_keep_their_tags_and_sessions() {
    let Some(lab) = lab("frames_keep_their_tags_and_sessions", Door::Inline) else { return };
    for changes in [false, true] {
        if changes {
            let path = lab.start(Meddler::default(), MEMORY).unwrap();
            frames::pass(&lab, changes);
            path.end();
        } else {
            let path = lab.start(gateway(), MEMORY).unwrap();
            frames::pass(&lab, changes);
            path.end();
        }
    }
}

#[test]
fn the_same_over_tun() {
    let test = "the_same_over_tun";
    let Some(lab) = lab(test, Door::Tun) else { return };
    let path = match lab.start(Meddler::default(), MEMORY) {
        Ok(path) => path,
        Err(why) => return println!("SKIPPED {test}: {why}"),
    };
    settings(&lab, |v6| traffic::conversations(&lab, v6, 7));
    for v6 in [false, true] {
        traffic::datagrams(&lab, v6);
    }
    path.end();
}

#[test]
fn what_finds_no_room_passes_around_the_node() {
    let test = "what_finds_no_room_passes_around_the_node";
    let Some(lab) = lab(test, Door::Veth) else { return };
    let path = lab.start(Holder::default(), Size::ZERO).unwrap();
    traffic::conversations(&lab, false, 14);
    traffic::datagrams(&lab, false);
    let counters = path.end().counters;
    assert_eq!(counters.store_full, counters.ports.iter().map(|p| p.received).sum::<u64>(), "{counters:?}");
}

#[test]
fn a_planned_stop_lets_out_what_is_held() {
    let Some(lab) = lab("a_planned_stop_lets_out_what_is_held", Door::Veth) else { return };
    let path = lab.start(Holder::default(), MEMORY).unwrap();
    let bound = |host| lab.at(host, || UdpSocket::bind(at(host, false, 5002))).unwrap();
    let (near, far) = (bound(0), bound(1));
    far.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    for i in 0..20 {
        near.send_to(&[i], at(1, false, 5002)).unwrap();
    }
    assert!(far.recv(&mut [0]).is_err(), "held");
    path.end();
    for i in 0..20 {
        let mut byte = [99];
        far.recv(&mut byte).unwrap();
        assert_eq!(byte, [i]);
    }
}

/// The same as root of a user namespace: runs this test program again as an unprivileged user.
#[test]
fn an_ordinary_user_can_do_this_too() {
    ::lab::once::run_as_unprivileged_user(
        "an_ordinary_user_can_do_this_too",
        &["what_is_not_tcp_gets_through", "--exact", "--nocapture"],
    );
}
