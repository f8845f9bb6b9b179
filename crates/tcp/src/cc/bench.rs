//! Tests a controller without a network: acknowledgments, losses and timeouts are generated directly.
//!
//! Segments have 1000 B. In a round the segments of one window, as it was when the round began, are
//! acknowledged one by one, evenly spread over the RTT.

use super::law::{ControllerStart, Growth};
use super::{Ack, CongestionControl, Episode, Loss, LossCause, Path, Plan};
use crate::config::Config;
use crate::delivery::RateSample;
use crate::limits::Limit;
use bentpipe_advice::negotiation::RateAnswer;
use bentpipe_base::{Duration, Instant, NodeId, Size, World};

/// Payload of a segment.
pub(super) const MSS: u64 = 1000;

/// A controller and the state it sees.
pub(super) struct Bench {
    cc: Box<dyn CongestionControl>,
    world: World,
    now: Instant,
    /// RTT of the next acknowledgments.
    pub(super) rtt: Duration,
    rtt_min: Duration,
    path: (u64, u64),
    rounds: u64,
    round_end: u64,
    lost: u64,
    /// Acknowledgments come without a sample of the delivery rate.
    pub(super) hides_rates: bool,
}

impl Bench {
    /// A controller with `growth` that starts with `iw` segments and a threshold of `ssthresh` bytes.
    pub(super) fn new(growth: Growth, rtt: Duration, iw: u32, ssthresh: Option<u64>) -> Self {
        let config = Config { initial_window: iw, initial_ssthresh: ssthresh.map(Size), ..Config::default() };
        let cc = growth.build(&ControllerStart { mss: Size(MSS), headers: Size(40), config: &config });
        Self {
            cc,
            world: World::new(1),
            now: Instant::ZERO,
            rtt,
            rtt_min: rtt,
            path: (1, 1),
            rounds: 0,
            round_end: 0,
            lost: 0,
            hides_rates: false,
        }
    }

    /// See [`CongestionControl::uses_rates`].
    fn uses_rates(&self) -> bool {
        self.cc.uses_rates()
    }

    /// The same with the controller inside another one.
    pub(super) fn inside(
        self,
        outer: impl FnOnce(Box<dyn CongestionControl>) -> Box<dyn CongestionControl>,
    ) -> Self {
        Self { cc: outer(self.cc), ..self }
    }

    /// The network says something about the rate.
    pub(super) fn answer(&mut self, answer: RateAnswer) {
        let path = self.path();
        self.cc.on_rate(&mut self.world.cx(self.now, NodeId(0)), &path, answer);
    }

    /// Why the scheme was replaced, if it was.
    pub(super) fn fallback(&self) -> Option<&'static str> {
        self.cc.fallback().map(|fallback| fallback.why)
    }

    /// The window in bytes.
    pub(super) fn window(&self) -> u64 {
        self.plan().window.0
    }

    /// The window in segments.
    pub(super) fn segments(&self) -> f64 {
        self.window() as f64 / MSS as f64
    }

    /// The controller's plan.
    pub(super) fn plan(&self) -> Plan {
        self.cc.plan(&self.path())
    }

    /// Seconds since the start.
    pub(super) fn seconds(&self) -> f64 {
        self.now.0 as f64 / 1e9
    }

    fn path(&self) -> Path {
        let (una, next) = self.path;
        Path {
            mss: Size(MSS),
            in_flight: Size(next - una),
            flight: Size(next - una),
            peer_window: Size(u64::MAX / 2),
            srtt: self.rtt,
            rttvar: Duration::ZERO,
            rtt_min: self.rtt_min,
            round: self.rounds,
            una,
            next,
            delivered: una,
            lost: self.lost,
            unsent: None,
            probes: super::ProbeSignal::None,
        }
    }

    /// Sends up to a full window.
    fn fill(&mut self) {
        self.path.1 = self.path.0 + self.window() / MSS * MSS;
    }

    /// One acknowledgment of `n` segments.
    pub(super) fn ack(&mut self, n: u64) {
        let before = self.path;
        if before.1 < before.0 + n * MSS {
            self.fill();
        }
        let flight = self.path.1 - self.path.0;
        self.path.0 = (self.path.0 + n * MSS).min(self.path.1);
        self.rtt_min = self.rtt_min.min(self.rtt);
        let ended = self.path.0 >= self.round_end;
        if ended {
            self.rounds += 1;
            self.round_end = self.path.1;
        }
        let rate = RateSample {
            delivered: Size(flight),
            interval: self.rtt,
            app_limited: false,
            prior: before.0.saturating_sub(flight),
        };
        let ack = Ack {
            delivered: Size(n * MSS),
            acked: Size(n * MSS),
            rtt: Some(self.rtt),
            rate: Some(rate).filter(|_| !self.hides_rates),
            round_ended: ended,
            episode: Episode::Open,
            limited_by: Limit::CongestionWindow,
            probes: 0,
        };
        let path = self.path();
        self.cc.on_ack(&mut self.world.cx(self.now, NodeId(0)), &path, &ack);
    }

    /// A round trip in which everything is acknowledged; returns the window in segments.
    pub(super) fn round(&mut self) -> f64 {
        self.fill();
        let n = ((self.path.1 - self.path.0) / MSS).max(1);
        for i in 1..=n {
            self.now += Duration(self.rtt.0 * i / n - self.rtt.0 * (i - 1) / n);
            // each acknowledged segment is replaced by a new one
            self.ack(1);
            self.path.1 = self.path.1.max(self.path.0 + self.window() / MSS * MSS);
        }
        self.segments()
    }

    /// One segment of a full window is lost and repaired at once.
    pub(super) fn lose(&mut self) {
        self.signal(LossCause::Fast);
    }

    /// The retransmission timer expires with a full window outstanding.
    pub(super) fn time_out(&mut self) {
        self.signal(LossCause::Timeout);
    }

    fn signal(&mut self, cause: LossCause) {
        self.fill();
        self.lost += MSS;
        let loss = Loss { cause, last_sent: self.now, resends: 0 };
        let path = self.path();
        self.cc.on_loss(&mut self.world.cx(self.now, NodeId(0)), &path, &loss);
        self.path.1 = self.path.0;
    }
}

/// A scheme that says that it uses no rates plans the same with and without them.
#[test]
fn schemes_without_rates_do_not_miss_them() {
    let mut without = Vec::new();
    for name in crate::Scheme::NAMES {
        let growth = crate::Scheme::named(name).expect("it is in the table").growth;
        let [mut seen, mut hidden] = [false, true]
            .map(|hides_rates| Bench { hides_rates, ..Bench::new(growth, RTT, 10, Some(40_000)) });
        if seen.uses_rates() {
            continue;
        }
        without.push(name);
        for round in 0..120 {
            for bench in [&mut seen, &mut hidden] {
                bench.rtt = RTT + Duration::from_millis(round % 7 * 3);
                bench.round();
                match round % 40 {
                    17 => bench.lose(),
                    39 => bench.time_out(),
                    _ => {}
                }
            }
            assert_eq!(format!("{:?}", seen.cc), format!("{:?}", hidden.cc), "{name}, round {round}");
        }
    }
    assert!(without.contains(&"newreno") && without.contains(&"cubic") && !without.contains(&"bbr"));
}

/// Round trip of the test above.
const RTT: Duration = Duration::from_millis(100);
