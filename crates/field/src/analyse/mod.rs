//! Analysis of a hop record: packet order, losses, repairs, goodput, and upper bounds of the goodput.

pub mod bound;
pub mod flows;
pub mod header;
pub mod ranges;
pub mod repairs;
