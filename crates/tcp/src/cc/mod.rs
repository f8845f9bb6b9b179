//! Congestion control.
pub mod cubic;
pub mod vegas;
