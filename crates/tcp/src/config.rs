//! Configuration of a host's TCP. Every option can be switched off, so that old hosts can be modelled.

use crate::grants::GrantConfig;
use crate::scheme::Scheme;
use bentpipe_advice::negotiation::AskConfig;
use bentpipe_base::{Duration, IpVersion, Size};

/// Configuration of one end of a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Which stack's behaviour applies where the RFCs leave a choice.
    pub stack: Stack,
    /// Congestion control and loss recovery, by name and parameters.
    pub scheme: Scheme,
    /// The MSS option in bytes: the largest payload of a segment without TCP options. Timestamps take 12
    /// bytes of it (RFC 6691). Range 1..=65495.
    pub mss: u16,
    /// Bytes the application may have written and not yet seen acknowledged; `None` never blocks it.
    pub send_buffer: Option<Size>,
    /// The receive buffer and with it the advertised window.
    pub receive_buffer: ReceiveBuffer,
    /// Bytes that a fixed receive buffer holds beyond the window that it advertises.
    pub reserve: Size,
    /// Delayed acknowledgments; `None` acknowledges every segment at once.
    pub delayed_ack: Option<DelayedAck>,
    /// Nagle's algorithm (RFC 9293, section 3.7.4).
    pub nagle: bool,
    /// Options offered on the SYN.
    pub options: Options,
    /// Initial window in segments (1, 2, 4 or 10 in the RFCs; any number from 1 is taken).
    pub initial_window: u32,
    /// Initial slow-start threshold; `None` is unlimited.
    pub initial_ssthresh: Option<Size>,
    /// Retransmission timer.
    pub rto: RtoConfig,
    /// Limited transmit (RFC 3042).
    pub limited_transmit: bool,
    /// What happens to the congestion window of an idle or application-limited sender.
    pub validation: Validation,
    /// Pace segments of schemes that set no pace themselves.
    pub pacing: bool,
    /// Whether ECN is requested or accepted (RFC 3168).
    pub ecn: EcnUse,
    /// Negotiate the probe option if the scheme of either end sends probe segments.
    pub probe_option: bool,
    /// A rate that the network grants the sender; only schemes that request rates use it.
    pub grant: Option<GrantConfig>,
    /// Rates are signalled in packets; `None`: this end neither asks nor answers. Takes the place of `grant`.
    pub signalling: Option<Signalling>,
    /// IP version of the packets: how long their header is, and where they carry signalling.
    pub ip: IpVersion,
    /// Random delay at the sender.
    pub jitter: Option<Jitter>,
    /// Length of TIME-WAIT: twice the maximum segment lifetime (RFC 9293, section 3.4.2).
    pub time_wait: Duration,
    /// Give up after this many consecutive timeouts of one segment (RFC 9293, section 3.8.3).
    pub max_timeouts: u32,
    /// Give up when outstanding data makes no progress for this time (RFC 9293, section 3.9.1), in place of
    /// `max_timeouts`.
    pub user_timeout: Option<Duration>,
    /// Send keep-alives to a silent peer (RFC 9293, section 3.8.4).
    pub keep_alive: Option<KeepAlive>,
}

/// Rate signalling of one end.
#[derive(Clone, Debug, PartialEq)]
pub struct Signalling {
    /// What it asks for, takes and believes.
    pub ask: AskConfig,
    /// Share of lost packets above which the sender no longer trusts its rate.
    pub fallback: f64,
    /// The scheme that it then uses, and that it starts with; only its growth counts. CUBIC in place of one
    /// that itself uses granted rates.
    pub fallback_to: Scheme,
}

impl Signalling {
    /// Signalling with the default threshold and scheme.
    pub fn new(ask: AskConfig) -> Self {
        Self { ask, fallback: GrantConfig::FALLBACK, fallback_to: Scheme::default() }
    }
}

/// Keep-alives (RFC 9293, section 3.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// Time without hearing from the peer before the first one.
    pub idle: Duration,
    /// Time between two of them.
    pub interval: Duration,
    /// This many without an answer end the connection.
    pub count: u32,
}

impl Default for KeepAlive {
    /// RFC 9293: no sooner than after two hours; the rest as Linux and BSD have it.
    fn default() -> Self {
        Self { idle: Duration::from_secs(7200), interval: Duration::from_secs(75), count: 9 }
    }
}

/// Which stack's behaviour applies where the RFCs leave a choice or a stack departs from them. The values of
/// a host (windows, timeouts, options) are separate: this decides how they are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Stack {
    /// The RFCs that the modules name.
    #[default]
    Rfc,
    /// Linux 6.x: see `docs/src/linux-profile.md`.
    Linux,
}

/// Explicit congestion notification (RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnUse {
    /// Neither requested nor accepted.
    #[default]
    Off,
    /// Accepted if the peer requests it.
    AcceptOnly,
    /// Requested and accepted.
    Request,
}

/// Receive buffer policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveBuffer {
    /// Always this many bytes.
    Fixed(Size),
    /// Dynamic right-sizing: starts at `initial`, grows to twice what the application reads in an RTT, up to
    /// `max`.
    Auto {
        /// First window.
        initial: Size,
        /// Largest window.
        max: Size,
    },
}

impl ReceiveBuffer {
    /// Returns the largest window this policy can ever advertise: it decides the window scale.
    pub const fn max(self) -> Size {
        match self {
            Self::Fixed(size) => size,
            Self::Auto { max, .. } => max,
        }
    }
    /// Returns the first window.
    pub const fn initial(self) -> Size {
        match self {
            Self::Fixed(size) => size,
            Self::Auto { initial, .. } => initial,
        }
    }
}

/// Delayed acknowledgments (RFC 9293, section 3.8.6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAck {
    /// Acknowledge after at most this many full-sized segments. At least 1.
    pub count: u32,
    /// Acknowledge after at most this time; below 500 ms.
    pub timeout: Duration,
}

/// Which options a SYN offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// MSS option; without it the peer assumes 536 (RFC 9293, section 3.7.1).
    pub mss: bool,
    /// Window scale (RFC 7323).
    pub window_scale: bool,
    /// Selective acknowledgments (RFC 2018).
    pub sack: bool,
    /// Timestamps (RFC 7323).
    pub timestamps: bool,
}

/// Retransmission timer parameters (RFC 6298).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoConfig {
    /// Lower bound: 1 s in the RFC, 200 ms in Linux.
    pub min: Duration,
    /// Upper bound, at least 60 s in the RFC.
    pub max: Duration,
    /// Before the first RTT sample: 1 s in the RFC, 3 s in its predecessor.
    pub initial: Duration,
    /// Clock granularity G.
    pub granularity: Duration,
}

/// Congestion-window validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validation {
    /// Keep the window whatever happens.
    Keep,
    /// Restart from the initial window after an idle time of one RTO (RFC 5681, section 4.1).
    Restart,
    /// RFC 7661: keep it, but let it grow only while used, and shrink it when it stayed unused.
    Validate,
}

/// Random delays at the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jitter {
    /// Largest delay; each is uniform from zero to this.
    pub max: Duration,
    /// What is delayed.
    pub kind: JitterKind,
}

/// What sender jitter delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JitterKind {
    /// ns-2's `overhead_`: when an ACK allows new data, sending starts after the delay, and then all that
    /// fits is sent. Retransmissions are not delayed.
    Opportunity,
    /// Each packet is delayed separately; the order is kept.
    Packet,
}

impl Default for Config {
    /// A host of 2026: CUBIC, SACK, timestamps, window scaling, initial window 10, 64 KiB growing to 6 MiB.
    fn default() -> Self {
        Self {
            stack: Stack::Rfc,
            scheme: Scheme::default(),
            mss: 1460,
            send_buffer: None,
            receive_buffer: ReceiveBuffer::Auto { initial: Size(65_536), max: Size(6 << 20) },
            reserve: Size(0),
            delayed_ack: Some(DelayedAck { count: 2, timeout: Duration::from_millis(40) }),
            nagle: true,
            options: Options { mss: true, window_scale: true, sack: true, timestamps: true },
            initial_window: 10,
            initial_ssthresh: None,
            rto: RtoConfig::default(),
            limited_transmit: true,
            validation: Validation::Validate,
            pacing: false,
            ecn: EcnUse::Off,
            probe_option: true,
            grant: None,
            signalling: None,
            ip: IpVersion::V4,
            jitter: None,
            time_wait: Duration::from_secs(60),
            max_timeouts: 15,
            user_timeout: None,
            keep_alive: None,
        }
    }
}

impl Config {
    /// Returns a Linux host with its defaults: [`Stack::Linux`] with the values of Linux 6.x. The largest
    /// window is half of `tcp_rmem` (32 MiB): the other half is overhead.
    pub fn linux() -> Self {
        let mut config = Self::default();
        config.scheme = config.scheme.on(Stack::Linux);
        Self {
            stack: Stack::Linux,
            receive_buffer: ReceiveBuffer::Auto { initial: Size(65_535), max: Size(16 << 20) },
            rto: RtoConfig {
                min: Duration::from_millis(200),
                max: Duration::from_secs(120),
                ..RtoConfig::default()
            },
            validation: Validation::Restart,
            ecn: EcnUse::AcceptOnly,
            ..config
        }
    }

    /// Returns the same host and values, with the behaviour of `stack`.
    #[must_use]
    pub fn on(&self, stack: Stack) -> Self {
        Self { stack, scheme: self.scheme.on(stack), ..self.clone() }
    }
}

impl Default for RtoConfig {
    /// RFC 6298: minimum and initial value 1 s, maximum 60 s; granularity 1 ms.
    fn default() -> Self {
        Self {
            min: Duration::from_secs(1),
            max: Duration::from_secs(60),
            initial: Duration::from_secs(1),
            granularity: Duration::from_millis(1),
        }
    }
}
