//! What a gateway tells: of one connection, of two groups of them, of all.

use crate::counters::{Counters, Why};
use bentpipe_base::{Addr, Duration, Instant, Rate, Size};

/// How far a connection is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum State {
    /// Its handshake is not over.
    #[default]
    Opening,
    /// Data may flow.
    Established,
    /// Both sides have ended their stream.
    Closing,
    /// Both ends are acknowledged, or one side has reset it: nothing will come any more but late copies.
    Closed,
}

impl State {
    /// All states, in the order reports list them.
    pub const ALL: [Self; 4] = [Self::Opening, Self::Established, Self::Closing, Self::Closed];

    /// The key used in reports.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Opening => "opening",
            Self::Established => "established",
            Self::Closing => "closing",
            Self::Closed => "closed",
        }
    }
}

/// How following a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Both sides closed it, or one reset it.
    Closed,
    /// Nothing came for too long.
    Idle,
    /// Another connection took its addresses and ports.
    Reused,
    /// It made room for others.
    Evicted,
}

impl End {
    /// The key used in reports.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Idle => "idle",
            Self::Reused => "reused",
            Self::Evicted => "evicted",
        }
    }
}

/// One connection. Pairs are for LAN and satellite, in this order: where a host is, or where packets came
/// from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlowReport {
    /// Addresses of the two hosts.
    pub addrs: [Addr; 2],
    /// Their ports.
    pub ports: [u16; 2],
    /// Which host opened it: true for the one at the LAN. None when nobody saw.
    pub opened_by_lan: Option<bool>,
    /// How far it is.
    pub state: State,
    /// Why it is not accelerated; none when it is.
    pub why: Option<Why>,
    /// How it ended, when it has.
    pub end: Option<End>,
    /// Its first packet.
    pub opened: Instant,
    /// Its last.
    pub last: Instant,
    /// Wire packets.
    pub packets: [u64; 2],
    /// Their payload.
    pub bytes: [Size; 2],
    /// Payload that the host behind the satellite has acknowledged.
    pub delivered: Size,
    /// From the first byte towards the satellite to the last acknowledgment that told something new.
    pub took: Duration,
    /// Round trip of the hop, behind the gateway; zero before it is known.
    pub hop_trip: Duration,
    /// The rate of a reader that is slower than the hop, bytes per second.
    pub reader: Option<f64>,
    /// The window that the sender was shown last.
    pub shown: Size,
    /// The window that the receiver advertised last.
    pub advertised: Size,
    /// Bytes held for it now.
    pub held: Size,
    /// The most that were.
    pub held_peak: Size,
    /// Losses found in the hop, and as many of copies as it loses of others.
    pub losses: u64,
    /// Timeouts of the gateway's own.
    pub timeouts: u64,
    /// Segments of the sender that were swallowed.
    pub swallowed: u64,
}

impl FlowReport {
    /// Payload per time towards the satellite; none before there is something to divide.
    pub fn goodput(&self) -> Option<Rate> {
        if self.took.is_zero() {
            return None;
        }
        Rate::from_bps((self.delivered.bits() as f64 / self.took.as_secs_f64()) as u64)
    }
}

/// Goodput of a group of ended connections: enough for a confidence interval of its mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Group {
    /// Connections that carried at least [`Group::LEAST`].
    pub count: u64,
    /// What they carried.
    pub bytes: Size,
    /// Mean of their goodput, bit/s.
    pub mean: f64,
    /// Sum of squared deviations from the mean.
    squares: f64,
}

impl Group {
    /// What a connection must have carried to count: a smaller one tells of its handshake.
    pub const LEAST: Size = Size(100_000);

    /// Adds a connection, by Welford's recurrence.
    pub(crate) fn add(&mut self, flow: &FlowReport) {
        let Some(goodput) = flow.goodput().filter(|_| flow.delivered >= Self::LEAST) else { return };
        self.count += 1;
        self.bytes += flow.delivered;
        let apart = goodput.bps() as f64 - self.mean;
        self.mean += apart / self.count as f64;
        self.squares += apart * (goodput.bps() as f64 - self.mean);
    }

    /// Variance of the goodput in (bit/s)^2, unbiased; none for fewer than two.
    pub fn variance(&self) -> Option<f64> {
        (self.count > 1).then(|| self.squares / (self.count - 1) as f64)
    }
}

/// A gateway as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GatewayReport {
    /// Totals since it began.
    pub counters: Counters,
    /// Connections now, by state.
    pub states: [u32; State::ALL.len()],
    /// Accelerated connections now, those being opened included.
    pub accelerated: u32,
    /// Connections now whose windows and data are worked on; the other accelerated ones sleep.
    pub awake: u32,
    /// Passing connections now, by reason.
    pub passing: [u32; Why::ALL.len()],
    /// Bytes held now.
    pub held: Size,
    /// The most that were held.
    pub held_peak: Size,
    /// What following connections takes, packets that are held not included.
    pub footprint: Size,
    /// Ended connections that were accelerated.
    pub fast: Group,
    /// Ended connections that were left alone at random.
    pub left_alone: Group,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(bytes: u64, took: Duration) -> FlowReport {
        FlowReport { delivered: Size(bytes), took, ..FlowReport::default() }
    }

    #[test]
    fn a_group_has_mean_and_variance() {
        let mut group = Group::default();
        for mbps in [8u64, 16, 24] {
            group.add(&flow(mbps * 125_000, Duration::from_secs(1)));
        }
        assert_eq!((group.count, group.bytes), (3, Size(6_000_000)));
        assert!((group.mean - 16e6).abs() < 1.0, "{}", group.mean);
        let variance = group.variance().unwrap();
        assert!((variance - 64e12).abs() < 1e6, "{variance}");
    }

    #[test]
    fn small_and_silent_connections_do_not_count() {
        let mut group = Group::default();
        group.add(&flow(99_999, Duration::from_secs(1)));
        group.add(&flow(1 << 20, Duration::ZERO));
        assert_eq!((group, group.variance()), (Group::default(), None));
    }

    #[test]
    fn lists_are_in_order() {
        for (i, state) in State::ALL.into_iter().enumerate() {
            assert_eq!(state as usize, i, "{}", state.key());
        }
    }
}
