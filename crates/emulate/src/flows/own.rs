//! A TCP flow with the engine at both ends.

use super::engine::{EngineEnd, EngineHost};
use super::stream::{Side, application};
use super::{Error, ends_of};
use bentpipe_base::{Cx, Instant, World};
use bentpipe_live::control::FlowState;
use bentpipe_live::endpoint::Ending;
use bentpipe_nodes::{Reader, ReaderState, Writer};
use bentpipe_report::TcpReport;
use bentpipe_scenario::{FlowSpec, Scenario};
use bentpipe_sim::build::writers;
use bentpipe_sim::observe::{SenderCounters, receiver_columns, sender_columns};
use bentpipe_sim::record::{FLOW_COLUMNS, LIMIT_COLUMNS};
use bentpipe_sim::report::sending_end;
use bentpipe_tcp::Connection;
use core::fmt::Display;
use std::net::{IpAddr, SocketAddr};

/// The endpoints of all hosts, by index among the scenario's nodes.
pub(super) type EngineHosts = [Option<EngineHost>];

/// A connection, before, during and after its life.
#[derive(Debug)]
pub(super) struct EngineFlow {
    pub(super) start: Instant,
    to: SocketAddr,
    /// The acceptor sends the data.
    answers: bool,
    /// In the order of [`Side`].
    ends: [EngineEnd; 2],
    spec: Box<FlowSpec>,
    pub(super) finished: Option<Instant>,
    /// Text of an error.
    pub(super) fault: Option<String>,
    before: SenderCounters,
}

impl EngineFlow {
    /// A flow that opens its connection at `start`, to the address `to` and the second of `ports`; the other
    /// host listens from now on.
    pub(super) fn open(
        world: &mut World,
        flow: &FlowSpec,
        start: Instant,
        (to, ports): (IpAddr, (u16, u16)),
        hosts: &mut EngineHosts,
    ) -> Result<Self, Error> {
        let [(_, opener, ..), (_, acceptor, accepts, _)] = ends_of(flow);
        let answers = super::acceptor_sends(flow);
        if let Some(host) = hosts.get_mut(acceptor).and_then(Option::as_mut) {
            host.listen(ports.1, accepts)?;
        }
        let (writer, answerer) = writers(world, flow);
        // requests are read eagerly; the flow's reader is that of its data
        let readers = if answers { [flow.reader, Reader::Eager] } else { [Reader::Eager, flow.reader] };
        let [first, second] = readers.map(ReaderState::new);
        let ends = [
            EngineEnd::new((opener, ports.0), writer, first),
            EngineEnd::new((acceptor, ports.1), answerer, second),
        ];
        let (to, spec) = (SocketAddr::new(to, ports.1), Box::new(flow.clone()));
        let before = SenderCounters::default();
        Ok(Self { start, to, answers, ends, spec, finished: None, fault: None, before })
    }

    pub(super) const fn end(&mut self, side: Side) -> &mut EngineEnd {
        let [opener, acceptor] = &mut self.ends;
        match side {
            Side::Opener => opener,
            Side::Acceptor => acceptor,
        }
    }

    /// Opens the connection; returns its host.
    pub(super) fn connect(&mut self, now: Instant, hosts: &mut EngineHosts) -> usize {
        let [(_, node, config, _), _] = ends_of(&self.spec);
        let (port, to) = (self.ends[0].port, self.to);
        if let Some(host) = hosts.get_mut(node).and_then(Option::as_mut) {
            match host.driver.with(|endpoint, cx| endpoint.connect_from(cx, port, to, config)) {
                Ok(id) => self.ends[0].id = Some(id),
                Err(error) => self.fail(now, error),
            }
        }
        node
    }

    /// Runs the applications of one end, as [`EngineEnd::run`] says.
    pub(super) fn run(
        &mut self,
        cx: &mut Cx<'_>,
        host: &mut EngineHost,
        (side, due): (Side, bool),
    ) -> Option<Instant> {
        let end = self.end(side);
        if end.id.is_none() && side == Side::Acceptor {
            let port = end.port;
            end.id = host.driver.with(|endpoint, _| endpoint.accept(port));
        }
        let again = end.run(cx, host, due)?;
        let id = end.id?;
        if let Some(ending) = host.driver.endpoint().ending(id).filter(|e| *e != Ending::Closed) {
            self.fail(cx.now, ending);
        }
        if side == Side::Opener && self.finished.is_none() {
            self.finished = match &self.ends[0].writer {
                Writer::Requests(asker) => asker.finished_at,
                _ => host.connection(id).and_then(|c| c.stats().finished_at),
            };
        }
        Some(again)
    }

    fn fail(&mut self, now: Instant, error: impl Display) {
        let (name, at) = (&self.spec.name, now.as_secs_f64());
        self.fault.get_or_insert_with(|| format!("flow {name}: {error}, at {at:.3} s"));
    }

    /// Bytes read by the reader of its data.
    pub(super) const fn delivered(&self) -> u64 {
        self.ends[!self.answers as usize].consumed
    }

    /// The connection at the end that sends the data.
    pub(super) fn sender<'a>(&self, hosts: &'a EngineHosts) -> Option<&'a Connection> {
        self.connection(hosts, self.answers)
    }

    /// The connection at the opener's or the acceptor's end.
    fn connection<'a>(&self, hosts: &'a EngineHosts, is_acceptor: bool) -> Option<&'a Connection> {
        let end = &self.ends[usize::from(is_acceptor)];
        hosts.get(end.node)?.as_ref()?.connection(end.id?)
    }

    /// Returns a row of the columns that the two ends know, and one of the limits; goodput and delay stay
    /// empty.
    pub(super) fn row(
        &mut self,
        now: Instant,
        hosts: &EngineHosts,
    ) -> ([f64; FLOW_COLUMNS.len()], [f64; LIMIT_COLUMNS.len()]) {
        let mut row = [f64::NAN; FLOW_COLUMNS.len()];
        let mut limits = [f64::NAN; LIMIT_COLUMNS.len()];
        if let Some(connection) = self.sender(hosts) {
            limits = sender_columns(connection, now, &mut self.before, &mut row);
            let rtt = connection.rtt().srtt();
            row[5] = if rtt.is_zero() { f64::NAN } else { rtt.as_millis_f64() };
        }
        if let Some(connection) = self.connection(hosts, !self.answers) {
            receiver_columns(connection, &mut row);
        }
        (row, limits)
    }

    /// Returns the state of the connection now, without its goodput.
    pub(super) fn state(&self, hosts: &EngineHosts) -> FlowState {
        let connection = self.sender(hosts);
        let rtt = connection.map(|c| c.rtt().srtt()).filter(|rtt| !rtt.is_zero());
        FlowState {
            name: self.spec.name.to_string(),
            rtt_ms: rtt.map(bentpipe_base::Duration::as_millis_f64),
            cwnd: connection.map_or(0, |c| c.cwnd().0 / u64::from(c.agreed().mss.max(1))),
            goodput_bps: 0.0,
            retransmits: connection.map_or(0, |c| c.stats().retransmits),
        }
    }

    /// Returns the report of the flow, which is the `i`th of `scenario`.
    pub(super) fn report(
        &self,
        (scenario, i): (&Scenario, usize),
        hosts: &EngineHosts,
        now: Instant,
    ) -> TcpReport {
        let (requests, telnet) = application(&self.ends[0].writer);
        TcpReport {
            finished_s: self.finished.map(Instant::as_secs_f64),
            requests,
            telnet,
            ..sending_end(scenario, i, self.sender(hosts), now)
        }
    }
}
