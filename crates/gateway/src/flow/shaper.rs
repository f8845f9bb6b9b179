//! One pacer for the hop: what leaves for the satellite leaves at a little less than its rate, so that the link has no queue and never loses by one.
//!
//! Counts IP bytes and framing, as the link does. Who has something to send asks; repairs go first (a hole stops a receiver), then flows in turn by deficit
//! round robin (Shreedhar and Varghese, 1996) with a quantum of one full packet; packets that merely pass are one more class with a turn of its own.
//! Without a rate everything leaves at once. A late wake-up is made up for, as far as 2 ms.

use super::copies::Losses;
use crate::config::Config;
use bentpipe_base::{Duration, Instant, Packet, Pkt, Rate, Size};
use std::collections::VecDeque;

/// What a flow gains per turn at least: a full packet with framing.
const QUANTUM: i64 = 1600;
/// How late the pacer may be and still keep its rate.
const SLACK: Duration = Duration::from_millis(2);
/// Packets that pass may wait this long at the rate; beyond that they leave at once.
const PASSING: Duration = Duration::from_millis(100);

/// Who may send.
#[derive(Debug)]
pub(crate) enum Turn {
    /// The flow with this number: `Flow::serve`, then [`Shaper::sent`].
    Flow(u32),
    /// This packet, to the satellite. It is accounted for.
    Pass(Pkt),
}

/// What a flow has to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// Something that was lost.
    Repair,
    /// New data, or a further copy.
    Data,
}

/// The pacer and the queues before it.
#[derive(Debug, Default)]
pub(crate) struct Shaper {
    rate: Option<Rate>,
    share: f64,
    framing: Size,
    /// When the hop is free.
    free: Instant,
    /// Flows with their tickets.
    repairs: VecDeque<(u32, u32)>,
    /// Flows in turn, with their tickets; what each may still send in its turn, or has sent beyond the last.
    flows: VecDeque<(u32, u32, i64)>,
    /// The tickets with which each flow waits in the two, 0 where it does not: so asking costs nothing, and neither does going away.
    waits: Vec<(u32, u32)>,
    serial: u32,
    /// Places in the queues at most that nobody waits in any more.
    stale: usize,
    passing: VecDeque<Pkt>,
    passing_bytes: u64,
    /// The passing class had the last turn.
    passed: bool,
    /// Flows that use their share of the hop.
    pub(crate) active: u32,
    /// What is known of its losses.
    pub(crate) losses: Losses,
}

impl Shaper {
    pub(crate) fn new(config: &Config) -> Self {
        let mut shaper = Self::default();
        shaper.configure(config);
        shaper
    }

    /// Takes over another configuration; who waits goes on waiting.
    pub(crate) fn configure(&mut self, config: &Config) {
        self.rate = config.rate;
        self.share = if config.share > 0.0 { config.share.min(1.0) } else { 1.0 };
        self.framing = config.framing;
    }

    /// Bytes that the hop counts for a packet.
    pub(crate) fn cost(&self, packet: &Packet) -> Size {
        let len = u64::from(packet.body.len);
        let n = if packet.segment == 0 { 1 } else { len.div_ceil(u64::from(packet.segment)).max(1) };
        Size(len + n * (u64::from(packet.header_len) + self.framing.0))
    }

    /// A flow has something to send. Asking again changes nothing, except from data to a repair.
    pub(crate) fn request(&mut self, flow: u32, want: Want) {
        let i = flow as usize;
        if self.waits.len() <= i {
            self.waits.resize(i + 1, (0, 0));
        }
        match want {
            Want::Repair if self.waits[i].0 == 0 => {
                self.waits[i].0 = self.ticket();
                self.repairs.push_back((flow, self.waits[i].0));
            }
            Want::Data if self.waits[i].1 == 0 => {
                self.waits[i].1 = self.ticket();
                self.flows.push_back((flow, self.waits[i].1, self.quantum()));
            }
            _ => {}
        }
    }

    /// A number that no place in the queues has: 0 is none.
    const fn ticket(&mut self) -> u32 {
        self.serial = self.serial.wrapping_add(1);
        if self.serial == 0 {
            self.serial = 1;
        }
        self.serial
    }

    /// Drops places that nobody waits in: those at the front, and all when they have become many.
    fn tidy(&mut self) {
        let waits = &self.waits;
        let waiting = |flow: u32| waits.get(flow as usize).copied().unwrap_or_default();
        while self.repairs.front().is_some_and(|r| waiting(r.0).0 != r.1) {
            self.repairs.pop_front();
        }
        while self.flows.front().is_some_and(|f| waiting(f.0).1 != f.1) {
            self.flows.pop_front();
        }
        if self.stale > 64 && self.stale * 2 > self.repairs.len() + self.flows.len() {
            self.repairs.retain(|r| waiting(r.0).0 == r.1);
            self.flows.retain(|f| waiting(f.0).1 == f.1);
            self.stale = 0;
        }
    }

    /// What a flow gains per turn: a packet, or what leaves in a millisecond.
    fn quantum(&self) -> i64 {
        let burst = self.rate.map_or(0, |r| r.bytes_in(Duration::from_millis(1)).0.min(1 << 20));
        QUANTUM.max(burst as i64)
    }

    /// Lets a packet that is nobody's pass in its turn.
    pub(crate) fn pass(&mut self, now: Instant, packet: Pkt) -> Result<(), Pkt> {
        let room = self.rate.map_or(0, |r| r.bytes_in(PASSING).0);
        if self.rate.is_none() || self.passing_bytes > room || self.free.since(now) > PASSING {
            return Err(packet);
        }
        self.passing_bytes += self.cost(&packet).0;
        self.passing.push_back(packet);
        Ok(())
    }

    /// Who may send now.
    pub(crate) fn next(&mut self, now: Instant) -> Option<Turn> {
        if self.free > now {
            return None;
        }
        self.tidy();
        if let Some((flow, _)) = self.repairs.front() {
            return Some(Turn::Flow(*flow));
        }
        if !self.passing.is_empty() && (self.flows.is_empty() || !self.passed) {
            let packet = self.passing.pop_front()?;
            let cost = self.cost(&packet);
            self.passing_bytes -= cost.0;
            self.passed = true;
            self.charge(now, cost);
            return Some(Turn::Pass(packet));
        }
        self.flows.front().map(|f| Turn::Flow(f.0))
    }

    /// The flow whose turn it was sent `size` as [`Shaper::cost`] counts, and `wants` to send more.
    pub(crate) fn sent(&mut self, now: Instant, flow: u32, size: Size, wants: Option<Want>) {
        self.passed = false;
        self.charge(now, size);
        self.tidy();
        if self.repairs.front().is_some_and(|r| r.0 == flow) {
            self.repairs.pop_front();
            self.waits[flow as usize].0 = 0;
        } else if let Some((_, ticket, deficit)) = self.flows.front_mut().filter(|f| f.0 == flow) {
            *deficit -= size.0 as i64;
            let (ticket, left) = (*ticket, *deficit);
            if left <= 0 || wants.is_none() {
                self.flows.pop_front();
                if wants.is_some() {
                    self.flows.push_back((flow, ticket, left + self.quantum()));
                } else {
                    self.waits[flow as usize].1 = 0;
                }
            }
        }
        if let Some(want) = wants {
            self.request(flow, want);
        }
    }

    /// The flow is gone. Its places stay until their turn comes: many may go at once, and the queues are long then.
    pub(crate) fn forget(&mut self, flow: u32) {
        if let Some(waits) = self.waits.get_mut(flow as usize) {
            self.stale += usize::from(waits.0 != 0) + usize::from(waits.1 != 0);
            *waits = (0, 0);
            self.tidy();
        }
    }

    /// Something left for the satellite.
    pub(crate) fn charge(&mut self, now: Instant, size: Size) {
        let Some(rate) = self.rate else { return };
        let start = self.free.max(Instant(now.0.saturating_sub(SLACK.0)));
        self.free = start + Duration((rate.time_for(size).0 as f64 / self.share) as u64);
    }

    /// The largest payload of a packet: a segment, or what the hop carries in a millisecond.
    pub(crate) fn largest(&self, segment: u16) -> u32 {
        let Some(rate) = self.rate else { return u32::MAX };
        let burst = rate.bytes_in(Duration::from_millis(1)).0.min(u64::from(u16::MAX)) as u32;
        let segment = u32::from(segment).max(1);
        (burst / segment).max(1) * segment
    }

    /// When somebody's turn comes.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let waits = !self.repairs.is_empty() || !self.flows.is_empty() || !self.passing.is_empty();
        waits.then_some(self.free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::Body;

    fn shaper(bps: u64) -> Shaper {
        Shaper::new(&Config { rate: Rate::from_bps(bps), framing: Size(14), ..Config::default() })
    }

    /// Lets the pacer run; each flow sends packets of its size. Returns the bytes of each and the time at the end.
    fn run(shaper: &mut Shaper, sizes: &[u64], turns: usize) -> (Vec<u64>, Instant) {
        let (mut now, mut bytes) = (Instant(1_000_000_000), vec![0; sizes.len()]);
        for flow in 0..sizes.len() {
            shaper.request(flow as u32, Want::Data);
        }
        for _ in 0..turns {
            now = now.max(shaper.deadline().expect("somebody waits"));
            let Some(Turn::Flow(flow)) = shaper.next(now) else { panic!("it is a flow's turn") };
            bytes[flow as usize] += sizes[flow as usize];
            shaper.sent(now, flow, Size(sizes[flow as usize]), Some(Want::Data));
        }
        (bytes, now)
    }

    #[test]
    fn the_rate_is_a_little_less_than_the_hops() {
        let (bytes, end) = run(&mut shaper(24_000_000), &[1514], 10_000);
        let took =
            end.since(Instant(1_000_000_000) + Duration::from_millis(0)).as_secs_f64() + 1514.0 * 8.0 / 24e6;
        let rate = bytes[0] as f64 * 8.0 / took;
        assert!((rate / (0.995 * 24e6) - 1.0).abs() < 2e-3, "{rate}");
    }

    /// A flow of small packets gets as many bytes as one of large ones.
    #[test]
    fn flows_share_by_bytes() {
        let (bytes, _) = run(&mut shaper(24_000_000), &[1514, 300, 900], 30_000);
        let mean = bytes.iter().sum::<u64>() as f64 / 3.0;
        assert!(bytes.iter().all(|b| (*b as f64 / mean - 1.0).abs() < 0.01), "{bytes:?}");
    }

    #[test]
    fn repairs_go_first_and_what_passes_has_its_turn() {
        let mut shaper = shaper(24_000_000);
        let now = Instant(1_000_000_000);
        shaper.request(0, Want::Data);
        shaper.request(1, Want::Repair);
        let packet = Packet { header_len: 28, body: Body { off: 0, len: 100 }, ..Packet::default() };
        shaper.pass(now, Box::new(packet)).expect("there is room");
        assert!(matches!(shaper.next(now), Some(Turn::Flow(1))));
        shaper.sent(now, 1, Size(1514), None);
        assert!(shaper.next(now + Duration::from_millis(10)).is_some_and(|t| matches!(t, Turn::Pass(_))));
        assert!(matches!(shaper.next(now + Duration::from_millis(20)), Some(Turn::Flow(0))));
        shaper.forget(0);
        assert_eq!(shaper.deadline(), None);
    }

    /// Many that wait go away, and come again under the same numbers: each has one turn, and the queues do not grow.
    #[test]
    fn who_is_gone_has_no_turn() {
        let mut shaper = shaper(24_000_000);
        let mut now = Instant(1_000_000_000);
        for round in 0..50 {
            for flow in 0..1000 {
                shaper.request(flow, if flow % 3 == 0 { Want::Repair } else { Want::Data });
                shaper.request(flow, Want::Data);
            }
            for flow in 0..1000 {
                if (flow + round) % 10 != 0 {
                    shaper.forget(flow);
                }
            }
            assert!(shaper.flows.len() + shaper.repairs.len() <= 2 * 1000 + 1400);
        }
        let mut turns = vec![0; 1000];
        while let Some(at) = shaper.deadline() {
            now = now.max(at);
            let Some(Turn::Flow(flow)) = shaper.next(now) else { continue };
            turns[flow as usize] += 1;
            shaper.sent(now, flow, Size(1514), None);
        }
        // the last round has left those with number 1, 11, 21 ...; one that asked for a repair and for data has two
        assert!(turns.iter().enumerate().all(|(i, n)| if i % 10 == 1 {
            (1..=2).contains(n)
        } else {
            *n == 0
        }));
    }

    #[test]
    fn a_super_packet_counts_every_header_and_is_cut_to_a_millisecond() {
        let shaper = shaper(24_000_000);
        let packet =
            Packet { header_len: 40, segment: 1460, body: Body { off: 0, len: 4000 }, ..Packet::default() };
        assert_eq!(shaper.cost(&packet), Size(4000 + 3 * 54));
        assert_eq!((shaper.largest(1460), shaper.largest(1)), (2920, 3000));
    }
}
