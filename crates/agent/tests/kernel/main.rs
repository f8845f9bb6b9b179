//! The data path of method `kernel` in memory, between an end that knows nothing of signalling and one beside
//! another agent. In the place of the kernel's congestion control is a list of what it was told.

#![allow(clippy::unwrap_used, reason = "a test may say what it takes for granted")]

#[path = "../split/cut.rs"]
mod cut;
#[path = "../../../live/tests/endpoint/duel.rs"]
#[allow(dead_code, reason = "shared with other tests, which use more of it")]
mod duel;
#[path = "../../../live/tests/endpoint/path.rs"]
#[allow(dead_code, reason = "shared with other tests, which use more of it")]
mod path;
#[path = "../../../live/tests/endpoint/talk.rs"]
#[allow(dead_code, reason = "shared with other tests, which use more of it")]
mod talk;

use bentpipe_agent::kernel::{KernelPath, KernelView, Rates};
use bentpipe_agent::path::FlowFile;
use bentpipe_base::{Duration, Instant, NodeId};
use bentpipe_kernel_rate::{Grant, Tuple};
use bentpipe_live::endpoint::{ConnId, Settings, SocketEvent};
use bentpipe_os::clock::monotonic;
use bentpipe_os::port::{PortDrops, Received};
use bentpipe_os::{Clock, PacketPort};
use bentpipe_scenario::Source;
use bentpipe_scenario::agent_file::load;
use bentpipe_tcp::Config;
use bentpipe_wire::offload::VnetHeader;
use core::net::SocketAddr;
use duel::{End, LEFT, RIGHT, addresses};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

const RULE: &str = "port = 80\nask = \"50 Mbit/s\"\ntrust_path = true\nask_fallback = 0.2\n";

/// Packets on their way.
type Wire = Arc<Mutex<VecDeque<Vec<u8>>>>;

/// A port between two wires.
#[derive(Debug)]
struct MemoryPort {
    fd: File,
    from: Wire,
    to: Wire,
}

impl PacketPort for MemoryPort {
    fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        let Some(packet) = self.from.lock().unwrap().pop_front() else { return Ok(None) };
        buffer[..packet.len()].copy_from_slice(&packet);
        Ok(Some(Received { vnet: VnetHeader::default(), len: packet.len(), at: monotonic() }))
    }

    fn send(&mut self, vnet: &VnetHeader, parts: &[IoSlice<'_>]) -> io::Result<bool> {
        self.to.lock().unwrap().extend(cut::cut(vnet, parts));
        Ok(true)
    }

    fn drops(&mut self) -> io::Result<PortDrops> {
        Ok(PortDrops::default())
    }
}

/// A rate that the kernel was told, or none.
type News = (Tuple, Option<Grant>);

/// What the kernel was told, with the number of packets that its host had got until then.
#[derive(Clone, Debug, Default)]
struct Told(Arc<Mutex<Vec<News>>>);

impl Rates for Told {
    fn set(&mut self, tuple: &Tuple, grant: &Grant) -> bool {
        self.0.lock().unwrap().push((*tuple, Some(*grant)));
        true
    }

    fn forget(&mut self, tuple: &Tuple) {
        self.0.lock().unwrap().push((*tuple, None));
    }

    fn renew(&mut self) {}

    fn describe(&self, view: &mut KernelView) {
        "told".clone_into(&mut view.control);
    }
}

/// A host, its agent, and the file with its flows.
struct Seat {
    end: End,
    agent: KernelPath,
    told: Told,
    flows: PathBuf,
    /// From the host to the agent, and back.
    wires: [Wire; 2],
}

impl Seat {
    /// `out` and `back` are the wires of the network. The host's packets have at most `mtu` bytes.
    fn new((test, mtu): (&str, u16), side: usize, [out, back]: [&Wire; 2]) -> Self {
        let text = format!(
            "schema = 1\nmethod = \"kernel\"\n[deploy]\nkind = \"host\"\nnetwork = \"n\"\n[[rules]]\n{RULE}"
        );
        let file = Arc::new(load(&Source::new("agent.toml", text)).unwrap_or_else(|e| panic!("{e}")));
        let flows = format!("bentpipe-kernel-{test}-{side}-{}", std::process::id());
        let flows = std::env::temp_dir().join(flows);
        let wires = [Wire::default(), Wire::default()];
        let port = |from: &Wire, to: &Wire| -> Box<dyn PacketPort> {
            let fd = File::open("/dev/null").unwrap();
            Box::new(MemoryPort { fd, from: Arc::clone(from), to: Arc::clone(to) })
        };
        let ports = [port(&wires[0], &wires[1]), port(back, out)];
        let (told, log) = (Told::default(), FlowFile::create(&flows, 100).unwrap());
        let agent = KernelPath::new(ports, (file, 1500), Box::new(told.clone()), log, 7).unwrap();
        let settings = Settings { addresses: addresses(side).to_vec(), mtu, ..Settings::default() };
        Self { end: End::new(side as u64, settings), agent, told, flows, wires }
    }

    /// The host's turn, then the agent's.
    fn turn(&mut self, now: Instant) {
        let mut cx = self.end.world.cx(now, NodeId(0));
        while let Some(packet) = self.wires[1].lock().unwrap().pop_front() {
            self.end.endpoint.packet(&mut cx, &packet, &VnetHeader::default());
        }
        self.end.endpoint.timer(&mut cx);
        let mut packet = Vec::new();
        while self.end.endpoint.next_packet(&mut cx, &mut packet) {
            self.wires[0].lock().unwrap().push_back(packet.clone());
        }
        self.agent.turn().unwrap();
    }

    fn told(&self) -> Vec<News> {
        self.told.0.lock().unwrap().clone()
    }
}

struct Pair {
    seats: [Seat; 2],
    clock: Clock,
}

impl Pair {
    fn new(test: &str) -> Self {
        Self::with(test, 1500)
    }

    /// The left host knows that the path has this MTU; the agents do not.
    fn with(test: &str, mtu: u16) -> Self {
        let [there, back] = [Wire::default(), Wire::default()];
        let left = Seat::new((test, mtu), LEFT, [&there, &back]);
        let seats = [left, Seat::new((test, 1500), RIGHT, [&back, &there])];
        Self { seats, clock: Clock::start() }
    }

    /// Runs until `is_so`, for at most 10 s.
    fn run(&mut self, mut is_so: impl FnMut(&mut Self) -> bool) {
        while !is_so(self) {
            let now = self.clock.now();
            assert!(now < Instant(10_000_000_000), "it does not happen");
            self.seats.iter_mut().for_each(|seat| seat.turn(now));
        }
    }

    /// Opens a connection from the left to this port of the right; returns its ids.
    fn open(&mut self, v6: bool, port: u16) -> [ConnId; 2] {
        let (now, to) = (self.clock.now(), SocketAddr::new(addresses(RIGHT)[usize::from(v6)], port));
        let right = &mut self.seats[RIGHT].end;
        // it may listen already
        let _ = right.endpoint.listen(port, &Config::default(), 8);
        let own = self.seats[LEFT].end.with(now, |end, cx| end.connect(cx, to, &Config::default())).unwrap();
        let (mut calling, mut is_open) = (None, false);
        self.run(|pair| {
            calling = calling.or_else(|| pair.seats[RIGHT].end.endpoint.accept(port));
            while let Some(event) = pair.seats[LEFT].end.endpoint.next_event() {
                is_open |= event.1 == SocketEvent::Connected;
            }
            is_open && calling.is_some()
        });
        [own, calling.unwrap()]
    }

    /// Sends bytes from the left that look like structures in places.
    fn carry(&mut self, ids: [ConnId; 2]) {
        let bytes: Vec<u8> = (0..400_000_u32).map(|i| if i % 1460 > 1400 { 0 } else { i as u8 }).collect();
        let (mut sent, mut got) = (0, Vec::new());
        self.run(|pair| {
            sent += pair.seats[LEFT].end.endpoint.write(ids[LEFT], &bytes[sent..]).unwrap();
            let mut buffer = [0; 1 << 13];
            let now = pair.clock.now();
            let n = pair.seats[RIGHT].end.endpoint.read(now, ids[RIGHT], &mut buffer).unwrap_or(0);
            got.extend_from_slice(&buffer[..n]);
            got.len() == bytes.len()
        });
        assert!(got == bytes, "other bytes arrived");
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for seat in &self.seats {
            let _ = std::fs::remove_file(&seat.flows);
        }
    }
}

#[test]
fn the_kernel_is_told_the_rate_and_the_bytes_are_exact() {
    for v6 in [false, true] {
        let mut pair = Pair::new(&format!("rate{v6}"));
        let ids = pair.open(v6, 80);
        // before the host's connection was open
        let told = pair.seats[LEFT].told();
        let grant = told[0].1.unwrap();
        assert_eq!(told[0].0.remote, SocketAddr::new(addresses(RIGHT)[usize::from(v6)], 80));
        assert_eq!((grant.threshold, grant.extra), (200, if v6 { 16 } else { 0 }));
        assert!((45..=50).contains(&(grant.rate.bps() / 1_000_000)), "{}", grant.rate);
        pair.carry(ids);
        let now = pair.clock.now();
        let agent = &pair.seats[LEFT].agent;
        let flow = &agent.views(now, 10)[0];
        assert_eq!((flow.granted_bps, flow.rule, agent.flows()), (Some(grant.rate.bps()), 1, 1));
        assert_eq!((agent.view().control.as_str(), agent.view().no_room), ("told", 0));
        // what the guard would have to see to if the agent died
        let known = FlowFile::read(&pair.seats[LEFT].flows).unwrap();
        assert_eq!((known.len(), known[0].0.host), (1, told[0].0.local));
        pair.seats[LEFT].end.endpoint.abort(ids[LEFT]);
        pair.run(|pair| pair.seats[LEFT].agent.flows() == 0);
    }
}

#[test]
fn bytes_are_exact_where_full_packets_have_no_room_for_a_structure() {
    let mut pair = Pair::with("mtu", 1400);
    let ids = pair.open(true, 80);
    for _ in 0..3 {
        // longer than the time after which a packet is cut to have room
        let until = pair.clock.now() + Duration::from_millis(110);
        pair.run(|pair| pair.clock.now() >= until);
        pair.carry(ids);
    }
}

#[test]
fn after_a_stop_new_flows_pass() {
    let mut pair = Pair::new("pass");
    let before = pair.open(false, 80);
    pair.seats[LEFT].agent.stop_accepting();
    let later = pair.open(false, 80);
    for ids in [before, later] {
        pair.carry(ids);
    }
    for seat in &pair.seats {
        assert_eq!((seat.agent.flows(), FlowFile::read(&seat.flows).unwrap().len()), (1, 1));
    }
}
