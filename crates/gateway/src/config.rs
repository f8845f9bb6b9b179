//! How a gateway works.

use bentpipe_base::{Rate, Size};

/// How the window shown and the edge forwarded are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The receiver is taken to keep up until it shows that it does not.
    #[default]
    Open,
    /// The paper's equations, corrected.
    Strict,
}

/// How often each packet is sent to receivers whose window is smaller than the path holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Copies {
    /// As often as pays at the loss measured.
    #[default]
    Auto,
    /// Always so often, at least once.
    Fixed(u8),
}

/// What a gateway may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Flows it knows.
    pub flows: u32,
    /// Bytes held in all.
    pub memory: Size,
    /// Bytes held for one flow.
    pub per_flow: Size,
}

/// How a gateway works.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Rate of the hop towards the satellite as the link counts. `None`: the gateway does not shape.
    pub rate: Option<Rate>,
    /// Bytes per packet that the hop counts beside those of IP.
    pub framing: Size,
    /// How windows are found.
    pub mode: Mode,
    /// Share of the rate that is used.
    pub share: f64,
    /// How often packets are sent.
    pub copies: Copies,
    /// What may be held.
    pub limits: Limits,
    /// False: everything passes.
    pub accelerate: bool,
}

impl Default for Config {
    fn default() -> Self {
        let limits = Limits { flows: 100_000, memory: Size(1 << 30), per_flow: Size(64 << 20) };
        Self {
            rate: None,
            framing: Size::ZERO,
            mode: Mode::Open,
            share: 0.995,
            copies: Copies::Auto,
            limits,
            accelerate: true,
        }
    }
}
