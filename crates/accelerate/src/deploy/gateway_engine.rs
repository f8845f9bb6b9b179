//! The data path with a gateway between two ports.
//!
//! Requests are answered on the data thread between its turns, with real addresses in place of address
//! numbers.

use super::engine::{Engine, EngineConfig, Event};
use super::gateway_node::{ADDRESSES, call, gateway};
use super::rate_routers::RateRouters;
use super::resume::{self, RecordWriter};
use crate::status::{FlowPage, FlowStats, GatewayCounters, NodeFigures, WindowStats};
use bentpipe_base::{Addresses, Instant, NodeId, Rate, Size};
use bentpipe_driver::{
    Core, Counters, LiveNetwork, NetworkSetup, Pacing, Running, ThreadSetup, TurnHook, Unit, UnreadReason,
};
use bentpipe_gateway::{Config, FlowReport, Gateway, GatewayReport, PassReason, WindowClass};
use bentpipe_network::{ChainNode, Network};
use bentpipe_os::packet::FramePort;
use bentpipe_os::{Clock, PacketPort};
use bentpipe_scenario::CustomSpec;
use bentpipe_scenario::gateway_file::{GatewayFile, Kind};
use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::time::Duration;

/// If the data thread does not answer within this time, it has ended or the machine is overloaded.
const PATIENCE: Duration = Duration::from_secs(2);
const SILENT: &str = "the data path does not answer";
/// Maximum number of closed connections waiting to be fetched; older ones are discarded and counted.
const WAITING: usize = 65_536;

fn config(orders: &EngineConfig) -> Config {
    Config { accelerate: orders.accelerate, ..orders.file.config.clone() }
}

/// A request, which sends its answer itself.
type EngineRequest = Box<dyn FnOnce(&mut RequestHandler, &mut Core) + Send>;

/// Answers requests on the data thread.
struct RequestHandler {
    requests: Receiver<EngineRequest>,
    file: Arc<GatewayFile>,
    rate_routers: RateRouters,
    record_writer: RecordWriter,
    closed: VecDeque<FlowStats>,
    forgotten: u64,
    /// Highest number of losses reported: presumed losses may prove to be late packets, but a counter must
    /// never decrease.
    lost: Cell<u64>,
}

impl TurnHook for RequestHandler {
    fn on_turn(&mut self, core: &mut Core) -> bool {
        while let Some(report) = gateway(core).take_closed() {
            let flow = self.figures_of(&report, &core.net.network.world.addresses, core.clock.now());
            if self.closed.len() == WAITING {
                self.closed.pop_front();
                self.forgotten += 1;
            }
            self.closed.push_back(flow);
        }
        while let Ok(ask) = self.requests.try_recv() {
            ask(self, core);
        }
        self.record_writer.turn(core);
        true
    }

    fn next(&self) -> Option<Instant> {
        self.record_writer.next()
    }
}

impl RequestHandler {
    fn apply_config(&mut self, core: &mut Core, config: Config, file: Arc<GatewayFile>) -> io::Result<()> {
        self.record_writer.fit(&config.limits);
        let policy = file.policy.clone();
        self.rate_routers.reconfigure(&mut core.net, file.rate.as_ref()).map_err(io::Error::other)?;
        self.file = file;
        // a lost port ends the thread by itself
        call(core, |gateway, cx| {
            gateway.set_policy(policy);
            gateway.reconfigure(cx, config);
        })
    }

    fn page(&self, core: &mut Core, from: u32, most: usize) -> FlowPage {
        let (reports, next) = gateway(core).flows(from, most);
        let all = gateway(core).report().states.iter().map(|n| u64::from(*n)).sum();
        let (now, addresses) = (core.clock.now(), &core.net.network.world.addresses);
        let flows = reports.iter().map(|r| self.figures_of(r, addresses, now)).collect();
        FlowPage { all, flows, next }
    }

    fn figures(&self, core: &mut Core) -> GatewayCounters {
        let report = gateway(core).report();
        let counters = &report.counters;
        let named = |keys: &[(&'static str, u64)]| keys.iter().map(|(k, n)| ((*k).to_owned(), *n)).collect();
        let why = open_by_reason(&report.passing);
        let passing: u64 = why.iter().map(|w| w.1).sum();
        let path = core.counters().map_or_else(|_| Counters::default(), Clone::clone);
        let [lan, satellite] = [0, 1].map(|i| path.ports.get(i).copied().unwrap_or_default().drops);
        let drops = [
            ("records_forgotten", self.forgotten),
            ("lan_receive", lan.receive),
            ("lan_send", lan.send),
            ("satellite_receive", satellite.receive),
            ("satellite_send", satellite.send),
            ("refused", path.refused),
        ];
        let mut done: Vec<_> =
            UnreadReason::ALL.iter().zip(path.other).map(|(why, n)| (why.key(), n)).collect();
        done.extend([
            ("store_full", path.store_full),
            ("addresses_full", path.addresses_full),
            ("options_short", path.options_short),
            ("late_turns", path.late_turns),
            ("passed_unheld", counters.overflow),
        ]);
        GatewayCounters {
            accelerated: u64::from(report.accelerated),
            passing,
            opening: u64::from(report.states[0]),
            passing_why: named(&why),
            connections: counters.flows,
            packets: counters.packets,
            bytes: counters.bytes.map(|b| b.0),
            held_bytes: report.held.0,
            held_peak_bytes: report.held_peak.0,
            lost: self.lost.replace(self.lost.get().max(counters.losses)).max(counters.losses),
            repaired: counters.repairs + counters.resent,
            copied: counters.copies,
            keep_alives: counters.keep_alives,
            not_forwarded: named(&counters.not_forwarded()),
            port_drops: named(&drops),
            data_path: named(&done),
            nodes: self.nodes(core),
            windows: windows(&report),
            hop_rtt_ms: report.hop_rtt.map(bentpipe_base::Duration::as_millis_f64),
            more_clients: report.more_clients,
            rate: self.rate_routers.figures(),
        }
    }

    /// Counters of the nodes behind the gateway.
    fn nodes(&self, core: &Core) -> Vec<NodeFigures> {
        let network = &core.net.network;
        let figures = |(spec, id): (&CustomSpec, u32)| NodeFigures {
            name: spec.name.clone(),
            kind: spec.kind.to_owned(),
            counters: network.counters(NodeId(id)).into_iter().map(|(k, n)| (k.to_owned(), n)).collect(),
        };
        // the gateway is the network's first node, these follow
        self.file.customs.iter().zip(1..).map(figures).collect()
    }

    fn figures_of(&self, report: &FlowReport, addresses: &Addresses, now: Instant) -> FlowStats {
        let real = report.addrs.map(|addr| addresses.address(addr));
        let end = |i: usize| match real[i] {
            Some(address) => SocketAddr::new(address, report.ports[i]).to_string(),
            None => format!("?:{}", report.ports[i]),
        };
        let subscriber = real[0].and_then(|lan| self.file.subscriber(lan));
        let side = |lan| if lan { "lan" } else { "satellite" };
        FlowStats {
            lan: end(0),
            satellite: end(1),
            opened_from: report.opened_by_lan.map(|lan| side(lan).to_owned()),
            subscriber: subscriber.map(|prefix| prefix.to_string()),
            state: report.state.key().to_owned(),
            why_passing: report.pass_reason.map(|why| why.key().to_owned()),
            end: report.end.map(|end| end.key().to_owned()),
            age_s: if report.end.is_some() { report.last } else { now }.since(report.opened).as_secs_f64(),
            bytes: report.bytes.map(|b| b.0),
            acked_bytes: report.delivered.0,
            goodput_bps: report.goodput().map(Rate::bps),
            rtt_ms: Some(report.hop_rtt.as_millis_f64()).filter(|ms| *ms > 0.0),
            window_bytes: report.advertised_by_receiver.0,
            shown_bytes: report.advertised_to_sender.0,
            held_bytes: report.held.0,
            reader_bps: report.read_rate.map(|bytes| bytes * 8.0),
            lost: report.losses,
            timeouts: report.timeouts,
            swallowed: report.duplicates_dropped,
        }
    }
}

/// The census of announced windows, with what each means on this hop.
/// The open connections that pass, by reason. Those that have ended are known only for their late duplicates.
fn open_by_reason(passing: &[u32; PassReason::ALL.len()]) -> Vec<(&'static str, u64)> {
    let open = PassReason::ALL.into_iter().filter(|why| *why != PassReason::Ended);
    open.map(|why| (why.key(), u64::from(passing[why as usize]))).collect()
}

fn windows(report: &GatewayReport) -> Vec<WindowStats> {
    let stats = |class: &WindowClass| {
        let limit = report.hop_rtt.and_then(|rtt| class.limit(rtt));
        let gain = |(share, limit): (Rate, Rate)| (share.bps() as f64 / limit.bps() as f64).max(1.0);
        WindowStats {
            window_bytes: class.window.0,
            clients: class.clients,
            connections: class.connections,
            accelerated: class.accelerated,
            limit_bps: limit.map(Rate::bps),
            gain: report.fair_share.zip(limit).map(gain),
        }
    };
    report.windows.iter().map(stats).collect()
}

/// A running gateway.
#[derive(Debug)]
pub struct GatewayEngine {
    running: Running<()>,
    requests: Sender<EngineRequest>,
    events: Receiver<Event>,
}

impl GatewayEngine {
    /// Starts the data path.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(ports: [Box<dyn PacketPort>; 2], orders: &EngineConfig) -> Result<Box<dyn Engine>, String> {
        let ((asks, asked), (telling, news)) = (channel(), channel());
        let (config, file) = (config(orders), Arc::clone(&orders.file));
        let (keeping, begin) = resume::begin(orders.keep.as_ref(), &config.limits, telling);
        let unit = match file.deploy.kind {
            Kind::Routed => Unit::Packet,
            Kind::Inline => Unit::Frame,
        };
        let setup = ThreadSetup {
            name: "bentpipe-path",
            ports: ports.into(),
            clock: Clock::start(),
            pacing: Pacing::Cheap,
            realtime: true,
        };
        let seed = bentpipe_os::random().map_err(|e| e.to_string())?;
        let make = move || {
            let gateway = Gateway::new(config).with_policy(file.policy.clone());
            let customs: Vec<_> = file
                .customs
                .iter()
                .map(CustomSpec::node)
                .collect::<Result<_, _>>()
                .map_err(|_| io::Error::other("a node no longer accepts its keys"))?;
            let mut rate_routers = RateRouters::default();
            let add = |network: &mut Network| {
                let mut own = vec![network.add_gateway(gateway)];
                own.extend(customs.into_iter().map(|node| network.add(node)));
                let (routers, mut chain) = RateRouters::add(network, file.rate.as_ref());
                rate_routers = routers;
                chain.extend(own.into_iter().map(ChainNode::from));
                chain
            };
            // some reserve beyond the bytes that the gateway may hold, for packets that are forwarded
            let memory = Size(file.config.limits.memory.0 / 2 * 3);
            let mut net = LiveNetwork::chain(add, seed, unit, memory);
            net.network.world.addresses = Addresses::new(ADDRESSES);
            let answers = RequestHandler {
                requests: asked,
                file,
                rate_routers,
                record_writer: keeping,
                closed: VecDeque::new(),
                forgotten: 0,
                lost: Cell::new(0),
            };
            Ok(NetworkSetup {
                net,
                journal: None,
                begin,
                hooks: vec![Box::new(answers)],
                finish: Box::new(|_| Ok(())),
            })
        };
        let running = Running::start(setup, make).map_err(|e| e.to_string())?;
        Ok(Box::new(Self { running, requests: asks, events: news }))
    }

    /// Opens the ports of an inline gateway, LAN first.
    pub(super) fn inline(file: &GatewayFile) -> Result<[Box<dyn PacketPort>; 2], String> {
        let open = |name: &str| FramePort::open(name).map_err(|e| format!("{name}: {e}"));
        let lan = file.deploy.lan.first().map_or("", String::as_str);
        Ok([Box::new(open(lan)?), Box::new(open(&file.deploy.satellite)?)])
    }

    fn ask<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut RequestHandler, &mut Core) -> T + Send + 'static,
    ) -> Option<T> {
        let (reply, answer) = sync_channel(1);
        // the caller may have stopped waiting
        let ask =
            move |answers: &mut RequestHandler, core: &mut Core| drop(reply.try_send(act(answers, core)));
        self.requests.send(Box::new(ask)).ok()?;
        self.running.wake();
        answer.recv_timeout(PATIENCE).ok()
    }
}

impl Engine for GatewayEngine {
    fn ended(&self) -> BorrowedFd<'_> {
        self.running.ended()
    }

    fn counters(&mut self) -> GatewayCounters {
        self.ask(|answers, core| answers.figures(core)).unwrap_or_default()
    }

    fn flows(&mut self, from: u32, most: usize) -> FlowPage {
        self.ask(move |answers, core| answers.page(core, from, most)).unwrap_or_default()
    }

    fn take_closed(&mut self) -> Vec<FlowStats> {
        self.ask(|answers, _| answers.closed.drain(..).collect()).unwrap_or_default()
    }

    fn take_events(&mut self) -> Vec<Event> {
        self.events.try_iter().collect()
    }

    fn priority(&self) -> Option<(String, bool)> {
        let (text, is_real_time) = self.running.priority();
        Some((text.to_owned(), is_real_time))
    }

    fn close_records(&mut self) -> Result<(), String> {
        self.ask(|answers, core| answers.record_writer.close(core)).unwrap_or_else(|| Err(SILENT.to_owned()))
    }

    fn reconfigure(&mut self, orders: &EngineConfig) -> Result<(), String> {
        let (config, file) = (config(orders), Arc::clone(&orders.file));
        let told = self.ask(move |answers, core| answers.apply_config(core, config, file));
        told.and_then(Result::ok).ok_or_else(|| SILENT.to_owned())
    }

    fn stop(self: Box<Self>) -> Result<(), String> {
        self.running.stop().map_err(|e| e.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_connections_do_not_pass() {
        let mut passing = [0; PassReason::ALL.len()];
        passing[PassReason::MidStream as usize] = 2;
        passing[PassReason::Ended as usize] = 5;
        let open = open_by_reason(&passing);
        assert_eq!(open.iter().map(|(_, n)| n).sum::<u64>(), 2);
        assert!(open.contains(&("mid_stream", 2)) && open.iter().all(|(key, _)| *key != "ended"));
    }
}
