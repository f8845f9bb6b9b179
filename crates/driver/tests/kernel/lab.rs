//! Two hosts in their own network namespaces, and a third namespace between them for the gateway's data path.
//! All of it is removed when the test ends.

pub(crate) use ::lab::once::ip;
use ::lab::once::run;
use bentpipe_base::{Cx, Input, Node, Size};
use bentpipe_driver::{Core, Counters, LiveNetwork, NetworkSetup, Pacing, Running, ThreadSetup, Unit};
use bentpipe_network::Network;
use bentpipe_os::{Clock, FramePort, PacketPort, TunPort, VethPort, namespace, sysctl};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::id;
use std::sync::{Arc, Mutex};
use std::thread::Builder;

const MAC: [u8; 6] = [0x02, 0x62, 0x65, 0x6e, 0x74, 0x01];
const MAC_TEXT: &str = "02:62:65:6e:74:01";
/// Hardware address of our end. Hosts without ARP send to their own address; ours differs, so our stack
/// ignores their packets.
const OUR_MAC: &str = "02:62:65:6e:74:02";

/// How the path is attached to the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    /// Packets over veth pairs without ARP.
    Veth,
    /// The hosts' interfaces are TUN devices.
    Tun,
    /// Frames over veth pairs: the hosts are on one Ethernet.
    Inline,
}

pub(crate) struct Lab {
    pub(crate) hosts: [OwnedFd; 2],
    middle: OwnedFd,
    door: Door,
}

/// Address of a port of a host.
pub(crate) fn at(host: usize, v6: bool, port: u16) -> SocketAddr {
    let text = if v6 { format!("fd55::{}", host + 1) } else { format!("10.55.0.{}", host + 1) };
    SocketAddr::new(text.parse::<IpAddr>().expect("an address"), port)
}

impl Lab {
    /// Creates the namespaces, or returns why that is not possible.
    pub(crate) fn new(door: Door) -> Result<Self, String> {
        let made = Builder::new().spawn(move || Self::build(door)).expect("a thread").join();
        made.expect("no panic while making namespaces")
    }

    fn build(door: Door) -> Result<Self, String> {
        let namespace = || namespace::new_network().map_err(|e| format!("no network namespace: {e}"));
        let lab = Self { hosts: [namespace()?, namespace()?], middle: namespace()?, door };
        ip("link set lo up")?;
        for (i, host) in lab.hosts.iter().enumerate() {
            let peer = format!("name bent0 netns /proc/{}/fd/{}", id(), host.as_raw_fd());
            match door {
                Door::Tun => continue,
                Door::Veth => {
                    let peer = peer.replace("bent0", &format!("bent0 address {MAC_TEXT}"));
                    ip(&format!("link add p{i} address {OUR_MAC} type veth peer {peer}"))?;
                    ip(&format!("link set p{i} addrgenmode none arp off up"))?;
                }
                Door::Inline => {
                    ip(&format!("link add p{i} type veth peer {peer}"))?;
                    ip(&format!("link set p{i} addrgenmode none arp off up"))?;
                }
            }
            lab.configure(i)?;
        }
        Ok(lab)
    }

    fn configure(&self, host: usize) -> Result<(), String> {
        self.at(host, || {
            ip("link set lo up")?;
            ip("link set bent0 addrgenmode none up")?;
            if self.door == Door::Inline {
                ip(&format!("addr add 10.55.0.{}/24 dev bent0", host + 1))?;
                return ip(&format!("-6 addr add fd55::{}/64 dev bent0 nodad", host + 1));
            }
            if self.door == Door::Veth {
                ip("link set bent0 arp off")?;
            }
            ip(&format!("addr add 10.55.0.{}/32 dev bent0", host + 1))?;
            ip(&format!("-6 addr add fd55::{}/128 dev bent0 nodad", host + 1))?;
            ip("route add default dev bent0")?;
            ip("-6 route add default dev bent0")
        })
    }

    /// The other end of the path's port, to send and receive raw frames.
    pub(crate) fn far_end(&self, host: usize) -> FramePort {
        self.at(host, || FramePort::open("bent0")).expect("a port in a namespace we made")
    }

    fn port(&self, host: usize) -> Result<Box<dyn PacketPort>, String> {
        let name = format!("p{host}");
        let inside = |act: &dyn Fn() -> Result<Box<dyn PacketPort>, String>| {
            namespace::in_network(&self.middle, act).map_err(|e| e.to_string())?
        };
        match self.door {
            Door::Veth => inside(&|| match VethPort::open(&name, MAC) {
                Ok(port) => Ok(Box::new(port)),
                Err(e) => Err(e.to_string()),
            }),
            Door::Inline => inside(&|| match FramePort::open(&name) {
                Ok(port) => Ok(Box::new(port)),
                Err(e) => Err(e.to_string()),
            }),
            Door::Tun => {
                let port = self.at(host, || TunPort::create("bent0")).map_err(|e| e.to_string())?;
                self.configure(host)?;
                Ok(Box::new(port))
            }
        }
    }

    /// Calls `act` in a host's namespace.
    pub(crate) fn at<T>(&self, host: usize, act: impl FnOnce() -> T) -> T {
        namespace::in_network(&self.hosts[host], act).expect("a namespace we made")
    }

    /// Changes a kernel setting of both hosts.
    pub(crate) fn set(&self, name: &str, value: &str) {
        for host in 0..2 {
            self.at(host, || sysctl::write(name, value)).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
    }

    /// Switches the hosts' offloads on or off; false if that is not possible.
    pub(crate) fn offloads(&self, on: bool) -> bool {
        let how = if on { "on" } else { "off" };
        let set = || run("ethtool", &format!("-K bent0 tx {how} gso {how} tso {how}"));
        (0..2).all(|host| self.at(host, set).is_ok())
    }

    /// Starts the path with `node`; its store is limited to `memory`.
    pub(crate) fn start<N: Node + Send + 'static>(&self, node: N, memory: Size) -> Result<Path<N>, String> {
        let unit = if self.door == Door::Inline { Unit::Frame } else { Unit::Packet };
        let setup = ThreadSetup {
            name: "test",
            ports: vec![self.port(0)?, self.port(1)?],
            clock: Clock::start(),
            pacing: Pacing::Cheap,
            realtime: false,
        };
        let node = Arc::new(Mutex::new(node));
        let seen = Seen(Arc::clone(&node));
        let make = move || {
            let add = |network: &mut Network| vec![network.add(Box::new(seen))];
            Ok(NetworkSetup {
                net: LiveNetwork::chain(add, 1, unit, memory),
                journal: None,
                begin: None,
                hooks: Vec::new(),
                finish: Box::new(|mut core: Core| Ok(core.counters()?.clone())),
            })
        };
        let running = Running::start(setup, make).map_err(|e| e.to_string())?;
        Ok(Path { running, node })
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

/// A running path.
pub(crate) struct Path<N> {
    running: Running<Counters>,
    node: Arc<Mutex<N>>,
}

/// Result of a path.
pub(crate) struct Outcome<N> {
    pub(crate) node: Arc<Mutex<N>>,
    pub(crate) counters: Counters,
}

impl<N> Path<N> {
    /// Stops it. Fails if packets were lost at its ports.
    pub(crate) fn end(self) -> Outcome<N> {
        let counters = self.running.stop().expect("a path that ran to its end");
        let drops = counters.drops();
        assert_eq!((drops.receive, drops.send, counters.refused), (0, 0, 0), "{counters:?}");
        Outcome { node: self.node, counters }
    }
}
