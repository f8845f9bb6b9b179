//! Numbers for addresses: the node's [`Addr`] has 32 bits, an IPv6 address 128.
//!
//! A tree, since its worst case is that of any address a stranger may choose; and most packets belong to the pair of addresses that was asked for last. The
//! table is bounded. When it is full, numbers that no flow of the gateway uses are given out again; when all are in use, the packet passes without one.

use bentpipe_base::Addr;
use bentpipe_wire::Ends;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Addresses and their numbers.
#[derive(Debug)]
pub struct Addresses {
    numbers: BTreeMap<IpAddr, Addr>,
    /// By number; `None` where a number is free.
    known: Vec<Option<IpAddr>>,
    free: Vec<Addr>,
    limit: usize,
    /// The pair that was asked for last, and its numbers.
    last: Option<(Ends, (Addr, Addr))>,
    /// Pairs to refuse before all flows are asked again.
    patience: usize,
    sweeps: u64,
}

/// What of a table's size must be asked for before a sweep that freed little is repeated: one part in so many.
const PATIENCE: usize = 16;

impl Addresses {
    /// A table of at most `limit` addresses, two at least.
    pub fn new(limit: u32) -> Self {
        Self {
            numbers: BTreeMap::new(),
            known: Vec::new(),
            free: Vec::new(),
            limit: (limit as usize).max(2),
            last: None,
            patience: 0,
            sweeps: 0,
        }
    }

    /// The numbers of source and destination. `in_use` names every address that must keep its number; it is asked when the table is full. `None`
    /// when there is no room still.
    #[inline]
    pub fn find(&mut self, ends: &Ends, in_use: impl FnOnce(&mut dyn FnMut(Addr))) -> Option<(Addr, Addr)> {
        match &self.last {
            Some((last, numbers)) if last == ends => Some(*numbers),
            _ => self.look(ends, in_use),
        }
    }

    fn look(&mut self, ends: &Ends, in_use: impl FnOnce(&mut dyn FnMut(Addr))) -> Option<(Addr, Addr)> {
        let (src, dst): (IpAddr, IpAddr) = match *ends {
            Ends::V4 { src, dst } => (src.into(), dst.into()),
            Ends::V6 { src, dst } => (src.into(), dst.into()),
        };
        let new = |table: &Self| {
            usize::from(!table.numbers.contains_key(&src))
                + usize::from(src != dst && !table.numbers.contains_key(&dst))
        };
        if self.numbers.len() + new(self) > self.limit {
            if self.patience > 0 {
                self.patience -= 1;
                return None;
            }
            self.sweep(in_use);
            if self.numbers.len() + new(self) > self.limit {
                return None;
            }
        }
        let numbers = (self.number(src), self.number(dst));
        self.last = Some((*ends, numbers));
        Some(numbers)
    }

    fn number(&mut self, address: IpAddr) -> Addr {
        if let Some(number) = self.numbers.get(&address) {
            return *number;
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.known.push(None);
            Addr((self.known.len() - 1) as u32)
        });
        if let Some(place) = self.known.get_mut(number.0 as usize) {
            *place = Some(address);
        }
        self.numbers.insert(address, number);
        number
    }

    /// Takes back every number that is not in use.
    fn sweep(&mut self, in_use: impl FnOnce(&mut dyn FnMut(Addr))) {
        let mut kept = vec![false; self.known.len()];
        in_use(&mut |addr: Addr| {
            if let Some(place) = kept.get_mut(addr.0 as usize) {
                *place = true;
            }
        });
        for (i, kept) in kept.into_iter().enumerate() {
            if let Some(address) = self.known[i].take_if(|_| !kept) {
                self.numbers.remove(&address);
                self.free.push(Addr(i as u32));
            }
        }
        self.last = None;
        self.sweeps += 1;
        // a table full of flows is not asked again for every packet
        self.patience = if self.free.len() < self.limit / PATIENCE { self.limit / PATIENCE } else { 0 };
    }

    /// The address with this number.
    pub fn address(&self, addr: Addr) -> Option<IpAddr> {
        self.known.get(addr.0 as usize).copied().flatten()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// How often numbers were taken back.
    pub const fn sweeps(&self) -> u64 {
        self.sweeps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    fn ends(a: u32, b: u32) -> Ends {
        Ends::V4 { src: Ipv4Addr::from(a), dst: Ipv4Addr::from(b) }
    }

    fn nobody(_: &mut dyn FnMut(Addr)) {}

    #[test]
    fn an_address_has_one_number_whichever_end_it_is() {
        let mut table = Addresses::new(100);
        let (a, b) = table.find(&ends(1, 2), nobody).unwrap();
        assert_eq!(table.find(&ends(2, 1), nobody), Some((b, a)));
        assert_eq!(table.find(&ends(1, 3), nobody).unwrap().0, a);
        assert_eq!(table.find(&ends(7, 7), nobody).map(|(x, y)| x == y), Some(true));
        // an IPv6 address that looks like an IPv4 one is another
        let mapped = |n| Ipv4Addr::from(n).to_ipv6_mapped();
        let six = table.find(&Ends::V6 { src: mapped(1), dst: Ipv6Addr::LOCALHOST }, nobody).unwrap();
        assert!(six.0 != a);
        assert_eq!(table.address(six.0), Some(mapped(1).into()));
        assert_eq!((table.address(a), table.len()), (Some(Ipv4Addr::from(1).into()), 6));
    }

    #[test]
    fn a_full_table_gives_out_what_no_flow_uses() {
        let mut table = Addresses::new(64);
        let kept = table.find(&ends(1, 2), nobody).unwrap();
        for i in 0..31 {
            table.find(&ends(100 + 2 * i, 101 + 2 * i), nobody).unwrap();
        }
        assert_eq!((table.len(), table.sweeps()), (64, 0));
        let use_kept = |mark: &mut dyn FnMut(Addr)| {
            mark(kept.0);
            mark(kept.1);
            mark(Addr(9999)); // a number we never gave out
        };
        assert!(table.find(&ends(500, 501), use_kept).is_some());
        assert_eq!((table.len(), table.sweeps()), (4, 1));
        assert_eq!(table.find(&ends(1, 2), nobody), Some(kept));
    }

    #[test]
    fn when_all_are_in_use_the_packet_passes_and_flows_are_not_asked_each_time() {
        let mut table = Addresses::new(32);
        for i in 0..16 {
            table.find(&ends(2 * i, 2 * i + 1), nobody).unwrap();
        }
        let mut asked = 0;
        for i in 0..30 {
            let all = |mark: &mut dyn FnMut(Addr)| {
                asked += 1;
                (0..32).for_each(|n| mark(Addr(n)));
            };
            assert_eq!(table.find(&ends(1000 + i, 1), all), None);
        }
        assert!(asked > 1 && asked < 15, "{asked}");
        assert!(table.find(&ends(0, 1), nobody).is_some(), "the known are still known");
    }
}
