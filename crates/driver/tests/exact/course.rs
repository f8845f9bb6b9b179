//! Two hosts in their own network namespaces, and between them a gateway before a lossy hop, or the hop
//! alone. All of it is removed when the test ends.
//!
//! ```text
//! host 0 (bent0) -- p0 [gateway] g0 -- g1 [hop] p1 -- host 1 (bent0)
//! ```

use crate::hop::{Hop, Weather};
use bentpipe_base::{Cx, Input, Node, Size};
use bentpipe_driver::{Core, Counters, LiveNetwork, NetworkSetup, Pacing, Running, ThreadSetup, Unit};
use bentpipe_gateway::{Config, Gateway};
use bentpipe_network::Network;
use bentpipe_os::{Clock, PacketPort, VethPort, namespace, sysctl};
use lab::once::ip;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::id;
use std::sync::{Arc, Mutex};
use std::thread::Builder;

/// Hosts without ARP send to their own hardware address; ours differs, so our stack ignores these frames.
const MAC: [u8; 6] = [0x02, 0x62, 0x65, 0x6e, 0x74, 0x01];
const MAC_TEXT: &str = "02:62:65:6e:74:01";
const OUR_MAC: &str = "02:62:65:6e:74:02";
const MEMORY: Size = Size(1 << 30);

/// The hosts, and the data paths between them.
pub(crate) struct Course {
    hosts: [OwnedFd; 2],
    middle: OwnedFd,
    gateway: Option<Path<Gateway>>,
    hop: Option<Path<Hop>>,
}

/// Address of a port of a host.
pub(crate) fn at(host: usize, v6: bool, port: u16) -> SocketAddr {
    let text = if v6 { format!("fd56::{}", host + 1) } else { format!("10.56.0.{}", host + 1) };
    SocketAddr::new(text.parse::<IpAddr>().expect("an address"), port)
}

impl Course {
    /// Creates it; prints why and returns `None` if that is not possible here.
    pub(crate) fn new(test: &str, gateway: Option<Config>, weather: &Weather) -> Option<Self> {
        let made = Builder::new().spawn(Self::build).expect("a thread").join();
        match made.expect("no panic while making namespaces") {
            Ok(mut course) => {
                course.start(gateway, weather);
                Some(course)
            }
            Err(why) => {
                println!("SKIPPED {test}: {why}");
                None
            }
        }
    }

    fn build() -> Result<Self, String> {
        let namespace = || namespace::new_network().map_err(|e| format!("no network namespace: {e}"));
        let hosts = [namespace()?, namespace()?];
        let course = Self { hosts, middle: namespace()?, gateway: None, hop: None };
        ip("link set lo up")?;
        for (i, host) in course.hosts.iter().enumerate() {
            let there = format!("/proc/{}/fd/{}", id(), host.as_raw_fd());
            ip(&format!(
                "link add p{i} address {OUR_MAC} type veth peer name bent0 address {MAC_TEXT} netns {there}"
            ))?;
            ip(&format!("link set p{i} addrgenmode none arp off up"))?;
            course.at(i, || {
                ip("link set lo up")?;
                ip("link set bent0 addrgenmode none arp off up")?;
                ip(&format!("addr add 10.56.0.{}/32 dev bent0", i + 1))?;
                ip(&format!("-6 addr add fd56::{}/128 dev bent0 nodad", i + 1))?;
                ip("route add default dev bent0")?;
                ip("-6 route add default dev bent0")
            })?;
        }
        ip(&format!("link add g0 address {OUR_MAC} type veth peer name g1 address {OUR_MAC}"))?;
        for name in ["g0", "g1"] {
            ip(&format!("link set {name} addrgenmode none arp off up"))?;
        }
        Ok(course)
    }

    fn start(&mut self, gateway: Option<Config>, weather: &Weather) {
        let near = if gateway.is_some() { "g1" } else { "p0" };
        self.hop = Some(self.run([near, "p1"], Hop::new(weather)));
        self.gateway = gateway.map(|config| self.run(["p0", "g0"], Gateway::new(config)));
    }

    fn run<N: Node + Send + 'static>(&self, ports: [&str; 2], node: N) -> Path<N> {
        let port = |name: &str| -> Box<dyn PacketPort> {
            let open = || VethPort::open(name, MAC).expect("a port that we made");
            Box::new(namespace::in_network(&self.middle, open).expect("a namespace we made"))
        };
        let setup = ThreadSetup {
            name: "test",
            ports: ports.map(port).into(),
            clock: Clock::start(),
            pacing: Pacing::Cheap,
            realtime: false,
        };
        let node = Arc::new(Mutex::new(node));
        let seen = Seen(Arc::clone(&node));
        let make = move || {
            let add = |network: &mut Network| vec![network.add(Box::new(seen))];
            Ok(NetworkSetup {
                net: LiveNetwork::chain(add, 1, Unit::Packet, MEMORY),
                journal: None,
                begin: None,
                hooks: Vec::new(),
                finish: Box::new(|mut core: Core| Ok(core.counters()?.clone())),
            })
        };
        Path { running: Running::start(setup, make).expect("a data path"), node }
    }

    /// Calls `act` in a host's namespace.
    pub(crate) fn at<T>(&self, host: usize, act: impl FnOnce() -> T) -> T {
        namespace::in_network(&self.hosts[host], act).expect("a namespace we made")
    }

    /// Changes a kernel setting of both hosts.
    pub(crate) fn set(&self, name: &str, value: &str) {
        (0..2).for_each(|host| self.set_at(host, name, value));
    }

    /// Changes a kernel setting of a host.
    pub(crate) fn set_at(&self, host: usize, name: &str, value: &str) {
        self.at(host, || sysctl::write(name, value)).unwrap_or_else(|e| panic!("{name}: {e}"));
    }

    /// Makes the hop drop everything from now on.
    pub(crate) fn die(&self) {
        self.hop.as_ref().expect("a hop that runs").node.lock().expect("no panic").dead = true;
    }

    /// Stops it; returns the gateway and the hop.
    pub(crate) fn end(mut self) -> (Option<Arc<Mutex<Gateway>>>, Arc<Mutex<Hop>>) {
        let gateway = self.gateway.take().map(Path::end);
        (gateway, self.hop.take().expect("it was started").end())
    }
}

/// A node shared with the test.
#[derive(Debug, Default)]
pub(crate) struct Seen<N>(pub(crate) Arc<Mutex<N>>);

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

/// A running data path.
struct Path<N> {
    running: Running<Counters>,
    node: Arc<Mutex<N>>,
}

impl<N> Path<N> {
    fn end(self) -> Arc<Mutex<N>> {
        self.running.stop().expect("a path that ran to its end");
        self.node
    }
}
