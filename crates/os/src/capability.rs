//! Capabilities of this process.

use rustix::io::Result;
use rustix::thread::{CapabilitySet, capabilities, configure_capability_in_ambient_set, set_capabilities};

/// Needed to make namespaces (`CAP_SYS_ADMIN`), to set up interfaces (`CAP_NET_ADMIN`) and to open packet
/// sockets (`CAP_NET_RAW`).
pub const NEEDED: CapabilitySet =
    CapabilitySet::SYS_ADMIN.union(CapabilitySet::NET_ADMIN).union(CapabilitySet::NET_RAW);

/// True if all of `wanted` are effective for the calling thread.
pub fn has(wanted: CapabilitySet) -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(wanted))
}

/// Passes this process's capabilities on to the programs it starts. Without this an ordinary user's
/// capabilities inside a user namespace are lost at `exec`, because they are not ambient (capabilities(7)).
///
/// # Errors
/// When the kernel refuses, for instance because of secure bits.
pub fn keep_over_exec() -> Result<()> {
    let mut sets = capabilities(None)?;
    sets.inheritable = sets.permitted;
    set_capabilities(None, sets)?;
    for bit in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << bit);
        if sets.permitted.contains(one) {
            configure_capability_in_ambient_set(one, true)?;
        }
    }
    Ok(())
}
