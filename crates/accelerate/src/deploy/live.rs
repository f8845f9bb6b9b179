//! The data path with a gateway between two ports.
//!
//! Requests are answered on the data thread between its turns, with real addresses in place of address
//! numbers.

use super::engine::{Engine, Orders};
use super::event::Event;
use super::gateway_node::{ADDRESSES, call, gateway};
use super::resume::{self, Keeping, News};
use crate::status::{Figures, FlowFigures, FlowPage, NodeFigures};
use bentpipe_base::{Addresses, Instant, NodeId, Size};
use bentpipe_driver::{
    Attendant, Core, Counters, LiveNetwork, Made, Other, Pacing, PortCounters, Running, Setup, Unit,
};
use bentpipe_gateway::{Config, FlowReport, Gateway, Limits, Timeouts, Why};
use bentpipe_network::Network;
use bentpipe_os::packet::FramePort;
use bentpipe_os::{Clock, PacketPort};
use bentpipe_scenario::CustomSpec;
use bentpipe_scenario::gateway_file::{GatewayFile, Kind};
use std::cell::Cell;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read as _};
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

/// If the data thread does not answer within this time, it has ended or the machine is overloaded.
const PATIENCE: Duration = Duration::from_secs(2);
/// Maximum number of closed connections waiting to be fetched; older ones are discarded and counted.
const WAITING: usize = 65_536;

fn config(orders: &Orders) -> Config {
    let GatewayFile { hop, limits, sample, .. } = &*orders.file;
    Config {
        rate: hop.rate,
        framing: hop.framing,
        trip: hop.rtt,
        mode: hop.mode,
        share: hop.share,
        copies: hop.copies,
        limits: Limits {
            flows: limits.flows,
            memory: limits.memory,
            per_flow: limits.per_flow,
            ..Limits::default()
        },
        timeouts: Timeouts {
            opening: limits.opening,
            established: limits.idle,
            closing: limits.closing,
            ..Timeouts::default()
        },
        accelerate: orders.accelerate,
        sample: *sample,
    }
}

enum Ask {
    Figures(SyncSender<Figures>),
    Flows(u32, usize, SyncSender<FlowPage>),
    Closed(SyncSender<Vec<FlowFigures>>),
    Tell(Box<Config>, Arc<GatewayFile>, SyncSender<()>),
    Leave(SyncSender<Result<(), String>>),
}

/// Answers requests on the data thread.
struct Answers {
    asks: Receiver<Ask>,
    file: Arc<GatewayFile>,
    keeping: Keeping,
    closed: VecDeque<FlowFigures>,
    forgotten: u64,
    /// Highest number of losses reported: presumed losses may prove to be late packets, but a counter never
    /// decreases.
    lost: Cell<u64>,
    /// Write end of a pipe, closed when this thread ends.
    _end: PipeWriter,
}

impl Attendant for Answers {
    fn attend(&mut self, core: &mut Core) -> bool {
        while let Some(report) = gateway(core).take_closed() {
            let flow = self.figures_of(&report, &core.net.network.world.addresses, core.clock.now());
            if self.closed.len() == WAITING {
                self.closed.pop_front();
                self.forgotten += 1;
            }
            self.closed.push_back(flow);
        }
        while let Ok(ask) = self.asks.try_recv() {
            // the requester may have given up; a lost port ends the thread by itself
            match ask {
                Ask::Figures(reply) => drop(reply.try_send(self.figures(core))),
                Ask::Flows(from, most, reply) => drop(reply.try_send(self.page(core, from, most))),
                Ask::Closed(reply) => drop(reply.try_send(self.closed.drain(..).collect())),
                Ask::Leave(reply) => drop(reply.try_send(self.keeping.close(core))),
                Ask::Tell(config, file, reply) => {
                    self.keeping.fit(&config.limits);
                    let policy = file.policy.clone();
                    self.file = file;
                    let told = call(core, |gateway, cx| {
                        gateway.set_policy(policy);
                        gateway.reconfigure(cx, *config);
                    });
                    if told.is_ok() {
                        let _ = reply.try_send(());
                    }
                }
            }
        }
        self.keeping.turn(core);
        true
    }

    fn next(&self) -> Option<Instant> {
        self.keeping.next()
    }
}

impl Answers {
    fn page(&self, core: &mut Core, from: u32, most: usize) -> FlowPage {
        let (reports, next) = gateway(core).flows(from, most);
        let all = gateway(core).report().states.iter().map(|n| u64::from(*n)).sum();
        let (now, addresses) = (core.clock.now(), &core.net.network.world.addresses);
        let flows = reports.iter().map(|r| self.figures_of(r, addresses, now)).collect();
        FlowPage { all, flows, next }
    }

    fn figures(&self, core: &mut Core) -> Figures {
        let report = gateway(core).report();
        let counters = &report.counters;
        let named = |keys: &[(&'static str, u64)]| keys.iter().map(|(k, n)| ((*k).to_owned(), *n)).collect();
        let why = Why::ALL.map(|why| (why.key(), u64::from(report.passing[why as usize])));
        let passing: u64 = why.iter().map(|w| w.1).sum();
        let mut drops = vec![("records_forgotten", self.forgotten)];
        let path = core.counters().map_or_else(|_| Counters::default(), Clone::clone);
        let drops_of = |port: usize| path.ports.get(port).copied().unwrap_or_default();
        let [PortCounters { drops: lan, .. }, PortCounters { drops: satellite, .. }] =
            [drops_of(0), drops_of(1)];
        drops.extend([("lan_receive", lan.receive), ("lan_send", lan.send)]);
        drops.extend([("satellite_receive", satellite.receive), ("satellite_send", satellite.send)]);
        drops.push(("refused", path.refused));
        let mut done: Vec<_> = Other::ALL.iter().zip(path.other).map(|(why, n)| (why.name(), n)).collect();
        done.extend([
            ("store_full", path.store_full),
            ("addresses_full", path.addresses_full),
            ("options_short", path.options_short),
            ("late_turns", path.late_turns),
            ("passed_unheld", counters.overflow),
        ]);
        Figures {
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
            not_forwarded: named(&counters.not_forwarded()),
            port_drops: named(&drops),
            data_path: named(&done),
            nodes: self.nodes(core),
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

    fn figures_of(&self, report: &FlowReport, addresses: &Addresses, now: Instant) -> FlowFigures {
        let real = report.addrs.map(|addr| addresses.address(addr));
        let end = |i: usize| match real[i] {
            Some(address) => SocketAddr::new(address, report.ports[i]).to_string(),
            None => format!("?:{}", report.ports[i]),
        };
        let subscriber = real[0].and_then(|lan| self.file.subscriber(lan));
        let side = |lan| if lan { "lan" } else { "satellite" };
        FlowFigures {
            lan: end(0),
            satellite: end(1),
            opened_from: report.opened_by_lan.map(|lan| side(lan).to_owned()),
            subscriber: subscriber.map(|prefix| prefix.to_string()),
            state: report.state.key().to_owned(),
            why_passing: report.why.map(|why| why.key().to_owned()),
            end: report.end.map(|end| end.key().to_owned()),
            age_s: if report.end.is_some() { report.last } else { now }.since(report.opened).as_secs_f64(),
            bytes: report.bytes.map(|b| b.0),
            acked_bytes: report.delivered.0,
            goodput_bps: report.goodput().map(bentpipe_base::Rate::bps),
            rtt_ms: Some(report.hop_trip.as_millis_f64()).filter(|ms| *ms > 0.0),
            window_bytes: report.advertised.0,
            shown_bytes: report.shown.0,
            held_bytes: report.held.0,
            reader_bps: report.reader.map(|bytes| bytes * 8.0),
            lost: report.losses,
            timeouts: report.timeouts,
            swallowed: report.swallowed,
        }
    }
}

/// A running gateway.
#[derive(Debug)]
pub struct Live {
    running: Option<Running<()>>,
    asks: Sender<Ask>,
    ended: PipeReader,
    news: News,
}

impl Live {
    /// Starts the data path.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(ports: [Box<dyn PacketPort>; 2], orders: &Orders) -> Result<Box<dyn Engine>, String> {
        let text = |e: io::Error| e.to_string();
        let ((asks, asked), (ended, end)) = (channel(), io::pipe().map_err(text)?);
        let (config, file) = (config(orders), Arc::clone(&orders.file));
        let news = News::default();
        let (keeping, begin) = resume::begin(orders.keep.as_ref(), &config.limits, &news);
        let unit = match file.deploy.kind {
            Kind::Routed => Unit::Packet,
            Kind::Inline => Unit::Frame,
        };
        let setup = Setup {
            name: "bentpipe-path",
            ports: ports.into(),
            clock: Clock::start(),
            pacing: Pacing::Cheap,
            realtime: true,
        };
        let seed = seed().map_err(text)?;
        let make = move || {
            let gateway = Gateway::new(config).with_policy(file.policy.clone());
            let customs: Vec<_> = file
                .customs
                .iter()
                .map(CustomSpec::node)
                .collect::<Result<_, _>>()
                .map_err(|_| io::Error::other("a node does not take its keys any more"))?;
            let add = |network: &mut Network| {
                let first = network.add_gateway(gateway);
                [first].into_iter().chain(customs.into_iter().map(|node| network.add(node))).collect()
            };
            let mut net = LiveNetwork::chain(add, seed, unit, buffers(file.limits.memory));
            net.network.world.addresses = Addresses::new(ADDRESSES);
            let answers = Answers {
                asks: asked,
                file,
                keeping,
                closed: VecDeque::new(),
                forgotten: 0,
                lost: Cell::new(0),
                _end: end,
            };
            Ok(Made {
                net,
                journal: None,
                begin,
                attendants: vec![Box::new(answers)],
                finish: Box::new(|_| Ok(())),
            })
        };
        let running = Running::start(setup, make).map_err(|e| e.to_string())?;
        Ok(Box::new(Self { running: Some(running), asks, ended, news }))
    }

    /// Opens the ports of an inline gateway.
    ///
    /// # Errors
    /// When an interface is not there or packet sockets are not allowed.
    pub fn inline(file: &GatewayFile) -> Result<[Box<dyn PacketPort>; 2], String> {
        let open = |name: &str| FramePort::open(name).map_err(|e| format!("{name}: {e}"));
        let lan = file.deploy.lan.first().map_or("", String::as_str);
        Ok([Box::new(open(lan)?), Box::new(open(&file.deploy.satellite)?)])
    }

    fn ask<T>(&self, make: impl FnOnce(SyncSender<T>) -> Ask) -> Option<T> {
        let (reply, answer) = sync_channel(1);
        self.asks.send(make(reply)).ok()?;
        self.running.as_ref()?.wake();
        answer.recv_timeout(PATIENCE).ok()
    }
}

/// Buffer memory for the bytes that the node may hold, with some reserve for packets that are forwarded.
const fn buffers(held: Size) -> Size {
    Size(held.0 / 2 * 3)
}

/// An unpredictable random number.
fn seed() -> io::Result<u64> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

impl Engine for Live {
    fn ended(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }

    fn figures(&mut self) -> Figures {
        self.ask(Ask::Figures).unwrap_or_default()
    }

    fn flows(&mut self, from: u32, most: usize) -> FlowPage {
        self.ask(|reply| Ask::Flows(from, most, reply)).unwrap_or_default()
    }

    fn take_closed(&mut self) -> Vec<FlowFigures> {
        self.ask(Ask::Closed).unwrap_or_default()
    }

    fn take_events(&mut self) -> Vec<Event> {
        resume::take(&self.news)
    }

    fn priority(&self) -> Option<(String, bool)> {
        self.running
            .as_ref()
            .map(Running::priority)
            .map(|(text, is_real_time)| (text.to_owned(), is_real_time))
    }

    fn leave(&mut self) -> Result<(), String> {
        self.ask(Ask::Leave).unwrap_or_else(|| Err("the data path does not answer".to_owned()))
    }

    fn tell(&mut self, orders: &Orders) -> Result<(), String> {
        let (config, file) = (Box::new(config(orders)), Arc::clone(&orders.file));
        self.ask(|reply| Ask::Tell(config, file, reply))
            .ok_or_else(|| "the data path does not answer".to_owned())
    }

    fn stop(mut self: Box<Self>) -> Result<(), String> {
        match self.running.take() {
            Some(running) => running.stop().map(drop).map_err(|e| e.to_string()),
            None => Ok(()),
        }
    }
}
