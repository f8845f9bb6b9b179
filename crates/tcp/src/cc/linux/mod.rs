//! Congestion control as Linux has it: whole segments, integers, and its own answers where the RFCs leave one
//! open.
//!
//! Used where a host's [`Stack`](crate::Stack) is Linux. Two rules are common to all its schemes: a loss
//! reduces from the congestion window, not from the FlightSize, and a window grows by everything that an
//! acknowledgment delivered, SACKed data included.

mod cubic;
mod hystart;
mod reno;
mod window;

pub use cubic::LinuxCubic;
pub use reno::LinuxReno;
pub use window::Segments;
