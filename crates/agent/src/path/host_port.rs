//! The port of an agent on the host itself: a packet socket on the interface to the network, beside the
//! kernel.
//!
//! It sees every packet that arrives there, before the host's TCP. It keeps those for the host's own
//! addresses; frames for other hosts, which are seen while a program listens to all, are none of its. It asks
//! the kernel for the next hop and its hardware address, and lets the kernel resolve an address that is not
//! known; until then the port holds a few packets, as the kernel does. Answers are remembered for [`FRESH`],
//! and bounded by number.

use bentpipe_os::clock::monotonic;
use bentpipe_os::netlink::{Interface, Mac, Netlink};
use bentpipe_os::port::{PortDrops, Received};
use bentpipe_os::{PacketPort, PortError, VethPort};
use bentpipe_wire::offload::{VnetHeader, addresses};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IoSlice};
use std::net::UdpSocket;
use std::os::fd::BorrowedFd;

/// How long an answer of the kernel is believed, in nanoseconds.
const FRESH: u64 = 10_000_000_000;
/// How long to wait before the kernel is asked again for an address that was not known, and before the held
/// packets are looked at again.
const AGAIN: u64 = 2_000_000;
/// Shortest time between two datagrams that make the kernel resolve the same neighbour.
const RESOLVE: u64 = 20_000_000;
/// Most packets that wait for a hardware address, and how long each waits.
const MOST_HELD: usize = 64;
const LONGEST_HELD: u64 = 1_000_000_000;
/// Most remembered answers of each kind; then all are forgotten.
const MOST: usize = 8192;
/// The port of "discard" (RFC 863): a datagram to it makes the kernel resolve the neighbour's address.
const DISCARD: u16 = 9;
/// Most packets skipped in one call.
const SKIP: usize = 64;

/// Where packets for an address go.
#[derive(Clone, Copy, Debug)]
enum Hop {
    /// To the neighbour with this hardware address.
    At(Mac),
    /// To a neighbour whose address is not known yet.
    Unresolved,
    /// Not over this interface.
    Nowhere,
}

/// When something was last done for an address.
#[derive(Debug, Default)]
struct Last(BTreeMap<IpAddr, u64>);

impl Last {
    /// True, at most once in `gap`.
    fn is_due(&mut self, address: IpAddr, now: u64, gap: u64) -> bool {
        let is_due = self.0.get(&address).is_none_or(|last| now.saturating_sub(*last) >= gap);
        if is_due {
            remember(&mut self.0, address, now);
        }
        is_due
    }
}

/// A packet socket beside the kernel.
pub struct HostPort {
    port: VethPort,
    interface: Interface,
    netlink: Netlink,
    /// The next hop towards a host, and when that was asked.
    hops: BTreeMap<IpAddr, (Hop, u64)>,
    /// When the kernel was last made to resolve a neighbour.
    resolved: Last,
    /// Whether an address is the host's own, and when that was asked.
    own: BTreeMap<IpAddr, (bool, u64)>,
    /// Sockets for datagrams that make the kernel resolve an address; opened before the sandbox.
    askers: [Option<UdpSocket>; 2],
    /// Packets that wait for the hardware address of their next hop, and since when.
    held: VecDeque<(IpAddr, VnetHeader, Vec<u8>, u64)>,
    /// When they were last looked at.
    looked: u64,
    /// Packets without a next hop, and held ones that the kernel did not take.
    lost: u64,
}

impl core::fmt::Debug for HostPort {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("HostPort").field("interface", &self.interface.name).finish_non_exhaustive()
    }
}

impl HostPort {
    /// Opens a port on the interface `name`.
    ///
    /// # Errors
    /// When there is none of that name, or packet sockets are not allowed.
    pub fn open(name: &str) -> Result<Self, PortError> {
        let kernel = |source: bentpipe_os::netlink::Error| PortError::Kernel {
            what: "asking for the interface",
            source: io::Error::other(source.to_string()),
        };
        let mut netlink = Netlink::open().map_err(kernel)?;
        let index = netlink.index(name).map_err(kernel)?;
        let index = index.ok_or_else(|| PortError::NoInterface(name.to_owned()))?;
        let interface = netlink.interface(index).map_err(kernel)?;
        let port = VethPort::open(name, interface.mac)?;
        let asker = |any: IpAddr| UdpSocket::bind((any, 0)).ok();
        let askers = [asker(Ipv4Addr::UNSPECIFIED.into()), asker(Ipv6Addr::UNSPECIFIED.into())];
        Ok(Self {
            port,
            interface,
            netlink,
            hops: BTreeMap::new(),
            resolved: Last::default(),
            own: BTreeMap::new(),
            askers,
            held: VecDeque::new(),
            looked: 0,
            lost: 0,
        })
    }

    /// The next hop towards `to`.
    fn next_hop(&mut self, to: IpAddr) -> Hop {
        if !self.interface.resolves {
            return Hop::At(self.interface.mac);
        }
        let now = monotonic();
        if let Some((hop, asked)) = self.hops.get(&to) {
            let fresh = if matches!(hop, Hop::At(_)) { FRESH } else { AGAIN };
            if now.saturating_sub(*asked) < fresh {
                return *hop;
            }
        }
        let hop = self.ask(to, now);
        remember(&mut self.hops, to, (hop, now));
        hop
    }

    fn ask(&mut self, to: IpAddr, now: u64) -> Hop {
        let way = self.netlink.route_to(to).ok().filter(|way| way.interface == self.interface.index);
        let Some(way) = way else { return Hop::Nowhere };
        let next = way.gateway.unwrap_or(to);
        if let Ok(Some(mac)) = self.netlink.neighbour(self.interface.index, next) {
            return Hop::At(mac);
        }
        if let Some(asker) = &self.askers[usize::from(next.is_ipv6())]
            && self.resolved.is_due(next, now, RESOLVE)
        {
            // whether it arrives does not matter
            let _ = asker.send_to(&[], (next, DISCARD));
        }
        Hop::Unresolved
    }

    /// Sends the packets whose next hop is known by now; gives up those that have waited for long.
    fn send_held(&mut self) {
        let now = monotonic();
        if self.held.is_empty() || now.saturating_sub(self.looked) < AGAIN {
            return;
        }
        self.looked = now;
        for _ in 0..self.held.len() {
            let Some((to, vnet, bytes, since)) = self.held.pop_front() else { break };
            match self.next_hop(to) {
                Hop::At(next) => {
                    // the next read says if the port is gone
                    let sent = self.send_to(next, &vnet, &[IoSlice::new(&bytes)]);
                    self.lost += u64::from(sent.is_err());
                }
                Hop::Unresolved if now.saturating_sub(since) < LONGEST_HELD => {
                    self.held.push_back((to, vnet, bytes, since));
                }
                Hop::Unresolved | Hop::Nowhere => self.lost += 1,
            }
        }
    }

    fn send_to(&mut self, next: Mac, vnet: &VnetHeader, parts: &[IoSlice<'_>]) -> io::Result<bool> {
        self.port.set_mac_addresses(self.interface.mac, next);
        self.port.send(vnet, parts)
    }

    fn is_own(&mut self, address: IpAddr) -> bool {
        let now = monotonic();
        if let Some((is_own, asked)) = self.own.get(&address)
            && now.saturating_sub(*asked) < FRESH
        {
            return *is_own;
        }
        let is_own = self.netlink.route_to(address).is_ok_and(|way| way.local);
        remember(&mut self.own, address, (is_own, now));
        is_own
    }
}

fn remember<T>(known: &mut BTreeMap<IpAddr, T>, key: IpAddr, value: T) {
    if known.len() >= MOST && !known.contains_key(&key) {
        known.clear();
    }
    known.insert(key, value);
}

impl PacketPort for HostPort {
    fn fd(&self) -> BorrowedFd<'_> {
        self.port.fd()
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        self.send_held();
        for _ in 0..SKIP {
            let Some(received) = self.port.receive(buffer)? else { return Ok(None) };
            let to = buffer.get(..received.len).and_then(|packet| addresses(packet).ok()).map(|(_, to)| to);
            if to.is_some_and(|to| self.is_own(to)) {
                return Ok(Some(received));
            }
        }
        Ok(None)
    }

    fn send(&mut self, vnet: &VnetHeader, parts: &[IoSlice<'_>]) -> io::Result<bool> {
        let header = parts.iter().find(|part| !part.is_empty());
        let to = header.and_then(|header| addresses(header).ok()).map(|(_, to)| to);
        let Some(to) = to else {
            self.lost += 1;
            return Ok(false);
        };
        self.send_held();
        // in the order in which they came
        let waits = self.held.iter().any(|(address, ..)| *address == to);
        let hop = if waits { Hop::Unresolved } else { self.next_hop(to) };
        if let Hop::At(next) = hop {
            return self.send_to(next, vnet, parts);
        }
        if matches!(hop, Hop::Nowhere) || self.held.len() == MOST_HELD {
            self.lost += 1;
            return Ok(false);
        }
        let bytes = parts.iter().flat_map(|part| part.iter().copied()).collect();
        self.held.push_back((to, *vnet, bytes, monotonic()));
        Ok(true)
    }

    fn drops(&mut self) -> io::Result<PortDrops> {
        let drops = self.port.drops()?;
        Ok(PortDrops { send: drops.send + self.lost, not_ip: 0, ..drops })
    }

    fn holds(&self) -> bool {
        !self.held.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_is_resolved_at_most_once_in_a_while() {
        let (mut last, one, two) =
            (Last::default(), IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let times = |last: &mut Last, from: u64, address| {
            // every 2 ms for a second
            (0..500).filter(|i| last.is_due(address, from + i * AGAIN, RESOLVE)).count()
        };
        assert_eq!(times(&mut last, RESOLVE, one), 50);
        assert_eq!(times(&mut last, 0, two), 50, "each by itself");
        for i in 0..=u32::try_from(MOST).unwrap() {
            assert!(last.is_due(IpAddr::from((i + 99).to_be_bytes()), 0, RESOLVE));
        }
        assert!(last.0.len() <= MOST);
    }
}
