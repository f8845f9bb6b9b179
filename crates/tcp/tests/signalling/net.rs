//! Two connections and the network between them, which reads and writes their signalling.

use bentpipe_advice::tia1039::{self, Kind};
use bentpipe_base::{Addr, Duration, Instant, IpVersion, NodeId, Packet, Rate, Seq, Size, World};
use bentpipe_tcp::{
    AskConfig, Config, Connection, Offer, RandomValues, ReceiveBuffer, Scheme, Signalling, Tuple,
};
use std::collections::VecDeque;
use std::sync::Arc;

/// Round trip.
pub(crate) const RTT: Duration = Duration::from_millis(100);
/// The MSS option of both ends.
pub(crate) const MSS: u16 = 1000;
/// First sequence number of each end.
pub(crate) const ISN: [Seq; 2] = [Seq(u32::MAX - 50), Seq(99)];
/// What an end asks for: more than any router gives.
pub(crate) const ASK: Option<Rate> = Rate::from_bps(10_000_000_000);

pub(crate) fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// About `n` Mbit/s, exact in the rate field.
pub(crate) fn mbps(n: u64) -> Rate {
    Rate::from_bps(n * 1_024_000).expect("more than zero")
}

/// A host that signals and asks for `ask`. Segments have 1000 B less options.
pub(crate) fn host(ask: Option<Rate>, ip: IpVersion) -> Config {
    let scheme = if ask.is_some() { "explicit-rate" } else { "cubic" };
    Config {
        scheme: Scheme::named(scheme).expect("a scheme"),
        mss: MSS,
        ip,
        receive_buffer: ReceiveBuffer::Fixed(Size(4 << 20)),
        signalling: Some(Signalling::new(AskConfig { ask, ..AskConfig::default() })),
        ..Config::default()
    }
}

/// What the structures of a packet say.
pub(crate) fn said(packet: &Packet) -> Vec<(Kind, Option<Rate>)> {
    let structures = tia1039::structures(packet);
    structures.as_slice().iter().map(|s| (s.kind().expect("a kind"), s.available())).collect()
}

/// A router that gives `most`: it lowers each request.
pub(crate) fn lower(packet: &mut Packet, most: Rate) {
    let structures = tia1039::structures(packet);
    for (i, structure) in structures.as_slice().iter().enumerate() {
        let mut lowered = *structure;
        if lowered.kind().is_some_and(Kind::is_request) && lowered.available().is_some_and(|r| r > most) {
            lowered.set_available(Some(most));
            lowered.set_changed(true);
            tia1039::replace(packet, i, &lowered);
        }
    }
}

/// Removes the structures of a packet, not its DSCP.
pub(crate) fn strip(packet: &mut Packet) {
    tia1039::write(packet, &[]);
}

/// What the network does to a packet that a side sends at some time; false: it is lost.
type Network<'n> = dyn FnMut(Instant, usize, &mut Packet) -> bool + 'n;

/// Both ends and the packets in flight. Side 0 opens; both read all data at once.
pub(crate) struct Net<'n> {
    world: World,
    now: Instant,
    ends: [Option<Connection>; 2],
    flying: [VecDeque<(Instant, Packet)>; 2],
    answer: Arc<Config>,
    /// Bytes that side 1 writes when it accepts.
    pub(crate) backlog: u64,
    network: Box<Network<'n>>,
    /// All packets as the ends sent them: time, side, packet.
    pub(crate) sent: Vec<(Instant, usize, Packet)>,
}

impl<'n> Net<'n> {
    pub(crate) fn new(
        opener: Config,
        answer: Config,
        network: impl FnMut(Instant, usize, &mut Packet) -> bool + 'n,
    ) -> Self {
        let mut world = World::new(1);
        let tuple = Tuple { local: (Addr(1), 1000), remote: (Addr(2), 2000) };
        let cx = world.cx(Instant::ZERO, NodeId(0));
        let conn = Connection::connect(&cx, tuple, Arc::new(opener), chance(0));
        Self {
            world,
            now: Instant::ZERO,
            ends: [Some(conn), None],
            flying: Default::default(),
            answer: Arc::new(answer),
            backlog: 0,
            network: Box::new(network),
            sent: Vec::new(),
        }
    }

    pub(crate) fn end(&self, side: usize) -> &Connection {
        self.ends[side].as_ref().expect("it was opened")
    }

    pub(crate) fn with<T>(&mut self, side: usize, act: impl FnOnce(&mut Connection) -> T) -> T {
        act(self.ends[side].as_mut().expect("it was opened"))
    }

    /// Packets of one side, with their times.
    pub(crate) fn of(&self, side: usize) -> impl Iterator<Item = (Instant, &Packet)> {
        self.sent.iter().filter(move |(_, from, _)| *from == side).map(|(at, _, packet)| (*at, packet))
    }

    /// When a side sent which structures, without those that say nothing.
    pub(crate) fn structures(&self, side: usize) -> Vec<(Instant, Kind, Option<Rate>)> {
        let of_packet = |(at, packet)| said(packet).into_iter().map(move |(kind, rate)| (at, kind, rate));
        self.of(side).flat_map(of_packet).filter(|s| s.1 != Kind::Forward).collect()
    }

    /// Rate of the data packets that a side sent from `since` on, for a second, headers included.
    pub(crate) fn rate(&self, side: usize, since: Instant) -> f64 {
        let second = since..since + Duration::from_secs(1);
        let data = self.of(side).filter(|(at, packet)| second.contains(at) && packet.body.len > 0);
        data.map(|(_, packet)| packet.wire_len().0 as f64 * 8.0).sum()
    }

    /// Lets both ends send.
    fn pump(&mut self) {
        for side in 0..2 {
            while let Some(end) = self.ends[side].as_mut() {
                let mut cx = self.world.cx(self.now, NodeId(0));
                let unread = end.readable();
                end.consume(cx.now, unread);
                let Some(packet) = end.transmit(&mut cx) else { break };
                let mut packet = *packet;
                self.sent.push((self.now, side, packet.clone()));
                assert!(self.sent.len() < 1_000_000, "it never stops sending");
                if (self.network)(self.now, side, &mut packet) {
                    self.flying[side].push_back((self.now + RTT / 2, packet));
                }
            }
        }
    }

    /// Runs until `end`, or until nothing more happens.
    pub(crate) fn run(&mut self, end: Instant) {
        self.pump();
        loop {
            let arrivals = self.flying.iter().filter_map(|f| f.front().map(|p| p.0));
            let timers = self.ends.iter().flatten().map(Connection::deadline);
            let Some(next) = arrivals.chain(timers).min().filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            for side in 0..2 {
                if self.flying[side].front().is_some_and(|p| p.0 <= self.now)
                    && let Some((_, packet)) = self.flying[side].pop_front()
                {
                    self.arrive(1 - side, &packet);
                    break;
                }
            }
            for end in self.ends.iter_mut().flatten() {
                if end.deadline() <= self.now {
                    end.timer(&mut self.world.cx(self.now, NodeId(0)));
                }
            }
            self.pump();
        }
        self.now = end;
    }

    fn arrive(&mut self, side: usize, packet: &Packet) {
        let mut cx = self.world.cx(self.now, NodeId(0));
        if let Some(end) = &mut self.ends[side] {
            end.segment(&mut cx, packet);
        } else if let Some(offer) = Offer::new(packet, Arc::clone(&self.answer)) {
            let mut end = offer.complete(&mut cx, chance(1));
            end.write(self.backlog);
            self.ends[side] = Some(end);
        }
    }
}

fn chance(side: usize) -> RandomValues {
    RandomValues { isn: ISN[side], timestamp: 0, jitter: None }
}
