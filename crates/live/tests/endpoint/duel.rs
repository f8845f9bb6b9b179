//! Two endpoints with a path between them, in simulated time.

use crate::path::{Path, Weather};
use crate::talk::{Talk, Talks};
use bentpipe_base::{Cx, Duration, Instant, NodeId, Rate, World};
use bentpipe_live::endpoint::{ConnId, Endpoint, EndpointError, Settings};
use bentpipe_tcp::Config;
use bentpipe_wire::offload::VnetHeader;
use core::net::{IpAddr, SocketAddr};

pub(crate) const LEFT: usize = 0;
pub(crate) const RIGHT: usize = 1;

/// Addresses of an end, IPv4 first.
pub(crate) fn addresses(side: usize) -> [IpAddr; 2] {
    let v4 = [[10, 0, 0, 1], [10, 0, 0, 2]][side];
    let v6 = [[0xfd55, 0, 0, 0, 0, 0, 0, 1], [0xfd55, 0, 0, 0, 0, 0, 0, 2]][side];
    [IpAddr::from(v4), IpAddr::from(v6)]
}

/// An endpoint with its world and its applications.
pub(crate) struct End {
    pub(crate) world: World,
    pub(crate) endpoint: Endpoint,
    pub(crate) talks: Talks,
    /// Packets sent.
    pub(crate) sent: u64,
}

impl End {
    pub(crate) fn new(seed: u64, settings: Settings) -> Self {
        let mut world = World::new(seed);
        let endpoint = Endpoint::new(&mut world, "end", settings);
        Self { world, endpoint, talks: Talks::default(), sent: 0 }
    }

    pub(crate) fn with<T>(&mut self, now: Instant, act: impl FnOnce(&mut Endpoint, &mut Cx<'_>) -> T) -> T {
        act(&mut self.endpoint, &mut self.world.cx(now, NodeId(0)))
    }
}

pub(crate) struct Duel {
    pub(crate) now: Instant,
    pub(crate) path: Path,
    pub(crate) ends: [End; 2],
    buffer: Vec<u8>,
    steps: u32,
    last: Instant,
}

/// 100 Mbit/s, 5 ms each way, no impairments.
pub(crate) const FAIR: Weather = Weather {
    rate: match Rate::from_bps(100_000_000) {
        Some(rate) => rate,
        None => unreachable!(),
    },
    one_way: Duration::from_millis(5),
    loss: 0.0,
    duplicate: 0.0,
    reorder: 0.0,
    spread: Duration::ZERO,
};

/// Loss, duplication and reordering.
pub(crate) const FOUL: Weather =
    Weather { loss: 0.01, duplicate: 0.01, reorder: 0.01, spread: Duration::from_millis(4), ..FAIR };

impl Duel {
    pub(crate) fn new(seed: u64, weather: Weather) -> Self {
        Self::with(seed, weather, &Settings::default())
    }

    pub(crate) fn with(seed: u64, weather: Weather, settings: &Settings) -> Self {
        let end = |side: usize| {
            let settings = Settings { addresses: addresses(side).to_vec(), ..settings.clone() };
            End::new(seed ^ (side as u64) << 32, settings)
        };
        Self {
            now: Instant::ZERO,
            path: Path::new(seed, weather),
            ends: [end(LEFT), end(RIGHT)],
            buffer: Vec::new(),
            steps: 0,
            last: Instant::ZERO,
        }
    }

    /// Address of port `port` of an end, in IPv4 or IPv6.
    pub(crate) fn at(side: usize, v6: bool, port: u16) -> SocketAddr {
        SocketAddr::new(addresses(side)[usize::from(v6)], port)
    }

    pub(crate) fn connect(
        &mut self,
        side: usize,
        to: SocketAddr,
        config: &Config,
    ) -> Result<ConnId, EndpointError> {
        self.ends[side].with(self.now, |endpoint, cx| endpoint.connect(cx, to, config))
    }

    /// Connects and starts both talks.
    pub(crate) fn talk(&mut self, v6: bool, config: &Config, caller: Talk, listener: Talk) -> ConnId {
        self.ends[RIGHT].talks.for_callers.entry(80).or_default().push(listener);
        let id = self.connect(LEFT, Self::at(RIGHT, v6, 80), config).expect("it can");
        self.ends[LEFT].talks.of.insert(id, caller);
        let end = &mut self.ends[LEFT];
        if let Some(talk) = end.talks.of.get_mut(&id) {
            talk.start(&mut end.endpoint, id);
        }
        id
    }

    /// Handles everything that is due at the present time.
    pub(crate) fn settle(&mut self) {
        self.steps = if self.last == self.now { self.steps + 1 } else { 0 };
        self.last = self.now;
        assert!(self.steps < 10_000, "time stands still at {}", self.now);
        self.path.advance(self.now);
        for side in [LEFT, RIGHT] {
            let end = &mut self.ends[side];
            let mut cx = end.world.cx(self.now, NodeId(0));
            while let Some(bytes) = self.path.leave(self.now, side) {
                end.endpoint.packet(&mut cx, &bytes, &VnetHeader::default());
            }
            end.endpoint.timer(&mut cx);
            loop {
                while end.endpoint.next_packet(&mut cx, &mut self.buffer) {
                    assert!(self.buffer.len() <= 1500, "a packet fits the network: {}", self.buffer.len());
                    end.sent += 1;
                    self.path.enter(self.now, side, &self.buffer);
                }
                let told = end.talks.log.len();
                end.talks.run(&mut end.endpoint, &mut cx);
                if end.talks.log.len() == told && !end.endpoint.wants_to_send() {
                    break;
                }
            }
        }
    }

    pub(crate) fn next_at(&mut self) -> Instant {
        let lazy = self.ends.iter().any(|e| e.talks.of.values().any(|t| t.lazy.is_some() && !t.done));
        let tick = if lazy { self.now + Duration::from_millis(10) } else { Instant::NEVER };
        let ends = self.ends.iter().map(|e| e.endpoint.next_at()).min().unwrap_or(Instant::NEVER);
        self.path.next_at().min(ends).min(tick)
    }

    /// Runs until `stop` returns true; fails if nothing more would happen before, or after `limit`.
    pub(crate) fn run(&mut self, limit: Duration, mut stop: impl FnMut(&mut Self) -> bool) {
        let end = self.now + limit;
        loop {
            self.settle();
            if stop(self) {
                return;
            }
            let next = self.next_at();
            assert!(next < Instant::NEVER, "nothing will happen any more at {}", self.now);
            assert!(next <= end, "it takes too long: {}", self.now);
            assert!(next >= self.now, "a deadline lies in the past: {next} at {}", self.now);
            self.now = next;
        }
    }

    /// Runs for a time.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.settle();
            let next = self.next_at();
            if next > end {
                break;
            }
            self.now = next;
        }
        self.now = end;
        self.settle();
    }

    pub(crate) fn all_done(&mut self) -> bool {
        self.ends.iter().all(|e| e.talks.all_done())
    }
}
