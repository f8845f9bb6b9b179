//! The driver's loop between two fake ports: which packets go in, which come out, and when.

#![allow(clippy::unwrap_used, reason = "a test")]

use bentpipe_base::{
    Addr, Cx, Dscp, Duration, Ecn, Flags, Input, Instant, Node, Pkt, Seq, Size, Slot, TcpHeader,
};
use bentpipe_driver::{
    Core, Driver, LiveNetwork, NetworkSetup, Pacing, Running, ThreadSetup, TurnHook, Unit, parse,
};
use bentpipe_gateway::{LAN, SATELLITE};
use bentpipe_os::port::{PacketPort, PortDrops, Received};
use bentpipe_os::{Clock, clock::monotonic, wait};
use bentpipe_wire::offload::VnetHeader;
use bentpipe_wire::{AddressPair, Segment, emit, pseudo_header};
use rustix::event::{EventfdFlags, eventfd};
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};

type Unitary = (VnetHeader, Vec<u8>);

/// A fake port: packets to read, and packets sent.
#[derive(Clone, Debug)]
struct Paper {
    fd: Arc<OwnedFd>,
    input: Arc<Mutex<VecDeque<Unitary>>>,
    output: Arc<Mutex<Vec<Unitary>>>,
    /// Longer packets are refused, as by the kernel.
    mtu: usize,
}

impl Paper {
    fn new() -> Self {
        // always readable, so that the loop never sleeps
        let fd = Arc::new(eventfd(1, EventfdFlags::CLOEXEC).unwrap());
        Self { fd, input: Arc::default(), output: Arc::default(), mtu: usize::MAX }
    }
}

impl PacketPort for Paper {
    fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        let Some((vnet, bytes)) = self.input.lock().unwrap().pop_front() else { return Ok(None) };
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(Some(Received { vnet, len: bytes.len(), at: monotonic() }))
    }
    fn send(&mut self, vnet: &VnetHeader, parts: &[IoSlice<'_>]) -> io::Result<bool> {
        let bytes = parts.iter().flat_map(|part| part.to_vec()).collect::<Vec<_>>();
        if bytes.len() > self.mtu && vnet.gso_type == VnetHeader::GSO_NONE {
            return Err(rustix::io::Errno::MSGSIZE.into());
        }
        self.output.lock().unwrap().push((*vnet, bytes));
        Ok(true)
    }
    fn drops(&mut self) -> io::Result<PortDrops> {
        Ok(PortDrops::default())
    }
}

/// Ends the run at this time.
struct Until(Instant);

impl TurnHook for Until {
    fn on_turn(&mut self, core: &mut Core) -> bool {
        core.clock.now() < self.0
    }
    fn next(&self) -> Option<Instant> {
        Some(self.0)
    }
}

const PAYLOAD: usize = 10_000;
const SIZE: u16 = 1300;

fn super_packet(flags: Flags) -> Unitary {
    let payload: Vec<u8> = (0..PAYLOAD).map(|i| (i * 13 / 7) as u8).collect();
    let ends = AddressPair::V4 { src: [192, 0, 2, 1].into(), dst: [198, 51, 100, 2].into() };
    let tcp = TcpHeader { seq: Seq(77), flags, ..TcpHeader::default() };
    let (dscp, ecn) = (Dscp::default(), Ecn::NotEct);
    let segment = Segment { ends, sport: 1, dport: 2, hops: 9, dscp, ecn, tcp, payload: &payload };
    let mut bytes = Vec::new();
    emit(&segment, &mut bytes).unwrap();
    let sum = pseudo_header(&ends, 6, bytes.len() - 20).fold();
    bytes[36..38].copy_from_slice(&sum.to_be_bytes());
    let vnet = VnetHeader {
        flags: VnetHeader::NEEDS_CSUM,
        gso_type: VnetHeader::GSO_TCPV4,
        hdr_len: 40,
        gso_size: SIZE,
        csum_start: 20,
        csum_offset: 16,
    };
    (vnet, bytes)
}

fn net<N: Node + 'static>(node: N, memory: Size) -> (LiveNetwork, Arc<Mutex<N>>) {
    let node = Arc::new(Mutex::new(node));
    let seen = Seen(Arc::clone(&node));
    (LiveNetwork::chain(|network| vec![network.add(Box::new(seen))], 1, Unit::Packet, memory), node)
}

fn run<N: Node + 'static>(node: N, input: Vec<Unitary>, mtu: usize) -> (Core, Arc<Mutex<N>>, Vec<Unitary>) {
    let (lan, mut satellite) = (Paper::new(), Paper::new());
    satellite.mtu = mtu;
    lan.input.lock().unwrap().extend(input);
    let sent = Arc::clone(&satellite.output);
    let clock = Clock::start();
    let (net, node) = net(node, Size(u64::MAX));
    let core = Core::new(net, vec![Box::new(lan), Box::new(satellite)], clock, Pacing::Cheap);
    let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap());
    let until = Until(clock.now() + Duration::from_millis(50));
    let core = Driver::new(core, wake, vec![Box::new(until)], false).run().unwrap();
    let sent = std::mem::take(&mut *sent.lock().unwrap());
    (core, node, sent)
}

/// A node shared with the test.
#[derive(Debug, Default)]
struct Seen<N>(Arc<Mutex<N>>);

impl<N: Node> Node for Seen<N> {
    fn takes_super_packets(&self) -> bool {
        true
    }

    fn handle(&mut self, cx: &mut Cx<'_>, input: Input) {
        self.0.lock().expect("no test panics in a node").handle(cx, input);
    }

    fn release(&mut self, cx: &mut Cx<'_>) {
        self.0.lock().expect("no test panics in a node").release(cx);
    }

    fn addresses(&self, each: &mut dyn FnMut(bentpipe_base::Addr)) {
        self.0.lock().expect("no test panics in a node").addresses(each);
    }
}

/// Sends each wire packet of a super-packet separately, all at once, except every `skip`th.
struct Slicer {
    skip: usize,
    window: u16,
}

impl Node for Slicer {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input) {
        let Input::Packet(LAN, mut packet) = input else { return };
        let flags = packet.tcp.flags;
        for i in 0.. {
            let len = packet.body.len.min(u32::from(SIZE));
            let mut piece = cx.duplicate(&packet);
            (piece.body.len, piece.tcp.window, piece.segment) = (len, self.window, 0);
            packet.body.off += u64::from(len);
            packet.body.len -= len;
            packet.tcp.seq = packet.tcp.seq.at(u64::from(len));
            let is_last = packet.body.len == 0;
            piece.tcp.flags = if is_last { flags } else { Flags(flags.0 & !(Flags::PSH.0 | Flags::FIN.0)) };
            if self.skip > 0 && i % self.skip == self.skip - 1 {
                cx.recycle(piece);
            } else {
                cx.send(SATELLITE, piece);
            }
            if is_last {
                break;
            }
        }
        cx.recycle(packet);
    }
}

#[test]
fn neighbours_leave_as_one_super_packet() {
    let (mut core, _, sent) = run(
        Slicer { skip: 0, window: 5 },
        vec![super_packet(Flags::ACK.with(Flags::PSH).with(Flags::FIN))],
        1500,
    );
    let [(vnet, bytes)] = &sent[..] else { panic!("{} packets", sent.len()) };
    assert_eq!((vnet.gso_type, vnet.gso_size), (VnetHeader::GSO_TCPV4, SIZE));
    let packet = parse(bytes, vnet, Unit::Packet).unwrap().packet;
    assert_eq!((packet.body.len as usize, packet.tcp.window, packet.tcp.seq), (PAYLOAD, 5, Seq(77)));
    assert!(packet.tcp.flags.has(Flags::FIN.with(Flags::PSH)));
    assert_eq!(bytes[40..], super_packet(Flags::ACK).1[40..]);
    assert!(core.net.store.borrow().is_empty(), "all holders are gone");
    let counters = core.counters().unwrap();
    assert_eq!((counters.drops(), counters.refused), (PortDrops::default(), 0));
}

#[test]
fn what_is_missing_between_keeps_them_apart() {
    let (core, _, sent) = run(Slicer { skip: 3, window: 5 }, vec![super_packet(Flags::ACK)], 1500);
    let whole = super_packet(Flags::ACK).1;
    let lens: Vec<(Seq, usize)> = sent
        .iter()
        .map(|(vnet, bytes)| {
            let packet = parse(bytes, vnet, Unit::Packet).unwrap().packet;
            let (seq, len) = (packet.tcp.seq, packet.body.len as usize);
            let at = 40 + (seq.0 - 77) as usize;
            assert_eq!(bytes[40..], whole[at..at + len]);
            (seq, len)
        })
        .collect();
    // eight packets, without the third and the sixth
    assert_eq!(lens, [(Seq(77), 2600), (Seq(77 + 3900), 2600), (Seq(77 + 7800), 2200)]);
    assert!(core.net.store.borrow().is_empty());
}

#[test]
fn a_packet_that_the_kernel_refuses_is_counted_and_no_end() {
    let (mut core, _, sent) =
        run(Slicer { skip: 2, window: 5 }, vec![super_packet(Flags::ACK), super_packet(Flags::ACK)], 1000);
    assert_eq!(sent.len(), 0);
    let counters = core.counters().unwrap();
    assert_eq!((counters.refused, counters.ports[0].received), (8, 2));
}

#[test]
fn others_may_ask_the_data_thread_and_hear_when_it_ends() {
    let (lan, satellite) = (Paper::new(), Paper::new());
    lan.input.lock().unwrap().push_back(super_packet(Flags::ACK));
    let sent = Arc::clone(&satellite.output);
    let setup = ThreadSetup {
        name: "test",
        ports: vec![Box::new(lan), Box::new(satellite)],
        clock: Clock::start(),
        pacing: Pacing::Cheap,
        realtime: false,
    };
    let node = Arc::new(Mutex::new(Slicer { skip: 0, window: 1 }));
    let (seen, first) = (Seen(Arc::clone(&node)), Arc::clone(&node));
    let make = move || {
        let add = |network: &mut bentpipe_network::Network| vec![network.add(Box::new(seen))];
        Ok(NetworkSetup {
            net: LiveNetwork::chain(add, 1, Unit::Packet, Size(1 << 20)),
            journal: None,
            begin: Some(Box::new(move |_| first.lock().unwrap().window = 3)),
            hooks: Vec::new(),
            finish: Box::new(|mut core| Ok(core.counters()?.ports[1].sent)),
        })
    };
    let path = Running::start(setup, make).unwrap();
    let clock = Clock::start();
    while path.call(|core| core.counters().unwrap().ports[1].sent).unwrap() == 0 {}
    let soon = Some(clock.now() + Duration::from_millis(5));
    let has_ended = || wait::wait(&[path.ended()], soon, &clock, Duration::ZERO).unwrap().has(0);
    assert!(!has_ended());
    let numbered = |core: &mut Core| {
        (0..9).filter(|i| core.net.network.world.addresses.address(Addr(*i)).is_some()).count()
    };
    assert_eq!(path.call(numbered), Some(2));
    assert_eq!(path.stop().unwrap(), 1);
    let (vnet, bytes) = &sent.lock().unwrap()[0];
    assert_eq!(
        parse(bytes, vnet, Unit::Packet).unwrap().packet.tcp.window,
        3,
        "told before the first packet"
    );
}

/// Sends one packet per millisecond, however late it is called.
#[derive(Default)]
struct Pacer {
    held: VecDeque<Pkt>,
    due: Option<Instant>,
    left: Vec<(Instant, Instant)>,
    /// Blocks the thread for this time at the third packet.
    stall: Duration,
}

impl Node for Pacer {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input) {
        match input {
            Input::Packet(_, packet) => self.held.push_back(packet),
            Input::Timer(_) => {
                let Some(due) = self.due.take_if(|due| *due <= cx.now) else { return };
                if let Some(packet) = self.held.pop_front() {
                    cx.send(SATELLITE, packet);
                    self.left.push((due, cx.now));
                }
                if self.left.len() == 3 {
                    let end = monotonic() + self.stall.0;
                    while monotonic() < end {}
                }
            }
        }
        if self.due.is_none() && !self.held.is_empty() {
            let due = cx.now + Duration::from_millis(1);
            self.due = Some(due);
            cx.wake(Slot(0), due);
        }
    }
}

#[test]
fn a_late_thread_catches_up_a_little_and_never_in_a_burst() {
    let packets = || (0..60).map(|_| super_packet(Flags::ACK)).collect::<Vec<_>>();
    let (_, node, sent) =
        run(Pacer { stall: Duration::from_millis(30), ..Pacer::default() }, packets(), 1500);
    let times: Vec<Instant> = node.lock().unwrap().left.iter().map(|(_, now)| *now).collect();
    let steps: Vec<u64> = times.windows(2).map(|w| w[1].since(w[0]).0).collect();
    // timers are handled at their due time, not when the thread woke, so the rate is exact
    let exact = steps.iter().filter(|step| **step == 1_000_000).count();
    assert!(exact * 2 > steps.len(), "{steps:?}");
    // a stall of 30 ms releases only the packets that are due in 4 ms
    assert!(steps.iter().any(|step| *step > 20_000_000), "{steps:?}");
    let all = times[times.len() - 1].since(times[0]);
    assert!(all >= Duration::from_millis(59 + 30 - 6), "{all}");
    assert_eq!((sent.len(), times.len()), (60, 60), "the end waited for what was held");
}
