//! Files of gateways, agents and figures.

#![allow(clippy::unwrap_used, reason = "a test may say what it takes for granted")]

mod agent_file;
mod figure_file;
mod figure_live;
mod gateway_file;
mod gateway_policy;
mod gateway_rate;
