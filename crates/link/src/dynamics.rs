//! Everything about one direction of a link that can change during a run, as a value.
//!
//! Each mechanism is at most once on a direction. They act in a fixed order: timeline, scheduled capacity,
//! recorded delay and loss, orbit, fade, burst losses, outages; access decides when the packet at the head of
//! the queue may begin.

use crate::access::Access;
use crate::capacity::CapacityTrace;
use crate::drop_tail::Capacity;
use crate::fade::Fade;
use crate::gilbert_elliott::GilbertElliott;
use crate::orbit::Orbit;
use crate::outage::Outages;
use crate::recorded::Recorded;
use bentpipe_base::{Duration, Instant, Probability, Rate};

/// What changes on a direction, and how.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dynamics {
    /// The timeline: sets base values at given instants, in order of time.
    pub changes: Vec<(Instant, Change)>,
    /// Rate over time, or instants at which packets may leave.
    pub capacity: Option<CapacityTrace>,
    /// Recorded one-way delay.
    pub delay: Option<Recorded<Duration>>,
    /// Recorded loss probability.
    pub loss: Option<Recorded<Probability>>,
    /// Moving satellites.
    pub orbit: Option<Orbit>,
    /// Attenuation over time and its effect.
    pub fade: Option<Fade>,
    /// Burst losses.
    pub bursts: Option<GilbertElliott>,
    /// Recurring outages.
    pub outages: Option<Outages>,
    /// When a waiting packet may be sent.
    pub access: Option<Access>,
}

/// What the timeline, or a user of a running link, changes at one instant. `None` leaves a value as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Change {
    /// Rate.
    pub rate: Option<Rate>,
    /// One-way propagation delay.
    pub delay: Option<Duration>,
    /// Capacity of the queue; packets beyond a smaller one stay until they are served.
    pub buffer: Option<Capacity>,
    /// Loss probability per packet.
    pub loss: Option<Probability>,
    /// Bit error rate.
    pub ber: Option<Probability>,
    /// False: everything that is sent is lost.
    pub up: Option<bool>,
}

impl Dynamics {
    /// True if nothing ever changes.
    pub fn is_constant(&self) -> bool {
        *self == Self::default()
    }
}
