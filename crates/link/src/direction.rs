//! Description of one direction of a link.

use crate::access::Access;
use crate::capacity::CapacityTrace;
use crate::change::Change;
use crate::drop_tail::Capacity;
use crate::fade::Fade;
use crate::gap::LossDraw;
use crate::gilbert_elliott::GilbertElliott;
use crate::mtu::Mtu;
use crate::orbit::Orbit;
use crate::outage::Outages;
use crate::queue::Discipline;
use crate::recorded::Recorded;
use bentpipe_base::{Duration, Instant, Probability, Rate, Size};

/// One direction of a link. Order of effects: queue, serialise, errors, propagate.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectionSpec {
    /// Rate at which IP bytes plus `framing` are serialised.
    pub rate: Rate,
    /// One-way propagation delay.
    pub delay: Duration,
    /// Capacity of the queue; the packet in service is not counted.
    pub buffer: Capacity,
    /// Which packet is served next, and which is dropped.
    pub discipline: Discipline,
    /// Loss probability per packet.
    pub loss: Probability,
    /// How losses with this probability are drawn.
    pub loss_draw: LossDraw,
    /// Bit error rate over IP bytes plus framing; one bit error loses the packet.
    pub ber: Probability,
    /// Bytes of link-layer overhead of each packet.
    pub framing: Size,
    /// Longest packet, and what happens to longer ones; `None` without a limit.
    pub mtu: Option<Mtu>,
    /// What changes during the run; `None` on most links.
    pub dynamics: Option<Box<Dynamics>>,
}

/// Everything about a direction that can change during a run. Each mechanism is at most once on a direction.
/// They act in a fixed order: timeline, scheduled capacity, recorded delay and loss, orbit, fade, burst
/// losses, outages; access decides when the packet at the head of the queue may begin.
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

impl Dynamics {
    /// True if nothing ever changes.
    pub fn is_constant(&self) -> bool {
        *self == Self::default()
    }
}
