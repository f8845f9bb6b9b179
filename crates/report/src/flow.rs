//! Report of a flow: common values, and those of TCP or UDP only.
//!
//! In JSON a flow is one object with the keys of both in a fixed order. `tcp` is the name of the scheme,
//! null for UDP flows, whose values are under `udp`; keys of TCP are then null or zero.

use crate::application::{Quantiles, RequestsReport, TelnetReport, UdpReport};
use crate::number;
use crate::rate::RateReport;
use bentpipe_base::{Duration, Instant};
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

/// One flow.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(try_from = "Flat")]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct FlowReport {
    /// Name.
    pub name: Arc<str>,
    /// Start in seconds since the start of the run.
    pub start_s: f64,
    /// In-order bytes delivered to the application x 8 / measure interval, bit/s.
    pub goodput_bps: f64,
    /// Payload bytes that arrived, in order or not, each once x 8 / measure interval, bit/s; absent from live
    /// reports.
    pub arrived_bps: Option<f64>,
    /// Protocol, with its measurements.
    pub kind: FlowKind,
    /// Values that the text report needs and that are not part of the JSON.
    pub context: FlowContext,
}

/// Protocol of a flow.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub enum FlowKind {
    /// TCP.
    Tcp(Box<TcpReport>),
    /// UDP.
    Udp(Box<UdpReport>),
}

impl Default for FlowKind {
    fn default() -> Self {
        Self::from(TcpReport::default())
    }
}

impl From<TcpReport> for FlowKind {
    fn from(report: TcpReport) -> Self {
        Self::Tcp(Box::new(report))
    }
}

impl From<UdpReport> for FlowKind {
    fn from(report: UdpReport) -> Self {
        Self::Udp(Box::new(report))
    }
}

/// Measurements of a TCP connection. What few have is boxed: a run may have a hundred thousand flows.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct TcpReport {
    /// Scheme of the sender, or only "TCP" if it is unknown; `tcp` in JSON.
    #[serde(skip)]
    #[cfg_attr(test, arbitrary(with = tests::scheme))]
    pub scheme: Cow<'static, str>,
    /// Time at which the sender's handshake completed; null if it did not.
    pub established_s: Option<f64>,
    /// Time at which the sender's last data byte was acknowledged, or the last response was complete; null if
    /// unfinished.
    pub finished_s: Option<f64>,
    /// Time at which the sender first had the receiver's whole window in flight; null if it never had.
    pub opened_s: Option<f64>,
    /// New payload sent x 8 / time, from three RTTs after the handshake to the sending of the last new
    /// byte, bit/s; null if that time is too short.
    pub steady_bps: Option<f64>,
    /// Payload bytes acknowledged.
    pub bytes_acked: u64,
    /// Data segments sent, retransmissions included.
    pub segments_sent: u64,
    /// Retransmissions among them.
    pub retransmits: u64,
    /// Additional copies of segments that the sender sent because the granted rate allowed it, not counted
    /// in `segments_sent`; absent for schemes that do not do that.
    pub copies: Option<u64>,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// RTTs; null without a sample.
    pub rtt_ms: Quantiles,
    /// Fraction of the flow's time limited by each cause; the sum is 1.
    pub limited_by: LimitedBy,
    /// The scheme to which the sender fell back; absent without a fallback.
    pub fallback: Option<Box<FallbackReport>>,
    /// Requests; absent for other applications.
    pub requests: Option<Box<RequestsReport>>,
    /// Typing; absent for other applications.
    pub telnet: Option<Box<TelnetReport>>,
    /// Probe segments; absent for schemes that send none.
    pub probes: Option<Box<ProbesReport>>,
    /// Rate that the network granted; absent for flows that did not ask for one.
    pub rate: Option<Box<RateReport>>,
}

/// Probe segments of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct ProbesReport {
    /// How the sender learns of their arrival: `option`, `dsack`, `timestamps`, or `none`.
    pub known_by: String,
    /// Probes sent.
    pub sent: u64,
    /// Probes known to have arrived.
    pub acknowledged: u64,
    /// Probes not reported within the time limit.
    pub lost: u64,
    /// What the scheme does instead of sending probes, and why; absent without a fallback.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// Note about the network for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl ProbesReport {
    /// Sums the counts of several flows; other fields are those of the first.
    pub(crate) fn sum<'a>(all: impl Iterator<Item = &'a Self>) -> Option<Self> {
        all.cloned().reduce(|a, b| Self {
            sent: a.sent + b.sent,
            acknowledged: a.acknowledged + b.acknowledged,
            lost: a.lost + b.lost,
            ..a
        })
    }

    /// Formats the report as one line of text.
    pub fn in_words(&self) -> String {
        let mut text = match self.known_by.as_str() {
            "none" => "no probes".to_owned(),
            by => format!("{} probes, {} acknowledged ({by})", self.sent, self.acknowledged),
        };
        for more in [&self.fallback, &self.note].into_iter().flatten() {
            text.push_str("; ");
            text.push_str(more);
        }
        text
    }
}

/// A fallback to another scheme.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct FallbackReport {
    /// Name of the scheme in use after the fallback.
    pub to: String,
    /// Reason.
    pub why: String,
    /// Time of the fallback in seconds since the start of the run.
    #[serde(deserialize_with = "number::or_nan")]
    pub at_s: f64,
    /// Data segments sent before the fallback.
    pub after_segments: u64,
}

/// Values with which the text report compares a flow.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct FlowContext {
    /// Lowest rate on the path of the data, bit/s; 0 if unknown.
    pub path_bps: u64,
    /// The receiver's window, formatted as text.
    pub receive_window: Arc<str>,
    /// True if the receiving application does not read all data at once.
    pub slow_reader: bool,
    /// The sender's buffer, formatted as text.
    pub send_buffer: Arc<str>,
    /// True if losses do not hold down the window of its scheme.
    pub ignores_losses: bool,
}

macro_rules! limited_by {
    ($($(#[$doc:meta])* $cause:ident,)+) => {
        /// Fractions of time.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(test, derive(arbitrary::Arbitrary))]
        pub struct LimitedBy {
            $($(#[$doc])* #[serde(deserialize_with = "number::or_nan")] pub $cause: f64,)+
        }

        impl LimitedBy {
            /// Keys of the causes in JSON order.
            pub const CAUSES: [&'static str; Self::COUNT] = [$(stringify!($cause)),+];
            /// Number of causes.
            pub const COUNT: usize = [$(stringify!($cause)),+].len();

            const fn from_shares([$($cause),+]: [f64; Self::COUNT]) -> Self {
                Self { $($cause),+ }
            }

            /// Returns keys and fractions in JSON order.
            pub const fn shares(&self) -> [(&'static str, f64); Self::COUNT] {
                [$((stringify!($cause), self.$cause)),+]
            }
        }
    };
}

limited_by! {
    /// The handshake.
    handshake,
    /// The application had nothing to send.
    application,
    /// The send buffer was full.
    send_buffer,
    /// The receiver's window.
    receiver_window,
    /// The congestion window.
    congestion_window,
    /// Pacing or sender jitter.
    pacing,
    /// Loss recovery.
    recovery,
}

impl LimitedBy {
    /// Converts times, in the order of [`LimitedBy::CAUSES`], to fractions. Before its start a flow is in its
    /// handshake.
    pub fn of(spent: &[Duration; Self::COUNT]) -> Self {
        let total: f64 = spent.iter().map(|d| d.as_secs_f64()).sum();
        if total <= 0.0 {
            return Self { handshake: 1.0, ..Self::default() };
        }
        Self::from_shares(spent.map(|d| d.as_secs_f64() / total))
    }

    /// Returns the cause with the largest fraction; the first of them in JSON order.
    pub fn main(&self) -> (&'static str, f64) {
        let shares = self.shares().into_iter();
        shares.rev().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((Self::CAUSES[0], 0.0))
    }

    /// Returns the mean over several flows.
    pub fn mean<'a>(all: impl ExactSizeIterator<Item = &'a Self>) -> Self {
        let n = all.len().max(1) as f64;
        let add = |sum: [f64; Self::COUNT], one: &Self| {
            let shares = one.shares();
            core::array::from_fn(|i| sum[i] + shares[i].1 / n)
        };
        Self::from_shares(all.fold([0.0; Self::COUNT], add))
    }
}

/// Returns the rate of `bytes` in `time` in bit/s; 0 if the time is zero.
pub fn rate_bps(bytes: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { bytes as f64 * 8.0 / time.as_secs_f64() }
}

/// The TCP values of a UDP flow.
static NO_TCP: LazyLock<TcpReport> = LazyLock::new(TcpReport::default);

impl FlowReport {
    /// Creates the report of a flow that started at `start`, relative to the start of the run.
    pub fn new(name: impl Into<Arc<str>>, start: Instant, goodput_bps: f64, kind: FlowKind) -> Self {
        let (name, start_s) = (name.into(), start.as_secs_f64());
        Self { name, start_s, goodput_bps, arrived_bps: None, kind, context: FlowContext::default() }
    }

    /// Returns the TCP measurements; `None` for UDP.
    pub const fn tcp(&self) -> Option<&TcpReport> {
        if let FlowKind::Tcp(tcp) = &self.kind { Some(tcp) } else { None }
    }

    /// Returns the TCP measurements; zeros and nulls for UDP, as in JSON and tables.
    pub fn tcp_or_zeros(&self) -> &TcpReport {
        self.tcp().unwrap_or(&NO_TCP)
    }

    /// Returns the UDP measurements; `None` for TCP.
    pub const fn udp(&self) -> Option<&UdpReport> {
        if let FlowKind::Udp(udp) = &self.kind { Some(udp) } else { None }
    }

    /// Returns the rate for which the flow asked; `None` if it did not.
    pub fn rate(&self) -> Option<&RateReport> {
        match &self.kind {
            FlowKind::Tcp(tcp) => tcp.rate.as_deref(),
            FlowKind::Udp(udp) => udp.rate.as_deref(),
        }
    }

    /// Returns the name of the scheme, or `UDP`.
    pub fn scheme(&self) -> &str {
        self.tcp().map_or("UDP", |tcp| &tcp.scheme)
    }
}

impl Serialize for FlowReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tcp = self.tcp_or_zeros();
        let mut out = serializer.serialize_struct("FlowReport", 22)?;
        out.serialize_field("name", &self.name)?;
        out.serialize_field("tcp", &self.tcp().map(|tcp| &tcp.scheme))?;
        out.serialize_field("start_s", &self.start_s)?;
        out.serialize_field("established_s", &tcp.established_s)?;
        out.serialize_field("finished_s", &tcp.finished_s)?;
        out.serialize_field("opened_s", &tcp.opened_s)?;
        out.serialize_field("goodput_bps", &self.goodput_bps)?;
        optional_field::<S>(&mut out, "arrived_bps", self.arrived_bps.as_ref())?;
        out.serialize_field("steady_bps", &tcp.steady_bps)?;
        out.serialize_field("bytes_acked", &tcp.bytes_acked)?;
        out.serialize_field("segments_sent", &tcp.segments_sent)?;
        out.serialize_field("retransmits", &tcp.retransmits)?;
        optional_field::<S>(&mut out, "copies", tcp.copies.as_ref())?;
        out.serialize_field("timeouts", &tcp.timeouts)?;
        out.serialize_field("rtt_ms", &tcp.rtt_ms)?;
        out.serialize_field("limited_by", &tcp.limited_by)?;
        optional_field::<S>(&mut out, "fallback", tcp.fallback.as_ref())?;
        optional_field::<S>(&mut out, "requests", tcp.requests.as_ref())?;
        optional_field::<S>(&mut out, "telnet", tcp.telnet.as_ref())?;
        optional_field::<S>(&mut out, "udp", self.udp())?;
        optional_field::<S>(&mut out, "probes", tcp.probes.as_ref())?;
        optional_field::<S>(&mut out, "rate", self.rate())?;
        out.end()
    }
}

/// Writes a field that is omitted if it is `None`.
fn optional_field<S: Serializer>(
    out: &mut S::SerializeStruct,
    key: &'static str,
    value: Option<&impl Serialize>,
) -> Result<(), S::Error> {
    match value {
        Some(value) => out.serialize_field(key, value),
        None => out.skip_field(key),
    }
}

/// A flow as one JSON object.
#[derive(Deserialize)]
struct Flat {
    name: Arc<str>,
    tcp: Option<String>,
    #[serde(deserialize_with = "number::or_nan")]
    start_s: f64,
    #[serde(deserialize_with = "number::or_nan")]
    goodput_bps: f64,
    #[serde(default, deserialize_with = "number::present")]
    arrived_bps: Option<f64>,
    udp: Option<UdpReport>,
    #[serde(flatten)]
    figures: TcpReport,
}

impl TryFrom<Flat> for FlowReport {
    type Error = &'static str;

    fn try_from(flat: Flat) -> Result<Self, Self::Error> {
        let Flat { name, tcp, start_s, goodput_bps, arrived_bps, udp, figures } = flat;
        let kind = match (tcp, udp) {
            (Some(scheme), None) => FlowKind::from(TcpReport { scheme: scheme.into(), ..figures }),
            (None, Some(udp)) => FlowKind::from(UdpReport { rate: figures.rate, ..udp }),
            _ => return Err("a flow has either a scheme in `tcp` or figures in `udp`"),
        };
        Ok(Self { name, start_s, goodput_bps, arrived_bps, kind, context: FlowContext::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arbitrary::{Arbitrary as _, Result, Unstructured};

    /// A random name of a scheme.
    pub(super) fn scheme(u: &mut Unstructured<'_>) -> Result<Cow<'static, str>> {
        String::arbitrary(u).map(Cow::Owned)
    }
}
