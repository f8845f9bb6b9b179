//! Maps addresses to numbers: an [`Addr`] has 32 bits, an IPv6 address 128.
//!
//! The map is a tree, because its worst case does not depend on the addresses, which an attacker may choose.
//! The last pair is cached, because most packets have the same pair as the one before. The table is bounded.
//! When it is full, numbers that no flow of the gateway uses are freed; if all are in use, the packet passes
//! without a number. The numbers can be recorded outside, so that a restarted gateway recognises its flows;
//! write them before the records of the flows.

use crate::address_record::{self as record, RECORD};
use crate::packet::Addr;
use core::net::IpAddr;
use std::collections::{BTreeMap, VecDeque};

/// Addresses and their numbers.
#[derive(Debug)]
pub struct Addresses {
    numbers: BTreeMap<IpAddr, Addr>,
    /// Addresses by number; `None` where a number is free.
    by_number: Vec<Option<IpAddr>>,
    free: Vec<Addr>,
    limit: usize,
    /// The last pair looked up, and its numbers.
    last: Option<((IpAddr, IpAddr), (Addr, Addr))>,
    /// Number of pairs to refuse before the next sweep.
    refusals_left: usize,
    /// Numbers whose records have changed, if a journal is kept.
    changed: Option<VecDeque<Addr>>,
}

/// After a sweep that freed less than 1/`PATIENCE` of the table, that many requests are refused.
const PATIENCE: usize = 16;

impl Default for Addresses {
    /// Room for a million addresses.
    fn default() -> Self {
        Self::new(1 << 20)
    }
}

impl Addresses {
    /// A table of at most `limit` addresses, at least two.
    pub fn new(limit: u32) -> Self {
        Self {
            numbers: BTreeMap::new(),
            by_number: Vec::new(),
            free: Vec::new(),
            limit: (limit as usize).max(2),
            last: None,
            refusals_left: 0,
            changed: None,
        }
    }

    /// Reserves the numbers below `first`: none of them is assigned automatically.
    pub fn reserve(&mut self, first: u32) {
        self.by_number.resize(self.by_number.len().max(first as usize), None);
    }

    /// Assigns the number `addr` to `address`; returns false if either is taken, or the number is beyond the
    /// limit.
    pub fn assign(&mut self, addr: Addr, address: IpAddr) -> bool {
        let i = addr.0 as usize;
        if i >= self.limit || self.numbers.contains_key(&address) || self.address(addr).is_some() {
            return false;
        }
        self.by_number.resize(self.by_number.len().max(i + 1), None);
        self.by_number[i] = Some(address);
        self.numbers.insert(address, addr);
        true
    }

    /// Starts to record changes for [`Addresses::take_changed`]; all existing records count as changed.
    pub fn keep_journal(&mut self) {
        self.changed = Some((0..self.by_number.len() as u32).map(Addr).collect());
    }

    /// Takes a changed record: its number and its new content.
    pub fn take_changed(&mut self) -> Option<(u32, [u8; RECORD])> {
        let addr = self.changed.as_mut()?.pop_front()?;
        Some((addr.0, record::write(self.address(addr))))
    }

    /// Loads the numbers of an earlier table from its records. Returns how many could not be used: damaged,
    /// beyond the table's limit, or for an address that already has a number.
    pub fn restore(&mut self, bytes: &[u8]) -> u32 {
        let mut unused = 0;
        let (records, rest) = bytes.as_chunks::<RECORD>();
        for (i, place) in records.iter().enumerate() {
            match record::read(place) {
                Ok(None) => {}
                Ok(Some(address)) if self.assign(Addr(i as u32), address) => {}
                _ => unused += 1,
            }
        }
        self.free =
            (0..self.by_number.len() as u32).rev().map(Addr).filter(|a| self.address(*a).is_none()).collect();
        unused + u32::from(!rest.is_empty())
    }

    /// Adds a changed record to the journal, if one is kept.
    fn log_change(&mut self, addr: Addr) {
        if let Some(changed) = &mut self.changed {
            changed.push_back(addr);
        }
    }

    /// Returns the numbers of source and destination, and assigns them if needed. If the table is full,
    /// `in_use` must name every address that keeps its number. `None` if there is still no room.
    #[inline]
    pub fn find(
        &mut self,
        ends: (IpAddr, IpAddr),
        in_use: impl FnOnce(&mut dyn FnMut(Addr)),
    ) -> Option<(Addr, Addr)> {
        match &self.last {
            Some((last, numbers)) if *last == ends => Some(*numbers),
            _ => self.find_or_assign(ends, in_use),
        }
    }

    fn find_or_assign(
        &mut self,
        ends: (IpAddr, IpAddr),
        in_use: impl FnOnce(&mut dyn FnMut(Addr)),
    ) -> Option<(Addr, Addr)> {
        let (src, dst) = ends;
        let new = |table: &Self| {
            usize::from(!table.numbers.contains_key(&src))
                + usize::from(src != dst && !table.numbers.contains_key(&dst))
        };
        if self.numbers.len() + new(self) > self.limit {
            if self.refusals_left > 0 {
                self.refusals_left -= 1;
                return None;
            }
            self.sweep(in_use);
            if self.numbers.len() + new(self) > self.limit {
                return None;
            }
        }
        let numbers = (self.number(src), self.number(dst));
        self.last = Some((ends, numbers));
        Some(numbers)
    }

    fn number(&mut self, address: IpAddr) -> Addr {
        if let Some(number) = self.numbers.get(&address) {
            return *number;
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.by_number.push(None);
            Addr((self.by_number.len() - 1) as u32)
        });
        if let Some(place) = self.by_number.get_mut(number.0 as usize) {
            *place = Some(address);
        }
        self.numbers.insert(address, number);
        self.log_change(number);
        number
    }

    /// Frees every number that is not in use.
    fn sweep(&mut self, in_use: impl FnOnce(&mut dyn FnMut(Addr))) {
        let mut kept = vec![false; self.by_number.len()];
        in_use(&mut |addr: Addr| {
            if let Some(place) = kept.get_mut(addr.0 as usize) {
                *place = true;
            }
        });
        for (i, kept) in kept.into_iter().enumerate() {
            if let Some(address) = self.by_number[i].take_if(|_| !kept) {
                self.numbers.remove(&address);
                self.free.push(Addr(i as u32));
                self.log_change(Addr(i as u32));
            }
        }
        self.last = None;
        // if nearly all numbers are in use, do not sweep again for every packet
        self.refusals_left = if self.free.len() < self.limit / PATIENCE { self.limit / PATIENCE } else { 0 };
    }

    /// The number of an address, if it has one.
    pub fn known(&self, address: IpAddr) -> Option<Addr> {
        self.numbers.get(&address).copied()
    }

    /// The address with this number.
    pub fn address(&self, addr: Addr) -> Option<IpAddr> {
        self.by_number.get(addr.0 as usize).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{Ipv4Addr, Ipv6Addr};

    fn ends(a: u32, b: u32) -> (IpAddr, IpAddr) {
        (Ipv4Addr::from(a).into(), Ipv4Addr::from(b).into())
    }

    fn nobody(_: &mut dyn FnMut(Addr)) {}

    #[test]
    fn an_address_has_one_number_whichever_end_it_is() {
        let mut table = Addresses::new(100);
        let (a, b) = table.find(ends(1, 2), nobody).unwrap();
        assert_eq!(table.find(ends(2, 1), nobody), Some((b, a)));
        assert_eq!(table.find(ends(1, 3), nobody).unwrap().0, a);
        assert_eq!(table.find(ends(7, 7), nobody).map(|(x, y)| x == y), Some(true));
        // an IPv4-mapped IPv6 address is a different address
        let mapped = |n| Ipv4Addr::from(n).to_ipv6_mapped();
        let six = table.find((mapped(1).into(), Ipv6Addr::LOCALHOST.into()), nobody).unwrap();
        assert!(six.0 != a);
        assert_eq!(table.address(six.0), Some(mapped(1).into()));
        assert_eq!(
            (table.known(Ipv4Addr::from(1).into()), table.known(Ipv4Addr::from(99).into())),
            (Some(a), None)
        );
        assert_eq!((table.address(a), table.numbers.len()), (Some(Ipv4Addr::from(1).into()), 6));
    }

    #[test]
    fn a_full_table_gives_out_what_no_flow_uses() {
        let mut table = Addresses::new(64);
        let kept = table.find(ends(1, 2), nobody).unwrap();
        for i in 0..31 {
            table.find(ends(100 + 2 * i, 101 + 2 * i), nobody).unwrap();
        }
        assert_eq!(table.numbers.len(), 64);
        let use_kept = |mark: &mut dyn FnMut(Addr)| {
            mark(kept.0);
            mark(kept.1);
            mark(Addr(9999)); // never assigned
        };
        assert!(table.find(ends(500, 501), use_kept).is_some());
        assert_eq!(table.numbers.len(), 4);
        assert_eq!(table.find(ends(1, 2), nobody), Some(kept));
    }

    #[test]
    fn when_all_are_in_use_the_packet_passes_and_flows_are_not_asked_each_time() {
        let mut table = Addresses::new(32);
        for i in 0..16 {
            table.find(ends(2 * i, 2 * i + 1), nobody).unwrap();
        }
        let mut asked = 0;
        for i in 0..30 {
            let all = |mark: &mut dyn FnMut(Addr)| {
                asked += 1;
                (0..32).for_each(|n| mark(Addr(n)));
            };
            assert_eq!(table.find(ends(1000 + i, 1), all), None);
        }
        assert!(asked > 1 && asked < 15, "{asked}");
        assert!(table.find(ends(0, 1), nobody).is_some(), "the known are still known");
    }

    #[test]
    fn a_table_taken_up_from_its_records_says_the_same() {
        let mut table = Addresses::new(16);
        table.find(ends(1, 2), nobody).unwrap();
        table.keep_journal();
        let v6 = (Ipv6Addr::LOCALHOST.into(), Ipv6Addr::from(7).into());
        let six = table.find(v6, nobody).unwrap();
        for i in 0..6 {
            table.find(ends(100 + 2 * i, 101 + 2 * i), nobody).unwrap();
        }
        // full: all but two numbers are freed, and one is assigned again
        let kept = |mark: &mut dyn FnMut(Addr)| [six.0, six.1].into_iter().for_each(mark);
        table.find(ends(1, 900), kept).unwrap();
        let mut file = vec![0; 16 * RECORD];
        while let Some((i, record)) = table.take_changed() {
            file[i as usize * RECORD..][..RECORD].copy_from_slice(&record);
        }
        let mut again = Addresses::new(16);
        assert_eq!(again.restore(&file), 0);
        assert_eq!((again.numbers.len(), again.find(v6, nobody)), (4, Some(six)));
        assert_eq!(again.find(ends(1, 900), nobody), table.find(ends(1, 900), nobody));
        let fresh = again.find(ends(55, 56), nobody).unwrap();
        assert!(again.by_number.len() <= 16 && fresh.0 != six.0 && fresh.0 != six.1);
        // a damaged record is skipped, and so is one that does not fit
        let at = six.0.0 as usize * RECORD;
        file[at + 5] ^= 1;
        let mut torn = Addresses::new(16);
        assert_eq!((torn.restore(&file), torn.numbers.len()), (1, 3));
        let doubled = [&file[..], &file[..]].concat();
        assert_eq!(Addresses::new(16).restore(&doubled), 1 + 4);
    }
}
