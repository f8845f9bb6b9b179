//! Numbers for addresses: the node's [`Addr`] has 32 bits, an IPv6 address 128.
//!
//! A tree, since its worst case is that of any address a stranger may choose; and most packets belong to the
//! pair of addresses that was asked for last. The table is bounded. When it is full, numbers that no flow of
//! the gateway uses are given out again; when all are in use, the packet passes without one. Records of the
//! numbers can be kept outside, so that a restarted gateway knows its flows again: written before the flows'
//! own.

use crate::address_record::{self as record, RECORD, Record};
use crate::packet::Addr;
use core::net::IpAddr;
use std::collections::{BTreeMap, VecDeque};

/// Addresses and their numbers.
#[derive(Debug)]
pub struct Addresses {
    numbers: BTreeMap<IpAddr, Addr>,
    /// By number; `None` where a number is free.
    known: Vec<Option<IpAddr>>,
    free: Vec<Addr>,
    limit: usize,
    /// The pair that was asked for last, and its numbers.
    last: Option<((IpAddr, IpAddr), (Addr, Addr))>,
    /// Pairs to refuse before all flows are asked again.
    patience: usize,
    sweeps: u64,
    /// Numbers whose records have changed, when somebody takes them.
    changed: Option<VecDeque<Addr>>,
}

/// What of a table's size must be asked for before a sweep that freed little is repeated: one part in so
/// many.
const PATIENCE: usize = 16;

impl Default for Addresses {
    /// Room for a million addresses.
    fn default() -> Self {
        Self::new(1 << 20)
    }
}

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
            changed: None,
        }
    }

    /// Numbers below `first` are somebody else's: none of them is given out.
    pub fn reserve(&mut self, first: u32) {
        self.known.resize(self.known.len().max(first as usize), None);
    }

    /// Gives `address` a number of the caller's choice, if both are free.
    pub fn name(&mut self, addr: Addr, address: IpAddr) -> bool {
        self.claim(addr.0 as usize, address)
    }

    /// From now on changed records are kept for [`Addresses::take_changed`]; all that are there count as
    /// changed.
    pub fn keep_journal(&mut self) {
        self.changed = Some((0..self.known.len() as u32).map(Addr).collect());
    }

    /// A record that has changed: its number, and what belongs there now.
    pub fn take_changed(&mut self) -> Option<(u32, [u8; RECORD])> {
        let addr = self.changed.as_mut()?.pop_front()?;
        Some((addr.0, record::write(self.address(addr))))
    }

    /// Takes up the numbers of an earlier table from its records, one after the other; returns how many could
    /// not be used: torn, beyond the table's bound, or of an address that has a number.
    pub fn restore(&mut self, bytes: &[u8]) -> u32 {
        let mut unused = 0;
        let (records, rest) = bytes.as_chunks::<RECORD>();
        for (i, place) in records.iter().enumerate() {
            match record::read(place) {
                Record::Empty => {}
                Record::Address(address) if self.claim(i, address) => {}
                Record::Address(_) | Record::Damaged => unused += 1,
            }
        }
        self.free =
            (0..self.known.len() as u32).rev().map(Addr).filter(|a| self.address(*a).is_none()).collect();
        unused + u32::from(!rest.is_empty())
    }

    /// Gives `address` the number `i`, if both are free.
    fn claim(&mut self, i: usize, address: IpAddr) -> bool {
        if i >= self.limit || self.numbers.contains_key(&address) {
            return false;
        }
        if self.known.len() <= i {
            self.known.resize(i + 1, None);
        }
        if self.known[i].is_some() {
            return false;
        }
        self.known[i] = Some(address);
        self.numbers.insert(address, Addr(i as u32));
        true
    }

    fn note(&mut self, addr: Addr) {
        if let Some(changed) = &mut self.changed {
            changed.push_back(addr);
        }
    }

    /// The numbers of source and destination. `in_use` names every address that must keep its number; it is
    /// asked when the table is full. `None` when there is no room still.
    #[inline]
    pub fn find(
        &mut self,
        ends: (IpAddr, IpAddr),
        in_use: impl FnOnce(&mut dyn FnMut(Addr)),
    ) -> Option<(Addr, Addr)> {
        match &self.last {
            Some((last, numbers)) if *last == ends => Some(*numbers),
            _ => self.look(ends, in_use),
        }
    }

    fn look(
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
        self.last = Some((ends, numbers));
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
        self.note(number);
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
                self.note(Addr(i as u32));
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
        // an IPv6 address that looks like an IPv4 one is another
        let mapped = |n| Ipv4Addr::from(n).to_ipv6_mapped();
        let six = table.find((mapped(1).into(), Ipv6Addr::LOCALHOST.into()), nobody).unwrap();
        assert!(six.0 != a);
        assert_eq!(table.address(six.0), Some(mapped(1).into()));
        assert_eq!((table.address(a), table.len()), (Some(Ipv4Addr::from(1).into()), 6));
    }

    #[test]
    fn a_full_table_gives_out_what_no_flow_uses() {
        let mut table = Addresses::new(64);
        let kept = table.find(ends(1, 2), nobody).unwrap();
        for i in 0..31 {
            table.find(ends(100 + 2 * i, 101 + 2 * i), nobody).unwrap();
        }
        assert_eq!((table.len(), table.sweeps()), (64, 0));
        let use_kept = |mark: &mut dyn FnMut(Addr)| {
            mark(kept.0);
            mark(kept.1);
            mark(Addr(9999)); // a number we never gave out
        };
        assert!(table.find(ends(500, 501), use_kept).is_some());
        assert_eq!((table.len(), table.sweeps()), (4, 1));
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
        // full: all but two numbers are taken back, and one given out again
        let kept = |mark: &mut dyn FnMut(Addr)| [six.0, six.1].into_iter().for_each(mark);
        table.find(ends(1, 900), kept).unwrap();
        let mut file = vec![0; 16 * RECORD];
        while let Some((i, record)) = table.take_changed() {
            file[i as usize * RECORD..][..RECORD].copy_from_slice(&record);
        }
        let mut again = Addresses::new(16);
        assert_eq!(again.restore(&file), 0);
        assert_eq!((again.len(), again.find(v6, nobody)), (4, Some(six)));
        assert_eq!(again.find(ends(1, 900), nobody), table.find(ends(1, 900), nobody));
        let fresh = again.find(ends(55, 56), nobody).unwrap();
        assert!(again.known.len() <= 16 && fresh.0 != six.0 && fresh.0 != six.1);
        // a torn record is left out, and so is what does not fit
        let at = six.0.0 as usize * RECORD;
        file[at + 5] ^= 1;
        let mut torn = Addresses::new(16);
        assert_eq!((torn.restore(&file), torn.len()), (1, 3));
        let doubled = [&file[..], &file[..]].concat();
        assert_eq!(Addresses::new(16).restore(&doubled), 1 + 4);
    }
}
