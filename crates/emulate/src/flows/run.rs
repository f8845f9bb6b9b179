//! The thread that runs all flows: one epoll, one heap of wake-ups, the run's clock.

mod engines;

use super::datagrams::UdpFlow;
use super::engine::EngineHost;
use super::own::EngineFlow;
use super::setup::{HostNamespace, place_of, prepare};
use super::stream::{Side, TcpFlow};
use super::{Error, FlowResults, KernelRequirements, ports_of};
use bentpipe_base::{Addr, Duration, Instant, NodeId, Purpose, World};
use bentpipe_live::control::FlowState;
use bentpipe_nodes::DatagramStream;
use bentpipe_os::{Clock, wait};
use bentpipe_report::{FlowKind, FlowReport, rate_bps};
use bentpipe_scenario::{App, FlowSpec, Scenario, Stop};
use bentpipe_sim::build::{FlowEnds, build};
use bentpipe_sim::observe::flow_series;
use bentpipe_sim::record::{FLOW_COLUMNS, LIMIT_COLUMNS, MAX_INTERVALS, Record};
use bentpipe_sim::report::{context, datagrams, set_advertised_window};
use rustix::event::{Timespec, epoll};
use rustix::process::{Resource, getrlimit};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::{BorrowedFd, OwnedFd};

/// Shortest interval between two samples of TCP_INFO: in all, and for each flow.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(10);
const LOOK_PER_FLOW: Duration = Duration::from_micros(100);
/// Shortest interval of the time series.
const INTERVAL: Duration = Duration::from_millis(10);
/// Most flows with time series, as in the simulator.
const MOST_SERIES: usize = 256;
/// Longest sleep, so that a stop or a change of a link is noticed.
const LONGEST_SLEEP: Duration = Duration::from_millis(5);
/// Events read from the kernel at a time.
const EVENTS: usize = 256;
/// Open files besides the sockets.
const OTHER_FILES: u64 = 256;

#[derive(Debug)]
enum Flow {
    Tcp(Box<TcpFlow>),
    Udp(Box<UdpFlow>),
    Engine(Box<EngineFlow>),
}

/// Subject of a wake-up or an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum WakeTarget {
    Opener,
    Acceptor,
    Listener,
    /// Time to open a connection, or to send a datagram.
    Start,
    /// The engine's packets at a host; the number is the host's, not a flow's.
    Packets,
}

/// All flows of a scenario, ready to run.
#[derive(Debug)]
pub struct Flows {
    scenario: Scenario,
    ends: Vec<FlowEnds>,
    running: Vec<Flow>,
    /// The engine at the hosts that need it, by index among the nodes.
    engines: Vec<Option<EngineHost>>,
    epoll: OwnedFd,
    wakes: BinaryHeap<Reverse<(Instant, usize, WakeTarget)>>,
    world: World,
    clock: Clock,
    end: Instant,
    ends_early: bool,
    /// Interval over which goodput is measured, and the bytes delivered by its start and end.
    measure: (Instant, Instant),
    delivered: [Option<Vec<u64>>; 2],
    looked: Instant,
    record: Record,
    recorded: Vec<u64>,
    last_row: Instant,
}

impl Flows {
    /// Applies settings and routes and opens the sockets. `places` are those of the scenario's nodes.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn open(
        scenario: &Scenario,
        needs: &KernelRequirements,
        places: &[Option<HostNamespace<'_>>],
    ) -> Result<Self, Error> {
        enough_files(scenario, needs)?;
        for host in &needs.hosts {
            prepare(&scenario.nodes[host.host].name, host, places)?;
        }
        let ends = build(scenario).flows;
        let mut world = World::new(scenario.seed);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|e| Error::system("epoll", e))?;
        let (mut flows, mut wakes) = (Vec::with_capacity(ends.len()), BinaryHeap::new());
        let mut engines = engines::open(scenario, &ends, needs, places)?;
        for (node, host) in engines.iter().enumerate() {
            if let Some(host) = host {
                watch(&epoll, host.fd(), node, WakeTarget::Packets)?;
            }
        }
        for (i, flow) in scenario.flows.iter().enumerate() {
            let flow = if needs.engine.get(i) == Some(&true) {
                let place = place_of(places, flow, flow.to)?;
                let to = (place.address_of(flow, flow.sender.ip)?, ports_of(flow, &ends[i]));
                Flow::Engine(Box::new(EngineFlow::open(&mut world, flow, ends[i].start, to, &mut engines)?))
            } else {
                open(&mut world, flow, (&ends[i], i), (needs, places))?
            };
            let (listens, start) = match &flow {
                Flow::Tcp(tcp) => (tcp.listener().map(|fd| (fd, WakeTarget::Listener)), tcp.start),
                Flow::Udp(udp) => (Some((udp.fd(), WakeTarget::Acceptor)), udp.next),
                Flow::Engine(flow) => (None, flow.start),
            };
            if let Some((fd, what)) = listens {
                watch(&epoll, fd, i, what)?;
            }
            wakes.push(Reverse((start, i, WakeTarget::Start)));
            flows.push(flow);
        }
        let end = Instant::ZERO + scenario.duration;
        let (from, to) = scenario.measure.unwrap_or((Instant::ZERO, end));
        let series = scenario.flows.iter().take(MOST_SERIES).map(|f| flow_series(&f.name));
        Ok(Self {
            scenario: scenario.clone(),
            engines,
            recorded: vec![0; flows.len()],
            ends,
            running: flows,
            epoll,
            wakes,
            world,
            clock: Clock::start(),
            end,
            ends_early: scenario.stop == Stop::Finished && scenario.flows.iter().any(is_finite),
            measure: (from, to.min(end)),
            delivered: [None, None],
            looked: Instant::ZERO,
            record: Record { every: INTERVAL, flows: series.collect(), ..Record::default() },
            last_row: Instant::ZERO,
        })
    }

    /// Runs until the scenario's end, or until `go_on`, called with the time many times a second, returns
    /// false. `clock` begins with the run.
    ///
    /// # Errors
    /// Errors of the system; errors of single connections are part of the outcome.
    pub fn run(
        mut self,
        clock: Clock,
        go_on: &mut dyn FnMut(Instant, &Self) -> bool,
    ) -> Result<FlowResults, Error> {
        self.clock = clock;
        for host in self.engines.iter_mut().flatten() {
            host.driver.clock = clock;
            // without it a sleep may last 50 us too long; failing to set it is harmless
            let _ = wait::set_timer_slack();
        }
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            let now = self.clock.now();
            self.wake(now)?;
            self.marks(now);
            if now >= self.end || (self.ends_early && self.is_over()) || !go_on(now, &self) {
                let until = now.min(self.end);
                return Ok(self.finish(until));
            }
            let next = self.next(now);
            let timeout = std::time::Duration::from_nanos(next.since(self.clock.now()).0);
            let timeout = Timespec::try_from(timeout).ok();
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(Error::system("epoll", error)),
            }
            for event in &events {
                let (data, flags) = (event.data.u64(), event.flags);
                self.event(data, flags)?;
            }
        }
    }

    /// The state of each TCP flow without its goodput, and the bytes delivered so far.
    pub(crate) fn states(&self) -> impl Iterator<Item = (FlowState, u64)> {
        self.scenario.flows.iter().zip(&self.running).filter_map(|(spec, flow)| match flow {
            Flow::Tcp(tcp) => Some((tcp.samples.state(&spec.name, 0.0), tcp.delivered())),
            Flow::Engine(flow) => Some((flow.state(&self.engines), flow.delivered())),
            Flow::Udp(_) => None,
        })
    }

    /// Returns when to act next at the latest.
    fn next(&self, now: Instant) -> Instant {
        let wake = self.wakes.peek().map_or(Instant::NEVER, |Reverse((at, ..))| *at);
        let (from, to) = self.measure;
        let marks = [from, to].into_iter().filter(|at| *at > now).min().unwrap_or(Instant::NEVER);
        wake.min(marks).min(self.end).min(self.looked + self.sample_interval()).min(now + LONGEST_SLEEP)
    }

    /// Time between two samples.
    fn sample_interval(&self) -> Duration {
        SAMPLE_INTERVAL.max(LOOK_PER_FLOW * self.running.len() as u64)
    }

    fn wake(&mut self, now: Instant) -> Result<(), Error> {
        while let Some(Reverse((at, i, what))) = self.wakes.peek().copied()
            && at <= now
        {
            self.wakes.pop();
            if what == WakeTarget::Packets {
                self.turn(i)?;
                continue;
            }
            match (&mut self.running[i], what) {
                (Flow::Engine(flow), WakeTarget::Opener | WakeTarget::Acceptor) => {
                    let end = flow.end(side(what));
                    if end.armed <= now {
                        let node = end.node;
                        end.armed = Instant::NEVER;
                        self.act_in_engine(node, (i, side(what)), true);
                        self.turn(node)?;
                    }
                }
                (Flow::Engine(flow), _) => {
                    let node = flow.connect(now, &mut self.engines);
                    self.turn(node)?;
                }
                (Flow::Udp(udp), WakeTarget::Start) => {
                    udp.send(&mut self.world.cx(now, NodeId(0)), self.clock);
                    if udp.next < Instant::NEVER {
                        self.wakes.push(Reverse((udp.next, i, WakeTarget::Start)));
                    }
                }
                (Flow::Udp(udp), _) => {
                    if udp.receive(self.clock) {
                        self.wakes.push(Reverse((now, i, WakeTarget::Acceptor)));
                        return Ok(());
                    }
                }
                (Flow::Tcp(tcp), WakeTarget::Start | WakeTarget::Listener | WakeTarget::Packets) => {
                    tcp.connect(now);
                    watch(&self.epoll, tcp.opener.socket.fd(), i, WakeTarget::Opener)?;
                }
                (Flow::Tcp(tcp), WakeTarget::Opener | WakeTarget::Acceptor) => {
                    if let Some(end) = tcp.end(side(what)).filter(|end| end.armed <= now) {
                        end.armed = Instant::NEVER;
                        self.act(now, i, what);
                    }
                }
            }
        }
        Ok(())
    }

    fn event(&mut self, data: u64, flags: epoll::EventFlags) -> Result<(), Error> {
        let (i, what) = unpack(data);
        if what == WakeTarget::Packets {
            return self.turn(i);
        }
        let now = self.clock.now();
        let Some(flow) = self.running.get_mut(i) else { return Ok(()) };
        match (flow, what) {
            (Flow::Engine(_), _) => {}
            (Flow::Udp(udp), _) => {
                if udp.receive(self.clock) {
                    self.wakes.push(Reverse((now, i, WakeTarget::Acceptor)));
                }
            }
            (Flow::Tcp(tcp), WakeTarget::Listener) => {
                if let Some(fd) = tcp.accept(now) {
                    watch(&self.epoll, fd, i, WakeTarget::Acceptor)?;
                    self.act(now, i, WakeTarget::Acceptor);
                }
            }
            (Flow::Tcp(tcp), _) => {
                use epoll::EventFlags as E;
                let failed = flags.intersects(E::ERR | E::HUP);
                tcp.ready(now, side(what), (flags.contains(E::OUT), flags.contains(E::RDHUP), failed));
                self.act(now, i, what);
            }
        }
        Ok(())
    }

    /// Runs the applications of an end, and sets the next wake-up.
    fn act(&mut self, now: Instant, i: usize, what: WakeTarget) {
        let Flow::Tcp(tcp) = &mut self.running[i] else { return };
        let again = tcp.run(&mut self.world.cx(now, NodeId(0)), side(what));
        if let Some(end) = tcp.end(side(what))
            && again < end.armed
        {
            end.armed = again;
            self.wakes.push(Reverse((again, i, what)));
        }
    }

    /// Samples TCP_INFO, writes rows of the series and notes delivered bytes, when due.
    fn marks(&mut self, now: Instant) {
        let (from, to) = self.measure;
        for (mark, at) in [from, to].into_iter().enumerate() {
            if self.delivered[mark].is_none() && now >= at {
                self.delivered[mark] = Some(self.running.iter().map(Flow::delivered).collect());
            }
        }
        if now.since(self.looked) >= self.sample_interval() {
            self.looked = now;
            for flow in &mut self.running {
                if let Flow::Tcp(tcp) = flow
                    && tcp.finished.is_none()
                {
                    tcp.look(now);
                }
            }
        }
        while self.last_row + self.record.every <= now {
            self.row(self.last_row + self.record.every);
            if self.record.time_s.len() >= MAX_INTERVALS {
                self.record.merge_pairs();
            }
        }
    }

    fn row(&mut self, until: Instant) {
        let seconds = until.since(self.last_row).as_secs_f64();
        if seconds <= 0.0 {
            return;
        }
        for ((flow, series), before) in
            self.running.iter_mut().zip(&mut self.record.flows).zip(&mut self.recorded)
        {
            let (mut row, limits) = match flow {
                Flow::Tcp(tcp) => tcp.samples.row(),
                Flow::Engine(flow) => flow.row(until, &self.engines),
                Flow::Udp(udp) => {
                    let mut row = [f64::NAN; FLOW_COLUMNS.len()];
                    let delay = udp.sink.take_recent_delay();
                    row[8] = delay.map_or(f64::NAN, Duration::as_millis_f64);
                    (row, [f64::NAN; LIMIT_COLUMNS.len()])
                }
            };
            let delivered = flow.delivered();
            row[0] = (delivered - *before) as f64 * 8.0 / seconds;
            *before = delivered;
            series.push(row.iter().chain(&limits));
        }
        self.record.time_s.push(until.as_secs_f64());
        self.last_row = until;
    }

    fn is_over(&self) -> bool {
        let mut pending = self.scenario.flows.iter().zip(&self.running).filter(|(spec, _)| is_finite(spec));
        pending.all(|(_, flow)| match flow {
            Flow::Tcp(tcp) => tcp.finished.is_some() || tcp.fault.is_some(),
            Flow::Engine(flow) => flow.finished.is_some() || flow.fault.is_some(),
            Flow::Udp(_) => false,
        })
    }

    fn finish(mut self, now: Instant) -> FlowResults {
        for flow in &mut self.running {
            if let Flow::Tcp(tcp) = flow {
                tcp.last_read(now);
                tcp.look(now);
            }
        }
        let delivered: Vec<u64> = self.running.iter().map(Flow::delivered).collect();
        self.row(now);
        let (from, to) = self.measure;
        let before = self.delivered[0].take().unwrap_or_else(|| vec![0; delivered.len()]);
        let after = self.delivered[1].take().unwrap_or(delivered);
        let interval = to.min(now).since(from);
        // gateways may show senders other windows than receivers advertise
        let gateways = !self.scenario.gateways.is_empty();
        let mut faults = Vec::new();
        let mut reports = Vec::with_capacity(self.running.len());
        for (i, flow) in self.running.iter().enumerate() {
            let (spec, ends) = (&self.scenario.flows[i], &self.ends[i]);
            let rate = rate_bps(after[i].saturating_sub(before[i]), interval);
            let report = |kind| FlowReport {
                context: context(spec, ends.path_bps),
                ..FlowReport::new(&*spec.name, ends.start, rate, kind)
            };
            reports.push(match flow {
                Flow::Tcp(tcp) => {
                    faults.extend(tcp.fault.clone());
                    let mut report = report(FlowKind::from(tcp.report()));
                    if gateways {
                        set_advertised_window(&mut report.context, spec, tcp.samples.last.peer_window.0);
                    }
                    report
                }
                Flow::Engine(flow) => {
                    faults.extend(flow.fault.clone());
                    let of = (&self.scenario, i);
                    let mut report = report(FlowKind::from(flow.report(of, &self.engines, now)));
                    if let Some(sender) = flow.sender(&self.engines).filter(|_| gateways) {
                        set_advertised_window(&mut report.context, spec, sender.path().peer_window.0);
                    }
                    report
                }
                Flow::Udp(udp) => {
                    if udp.unsent > 0 {
                        let (name, unsent) = (&spec.name, udp.unsent);
                        faults.push(format!("flow {name}: the kernel did not take {unsent} datagrams"));
                    }
                    report(FlowKind::from(datagrams(udp.sent, &udp.sink)))
                }
            });
        }
        FlowResults { reports, record: self.record, faults, differs: Vec::new(), of_scenario: true }
    }
}

impl Flow {
    fn delivered(&self) -> u64 {
        match self {
            Self::Tcp(tcp) => tcp.delivered(),
            Self::Engine(flow) => flow.delivered(),
            Self::Udp(udp) => udp.sink.bytes,
        }
    }
}

fn is_finite(flow: &FlowSpec) -> bool {
    matches!(flow.app, App::Transfer(_) | App::Lasting(_) | App::Requests { count: Some(_), .. })
}

fn side(what: WakeTarget) -> Side {
    if what == WakeTarget::Acceptor { Side::Acceptor } else { Side::Opener }
}

fn open(
    world: &mut World,
    flow: &FlowSpec,
    (ends, i): (&FlowEnds, usize),
    (needs, places): (&KernelRequirements, &[Option<HostNamespace<'_>>]),
) -> Result<Flow, Error> {
    let pair = (place_of(places, flow, flow.from)?, place_of(places, flow, flow.to)?);
    let ports = ports_of(flow, ends);
    if let App::Udp { size, pattern } = flow.app {
        let rng = world.open_rng(&flow.name, Purpose::Application);
        // port and destination are for the simulator
        let stream = DatagramStream { port: 0, to: (Addr(0), 0), size, pattern, rng, start: ends.start };
        let udp = UdpFlow::open(&mut world.cx(Instant::ZERO, NodeId(0)), &stream, pair, ports)?;
        return Ok(Flow::Udp(Box::new(udp)));
    }
    let congestion = needs.congestion.get(i).and_then(Option::as_deref).unwrap_or_default();
    let tcp = TcpFlow::open(world, flow, ends.start, (pair, ports), congestion, needs)?;
    Ok(Flow::Tcp(Box::new(tcp)))
}

/// Checks the limit of open files: at most three sockets for each connection of the kernel; for one of the
/// engine a port of each family and a packet socket, at both ends.
fn enough_files(scenario: &Scenario, needs: &KernelRequirements) -> Result<(), Error> {
    let own = needs.engine.iter().filter(|own| **own).count();
    let needed = 3 * (scenario.flows.len() + own) as u64 + OTHER_FILES;
    match getrlimit(Resource::Nofile).current {
        Some(limit) if limit < needed => Err(Error::Descriptors(needed, limit)),
        _ => Ok(()),
    }
}

fn watch(epoll: &OwnedFd, fd: BorrowedFd<'_>, flow: usize, what: WakeTarget) -> Result<(), Error> {
    use epoll::EventFlags as E;
    // edge-triggered: unfinished work has a wake-up of its own
    let flags = E::IN | E::OUT | E::RDHUP | E::ET;
    let data = epoll::EventData::new_u64((flow as u64) << 3 | what as u64);
    epoll::add(epoll, fd, data, flags).map_err(|e| Error::system("epoll", e))
}

const fn unpack(data: u64) -> (usize, WakeTarget) {
    let what = match data & 7 {
        0 => WakeTarget::Opener,
        1 => WakeTarget::Acceptor,
        2 => WakeTarget::Listener,
        3 => WakeTarget::Start,
        _ => WakeTarget::Packets,
    };
    ((data >> 3) as usize, what)
}
