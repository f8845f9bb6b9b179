//! The state of a varying direction at one instant, and the processes that determine it.

use crate::direction::DirectionSpec;
use bentpipe_base::trace::DropCause;
use bentpipe_base::{Cx, Duration, Instant, Rate, Rng};
use core::fmt::Debug;

/// The state from one instant until the next change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct State {
    /// `None`: nothing is sent, packets wait.
    pub rate: Option<Rate>,
    pub one_way: Duration,
    /// Taken down by the timeline or a user: everything sent is lost to an outage.
    pub down: bool,
    /// If set, everything sent is lost, for this cause.
    pub blind: Option<DropCause>,
    /// Loss probability around a handover.
    pub handover: f64,
    /// Loss probability of a coding at its threshold.
    pub fade: f64,
    /// Loss probability of every packet.
    pub loss: f64,
    /// Loss probability of the current state of the burst process.
    pub burst: f64,
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
    pub(crate) const fn new(of: &DirectionSpec) -> Self {
        Self {
            rate: Some(of.rate),
            one_way: of.delay,
            down: false,
            blind: None,
            handover: 0.0,
            fade: 0.0,
            loss: of.loss.get(),
            burst: 0.0,
            ber: of.ber.get(),
            fade_ber: 0.0,
            fade_event: 0.0,
            fade_db: None,
        }
    }

    /// Sets `blind`; the first cause stays.
    pub(crate) const fn blind(&mut self, cause: DropCause) {
        if self.blind.is_none() {
            self.blind = Some(cause);
        }
    }

    /// Logarithm of the probability that a bit is correct and no error event begins there.
    pub(crate) fn bit_log(&self) -> f64 {
        libm::log1p(-self.ber) + libm::log1p(-self.fade_event)
    }

    /// Returns why a packet is lost; `None` if it is not. `bit_error` is the probability that it has bit
    /// errors. Probabilities of 0 and 1 draw no random number.
    pub(crate) fn fate(&self, rng: &mut Rng, bit_error: f64) -> Option<DropCause> {
        if self.down {
            return Some(DropCause::Outage);
        }
        if self.blind.is_some() {
            return self.blind;
        }
        let causes = [
            (self.handover, DropCause::Handover),
            (self.fade, DropCause::Fade),
            (self.loss, DropCause::PacketLoss),
            (self.burst, DropCause::Burst),
            (bit_error, DropCause::BitError),
        ];
        causes.into_iter().find(|&(p, _)| p >= 1.0 || (p > 0.0 && rng.unit() < p)).map(|(_, cause)| cause)
    }

    /// True if everything sent is lost, for any cause.
    pub(crate) const fn is_dark(&self) -> bool {
        self.down || self.blind.is_some()
    }

    /// Loss probability without bit errors and outages.
    pub(crate) fn packet_loss(&self) -> f64 {
        // in this form the result is exact if only one process loses packets
        [self.handover, self.fade, self.loss, self.burst].iter().fold(0.0, |p, q| p + q - p * q)
    }

    /// Bit error rate of link and fade together.
    pub(crate) fn bit_errors(&self) -> f64 {
        self.ber + self.fade_ber - self.ber * self.fade_ber
    }
}

/// A mechanism that changes the state over time.
///
/// Its random draws may depend on time only, never on when or how often it is called, so that observing a
/// link changes nothing.
pub(crate) trait Process: Debug + Send {
    /// Applies its effect at `at`, which never decreases, and returns until when it holds.
    fn apply(&mut self, at: Instant, cx: &mut Cx<'_>, state: &mut State) -> Instant;
}

/// The latest multiple of `step` that is not after `at`.
pub(crate) const fn grid(at: Instant, step: Duration) -> Instant {
    Instant(at.0 - at.0 % step.0)
}
