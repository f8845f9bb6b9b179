//! The program at the far end: which ports it listens at, and how it ended.

use bentpipe_base::Duration;
use bentpipe_os::namespace::in_network;
use core::fmt;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;

/// Time in which a far program usually listens.
pub const USUAL_LIMIT: Duration = Duration::from_secs(5);

/// What the command waits for after the far program was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// The first port that is opened. If there is none in time, the command starts all the same.
    First,
    /// This port, TCP or UDP. If it is not opened in time, the command does not start.
    Port(u16),
    /// Nothing.
    Off,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// With this exit status.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

impl End {
    /// As shells report it.
    pub(crate) fn status(self) -> u8 {
        match self {
            Self::Exited(status) => status as u8,
            Self::Killed(signal) => (128 + signal) as u8,
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(status) => write!(f, "exit status {status}"),
            Self::Killed(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// Ports at which programs in a network namespace wait for others, from anywhere but this host itself.
pub(crate) fn open_ports(network: &OwnedFd) -> io::Result<BTreeSet<u16>> {
    let read = || -> io::Result<BTreeSet<u16>> {
        let mut ports = BTreeSet::new();
        for (table, state) in [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")] {
            match fs::read_to_string(format!("/proc/thread-self/net/{table}")) {
                Ok(text) => ports.extend(text.lines().filter_map(|line| listening(line, state))),
                // a kernel without IPv6
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(ports)
    };
    in_network(network, read)?
}

/// The port in a line of /proc/net/tcp or udp (proc(5)) if its socket is in this state: 0A is LISTEN, and 07
/// a UDP socket without a peer.
fn listening(line: &str, wanted: &str) -> Option<u16> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (address, port) = fields.next()?.split_once(':')?;
    let state = fields.nth(1)?;
    // words of four bytes in the byte order of the machine
    let own = address.ends_with("7F") && address.len() == 8 || address == "00000000000000000000000001000000";
    (state == wanted && !own).then(|| u16::from_str_radix(port, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_proc() {
        let line = |address: &str, state: &str| {
            format!("   0: {address} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000  0 0 123 1")
        };
        assert_eq!(listening(&line("00000000:1F90", "0A"), "0A"), Some(8080));
        assert_eq!(listening(&line("0237370A:0050", "0A"), "0A"), Some(80));
        assert_eq!(listening(&line("00000000:1F90", "01"), "0A"), None, "a connection");
        assert_eq!(listening(&line("0100007F:1F90", "0A"), "0A"), None, "only for this host");
        let six = |end: &str| format!("0000000000000000000000000{end}:1F90");
        assert_eq!(listening(&line(&six("1000000"), "0A"), "0A"), None);
        assert_eq!(listening(&line(&six("0000000"), "07"), "07"), Some(8080));
        for bad in ["", "  sl  local_address rem_address   st", "0: 00000000 x 0A", "0: 00000000:XXXX x 0A"] {
            assert_eq!(listening(bad, "0A"), None, "{bad}");
        }
    }
}
