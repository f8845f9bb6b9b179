//! The data path in memory and simulated time, between two ends that know nothing of it: paths that lose,
//! duplicate and reorder on both sides.

#![allow(clippy::unwrap_used, reason = "a test may say what it takes for granted")]

mod chain;
mod cut;
#[path = "../../../live/tests/endpoint/duel.rs"]
#[allow(dead_code, reason = "shared with other tests, which use more of it")]
mod duel;
mod ends;
mod mourning;
#[path = "../../../live/tests/endpoint/path.rs"]
#[allow(dead_code, reason = "shared with other tests, which use more of it")]
mod path;
mod streams;
#[path = "../../../live/tests/endpoint/talk.rs"]
#[allow(dead_code, reason = "shared with other tests, which use more of it")]
mod talk;
