//! The data path of method `split`, without I/O and without a clock: two TCPs in the place of one connection.
//!
//! Source: RFC 3135, section 2.1.2 (split connections); RFC 9293. Idea: towards each end the agent speaks
//! with the addresses and ports of the other, so neither knows of it. Towards the network it uses the
//! configuration that a rule asks for, which signals.
//!   SYN of a connection that a rule takes: held; we open the connection to the other end
//!     it answers: the SYN is answered; it refuses: a RST; it is silent: nothing
//!   bytes in order from one end -> send buffer to the other, as far as there is room; else the window closes
//!   FIN of one end, after its last byte -> FIN to the other; the other direction goes on
//!   RST, or silence until a timeout, of one end -> what came before it, then a RST to the other
//! So an end sees a clean end only after all bytes that its peer sent before its FIN. What is acknowledged to
//! an end is in this machine's memory, not yet at its peer. Connections are bounded by number, and their
//! buffers by memory that is set aside before they grow (`admission.rs`). All other packets pass byte for
//! byte.
//! Deviation from RFC 3135: no state is kept of connections that the agent did not see opening; they pass.

mod admission;
mod buffers;
mod events;
mod flow;
mod mourning;
mod view;

pub use flow::{FlowKey, LONGEST_LINK, Link};
pub use view::{Counters, FlowState, FlowView};

use admission::Memory;
use bentpipe_base::{Cx, Duration, Flags, Instant, World};
use bentpipe_gateway::{Side, SynProperties};
use bentpipe_live::endpoint::{ConnId, Endpoint, Settings};
use bentpipe_scenario::agent_file::AgentFile;
use bentpipe_wire::offload::VnetHeader;
use core::net::{IpAddr, SocketAddr};
use flow::{Flow, Head, Phase, ends_of_headers};
use std::collections::{BTreeMap, VecDeque};
use std::io::IoSlice;
use std::sync::Arc;

/// The side of the host.
pub const HOST: usize = 0;
/// The side of the network.
pub const NETWORK: usize = 1;

/// Time limit for the handshake: Linux gives up a SYN after 127 s.
const OPEN_TIMEOUT: Duration = Duration::from_secs(130);
/// Interval between looks for connections that the endpoints have forgotten.
const SWEEP: Duration = Duration::from_millis(500);
/// How long packets of an aborted connection are answered with a RST: longer than an end retransmits with an
/// RTO below a minute.
const GRAVE: Duration = Duration::from_secs(120);
/// Most aborted connections that are remembered, or twice the limit of connections if that is more. The
/// oldest is dropped first.
const MOST_GRAVES: usize = 8192;
/// Bytes moved at once.
const CHUNK: usize = 256 << 10;

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It belongs to the agent.
    Taken,
    /// It goes on to the other side as it is.
    Pass,
}

/// Hears which connections the agent has, so that another process can reset them if this one is killed.
pub trait FlowLog: core::fmt::Debug + Send {
    /// Both ends have a connection from now on, with these link headers.
    fn opened(&mut self, key: &FlowKey, links: &[Link; 2]);
    /// It has ended.
    fn ended(&mut self, key: &FlowKey);
}

/// The data path.
#[derive(Debug)]
pub struct Split {
    file: Arc<AgentFile>,
    /// Towards the host, and towards the network.
    ends: [Endpoint; 2],
    flows: BTreeMap<FlowKey, Flow>,
    by_conn: [BTreeMap<ConnId, FlowKey>; 2],
    /// Number of connections between two addresses, for fragments.
    between: BTreeMap<(IpAddr, IpAddr), u32>,
    /// Aborted connections, and until when they are remembered.
    graves: BTreeMap<FlowKey, (Instant, [Link; 2])>,
    /// The same in the order of their ends; it may hold some that were opened again.
    buried: VecDeque<(FlowKey, Instant)>,
    /// Packets made here, with the side they go to.
    made: VecDeque<(usize, Link, Vec<u8>)>,
    memory: Memory,
    counters: Counters,
    log: Option<Box<dyn FlowLog>>,
    scratch: Vec<u8>,
    sweep_at: Instant,
    accepts: bool,
}

impl Split {
    /// A data path as `file` wants it, between networks with the MTUs `mtu` (host, network).
    pub fn new(world: &mut World, file: Arc<AgentFile>, mtu: [u16; 2]) -> Self {
        let most = file.limits.flows;
        let end = |world: &mut World, name, mtu| {
            let settings = Settings {
                transparent: true,
                mtu,
                // those in TIME-WAIT, and those of the next connections between the same addresses
                max_connections: 2 * most,
                max_time_wait: most / 2,
                open_timeout: OPEN_TIMEOUT,
                ..Settings::default()
            };
            Endpoint::new(world, name, settings)
        };
        let ends = [end(world, "host", mtu[HOST]), end(world, "network", mtu[NETWORK])];
        Self {
            memory: Memory::new(&file.limits),
            file,
            ends,
            flows: BTreeMap::new(),
            by_conn: Default::default(),
            between: BTreeMap::new(),
            graves: BTreeMap::new(),
            buried: VecDeque::new(),
            made: VecDeque::new(),
            counters: Counters::default(),
            log: None,
            scratch: vec![0; CHUNK],
            sweep_at: Instant::NEVER,
            accepts: true,
        }
    }

    /// Reports connections to `log` from now on.
    pub fn set_log(&mut self, log: Box<dyn FlowLog>) {
        self.log = Some(log);
    }

    /// Takes no new connections from now on; they pass.
    pub const fn stop_accepting(&mut self) {
        self.accepts = false;
    }

    /// Handles a packet from `side`, with its link header and its virtio header, which counts from the IP
    /// header.
    pub fn packet(
        &mut self,
        cx: &mut Cx<'_>,
        (side, link): (usize, &[u8]),
        bytes: &[u8],
        vnet: &VnetHeader,
    ) -> Verdict {
        let (from, to, flags, dscp) = match Head::of(bytes) {
            Head::Tcp(from, to, flags, dscp) => (from, to, flags, dscp),
            Head::Fragment(from, to) => return self.fragment(side, from, to),
            Head::Other => return self.icmp(cx, side, bytes, vnet),
        };
        let key = FlowKey::of(side, from, to);
        let opens = flags.0 & (Flags::SYN.0 | Flags::ACK.0 | Flags::RST.0 | Flags::FIN.0) == Flags::SYN.0;
        if opens && self.flows.get(&key).is_some_and(|flow| matches!(flow.phase, Phase::Closing)) {
            // a new connection between the same addresses: the old one has delivered everything
            self.forget(&key, true);
        }
        if let Some(flow) = self.flows.get_mut(&key) {
            if let Some(link) = Link::new(link) {
                flow.note_link(side, link);
            }
            // the opener hears of us when the other end has answered
            if !(matches!(flow.phase, Phase::Opening(_)) && side == flow.opener) {
                self.ends[side].packet(cx, bytes, vnet);
            }
            return Verdict::Taken;
        }
        if opens {
            let opening = SynProperties {
                from: from.ip(),
                to: to.ip(),
                from_port: from.port(),
                port: to.port(),
                dscp,
                side: if side == HOST { Side::Lan } else { Side::Satellite },
            };
            return self.open(cx, (side, link), &opening, bytes, vnet);
        }
        if self.graves.contains_key(&key) {
            // no such connection: the endpoint answers with a RST
            self.ends[side].packet(cx, bytes, vnet);
            return Verdict::Taken;
        }
        Verdict::Pass
    }

    /// A packet from the network that another handles: only an ICMP error about a segment of ours counts.
    pub fn overhear(&mut self, cx: &mut Cx<'_>, bytes: &[u8], vnet: &VnetHeader) {
        if matches!(Head::of(bytes), Head::Other) {
            self.icmp(cx, NETWORK, bytes, vnet);
        }
    }

    /// A fragment of a connection that the agent has would mean nothing to the other end, or worse: it has
    /// other sequence numbers. It is dropped; TCP avoids fragments.
    fn fragment(&mut self, side: usize, from: IpAddr, to: IpAddr) -> Verdict {
        let pair = if side == HOST { (from, to) } else { (to, from) };
        if self.between.contains_key(&pair) {
            self.counters.fragments += 1;
            return Verdict::Taken;
        }
        Verdict::Pass
    }

    /// An ICMP error about a segment of ours is for us.
    fn icmp(&mut self, cx: &mut Cx<'_>, side: usize, bytes: &[u8], vnet: &VnetHeader) -> Verdict {
        let about = Endpoint::subject_of_icmp(bytes);
        let key = about.map(|(ours, peers)| FlowKey::of(side, peers, ours));
        if key.is_some_and(|key| self.flows.contains_key(&key)) {
            self.ends[side].packet(cx, bytes, vnet);
            return Verdict::Taken;
        }
        Verdict::Pass
    }

    /// Opens the connection of a SYN, if a rule takes it.
    fn open(
        &mut self,
        cx: &mut Cx<'_>,
        (side, link): (usize, &[u8]),
        opening: &SynProperties,
        bytes: &[u8],
        vnet: &VnetHeader,
    ) -> Verdict {
        let (from, to) =
            (SocketAddr::new(opening.from, opening.from_port), SocketAddr::new(opening.to, opening.port));
        let key = FlowKey::of(side, from, to);
        let file = Arc::clone(&self.file);
        let taken = file.site.policy.rule_for(opening).filter(|_| self.accepts);
        let ask = taken.and_then(|rule| Some((rule, file.asks.get(rule)?.as_ref()?)));
        let Some((rule, ask)) = ask else {
            // whatever was here before: this connection is not ours
            self.graves.remove(&key);
            return Verdict::Pass;
        };
        let Some(grant) = self.memory.admit(ask) else {
            self.counters.too_many += 1;
            return Verdict::Pass;
        };
        let configs = grant.configs(ask, from.ip(), self.file.limits.idle);
        let other = 1 - side;
        let link = Link::new(link);
        let held = link.and_then(|_| self.ends[side].hold(cx, bytes, vnet, &configs[side]));
        let called = held.and_then(|held| {
            let id = self.ends[other].connect_between(cx, from, to, &configs[other]).ok()?;
            Some((held, id))
        });
        let Some((held, id)) = called else {
            self.memory.release(&grant);
            self.counters.not_taken += 1;
            return Verdict::Pass;
        };
        self.graves.remove(&key);
        let mut flow = Flow {
            phase: Phase::Opening(held),
            opener: side,
            ids: [None; 2],
            ended: [false; 2],
            delivered: [false; 2],
            carried: [0; 2],
            links: [Link::default(); 2],
            grant: Some(grant),
            rule,
            since: cx.now,
        };
        flow.ids[other] = Some(id);
        flow.note_link(side, link.unwrap_or_default());
        self.by_conn[other].insert(id, key);
        *self.between.entry((key.host.ip(), key.remote.ip())).or_default() += 1;
        self.flows.insert(key, flow);
        self.counters.connections += 1;
        Verdict::Taken
    }

    /// Handles all timers that are due.
    pub fn timer(&mut self, cx: &mut Cx<'_>) {
        self.ends.iter_mut().for_each(|end| end.timer(cx));
        if self.sweep_at <= cx.now {
            self.sweep(cx.now);
        }
    }

    /// When [`Split::timer`] must be called next.
    pub fn next_at(&self) -> Instant {
        let ends = self.ends.iter().map(Endpoint::next_at);
        ends.min().unwrap_or(Instant::NEVER).min(self.sweep_at)
    }

    /// True if there may be packets to send.
    pub fn wants_to_send(&self) -> bool {
        !self.made.is_empty() || self.ends.iter().any(Endpoint::wants_to_send)
    }

    /// Hands the next packet towards `side` to `send`, with its link header; `None` if there is none. Call
    /// [`Split::serve`] afterwards.
    pub fn next_packet<T>(
        &mut self,
        cx: &mut Cx<'_>,
        side: usize,
        send: impl FnOnce(&[u8], &VnetHeader, &[IoSlice<'_>]) -> T,
    ) -> Option<T> {
        if let Some(at) = self.made.iter().position(|(to, ..)| *to == side)
            && let Some((_, link, bytes)) = self.made.remove(at)
        {
            return Some(send(link.bytes(), &VnetHeader::default(), &[IoSlice::new(&bytes)]));
        }
        let (flows, graves) = (&self.flows, &self.graves);
        self.ends[side].next_super(cx, |vnet, parts| {
            let link = key_of(side, parts).and_then(|key| {
                let live = flows.get(&key).map(|flow| &flow.links[side]);
                live.or_else(|| graves.get(&key).map(|(_, links)| &links[side]))
            });
            send(link.map_or(&[], Link::bytes), vnet, parts)
        })
    }
}

/// The connection of a packet of ours that goes to `side`.
fn key_of(side: usize, parts: &[IoSlice<'_>]) -> Option<FlowKey> {
    let headers = parts.iter().find(|part| !part.is_empty())?;
    let (from, to) = ends_of_headers(headers)?;
    Some(FlowKey::of(1 - side, from, to))
}
