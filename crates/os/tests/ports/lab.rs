//! Two hosts in network namespaces and a third namespace between them with the relay. Removed when the test
//! ends.

pub(crate) use ::lab::once::ip;
use bentpipe_base::{Duration, Instant};
use bentpipe_os::{Clock, PacketPort, TunPort, VethPort, namespace, port::MAX_SUPER, wait};
use bentpipe_wire::offload::{HEADER_SPACE, SuperPacket, VnetHeader, complete};
use std::io::IoSlice;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Command, id};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};

pub(crate) const MAC: [u8; 6] = [0x02, 0x62, 0x65, 0x6e, 0x74, 0x01];
const MAC_TEXT: &str = "02:62:65:6e:74:01";
/// The relay's end has a different address: hosts without ARP send to their own, and the relay's stack then
/// ignores their packets early.
const OUR_MAC: &str = "02:62:65:6e:74:02";

/// Kind of port that connects the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Veth,
    Tun,
}

/// How the relay forwards a super-packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// As a whole.
    Whole,
    /// Segmented, checksums unchanged.
    Cut,
    /// Segmented into groups of three packets.
    Joined,
    /// Segmented, with every checksum computed by the relay.
    Finished,
}

pub(crate) struct Lab {
    pub(crate) hosts: [OwnedFd; 2],
    pub(crate) middle: OwnedFd,
    door: Door,
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
            if door == Door::Tun {
                continue;
            }
            let peer = format!("name bent0 address {MAC_TEXT} netns /proc/{}/fd/{}", id(), host.as_raw_fd());
            ip(&format!("link add p{i} address {OUR_MAC} type veth peer {peer}"))?;
            ip(&format!("link set p{i} addrgenmode none arp off up"))?;
            lab.configure(i)?;
        }
        Ok(lab)
    }

    fn configure(&self, host: usize) -> Result<(), String> {
        namespace::in_network(&self.hosts[host], || {
            ip("link set lo up")?;
            ip("link set bent0 addrgenmode none up")?;
            if self.door == Door::Veth {
                ip("link set bent0 arp off")?;
            }
            ip(&format!("addr add 10.55.0.{}/32 dev bent0", host + 1))?;
            ip(&format!("-6 addr add fd55::{}/128 dev bent0 nodad", host + 1))?;
            ip("route add default dev bent0")?;
            ip("-6 route add default dev bent0")
        })
        .map_err(|e| e.to_string())?
    }

    /// Opens the port of a host.
    pub(crate) fn port(&self, host: usize) -> Result<Box<dyn PacketPort>, String> {
        if self.door == Door::Veth {
            let port = namespace::in_network(&self.middle, || VethPort::open(&format!("p{host}"), MAC));
            return Ok(Box::new(port.map_err(|e| e.to_string())?.map_err(|e| e.to_string())?));
        }
        let port = namespace::in_network(&self.hosts[host], || TunPort::create("bent0"));
        let port = port.map_err(|e| e.to_string())?.map_err(|e| e.to_string())?;
        self.configure(host)?;
        Ok(Box::new(port))
    }

    /// Runs `act` in a host's namespace.
    pub(crate) fn at<T>(&self, host: usize, act: impl FnOnce() -> T) -> T {
        namespace::in_network(&self.hosts[host], act).expect("a namespace we made")
    }

    /// Switches the hosts' offloads on or off; returns false without `ethtool`.
    pub(crate) fn offloads(&self, on: bool) -> bool {
        (0..2).all(|host| self.at(host, || switch("bent0", on)))
    }

    /// Switches those of our ends of the pairs.
    pub(crate) fn our_offloads(&self, on: bool) -> bool {
        let both = || ["p0", "p1"].iter().all(|name| switch(name, on));
        namespace::in_network(&self.middle, both).expect("a namespace we made")
    }
}

fn switch(name: &str, on: bool) -> bool {
    let how = if on { "on" } else { "off" };
    let done = Command::new("ethtool").args(["-K", name, "tx", how, "gso", how, "tso", how]).output();
    done.is_ok_and(|out| out.status.success())
}

pub(crate) fn address(host: usize, v6: bool) -> IpAddr {
    let text = if v6 { format!("fd55::{}", host + 1) } else { format!("10.55.0.{}", host + 1) };
    text.parse().expect("an address")
}

/// Counters of a relay.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) supers: AtomicU64,
    /// Packets on the wire.
    pub(crate) packets: AtomicU64,
    /// Super-packets with an unfinished checksum.
    pub(crate) partial: AtomicU64,
    pub(crate) receive_lost: AtomicU64,
    pub(crate) send_lost: AtomicU64,
}

/// A thread that forwards packets between two ports until it is dropped.
pub(crate) struct Relay {
    pub(crate) counts: Arc<Counts>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    pub(crate) fn start(lab: &Lab, way: Way) -> Result<Self, String> {
        let mut ports = [lab.port(0)?, lab.port(1)?];
        let (counts, stop) = (Arc::new(Counts::default()), Arc::new(AtomicBool::new(false)));
        let (seen, ended) = (Arc::clone(&counts), Arc::clone(&stop));
        let run = move || {
            let clock = Clock::start();
            let mut buffer = vec![0; MAX_SUPER];
            while !ended.load(Ordering::Relaxed) {
                let deadline = Instant(clock.now().0 + 50_000_000);
                let fds = [ports[0].fd(), ports[1].fd()];
                let ready = wait::wait(&fds, Some(deadline), &clock, Duration::ZERO).expect("to wait");
                for from in (0..2).filter(|i| ready.has(*i)) {
                    for _ in 0..64 {
                        if !carry(&mut ports, from, &mut buffer, way, &seen) {
                            break;
                        }
                    }
                }
            }
            for port in &mut ports {
                let drops = port.drops().expect("a port that is there");
                seen.receive_lost.fetch_add(drops.receive, Ordering::Relaxed);
                seen.send_lost.fetch_add(drops.send, Ordering::Relaxed);
            }
        };
        let thread = Builder::new().name("relay".into()).spawn(run).map_err(|e| e.to_string())?;
        Ok(Self { counts, stop, thread: Some(thread) })
    }

    /// Stops the relay, closes its ports and returns its counters.
    pub(crate) fn end(mut self) -> Arc<Counts> {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("a relay without panic");
        }
        Arc::clone(&self.counts)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Forwards one super-packet; returns false if none is waiting.
fn carry(
    ports: &mut [Box<dyn PacketPort>; 2],
    from: usize,
    buffer: &mut [u8],
    way: Way,
    seen: &Counts,
) -> bool {
    let Some(got) = ports[from].receive(buffer).expect("a port that is there") else { return false };
    let source = &buffer[..got.len];
    let Ok(parsed) = SuperPacket::parse(source, &got.vnet) else { panic!("not IP: {source:02x?}") };
    seen.supers.fetch_add(1, Ordering::Relaxed);
    seen.packets.fetch_add(parsed.pieces() as u64, Ordering::Relaxed);
    seen.partial.fetch_add(u64::from(got.vnet.is_partial()), Ordering::Relaxed);
    let step = match way {
        Way::Whole => parsed.pieces(),
        Way::Cut | Way::Finished => 1,
        Way::Joined => 3,
    };
    let mut headers = [0; HEADER_SPACE];
    for i in (0..parsed.pieces()).step_by(step) {
        let piece = parsed.piece(source, i..i + step, &mut headers);
        let parts =
            [IoSlice::new(&headers[..piece.header_len]), IoSlice::new(&source[piece.payload.clone()])];
        let to = &mut ports[1 - from];
        if way == Way::Finished {
            let mut whole = [&*parts[0], &*parts[1]].concat();
            complete(&mut whole, &piece.vnet);
            to.send(&VnetHeader::default(), &[IoSlice::new(&whole)]).expect("to send");
        } else {
            to.send(&piece.vnet, &parts).expect("to send");
        }
    }
    true
}
