//! Congestion control as in Linux: whole segments, integer arithmetic, and Linux's choices where the RFCs
//! leave one open.
//!
//! Used if a host's [`Stack`](crate::Stack) is Linux. Two rules are common to all these schemes: a loss
//! reduces from cwnd, not from FlightSize, and the window grows by all data that an acknowledgment delivers,
//! including SACKed data.

mod cubic;
mod hystart;
mod reno;
mod window;

pub use cubic::LinuxCubic;
pub use reno::LinuxReno;
pub use window::LinuxWindow;
