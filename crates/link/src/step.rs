//! The shortest step of anything that changes by steps.

use bentpipe_base::Duration;

/// Steps, slots, frames, mean spells and periods of traces shorter than this are lengthened to it, so that no
/// value, however strange, can make a run crawl. A scenario should refuse them.
pub const SHORTEST_STEP: Duration = Duration::from_micros(100);
