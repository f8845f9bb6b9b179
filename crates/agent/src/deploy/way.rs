//! The data path of either method, as the loop of a running agent sees it.

use super::Error;
use super::ports::Opened;
use crate::kernel::{KernelPath, peers};
use crate::path::{FlowFile, Line, Relay};
use crate::split::Split;
use crate::status::{MOST_FLOWS, Status};
use bentpipe_base::{Duration, Instant, World};
use bentpipe_kernel_rate::{KernelRate, Policy};
use bentpipe_os::{random, wait};
use bentpipe_scenario::agent_file::{AgentFile, Method};
use std::io;
use std::sync::Arc;

/// Time to send the last packets, of connections that are reset at the end.
const LAST_PACKETS: Duration = Duration::from_millis(200);

/// The data path.
pub(super) enum Way {
    /// It ends the host's connections.
    Split(Box<Relay>),
    /// It signals in the host's own packets.
    Kernel(Box<KernelPath>),
}

/// What must be had before privileges are dropped.
pub(super) struct Loaded {
    seed: u64,
    rates: Option<KernelRate>,
}

impl Loaded {
    /// Loads the congestion control, if `file` wants it.
    pub(super) fn of(file: &AgentFile) -> Result<Self, Error> {
        let seed = random().map_err(|e| Error::system("/dev/urandom", e))?;
        let policy = || Policy { cgroup: None, peers: peers(&file.site.policy) };
        let rates = match file.method {
            Method::Split => None,
            Method::Kernel => Some(KernelRate::load(&policy())?),
        };
        Ok(Self { seed, rates })
    }

    /// True if entries of maps are written later.
    pub(super) const fn has_maps(&self) -> bool {
        self.rates.is_some()
    }
}

impl Way {
    /// The data path of `file` between these ports.
    pub(super) fn new(
        file: &Arc<AgentFile>,
        opened: Opened,
        loaded: Loaded,
        flows: FlowFile,
    ) -> Result<Self, Error> {
        let Opened { ports, unit, scope, mtu } = opened;
        if let Some(rates) = loaded.rates {
            let of = (Arc::clone(file), mtu[1]);
            let path = KernelPath::new(ports, of, Box::new(rates), flows, loaded.seed);
            return Ok(Self::Kernel(Box::new(path.map_err(|unfit| Error::Path(unfit.to_string()))?)));
        }
        let mut world = World::new(loaded.seed);
        let mut split = Split::new(&mut world, Arc::clone(file), mtu);
        split.set_log(Box::new(flows));
        let mut relay = Relay::new(ports, unit, scope, split, world);
        if let Some(rules) = &file.datagrams {
            relay.take_datagrams(rules);
        }
        Ok(Self::Split(Box::new(relay)))
    }

    /// Its ports, and its clock.
    pub(super) fn line(&mut self) -> &mut Line {
        match self {
            Self::Split(relay) => relay.line(),
            Self::Kernel(path) => path.line(),
        }
    }

    /// Reads, handles timers, sends. Returns when to call again if the ports have no input.
    pub(super) fn turn(&mut self) -> Result<Instant, Error> {
        let next = match self {
            Self::Split(relay) => relay.turn(),
            Self::Kernel(path) => path.turn(),
        };
        next.map_err(|e| Error::Path(e.to_string()))
    }

    /// Takes no new connection, and asks for no further flow of datagrams, from now on.
    pub(super) fn stop_accepting(&mut self) {
        match self {
            Self::Split(relay) => {
                relay.stop_asking();
                relay.split().stop_accepting();
            }
            Self::Kernel(path) => path.stop_accepting(),
        }
    }

    /// Number of connections that have not ended.
    pub(super) fn flows(&mut self) -> usize {
        match self {
            Self::Split(relay) => relay.split().flows(),
            Self::Kernel(path) => path.flows(),
        }
    }

    /// Ends the connections that are left; says what becomes of them.
    pub(super) fn let_go(&mut self) -> Result<&'static str, Error> {
        let Self::Split(relay) = self else { return Ok("go on without rates") };
        let now = relay.line().clock().now();
        relay.split().abort_all(now);
        let end = now + LAST_PACKETS;
        while relay.line().clock().now() < end {
            let next = relay.turn().map_err(|e| Error::Path(e.to_string()))?.min(end);
            let line = relay.line();
            wait::wait(&line.fds(), Some(next), line.clock(), Duration::ZERO)
                .map_err(|e| Error::system("waiting", e))?;
        }
        Ok("were reset")
    }

    /// Handles what has arrived, gives the rates of datagrams back and sends what is held.
    pub(super) fn release_datagrams(&mut self) -> Result<(), Error> {
        match self {
            Self::Split(relay) => relay.release_datagrams().map_err(|e| Error::Path(e.to_string())),
            Self::Kernel(_) => Ok(()),
        }
    }

    /// Fills in what it knows.
    pub(super) fn describe(&mut self, status: &mut Status) {
        let line = self.line();
        let now = line.clock().now();
        status.uptime_s = now.as_secs_f64();
        status.traffic = line.traffic();
        status.port_drops = named(&line.drops());
        status.open = self.flows();
        match self {
            Self::Split(relay) => {
                status.datagrams = relay.datagram_status(MOST_FLOWS);
                let split = relay.split();
                status.flows = split.views(now, MOST_FLOWS);
                status.counters = split.counters();
                status.memory[..2].copy_from_slice(&[split.reserved(), split.used()]);
            }
            Self::Kernel(path) => {
                status.flows = path.views(now, MOST_FLOWS);
                let raised = status.kernel.take().unwrap_or_default().raised;
                status.kernel = Some(crate::kernel::KernelView { raised, ..path.view() });
            }
        }
    }
}

/// Packets lost at the ports, by place; places without losses are left out.
fn named(drops: &io::Result<[bentpipe_os::PortDrops; 2]>) -> Vec<(String, u64)> {
    let sides = ["host", "network"].into_iter().zip(drops.iter().flatten());
    let all = sides.flat_map(|(side, drops)| {
        [("received", drops.receive), ("sent", drops.send)].map(|(what, n)| (format!("{side} {what}"), n))
    });
    all.filter(|(_, n)| *n > 0).collect()
}
