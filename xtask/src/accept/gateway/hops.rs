//! Scenarios of satellite hops with gateways: each hop has two hosts of its own, a gateway before it, and one
//! flow over it, so the hops do not meet.

use crate::accept::list::Unit;
use std::fmt::Write as _;

/// Rate of each hop, and its delay one way.
pub(super) const RATE_BPS: f64 = 24e6;
/// Round trip of each hop, s.
pub(super) const TRIP_S: f64 = 1.0;
/// Bytes that a hop carries in a round trip.
pub(super) const BDP: f64 = RATE_BPS / 8.0 * TRIP_S;
/// Such products, of bytes.
pub(super) const PRODUCTS: Unit = Unit("BDP", BDP, 2);

/// What a receiver is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Receiver {
    /// 65535 B, without window scale and timestamps.
    Old,
    /// 8 MiB, with all options.
    Modern,
}

impl Receiver {
    const fn toml(self) -> &'static str {
        match self {
            Self::Old => "{ window = \"65535 B\", window_scale = false, timestamps = false }",
            Self::Modern => "{ window = \"8 MiB\" }",
        }
    }
}

/// One hop with its flow, which is called as the hop and its gateway are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hop<'a> {
    /// Its name.
    pub name: &'a str,
    /// The sender's congestion control.
    pub tcp: &'a str,
    /// The receiver, which opens the connection.
    pub receiver: Receiver,
    /// How its application reads, as a value of the key `reader`.
    pub reader: &'a str,
    /// Whether there is a gateway.
    pub gateway: bool,
}

impl Hop<'_> {
    /// A cubic sender to an old receiver that reads at once, through a gateway.
    pub(super) const OLD: Hop<'static> =
        Hop { name: "old", tcp: "cubic", receiver: Receiver::Old, reader: "\"eager\"", gateway: true };

    fn toml(&self, loss: f64) -> String {
        let Self { name, tcp, receiver, reader, gateway } = self;
        format!(
            "
[[hosts]]
name = \"sender-{name}\"

[[hosts]]
name = \"receiver-{name}\"

[[links]]
name = \"{name}\"
from = \"sender-{name}\"
to = \"receiver-{name}\"
rate = \"{RATE_BPS} bit/s\"
delay = \"{} s\"
buffer = \"{BDP} B\"
forward = {{ loss = {loss:?} }}

[[gateways]]
name = \"{name}\"
link = \"{name}\"
enabled = {gateway}

[[flows]]
name = \"{name}\"
from = \"receiver-{name}\"
to = \"sender-{name}\"
tcp = \"{tcp}\"
app = {{ requests = {{ response = \"1 GB\", count = 1 }} }}
receiver = {}
reader = {reader}
",
            TRIP_S / 2.0,
            receiver.toml(),
        )
    }
}

/// The scenario file: all hops at once, `seconds` long, goodput counted from `from` on, packets towards
/// receivers lost with probability `loss`.
pub(super) fn toml(hops: &[Hop<'_>], loss: f64, (from, seconds): (u64, u64)) -> String {
    let mut text = format!(
        "schema = 1
title = \"hops with gateways\"
duration = \"{seconds} s\"
measure = {{ from = \"{from} s\", to = \"{seconds} s\", links = true }}

[host]
stack = \"linux\"
"
    );
    for hop in hops {
        let _ = write!(text, "{}", hop.toml(loss));
    }
    text
}
