//! The endpoint with the simulator's own host, both on one network: at the port the host's packets get bytes
//! (zeros), and the endpoint's lose theirs.

use crate::duel::{End, FAIR, addresses};
use bentpipe_base::{Addr, Body, Duration, Instant, Pkt, Purpose, Size};
use bentpipe_link::{Capacity, Channel, Discipline, Link, Queue};
use bentpipe_live::endpoint::{Settings, SocketEvent};
use bentpipe_nodes::{Host, Listener, Reader, Writer};
use bentpipe_sim::Simulation;
use bentpipe_tcp::Config;
use bentpipe_wire::offload::VnetHeader;
use bentpipe_wire::{AddressPair, Segment, emit, parse};
use core::net::{IpAddr, SocketAddr};
use std::sync::Arc;

const HOST: Addr = Addr(9);

fn to_bytes(packet: &Pkt) -> Vec<u8> {
    let [IpAddr::V4(dst), _] = addresses(0) else { unreachable!() };
    let [IpAddr::V4(src), _] = addresses(1) else { unreachable!() };
    let payload = vec![0; packet.body.len as usize];
    let segment = Segment {
        ends: AddressPair::V4 { src, dst },
        sport: packet.sport,
        dport: packet.dport,
        hops: packet.hops,
        dscp: packet.dscp,
        ecn: packet.ecn,
        tcp: packet.tcp.clone(),
        payload: &payload,
    };
    let mut bytes = Vec::new();
    emit(&segment, &mut bytes).unwrap();
    bytes
}

fn to_packet(bytes: &[u8]) -> Pkt {
    let segment = parse(bytes).unwrap();
    let mut packet = Pkt::default();
    (packet.src, packet.sport, packet.dst, packet.dport) = (Addr(1), segment.sport, HOST, segment.dport);
    (packet.hops, packet.ecn, packet.tcp) = (segment.hops, segment.ecn, segment.tcp);
    packet.body = Body { off: 0, len: segment.payload.len() as u32 };
    packet.seal();
    packet
}

#[test]
fn the_simulators_host_and_the_endpoint_understand_each_other() {
    let mut sim = Simulation::new(1);
    let isn = sim.world.open_rng("host", Purpose::Isn);
    let mut host = Host::new(HOST, isn, None);
    let config = Arc::new(Config::default());
    host.listen(80, Listener { config, writer: Writer::Transfer(500_000), reader: Reader::Eager });
    let (host, port) = (sim.add_host(host), sim.add_open_end());
    for (from, to) in [(host, port), (port, host)] {
        let queue = Queue::new(Capacity::Bytes(Size(1 << 20)), Discipline::Fifo, 0);
        let link = sim.add_link(Link::new(queue, Channel::new(FAIR.rate, FAIR.one_way, Size::ZERO, None)));
        sim.wire(from, link);
        sim.wire(link, to);
    }
    let mut end = End::new(1, Settings { addresses: addresses(0).to_vec(), ..Settings::default() });
    let to = SocketAddr::new(addresses(1)[0], 80);
    let id = end.with(Instant::ZERO, |e, cx| e.connect(cx, to, &Config::default())).unwrap();
    assert_eq!(end.endpoint.write(id, &vec![0; 300_000]), Ok(300_000));
    end.endpoint.shutdown(id).unwrap();
    let (mut heard, mut buffer, mut now) = (0, [0; 9000], Instant::ZERO);
    while !matches!(end.endpoint.read(now, id, &mut buffer), Ok(0)) {
        let mut out = Vec::new();
        end.with(now, bentpipe_live::endpoint::Endpoint::timer);
        while end.with(now, |e, cx| e.next_packet(cx, &mut out)) {
            sim.inject(port, to_packet(&out));
        }
        now = sim.next_at().unwrap_or(Instant::NEVER).min(end.endpoint.next_at());
        assert!(now < Instant::ZERO + Duration::from_secs(20), "it takes too long");
        sim.run_until(now, |_| false);
        while let Some((_, _, packet)) = sim.take_arrived() {
            end.with(now, |e, cx| e.packet(cx, &to_bytes(&packet), &VnetHeader::default()));
        }
        while let Ok(len @ 1..) = end.endpoint.read(now, id, &mut buffer) {
            assert!(buffer[..len].iter().all(|b| *b == 0));
            heard += len;
        }
    }
    assert_eq!(heard, 500_000);
    let host = sim.peek_host(host).unwrap();
    let port = end.endpoint.addresses(id).unwrap().0.port();
    assert_eq!(host.end(80, (Addr(1), port)).unwrap().conn.received(), 300_000);
    assert!(std::iter::from_fn(|| end.endpoint.next_event()).any(|n| n == (id, SocketEvent::Delivered)));
}
