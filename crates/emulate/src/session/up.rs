//! Waiting until interfaces carry packets: a pair needs a moment after both its ends were told to come up,
//! and until then the kernel throws away what is sent.

use super::Session;
use crate::error::Error;
use bentpipe_base::{Duration, Instant};
use bentpipe_os::Clock;
use bentpipe_os::netlink::Netlink;
use rustix::event::{Timespec, poll};
use std::io;

/// An interface that is not up after this time never will be.
const PATIENCE: Duration = Duration::from_secs(5);

impl Session {
    /// Waits until the relay's ends carry packets. Called in the relay's network namespace.
    ///
    /// They came up first, without carrier, so the kernel's link watch has to start their queues. The hosts'
    /// ends came up with one and carry packets at once; only their state is told later, up to a second.
    ///
    /// # Errors
    /// When one never does.
    pub fn wait_until_up(&self) -> Result<(), Error> {
        for host in &self.hosts {
            wait_until_up(&host.port)
                .map_err(|e| Error::system(format!("the interface of {}", host.name), e))?;
        }
        Ok(())
    }
}

/// Waits until an interface of the calling thread's namespace carries packets.
///
/// # Errors
/// When it never does.
pub fn wait_until_up(interface: &str) -> io::Result<()> {
    let mut netlink = Netlink::open().map_err(io::Error::other)?;
    let clock = Clock::start();
    while !netlink.carries(interface).map_err(io::Error::other)? {
        if clock.now() > Instant::ZERO + PATIENCE {
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("{interface} does not come up")));
        }
        // nothing to wait for, and soon over
        let _ = poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: 1_000_000 }));
    }
    Ok(())
}
