//! Runs the network of a scenario on the driver's data thread.

use crate::control::{Command, Commands, RequestHandler};
use crate::relay::{Names, network};
use crate::samples::Samples;
use bentpipe_base::Instant;
use bentpipe_driver::{
    Core, Error, Hosts, Journal, LiveNetwork, NetworkSetup, Pacing, Preamble, ThreadSetup, Timing, TurnHook,
};
use bentpipe_os::{Clock, PacketPort};
use bentpipe_report::{FlowRouterReport, GatewayReport, InstrumentReport, LinkReport, NodeReport};
use bentpipe_scenario::{Scenario, to_toml};
use bentpipe_sim::Record;
use bentpipe_sim::report::{flow_router_reports, gateway_reports, link_reports, node_reports};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};

/// The port of a host, given to the thread.
#[derive(Debug)]
pub struct HostPort {
    /// The host's index among the scenario's nodes.
    pub host: usize,
    /// The port for its packets.
    pub port: Box<dyn PacketPort>,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
}

/// What to run.
#[derive(Debug)]
pub struct Setup {
    /// The scenario.
    pub scenario: Scenario,
    /// How much faster the scenario's timeline runs.
    pub speed: f64,
    /// The ports of the hosts, in the order of the nodes.
    pub ports: Vec<HostPort>,
    /// The host that routes to other networks.
    pub default_route_host: Option<usize>,
    /// The run's clock, shared by all parts of the run.
    pub clock: Clock,
    /// Where to record all inputs.
    pub journal: Option<PathBuf>,
    /// Record the time series of the links and the scenario's instruments.
    pub record: bool,
    /// Ask for real-time priority.
    pub realtime: bool,
}

/// Results of a run.
#[derive(Debug)]
pub struct Outcome {
    /// Reports of links, as in a simulated run.
    pub links: Vec<LinkReport>,
    /// Reports of gateways, as in a simulated run.
    pub gateways: Vec<GatewayReport>,
    /// Reports of flow routers, as in a simulated run.
    pub flow_routers: Vec<FlowRouterReport>,
    /// Reports of nodes of other kinds, as in a simulated run.
    pub nodes: Vec<NodeReport>,
    /// Time series of the links, if requested.
    pub record: Option<Record>,
    /// Results of the scenario's instruments, if time series were requested.
    pub instruments: Vec<InstrumentReport>,
    /// Whether the machine was fast enough.
    pub timing: Timing,
    /// Time of the end.
    pub until: Instant,
    /// Priority of the thread, and why it is not higher.
    pub priority: String,
}

/// A link that is running.
#[derive(Debug)]
pub struct Running {
    driver: bentpipe_driver::Running<Outcome>,
    commands: Sender<Command>,
}

/// Installs something on the network on the data thread before the run, such as a capture tap.
pub type Install = Box<dyn FnOnce(&mut LiveNetwork, &Names) + Send>;

impl Running {
    /// Starts the thread and waits until it is ready to relay.
    ///
    /// # Errors
    /// When it could not start, or the journal cannot be written.
    pub fn start(setup: Setup, install: Option<Install>) -> Result<Self, Error> {
        let Setup { mut scenario, speed, mut ports, default_route_host, journal, record, .. } = setup;
        ports.sort_by_key(|port| port.host);
        let addresses: Vec<(usize, IpAddr)> =
            ports.iter().flat_map(|p| p.addresses.iter().map(|a| (p.host, *a))).collect();
        let (commands, receiver) = channel();
        let thread = ThreadSetup {
            name: "bentpipe-link",
            ports: ports.into_iter().map(|port| port.port).collect(),
            clock: setup.clock,
            pacing: Pacing::Exact,
            realtime: setup.realtime,
        };
        let make = move || {
            let preamble = Preamble::new(to_toml(&scenario), speed, addresses.clone(), default_route_host);
            let journal = journal.map(|path| Journal::create(&path, &preamble)).transpose()?;
            crate::speed::speed_up(&mut scenario, speed);
            let (mut net, names) = network(&scenario, Hosts::new(addresses, default_route_host));
            if let Some(install) = install {
                install(&mut net, &names);
            }
            let samples = record.then(|| Samples::new(&scenario, &mut net, &names));
            let commands = Commands(receiver, RequestHandler::new(&scenario, names.links()));
            let mut attendants: Vec<Box<dyn TurnHook>> = vec![Box::new(commands)];
            attendants.extend(samples.iter().map(|s| Box::new(s.clone()) as Box<dyn TurnHook>));
            let finish = move |core: Core| outcome(core, &names, samples.as_ref());
            Ok(NetworkSetup { net, journal, begin: None, hooks: attendants, finish: Box::new(finish) })
        };
        Ok(Self { driver: bentpipe_driver::Running::start(thread, make)?, commands })
    }

    /// Sends a request to the thread and wakes it.
    pub fn command(&self, command: Command) {
        // if the thread has ended, the reply channel is closed
        let _ = self.commands.send(command);
        self.driver.wake();
    }

    /// True if the thread has ended by itself, because a port is gone.
    pub fn has_ended(&self) -> bool {
        self.driver.has_ended()
    }

    /// Ends the run.
    ///
    /// # Errors
    /// The error that ended the run earlier, if any.
    pub fn stop(self) -> Result<Outcome, Error> {
        let priority = self.driver.priority().0.to_owned();
        Ok(Outcome { priority, ..self.driver.stop()? })
    }
}

fn outcome(mut core: Core, names: &Names, samples: Option<&Samples>) -> Result<Outcome, Error> {
    let (record, instruments) = samples.and_then(|s| s.finish(&mut core.net)).unzip();
    Ok(Outcome {
        gateways: names.with(&mut core.net, gateway_reports),
        flow_routers: names.with(&mut core.net, |net| flow_router_reports(net)),
        nodes: names.with(&mut core.net, |net| node_reports(net)),
        links: names.with(&mut core.net, link_reports),
        record,
        instruments: instruments.unwrap_or_default(),
        timing: core.timing()?,
        until: core.net.now(),
        priority: String::new(),
    })
}
