//! Segment dialogues: segments that arrive, and segments that must be sent, with their times. One file per
//! topic; each test names the rule that it checks.

#[allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::option_option,
    clippy::needless_pass_by_value,
    reason = "a stage for tests, not an interface"
)]
mod script;

mod alive;
mod basics;
mod close;
mod cork;
mod cubic;
mod ecn;
mod frto;
mod growth;
mod halving;
mod icmp;
mod jitter;
mod linux;
mod newreno;
mod open;
mod options;
mod pacing;
mod probes;
mod prr;
mod rack;
mod receiving;
mod reno;
mod reset;
mod rto;
mod sack;
mod sending;
mod tlp;
mod validation;
mod vegas;
mod window;
