//! Gives up what a gateway needs only at its start.
//!
//! What is kept, CAP_NET_ADMIN, takes the rules back at the end; CAP_SYS_NICE lets the data path ask for its
//! priority. Everything else is given up for good: also the bounding set is cut (capabilities(7)), so that a
//! program started later, `nft`, cannot have more either, and no program can gain anything by set-uid bits.

use rustix::io::{Errno, Result};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set, set_capabilities,
    set_no_new_privs,
};

/// What is kept of what there is.
const KEPT: CapabilitySet = CapabilitySet::NET_ADMIN.union(CapabilitySet::SYS_NICE);

/// Gives up the rest, for this thread and those that it starts from now on.
///
/// # Errors
/// When the kernel refuses.
pub(super) fn give_up() -> Result<()> {
    let now = capabilities(None)?;
    if now.effective.contains(CapabilitySet::SETPCAP) {
        for bit in 0..u64::BITS {
            let one = CapabilitySet::from_bits_retain(1 << bit);
            if KEPT.contains(one) {
                continue;
            }
            match remove_capability_from_bounding_set(one) {
                // beyond the last that this kernel knows
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
