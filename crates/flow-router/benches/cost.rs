//! What a flow router costs on one core: time per packet, and flows set up per second.
//!
//! Source of the question: Roberts, explicit-rate TCP, section IN-BAND: with X set-ups per second and a trunk
//! of Y bit/s, the processor is the limit if the mean flow is shorter than Y/X. That counts set-ups alone;
//! with p seconds per packet of b bits the limit is the length l for which s + p l/b = l/Y, s = 1/X:
//!   l = s / (1/Y - p/b)
//! Each time is the least of several runs, less that of a node that only forwards, so that making packets and
//! taking them out again does not count. Drivers cost more than this: they read and write the bytes.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and stops at what is wrong"
)]
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "it measures elapsed time")]

use bentpipe_advice::scone::{Advice, START, write as scone_packet};
use bentpipe_advice::tia1039::{Kind, QOS_FLOW, Structure, structures, write};
use bentpipe_base::{
    Addr, Body, Cx, Duration, Flags, Input, Instant, Node, NodeId, Packet, Port, Proto, Rate, Seq, Signal,
    World,
};
use bentpipe_flow_router::{FlowRouter, MANAGED, RouterConfig, SENDERS};
use std::time::Instant as Clock;

const RUNS: usize = 7;
/// Packets or set-ups of one run.
const COUNT: u32 = 200_000;
/// Payload of a data packet, and its length.
const PAYLOAD: u32 = 1448;
const PACKET: f64 = 1500.0;
/// Time between packets: the flows of a run are never silent for long enough to be forgotten.
const GAP: Duration = Duration(1000);

/// What all flows ask for together: eight times as much as they send.
const ALL_BPS: u64 = 100_000_000_000;

/// Forwards packets.
struct Wire;

impl Node for Wire {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input) {
        if let Input::Packet(port, packet) = input {
            cx.send(Port(1 - port.0), packet);
        }
    }
}

/// A node with two ports, and what surrounds it.
struct Rig<N> {
    node: N,
    world: World,
    now: Instant,
    /// What each flow asks for: enough that none is ever policed, and so little that all get it.
    ask: Rate,
}

impl<N: Node> Rig<N> {
    fn new(node: N, flows: u32) -> Self {
        let ask = Rate::from_bps(ALL_BPS / u64::from(flows)).unwrap();
        Self { node, world: World::new(1), now: Instant(1), ask }
    }

    /// Puts a packet in; calls `see` with what comes out.
    fn put<T>(&mut self, port: Port, packet: &Packet, see: impl FnOnce(&Packet) -> T) -> T {
        self.now += GAP;
        while let Some(wake) = self.world.events.pop_until(self.now) {
            self.node.handle(&mut self.world.cx(self.now, wake.node), Input::Timer(wake.slot));
        }
        let mut cx = self.world.cx(self.now, NodeId(0));
        let mut pkt = cx.packet();
        pkt.clone_from(&packet.clone().into());
        self.node.handle(&mut cx, Input::Packet(port, pkt));
        let (_, _, out) = self.world.outbox.pop_front().unwrap();
        let seen = see(&out);
        self.world.return_to_pool(out);
        seen
    }

    /// Opens a flow as far as its first data, as sender and receiver do.
    fn open(&mut self, flow: u32) {
        let mut syn = packet(flow, Flags::SYN, 0);
        write(&mut syn, &[Structure::request(self.ask)]);
        let mut response = self.put(SENDERS, &syn, |syn| structures(syn).as_slice()[0]);
        response.set_kind(Kind::Response);
        let mut answer = packet(flow, Flags::SYN.with(Flags::ACK), 0);
        (answer.src, answer.dst) = (answer.dst, answer.src);
        (answer.sport, answer.dport) = (answer.dport, answer.sport);
        write(&mut answer, &[response]);
        self.put(MANAGED, &answer, |_| ());
    }

    /// A whole flow without data: its handshake and its end.
    fn live(&mut self, flow: u32) {
        self.open(flow);
        let mut end = packet(flow, Flags::FIN.with(Flags::ACK), 0);
        end.dscp = QOS_FLOW;
        self.put(SENDERS, &end, |_| ());
    }
}

fn packet(flow: u32, flags: Flags, len: u32) -> Packet {
    let (src, dst) = (Addr(1 + flow / 1000), Addr(0));
    let (sport, dport) = (1000 + (flow % 1000) as u16, 443);
    let mut packet = Packet { src, dst, sport, dport, hops: 60, ..Packet::default() };
    packet.tcp.flags = flags;
    packet.tcp.seq = Seq(1);
    packet.body = Body { off: 0, len };
    packet.seal();
    packet
}

/// A datagram of QUIC that begins with a SCONE packet.
fn quic(flow: u32) -> Packet {
    let mut packet = packet(flow, Flags(0), PAYLOAD);
    packet.proto = Proto::Udp;
    let start = scone_packet(Advice::UNKNOWN, &[1; 8], &[]).unwrap();
    packet.signal = Signal::new(&start[..START]).map(Box::new);
    packet.seal();
    packet
}

/// Data of a flow with a rate.
fn data(flow: u32) -> Packet {
    Packet { dscp: QOS_FLOW, ..packet(flow, Flags::ACK, PAYLOAD) }
}

/// Nanoseconds per call of `act` with the numbers from 0 to `COUNT`: the least of several runs.
fn least(mut act: impl FnMut(u32)) -> f64 {
    let run = |_| {
        let start = Clock::now();
        (0..COUNT).for_each(&mut act);
        start.elapsed().as_secs_f64() * 1e9 / f64::from(COUNT)
    };
    (0..RUNS).map(run).fold(f64::INFINITY, f64::min)
}

/// A router with room for `flows` flows and as many that come and go; none is ever told of a lower rate.
fn router(flows: u32) -> Rig<FlowRouter> {
    let config = RouterConfig {
        flows: flows * 2 + 4 * COUNT,
        idle: Duration::from_secs(3600),
        ..RouterConfig::new(Rate::from_bps(ALL_BPS * 10).unwrap())
    };
    let mut rig = Rig::new(FlowRouter::new(config), flows);
    for flow in 0..flows {
        rig.open(flow);
        rig.put(SENDERS, &data(flow), |_| ());
    }
    rig
}

/// Prints the costs with `flows` flows; returns ns of a set-up and of a packet.
fn costs(flows: u32) -> (f64, f64) {
    let mut wire = Rig::new(Wire, flows);
    let bare = least(|n| wire.put(SENDERS, &data(n % flows), |_| ()));
    let signed = least(|n| wire.put(SENDERS, &quic(n % flows), |_| ()));
    let life = least(|n| wire.live(n));
    let mut rig = router(flows);
    // a step that shares no factor with the number of flows: neighbours in the table are not neighbours here
    let packet = least(|n| rig.put(SENDERS, &data(n.wrapping_mul(7919) % flows), |_| ())) - bare;
    let advice = least(|n| rig.put(SENDERS, &quic(n.wrapping_mul(7919) % flows), |_| ())) - signed;
    let mut next = flows;
    let set_up = least(|_| {
        next += 1;
        // ports and addresses come again, as those of short flows do
        rig.live(flows + next % (2 * COUNT));
    }) - life;
    println!("{flows:>8} {packet:>14.0} {advice:>15.0} {set_up:>12.0} {:>14.0}", 1e9 / set_up);
    (set_up, packet)
}

fn main() {
    println!("   flows   ns per packet   ns per advice   ns per flow   flows per s");
    let all = [1, 1000, 50_000].map(costs);
    let (set_up, packet) = all[2];
    println!("\nwith 50000 flows one core is the limit if the mean flow is shorter than");
    for gbps in [1.0, 10.0] {
        let (per_bit, packet_bits) = (1.0 / gbps, PACKET * 8.0);
        let alone = set_up / per_bit / 8.0;
        let rest = per_bit - packet / packet_bits;
        let all = if rest > 0.0 { format!("{:.0} B", set_up / rest / 8.0) } else { "any length".to_owned() };
        println!("  {gbps:>4} Gbit/s: {alone:.0} B for set-ups alone (Y/X), {all} with {PACKET} B packets");
    }
}
