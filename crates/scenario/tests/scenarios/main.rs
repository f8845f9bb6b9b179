//! Scenario files: what each key means, and what is refused where.

#![allow(clippy::unwrap_used, reason = "a test may say what it takes for granted")]

mod files;
mod flow_routers;
mod gateways;
mod links;
mod load;
mod middleboxes;
mod rate_keys;
mod recordings;

#[path = "../support/mod.rs"]
mod support;
