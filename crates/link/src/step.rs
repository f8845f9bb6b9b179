//! The shortest time step.

use bentpipe_base::Duration;

/// Shorter steps, slots, frames, mean durations of burst states and periods of traces are lengthened to this,
/// so that no value can make a run extremely slow. A scenario should refuse them.
pub const SHORTEST_STEP: Duration = Duration::from_micros(100);
