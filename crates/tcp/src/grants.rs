//! Rates that the network grants, as in-band signalling would report them.
//!
//! Source: L. G. Roberts' in-band QoS signalling, TIA-1039 (2006): the sender requests a rate in its SYN,
//! routers lower it to what they can give, and the receiver returns it. Routers may lower it later; the
//! sender gets more only if it requests it. Here the scenario acts as the network ([`GrantConfig`]), and its
//! offer may change with time. The sender learns of an answer, or of a lower rate, from the first
//! acknowledgment of a segment that it sent after the request or the change: one round trip later, as with
//! signalling in packets (`signalling/`). Schemes see `RateAnswer` and `Plan::requested_rate` from both.
//! Deviation: a request is never lost, since the acknowledgment of any later segment answers it.

use bentpipe_advice::negotiation::RateAnswer;
use bentpipe_base::{Instant, Rate};

/// What the network grants one sender, and what the sender does if the path does not deliver it.
#[derive(Clone, Debug, PartialEq)]
pub struct GrantConfig {
    /// The initial rate, of whole IP packets.
    pub rate: Rate,
    /// Later rates, in the order of time.
    pub changes: Vec<(Instant, Rate)>,
    /// Share of lost packets above which the sender no longer trusts the grant.
    pub fallback: f64,
    /// The scheme it then uses.
    pub fallback_to: FallbackScheme,
}

/// Scheme of a sender without a valid grant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FallbackScheme {
    /// CUBIC (RFC 9438).
    #[default]
    Cubic,
    /// RFC 5681.
    Reno,
}

impl FallbackScheme {
    /// Returns the name of its scheme.
    pub const fn scheme(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Reno => "reno",
        }
    }
}

impl GrantConfig {
    /// Default of `fallback`: losses up to this share do not cast doubt on the grant.
    pub const FALLBACK: f64 = 0.1;

    /// Creates a constant rate with the default threshold.
    pub const fn constant(rate: Rate) -> Self {
        Self { rate, changes: Vec::new(), fallback: Self::FALLBACK, fallback_to: FallbackScheme::Cubic }
    }

    /// Returns the rate that the network offers at `at`.
    fn offer(&self, at: Instant) -> Rate {
        let later = self.changes.partition_point(|(since, _)| *since <= at);
        later.checked_sub(1).map_or(self.rate, |i| self.changes[i].1)
    }
}

/// What one sender was granted and what it requested.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GrantState {
    granted: Option<Rate>,
    /// When it asked, and for how much.
    request: Option<(Instant, Rate)>,
}

impl GrantState {
    /// Returns the answer to the request in the SYN, which arrives at `now`.
    pub(crate) fn first(&mut self, now: Instant, network: &GrantConfig) -> RateAnswer {
        let rate = network.offer(now);
        self.granted = Some(rate);
        RateAnswer::Granted(rate)
    }

    /// Records that a segment sent at `now` requests `rate`.
    pub(crate) fn request(&mut self, now: Instant, rate: Rate) {
        self.request.get_or_insert((now, rate));
    }

    /// Returns what the acknowledgment of a segment sent at `sent_at` says about the rate.
    pub(crate) fn on_ack(&mut self, sent_at: Instant, network: &GrantConfig) -> Option<RateAnswer> {
        let offer = network.offer(sent_at);
        let told = self.granted?;
        let (rate, answer) = match self.request.take_if(|(asked_at, _)| *asked_at <= sent_at) {
            Some((_, wish)) => (offer.min(wish), RateAnswer::Granted(offer.min(wish))),
            None if offer < told => (offer, RateAnswer::Reduced(offer)),
            None => return None,
        };
        self.granted = Some(rate);
        Some(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mbps(n: u64) -> Rate {
        Rate::from_bps(n * 1_000_000).unwrap()
    }

    fn at(ms: u64) -> Instant {
        Instant(ms * 1_000_000)
    }

    /// A lower rate is reported at once; a higher one only on request, and never above the request.
    #[test]
    fn less_is_said_and_more_is_asked_for() {
        let network = GrantConfig {
            changes: vec![(at(100), mbps(20)), (at(200), mbps(80))],
            ..GrantConfig::constant(mbps(50))
        };
        let mut answers = GrantState::default();
        assert_eq!(answers.first(at(10), &network), RateAnswer::Granted(mbps(50)));
        assert_eq!(answers.on_ack(at(99), &network), None);
        assert_eq!(answers.on_ack(at(100), &network), Some(RateAnswer::Reduced(mbps(20))));
        assert_eq!(answers.on_ack(at(150), &network), None, "said once");
        assert_eq!(answers.on_ack(at(250), &network), None, "nobody asked for more");
        answers.request(at(260), mbps(40));
        assert_eq!(answers.on_ack(at(259), &network), None, "sent before the wish");
        assert_eq!(answers.on_ack(at(260), &network), Some(RateAnswer::Granted(mbps(40))));
        answers.request(at(270), mbps(400));
        assert_eq!(answers.on_ack(at(271), &network), Some(RateAnswer::Granted(mbps(80))));
    }
}
