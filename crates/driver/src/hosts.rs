//! Finds the host for a real address.

use bentpipe_base::Addr;
use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet};

/// Addresses of the hosts, and the default host. Hosts are indices among the scenario's nodes.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    known: BTreeMap<IpAddr, usize>,
    /// The host that routes to other networks.
    gate: Option<usize>,
    /// With only two hosts, each one's packets go to the other.
    pair: Option<(usize, usize)>,
}

impl Hosts {
    /// Hosts (indices among the scenario's nodes) with their addresses; other packets go to `gate`.
    pub fn new(hosts: impl IntoIterator<Item = (usize, IpAddr)>, gate: Option<usize>) -> Self {
        let known: BTreeMap<IpAddr, usize> =
            hosts.into_iter().map(|(host, address)| (address, host)).collect();
        let places: BTreeSet<usize> = known.values().copied().collect();
        let pair = places.first().copied().zip(places.last().copied()).filter(|_| places.len() == 2);
        Self { known, gate, pair }
    }

    /// Returns the destination host of a packet from host `from`; if unknown, an address without a route.
    pub fn find(&self, destination: Option<IpAddr>, from: usize) -> Addr {
        let other = self.pair.map(|(a, b)| if from == a { b } else { a });
        let known = || destination.and_then(|d| self.known.get(&d).copied());
        let host = other.or_else(known).or(self.gate);
        Addr(host.and_then(|h| u32::try_from(h).ok()).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_hosts_each_sends_to_the_other() {
        let ip = |n| IpAddr::from([10, 55, 0, n]);
        let two = Hosts::new([(0, ip(1)), (1, ip(2)), (1, IpAddr::from([0; 16]))], None);
        assert_eq!(two.find(Some(ip(9)), 0), Addr(1));
        assert_eq!(two.find(None, 1), Addr(0));
    }

    #[test]
    fn of_many_the_address_decides_then_the_gate() {
        let ip = |n| IpAddr::from([10, 55, 0, n]);
        let hosts = || [(0, ip(1)), (1, ip(2)), (4, ip(5))];
        let closed = Hosts::new(hosts(), None);
        assert_eq!(closed.find(Some(ip(5)), 0), Addr(4));
        assert_eq!(closed.find(Some(ip(9)), 0), Addr(u32::MAX));
        assert_eq!(Hosts::new(hosts(), Some(1)).find(Some(ip(9)), 0), Addr(1));
    }
}
