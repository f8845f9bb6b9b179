//! Reports: of one connection, of groups of connections, of the whole gateway.

use crate::census::WindowClass;
use crate::counters::{Counters, PassReason};
use bentpipe_base::{Addr, Duration, Instant, Rate, Size, report_enum};

report_enum! {
    /// State of a connection.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
    #[repr(u8)]
    pub enum State {
        /// The handshake is not complete.
        #[default]
        Opening = "opening",
        /// Data may flow.
        Established = "established",
        /// Both sides have sent a FIN.
        Closing = "closing",
        /// Both FINs are acknowledged, or one side has sent an RST: only late duplicates can still arrive.
        Closed = "closed",
    }
}

report_enum! {
    /// Why tracking of a connection ended.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum EndReason {
        /// Both sides closed it, or one reset it.
        Closed = "closed",
        /// Idle timeout.
        Idle = "idle",
        /// A new connection with the same addresses and ports replaced it.
        Reused = "reused",
        /// It was evicted to make room for others.
        Evicted = "evicted",
    }
}

/// Report of one connection. Pairs are in the order LAN, satellite: the side packets came from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlowReport {
    /// Addresses of the two hosts.
    pub addrs: [Addr; 2],
    /// Their ports.
    pub ports: [u16; 2],
    /// True if the host at the LAN opened it. None if the SYN was not seen.
    pub opened_by_lan: Option<bool>,
    /// Its state.
    pub state: State,
    /// Why it is not accelerated; none if it is.
    pub pass_reason: Option<PassReason>,
    /// Why tracking ended; none while it is tracked.
    pub end: Option<EndReason>,
    /// Time of its first packet.
    pub opened: Instant,
    /// Time of its last packet.
    pub last: Instant,
    /// Wire packets from each side.
    pub packets: [u64; 2],
    /// Payload from each side.
    pub bytes: [Size; 2],
    /// Payload that the host behind the satellite has acknowledged.
    pub delivered: Size,
    /// From the first data byte towards the satellite to the last acknowledgment of new data.
    pub took: Duration,
    /// RTT of the hop, measured behind the gateway; zero before it is known.
    pub hop_rtt: Duration,
    /// Read rate of the receiving application in bytes per second, if it is slower than the hop.
    pub read_rate: Option<f64>,
    /// The window last advertised to the sender.
    pub advertised_to_sender: Size,
    /// The window last advertised by the receiver.
    pub advertised_by_receiver: Size,
    /// Bytes held for it now.
    pub held: Size,
    /// Largest number of bytes held for it.
    pub held_peak: Size,
    /// Losses in the hop, with the estimated losses of copies.
    pub losses: u64,
    /// The gateway's own retransmission timeouts.
    pub timeouts: u64,
    /// Duplicate segments from the sender that were dropped here.
    pub duplicates_dropped: u64,
}

impl FlowReport {
    /// Goodput towards the satellite; none before anything was acknowledged.
    pub fn goodput(&self) -> Option<Rate> {
        if self.took.is_zero() {
            return None;
        }
        Rate::from_bps((self.delivered.bits() as f64 / self.took.as_secs_f64()) as u64)
    }
}

/// Goodput statistics of a group of ended connections, enough for a confidence interval of the mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GoodputStats {
    /// Connections that carried at least [`GoodputStats::LEAST`].
    pub count: u64,
    /// Payload they carried.
    pub bytes: Size,
    /// Mean of their goodput, bit/s.
    pub mean: f64,
    /// Sum of squared deviations from the mean.
    squares: f64,
}

impl GoodputStats {
    /// Least payload for a connection to count: the goodput of smaller ones is dominated by the handshake.
    pub const LEAST: Size = Size(100_000);

    /// Adds a connection (Welford's algorithm).
    pub(crate) fn add(&mut self, flow: &FlowReport) {
        let Some(goodput) = flow.goodput().filter(|_| flow.delivered >= Self::LEAST) else { return };
        self.count += 1;
        self.bytes += flow.delivered;
        let apart = goodput.bps() as f64 - self.mean;
        self.mean += apart / self.count as f64;
        self.squares += apart * (goodput.bps() as f64 - self.mean);
    }

    /// Unbiased variance of the goodput in (bit/s)^2; none for fewer than two connections.
    pub fn variance(&self) -> Option<f64> {
        (self.count > 1).then(|| self.squares / (self.count - 1) as f64)
    }
}

/// Report of the whole gateway.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GatewayReport {
    /// Totals since the gateway started.
    pub counters: Counters,
    /// Current connections by state.
    pub states: [u32; State::ALL.len()],
    /// Current accelerated connections, including those in their handshake.
    pub accelerated: u32,
    /// Current connections with full state; the other accelerated ones are idle and stored in compact form.
    pub awake: u32,
    /// Current unaccelerated connections by reason.
    pub passing: [u32; PassReason::ALL.len()],
    /// Bytes held now.
    pub held: Size,
    /// Largest number of bytes held.
    pub held_peak: Size,
    /// Memory used for tracking connections, without held packets.
    pub footprint: Size,
    /// Windows that the hosts behind the hop announced since the gateway started.
    pub windows: Vec<WindowClass>,
    /// There were more of these hosts than are counted.
    pub more_clients: bool,
    /// RTT of the hop in recent handshakes, or as configured.
    pub hop_rtt: Option<Duration>,
    /// Rate that each of the accelerated connections now using the hop can have; none if no rate is
    /// configured.
    pub fair_share: Option<Rate>,
    /// Ended connections that were accelerated.
    pub fast: GoodputStats,
    /// Ended connections of the control group.
    pub control_group: GoodputStats,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(bytes: u64, took: Duration) -> FlowReport {
        FlowReport { delivered: Size(bytes), took, ..FlowReport::default() }
    }

    #[test]
    fn a_group_has_mean_and_variance() {
        let mut group = GoodputStats::default();
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
        let mut group = GoodputStats::default();
        group.add(&flow(99_999, Duration::from_secs(1)));
        group.add(&flow(1 << 20, Duration::ZERO));
        assert_eq!((group, group.variance()), (GoodputStats::default(), None));
    }

    #[test]
    fn lists_are_in_order() {
        for (i, state) in State::ALL.into_iter().enumerate() {
            assert_eq!(state as usize, i, "{}", state.key());
        }
    }
}
