//! The node: what comes at one side leaves at the other.

use crate::{Config, GatewayReport};
use bentpipe_base::{Cx, Input, Node, Port};

/// The side of the hosts that send.
pub const LAN: Port = Port(0);
/// The side of the satellite hop.
pub const SATELLITE: Port = Port(1);

/// A gateway.
#[derive(Debug, Default)]
pub struct Gateway {
    config: Config,
}

impl Gateway {
    /// A gateway that works as `config` says.
    pub const fn new(config: Config) -> Self {
        Self { config }
    }

    /// What it did up to now.
    pub fn report(&self) -> GatewayReport {
        GatewayReport::default()
    }

    /// How it works.
    pub const fn config(&self) -> &Config {
        &self.config
    }
}

impl Node for Gateway {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input) {
        if let Input::Packet(port, packet) = input {
            cx.send(if port == LAN { SATELLITE } else { LAN }, packet);
        }
    }
}
