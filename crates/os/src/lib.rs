//! Linux interfaces: packet ports, clock and waiting, namespaces, netlink, TCP statistics. The only crate
//! with unsafe code.
//!
//! Only thin typed wrappers; the logic is in `live` and `emulate`. Linux only.

pub mod capability;
pub mod clock;
pub mod diag;
pub mod filters;
pub mod landlock;
pub mod mapped;
pub mod namespace;
pub mod netlink;
pub mod nft;
mod options;
mod own_program;
pub mod packet;
pub mod port;
pub mod process;
pub mod realtime;
pub mod seccomp;
pub mod silent;
pub mod socket;
pub mod sysctl;
pub mod tcp;
pub mod tun;
pub mod wait;

pub use clock::Clock;
pub use mapped::MappedFile;
pub use own_program::{own_program, set_own_program};
pub use packet::{FramePort, VethPort};
pub use port::{PacketPort, PortDrops, PortError, Received};
pub use silent::SilentPort;
pub use tun::TunPort;

use std::io::Read as _;

/// An unpredictable random number.
///
/// # Errors
/// When `/dev/urandom` cannot be read.
pub fn random() -> std::io::Result<u64> {
    let mut bytes = [0; 8];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}
