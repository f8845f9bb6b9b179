//! What a record of the hop says: order, losses, repairs, goodput, and what could have been had.

pub mod bound;
pub mod flows;
pub mod header;
pub mod ranges;
pub mod repairs;
