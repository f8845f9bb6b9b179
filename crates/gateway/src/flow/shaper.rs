//! One pacer for the hop: what leaves for the satellite leaves at a little less than its rate, so that the link has no queue and never loses by one.
//!
//! Counts IP bytes and framing, as the link does. Who has something to send asks; repairs go first (a hole stops a receiver), then flows in turn by deficit
//! round robin (Shreedhar and Varghese, 1996) with a quantum of one full packet; packets that merely pass are one more class with a turn of its own.
//! Without a rate everything leaves at once. A late wake-up is made up for, as far as 2 ms.

use super::copies::Losses;
use crate::config::Config;
use bentpipe_base::{Duration, Instant, Packet, Pkt, Rate, Size};
use std::collections::VecDeque;

/// What a flow gains per turn: a full packet with framing.
const QUANTUM: u64 = 1600;
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
    repairs: VecDeque<u32>,
    flows: VecDeque<(u32, u64)>,
    /// Which of the two each flow waits in, so that asking costs nothing.
    waits: Vec<(bool, bool)>,
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
            self.waits.resize(i + 1, (false, false));
        }
        match want {
            Want::Repair if !self.waits[i].0 => {
                self.waits[i].0 = true;
                self.repairs.push_back(flow);
            }
            Want::Data if !self.waits[i].1 => {
                self.waits[i].1 = true;
                self.flows.push_back((flow, QUANTUM));
            }
            _ => {}
        }
    }

    /// Lets a packet that is nobody's pass in its turn.
    pub(crate) fn pass(&mut self, packet: Pkt) -> Result<(), Pkt> {
        let room = self.rate.map_or(0, |r| r.bytes_in(PASSING).0);
        if self.rate.is_none() || self.passing_bytes > room {
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
        if let Some(flow) = self.repairs.front() {
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
        if self.repairs.front() == Some(&flow) {
            self.repairs.pop_front();
            self.waits[flow as usize].0 = false;
        } else if let Some((_, deficit)) = self.flows.front_mut().filter(|f| f.0 == flow) {
            *deficit = deficit.saturating_sub(size.0);
            if *deficit == 0 || wants != Some(Want::Data) {
                self.flows.pop_front();
                self.waits[flow as usize].1 = false;
            }
        }
        if let Some(want) = wants {
            self.request(flow, want);
        }
    }

    /// The flow is gone.
    pub(crate) fn forget(&mut self, flow: u32) {
        self.repairs.retain(|f| *f != flow);
        self.flows.retain(|f| f.0 != flow);
        if let Some(waits) = self.waits.get_mut(flow as usize) {
            *waits = (false, false);
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
