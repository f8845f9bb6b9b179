//! Scenarios for measurements: a user, the far host, and one link between them.

/// A link between the hosts `near` and `far`; both directions are equal except for errors.
#[derive(Clone, Copy, Debug)]
pub struct OneLink<'a> {
    /// Rate, with a unit.
    pub rate: &'a str,
    /// One-way delay, with a unit.
    pub delay: &'a str,
    /// Size of each queue, with a unit.
    pub buffer: &'a str,
    /// Packet loss ratio towards the user.
    pub loss: f64,
    /// Packet loss ratio from the user.
    pub loss_back: f64,
    /// BER towards the user.
    pub ber: f64,
    /// Seed of all random streams.
    pub seed: u64,
}

impl OneLink<'_> {
    /// A link without errors; the caller sets rate, delay and buffer.
    pub const CLEAN: OneLink<'static> =
        OneLink { rate: "", delay: "", buffer: "", loss: 0.0, loss_back: 0.0, ber: 0.0, seed: 1 };

    /// The scenario file's text.
    pub fn toml(&self) -> String {
        let Self { rate, delay, buffer, loss, loss_back, ber, seed } = self;
        format!(
            "schema = 1
title = \"one link\"
seed = {seed}
duration = \"1 h\"

[[hosts]]
name = \"far\"

[[hosts]]
name = \"near\"

[[links]]
name = \"link\"
from = \"far\"
to = \"near\"
rate = \"{rate}\"
delay = \"{delay}\"
buffer = \"{buffer}\"
forward = {{ loss = {loss:?}, ber = {ber:?} }}
backward = {{ loss = {loss_back:?} }}

[[flows]]
name = \"flow\"
from = \"far\"
to = \"near\"
"
        )
    }
}
