//! Control of a running link: requests and replies, as lines of JSON on the session's socket and as the same
//! values between its threads.
//!
//! The data thread answers requests between two turns of its loop. So a change takes effect at one instant
//! for all directions it names, and the journal records that instant.

mod describe;
mod link_change;
mod messages;
mod request_handler;

pub use link_change::replay_change;
pub use messages::{
    ChangesMade, Command, DirectionChange, Directions, FlowState, LinkState, LinkValues, Reply, Request,
    State, Target,
};
pub use request_handler::{Commands, RequestHandler};
