//! Faults with an address, their combinations, and the smallest list that still fails.

use super::end::{Flow, MSS, host};
use super::net::{Entering, Fate, HOPS, Net, SITES};
use bentpipe_base::{IpVersion, Rate};
use bentpipe_flow_router::RouterConfig;
use bentpipe_tcp::RateState;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) const KINDS: [Fate; 3] = [Fate::Lose, Fate::Double, Fate::Delay];

/// Payload of a full segment.
pub(crate) const SEGMENT: u64 = MSS as u64 - 12 - 16;

/// A number that an acceptance run sets in the environment.
pub(crate) fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

/// Most faults that are combined in an acceptance run.
pub(crate) fn most_faults() -> Option<u64> {
    Some(setting("BENTPIPE_FAULTS", 0)).filter(|most| *most > 0)
}

/// A fault: what happens to the n-th packet on a hop and way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) hop: usize,
    pub(crate) way: usize,
    pub(crate) nth: u16,
    pub(crate) fate: Fate,
}

/// Which packets are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Among {
    All,
    /// Those of the first flow that signal.
    Signals,
}

pub(crate) fn rate(bps: u64) -> Rate {
    Rate::from_bps(bps).unwrap()
}

/// Both sites: the second has less.
pub(crate) fn sites() -> [RouterConfig; SITES] {
    [RouterConfig::new(rate(2_500_000)), RouterConfig::new(rate(2_000_000))]
}

/// What is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traffic {
    pub(crate) ip: IpVersion,
    /// Segments that each side of each flow sends, and after how many of the first flow it starts.
    pub(crate) flows: [([u64; 2], u64); 2],
}

impl Traffic {
    /// Runs it under these faults.
    pub(crate) fn net(&self, faults: &[Fault], among: Among) -> Net<'static> {
        let config = Arc::new(host(self.ip));
        let flows = self.flows.iter().enumerate();
        let flow = |(n, (sizes, start)): (usize, &([u64; 2], u64))| {
            Flow::new(&config, n, start * SEGMENT, sizes.map(|segments| segments * SEGMENT))
        };
        let flows = flows.map(flow).collect();
        let faults = faults.to_vec();
        Net::new(&sites(), flows, move |entering: Entering| {
            let Some(nth) = (if among == Among::All { Some(entering.nth) } else { entering.signal }) else {
                return Fate::Pass;
            };
            let place = (entering.hop, entering.way, nth);
            let found = faults.iter().find(|fault| (fault.hop, fault.way, fault.nth) == place);
            found.map_or(Fate::Pass, |fault| fault.fate)
        })
    }

    /// Returns in which states the rates of all ends are at the end.
    pub(crate) fn check(&self, faults: &[Fault], among: Among) -> Result<Vec<RateState>, String> {
        let mut net = self.net(faults, among);
        net.complete()?;
        Ok(net.flows.iter().flat_map(Flow::states).collect())
    }

    /// Removes faults as long as it still fails; returns what is left, and how it fails.
    pub(crate) fn shrink(&self, faults: &[Fault], among: Among) -> (Vec<Fault>, String) {
        let mut left = faults.to_vec();
        let mut why = self.check(&left, among).err().unwrap_or_default();
        while let Some((fewer, reason)) = (0..left.len()).find_map(|i| {
            let mut fewer = left.clone();
            fewer.remove(i);
            self.check(&fewer, among).err().map(|reason| (fewer, reason))
        }) {
            (left, why) = (fewer, reason);
        }
        (left, why)
    }
}

/// All faults of the packets that a run without faults has on each hop and way, and of `more` after them.
pub(crate) fn places(counted: &[[u16; 2]; HOPS], more: u16) -> Vec<Fault> {
    let mut all = Vec::new();
    for (hop, ways) in counted.iter().enumerate() {
        for (way, count) in ways.iter().enumerate() {
            for nth in 0..count + more {
                all.extend(KINDS.map(|fate| Fault { hop, way, nth, fate }));
            }
        }
    }
    all
}

/// Calls `each` with every combination of `n` of these faults, not two of one packet.
pub(crate) fn combinations(places: &[Fault], n: usize, each: &mut dyn FnMut(&[Fault])) {
    fn extend(rest: &[Fault], n: usize, chosen: &mut Vec<Fault>, each: &mut dyn FnMut(&[Fault])) {
        if n == 0 {
            return each(chosen);
        }
        for (i, fault) in rest.iter().enumerate() {
            let same = |f: &Fault| (f.hop, f.way, f.nth) == (fault.hop, fault.way, fault.nth);
            if chosen.iter().any(same) {
                continue;
            }
            chosen.push(*fault);
            extend(&rest[i + 1..], n - 1, chosen, each);
            chosen.pop();
        }
    }
    extend(places, n, &mut Vec::new(), each);
}

/// Runs that failed, by the smallest faults that make them fail.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    runs: u64,
    failed: u64,
    shown: Vec<String>,
    /// Ends by the state of their rate at the end.
    states: BTreeMap<&'static str, u64>,
}

impl Failures {
    /// Most that are shrunk and shown.
    const MOST: usize = 20;

    pub(crate) fn check(&mut self, traffic: Traffic, faults: &[Fault], among: Among) {
        self.runs += 1;
        if let Ok(states) = traffic.check(faults, among) {
            for state in states {
                *self.states.entry(state.word()).or_default() += 1;
            }
            return;
        }
        self.failed += 1;
        if self.shown.len() < Self::MOST {
            let (left, why) = traffic.shrink(faults, among);
            let line = format!("{:?} {among:?} {left:?}: {why}", traffic.ip);
            if !self.shown.contains(&line) {
                println!("{line}");
                self.shown.push(line);
            }
        }
    }

    /// Prints the sum, and fails if any run did.
    pub(crate) fn report(&self, what: &str) {
        assert!(self.failed == 0, "{} of {} {what} failed: {:#?}", self.failed, self.runs, self.shown);
        let ends: Vec<_> = self.states.iter().map(|(state, n)| format!("{state} {n}")).collect();
        println!("{} {what}, none failed; ends: {}", self.runs, ends.join(", "));
    }
}
