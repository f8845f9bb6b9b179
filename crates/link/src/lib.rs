//! One direction of a link: queue, serialise, errors, propagate, in that order.
//!
//! A link uses a packet's size, priority, ECN bits and flow hash, never TCP. [`Dynamics`] describes what can
//! change during a run; each mechanism has its own file.

pub mod access;
pub mod acm;
mod ahead;
pub mod capacity;
mod change;
pub mod channel;
pub mod codel;
pub mod coding;
mod direction;
mod drop_head;
mod drop_tail;
pub mod fade;
pub mod fq_codel;
mod gap;
pub mod geo;
pub mod gilbert_elliott;
mod in_flight;
mod levels;
pub mod link;
mod moved;
mod mtu;
pub mod normal;
pub mod orbit;
pub mod outage;
pub mod pointing;
pub mod queue;
pub mod rain;
pub mod recorded;
mod state;
pub mod stats;
mod varying;

pub use access::{Access, Dama, IdleRelease};
pub use acm::Acm;
pub use capacity::CapacityTrace;
pub use change::{Change, UserChanges};
pub use channel::{Channel, Errors};
pub use codel::Codel;
pub use coding::Coding;
pub use direction::{DirectionSpec, Dynamics};
pub use drop_tail::{Capacity, Refused};
pub use fade::{Drift, Fade, FadeEffect, FadeSource};
pub use fq_codel::FqCodel;
pub use gap::LossDraw;
pub use gilbert_elliott::GilbertElliott;
pub use link::Link;
pub use mtu::{Longer, Mtu};
pub use orbit::{Handover, Orbit, Pass, Slots};
pub use outage::Outages;
pub use pointing::Pointing;
pub use queue::{Discipline, Queue};
pub use rain::Rain;
pub use recorded::Recorded;
pub use state::{LinkSnapshot, SHORTEST_STEP};
pub use stats::{LinkStats, Served};
