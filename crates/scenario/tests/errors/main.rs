//! What is wrong in a file is refused: the full text of each error.

#![allow(clippy::unwrap_used, reason = "a test may say what it takes for granted")]

mod fades;
mod links;
mod network;
mod parameters;
mod run;
mod sweep;
mod tcp;
mod together;
mod values;

#[path = "../support/mod.rs"]
mod support;
