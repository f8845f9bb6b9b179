//! The scenario of all simulated runs: a sender, a receiver, the hop between them, and its gateway.

/// A hop.
#[derive(Clone, Copy, Debug)]
pub struct Hop {
    /// Rate, bit/s.
    pub rate: f64,
    /// Round-trip time, s.
    pub rtt: f64,
    /// Queue, bytes.
    pub queue: f64,
    /// Loss probability towards the receiver.
    pub loss: f64,
}

/// The scenario text. `head` adds lines for the whole run, `gateway` enables the gateway, and `flow` holds
/// the keys of the flow, including its ends.
pub fn text(title: &str, seconds: f64, head: &str, hop: Hop, gateway: bool, flow: &str) -> String {
    let Hop { rate, rtt, queue, loss } = hop;
    format!(
        "schema = 1
title = \"{title}\"
duration = \"{seconds} s\"
{head}
[[hosts]]
name = \"sender\"
[[hosts]]
name = \"receiver\"
[[links]]
name = \"hop\"
from = \"sender\"
to = \"receiver\"
rate = \"{rate} bit/s\"
delay = \"{} s\"
buffer = \"{queue:.0} B\"
forward = {{ loss = {loss:?} }}
[[gateways]]
name = \"gateway\"
link = \"hop\"
enabled = {gateway}
[[flows]]
name = \"f\"
{flow}
",
        rtt / 2.0
    )
}

/// The ends of a flow from sender to receiver.
pub const FORTH: &str = "from = \"sender\"\nto = \"receiver\"";
