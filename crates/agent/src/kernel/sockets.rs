//! The host's own sockets of flows that were negotiated.

use crate::split::FlowKey;
use bentpipe_os::diag::{Connection, Diag};
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;

/// The connections of this machine that belong to `flows` and are open.
///
/// # Errors
/// On kernels without `sock_diag`.
pub fn open_sockets(flows: &[FlowKey]) -> io::Result<Vec<Connection>> {
    if flows.is_empty() {
        return Ok(Vec::new());
    }
    let wanted: BTreeSet<&FlowKey> = flows.iter().collect();
    let mut all = Diag::open()?.connections()?;
    all.retain(|connection| wanted.contains(&key(connection)));
    Ok(all)
}

/// The flow of a connection; a socket for both families may have an IPv4 address in IPv6 form.
pub fn key(connection: &Connection) -> FlowKey {
    let plain = |end: SocketAddr| SocketAddr::new(end.ip().to_canonical(), end.port());
    FlowKey { host: plain(connection.local), remote: plain(connection.peer) }
}

/// Resets the connections of `flows` that are open, at this end; returns their number.
///
/// # Errors
/// On kernels without `sock_diag`, or which cannot reset sockets of others (`CONFIG_INET_DIAG_DESTROY`).
pub fn reset_sockets(flows: &[FlowKey]) -> io::Result<usize> {
    let open = open_sockets(flows)?;
    let mut diag = Diag::open()?;
    open.iter().try_for_each(|connection| diag.reset(connection))?;
    Ok(open.len())
}
