//! A hop that loses, duplicates and reorders packets, with outages, to test a gateway.

use bentpipe_base::{Cx, Duration, Input, Instant, Node, Pkt, Port, Proto, Slot};
use bentpipe_gateway::{LAN, SATELLITE};
use std::collections::BTreeMap;

/// Impairments of the hop, in both directions.
#[derive(Clone, Debug)]
pub(crate) struct Weather {
    /// One-way delay.
    pub(crate) delay: Duration,
    /// Fractions of packets.
    pub(crate) loss: f64,
    pub(crate) twice: f64,
    pub(crate) late: f64,
    /// Outages: start of the first, length, and interval.
    pub(crate) outage: Option<(Duration, Duration, Duration)>,
    pub(crate) seed: u64,
}

impl Weather {
    /// Delay only.
    pub(crate) const fn clear(delay: Duration) -> Self {
        Self { delay, loss: 0.0, twice: 0.0, late: 0.0, outage: None, seed: 1 }
    }
}

/// Maximum extra delay of a late packet.
const LATE: Duration = Duration::from_millis(8);

/// The hop, and its counters.
#[derive(Debug)]
pub(crate) struct Hop {
    weather: Weather,
    on_the_way: BTreeMap<(Instant, u64), (Port, Pkt)>,
    random: u64,
    count: u64,
    asked: Instant,
    /// Drops everything.
    pub(crate) dead: bool,
    /// Packets: all, lost, duplicated, late, lost in an outage.
    pub(crate) did: [u64; 5],
}

impl Hop {
    pub(crate) fn new(weather: &Weather) -> Self {
        Self {
            weather: weather.clone(),
            on_the_way: BTreeMap::new(),
            random: weather.seed,
            count: 0,
            asked: Instant::NEVER,
            dead: false,
            did: [0; 5],
        }
    }

    /// SplitMix64, as a number in [0, 1).
    fn share(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z >> 11) as f64 / (1u64 << 53) as f64
    }

    fn is_away(&self, now: Instant) -> bool {
        let Some((from, length, period)) = self.weather.outage else { return false };
        (from.0..from.0 + length.0).contains(&(now.0 % period.0))
    }

    /// Handles each packet of a super-packet separately.
    fn cut(&mut self, cx: &mut Cx<'_>, to: Port, mut packet: Pkt) {
        let size = u32::from(packet.segment);
        while packet.proto == Proto::Tcp && size > 0 && packet.body.len > size {
            let mut first = cx.duplicate(&packet);
            first.body.len = size;
            first.segment = 0;
            packet.body.off += u64::from(size);
            packet.body.len -= size;
            packet.tcp.seq = packet.tcp.seq.at(u64::from(size));
            self.one(cx, to, first);
        }
        packet.segment = 0;
        self.one(cx, to, packet);
    }

    fn one(&mut self, cx: &mut Cx<'_>, to: Port, packet: Pkt) {
        let [lost, twice, late] =
            [self.weather.loss, self.weather.twice, self.weather.late].map(|p| self.share() < p);
        self.did[0] += 1;
        if lost || self.dead || self.is_away(cx.now) {
            self.did[if lost { 1 } else { 4 }] += 1;
            return cx.recycle(packet);
        }
        if twice {
            self.did[2] += 1;
            let copy = cx.duplicate(&packet);
            self.carry(cx, to, copy, false);
        }
        self.did[3] += u64::from(late);
        self.carry(cx, to, packet, late);
    }

    fn carry(&mut self, cx: &mut Cx<'_>, to: Port, packet: Pkt, late: bool) {
        let more = if late { Duration((self.share() * LATE.0 as f64) as u64) } else { Duration::ZERO };
        self.count += 1;
        self.on_the_way.insert((cx.now + self.weather.delay + more, self.count), (to, packet));
    }

    fn deliver(&mut self, cx: &mut Cx<'_>) {
        while let Some(entry) = self.on_the_way.first_entry().filter(|e| e.key().0 <= cx.now) {
            let (to, packet) = entry.remove();
            cx.send(to, packet);
        }
        if self.asked <= cx.now {
            self.asked = Instant::NEVER;
        }
        if let Some(((at, _), _)) = self.on_the_way.first_key_value()
            && *at < self.asked
        {
            self.asked = *at;
            cx.wake(Slot(0), *at);
        }
    }
}

impl Node for Hop {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input) {
        if let Input::Packet(from, packet) = input {
            self.cut(cx, if from == LAN { SATELLITE } else { LAN }, packet);
        }
        self.deliver(cx);
    }

    fn release(&mut self, cx: &mut Cx<'_>) {
        for (_, (to, packet)) in core::mem::take(&mut self.on_the_way) {
            cx.send(to, packet);
        }
    }
}
