//! Scenarios for measurements: a user, the other end, and one link between them.

/// A link with hosts `near` and `far` at its ends; the same both ways but for the errors.
#[derive(Clone, Copy, Debug)]
pub struct OneLink<'a> {
    /// With a unit.
    pub rate: &'a str,
    /// One way, with a unit.
    pub delay: &'a str,
    /// Of each queue, with a unit.
    pub buffer: &'a str,
    /// Share of packets that is lost on the way to the user.
    pub loss: f64,
    /// Share of packets that is lost on the way from the user.
    pub loss_back: f64,
    /// Share of bits that is wrong on the way to the user.
    pub ber: f64,
    /// Of all random streams.
    pub seed: u64,
}

impl OneLink<'_> {
    /// Without errors; rate, delay and buffer are to be given.
    pub const CLEAN: OneLink<'static> =
        OneLink { rate: "", delay: "", buffer: "", loss: 0.0, loss_back: 0.0, ber: 0.0, seed: 1 };

    /// The scenario file.
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
