//! Checks against formulas, computed from the network parameters without bentpipe's own code.

mod channel;
mod queueing;
mod tcp;

use crate::check::Check;

pub(super) fn all() -> Vec<Check> {
    [tcp::all(), queueing::all(), channel::all()].concat()
}
