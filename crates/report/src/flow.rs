//! One flow: what all have, and what only TCP or only datagrams have.
//!
//! In JSON a flow is one object with the keys of both kinds in a fixed order: `tcp` names the scheme and is
//! null for datagrams, whose figures are under `udp`; what only TCP has is then null or zero.

use crate::application::{RequestsReport, TelnetReport, UdpReport};
use crate::number;
use crate::probes::ProbesReport;
use crate::quantiles::Quantiles;
use bentpipe_base::{Duration, Instant};
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Serialize, Serializer};
use std::sync::LazyLock;

/// One flow.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(try_from = "Flat")]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct FlowReport {
    /// Name.
    pub name: String,
    /// Seconds since the start of the run.
    pub start_s: f64,
    /// In-order bytes delivered to the application x 8 / measure interval, bit/s.
    pub goodput_bps: f64,
    /// What it ran over, and what was measured there.
    pub kind: FlowKind,
    /// What the words need and the JSON does not repeat.
    pub context: FlowContext,
}

/// What a flow ran over.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[expect(clippy::large_enum_variant, reason = "nearly all flows are TCP's")]
pub enum FlowKind {
    /// A connection.
    Tcp(TcpReport),
    /// Datagrams.
    Udp(UdpReport),
}

impl Default for FlowKind {
    fn default() -> Self {
        Self::Tcp(TcpReport::default())
    }
}

/// What was measured of a connection.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct TcpReport {
    /// The sender's scheme, or only "TCP" where nobody knows it; `tcp` in JSON.
    #[serde(skip)]
    pub scheme: String,
    /// When the sender's handshake ended; null if it did not.
    pub established_s: Option<f64>,
    /// When the sender had the acknowledgment of its last data byte, or the last answer was complete; null if
    /// it did not finish.
    pub finished_s: Option<f64>,
    /// When the sender first had the receiver's whole window outstanding; null if it never had.
    pub opened_s: Option<f64>,
    /// New payload sent x 8 / time, from three round trips after the handshake to the sending of the last new
    /// byte, bit/s; null when that is too short.
    pub steady_bps: Option<f64>,
    /// Payload bytes acknowledged.
    pub bytes_acked: u64,
    /// Data segments sent, retransmissions included.
    pub segments_sent: u64,
    /// Of these, retransmissions.
    pub retransmits: u64,
    /// Segments sent once more where a grant left time for it, beside those; absent where the scheme does not
    /// do that.
    pub copies: Option<u64>,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Round-trip times; null without a sample.
    pub rtt_ms: Quantiles,
    /// Share of the flow's time limited by each cause; sum 1.
    pub limited_by: LimitedBy,
    /// What the scheme became when it could not go on as itself; absent while it is itself.
    pub fallback: Option<FallbackReport>,
    /// Of requests; absent for others.
    pub requests: Option<RequestsReport>,
    /// Of typing; absent for others.
    pub telnet: Option<TelnetReport>,
    /// Of schemes that send probe segments; absent for others.
    pub probes: Option<ProbesReport>,
}

/// A scheme that is not itself any more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct FallbackReport {
    /// The scheme that it is now.
    pub to: String,
    /// Why.
    pub why: String,
    /// Since when, in seconds since the start of the run.
    #[serde(deserialize_with = "number::or_nan")]
    pub at_s: f64,
    /// Data segments that were sent before.
    pub after_segments: u64,
}

/// What a flow's sentences compare it with.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct FlowContext {
    /// Lowest rate on the way of the data, bit/s; 0 where it is unknown.
    pub path_bps: u64,
    /// The receiver's window as a user reads it.
    pub receive_window: String,
    /// The receiving application does not read everything at once.
    pub slow_reader: bool,
    /// The sender's buffer as a user reads it.
    pub send_buffer: String,
}

macro_rules! limited_by {
    ($($(#[$doc:meta])* $cause:ident,)+) => {
        /// Shares of time.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(test, derive(arbitrary::Arbitrary))]
        pub struct LimitedBy {
            $($(#[$doc])* #[serde(deserialize_with = "number::or_nan")] pub $cause: f64,)+
        }

        impl LimitedBy {
            /// The causes' keys in the order of the JSON.
            pub const CAUSES: [&'static str; 7] = [$(stringify!($cause)),+];

            const fn from_shares([$($cause),+]: [f64; 7]) -> Self {
                Self { $($cause),+ }
            }

            /// Keys and shares in the order of the JSON.
            pub const fn shares(&self) -> [(&'static str, f64); 7] {
                [$((stringify!($cause), self.$cause)),+]
            }
        }
    };
}

limited_by! {
    /// Opening the connection.
    handshake,
    /// The application had nothing to send.
    application,
    /// The send buffer was full.
    send_buffer,
    /// The peer's window.
    receiver_window,
    /// The congestion window.
    congestion_window,
    /// Pacing or sender jitter.
    pacing,
    /// Repairing losses.
    recovery,
}

impl LimitedBy {
    /// Of the times spent, in the order of [`LimitedBy::CAUSES`]; a flow that has not begun counts as being
    /// opened.
    pub fn of(spent: &[Duration; 7]) -> Self {
        let total: f64 = spent.iter().map(|d| d.as_secs_f64()).sum();
        if total <= 0.0 {
            return Self { handshake: 1.0, ..Self::default() };
        }
        Self::from_shares(spent.map(|d| d.as_secs_f64() / total))
    }

    /// The mean over several flows.
    pub(crate) fn mean<'a>(all: impl ExactSizeIterator<Item = &'a Self>) -> Self {
        let n = all.len().max(1) as f64;
        let add = |sum: [f64; 7], one: &Self| {
            let shares = one.shares();
            core::array::from_fn(|i| sum[i] + shares[i].1 / n)
        };
        Self::from_shares(all.fold([0.0; 7], add))
    }
}

/// Bytes in a time as a rate, bit/s; 0 in no time.
pub fn rate_bps(bytes: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { bytes as f64 * 8.0 / time.as_secs_f64() }
}

/// What TCP has to say of a flow of datagrams.
static NO_TCP: LazyLock<TcpReport> = LazyLock::new(TcpReport::default);

impl FlowReport {
    /// A flow that began at `start`, since the start of the run.
    pub fn new(name: impl Into<String>, start: Instant, goodput_bps: f64, kind: FlowKind) -> Self {
        let (name, start_s) = (name.into(), start.as_secs_f64());
        Self { name, start_s, goodput_bps, kind, context: FlowContext::default() }
    }

    /// What was measured of a connection; `None` of datagrams.
    pub const fn tcp(&self) -> Option<&TcpReport> {
        match &self.kind {
            FlowKind::Tcp(tcp) => Some(tcp),
            FlowKind::Udp(_) => None,
        }
    }

    /// The same; zeros and nulls of datagrams, as in JSON and tables.
    pub fn tcp_or_zeros(&self) -> &TcpReport {
        self.tcp().unwrap_or(&NO_TCP)
    }

    /// What was measured of datagrams; `None` of a connection.
    pub const fn udp(&self) -> Option<&UdpReport> {
        match &self.kind {
            FlowKind::Tcp(_) => None,
            FlowKind::Udp(udp) => Some(udp),
        }
    }

    /// The scheme, or `UDP`.
    pub fn scheme(&self) -> &str {
        self.tcp().map_or("UDP", |tcp| &tcp.scheme)
    }
}

impl Serialize for FlowReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tcp = self.tcp_or_zeros();
        let mut out = serializer.serialize_struct("FlowReport", 20)?;
        out.serialize_field("name", &self.name)?;
        out.serialize_field("tcp", &self.tcp().map(|tcp| &tcp.scheme))?;
        out.serialize_field("start_s", &self.start_s)?;
        out.serialize_field("established_s", &tcp.established_s)?;
        out.serialize_field("finished_s", &tcp.finished_s)?;
        out.serialize_field("opened_s", &tcp.opened_s)?;
        out.serialize_field("goodput_bps", &self.goodput_bps)?;
        out.serialize_field("steady_bps", &tcp.steady_bps)?;
        out.serialize_field("bytes_acked", &tcp.bytes_acked)?;
        out.serialize_field("segments_sent", &tcp.segments_sent)?;
        out.serialize_field("retransmits", &tcp.retransmits)?;
        present::<S>(&mut out, "copies", tcp.copies.as_ref())?;
        out.serialize_field("timeouts", &tcp.timeouts)?;
        out.serialize_field("rtt_ms", &tcp.rtt_ms)?;
        out.serialize_field("limited_by", &tcp.limited_by)?;
        present::<S>(&mut out, "fallback", tcp.fallback.as_ref())?;
        present::<S>(&mut out, "requests", tcp.requests.as_ref())?;
        present::<S>(&mut out, "telnet", tcp.telnet.as_ref())?;
        present::<S>(&mut out, "udp", self.udp())?;
        present::<S>(&mut out, "probes", tcp.probes.as_ref())?;
        out.end()
    }
}

/// Writes a field that is absent where there is nothing.
fn present<S: Serializer>(
    out: &mut S::SerializeStruct,
    key: &'static str,
    value: Option<&impl Serialize>,
) -> Result<(), S::Error> {
    match value {
        Some(value) => out.serialize_field(key, value),
        None => out.skip_field(key),
    }
}

/// A flow as JSON has it.
#[derive(Deserialize)]
struct Flat {
    name: String,
    tcp: Option<String>,
    #[serde(deserialize_with = "number::or_nan")]
    start_s: f64,
    #[serde(deserialize_with = "number::or_nan")]
    goodput_bps: f64,
    udp: Option<UdpReport>,
    #[serde(flatten)]
    figures: TcpReport,
}

impl TryFrom<Flat> for FlowReport {
    type Error = &'static str;

    fn try_from(flat: Flat) -> Result<Self, Self::Error> {
        let Flat { name, tcp, start_s, goodput_bps, udp, figures } = flat;
        let kind = match (tcp, udp) {
            (Some(scheme), None) => FlowKind::Tcp(TcpReport { scheme, ..figures }),
            (None, Some(udp)) => FlowKind::Udp(udp),
            _ => return Err("a flow has either a scheme in `tcp` or figures in `udp`"),
        };
        Ok(Self { name, start_s, goodput_bps, kind, context: FlowContext::default() })
    }
}
