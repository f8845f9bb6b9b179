//! The controller without a network.

mod trial;

use super::super::bench::MSS;
use super::super::law::Growth;
use super::super::line::Line;
use super::super::{Episode, ProbeRequest, ProbeSignal};
use super::*;
use crate::config::{Config, Signalling};
use crate::limits::Limit;
use crate::scheme::Scheme;
use bentpipe_advice::negotiation::AskConfig;
use bentpipe_base::{NodeId, World};

fn mbps(n: f64) -> Rate {
    Rate::from_bps((n * 1e6) as u64).unwrap()
}

fn response(n: f64) -> RateAnswer {
    RateAnswer::Granted(mbps(n))
}

fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A bottleneck that carries the granted rate; the grant includes headers, which the line does not count.
fn line(lose_one_in: u64) -> Line {
    let mut line = Line::granted(Growth::of(&ALGORITHM), 8, millis(100), mbps(8.0 * 1.04));
    line.lose_one_in = lose_one_in;
    line
}

/// Most packets that [`Hand::answer`] answers.
const MOST: u64 = 150_000;

/// The controller and its inputs.
struct Hand {
    cc: ExplicitRate,
    world: World,
    now: Instant,
    path: Path,
    /// What acknowledgments say of the round trip.
    rtt: Option<Duration>,
}

impl Hand {
    /// A grant, if any, comes with the handshake.
    fn new(granted: Option<RateAnswer>) -> Self {
        let mut hand = Self::with(&Config::default());
        if let Some(answer) = granted {
            hand.hear(answer);
        }
        hand
    }

    fn with(config: &Config) -> Self {
        let start = ControllerStart { mss: Size(MSS), headers: Size(40), config };
        let cc = ExplicitRate::new(&start, ExplicitRateParams::default());
        let path = Path {
            mss: Size(MSS),
            in_flight: Size(MSS),
            flight: Size(MSS),
            peer_window: Size(1 << 30),
            srtt: millis(100),
            rttvar: Duration::ZERO,
            rtt_min: millis(100),
            round: 0,
            una: 1,
            next: 1,
            delivered: 1,
            lost: 0,
            unsent: None,
            probes: ProbeSignal::default(),
        };
        Self { cc, world: World::new(1), now: Instant::ZERO, path, rtt: None }
    }

    /// Sends `n` segments, one per `gap`; returns the requests that they carried.
    fn send(&mut self, n: u64, gap: Duration) -> Vec<Rate> {
        let mut wishes = Vec::new();
        for _ in 0..n {
            self.now += gap;
            wishes.extend(self.cc.plan(&self.path).requested_rate);
            let sent = SentSegment { bytes: Size(MSS), resent: false, probe: false };
            self.cc.on_sent(&mut self.world.cx(self.now, NodeId(0)), &self.path, &sent);
        }
        wishes
    }

    fn hear(&mut self, answer: RateAnswer) {
        self.cc.on_rate(&mut self.world.cx(self.now, NodeId(0)), &self.path, answer);
    }

    /// An acknowledgment reports `delivered` and `lost` segments, and perhaps a grant.
    fn ack(&mut self, delivered: u64, lost: u64, granted: Option<RateAnswer>) {
        self.path.delivered += delivered * MSS;
        self.path.lost += lost * MSS;
        if let Some(answer) = granted {
            self.hear(answer);
        }
        let ack = Ack {
            delivered: Size(delivered * MSS),
            acked: Size(delivered * MSS),
            rtt: self.rtt,
            rate: None,
            round_ended: false,
            episode: Episode::Open,
            limited_by: Limit::CongestionWindow,
            probes: 0,
        };
        self.cc.on_ack(&mut self.world.cx(self.now, NodeId(0)), &self.path, &ack);
    }

    fn time_out(&mut self, cause: LossCause) {
        let loss = Loss { cause, last_sent: self.now, resends: 0 };
        self.cc.on_loss(&mut self.world.cx(self.now, NodeId(0)), &self.path, &loss);
    }

    fn plan(&self) -> Plan {
        self.cc.plan(&self.path)
    }

    /// Answers a packet per millisecond, of which every `lose`-th is lost, until `stop` says so; returns how
    /// many there were, at most `MOST`.
    fn answer(&mut self, lose: u64, stop: impl Fn(&Self, u64) -> bool) -> u64 {
        for n in 1..=MOST {
            self.now += millis(1);
            let lost = u64::from(n % lose == 0);
            self.ack(1 - lost, lost, None);
            if stop(self, n) {
                return n;
            }
        }
        MOST
    }
}

/// 10.4 Mbit/s of packets of 1040 B are 10 Mbit/s of payload of 1000 B; in flight may be three times AR in
/// 100 ms, and 32 segments.
#[test]
fn the_grant_is_the_pace_from_the_first_segment_on() {
    let hand = Hand::new(Some(response(10.4)));
    let plan = hand.plan();
    assert_eq!(plan.pace, Some(mbps(10.0)));
    assert_eq!(plan.window, Size(3 * 130_000 + 32_000));
    assert_eq!((plan.requested_rate, plan.probes), (None, None::<ProbeRequest>));
}

/// Nine in a hundred lost (one in eleven): the rate stays, and goodput is the rate minus the losses.
#[test]
fn losses_below_the_threshold_change_nothing() {
    let mut l = line(11);
    l.run(Duration::from_secs(60), |_| ());
    let pace = l.plan().pace.map(Rate::bps);
    assert_eq!((l.fallback(), pace), (None, Some(8_000_000)));
    let share = l.delivered() as f64 / (60.0 * 1e6 * 10.0 / 11.0);
    assert!((0.99..=1.0).contains(&share), "{share}");
}

/// One in five lost: standard TCP, soon after the four blocks of 128 packets that prove it.
#[test]
fn losses_above_the_threshold_end_it() {
    let mut l = line(5);
    l.run(Duration::from_secs(60), |_| ());
    let fallback = l.fallback().expect("a fallback");
    assert_eq!(fallback.to, "cubic");
    assert!((512..=800).contains(&fallback.segments), "{fallback:?}");
    assert!(l.plan().pace.is_none() && l.in_flight() < 40, "{}", l.in_flight());
}

/// 12.5 % over 4096 packets exceed 10 % by more than five standard deviations (2.3 %); 12 % do not, but over
/// four times as many packets they do.
#[test]
fn five_standard_deviations_decide() {
    for (percent, steps, falls) in
        [(12.5, 33, true), (12.0, 33, false), (12.5, 31, false), (9.0, 4000, false)]
    {
        let mut hand = Hand::new(Some(response(10.4)));
        hand.path.srtt = Duration::from_secs(3600); // four round trips span the whole test
        let mut lost = 0.0;
        for i in 0..steps * 128 {
            lost += percent / 100.0;
            let now_lost = u64::from(lost >= 1.0);
            lost -= now_lost as f64;
            hand.now += millis(1);
            hand.ack(1 - now_lost, now_lost, None);
            let _ = i;
        }
        assert_eq!(hand.cc.fallback().is_some(), falls, "{percent} % in {steps} steps");
    }
}

/// The window is 4096 packets if that is longer than four round trips; older losses are forgotten.
#[test]
fn old_losses_are_forgotten() {
    let mut hand = Hand::new(Some(response(10.4)));
    for i in 0..40_000_u64 {
        hand.now += millis(1);
        // a sixth of 2048 packets in every 8192: at most 8.3 % of the last 4096
        let lost = u64::from(i % 8192 < 2048 && i % 6 == 0);
        hand.ack(1 - lost, lost, None);
    }
    assert_eq!(hand.cc.fallback(), None);
    let (packets, _) = hand.cc.meter.over(4096, Duration::ZERO).unwrap();
    assert!((4096.0..4096.0 + 256.0).contains(&packets), "{packets}");
}

/// At a third lost, four blocks of max(128 packets, one round trip of 100 ms at a packet per millisecond).
/// Three such blocks prove nothing, nor does an outage that is over after two.
#[test]
fn losses_far_above_the_threshold_need_few_packets() {
    let fell = |hand: &Hand, _: u64| hand.cc.fallback().is_some();
    let mut hand = Hand::new(Some(response(10.4)));
    assert_eq!(hand.answer(3, fell), 4 * 128 + 1);
    hand = Hand::new(Some(response(10.4)));
    hand.path.srtt = millis(200); // blocks of two steps
    assert_eq!(hand.answer(3, fell), 4 * 256 + 1);
    hand = Hand::new(Some(response(10.4)));
    hand.answer(100, |_, n| n == 1000);
    assert_eq!(hand.answer(1, |hand, n| fell(hand, n) || n == 256), 256);
    assert_eq!(hand.answer(100, fell), MOST);
}

/// Each failure in a row makes the time until the next request four times as long, and up to twice that at
/// random, up to 640 round trips; a rate that lasts ends that.
#[test]
fn a_path_that_does_not_have_the_rate_is_asked_ever_less() {
    let mut hand = Hand::new(Some(response(10.4)));
    let asks = |hand: &Hand, _: u64| hand.plan().requested_rate.is_some();
    for (rounds, most) in [(10, 10), (40, 80), (160, 320), (640, 1280), (640, 1280)] {
        hand.time_out(LossCause::RepeatedTimeout);
        let wait = hand.answer(u64::MAX, asks);
        assert!((rounds * 100..most * 100 + 260).contains(&wait), "{wait} ms");
        hand.send(1, Duration::ZERO);
        hand.hear(response(10.4));
    }
    // longer than 1280 round trips
    hand.answer(u64::MAX, |_, n| n == 130_000);
    hand.time_out(LossCause::RepeatedTimeout);
    assert!(hand.answer(u64::MAX, asks) < 1260);
}

#[test]
fn less_is_obeyed_at_once_and_more_only_as_an_answer() {
    let mut hand = Hand::new(Some(response(10.4)));
    let reduced = |n| RateAnswer::Reduced(mbps(n));
    hand.ack(1, 0, Some(reduced(5.2)));
    assert_eq!(hand.plan().pace, Some(mbps(5.0)));
    hand.ack(1, 0, Some(reduced(20.8)));
    assert_eq!(hand.plan().pace, Some(mbps(5.0)), "nobody asked");
    hand.ack(1, 0, Some(response(20.8)));
    assert_eq!(hand.plan().pace, Some(mbps(20.0)));
}

/// 1000 B plus headers every 0.8 ms are 10.4 Mbit/s.
#[test]
fn every_128th_segment_asks_for_more_while_the_grant_is_used() {
    let mut hand = Hand::new(Some(response(10.4)));
    let busy = Duration::from_micros(800);
    assert_eq!(hand.send(128, busy), []);
    assert_eq!(hand.send(1280, busy), [mbps(20.8); 10]);
    // at 85 % of the grant there is no request
    let mut hand = Hand::new(Some(response(10.4)));
    assert_eq!(hand.send(1280, Duration::from_micros(941)), []);
}

#[test]
fn a_timeout_keeps_the_rate_and_a_second_in_a_row_does_not() {
    let mut hand = Hand::new(Some(response(10.4)));
    hand.time_out(LossCause::Timeout);
    assert_eq!(hand.plan().pace, Some(mbps(10.0)));
    hand.time_out(LossCause::RepeatedTimeout);
    assert_eq!(hand.cc.fallback().map(|f| (f.to, f.why)), Some(("cubic", "two timeouts in a row")));
    assert_eq!((hand.plan().pace, hand.plan().window), (None, Size(MSS)));
}

/// Copies at the granted rate when all is sent, or while the peer's window is full in the first rounds; never
/// otherwise, as a standard TCP, or without a way to recognise copies.
#[test]
fn idle_time_of_the_grant_is_used() {
    let mut hand = Hand::new(Some(response(10.4)));
    hand.path.probes = ProbeSignal::Dsack;
    let copies = |hand: &Hand| hand.plan().probes.map(|p| (p.clock, p.carry));
    let wanted = Some((ProbeClock::Spare(Duration::from_micros(800)), ProbeCarry::NewestOnce));
    assert_eq!(copies(&hand), None, "there is data");
    hand.path.unsent = Some(Size::ZERO);
    assert_eq!(copies(&hand), wanted);
    hand.path.unsent = Some(Size(1));
    assert_eq!(copies(&hand), None);
    (hand.path.peer_window, hand.path.flight) = (Size(10 * MSS), Size(9 * MSS + 1));
    assert_eq!(copies(&hand), wanted, "the window has no room for a segment");
    hand.path.round = 11;
    assert_eq!(copies(&hand), None, "it does not open any more");
    hand.path.unsent = Some(Size::ZERO);
    hand.path.probes = ProbeSignal::None;
    assert_eq!(copies(&hand), None, "nobody tells copies from data");
    hand.path.probes = ProbeSignal::Dsack;
    hand.time_out(LossCause::RepeatedTimeout);
    assert_eq!(copies(&hand), None, "it is a standard TCP");
}

/// What a timeout marks lost does not count as lost.
#[test]
fn what_a_timeout_gives_up_is_no_proof() {
    let mut hand = Hand::new(Some(response(10.4)));
    for _ in 0..8192 {
        hand.now += millis(1);
        hand.ack(1, 0, None);
    }
    hand.time_out(LossCause::Timeout);
    hand.path.lost += 4000 * MSS;
    for _ in 0..2000 {
        hand.now += millis(1);
        hand.ack(1, 0, None);
    }
    assert_eq!(hand.cc.fallback(), None);
}

/// After more than 2 s of silence: the initial window until the network has answered.
#[test]
fn a_silent_sender_asks_before_it_bursts() {
    let mut hand = Hand::new(Some(response(10.4)));
    hand.send(10, millis(1));
    hand.path.flight = Size::ZERO;
    hand.send(1, millis(1900));
    assert!(hand.plan().window > Size(10 * MSS));
    hand.send(1, millis(2100));
    let plan = hand.plan();
    assert_eq!((plan.window, plan.requested_rate), (Size(10 * MSS), Some(mbps(10.4))));
    hand.ack(1, 0, Some(response(5.2)));
    assert_eq!((hand.plan().window, hand.plan().pace), (Size(3 * 65_000 + 32_000), Some(mbps(5.0))));
}

/// A grant that was not used for more than 2 s is as old as one after a silence.
#[test]
fn a_sender_that_begins_late_asks_before_it_bursts() {
    for (wait, is_old) in [(1900, false), (2100, true)] {
        let mut hand = Hand::with(&asking());
        hand.hear(response(10.4));
        hand.path.flight = Size::ZERO;
        assert_eq!(hand.send(1, millis(wait)), [], "it does not know that it will send more");
        assert_eq!(hand.plan().requested_rate.is_some(), is_old);
        assert_eq!(hand.plan().window == Size(10 * MSS), is_old);
        hand.ack(1, 0, Some(response(10.4)));
        assert!(hand.plan().window > Size(10 * MSS));
    }
}

/// 1000 B plus headers every 100 ms are 83 kbit/s: 128 of them would take 13 s.
#[test]
fn a_slow_sender_asks_for_more_every_two_seconds() {
    let mut hand = Hand::with(&asking());
    hand.hear(response(0.0832));
    assert_eq!(hand.send(100, millis(100)), [mbps(0.1664); 4]);
}

/// After ten round trips and 128 packets with less than half of the threshold lost the sender requests the
/// rate again, and uses it once granted.
#[test]
fn it_comes_back_when_the_losses_are_gone() {
    let mut hand = Hand::new(Some(response(10.4)));
    hand.time_out(LossCause::RepeatedTimeout);
    for _ in 0..128 {
        hand.now += millis(5);
        hand.ack(1, 0, None);
        assert_eq!(hand.plan().requested_rate, None, "640 ms: six round trips");
    }
    let mut wishes = Vec::new();
    for _ in 0..256 {
        hand.now += millis(5);
        hand.ack(1, 0, None);
        wishes.extend(hand.send(1, Duration::ZERO));
    }
    assert_eq!(wishes, [mbps(10.4)]);
    hand.ack(1, 0, Some(response(10.4)));
    assert_eq!((hand.cc.fallback(), hand.plan().pace), (None, Some(mbps(10.0))));
}

#[test]
fn without_a_grant_it_is_standard_tcp_and_says_so() {
    let hand = Hand::new(None);
    assert_eq!(hand.plan(), Plan::window(Size(10 * MSS)));
    assert_eq!(hand.cc.fallback().map(|f| f.why), Some("no rate was granted"));
}

/// An end that asks by signalling and falls back to Reno's law above 20 % loss.
fn asking() -> Config {
    let ask = AskConfig { ask: Some(mbps(100.0)), ..AskConfig::default() };
    let fallback_to = Scheme::named("reno").unwrap();
    Config { signalling: Some(Signalling { ask, fallback: 0.2, fallback_to }), ..Config::default() }
}

/// The answer comes after the handshake: until then it is a standard TCP, which is no fallback.
#[test]
fn a_late_grant_ends_the_standard_tcp() {
    let mut hand = Hand::with(&asking());
    assert_eq!((hand.plan(), hand.cc.fallback()), (Plan::window(Size(10 * MSS)), None));
    hand.send(3, millis(1));
    hand.ack(3, 0, None);
    assert_eq!((hand.plan().pace, hand.cc.fallback()), (None, None));
    hand.hear(response(10.4));
    assert_eq!((hand.plan().pace, hand.plan().window), (Some(mbps(10.0)), Size(3 * 130_000 + 32_000)));
    hand.time_out(LossCause::RepeatedTimeout);
    assert_eq!(hand.cc.fallback().map(|f| f.to), Some("reno"));
}

#[test]
fn without_an_answer_it_says_why_and_stays_standard() {
    for (answer, why) in [
        (RateAnswer::Plain, "the path or the peer does not signal"),
        (RateAnswer::Refused, "the network refused the rate"),
    ] {
        let mut hand = Hand::with(&asking());
        hand.send(2, millis(1));
        hand.hear(answer);
        let fallback = hand.cc.fallback().map(|f| (f.to, f.why, f.at, f.segments));
        assert_eq!(fallback, Some(("reno", why, Instant(2_000_000), 2)));
        assert_eq!(hand.plan(), Plan::window(Size(10 * MSS)));
        hand.hear(response(10.4));
        assert_eq!(hand.plan().pace, None, "nobody asked any more");
    }
}

/// A rate that is taken away: standard TCP as on a new connection, and later a new request.
#[test]
fn a_refused_rate_is_given_up_and_asked_for_again() {
    let mut hand = Hand::with(&asking());
    hand.hear(response(10.4));
    hand.hear(RateAnswer::Refused);
    assert_eq!(hand.cc.fallback().map(|f| f.why), Some("the network refused the rate"));
    assert_eq!((hand.plan().pace, hand.plan().window), (None, Size(10 * MSS)));
    for _ in 0..400 {
        hand.now += millis(5);
        hand.ack(1, 0, None);
    }
    assert_eq!(hand.plan().requested_rate, Some(mbps(10.4)));
    hand.hear(response(5.2));
    assert_eq!((hand.plan().pace, hand.cc.fallback()), (Some(mbps(5.0)), None));
}

/// What left at the granted rate, 400 segments, is no measure of what the standard TCP may have in flight.
#[test]
fn a_loss_after_the_fallback_lowers_the_window() {
    let mut hand = Hand::with(&asking());
    hand.hear(response(10.4));
    hand.hear(RateAnswer::Refused);
    hand.path.flight = Size(400 * MSS);
    hand.time_out(LossCause::Fast);
    assert_eq!((hand.plan().window, hand.cc.ssthresh()), (Size(5 * MSS), Some(Size(5 * MSS))));
}

#[test]
fn explicit_rate_does_not_fall_back_to_itself() {
    let mut config = asking();
    if let Some(signalling) = &mut config.signalling {
        signalling.fallback_to = Scheme::named("explicit-rate").unwrap();
    }
    let mut hand = Hand::with(&config);
    hand.hear(RateAnswer::Plain);
    assert_eq!(hand.cc.fallback().map(|f| f.to), Some("cubic"));
}
