//! The gateway inside the driver's network, on the data thread.

use bentpipe_base::{Addresses, Cx, NodeId};
use bentpipe_driver::Core;
use bentpipe_gateway::Gateway;
use std::io;

/// Addresses that are known at a time.
pub(super) const ADDRESSES: u32 = 1 << 20;
/// The gateway's place in its network.
const GATEWAY: NodeId = NodeId(0);

/// The gateway of a driver.
pub(super) fn gateway(core: &mut Core) -> &mut Gateway {
    core.net.network.gateway(GATEWAY).expect("the network has a gateway")
}

/// The gateway, and the real addresses behind the numbers that it knows.
pub(super) fn gateway_and_addresses(core: &mut Core) -> (&mut Gateway, &mut Addresses) {
    core.net.network.gateway_and_addresses(GATEWAY).expect("the network has a gateway")
}

/// Calls the gateway, then sends what it sent.
///
/// # Errors
/// When a port is gone.
pub(super) fn call<T>(core: &mut Core, act: impl FnOnce(&mut Gateway, &mut Cx<'_>) -> T) -> io::Result<T> {
    let done = core.net.with(|network| network.with_gateway(GATEWAY, act));
    core.deliver()?;
    Ok(done.expect("the network has a gateway"))
}
