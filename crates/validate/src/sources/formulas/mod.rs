//! Checks against formulas, computed from the network parameters without bentpipe's own code.

mod channel;
mod queueing;
mod tcp;

use crate::prelude::*;

/// Formulas.
pub static SECTION: Section = Section {
    title: "Against formulas",
    intro: "",
    pictures: &[("validation-transfers.svg", "Completion time of transfers by size")],
    tables: &[
        &tcp::WINDOW_LIMIT,
        &tcp::SLOW_START,
        &tcp::MATHIS,
        &tcp::CEILING,
        &tcp::PACKET_LOSS,
        &tcp::BIT_ERROR_SHARE,
        &tcp::SATURATED,
        &tcp::LINK_RATE,
        &queueing::M_D_1,
        &channel::BURST_LOSS,
        &channel::BURST_LENGTH,
        &channel::RAIN,
        &channel::CODINGS,
        &channel::DELAYS,
    ],
    checks: || [tcp::all(), queueing::all(), channel::all()].concat(),
};

pub(crate) use tcp::{SLOW_START, slow_start_time};
