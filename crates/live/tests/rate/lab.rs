//! Two endpoints and the relay of a scenario between them.

use bentpipe_advice::tia1039::{QOS_SIGNAL, Structure, at_end};
use bentpipe_base::{Dscp, Duration, Flags, Instant, NodeId, Rate, Seq, TcpHeader, World, mix};
use bentpipe_driver::{Hosts, LiveNetwork};
use bentpipe_live::control::replay_change;
use bentpipe_live::endpoint::{ConnId, Endpoint, Settings, SocketEvent};
use bentpipe_live::relay::{Names, network};
use bentpipe_report::FlowRouterReport;
use bentpipe_scenario::{Scenario, Source, host_addresses, load};
use bentpipe_sim::report::flow_router_reports;
use bentpipe_tcp::Connection;
use bentpipe_wire::offload::{HEADER_SPACE, SuperPacket, VnetHeader, complete, emit_super_packet};
use bentpipe_wire::{AddressPair, Layout, OptionKind, Options, Segment, Sum, hop_by_hop, parse};
use core::net::SocketAddr;
use std::collections::BTreeMap;

pub(crate) const LEFT: usize = 0;
pub(crate) const RIGHT: usize = 1;
const PORT: u16 = 80;

pub(crate) fn scenario(text: &str) -> Scenario {
    load(&Source::new("test", text), &[], None).unwrap_or_else(|d| panic!("{d}"))
}

/// The structure of a packet, if it has one.
pub(crate) fn rule(bytes: &[u8]) -> Option<Structure> {
    if let Some(header) = hop_by_hop(bytes) {
        return Some(Structure::from_bytes(*header.first_chunk()?));
    }
    let payload = parse(bytes).ok()?.payload;
    let last = payload.last_chunk().filter(|_| at_end(Flags::ACK, payload) > 0)?;
    Some(Structure::from_bytes(*last))
}

/// A super-packet of `n` data packets from the first host, each of which ends with a structure.
pub(crate) fn signalling_super_packet(n: usize) -> (Vec<u8>, VnetHeader) {
    let one = *Structure::request(Rate::from_bps(64_000).unwrap()).bytes();
    let data: Vec<u8> =
        (0..n).flat_map(|i| [vec![i as u8; 1000 - one.len()], one.to_vec()].concat()).collect();
    let ends = AddressPair::V4 { src: [10, 55, 0, 1].into(), dst: [10, 55, 0, 2].into() };
    let tcp = TcpHeader { seq: Seq(77), flags: Flags::ACK, window: 9, ..TcpHeader::default() };
    let (dscp, ecn) = (QOS_SIGNAL, bentpipe_base::Ecn::NotEct);
    let whole = Segment { ends, sport: 1, dport: 2, hops: 64, dscp, ecn, tcp, payload: &[] };
    let mut bytes = Vec::new();
    let vnet = emit_super_packet(&whole, data.len(), 1000, &mut bytes).unwrap();
    bytes.extend(data);
    (bytes, vnet)
}

/// Sets the DSCP of an IPv4 packet.
fn rewrite(bytes: &mut [u8], dscp: Dscp) {
    bytes[1] = dscp.get() << 2 | bytes[1] & 3;
    bytes[10..12].fill(0);
    let sum = Sum::of(&bytes[..20]).finish();
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// True for a packet with options in its IP header, or with experimental ones in its TCP header.
fn has_rare_options(bytes: &[u8]) -> bool {
    let layout = Layout::of(bytes).unwrap();
    let plain = if bytes[0] >> 4 == 4 { 20 } else { 40 };
    let mut options = Options::new(&bytes[layout.options]);
    layout.network.transport > plain || options.any(|o| o.unwrap().kind() == OptionKind::EXPERIMENT)
}

/// Fields of the packets that match a filter, as tshark reads them, a line for each packet; `None` without
/// tshark. `name`: of the capture.
pub(crate) fn tshark(
    name: &str,
    packets: &[(usize, Vec<u8>)],
    filter: &str,
    fields: &[&str],
) -> Option<Vec<String>> {
    // libpcap's format of 1998, with packets from the IP header on (101)
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4u32, 2 | 4 << 16, 0, 0, 65_535, 101] {
        file.extend(word.to_ne_bytes());
    }
    for (at, (_, bytes)) in (0u32..).zip(packets) {
        for word in [at, 0, bytes.len() as u32, bytes.len() as u32] {
            file.extend(word.to_ne_bytes());
        }
        file.extend(bytes);
    }
    let path = std::env::temp_dir().join(format!("bentpipe-{}-{name}.pcap", std::process::id()));
    std::fs::write(&path, file).unwrap();
    let checks = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-T", "fields", "-Y"];
    let fields = fields.iter().flat_map(|field| ["-e", *field]);
    let mut command = std::process::Command::new("tshark");
    let output = command.args(checks).arg(filter).args(fields).arg("-r").arg(&path).output();
    let _ = std::fs::remove_file(&path);
    let output = output.ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

struct End {
    world: World,
    endpoint: Endpoint,
}

pub(crate) struct Lab {
    pub(crate) now: Instant,
    net: LiveNetwork,
    names: Names,
    ends: [End; 2],
    scenario: Scenario,
    v6: bool,
    /// What all streams consist of, again and again.
    pub(crate) says: Vec<u8>,
    /// Bytes to write, and written, on each connection of the left end.
    to_say: BTreeMap<ConnId, (u64, u64)>,
    /// Bytes read on each connection of the right end.
    read: BTreeMap<ConnId, u64>,
    /// Bytes read on all.
    pub(crate) heard: u64,
    /// Wire packets that arrived at an end.
    pub(crate) seen: Vec<(usize, Vec<u8>)>,
    /// From when on the path sets this DSCP, behind all routers.
    pub(crate) rewrites: Option<(Duration, Dscp)>,
    /// Of so many units that arrive one is lost, in the mean.
    pub(crate) loses_every: Option<u64>,
    arrived: u64,
    /// The path loses packets with options that not everybody knows.
    pub(crate) drops_options: bool,
    /// SYNs that it has lost for that.
    pub(crate) lost_syns: usize,
}

impl Lab {
    pub(crate) fn new(scenario: &Scenario, v6: bool) -> Self {
        let address = |side: u16| host_addresses(0, side)[usize::from(v6)];
        let (net, names) = network(scenario, Hosts::new([(0, address(0)), (1, address(1))], None));
        let ends = [0, 1].map(|side| {
            let mut world = World::new(u64::from(side) + 7);
            let settings = Settings { addresses: vec![address(side)], ..Settings::default() };
            End { endpoint: Endpoint::new(&mut world, "end", settings), world }
        });
        let mut lab = Self {
            now: Instant::ZERO,
            net,
            names,
            ends,
            scenario: scenario.clone(),
            v6,
            says: (0..251).collect(),
            to_say: BTreeMap::new(),
            read: BTreeMap::new(),
            heard: 0,
            seen: Vec::new(),
            rewrites: None,
            loses_every: None,
            arrived: 0,
            drops_options: false,
            lost_syns: 0,
        };
        let receiver = lab.scenario.flows[0].receiver.clone();
        lab.ends[RIGHT].endpoint.listen(PORT, &receiver, 16).unwrap();
        lab
    }

    /// Opens a connection that sends `bytes` and closes.
    pub(crate) fn talk(&mut self, bytes: u64) {
        let to = SocketAddr::new(host_addresses(0, 1)[usize::from(self.v6)], PORT);
        let config = self.scenario.flows[0].sender.clone();
        let End { world, endpoint } = &mut self.ends[LEFT];
        let id = endpoint.connect(&mut world.cx(self.now, NodeId(0)), to, &config).unwrap();
        self.to_say.insert(id, (bytes, 0));
        self.say(id);
    }

    /// The first connection of the left end.
    pub(crate) fn sender(&self) -> &Connection {
        let id = *self.to_say.keys().next().unwrap();
        self.ends[LEFT].endpoint.connection(id).unwrap()
    }

    pub(crate) fn all_heard(&self) -> bool {
        self.heard == self.to_say.values().map(|(all, _)| all).sum::<u64>()
    }

    pub(crate) fn routers(&mut self) -> Vec<FlowRouterReport> {
        self.names.with(&mut self.net, |net| flow_router_reports(net))
    }

    pub(crate) fn set_link_rate(&mut self, rate: Option<Rate>) {
        let act = rate.map_or_else(
            || "\"reset\"".to_owned(),
            |rate| format!("{{\"set\":{{\"rate_bps\":{}}}}}", rate.bps()),
        );
        let change = format!("{{\"on\":[\"link\"],\"act\":{act}}}");
        replay_change(&change, &mut self.net, &self.names.links()).unwrap();
    }

    fn say(&mut self, id: ConnId) {
        let Some((all, said)) = self.to_say.get_mut(&id) else { return };
        while *said < *all {
            let at = (*said % self.says.len() as u64) as usize;
            let chunk = &self.says[at..self.says.len().min(at + (*all - *said) as usize)];
            match self.ends[LEFT].endpoint.write(id, chunk) {
                Ok(taken) => *said += taken as u64,
                Err(_) => return,
            }
        }
        let _ = self.ends[LEFT].endpoint.shutdown(id);
    }

    /// Reads all there is; every byte must be that of its position.
    fn hear(&mut self, id: ConnId) {
        let mut buffer = [0; 16_384];
        while let Ok(len @ 1..) = self.ends[RIGHT].endpoint.read(self.now, id, &mut buffer) {
            let at = self.read.entry(id).or_default();
            for byte in &buffer[..len] {
                assert_eq!(
                    *byte,
                    self.says[(*at % self.says.len() as u64) as usize],
                    "byte {at} of a stream"
                );
                *at += 1;
            }
            self.heard += len as u64;
        }
    }

    fn applications(&mut self) {
        while let Some((id, event)) = self.ends[LEFT].endpoint.next_event() {
            if matches!(event, SocketEvent::Connected | SocketEvent::Writable) {
                self.say(id);
            }
        }
        while let Some((id, event)) = self.ends[RIGHT].endpoint.next_event() {
            if event == SocketEvent::Calling {
                let id = self.ends[RIGHT].endpoint.accept(PORT).unwrap();
                self.hear(id);
            }
            self.hear(id);
        }
    }

    /// Handles everything that is due now.
    fn settle(&mut self) {
        self.net.advance(self.now);
        for _ in 0..3 {
            self.arrivals();
            for side in [LEFT, RIGHT] {
                let End { world, endpoint } = &mut self.ends[side];
                endpoint.timer(&mut world.cx(self.now, NodeId(0)));
            }
            self.applications();
            self.departures();
        }
    }

    fn departures(&mut self) {
        for side in [LEFT, RIGHT] {
            loop {
                let End { world, endpoint } = &mut self.ends[side];
                let bytes = |vnet: &VnetHeader, parts: &[std::io::IoSlice<'_>]| {
                    (*vnet, parts.iter().flat_map(|part| part.to_vec()).collect::<Vec<u8>>())
                };
                let sent = endpoint.next_super(&mut world.cx(self.now, NodeId(0)), bytes);
                let Some((vnet, bytes)) = sent else { break };
                assert!(self.net.store.borrow_mut().write(&bytes));
                self.net.advance(self.now);
                assert!(self.net.accept(side, bytes.len(), &vnet));
            }
        }
    }

    fn arrivals(&mut self) {
        while let Some(arrival) = self.net.take_arrival() {
            let side = arrival.port;
            let (vnet, mut bytes) = self.net.emit(&arrival, |emitted, header, payload| {
                (emitted.vnet, [header, payload, emitted.tail()].concat())
            });
            self.net.done(arrival);
            self.arrived += 1;
            if self.loses_every.is_some_and(|every| mix(self.arrived).is_multiple_of(every)) {
                continue;
            }
            if self.drops_options && has_rare_options(&bytes) {
                self.lost_syns += usize::from(parse(&bytes).unwrap().tcp.flags.has(Flags::SYN));
                continue;
            }
            if let Some((_, dscp)) = self.rewrites.filter(|(from, _)| self.now > Instant::ZERO + *from) {
                rewrite(&mut bytes, dscp);
            }
            for packet in wire_packets(&bytes, &vnet) {
                self.seen.push((side, packet));
            }
            let End { world, endpoint } = &mut self.ends[side];
            endpoint.packet(&mut world.cx(self.now, NodeId(0)), &bytes, &vnet);
        }
    }

    /// Sends a unit from the left host through the network; returns the wire packets that arrive.
    pub(crate) fn pass(&mut self, bytes: &[u8], vnet: &VnetHeader) -> Vec<Vec<u8>> {
        assert!(self.net.store.borrow_mut().write(bytes));
        assert!(self.net.accept(LEFT, bytes.len(), vnet));
        self.net.advance(Instant::ZERO + Duration::from_secs(1));
        let mut all = Vec::new();
        while let Some(arrival) = self.net.take_arrival() {
            let (vnet, bytes) = self.net.emit(&arrival, |emitted, header, payload| {
                (emitted.vnet, [header, payload, emitted.tail()].concat())
            });
            self.net.done(arrival);
            all.extend(wire_packets(&bytes, &vnet));
        }
        all
    }

    /// Runs until everything was heard, or fails after `limit`.
    pub(crate) fn run(&mut self, limit: Duration) {
        let end = self.now + limit;
        while !self.all_heard() {
            assert!(self.step(end), "{} of the bytes at {}", self.heard, self.now);
        }
    }

    /// Runs until `time`.
    pub(crate) fn run_until(&mut self, time: Duration) {
        while self.step(Instant::ZERO + time) {}
    }

    /// One step; false if the next event is later than `end`.
    fn step(&mut self, end: Instant) -> bool {
        self.settle();
        let ends = self.ends.iter().map(|end| end.endpoint.next_at()).min();
        let next = ends.into_iter().chain(self.net.network.next_at()).min().unwrap_or(Instant::NEVER);
        if next > end {
            self.now = end;
            return false;
        }
        self.now = next.max(self.now);
        true
    }
}

/// Cuts a unit into wire packets with complete checksums, and checks them.
fn wire_packets(bytes: &[u8], vnet: &VnetHeader) -> Vec<Vec<u8>> {
    let all = SuperPacket::parse(bytes, vnet).unwrap();
    let mut header = [0; HEADER_SPACE];
    (0..all.pieces())
        .map(|i| {
            let piece = all.piece(bytes, i..i + 1, &mut header);
            let mut packet = [&header[..piece.header_len], &bytes[piece.payload.clone()]].concat();
            complete(&mut packet, &piece.vnet);
            let layout = Layout::of(&packet).unwrap();
            assert_eq!(layout.sum(&packet).fold(), 0xffff, "the checksum holds");
            assert!(packet.len() <= 1500 && layout.network.end == packet.len());
            packet
        })
        .collect()
}
