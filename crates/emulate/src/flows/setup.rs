//! Configures hosts for their flows, and opens the sockets.

use super::end::Window;
use super::needs::{HostRequirements, room_for};
use super::{Error, KERNEL_LONGEST, UNSCALED};
use bentpipe_base::{Duration, IpVersion, Size};
use bentpipe_os::netlink::{Netlink, Route};
use bentpipe_os::{namespace, socket, sysctl, tcp};
use bentpipe_scenario::{FlowSpec, Reader};
use bentpipe_tcp::{Config, KeepAlive, ReceiveBuffer, Stack};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{BorrowedFd, OwnedFd};

/// The kernel's range for the maximum RTO.
const RTO_MAX: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(120));

/// Location of a host of the scenario.
#[derive(Clone, Copy, Debug)]
pub struct HostNamespace<'a> {
    /// Its network namespace.
    pub network: BorrowedFd<'a>,
    /// Its address, of either family.
    pub address: IpAddr,
    /// Its IPv6 address, if the kernel has IPv6.
    pub v6: Option<IpAddr>,
    /// Its interface to the link.
    pub interface: &'a str,
}

impl HostNamespace<'_> {
    /// Its address for packets of `version`.
    ///
    /// # Errors
    /// When it has none.
    pub(super) fn address_of(&self, flow: &FlowSpec, version: IpVersion) -> Result<IpAddr, Error> {
        let own = if version == IpVersion::V6 { self.v6 } else { Some(self.address) };
        let missing = || io::Error::new(io::ErrorKind::Unsupported, "this kernel has none: write `ip = 4`");
        own.ok_or_else(|| Error::system(format!("IPv6 for flow `{}`", flow.name), missing()))
    }

    /// Calls `act` in its namespace.
    pub(super) fn within<T>(&self, what: &str, act: impl FnOnce() -> io::Result<T>) -> Result<T, Error> {
        namespace::in_network(self.network, act)
            .map_err(io::Error::from)
            .and_then(core::convert::identity)
            .map_err(|e| Error::system(what, e))
    }
}

/// The location of a host of `flow`, by its index among the nodes.
pub(super) fn place_of<'a, 'b>(
    places: &'a [Option<HostNamespace<'b>>],
    flow: &FlowSpec,
    host: usize,
) -> Result<&'a HostNamespace<'b>, Error> {
    let missing = || io::Error::new(io::ErrorKind::NotFound, "it has no namespace");
    let found = places.get(host).and_then(Option::as_ref);
    found.ok_or_else(|| Error::system(format!("a host of flow `{}`", flow.name), missing()))
}

/// Applies the settings and routes of a host.
pub(super) fn prepare(
    name: &str,
    needs: &HostRequirements,
    places: &[Option<HostNamespace<'_>>],
) -> Result<(), Error> {
    let Some(place) = places.get(needs.host).copied().flatten() else { return Ok(()) };
    let set = || -> Result<(), Error> {
        for (setting, value) in &needs.settings {
            let what = || format!("host `{name}`: the kernel setting {setting} cannot be {value}");
            sysctl::write_if_there(setting, value).map_err(|e| Error::system(what(), e))?;
        }
        let fault = |e| Error::system(format!("host `{name}`"), io::Error::other(e));
        let mut netlink = Netlink::open().map_err(fault)?;
        for (to, metrics) in &needs.routes {
            let Some(peer) = places.get(*to).copied().flatten() else { continue };
            let length = if peer.address.is_ipv4() { 32 } else { 128 };
            let route =
                Route { to: (peer.address, length), interface: place.interface, metrics: metrics.clone() };
            netlink.replace_route(&route).map_err(fault)?;
        }
        Ok(())
    };
    namespace::in_network(place.network, set).map_err(|e| Error::system(name, e))?
}

/// Options of a socket, set before it connects or listens.
#[derive(Clone, Debug)]
pub(super) struct Socket<'a> {
    pub(super) config: &'a Config,
    pub(super) congestion: &'a str,
    /// The window must be limited by the socket's own buffer.
    pub(super) locks_buffer: bool,
    pub(super) reader: Reader,
}

impl Socket<'_> {
    /// Opens it, bound to `at`, in the calling thread's namespace.
    pub(super) fn open(&self, at: &SocketAddr) -> io::Result<OwnedFd> {
        let fd = socket::stream(at)?;
        tcp::set_congestion(&fd, self.congestion)?;
        tcp::set_max_segment(&fd, self.config.mss)?;
        tcp::set_no_delay(&fd, !self.config.nagle)?;
        if self.config.pacing {
            tcp::set_pacing(&fd)?;
        }
        if let Some(patience) = self.config.user_timeout {
            tcp::set_user_timeout(&fd, patience)?;
        }
        if let Some(KeepAlive { idle, interval, count }) = self.config.keep_alive {
            tcp::set_keep_alive(&fd, idle, interval, count)?;
        }
        if let ReceiveBuffer::Fixed(window) = self.config.receive_buffer {
            if self.locks_buffer {
                socket::set_receive_buffer(&fd, room_for(window))?;
            }
            tcp::set_window_clamp(&fd, clamp_for(window, self.config))?;
        }
        optional(tcp::set_rto_max(&fd, self.config.rto.max.clamp(RTO_MAX.0, RTO_MAX.1)))?;
        if let Some(delayed) = self.config.delayed_ack.filter(|_| self.config.stack == Stack::Rfc) {
            optional(tcp::set_delayed_ack_max(&fd, delayed.timeout.min(KERNEL_LONGEST)))?;
        }
        socket::bind(&fd, at)?;
        Ok(fd)
    }

    /// How the window is limited while the connection lives.
    pub(super) const fn window(&self) -> Window {
        match (self.config.receive_buffer, self.reader) {
            (ReceiveBuffer::Fixed(size), Reader::Eager) => Window::Fixed(clamp_for(size, self.config)),
            (ReceiveBuffer::Fixed(size), _) => Window::Buffer(size, false),
            (ReceiveBuffer::Auto { max, .. }, _) => Window::UpTo(max),
        }
    }
}

/// Returns the window clamp that makes the kernel advertise `window`. Without window scale it advertises
/// whole segments (`__tcp_select_window`), unless it could advertise more than the field holds.
const fn clamp_for(window: Size, config: &Config) -> Size {
    if window.0 == UNSCALED { Size(UNSCALED + 2 * config.mss as u64) } else { window }
}

/// Sets the minimum RTO, once the RTT is known. The kernel adds its minimum to the smoothed RTT
/// (`__tcp_set_rto`), while a scenario's minimum is for the whole RTO unless its stack is Linux: so the
/// difference is set.
pub(super) fn set_rto_min(fd: BorrowedFd<'_>, config: &Config) -> io::Result<()> {
    let least = match config.stack {
        Stack::Rfc => config.rto.min.saturating_sub(tcp::info(fd)?.rtt),
        Stack::Linux => config.rto.min,
    };
    optional(tcp::set_rto_min(fd, least.min(KERNEL_LONGEST)))
}

/// Leaves the kernel's own value if it lacks the option (before 6.15), or refuses a time of less than two
/// ticks of its clock (`TCP_TIMEOUT_MIN`).
fn optional(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(e) if matches!(e.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput) => Ok(()),
        other => other,
    }
}
