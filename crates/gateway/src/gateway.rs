//! The node: what comes at one side leaves at the other.

use crate::config::Config;
use crate::counters::Counters;
use crate::flow::shaper::{Shaper, Turn};
use crate::flow::{Flow, FlowReport, Memory, Shared, State};
use bentpipe_base::{Addr, Cx, Flags, Input, Instant, Node, Pkt, Port, Proto, Slot};

/// The side of the hosts that send.
pub const LAN: Port = Port(0);
/// The side of the satellite hop.
pub const SATELLITE: Port = Port(1);

/// Both ends, that of the LAN first.
type Key = (Addr, u16, Addr, u16);

/// A gateway.
#[derive(Debug)]
pub struct Gateway {
    config: Config,
    shaper: Shaper,
    counters: Counters,
    memory: Memory,
    flows: Vec<(Key, Option<Flow>)>,
    armed: Instant,
}

impl Gateway {
    /// A gateway that works as `config` says.
    pub fn new(config: Config) -> Self {
        let memory = Memory { used: 0, limit: config.limits.memory.0 };
        let shaper = Shaper::new(&config);
        Self {
            config,
            shaper,
            counters: Counters::default(),
            memory,
            flows: Vec::new(),
            armed: Instant::NEVER,
        }
    }

    /// How it works.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// What it counted.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Bytes held.
    pub const fn held(&self) -> u64 {
        self.memory.used
    }

    /// What its flows tell.
    pub fn reports(&self) -> Vec<FlowReport> {
        self.flows.iter().filter_map(|f| f.1.as_ref()).map(Flow::report).collect()
    }

    /// Stops accelerating; nothing is lost.
    pub fn release_all(&mut self, cx: &mut Cx<'_>) {
        self.each(cx, Flow::release);
    }

    fn each(&mut self, cx: &mut Cx<'_>, mut act: impl FnMut(&mut Flow, &mut Cx<'_>, &mut Shared<'_>)) {
        let Self { config, shaper, counters, memory, .. } = self;
        let mut shared = Shared { config, shaper, counters, memory };
        for (i, (_, flow)) in self.flows.iter_mut().enumerate() {
            let Some(flow) = flow else { continue };
            act(flow, cx, &mut shared);
            if let Some(want) = flow.wants(cx.now, &shared) {
                shared.shaper.request(i as u32, want);
            }
        }
    }

    fn packet(&mut self, cx: &mut Cx<'_>, from: Port, packet: Pkt) {
        let to = if from == LAN { SATELLITE } else { LAN };
        if packet.proto != Proto::Tcp || !self.config.accelerate {
            self.let_pass(cx, to, packet);
            return;
        }
        let (src, dst) = ((packet.src, packet.sport), (packet.dst, packet.dport));
        let (a, b) = if from == LAN { (src, dst) } else { (dst, src) };
        let key = (a.0, a.1, b.0, b.1);
        let Self { config, shaper, counters, memory, flows, .. } = self;
        let mut shared = Shared { config, shaper, counters, memory };
        let found = flows.iter().position(|f| f.0 == key);
        let i = found.unwrap_or_else(|| {
            let flow = if packet.tcp.flags.has(Flags::SYN) {
                Flow::begin(cx, from, &packet, &mut shared).ok()
            } else {
                None
            };
            flows.push((key, flow));
            flows.len() - 1
        });
        let Some(flow) = &mut flows[i].1 else {
            self.let_pass(cx, to, packet);
            return;
        };
        flow.packet(cx, from, packet, &mut shared);
        if flow.state() == State::Closed && flow.report().held.0 == 0 {
            flow.drop_all(cx, &mut shared);
        }
        if let Some(want) = flow.wants(cx.now, &shared) {
            shared.shaper.request(i as u32, want);
        }
    }

    fn let_pass(&mut self, cx: &mut Cx<'_>, to: Port, packet: Pkt) {
        let packet = if to == SATELLITE { self.shaper.pass(packet) } else { Err(packet) };
        if let Err(packet) = packet {
            cx.send(to, packet);
        }
    }

    fn serve(&mut self, cx: &mut Cx<'_>) {
        while let Some(turn) = self.shaper.next(cx.now) {
            match turn {
                Turn::Pass(packet) => cx.send(SATELLITE, packet),
                Turn::Flow(i) => {
                    let Self { config, shaper, counters, memory, flows, .. } = self;
                    let mut shared = Shared { config, shaper, counters, memory };
                    let Some(flow) = flows.get_mut(i as usize).and_then(|f| f.1.as_mut()) else {
                        shared.shaper.forget(i);
                        continue;
                    };
                    let size = flow.serve(cx, &mut shared);
                    let wants = flow.wants(cx.now, &shared);
                    shared.shaper.sent(cx.now, i, size, wants);
                }
            }
        }
    }

    fn arm(&mut self, cx: &mut Cx<'_>) {
        let flows = self.flows.iter().filter_map(|f| f.1.as_ref()?.deadline());
        let Some(at) = flows.chain(self.shaper.deadline()).min() else { return };
        if at < self.armed {
            self.armed = at;
            cx.wake(Slot(0), at);
        }
    }
}

impl Node for Gateway {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input) {
        match input {
            Input::Packet(from, packet) => self.packet(cx, from, packet),
            Input::Timer(_) => {
                if cx.now >= self.armed {
                    self.armed = Instant::NEVER;
                }
                self.each(cx, |flow, cx, shared| {
                    if flow.deadline().is_some_and(|at| at <= cx.now) {
                        flow.timer(cx, shared);
                    }
                });
            }
        }
        self.serve(cx);
        self.arm(cx);
    }
}
