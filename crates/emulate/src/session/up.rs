//! Waits until interfaces carry packets: a veth pair needs a moment after both ends were set up, and until
//! then the kernel drops packets.

use super::Session;
use crate::error::Error;
use bentpipe_base::{Duration, Instant};
use bentpipe_os::Clock;
use bentpipe_os::netlink::Netlink;
use rustix::event::{Timespec, poll};
use std::io;

/// Time limit for an interface to come up.
const PATIENCE: Duration = Duration::from_secs(5);

impl Session {
    /// Waits until the relay's ends carry packets. Called in the relay's network namespace.
    ///
    /// They were set up first, without carrier, so the kernel's link watch must start their queues. The
    /// hosts' ends had a carrier from the start and carry packets at once; only their state is updated later,
    /// after up to a second.
    ///
    /// # Errors
    /// When one does not within the time limit.
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
/// When it does not within the time limit.
pub fn wait_until_up(interface: &str) -> io::Result<()> {
    let mut netlink = Netlink::open().map_err(io::Error::other)?;
    let clock = Clock::start();
    while !netlink.carries(interface).map_err(io::Error::other)? {
        if clock.now() > Instant::ZERO + PATIENCE {
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("{interface} does not come up")));
        }
        // a sleep of 1 ms
        let _ = poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: 1_000_000 }));
    }
    Ok(())
}
