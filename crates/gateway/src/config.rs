//! The configuration of a gateway.

use bentpipe_base::{Duration, Rate, Size};

/// How the receiver's future window is predicted: TCP-SuperCharger, equations (3) and (4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Assumes that a receiver that keeps up could read faster, and measures the read rate of one that falls
    /// behind.
    #[default]
    Open,
    /// As in the paper: the receiver is assumed to read no faster than measured, so the flight grows slowly.
    Strict,
}

/// How many copies of each packet are sent over the hop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Copies {
    /// Chosen from the measured loss.
    #[default]
    Auto,
    /// Always this many, at least 1.
    Fixed(u8),
}

/// Resource limits. The windows advertised to senders fit into them. If a packet arrives that does not fit,
/// it passes unaccelerated; if other packets of its connection are queued it is dropped instead, since it
/// must not overtake them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest number of accelerated established connections. It is checked when a connection opens, so those
    /// in their handshake may exceed it.
    pub flows: u32,
    /// Largest number of connections in their handshake: a SYN flood displaces only these.
    pub opening: u32,
    /// Largest number of tracked connections that pass unaccelerated.
    pub passing: u32,
    /// Largest number of bytes held for all connections.
    pub memory: Size,
    /// Largest number of bytes held for one connection.
    pub per_flow: Size,
    /// Largest number of queued reports of ended connections.
    pub reports: u32,
}

impl Limits {
    /// Number of connections in the table at most, with room for those that open while others close.
    pub const fn connections(&self) -> u32 {
        self.flows.saturating_add(self.opening.saturating_mul(2)).saturating_add(self.passing)
    }
}

/// What a hop carries in this time fits into the memory of one connection: with losses the sender is shown
/// 2.25 bandwidth-delay products, a byte held costs 1.25 bytes of memory and more, a fifth of the limit is
/// kept free, and the RTT over two geostationary hops is 1.5 s.
const PER_FLOW: Duration = Duration::from_secs(6);

impl Limits {
    /// The limit of one connection on a hop of `rate` unless another one is configured: `least`, or more if
    /// the hop holds more, within `memory`.
    pub fn per_flow_on(&self, rate: Option<Rate>, least: Size) -> Size {
        rate.map_or(least, |rate| rate.bytes_in(PER_FLOW).max(least)).min(self.memory)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            flows: 100_000,
            opening: 16_384,
            passing: 65_536,
            memory: Size(1 << 30),
            per_flow: Size(64 << 20),
            reports: 4096,
        }
    }
}

/// How long a connection is remembered after its last packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// From the first SYN to the end of the handshake.
    pub opening: Duration,
    /// Established. RFC 5382, REQ-5, asks for at least 2 h 4 min; keep-alives are sent every 2 h (RFC 9293,
    /// 3.8.4).
    pub established: Duration,
    /// Both sides have sent a FIN, and not everything is acknowledged. The sender's timeouts may be minutes
    /// apart (RFC 5382, REQ-5, asks for 4 min).
    pub closing: Duration,
    /// After the last acknowledgment or an RST: late duplicates still belong to the connection.
    pub closed: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            opening: Duration::from_secs(30),
            established: Duration::from_secs(2 * 3600 + 4 * 60),
            closing: Duration::from_secs(4 * 60),
            closed: Duration::from_secs(60),
        }
    }
}

/// The configuration of a gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Rate of the hop, counting IP packets and their `framing`. None: no shaping, and windows do not depend
    /// on a rate.
    pub rate: Option<Rate>,
    /// Bytes per packet that the hop counts besides the IP packet: 14 in the figures of TCP-SuperCharger.
    pub framing: Size,
    /// RTT of the hop, used until it has been measured.
    pub rtt: Option<Duration>,
    /// How the receiver's window is predicted.
    pub mode: Mode,
    /// Weight of the old value when measurements are smoothed, at least 0 and less than 1: TCP-SuperCharger,
    /// equation (2), and the read rate of `Mode::Strict`. None: 7/8 for the RTT, 0.9 for the read rate.
    pub alpha: Option<f64>,
    /// Number of ACKs over which `Mode::Strict` measures the read rate, at least 1: equation (3).
    pub k: u32,
    /// Share of the rate that is used: slightly below 1, so that no queue builds up behind the gateway.
    pub share: f64,
    /// How many copies of each packet are sent.
    pub copies: Copies,
    /// Interval of keep-alives while the hop is idle and accelerated connections wait. None: there are none.
    pub keep_alive: Option<Duration>,
    /// Resource limits.
    pub limits: Limits,
    /// Idle timeouts.
    pub timeouts: Timeouts,
    /// False: nothing is accelerated, but connections are still counted.
    pub accelerate: bool,
    /// Share of the eligible connections that are not accelerated, as a control group.
    pub sample: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            rate: None,
            framing: Size::ZERO,
            rtt: None,
            mode: Mode::Open,
            alpha: None,
            k: 8,
            share: 0.995,
            copies: Copies::Auto,
            keep_alive: None,
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            accelerate: true,
            sample: 0.0,
        }
    }
}
