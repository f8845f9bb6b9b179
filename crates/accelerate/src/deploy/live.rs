//! The data path with the gateway's node in it, as deployment and status see it.
//!
//! Everything is asked on the data thread, between its turns, and answered with words in place of numbers.

use super::engine::{Engine, Orders};
use super::event::Event;
use super::governed::{ADDRESSES, Governed, PolicyContext, Shared, locked};
use super::resume::{self, Keeping, News};
use crate::path::{Addresses, Attendant, Core, Other, Running, Setup, Unit};
use crate::status::{Figures, FlowFigures, FlowPage};
use bentpipe_base::{Instant, Size};
use bentpipe_gateway::{Config, Copies, FlowReport, Limits, Mode, Timeouts, Why};
use bentpipe_os::packet::FramePort;
use bentpipe_os::{Clock, PacketPort};
use bentpipe_scenario::gateway_file::{self as file, GatewayFile, Kind};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read as _};
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

/// A data thread that does not answer within this time has ended, or the machine has other worries.
const PATIENCE: Duration = Duration::from_secs(2);
/// Ended connections that wait to be taken; more are forgotten, and counted.
const WAITING: usize = 65_536;

/// The node's configuration.
fn config(orders: &Orders) -> Config {
    let GatewayFile { hop, limits, sample, .. } = &*orders.file;
    Config {
        rate: hop.rate,
        framing: hop.framing,
        trip: hop.rtt,
        mode: match hop.mode {
            file::Mode::Open => Mode::Open,
            file::Mode::Strict => Mode::Strict,
        },
        share: hop.share,
        copies: match hop.copies {
            file::Copies::Auto => Copies::Auto,
            file::Copies::Fixed(n) => Copies::Fixed(n),
        },
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
    Tell(Box<Config>, SyncSender<()>),
    Leave(SyncSender<Result<(), String>>),
}

/// Answers on the data thread.
struct Clerk {
    asks: Receiver<Ask>,
    context: Shared,
    keeping: Keeping,
    closed: VecDeque<FlowFigures>,
    forgotten: u64,
    /// Its other end is at its end when this thread is.
    _end: PipeWriter,
}

impl Attendant<Governed> for Clerk {
    fn attend(&mut self, core: &mut Core<Governed>) -> bool {
        while let Some(report) = core.node.gateway.take_closed() {
            let flow = self.figures_of(&report, &core.addresses, core.clock.now());
            if self.closed.len() == WAITING {
                self.closed.pop_front();
                self.forgotten += 1;
            }
            self.closed.push_back(flow);
        }
        while let Ok(ask) = self.asks.try_recv() {
            // who asked may have given up waiting; a port that is gone ends the thread by itself
            match ask {
                Ask::Figures(reply) => drop(reply.try_send(self.figures(core))),
                Ask::Flows(from, most, reply) => drop(reply.try_send(self.page(core, from, most))),
                Ask::Closed(reply) => drop(reply.try_send(self.closed.drain(..).collect())),
                Ask::Leave(reply) => drop(reply.try_send(self.keeping.close(core))),
                Ask::Tell(config, reply) => {
                    self.keeping.fit(&config.limits);
                    let told = core.call(|node, cx| node.gateway.reconfigure(cx, *config));
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

impl Clerk {
    fn page(&self, core: &Core<Governed>, from: u32, most: usize) -> FlowPage {
        let (reports, next) = core.node.gateway.flows(from, most);
        let all = core.node.gateway.report().states.iter().map(|n| u64::from(*n)).sum();
        let now = core.clock.now();
        let flows = reports.iter().map(|r| self.figures_of(r, &core.addresses, now)).collect();
        FlowPage { all, flows, next }
    }

    fn figures(&self, core: &mut Core<Governed>) -> Figures {
        let report = core.node.gateway.report();
        let counters = &report.counters;
        let named = |keys: &[(&'static str, u64)]| keys.iter().map(|(k, n)| ((*k).to_owned(), *n)).collect();
        let why = Why::ALL.map(|why| (why.key(), u64::from(report.passing[why as usize])));
        let passing: u64 = why.iter().map(|w| w.1).sum();
        let mut drops = vec![("records_forgotten", self.forgotten)];
        let path = core.counters().map_or_else(|_| crate::path::Counters::default(), Clone::clone);
        let [lan, satellite] = path.ports;
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
            lost: counters.losses,
            repaired: counters.repairs + counters.resent,
            copied: counters.copies,
            not_forwarded: named(&counters.not_forwarded()),
            port_drops: named(&drops),
            data_path: named(&done),
        }
    }

    fn figures_of(&self, report: &FlowReport, addresses: &Addresses, now: Instant) -> FlowFigures {
        let real = report.addrs.map(|addr| addresses.address(addr));
        let end = |i: usize| match real[i] {
            Some(address) => SocketAddr::new(address, report.ports[i]).to_string(),
            None => format!("?:{}", report.ports[i]),
        };
        let subscriber = real[0].and_then(|lan| locked(&self.context).policy.subscriber(lan));
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

/// A gateway that runs.
#[derive(Debug)]
pub struct Live {
    running: Option<Running<Governed>>,
    asks: Sender<Ask>,
    ended: PipeReader,
    context: Shared,
    news: News,
}

impl Live {
    /// Starts it.
    ///
    /// # Errors
    /// When there can be no thread.
    pub fn start(ports: [Box<dyn PacketPort>; 2], orders: &Orders) -> Result<Box<dyn Engine>, String> {
        let text = |e: io::Error| e.to_string();
        let context = PolicyContext::new(Arc::clone(&orders.policy));
        let ((asks, asked), (ended, end)) = (channel(), io::pipe().map_err(text)?);
        let (held, config) = (Arc::clone(&context), config(orders));
        let limits = config.limits;
        let node = move |_: &mut bentpipe_base::World| Governed::new(config, held);
        let news = News::default();
        let (keeping, begin) = resume::begin(orders.keep.as_ref(), &limits, &news);
        let clerk = Clerk {
            asks: asked,
            context: Arc::clone(&context),
            keeping,
            closed: VecDeque::new(),
            forgotten: 0,
            _end: end,
        };
        let unit = match orders.file.deploy.kind {
            Kind::Routed => Unit::Packet,
            Kind::Inline => Unit::Frame,
        };
        let running = Running::start(Setup {
            ports,
            unit,
            node: Box::new(node),
            begin,
            attendants: vec![Box::new(clerk)],
            clock: Clock::start(),
            seed: seed().map_err(text)?,
            memory: buffers(orders.file.limits.memory),
            addresses: ADDRESSES,
            realtime: true,
        });
        Ok(Box::new(Self { running: Some(running.map_err(text)?), asks, ended, context, news }))
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

/// Room for the bytes that the node may hold, and for what passes meanwhile.
const fn buffers(held: Size) -> Size {
    Size(held.0 / 2 * 3)
}

/// A number that nobody outside can guess.
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
        locked(&self.context).policy = Arc::clone(&orders.policy);
        let config = Box::new(config(orders));
        self.ask(|reply| Ask::Tell(config, reply)).ok_or_else(|| "the data path does not answer".to_owned())
    }

    fn stop(mut self: Box<Self>) -> Result<(), String> {
        match self.running.take() {
            Some(running) => running.stop().map(drop).map_err(|e| e.to_string()),
            None => Ok(()),
        }
    }
}
