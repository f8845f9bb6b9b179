//! Tests the ports with the real kernel: two hosts in their own namespaces, the ports in a third, with a
//! simple relay between them.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test: what is skipped is printed, what fails may panic"
)]

mod lab;
mod traffic;

use bentpipe_os::{PacketPort, PortError, TunPort, VethPort, clock, namespace, port::MAX_SUPER};
use bentpipe_wire::offload::{VnetHeader, addresses};
use lab::{Door, Lab, MAC, Relay, Way, address, ip};
use std::io::IoSlice;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;

/// Returns a lab, or prints why this machine cannot have one.
fn lab(test: &str, door: Door) -> Option<Lab> {
    Lab::new(door).inspect_err(|why| println!("SKIPPED {test}: {why}")).ok()
}

fn pause(ms: u64) {
    let clock = bentpipe_os::Clock::start();
    let until = bentpipe_base::Instant(ms * 1_000_000);
    bentpipe_os::wait::wait(&[], Some(until), &clock, bentpipe_base::Duration::ZERO).unwrap();
}

fn everything_is_intact(lab: &Lab, test: &str, bytes: usize) {
    for way in [Way::Whole, Way::Cut, Way::Joined, Way::Finished] {
        for offloads in [true, false] {
            if !lab.offloads(offloads) && !offloads {
                println!("SKIPPED {test} with offloads off: no ethtool, or it cannot");
                continue;
            }
            for v6 in [false, true] {
                let relay = match Relay::start(lab, way) {
                    Ok(relay) => relay,
                    Err(why) => return println!("SKIPPED {test}: {why}"),
                };
                traffic::tcp(lab, v6, bytes);
                traffic::udp(lab, v6, false, bytes);
                if offloads {
                    traffic::udp(lab, v6, true, bytes);
                }
                let counts = relay.end();
                let n = |c: &std::sync::atomic::AtomicU64| c.load(Ordering::Relaxed);
                println!("{test} {way:?} offloads {offloads} v6 {v6}: {counts:?}");
                assert_eq!(n(&counts.send_lost), 0);
                assert_eq!(n(&counts.partial) > 0, offloads, "checksums left to us");
                assert_eq!(n(&counts.packets) > n(&counts.supers), offloads, "cutting left to us");
            }
        }
    }
}

#[test]
fn traffic_over_veth_is_intact() {
    let Some(lab) = lab("traffic_over_veth_is_intact", Door::Veth) else { return };
    everything_is_intact(&lab, "traffic_over_veth_is_intact", traffic::BYTES);
}

/// An interface that cannot cut super-packets itself has the kernel cut them.
#[test]
fn super_packets_leave_by_an_interface_without_offloads() {
    let test = "super_packets_leave_by_an_interface_without_offloads";
    let Some(lab) = lab(test, Door::Veth) else { return };
    if !lab.our_offloads(false) {
        return println!("SKIPPED {test}: no ethtool, or it cannot");
    }
    for v6 in [false, true] {
        let relay = match Relay::start(&lab, Way::Whole) {
            Ok(relay) => relay,
            Err(why) => return println!("SKIPPED {test}: {why}"),
        };
        traffic::tcp(&lab, v6, traffic::BYTES);
        traffic::udp(&lab, v6, true, traffic::BYTES);
        let counts = relay.end();
        assert!(counts.packets.load(Ordering::Relaxed) > counts.supers.load(Ordering::Relaxed));
        assert_eq!(counts.send_lost.load(Ordering::Relaxed), 0);
    }
}

/// A new TUN interface for each relay, since a new one has all offloads enabled.
#[test]
fn traffic_over_tun_is_intact() {
    for way in [Way::Whole, Way::Cut, Way::Joined, Way::Finished] {
        for offloads in [true, false] {
            let Some(lab) = lab("traffic_over_tun_is_intact", Door::Tun) else { return };
            let relay = match Relay::start(&lab, way) {
                Ok(relay) => relay,
                Err(why) => return println!("SKIPPED traffic_over_tun_is_intact: {why}"),
            };
            if !offloads && !lab.offloads(false) {
                println!("SKIPPED traffic_over_tun_is_intact with offloads off: no ethtool, or it cannot");
                continue;
            }
            for v6 in [false, true] {
                traffic::tcp(&lab, v6, traffic::BYTES);
                traffic::udp(&lab, v6, offloads, traffic::BYTES);
            }
            println!("tun {way:?} offloads {offloads}: {:?}", relay.end());
        }
    }
}

/// The same as root of a user namespace only: runs this test program again as a user without any permission.
#[test]
fn an_ordinary_user_has_ports_too() {
    ::lab::once::run_as_unprivileged_user(
        "an_ordinary_user_has_ports_too",
        &["traffic_over_veth_is_intact", "--exact", "--nocapture"],
    );
}

/// One port, and a socket in its host that sends to an address where nobody listens.
fn port_and_sender(lab: &Lab) -> (VethPort, UdpSocket) {
    let port = namespace::in_network(&lab.middle, || VethPort::open("p0", MAC)).unwrap().unwrap();
    let sender = lab.at(0, || UdpSocket::bind(SocketAddr::new(address(0, false), 6000))).unwrap();
    sender.connect(SocketAddr::new(address(1, false), 6001)).unwrap();
    (port, sender)
}

#[test]
fn the_time_of_a_packet_is_when_the_kernel_had_it() {
    let Some(lab) = lab("the_time_of_a_packet_is_when_the_kernel_had_it", Door::Veth) else { return };
    let (mut port, sender) = port_and_sender(&lab);
    let mut buffer = vec![0; MAX_SUPER];
    let mut last = 0;
    for _ in 0..5 {
        let before = clock::monotonic();
        sender.send(b"now").unwrap();
        let after = clock::monotonic();
        pause(30);
        let got = port.receive(&mut buffer).unwrap().expect("a packet");
        // measuring the difference of the clocks takes a few microseconds
        assert!(got.at + 20_000 > before && got.at < after + 20_000, "{} {before} {after}", got.at);
        assert!(got.at >= last);
        last = got.at;
        assert_eq!(port.receive(&mut buffer).unwrap().map(|r| r.at), None);
    }
    assert_eq!(addresses(&buffer).unwrap(), (address(0, false), address(1, false)));
    assert_eq!(buffer[20..24], [6000u16.to_be_bytes(), 6001u16.to_be_bytes()].concat());
}

#[test]
fn every_frame_is_read_counted_or_not_ip() {
    let Some(lab) = lab("every_frame_is_read_counted_or_not_ip", Door::Veth) else { return };
    let (mut port, sender) = port_and_sender(&lab);
    let queue = rustix::net::sockopt::socket_recv_buffer_size(port.fd()).unwrap();
    let sent = queue / 500 + 2000; // each counts as more than 500 bytes
    for _ in 0..sent {
        sender.send(&[0; 10]).unwrap();
    }
    let mut buffer = vec![0; MAX_SUPER];
    let mut read = 0;
    while let Some(got) = port.receive(&mut buffer).unwrap() {
        assert_eq!(got.len, 38);
        read += 1;
    }
    let drops = port.drops().unwrap();
    assert!(drops.receive > 0, "{drops:?}");
    assert_eq!(read + drops.receive, sent as u64, "{drops:?}");
    assert_eq!(port.drops().unwrap(), drops, "each loss is counted once");
    // an interface with ARP enabled: the port must skip ARP frames
    lab.at(0, || ip("link set bent0 arp on").and_then(|()| ip("neigh flush dev bent0"))).unwrap();
    let _ = sender.send(b"who has");
    pause(20);
    assert!(port.receive(&mut buffer).unwrap().is_none());
    assert!(port.drops().unwrap().not_ip > 0);
    assert!(port.drops().unwrap().not_ip < 10);
}

#[test]
fn an_interface_that_is_down_loses_and_one_that_is_gone_is_an_error() {
    let Some(lab) = lab("an_interface_that_is_down_loses_and_one_that_is_gone_is_an_error", Door::Veth)
    else {
        return;
    };
    let (mut port, sender) = port_and_sender(&lab);
    let middle = |arguments: &str| namespace::in_network(&lab.middle, || ip(arguments)).unwrap().unwrap();
    let mut buffer = vec![0; MAX_SUPER];
    sender.send(b"up").unwrap();
    let got = port.receive(&mut buffer).unwrap().expect("a packet");
    let packet = buffer[..got.len].to_vec();
    let packet = [IoSlice::new(&packet)];
    assert!(port.send(&got.vnet, &packet).unwrap());
    assert!(port.send(&VnetHeader::default(), &[]).unwrap(), "nothing to send is no loss");
    assert!(port.send(&VnetHeader::default(), &[IoSlice::new(&[0, 1])]).is_err());
    middle("link set p0 down");
    assert!(!port.send(&got.vnet, &packet).unwrap());
    assert!(port.receive(&mut buffer).unwrap().is_none());
    middle("link set p0 up");
    assert!(port.send(&got.vnet, &packet).unwrap());
    sender.send(b"up again").unwrap();
    assert_eq!(port.receive(&mut buffer).unwrap().map(|r| r.len), Some(36));
    lab.at(0, || ip("link set bent0 down")).unwrap();
    assert!(!port.send(&got.vnet, &packet).unwrap(), "the other end is down");
    assert_eq!(port.drops().unwrap().send, 2);
    middle("link del p0");
    assert!(port.receive(&mut buffer).is_err());
    assert!(port.send(&got.vnet, &packet).is_err());
}

#[test]
fn a_port_that_cannot_be_says_why() {
    let Some(lab) = lab("a_port_that_cannot_be_says_why", Door::Veth) else { return };
    let none = namespace::in_network(&lab.middle, || VethPort::open("p9", MAC)).unwrap().unwrap_err();
    assert_eq!(none.to_string(), "there is no interface \"p9\" in this network namespace");
    match namespace::in_network(&lab.middle, || TunPort::create("p0")).unwrap().unwrap_err() {
        PortError::Taken(name) => assert_eq!(name, "p0"),
        e @ (PortError::NoTun | PortError::TunNotAllowed) => {
            println!("SKIPPED a_port_that_cannot_be_says_why, the half about TUN: {e}");
        }
        e => panic!("{e}"),
    }
}
