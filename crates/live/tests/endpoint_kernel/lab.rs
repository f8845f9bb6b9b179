//! The kernel in one network namespace, the engine in another, and between them a path that loses, duplicates
//! and reorders packets.

use crate::path::{Path, Weather};
use crate::talk::Talks;
use bentpipe_base::{Cx, Duration, Instant, NodeId, World};
use bentpipe_live::endpoint::{ConnId, Endpoint, Settings};
use bentpipe_os::netlink::{Metrics, Netlink, Route, VethPair};
use bentpipe_os::port::MAX_SUPER;
use bentpipe_os::{Clock, PacketPort, VethPort, namespace, sysctl, wait};
use bentpipe_wire::offload::{HEADER_SPACE, SuperPacket, VnetHeader, complete};
use core::net::{IpAddr, SocketAddr};
use std::io::IoSlice;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::Builder;

/// The host's hardware address; our end has another, so that its stack ignores the host's packets.
const MAC: [u8; 6] = [0x02, 0x62, 0x65, 0x6e, 0x74, 0x01];
const OUR_MAC: [u8; 6] = [0x02, 0x62, 0x65, 0x6e, 0x74, 0x02];

pub(crate) const KERNEL: usize = 0;
pub(crate) const ENGINE: usize = 1;

/// Address of a port of either side.
pub(crate) fn at(side: usize, v6: bool, port: u16) -> SocketAddr {
    let last = side as u8 + 1;
    let ip = if v6 {
        IpAddr::from([0xfd55, 0, 0, 0, 0, 0, 0, u16::from(last)])
    } else {
        IpAddr::from([10, 55, 0, last])
    };
    SocketAddr::new(ip, port)
}

/// The namespaces and what is in them.
pub(crate) struct Lab {
    pub(crate) host: Arc<OwnedFd>,
    pub(crate) port: VethPort,
}

impl Lab {
    /// Creates the namespaces, or returns why that is not possible.
    pub(crate) fn new() -> Result<Self, String> {
        let made = Builder::new().spawn(Self::build).expect("a thread").join();
        made.expect("no panic while making namespaces")
    }

    fn build() -> Result<Self, String> {
        let host = namespace::new_network().map_err(|e| format!("no network namespace: {e}"))?;
        namespace::new_network().map_err(|e| format!("no network namespace: {e}"))?;
        let mut netlink = Netlink::open().map_err(|e| e.to_string())?;
        let (name, peer, mtu) = ("p0", "bent0", 1500);
        let pair = VethPair { name, mac: OUR_MAC, peer, peer_mac: MAC, peer_network: host.as_fd(), mtu };
        netlink.add_veth(&pair).map_err(|e| e.to_string())?;
        netlink.set_up("p0").map_err(|e| e.to_string())?;
        let port = VethPort::open("p0", MAC).map_err(|e| e.to_string())?;
        namespace::in_network(&host, Self::configure).map_err(|e| e.to_string())??;
        Ok(Self { host: Arc::new(host), port })
    }

    fn configure() -> Result<(), String> {
        let mut netlink = Netlink::open().map_err(|e| e.to_string())?;
        for name in ["lo", "bent0"] {
            netlink.set_up(name).map_err(|e| e.to_string())?;
        }
        for v6 in [false, true] {
            netlink.add_address("bent0", at(KERNEL, v6, 0).ip()).map_err(|e| e.to_string())?;
            let everywhere = if v6 { IpAddr::from([0u16; 8]) } else { IpAddr::from([0u8; 4]) };
            let route = Route { to: (everywhere, 0), interface: "bent0", metrics: Metrics::default() };
            netlink.add_route(&route).map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    /// Calls `act` in the kernel's host; sockets that it opens stay there.
    pub(crate) fn at_kernel<T>(&self, act: impl FnOnce() -> T) -> T {
        namespace::in_network(self.host.as_ref(), act).expect("a namespace we made")
    }

    /// Changes a kernel setting of the host.
    pub(crate) fn set(&self, name: &str, value: &str) {
        self.at_kernel(|| sysctl::write(name, value)).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

/// The engine behind its path.
pub(crate) struct Bench {
    pub(crate) clock: Clock,
    pub(crate) path: Path,
    pub(crate) endpoint: Endpoint,
    pub(crate) talks: Talks,
    world: World,
    /// Super-packets received from the kernel.
    pub(crate) uncut: u64,
}

impl Bench {
    pub(crate) fn new(seed: u64, weather: Weather) -> Self {
        let mut world = World::new(seed);
        let addresses = [false, true].map(|v6| at(ENGINE, v6, 0).ip()).to_vec();
        let endpoint = Endpoint::new(&mut world, "engine", Settings { addresses, ..Settings::default() });
        let path = Path::new(seed, weather);
        Self { clock: Clock::start(), path, endpoint, talks: Talks::default(), world, uncut: 0 }
    }

    /// Calls `act` with the endpoint.
    pub(crate) fn with<T>(&mut self, act: impl FnOnce(&mut Endpoint, &mut Cx<'_>) -> T) -> T {
        act(&mut self.endpoint, &mut self.world.cx(self.clock.now(), NodeId(0)))
    }

    /// Runs the talk of `id` without an event.
    pub(crate) fn act(&mut self, id: ConnId) {
        let cx = self.world.cx(self.clock.now(), NodeId(0));
        if let Some(talk) = self.talks.of.get_mut(&id) {
            talk.act(&mut self.endpoint, &cx, id);
        }
    }

    /// Forwards packets until `done` returns true; false if it takes longer than `limit`.
    pub(crate) fn run(
        &mut self,
        lab: &mut Lab,
        limit: Duration,
        mut done: impl FnMut(&mut Self) -> bool,
    ) -> bool {
        let mut buffer = vec![0; MAX_SUPER];
        let end = self.clock.now() + limit;
        loop {
            let now = self.clock.now();
            self.read(lab, now, &mut buffer);
            self.serve(now);
            while let Some(bytes) = self.path.leave(now, KERNEL) {
                lab.port.send(&VnetHeader::default(), &[IoSlice::new(&bytes)]).expect("a port that is there");
            }
            if done(self) {
                return true;
            }
            if now > end {
                return false;
            }
            if self.endpoint.wants_to_send() {
                continue; // send what `done` caused
            }
            let tick = now + Duration::from_millis(5);
            let next = self.path.next_at().min(self.endpoint.next_at()).min(tick);
            wait::wait(&[lab.port.fd()], Some(next), &self.clock, Duration::ZERO).expect("to wait");
        }
    }

    /// Moves packets from the kernel to the path, as a network card sends them: cut into wire packets, with
    /// complete checksums.
    fn read(&mut self, lab: &mut Lab, now: Instant, buffer: &mut [u8]) {
        let mut headers = [0; HEADER_SPACE];
        while let Some(received) = lab.port.receive(buffer).expect("a port that is there") {
            let source = &buffer[..received.len];
            let all = SuperPacket::parse(source, &received.vnet).expect("an IP packet");
            self.uncut += u64::from(all.pieces() > 1);
            for i in 0..all.pieces() {
                let piece = all.piece(source, i..i + 1, &mut headers);
                let mut bytes = [&headers[..piece.header_len], &source[piece.payload]].concat();
                complete(&mut bytes, &piece.vnet);
                self.path.enter(now, KERNEL, &bytes);
            }
        }
    }

    /// Runs the engine.
    fn serve(&mut self, now: Instant) {
        self.path.advance(now);
        let mut cx = self.world.cx(now, NodeId(0));
        while let Some(bytes) = self.path.leave(now, ENGINE) {
            self.endpoint.packet(&mut cx, &bytes, &VnetHeader::default());
        }
        self.endpoint.timer(&mut cx);
        let mut out = Vec::new();
        loop {
            while self.endpoint.next_packet(&mut cx, &mut out) {
                self.path.enter(now, ENGINE, &out);
            }
            self.talks.run(&mut self.endpoint, &mut cx);
            if !self.endpoint.wants_to_send() {
                break;
            }
        }
        self.path.advance(now);
    }
}
