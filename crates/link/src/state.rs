//! The state of a direction at one instant, and the processes that determine it.

use crate::drop_tail::Capacity;
use crate::gap::Gap;
use crate::mtu::Fragments;
use crate::queue::Queue;
use bentpipe_base::trace::DropCause;
use bentpipe_base::{Cx, Duration, Instant, Probability, Rate, Rng, Size};
use core::fmt::Debug;

/// Shorter steps, slots, frames, mean durations of burst states and periods of traces are lengthened to this,
/// so that no value can make a run extremely slow. A scenario should refuse them.
pub const SHORTEST_STEP: Duration = Duration::from_micros(100);

/// The state from one instant until the next change.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct State {
    /// `None`: nothing is sent, packets wait.
    pub rate: Option<Rate>,
    pub one_way: Duration,
    /// Taken down by the timeline or a user: everything sent is lost to an outage.
    pub down: bool,
    /// If set, everything sent is lost, for this cause; the first that is set stays.
    pub lost_to: Option<DropCause>,
    /// Loss probability around a handover.
    pub handover_loss: f64,
    /// Loss probability of a coding at its threshold.
    pub fade_loss: f64,
    /// Loss probability of every packet.
    pub loss: f64,
    /// Loss probability of the current state of the burst process.
    pub burst_loss: f64,
    /// Rate of independent bit errors of the link itself.
    pub ber: f64,
    /// Bit error rate that the fade adds.
    pub fade_ber: f64,
    /// Probability per bit that an error event of the coding begins there.
    pub fade_event: f64,
    /// Attenuation in dB; `None` without a fade.
    pub fade_db: Option<f64>,
}

impl State {
    /// The state before any change.
    pub(crate) fn new(rate: Rate, one_way: Duration, loss: Probability, ber: Probability) -> Self {
        Self { rate: Some(rate), one_way, loss: loss.get(), ber: ber.get(), ..Self::default() }
    }

    /// Returns why a packet is lost; `None` if it is not. `bit_error` is the probability that it has bit
    /// errors in any of its fragments; with `gap`, losses of the link itself are drawn as gaps. Probabilities
    /// of 0 and 1 draw no random number.
    pub(crate) fn draw_loss(
        &self,
        rng: &mut Rng,
        sent: Fragments,
        bit_error: f64,
        gap: Option<&mut Gap>,
    ) -> Option<DropCause> {
        let dark = self.down.then_some(DropCause::Outage).or(self.lost_to);
        if dark.is_some() {
            return dark;
        }
        let is_lost = |rng: &mut Rng, p: f64| p > 0.0 && (p >= 1.0 || rng.unit() < p);
        if is_lost(rng, sent.lost(self.handover_loss)) {
            Some(DropCause::Handover)
        } else if is_lost(rng, sent.lost(self.fade_loss)) {
            Some(DropCause::Fade)
        } else if match gap {
            Some(gap) => gap.loses(rng, self.loss, sent.count),
            None => is_lost(rng, sent.lost(self.loss)),
        } {
            Some(DropCause::PacketLoss)
        } else if is_lost(rng, sent.lost(self.burst_loss)) {
            Some(DropCause::Burst)
        } else {
            is_lost(rng, bit_error).then_some(DropCause::BitError)
        }
    }

    /// Returns what instruments record of this state and of `queue`, the queue of the link.
    pub(crate) fn snapshot(&self, queue: &Queue) -> LinkSnapshot {
        let losses = [self.handover_loss, self.fade_loss, self.loss, self.burst_loss];
        LinkSnapshot {
            rate: self.rate,
            one_way: self.one_way,
            ber: self.ber + self.fade_ber - self.ber * self.fade_ber,
            // in this form the result is exact if only one process loses packets
            packet_loss: losses.iter().fold(0.0, |p, q| p + q - p * q),
            dark: self.down || self.lost_to.is_some(),
            fade_db: self.fade_db,
            queue_packets: queue.len(),
            queue_bytes: queue.backlog(),
            queue_limit: queue.capacity(),
        }
    }
}

/// The state of a link at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkSnapshot {
    /// The rate; `None` while nothing is sent. For a trace of opportunities, its mean.
    pub rate: Option<Rate>,
    /// One-way propagation delay, without queueing and serialisation.
    pub one_way: Duration,
    /// Bit error rate, that of a fade included.
    pub ber: f64,
    /// Loss probability of a packet that begins now, without bit errors and outages.
    pub packet_loss: f64,
    /// True if everything that begins now is lost: link down, outage, handover or too deep a fade.
    pub dark: bool,
    /// Attenuation in dB; `None` without a fade.
    pub fade_db: Option<f64>,
    /// Packets waiting, without the one being sent.
    pub queue_packets: usize,
    /// Their bytes.
    pub queue_bytes: Size,
    /// Capacity of the queue.
    pub queue_limit: Capacity,
}

/// A mechanism that changes the state over time.
///
/// Its random draws may depend on time only, never on when or how often it is called, so that observing a
/// link changes nothing.
pub(crate) trait Process: Debug + Send {
    /// Applies its effect at `at`, which is never earlier than in the last call, and returns until when it
    /// holds.
    fn apply(&mut self, at: Instant, cx: &mut Cx<'_>, state: &mut State) -> Instant;
}

/// The latest multiple of `step` that is not after `at`.
pub(crate) const fn grid(at: Instant, step: Duration) -> Instant {
    Instant(at.0 - at.0 % step.0)
}
