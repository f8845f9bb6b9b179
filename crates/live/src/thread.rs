//! A link that runs: the driver's data thread with a scenario's network.

use crate::control::{Command, Commands};
use crate::relay::{Names, network};
use crate::samples::Samples;
use bentpipe_base::Instant;
use bentpipe_driver::{Attendant, Core, Error, Hosts, Journal, LiveNetwork, Made, Pacing, Preamble, Timing};
use bentpipe_os::{Clock, PacketPort};
use bentpipe_report::{GatewayReport, InstrumentReport, LinkReport, NodeReport};
use bentpipe_scenario::{Scenario, to_toml};
use bentpipe_sim::Record;
use bentpipe_sim::report::{gateway_reports, link_reports, node_reports};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};

/// A host's door, given to the thread.
#[derive(Debug)]
pub struct Door {
    /// The host's place among the scenario's nodes.
    pub host: usize,
    /// Where its packets come and go.
    pub port: Box<dyn PacketPort>,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
}

/// What runs.
#[derive(Debug)]
pub struct Setup {
    /// The network.
    pub scenario: Scenario,
    /// How much faster the scenario's timeline runs.
    pub speed: f64,
    /// The hosts, in their order among the nodes.
    pub doors: Vec<Door>,
    /// The host that leads on to other networks.
    pub gate: Option<usize>,
    /// The run's clock, shared with everything that takes part.
    pub clock: Clock,
    /// Where to record all inputs.
    pub journal: Option<PathBuf>,
    /// Keep series of the links, and what the scenario's instruments see.
    pub record: bool,
    /// Ask for real-time priority.
    pub realtime: bool,
}

/// What came out.
#[derive(Debug)]
pub struct Outcome {
    /// Links, as in a simulated report.
    pub links: Vec<LinkReport>,
    /// Gateways, likewise.
    pub gateways: Vec<GatewayReport>,
    /// Nodes of kinds that are not built in, likewise.
    pub nodes: Vec<NodeReport>,
    /// Series of the links, when asked for.
    pub record: Option<Record>,
    /// What the scenario's instruments saw, when series were asked for.
    pub instruments: Vec<InstrumentReport>,
    /// Whether the machine was fast enough.
    pub timing: Timing,
    /// When it ended.
    pub until: Instant,
    /// What priority the thread had, and why no better.
    pub priority: String,
}

/// A link that is running.
#[derive(Debug)]
pub struct Running {
    driver: bentpipe_driver::Running<Outcome>,
    commands: Sender<Command>,
}

/// Something to install on the network before it runs: a tap that captures, made on the data thread.
pub type Install = Box<dyn FnOnce(&mut LiveNetwork, &Names) + Send>;

impl Running {
    /// Starts the thread and waits until it is ready to relay.
    ///
    /// # Errors
    /// When it could not start, or the journal cannot be written.
    pub fn start(setup: Setup, install: Option<Install>) -> Result<Self, Error> {
        let Setup { scenario, speed, mut doors, gate, clock, journal, record, realtime } = setup;
        doors.sort_by_key(|door| door.host);
        let known: Vec<(usize, IpAddr)> =
            doors.iter().flat_map(|d| d.addresses.iter().map(|a| (d.host, *a))).collect();
        let (commands, receiver) = channel();
        let setup = bentpipe_driver::Setup {
            name: "bentpipe-link",
            ports: doors.into_iter().map(|door| door.port).collect(),
            clock,
            pacing: Pacing::Exact,
            realtime,
        };
        let make = move || {
            let mut scenario = scenario;
            let preamble = Preamble::new(to_toml(&scenario), speed, known.clone(), gate);
            let journal = journal.map(|path| Journal::create(&path, &preamble)).transpose()?;
            crate::speed::faster(&mut scenario, speed);
            let (mut net, names) = network(&scenario, Hosts::new(known, gate));
            if let Some(install) = install {
                install(&mut net, &names);
            }
            let samples = record.then(|| Samples::new(&scenario, &mut net, &names));
            let commands = Commands::new(receiver, &scenario, names.links());
            let mut attendants: Vec<Box<dyn Attendant>> = vec![Box::new(commands)];
            if let Some(samples) = &samples {
                attendants.push(Box::new(samples.clone()));
            }
            let finish = move |core: Core| outcome(core, &names, samples.as_ref());
            Ok(Made { net, journal, begin: None, attendants, finish: Box::new(finish) })
        };
        Ok(Self { driver: bentpipe_driver::Running::start(setup, make)?, commands })
    }

    /// Sends a request to the thread and wakes it.
    pub fn command(&self, command: Command) {
        // a thread that has ended answers nobody: the command's own reply channel says so
        let _ = self.commands.send(command);
        self.driver.wake();
    }

    /// True when the thread has ended by itself: a port is gone.
    pub fn has_ended(&self) -> bool {
        self.driver.has_ended()
    }

    /// Ends the run.
    ///
    /// # Errors
    /// What ended it before, if something did.
    pub fn stop(self) -> Result<Outcome, Error> {
        let priority = self.driver.priority().0.to_owned();
        Ok(Outcome { priority, ..self.driver.stop()? })
    }
}

fn outcome(mut core: Core, names: &Names, samples: Option<&Samples>) -> Result<Outcome, Error> {
    let (record, instruments) = samples.and_then(|s| s.finish(&mut core.net)).unzip();
    Ok(Outcome {
        gateways: names.with(&mut core.net, gateway_reports),
        nodes: names.with(&mut core.net, |net| node_reports(net)),
        links: names.with(&mut core.net, link_reports),
        record,
        instruments: instruments.unwrap_or_default(),
        timing: core.timing()?,
        until: core.net.now(),
        priority: String::new(),
    })
}
