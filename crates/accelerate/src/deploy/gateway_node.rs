//! Access to the gateway node on the data thread.

use bentpipe_base::{Addresses, Cx, NodeId};
use bentpipe_driver::Core;
use bentpipe_gateway::Gateway;
use std::io;

/// Maximum number of known addresses.
pub(super) const ADDRESSES: u32 = 1 << 20;
const GATEWAY: NodeId = NodeId(0);

pub(super) fn gateway(core: &mut Core) -> &mut Gateway {
    gateway_and_addresses(core).0
}

/// The gateway, and the table of the real addresses behind its address numbers.
pub(super) fn gateway_and_addresses(core: &mut Core) -> (&mut Gateway, &mut Addresses) {
    core.net.network.gateway(GATEWAY).expect("the network has a gateway")
}

/// Calls the gateway, then delivers the packets that it sent.
pub(super) fn call<T>(core: &mut Core, act: impl FnOnce(&mut Gateway, &mut Cx<'_>) -> T) -> io::Result<T> {
    let done = core.net.with(|network| network.with_gateway(GATEWAY, act));
    core.deliver()?;
    Ok(done.expect("the network has a gateway"))
}
