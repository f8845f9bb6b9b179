//! The state of one flow into the managed direction.

use crate::admission::Demand;
use crate::charges::Payer;
use crate::config::RouterConfig;
use crate::flows::FlowKey;
use crate::offers::{Offer, Offers};
use crate::plain_use::PlainUse;
use crate::police::Bucket;
use crate::policy::uses_available;
use crate::router::genuine::Numbers;
use crate::telling::{LEAST_DOUBTFUL, LEAST_GRACE, LEAST_INTERVAL, Telling, UNKNOWN_RTT, Unheard, is_lower};
use bentpipe_advice::tia1039::{Kind, RateType, Structure};
use bentpipe_base::{Duration, Instant, Rate, Size};

/// How long packets at a rate that was lowered may still arrive: a round trip between sender and router.
const LATE: Duration = Duration::from_secs(1);

/// Added to the mark of a packet within a guaranteed rate.
const RESERVED: u8 = 64;

/// A rate in bit/s; none is 0.
pub(crate) fn bps(rate: Option<Rate>) -> u64 {
    rate.map_or(0, Rate::bps)
}

/// How far a flow is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It has asked, and neither a response nor data has been seen since.
    HalfOpen = 0,
    /// It has a rate.
    Capable = 1,
    /// It sends without a rate of this router.
    Plain = 2,
    /// It has ended; late packets may follow.
    Closed = 3,
}

/// How long flows are remembered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    /// Without a response.
    pub(crate) half_open: Duration,
    /// Without data, available rate or none.
    pub(crate) idle: Duration,
    /// Without data, maximum rate.
    pub(crate) maximum: Duration,
}

impl Timeouts {
    pub(crate) const fn of(config: &RouterConfig) -> Self {
        Self { half_open: config.half_open_time, idle: config.idle, maximum: config.idle_maximum }
    }
}

/// Attempts to find out the rate of a flow whose start was not seen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Missed {
    /// How many.
    pub(crate) tries: u8,
    /// When the last one was made.
    pub(crate) at: Option<Instant>,
}

/// One flow. Rates are in bit/s.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    /// How far it is; changed by the table, which counts phases.
    pub(crate) phase: Phase,
    /// Since when.
    pub(crate) since: Instant,
    /// Index of its class.
    pub(crate) class: usize,
    /// Its last request as it left the router.
    pub(crate) agreed: Structure,
    /// AR of its last request, within its allowance.
    pub(crate) asked: u64,
    /// AR that it got where another router or the receiver limits it.
    pub(crate) elsewhere: Option<u64>,
    /// AR that it was granted.
    pub(crate) grant: u64,
    /// AR that the table counts as given to it.
    pub(crate) given: u64,
    /// GR that it was granted.
    pub(crate) promised: u64,
    /// GR that is reserved for it.
    pub(crate) reserved: u64,
    /// GR that it was offered, and that is taken from others once the response has passed.
    pub(crate) claim: Option<Demand>,
    /// The flow that it continues from another address, until the response has passed.
    pub(crate) moved_from: Option<FlowKey>,
    /// Who pays.
    pub(crate) payer: Payer,
    /// Offers under way.
    pub(crate) offers: Offers,
    /// The reduction that it has not answered yet.
    pub(crate) telling: Option<Telling>,
    /// How often it was told in vain.
    pub(crate) unheard: Unheard,
    /// From when on its rate is policed.
    pub(crate) policed_from: Instant,
    /// A higher rate before, and until when packets that were sent at it may still arrive.
    late: (u64, Instant),
    /// Its token bucket.
    pub(crate) bucket: Bucket,
    /// The token bucket of its guaranteed rate alone.
    meter: Bucket,
    /// Round-trip time from here to the receiver.
    pub(crate) rtt: Option<Duration>,
    /// True if that may contain a timeout of its sender.
    is_rtt_doubtful: bool,
    /// The shortest time from a SYN or request to what seems to answer it.
    shortest: Option<Duration>,
    /// True once it was measured twice.
    is_rtt_sure: bool,
    /// True once it has sent payload.
    pub(crate) has_sent: bool,
    /// What it uses while it has no rate, also from the last time.
    pub(crate) plain_use: Option<PlainUse>,
    /// Its sequence numbers.
    pub(crate) numbers: Numbers,
    /// Its last payload, request or response.
    pub(crate) last: Instant,
    /// Questions for its rate.
    pub(crate) missed: Missed,
    /// The limit with which its class counts it as a member.
    pub(crate) counted: Option<u64>,
    /// When the table looks at it next; never if it is not in the table's queue.
    pub(crate) check_at: Instant,
}

impl Flow {
    pub(crate) fn new(now: Instant, phase: Phase, class: usize) -> Self {
        Self {
            phase,
            since: now,
            class,
            agreed: Structure::from_bytes([0; Structure::LEN]),
            asked: 0,
            elsewhere: None,
            grant: 0,
            given: 0,
            promised: 0,
            reserved: 0,
            claim: None,
            moved_from: None,
            payer: Payer::default(),
            offers: Offers::default(),
            telling: None,
            unheard: Unheard::default(),
            policed_from: Instant::NEVER,
            late: (0, Instant::ZERO),
            bucket: Bucket::default(),
            meter: Bucket::default(),
            rtt: None,
            is_rtt_doubtful: false,
            shortest: None,
            is_rtt_sure: false,
            has_sent: false,
            plain_use: None,
            numbers: Numbers::default(),
            last: now,
            missed: Missed::default(),
            counted: None,
            check_at: Instant::NEVER,
        }
    }

    /// True while it has a rate or has asked for one.
    pub(crate) const fn is_negotiating(&self) -> bool {
        matches!(self.phase, Phase::HalfOpen | Phase::Capable)
    }

    /// The limit with which it takes part in the division; `None` if it does not. `is_member`: it does so
    /// while it waits for a response.
    pub(crate) fn limit(&self, is_member: bool) -> Option<u64> {
        match self.phase {
            Phase::Closed => None,
            Phase::Plain => self.has_sent.then(|| self.plain_limit()),
            // it already sends, at a rate that is not known
            Phase::HalfOpen if self.has_sent => Some(u64::MAX),
            Phase::HalfOpen if !is_member => None,
            Phase::HalfOpen | Phase::Capable => uses_available(&self.agreed).then(|| self.own_limit()),
        }
    }

    /// The most that it can use without a rate.
    fn plain_limit(&self) -> u64 {
        self.plain_use.and_then(|plain| plain.limit()).unwrap_or(u64::MAX)
    }

    /// The most that it can use.
    pub(crate) fn own_limit(&self) -> u64 {
        self.elsewhere.map_or(self.asked, |elsewhere| elsewhere.min(self.asked))
    }

    /// When it is forgotten.
    pub(crate) fn expires(&self, timeouts: &Timeouts) -> Instant {
        match (self.phase, self.agreed.rate_type()) {
            (Phase::HalfOpen, _) => self.since + timeouts.half_open,
            (Phase::Closed, _) => self.since + timeouts.idle,
            // without a response it may be forged
            (Phase::Capable, Some(RateType::Guaranteed)) if self.reserved > 0 && self.rtt.is_some() => {
                Instant::NEVER
            }
            (Phase::Capable, Some(RateType::Maximum)) => self.last + timeouts.maximum,
            (Phase::Capable | Phase::Plain, _) => self.last + timeouts.idle,
        }
    }

    /// Gives up all that was negotiated.
    pub(crate) fn forget_rates(&mut self) {
        let (missed, counted, check_at) = (self.missed, self.counted, self.check_at);
        let (since, last, has_sent, numbers) = (self.since, self.last, self.has_sent, self.numbers);
        let blank = Self::new(since, self.phase, self.class);
        let (plain_use, given) = (self.plain_use, self.given);
        *self = Self { given, has_sent, plain_use, numbers, last, missed, counted, check_at, ..blank };
    }

    /// GR of its last offer.
    pub(crate) fn offered_guaranteed(&self) -> u64 {
        self.claim.map_or(self.reserved, |claim| claim.rate)
    }

    /// The mark of a packet: who is served first in the queue of the link. Packets within a guaranteed rate
    /// come before all others, then the delay priority counts.
    pub(crate) fn mark(&mut self, now: Instant, size: Size) -> u8 {
        if self.phase != Phase::Capable {
            return 0;
        }
        let (delay, exponent) = (self.agreed.delay_priority(), self.agreed.burst_exponent());
        let is_reserved = self.reserved > 0 && self.meter.admits(now, self.reserved, exponent, size);
        if is_reserved { RESERVED + delay } else { delay }
    }

    /// Data shows that it uses its offer, although no response was seen. It is policed only after `patience`,
    /// since it may not know the offer yet.
    pub(crate) fn begin_by_data(&mut self, now: Instant, patience: Duration) {
        self.grant = self.offers.highest(now);
        self.promised = self.offered_guaranteed();
        if let Some(asked_at) = self.offers.asked_last() {
            self.take_shortest(now.since(asked_at), true);
        }
        // without a response nothing is taken from others: it is told that it does not have it
        self.claim = None;
        self.policed_from = self.policed_from.min(now + patience);
    }

    /// Takes the rates of a response to `offer`.
    pub(crate) fn take_response(&mut self, now: Instant, (available, guaranteed): (u64, u64), offer: &Offer) {
        if let Some(asked_at) = offer.asked_at {
            self.take_rtt(now, asked_at);
        }
        let before = self.grant;
        if available <= offer.available {
            self.grant = available;
            if available < offer.available - offer.available / 100 {
                self.elsewhere = Some(available);
            } else if !offer.is_inserted {
                self.elsewhere = None;
            }
        } else if self.phase == Phase::HalfOpen || offer.available > self.grant {
            self.grant = offer.available;
        }
        self.expect_late(now, before);
        self.promised = guaranteed.min(offer.guaranteed);
        self.policed_from = self.policed_from.min(now);
        self.settle(available, guaranteed);
    }

    /// Takes a lower rate that this router did not see asked for: a router behind it reduced the flow.
    pub(crate) fn take_lower(&mut self, now: Instant, available: u64, guaranteed: u64) {
        let before = self.grant;
        self.grant = available;
        self.expect_late(now, before);
        self.elsewhere = Some(available);
        self.settle(available, guaranteed);
    }

    /// After a fall of the grant: the sender hears of it later than this router, and what it sent until then
    /// arrives later still.
    fn expect_late(&mut self, now: Instant, before: u64) {
        if before > self.grant && (now >= self.late.1 || before > self.late.0) {
            self.late = (before, now + LATE);
        }
    }

    /// Ends the reduction if these rates obey it.
    fn settle(&mut self, available: u64, guaranteed: u64) {
        self.telling = self.telling.filter(|telling| !telling.is_answered_by(available, guaranteed));
    }

    /// Smoothed as in RFC 6298, section 2. If the SYN was sent again, the first sample is doubtful (section
    /// 3): the response to the first SYN came later than the sender waits. The next sample takes its place.
    fn take_rtt(&mut self, now: Instant, asked_at: Instant) {
        let sample = now.since(asked_at);
        let before = self.rtt.filter(|_| !self.is_rtt_doubtful);
        self.is_rtt_sure = before.is_some();
        self.is_rtt_doubtful = self.rtt.is_none() && self.numbers.is_syn_again;
        self.rtt = Some(before.map_or(sample, |rtt| (rtt * 7 + sample) / 8));
        self.take_shortest(sample, self.is_rtt_doubtful);
    }

    /// A SYN/ACK passes.
    pub(crate) fn take_syn_ack(&mut self, now: Instant) {
        if let Some(syn_at) = self.numbers.syn_at {
            self.take_shortest(now.since(syn_at), self.numbers.is_syn_again);
        }
    }

    /// What came may be the answer to something earlier, if `is_doubtful`.
    fn take_shortest(&mut self, sample: Duration, is_doubtful: bool) {
        let sample = if is_doubtful { sample.max(LEAST_DOUBTFUL) } else { sample };
        self.shortest = Some(self.shortest.map_or(sample, |shortest| shortest.min(sample)));
    }

    /// Time between repetitions of a structure: the shortest round trip, since one packet that was late must
    /// not put them off; after a single measurement not longer than before any. The old rate is tolerated for
    /// longer.
    pub(crate) fn interval(&self) -> Duration {
        let seen = self.shortest.unwrap_or(UNKNOWN_RTT);
        (if self.is_rtt_sure { seen } else { seen.min(UNKNOWN_RTT) }).max(LEAST_INTERVAL)
    }

    /// How long the old rate is tolerated.
    pub(crate) fn grace(&self) -> Duration {
        (self.rtt.unwrap_or(UNKNOWN_RTT) * 2).max(LEAST_GRACE)
    }

    /// True if it must be told that it has less than it was granted.
    pub(crate) const fn must_be_told(&self, share: u64) -> bool {
        is_lower(share, self.grant) || self.reserved < self.promised
    }

    /// The structure that tells it; `available` is its AR from now on, if its type has one.
    pub(crate) fn reduction(&self, available: Option<Rate>) -> Structure {
        let mut structure = self.agreed;
        structure.set_kind(Kind::Renegotiate);
        structure.set_available(available);
        structure.set_guaranteed(Rate::from_bps(self.reserved));
        structure.set_changed(true);
        structure
    }

    /// The rate that it may send at.
    pub(crate) fn allowed(&self, now: Instant) -> u64 {
        let late = if now < self.late.1 { self.late.0 } else { 0 };
        let available = self.grant.max(self.offers.highest(now)).max(late);
        let granted = available.saturating_add(self.reserved.max(self.promised));
        self.telling.and_then(|telling| telling.ceiling(now)).map_or(granted, |most| most.min(granted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant(ms * 1_000_000)
    }

    fn asking(asked: u64) -> Flow {
        let mut flow = Flow::new(at(0), Phase::HalfOpen, 0);
        flow.agreed = Structure::request(Rate::from_bps(asked).unwrap());
        flow.asked = asked;
        flow
    }

    fn offer(available: u64, is_inserted: bool) -> Offer {
        Offer { available, guaranteed: 0, is_inserted, asked_at: None }
    }

    #[test]
    fn a_flow_is_a_member_from_its_first_request_or_payload_on() {
        let mut flow = asking(5000);
        assert_eq!((flow.limit(true), flow.limit(false)), (Some(5000), None));
        flow.phase = Phase::Capable;
        flow.elsewhere = Some(3000);
        assert_eq!(flow.limit(false), Some(3000));
        flow.agreed.set_rate_type(RateType::Guaranteed);
        assert_eq!(flow.limit(true), None, "it has no available rate");
        flow.phase = Phase::Plain;
        assert_eq!(flow.limit(true), None, "it sends acknowledgments only");
        flow.has_sent = true;
        assert_eq!(flow.limit(true), Some(u64::MAX));
        flow.phase = Phase::Closed;
        assert_eq!(flow.limit(true), None);
    }

    #[test]
    fn a_response_more_than_a_hundredth_below_the_offer_is_a_limit_elsewhere() {
        let mut flow = asking(10_000);
        flow.take_response(at(80), (9_900, 0), &Offer { asked_at: Some(at(0)), ..offer(10_000, false) });
        assert_eq!((flow.grant, flow.elsewhere, flow.rtt), (9_900, None, Some(Duration::from_millis(80))));
        flow.take_response(at(80), (9_000, 0), &offer(10_000, false));
        assert_eq!((flow.grant, flow.elsewhere, flow.own_limit()), (9_000, Some(9_000), 9_000));
        // a reduction of this router says nothing of the others, the answer to a request does
        flow.take_response(at(80), (8_000, 0), &offer(8_000, true));
        assert_eq!((flow.grant, flow.elsewhere), (8_000, Some(9_000)));
        flow.take_response(at(80), (10_000, 0), &offer(10_000, false));
        assert_eq!((flow.grant, flow.elsewhere), (10_000, None));
    }

    #[test]
    fn a_response_above_the_offer_gains_nothing() {
        let mut flow = asking(10_000);
        flow.take_response(at(80), (50_000, 0), &offer(10_000, false));
        assert_eq!((flow.grant, flow.allowed(at(80))), (10_000, 10_000));
        flow.phase = Phase::Capable;
        flow.take_response(at(90), (50_000, 0), &offer(4_000, true));
        assert_eq!(flow.grant, 10_000, "nor does it obey a reduction");
    }

    #[test]
    fn a_reduction_applies_at_the_deadline_or_when_it_is_answered() {
        let mut flow = asking(10_000);
        flow.grant = 10_000;
        flow.promised = 600;
        assert!(flow.must_be_told(10_000) && flow.grace() == Duration::from_millis(400));
        let mut telling = Telling::begin(at(0), (4_000, 0), flow.grace());
        telling.tell(at(0), (4_000, 0), flow.grace());
        flow.telling = Some(telling);
        assert_eq!((flow.allowed(at(399)), flow.allowed(at(400))), (10_600, 4_000));
        flow.take_response(at(100), (4_000, 0), &offer(4_000, true));
        assert!(flow.telling.is_none());
        // what was sent before the response reached the sender arrives later
        assert_eq!((flow.allowed(at(1099)), flow.allowed(at(1100))), (10_000, 4_000));
        assert!(!flow.must_be_told(4_000));
    }

    #[test]
    fn a_round_trip_with_a_repeated_syn_is_doubted_until_the_next() {
        let mut flow = asking(10_000);
        (flow.numbers.syn_at, flow.numbers.is_syn_again) = (Some(at(1000)), true);
        flow.take_syn_ack(at(1040));
        let asked = |ms| Offer { asked_at: Some(at(ms)), ..offer(10_000, false) };
        flow.take_response(at(1040), (10_000, 0), &asked(0));
        assert_eq!((flow.interval(), flow.grace()), (LEAST_DOUBTFUL, Duration::from_millis(2080)));
        flow.take_response(at(1300), (10_000, 0), &asked(1260));
        assert_eq!((flow.interval(), flow.grace()), (Duration::from_millis(40), LEAST_GRACE));
        // one packet that is late puts nothing off
        flow.take_response(at(2300), (10_000, 0), &asked(1500));
        assert_eq!(flow.interval(), Duration::from_millis(40));
    }

    #[test]
    fn packets_within_a_guaranteed_rate_are_marked_above_all_others() {
        let mut flow = asking(8_000_000);
        flow.agreed.set_delay_priority(5);
        flow.agreed.set_rate_type(RateType::Composite);
        flow.agreed.set_burst_exponent(15);
        (flow.reserved, flow.grant) = (8_000_000, 8_000_000);
        assert_eq!(flow.mark(at(0), Size(1500)), 0, "it has no rate yet");
        flow.phase = Phase::Capable;
        let marks = [0, 0, 0, 2].map(|ms| flow.mark(at(ms), Size(1500)));
        assert_eq!(marks, [69, 69, 5, 69], "8 Mbit/s are 2 kB in 2 ms");
        flow.agreed.set_rate_type(RateType::Guaranteed);
        assert_eq!([2, 2, 4].map(|ms| flow.mark(at(ms), Size(1500))), [5, 5, 69]);
        flow.reserved = 0;
        assert_eq!(flow.mark(at(3), Size(1500)), 5);
    }

    #[test]
    fn flows_are_forgotten_by_their_type_of_rate() {
        let timeouts = Timeouts {
            half_open: Duration::from_millis(3),
            idle: Duration::from_millis(10),
            maximum: Duration::from_millis(2),
        };
        let mut flow = asking(5000);
        flow.last = at(50);
        assert_eq!(flow.expires(&timeouts), at(3));
        flow.phase = Phase::Capable;
        assert_eq!(flow.expires(&timeouts), at(60));
        flow.agreed.set_rate_type(RateType::Maximum);
        assert_eq!(flow.expires(&timeouts), at(52));
        flow.agreed.set_rate_type(RateType::Guaranteed);
        assert_eq!(flow.expires(&timeouts), at(60), "nothing is reserved for it");
        flow.reserved = 1;
        assert_eq!(flow.expires(&timeouts), at(60), "no response was seen");
        flow.rtt = Some(Duration::from_millis(1));
        assert_eq!(flow.expires(&timeouts), Instant::NEVER);
        flow.phase = Phase::Closed;
        assert_eq!(flow.expires(&timeouts), at(10));
    }

    #[test]
    fn a_flow_that_forgets_its_rates_is_still_the_same_member() {
        let mut flow = asking(5000);
        (flow.has_sent, flow.counted, flow.grant, flow.missed.tries) = (true, Some(5000), 5000, 3);
        flow.forget_rates();
        assert_eq!((flow.has_sent, flow.counted, flow.missed.tries), (true, Some(5000), 3));
        assert_eq!((flow.grant, flow.asked, flow.allowed(at(0))), (0, 0, 0));
    }
}
