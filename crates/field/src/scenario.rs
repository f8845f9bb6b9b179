//! The scenario of every simulated run: a sender, a receiver, a hop between them, and its gateway.

/// A hop.
#[derive(Clone, Copy, Debug)]
pub struct Hop {
    /// Bit/s.
    pub rate: f64,
    /// Round trip, s.
    pub rtt: f64,
    /// Its queue, bytes.
    pub queue: f64,
    /// Probability of loss towards the receiver.
    pub loss: f64,
}

/// The text. `head` are more lines for the whole run, `gateway` says whether there is one, and `flow` names
/// the ends of the flow and what it does.
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

/// The ends of a flow from the sender to the receiver.
pub const FORTH: &str = "from = \"sender\"\nto = \"receiver\"";
