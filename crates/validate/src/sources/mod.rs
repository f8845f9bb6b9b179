//! Sources of expected numbers, one section of the page each.

pub mod asymmetry;
pub mod formulas;
pub mod kaband;
pub mod parallel;
pub mod rate;
pub mod simulators;
pub mod study;
pub mod winds;

use crate::section::Section;

/// All sections, in the order of the page.
pub static SECTIONS: [&Section; 8] = [
    &simulators::SECTION,
    &kaband::SECTION,
    &study::SECTION,
    &winds::SECTION,
    &asymmetry::SECTION,
    &rate::SECTION,
    &parallel::SECTION,
    &formulas::SECTION,
];
