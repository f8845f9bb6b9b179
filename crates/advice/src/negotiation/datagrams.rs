//! The exchange of a flow of datagrams.
//!
//! Source: TIA-1039 (2006): the structure is alone in the first datagram of the flow, whose type of rate is
//! maximum or guaranteed (L. G. Roberts' description). How it is answered, repeated and ended is not said.
//!   the source sends a start datagram: a request and no data. The sink returns it in a datagram of the
//!   reversed 5-tuple. Both have DSCP 3. The application never sees them.
//!   A request without an answer is repeated once per max(2 RTT, 200 ms), at most 8 times; then the flow has
//!   no rate.
//!   A router tells of a lower rate, or of a lost one, in a datagram of its own with the flow's 5-tuple.
//!   The sink returns it in the same way.
//!   A source that got less than it asked for confirms what it uses (CD 3), since the response may have taken
//!   another way than the request. At the end it gives its rate back (CD 7).
//! A flow of datagrams goes one way here: one end only asks, the other only answers.

use super::{Carrier, Negotiation, RateAnswer, RateState};
use crate::tia1039::{Kind, Structure};
use bentpipe_base::{Duration, Instant, Rate};

impl Negotiation {
    /// Begins a flow of datagrams; returns the structure of the start datagram, if this end asks.
    pub fn start(&mut self, now: Instant) -> Option<Structure> {
        (self.agreed, self.confirmed, self.passes) = (true, true, true);
        self.asker.open(now)
    }

    /// Returns the structure that a source has to send now, if any. `wish` is a rate that it asks for.
    pub fn datagram(&mut self, now: Instant, srtt: Duration, wish: Option<Rate>) -> Option<Structure> {
        // The first call of a repetition only ends the wait, as it does for an ACK of its own.
        let repeated = self.outgoing(now, srtt, Carrier::Ack, wish);
        let repeated = repeated.or_else(|| self.outgoing(now, srtt, Carrier::Ack, None));
        repeated.or_else(|| self.outgoing(now, srtt, Carrier::Data, None))
    }

    /// When [`Negotiation::datagram`] has the next repetition, or the source must give up.
    pub fn repeat_at(&self, srtt: Duration) -> Option<Instant> {
        self.asker.repeat_at(srtt)
    }

    /// Gives up once the last repetition stayed without an answer.
    pub fn give_up_if_silent(&mut self, now: Instant, srtt: Duration) -> Option<RateAnswer> {
        self.asker.unanswered(now, srtt)
    }

    /// Takes a structure that arrived at the sink; returns what goes back.
    pub fn respond(&mut self, now: Instant, structure: Structure) -> Option<Structure> {
        (self.agreed, self.confirmed) = (true, true);
        self.hear(now, Duration::ZERO, Carrier::Data, &[structure]);
        self.responder.next(Carrier::Ack)
    }

    /// Returns the confirmation of a rate below what was asked for. While another request is under way it
    /// would take back what the answer to that one says.
    pub fn confirmation(&self) -> Option<Structure> {
        let granted = self.granted().filter(|_| !self.asker.is_waiting())?;
        self.asker.asked_rate().filter(|asked| granted < *asked)?;
        self.asker.settled(Kind::Confirmation)
    }

    /// Gives up what was asked for and granted; returns the structure that says so.
    pub(super) fn withdraw(&mut self) -> Option<Structure> {
        let waits = matches!(self.state(), RateState::Asked | RateState::AskingAgain);
        let asked = if waits { self.asker.first_request() } else { None };
        let mut close = self.close().or(asked);
        if let Some(close) = &mut close {
            close.set_kind(Kind::Close);
        }
        self.asker.give_up();
        close
    }

    /// Returns the structure that gives the rate back; `None` if there is none.
    pub fn close(&self) -> Option<Structure> {
        self.granted()?;
        self.asker.settled(Kind::Close)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{AskConfig, DatagramExchange, Permit, Terms, WhenRefused};
    use super::*;
    use crate::tia1039::RateType;
    use bentpipe_base::IpVersion;

    fn at(ms: u64) -> Instant {
        Instant(ms * 1_000_000)
    }

    /// Exact in the field.
    fn mbps(n: u64) -> Rate {
        Rate::from_bps(n * 1_024_000).unwrap()
    }

    fn asking(rate_type: RateType, guaranteed: u64, available: u64) -> Negotiation {
        let terms = Terms {
            rate_type,
            guaranteed: Some(mbps(guaranteed)),
            preemption: 5,
            delay: 9,
            burst_exponent: 3,
            receiver_pays: true,
        };
        let ask = Some(mbps(available));
        Negotiation::new(AskConfig { ask, terms, ..AskConfig::default() }, IpVersion::V4)
    }

    /// A response as a router that understands the request lets it pass.
    fn granted(request: &Structure, guaranteed: Option<Rate>) -> Structure {
        let mut response = *request;
        response.set_kind(Kind::Response);
        response.set_guaranteed(guaranteed);
        if request.rate_type() != Some(RateType::Composite) {
            response.set_available(None);
        }
        response
    }

    fn hears(source: &mut Negotiation, ms: u64, structure: Structure) -> Option<RateAnswer> {
        source.incoming(at(ms), Duration::ZERO, Carrier::Ack, &[structure])
    }

    #[test]
    fn a_request_has_all_terms() {
        let mut source = asking(RateType::Guaranteed, 5, 5);
        let request = source.start(at(0)).unwrap();
        assert_eq!((request.kind(), request.rate_type()), (Some(Kind::Request), Some(RateType::Guaranteed)));
        assert_eq!((request.available(), request.guaranteed()), (Some(mbps(5)), Some(mbps(5))));
        assert_eq!((request.preemption_priority(), request.delay_priority()), (5, 9));
        assert_eq!((request.burst_exponent(), request.charges_receiver()), (3, true));
        assert_eq!(source.state(), RateState::Asked);
    }

    #[test]
    fn a_rate_granted_in_full_is_believed_if_a_router_was_there() {
        let mut source = asking(RateType::Maximum, 5, 5);
        let request = source.start(at(0)).unwrap();
        let mut sink = Negotiation::new(AskConfig::default(), IpVersion::V4);
        let unseen = sink.respond(at(9), request).unwrap();
        assert_eq!((unseen.kind(), unseen.available()), (Some(Kind::Response), Some(mbps(5))));
        assert_eq!(hears(&mut source, 10, unseen), Some(RateAnswer::Plain));
        let mut source = asking(RateType::Maximum, 5, 5);
        let request = source.start(at(0)).unwrap();
        let response = granted(&request, Some(mbps(5)));
        assert_eq!(hears(&mut source, 10, response), Some(RateAnswer::Granted(mbps(5))));
        assert_eq!(source.confirmation(), None);
        assert_eq!(source.close().unwrap().kind(), Some(Kind::Close));
    }

    #[test]
    fn a_composite_rate_is_the_sum_and_less_is_confirmed() {
        let mut source = asking(RateType::Composite, 2, 8);
        let request = source.start(at(0)).unwrap();
        let mut response = granted(&request, Some(mbps(2)));
        response.set_available(Some(mbps(3)));
        assert_eq!(hears(&mut source, 10, response), Some(RateAnswer::Granted(mbps(5))));
        let confirmed = source.confirmation().unwrap();
        assert_eq!(confirmed.kind(), Some(Kind::Confirmation));
        assert_eq!((confirmed.available(), confirmed.guaranteed()), (Some(mbps(3)), Some(mbps(2))));
        // the guaranteed part is lost, the available one stays
        response.set_guaranteed(None);
        assert_eq!(hears(&mut source, 20, response), Some(RateAnswer::Reduced(mbps(3))));
        // it asks for all of it again
        let wish = source.datagram(at(30), Duration::ZERO, Some(mbps(10))).unwrap();
        assert_eq!((wish.kind(), wish.available()), (Some(Kind::Renegotiate), Some(mbps(8))));
        assert_eq!(wish.guaranteed(), Some(mbps(2)));
    }

    #[test]
    fn requests_are_repeated_and_then_given_up() {
        let mut source = asking(RateType::Guaranteed, 5, 5);
        source.start(at(0));
        let mut sent = Vec::new();
        for ms in (0..4000).step_by(50) {
            if source.give_up_if_silent(at(ms), Duration::ZERO).is_some() {
                break;
            }
            sent.extend(source.datagram(at(ms), Duration::ZERO, None).map(|_| ms));
        }
        assert_eq!(sent, [200, 400, 600, 800, 1000, 1200, 1400, 1600]);
        assert_eq!((source.state(), source.repeat_at(Duration::ZERO)), (RateState::Plain, None));
    }

    #[test]
    fn nothing_that_was_under_way_is_asked_for_again_after_giving_up() {
        let mut source = asking(RateType::Guaranteed, 5, 5);
        let request = source.start(at(0)).unwrap();
        hears(&mut source, 10, granted(&request, Some(mbps(4))));
        let mut missed = request;
        missed.set_kind(Kind::MissedStart);
        hears(&mut source, 20, missed);
        let again = source.datagram(at(30), Duration::ZERO, None).unwrap();
        let wish = source.datagram(at(40), Duration::ZERO, Some(mbps(5))).unwrap();
        assert_eq!((again.kind(), wish.kind()), (Some(Kind::ResendStart), Some(Kind::Renegotiate)));
        hears(&mut source, 400, missed);
        let close = source.withdraw().unwrap();
        assert_eq!((close.kind(), close.guaranteed()), (Some(Kind::Close), Some(mbps(4))));
        // they are forgotten as unanswered after 2 s
        for ms in [400, 2500, 5000] {
            assert_eq!(source.datagram(at(ms), Duration::ZERO, Some(mbps(5))), None, "{ms} ms");
        }
    }

    #[test]
    fn what_is_given_up_is_taken_back_three_times() {
        let ask = asking(RateType::Guaranteed, 5, 5).config().clone();
        for is_answered in [false, true] {
            let mut exchange = DatagramExchange::new(&ask, IpVersion::V4, WhenRefused::Send);
            let request = exchange.control(at(0), false).as_slice()[0];
            if is_answered {
                exchange.hear(at(10), &[granted(&request, Some(mbps(5)))]);
            }
            let mut others = exchange.clone();
            exchange.give_up(at(100));
            assert_eq!((exchange.permit(at(100)), exchange.control_at(false)), (Permit::Plain, at(100)));
            let mut said = Vec::new();
            for ms in (100..3000).step_by(50) {
                let all = exchange.control(at(ms), ms > 2000);
                said.extend(all.as_slice().iter().map(|close| (ms, close.kind(), close.guaranteed())));
            }
            let each = |ms| (ms, Some(Kind::Close), Some(mbps(5)));
            assert_eq!(said, [each(100), each(300), each(500)]);
            assert_eq!(exchange.control_at(true), Instant::NEVER);
            assert_eq!(exchange.end(at(3000)).count(), 0);
            // all at once, or what is left of it
            others.give_up(at(100));
            others.control(at(100), false);
            let left: Vec<_> = others.end(at(100)).map(|close| close.kind()).collect();
            assert_eq!(left, [Some(Kind::Close); 2]);
        }
    }

    #[test]
    fn a_lost_rate_and_a_missed_start_come_back() {
        let mut source = asking(RateType::Guaranteed, 5, 5);
        let request = source.start(at(0)).unwrap();
        hears(&mut source, 10, granted(&request, Some(mbps(5))));
        let mut sink = Negotiation::new(AskConfig::default(), IpVersion::V4);
        let mut missed = request;
        missed.set_kind(Kind::MissedStart);
        let returned = sink.respond(at(20), missed).unwrap();
        assert_eq!(returned, missed, "as it came");
        assert_eq!(hears(&mut source, 30, returned), None);
        let again = source.datagram(at(30), Duration::ZERO, None).unwrap();
        assert_eq!((again.kind(), again.guaranteed()), (Some(Kind::ResendStart), Some(mbps(5))));
        let mut lost = granted(&request, None);
        lost.set_kind(Kind::Renegotiate);
        let returned = sink.respond(at(40), lost).unwrap();
        assert_eq!(hears(&mut source, 50, returned), Some(RateAnswer::Refused));
        assert_eq!((source.state(), source.close()), (RateState::Refused, None));
        // a response or a confirmation needs no answer
        assert_eq!(sink.respond(at(60), returned), None);
    }

    #[test]
    fn a_sink_lowers_what_it_cannot_take() {
        let take = AskConfig { take: Some(mbps(3)), ..AskConfig::default() };
        let request = asking(RateType::Composite, 2, 8).start(at(0)).unwrap();
        let response = Negotiation::new(take.clone(), IpVersion::V4).respond(at(0), request).unwrap();
        assert_eq!((response.available(), response.guaranteed()), (Some(mbps(1)), Some(mbps(2))));
        let request = asking(RateType::Guaranteed, 5, 5).start(at(0)).unwrap();
        let response = Negotiation::new(take, IpVersion::V4).respond(at(0), request).unwrap();
        assert_eq!(response.guaranteed(), Some(mbps(3)));
    }
}
