//! What must hold during and after a run.

use super::end::{End, Flow};
use super::net::{Net, RTT, SITES};
use bentpipe_base::{Duration, Instant, Node};
use bentpipe_flow_router::{FlowRouter, RouterConfig};
use bentpipe_tcp::RateState;

/// Time between two looks at the routers.
const EVERY: Duration = Duration::from_millis(10);
/// Time after a fault within which a request is repeated and answered.
const PATIENCE: Duration = Duration::from_millis(500);
/// The longest that a run may take: timeouts double.
pub(crate) const LONGEST: Duration = Duration::from_secs(20_000);
/// After the end: TIME-WAIT, and the time after which routers forget.
const AFTER: Duration = Duration::from_secs(25);

/// Watches the routers during a run.
#[derive(Debug)]
pub(crate) struct Watch {
    capacity: [u64; SITES],
    pub(crate) last_fault: Instant,
    /// Flows that each router has known, and when that changed last.
    known: [[u64; 2]; SITES],
    changed: Instant,
    next: Instant,
    /// What did not hold.
    pub(crate) broken: Option<String>,
    /// Does not look.
    pub(crate) off: bool,
    /// Looks at which the sum of grants was compared.
    pub(crate) compared: u64,
}

/// A counter of a router.
pub(crate) fn counter(router: &FlowRouter, name: &str) -> u64 {
    let mut found = 0;
    router.counters(&mut |key, n| {
        if key == name {
            found = n;
        }
    });
    found
}

impl Watch {
    pub(crate) fn new(sites: &[RouterConfig; SITES]) -> Self {
        let capacity = |site: usize| (sites[site].rate.bps() as f64 * sites[site].utilisation) as u64;
        Self {
            capacity: [capacity(0), capacity(1)],
            last_fault: Instant::ZERO,
            known: Default::default(),
            changed: Instant::ZERO,
            next: Instant::ZERO,
            broken: None,
            off: false,
            compared: 0,
        }
    }

    /// Two round trips after the last fault, and after the last new flow, no router has given more than it
    /// has, but a step of the rate format: a smaller fall is not told. A flow that does not send cannot be
    /// told, nor one over IPv6 that had a timeout: its packets have no place until the next answer.
    pub(crate) fn look(&mut self, now: Instant, routers: &[[FlowRouter; 2]; SITES], flows: &[Flow]) {
        if self.off || now < self.next {
            return;
        }
        self.next = now + EVERY;
        for (site, way) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let known = counter(&routers[site][way], "flows");
            if known != self.known[site][way] {
                (self.known[site][way], self.changed) = (known, now);
            }
        }
        if now < self.last_fault.max(self.changed) + RTT * 2 {
            return;
        }
        for (site, way) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let is_silent = |flow: &Flow| {
                let passed = flow.passed[site][way];
                !passed.ended && passed.payload.is_some_and(|at| now.since(at) > RTT * 2)
            };
            if flows.iter().any(is_silent) {
                continue;
            }
            self.compared += 1;
            let (given, most) = (counter(&routers[site][way], "given_bps"), self.capacity[site]);
            if given > most + most / 511 {
                self.broken = Some(format!("site {site} way {way} gives {given} of {most} at {now}"));
            }
        }
    }
}

/// What an end must be at the end.
fn check_end(end: &End, peer: &End, last_fault: Instant) -> Result<(), String> {
    let Some(conn) = &end.conn else { return Err("was not opened".into()) };
    let Some(ended_at) = end.ended_at else {
        return Err(format!("did not end: {:?}, next {:?}", conn.state(), conn.next_timer()));
    };
    if let Some(event) = end.failed {
        return Err(format!("{event:?}"));
    }
    if let Some(at) = end.content.wrong {
        return Err(format!("byte {at} is wrong"));
    }
    if end.content.read != peer.bytes {
        return Err(format!("read {} of {}", end.content.read, peer.bytes));
    }
    let Some(rate) = conn.rate() else { return Err("does not signal".into()) };
    match rate.state {
        // the latter two are ordinary TCPs, after two timeouts in a row for instance
        RateState::Granted | RateState::Reduced | RateState::Plain | RateState::FallenBack => Ok(()),
        // so is one that ended before it was time to ask again
        RateState::Asked | RateState::AskingAgain if ended_at < last_fault + PATIENCE => Ok(()),
        state => Err(format!("its rate is {state:?} {} after the last fault", ended_at.since(last_fault))),
    }
}

impl Net<'_> {
    /// Runs to the end of all flows, and until the routers have forgotten them.
    pub(crate) fn complete(&mut self) -> Result<(), String> {
        while !self.is_over() && self.now < Instant::ZERO + LONGEST && self.watch.broken.is_none() {
            self.run(self.now + Duration::from_secs(1));
        }
        self.run(self.now + AFTER);
        if let Some(broken) = self.watch.broken.take() {
            return Err(broken);
        }
        for (n, flow) in self.flows.iter().enumerate() {
            for side in 0..2 {
                let checked = check_end(&flow.ends[side], &flow.ends[1 - side], self.watch.last_fault);
                checked.map_err(|why| format!("flow {n} side {side}: {why}"))?;
            }
        }
        for (i, router) in self.routers.iter().flatten().enumerate() {
            if !router.is_empty() {
                return Err(format!("router {} of site {} keeps state", i % 2, i / 2));
            }
        }
        Ok(())
    }
}
