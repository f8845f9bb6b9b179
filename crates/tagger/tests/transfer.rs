//! Transfers between two hosts whose TCP does not signal, through two taggers and a flow router.

#[path = "rig/net.rs"]
mod net;
mod rig;

use bentpipe_base::{Dscp, Duration, Flags, Instant, Node, Packet, Rate, Seq};
use net::Net;
use rig::{BOTH, mbps};

fn s(s: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(s)
}

fn pass(_: Instant, _: usize, _: &mut Packet) -> bool {
    true
}

/// A number that looks random.
fn noise(i: &mut u64) -> u64 {
    *i += 1;
    bentpipe_base::mix(*i) % 100
}

/// The rates that side 0 was told.
fn told(net: &Net<'_>) -> Vec<Option<Rate>> {
    net.news[0].iter().map(|news| news.rate).collect()
}

/// Transfers `bytes` in both directions within a minute.
fn transfer(net: &mut Net<'_>, bytes: u64) {
    net.backlog = bytes;
    net.with(0, |end| end.write(bytes));
    net.run(s(60));
    assert!(net.is_open(1), "no connection");
    for side in 0..2 {
        assert_eq!(net.with(side, |end| end.received()), bytes, "side {side}");
    }
}

#[test]
fn bytes_are_exact_and_the_rate_is_granted_before_data() {
    for ip in BOTH {
        let mut net = Net::new(ip, mbps(20), [true, true], pass);
        transfer(&mut net, 6_000_000);
        let news = net.news[0][0];
        assert_eq!((news.flow, news.rate), (net.key(0), Some(mbps(19))));
        assert!((40.0..42.0).contains(&news.srtt.as_millis_f64()), "{:?}", news.srtt);
        assert_eq!(net.news[1], [], "the other side did not ask");
        let mut requests = 0;
        net.router.counters(&mut |key, n| requests += if key == "requests" { n } else { 0 });
        assert!(requests > 10, "{requests}: it asked for more every 128 packets");
    }
}

#[test]
fn a_lower_rate_of_the_link_reaches_the_host() {
    for ip in BOTH {
        let mut net = Net::new(ip, mbps(20), [true, true], pass);
        net.backlog = 0;
        net.with(0, |end| end.write(20_000_000));
        net.run(s(2));
        net.set_rate(mbps(5));
        net.run(s(3));
        let rates = told(&net);
        net.router.counters(&mut |key, n| println!("{key} {n}"));
        println!(
            "{rates:?} {} {:?}",
            net.with(1, |end| end.received()),
            net.with(0, |end| (end.cwnd(), end.path().srtt))
        );
        assert_eq!(
            (rates[0], rates.last()),
            (Some(mbps(19)), Some(&Some(Rate::from_bps(4_744_000).unwrap())))
        );
        net.set_rate(mbps(20));
        net.run(s(60));
        assert_eq!(net.with(1, |end| end.received()), 20_000_000);
        assert_eq!(told(&net).last(), Some(&Some(mbps(19))), "it asked for more");
    }
}

#[test]
fn losses_of_any_packet_are_survived() {
    for ip in BOTH {
        let mut i = 0;
        let path = move |_: Instant, _: usize, _: &mut Packet| noise(&mut i) >= 5;
        let mut net = Net::new(ip, mbps(20), [true, true], path);
        transfer(&mut net, 1_000_000);
    }
}

#[test]
fn a_lost_syn_costs_the_request_a_round_trip() {
    for ip in BOTH {
        let path = |at: Instant, _: usize, packet: &mut Packet| {
            at > Instant::ZERO || !packet.tcp.flags.has(Flags::SYN)
        };
        let mut net = Net::new(ip, mbps(20), [true, true], path);
        transfer(&mut net, 1_000_000);
        assert_eq!(told(&net)[0], Some(mbps(19)));
    }
}

#[test]
fn a_peer_without_an_agent_gets_an_ordinary_connection() {
    for ip in BOTH {
        for tagged in [[true, false], [false, true]] {
            // such a kernel ignores the bytes after a SYN
            let drop = |_: Instant, side: usize, packet: &mut Packet| {
                if side == 0 && packet.tcp.flags.has(Flags::SYN) {
                    packet.signal = None;
                    packet.dscp = Dscp::DEFAULT;
                    packet.seal();
                }
                true
            };
            let mut net = Net::new(ip, mbps(20), tagged, drop);
            transfer(&mut net, 1_000_000);
            assert_eq!(told(&net), []);
        }
    }
}

#[test]
fn a_path_that_resets_code_points_gets_an_ordinary_connection() {
    for ip in BOTH {
        let bleach = |_: Instant, _: usize, packet: &mut Packet| {
            packet.dscp = Dscp::DEFAULT;
            true
        };
        // in IPv4 the receiver's kernel ignores what follows the SYN
        let lose_end = move |at: Instant, side: usize, packet: &mut Packet| {
            if packet.tcp.flags.has(Flags::SYN) {
                packet.signal = None;
                packet.seal();
            }
            bleach(at, side, packet)
        };
        let mut net = Net::new(ip, mbps(20), [true, true], lose_end);
        transfer(&mut net, 1_000_000);
        assert_eq!(told(&net), []);
    }
}

#[test]
fn a_path_that_resets_code_points_for_a_while_delays_data() {
    for ip in BOTH {
        let path = |at: Instant, _: usize, packet: &mut Packet| {
            if (s(1)..s(3)).contains(&at) {
                packet.dscp = Dscp::DEFAULT;
            }
            true
        };
        let mut net = Net::new(ip, mbps(20), [true, true], path);
        transfer(&mut net, 6_000_000);
    }
}

#[test]
fn a_peer_that_acknowledges_the_structure_is_reset_and_gets_every_byte() {
    for ip in BOTH {
        // the peer's SYN/ACK counts 16 bytes of data as long as its SYN had them
        let mut had = false;
        let path = move |_: Instant, side: usize, packet: &mut Packet| {
            let flags = packet.tcp.flags;
            if side == 0 && flags.has(Flags::SYN) {
                had = packet.signal.is_some();
                packet.signal = None;
                packet.dscp = Dscp::DEFAULT;
                packet.seal();
            }
            if side == 1 && flags.has(Flags::SYN) && had {
                packet.tcp.ack = Seq(packet.tcp.ack.0.wrapping_add(16));
            }
            true
        };
        let mut net = Net::new(ip, mbps(20), [true, false], path);
        net.backlog = 0;
        net.with(0, |end| end.write(500_000));
        net.run(s(1));
        // the RST ends what the peer had opened; its application never had it
        net.forget_peer();
        net.run(s(60));
        assert_eq!(net.with(1, |end| end.received()), 500_000);
        assert_eq!(told(&net), []);
    }
}

#[test]
fn a_router_that_has_nothing_refuses_and_the_host_goes_on() {
    for ip in BOTH {
        let mut net = Net::new(ip, Rate::from_bps(500).unwrap(), [true, true], pass);
        net.link_rate(mbps(20));
        net.backlog = 0;
        net.with(0, |end| end.write(300_000));
        net.run(s(60));
        assert_eq!(net.with(1, |end| end.received()), 300_000);
        assert_eq!(told(&net), []);
    }
}
