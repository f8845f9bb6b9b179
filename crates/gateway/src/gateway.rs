//! The node: what comes at one side leaves at the other.

use crate::{Config, FlowReport, GatewayReport};
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

    /// Connections from number `from` on, at most `most` of them, and the number to go on from.
    pub const fn flows(&self, _from: u32, _most: usize) -> (Vec<FlowReport>, Option<u32>) {
        (Vec::new(), None)
    }

    /// A connection that has ended, the oldest of those not taken yet.
    pub const fn take_closed(&mut self) -> Option<FlowReport> {
        None
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
