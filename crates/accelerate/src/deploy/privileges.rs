//! Drops the privileges that a gateway needs only at its start.
//!
//! It keeps CAP_NET_ADMIN to remove its rules at the end, and CAP_SYS_NICE for the priority of the data path.
//! All others are dropped permanently, from the bounding set too (capabilities(7)), so that `nft`, which is
//! started later, cannot have more either, and set-uid programs gain nothing.

use rustix::io::{Errno, Result};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set, set_capabilities,
    set_no_new_privs,
};

const KEPT: CapabilitySet = CapabilitySet::NET_ADMIN.union(CapabilitySet::SYS_NICE);

/// Drops all others for this thread and the threads that it starts later.
///
/// # Errors
/// When the kernel refuses.
pub fn give_up() -> Result<()> {
    let now = capabilities(None)?;
    if now.effective.contains(CapabilitySet::SETPCAP) {
        for bit in 0..u64::BITS {
            let one = CapabilitySet::from_bits_retain(1 << bit);
            if KEPT.contains(one) {
                continue;
            }
            match remove_capability_from_bounding_set(one) {
                // beyond the last capability of this kernel
                Err(Errno::INVAL) => break,
                other => other?,
            }
        }
    }
    set_no_new_privs(true)?;
    let kept = now.permitted.intersection(KEPT);
    set_capabilities(
        None,
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() },
    )
}
