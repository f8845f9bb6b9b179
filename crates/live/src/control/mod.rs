//! What can be asked of a running link, and what it answers: lines of JSON over the session's socket, and the
//! same values between its threads.
//!
//! A request is answered on the data thread, between two turns of its loop: so a change has one instant at
//! which it takes effect, for all directions it names, and the journal holds it with that instant.

mod act;
mod desk;
mod messages;
mod words;

pub use act::repeat;
pub use desk::{Commands, Desk};
pub use messages::{Changed, Command, Done, FlowState, LinkState, On, Reply, Request, State, Values, Way};
