//! How a gateway works.

use bentpipe_base::{Duration, Rate, Size};

/// How the window that a receiver will have is predicted: TCP-SuperCharger, equations (3) and (4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Grows as long as the receiver shows that it keeps up.
    #[default]
    Open,
    /// The equations of the paper.
    Strict,
}

/// How often each packet crosses the hop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Copies {
    /// As often as pays at the loss that is measured.
    #[default]
    Auto,
    /// Always this often, at least once.
    Fixed(u8),
}

/// What a gateway may use. Senders are shown no more than fits. A packet for which there is no room all the
/// same passes, unless others of its connection wait: then it is dropped, as by a queue that is full, since
/// it must not overtake them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Established connections that are accelerated at a time.
    pub flows: u32,
    /// Connections that are being opened: a part of its own, which a flood of SYNs can fill without touching
    /// the others.
    pub opening: u32,
    /// Connections that are only followed because they pass.
    pub passing: u32,
    /// Bytes held for all connections.
    pub memory: Size,
    /// Bytes held for one.
    pub per_flow: Size,
    /// Reports of ended connections that wait to be taken.
    pub reports: u32,
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

/// How long a connection without a packet is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// From the first SYN to the end of the handshake.
    pub opening: Duration,
    /// Established. RFC 5382, REQ-5, wants at least 2 h 4 min of what must keep state; who sends keep-alives
    /// sends them every 2 h (RFC 9293, 3.8.4).
    pub established: Duration,
    /// Both sides have ended their stream, and not all of it is acknowledged: a sender's timeouts may be
    /// minutes apart (RFC 5382, REQ-5, wants 4 min).
    pub closing: Duration,
    /// After the last acknowledgment, or a RST: late copies still belong to it.
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

/// How a gateway works.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Rate of the hop as the link counts it. None: the gateway does not shape, and the windows it shows do
    /// not depend on a rate.
    pub rate: Option<Rate>,
    /// Bytes that the hop counts for each packet beside those of IP: 14 in the figures of TCP-SuperCharger.
    pub framing: Size,
    /// Round trip of the hop, until it has been measured.
    pub trip: Option<Duration>,
    /// How the receiver's window is predicted.
    pub mode: Mode,
    /// Share of the rate that is used: a little less than all, so that no queue stands behind the gateway.
    pub share: f64,
    /// How often each packet is sent.
    pub copies: Copies,
    /// What may be used.
    pub limits: Limits,
    /// How long what is silent is remembered.
    pub timeouts: Timeouts,
    /// False: everything passes, and connections are still counted.
    pub accelerate: bool,
    /// Share of the connections that could be accelerated which are left alone, so that both kinds can be
    /// compared.
    pub sample: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            rate: None,
            framing: Size::ZERO,
            trip: None,
            mode: Mode::Open,
            share: 0.995,
            copies: Copies::Auto,
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            accelerate: true,
            sample: 0.0,
        }
    }
}
