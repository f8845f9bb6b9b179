//! Host - path - agent - path - network.

use crate::cut::cut;
use crate::duel::{End, LEFT, RIGHT, addresses};
use crate::path::{Path, Weather};
use crate::talk::Talk;
use bentpipe_agent::split::{HOST, NETWORK, Split, Verdict};
use bentpipe_base::{Duration, Instant, NodeId, World};
use bentpipe_live::endpoint::{ConnId, Settings};
use bentpipe_scenario::Source;
use bentpipe_scenario::agent_file::{AgentFile, load};
use bentpipe_tcp::Config;
use bentpipe_wire::offload::VnetHeader;
use core::net::SocketAddr;
use std::sync::Arc;

/// An agent that takes all connections, with these keys of its rule and `[limits]`.
pub(crate) fn file(rule: &str, limits: &str) -> AgentFile {
    let text = format!(
        "schema = 1\n[deploy]\nkind = \"inline\"\nhost = \"h\"\nnetwork = \"n\"\n[[rules]]\n{rule}\n[limits]\n{limits}\n"
    );
    load(&Source::new("agent.toml", text)).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) struct Chain {
    pub(crate) now: Instant,
    /// From the host to the agent, and from the agent to the network: their left ends are nearer to the host.
    pub(crate) paths: [Path; 2],
    pub(crate) ends: [End; 2],
    pub(crate) split: Split,
    world: World,
    /// Packets that the agent let pass.
    pub(crate) passed: u64,
    /// Set to lose all packets of an end.
    pub(crate) is_cut: [bool; 2],
    steps: u32,
    last: Instant,
}

impl Chain {
    pub(crate) fn new(seed: u64, weather: [Weather; 2], file: AgentFile) -> Self {
        let end = |side: usize| {
            let addresses = addresses(side).to_vec();
            End::new(seed ^ (side as u64 + 7) << 32, Settings { addresses, ..Settings::default() })
        };
        let mut world = World::new(seed ^ 0x5150);
        Self {
            now: Instant::ZERO,
            paths: [Path::new(seed, weather[0]), Path::new(seed + 1, weather[1])],
            ends: [end(LEFT), end(RIGHT)],
            split: Split::new(&mut world, Arc::new(file), [1500, 1500]),
            world,
            passed: 0,
            is_cut: [false; 2],
            steps: 0,
            last: Instant::ZERO,
        }
    }

    pub(crate) fn connect(&mut self, from: usize, to: SocketAddr) -> ConnId {
        let now = self.now;
        self.ends[from].with(now, |e, cx| e.connect(cx, to, &Config::default())).expect("it can")
    }

    /// Connects from side `from` to port 80 of the other, and starts both talks.
    pub(crate) fn talk(&mut self, from: usize, v6: bool, caller: Talk, listener: Talk) -> ConnId {
        self.ends[1 - from].talks.for_callers.entry(80).or_default().push(listener);
        let to = SocketAddr::new(addresses(1 - from)[usize::from(v6)], 80);
        let id = self.connect(from, to);
        let end = &mut self.ends[from];
        end.talks.of.insert(id, caller);
        if let Some(talk) = end.talks.of.get_mut(&id) {
            talk.start(&mut end.endpoint, id);
        }
        id
    }

    /// Port 80 listens at side `at`.
    pub(crate) fn listen(&mut self, at: usize) {
        self.ends[at].endpoint.listen(80, &Config::default(), 2000).expect("a free port");
    }

    /// The agent is killed: another takes its connections over, as `mourn` does.
    pub(crate) fn replace(&mut self, mut split: Split, dead: &[bentpipe_agent::split::FlowKey]) {
        let dead: Vec<_> = dead.iter().map(|key| (*key, Default::default())).collect();
        split.mourn(&dead);
        self.split = split;
    }

    fn settle(&mut self) {
        self.steps = if self.last == self.now { self.steps + 1 } else { 0 };
        self.last = self.now;
        assert!(self.steps < 10_000, "time stands still at {}", self.now);
        let now = self.now;
        self.paths.iter_mut().for_each(|path| path.advance(now));
        self.serve_ends();
        self.serve_agent();
    }

    fn serve_ends(&mut self) {
        let now = self.now;
        for side in [LEFT, RIGHT] {
            let (end, path) = (&mut self.ends[side], &mut self.paths[side]);
            let mut cx = end.world.cx(now, NodeId(0));
            while let Some(bytes) = path.leave(now, side) {
                if !self.is_cut[side] {
                    end.endpoint.packet(&mut cx, &bytes, &VnetHeader::default());
                }
            }
            end.endpoint.timer(&mut cx);
            let mut buffer = Vec::new();
            loop {
                while end.endpoint.next_packet(&mut cx, &mut buffer) {
                    if !self.is_cut[side] {
                        path.enter(now, side, &buffer);
                    }
                }
                let told = end.talks.log.len();
                end.talks.run(&mut end.endpoint, &mut cx);
                if end.talks.log.len() == told && !end.endpoint.wants_to_send() {
                    break;
                }
            }
        }
    }

    fn serve_agent(&mut self) {
        let now = self.now;
        let mut cx = self.world.cx(now, NodeId(0));
        for side in [HOST, NETWORK] {
            while let Some(bytes) = self.paths[side].leave(now, 1 - side) {
                match self.split.packet(&mut cx, (side, &[]), &bytes, &VnetHeader::default()) {
                    Verdict::Taken => {}
                    Verdict::Pass => {
                        self.passed += 1;
                        self.paths[1 - side].enter(now, side, &bytes);
                    }
                }
            }
        }
        self.split.timer(&mut cx);
        loop {
            let mut is_idle = true;
            for side in [HOST, NETWORK] {
                let path = &mut self.paths[side];
                while let Some(wires) =
                    self.split.next_packet(&mut cx, side, |_, vnet, parts| cut(vnet, parts))
                {
                    is_idle = false;
                    for bytes in wires {
                        path.enter(now, 1 - side, &bytes);
                    }
                }
            }
            self.split.serve(&mut cx);
            if is_idle && !self.split.wants_to_send() {
                return;
            }
        }
    }

    fn next_at(&mut self) -> Instant {
        let lazy = self.ends.iter().any(|e| e.talks.of.values().any(|t| t.lazy.is_some() && !t.done));
        let tick = if lazy { self.now + Duration::from_millis(10) } else { Instant::NEVER };
        let ends = self.ends.iter().map(|e| e.endpoint.next_at());
        let paths = self.paths.iter_mut().map(Path::next_at);
        ends.chain(paths).chain([self.split.next_at(), tick]).min().unwrap_or(Instant::NEVER)
    }

    /// Runs until `stop` returns true; false if nothing more happens before, or after `limit`.
    pub(crate) fn run(&mut self, limit: Duration, mut stop: impl FnMut(&mut Self) -> bool) -> bool {
        let end = self.now + limit;
        loop {
            self.settle();
            if stop(self) {
                return true;
            }
            let next = self.next_at();
            if next > end {
                self.now = end;
                return false;
            }
            assert!(next >= self.now, "a deadline lies in the past: {next} at {}", self.now);
            self.now = next;
        }
    }

    /// Runs for a time.
    pub(crate) fn pass(&mut self, time: Duration) {
        assert!(!self.run(time, |_| false));
    }

    pub(crate) fn all_done(&self) -> bool {
        self.ends.iter().all(|e| e.talks.all_done())
    }
}
