//! Scenarios of satellite hops with gateways: each hop has its own two hosts, gateway and flow.

use crate::accept::list::Unit;
use std::fmt::Write as _;

/// Rate of each hop, bit/s.
pub(super) const RATE_BPS: f64 = 24e6;
/// Full goodput: 99.5 % of the hop, 1460 of 1500 B.
pub(super) const FULL_BPS: f64 = 23.25e6;
/// RTT of each hop, s.
pub(super) const RTT_S: f64 = 1.0;
/// Bandwidth-delay product of a hop, bytes.
pub(super) const BDP: f64 = RATE_BPS / 8.0 * RTT_S;
/// Displays bytes as multiples of the BDP.
pub(super) const IN_BDP: Unit = Unit("BDP", BDP, 2);

/// Receivers in a scenario: 65535 B, without window scale and timestamps; and 8 MiB, with all options.
pub(super) const OLD: &str = "{ window = \"65535 B\", window_scale = false, timestamps = false }";
pub(super) const MODERN: &str = "{ window = \"8 MiB\" }";

/// A hop with its flow and gateway, which have the same name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hop<'a> {
    pub name: &'a str,
    pub tcp: &'a str,
    /// The receiver, which opens the connection.
    pub receiver: &'a str,
    /// The scenario value of its `reader` key.
    pub reader: &'a str,
    pub gateway: bool,
}

impl Hop<'_> {
    /// A CUBIC sender to an old receiver that reads at once, through a gateway.
    pub(super) const OLD: Hop<'static> =
        Hop { name: "old", tcp: "cubic", receiver: OLD, reader: "\"eager\"", gateway: true };

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
receiver = {receiver}
reader = {reader}
",
            RTT_S / 2.0,
        )
    }
}

/// The scenario file: all hops run concurrently; packet loss probability `loss` towards receivers.
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
