//! Tests a controller over one bottleneck and one delay; the sender always has data.
//!
//! Segments have 1000 B. A loss is detected when the acknowledgment would have arrived; new bytes replace the
//! lost ones. Recovery lasts until all data outstanding at the loss was answered.

use super::bench::MSS;
use super::law::{ControllerStart, Growth};
use super::{Ack, CongestionControl, Episode, Fallback, Loss, LossCause, Path, Plan, SentSegment};
use crate::config::Config;
use crate::delivery::{DeliveryRate, Snapshot};
use crate::limits::Limit;
use bentpipe_advice::negotiation::RateAnswer;
use bentpipe_base::{Duration, Instant, NodeId, Rate, Size, World};
use std::collections::VecDeque;

/// A segment in flight, or its acknowledgment.
struct InFlightSegment {
    answer_at: Instant,
    sent_at: Instant,
    snapshot: Snapshot,
    lost: bool,
    position: u64,
}

/// The controller, its sender and the path.
pub(super) struct Line {
    cc: Box<dyn CongestionControl>,
    world: World,
    /// The present time.
    pub(super) now: Instant,
    /// Rate of the bottleneck.
    pub(super) rate: Rate,
    /// Round trip without a queue.
    pub(super) rtt: Duration,
    /// One in this many segments is lost; 0: none.
    pub(super) lose_one_in: u64,
    /// Capacity of the queue in segments; a segment that finds it full is lost.
    pub(super) buffer: u64,
    flying: VecDeque<InFlightSegment>,
    free_at: Instant,
    may_send_at: Instant,
    estimator: DeliveryRate,
    rtt_min: Duration,
    srtt: Duration,
    sent: u64,
    answered: u64,
    lost: u64,
    recover: u64,
    in_flight: u64,
}

impl Line {
    /// A controller with `growth` over a bottleneck of `mbps` Mbit/s.
    pub(super) fn new(growth: Growth, mbps: u64, rtt: Duration) -> Self {
        let config = Config::default();
        let cc = growth.build(&ControllerStart { mss: Size(MSS), headers: Size(40), config: &config });
        Self {
            cc,
            world: World::new(1),
            now: Instant::ZERO,
            rate: Rate::from_bps(mbps * 1_000_000).expect("more than zero"),
            rtt,
            lose_one_in: 0,
            buffer: u64::MAX,
            flying: VecDeque::new(),
            free_at: Instant::ZERO,
            may_send_at: Instant::ZERO,
            estimator: DeliveryRate::default(),
            rtt_min: rtt,
            srtt: rtt,
            sent: 0,
            answered: 0,
            lost: 0,
            recover: 0,
            in_flight: 0,
        }
    }

    /// Like [`Self::new`], with a rate granted in the handshake.
    pub(super) fn granted(growth: Growth, mbps: u64, rtt: Duration, granted: Rate) -> Self {
        let mut line = Self::new(growth, mbps, rtt);
        let path = line.path();
        let mut cx = line.world.cx(line.now, NodeId(0));
        line.cc.on_rate(&mut cx, &path, RateAnswer::Granted(granted));
        line
    }

    fn path(&self) -> Path {
        Path {
            mss: Size(MSS),
            in_flight: Size(self.in_flight),
            flight: Size(self.sent - self.answered),
            peer_window: Size(u64::MAX / 2),
            srtt: self.srtt,
            rttvar: Duration::ZERO,
            rtt_min: self.rtt_min,
            round: 0,
            una: 1 + self.answered,
            next: 1 + self.sent,
            delivered: self.estimator.delivered(),
            lost: self.lost,
            unsent: None,
            probes: super::ProbeSignal::None,
        }
    }

    /// The controller's plan.
    pub(super) fn plan(&self) -> Plan {
        self.cc.plan(&self.path())
    }

    /// The pace as a multiple of the bottleneck's rate.
    pub(super) fn gain(&self) -> f64 {
        self.plan().pace.map_or(0.0, |p| p.bps() as f64 / self.rate.bps() as f64)
    }

    /// The scheme that replaced the controller, if any.
    pub(super) fn fallback(&self) -> Option<Fallback> {
        self.cc.fallback()
    }

    /// Bytes delivered so far.
    pub(super) fn delivered(&self) -> u64 {
        self.estimator.delivered()
    }

    /// Queueing delay of a segment sent now.
    pub(super) fn queue(&self) -> Duration {
        self.free_at.since(self.now)
    }

    /// Segments in flight.
    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight / MSS
    }

    /// Runs for `time`; calls `look` after each event.
    pub(super) fn run(&mut self, time: Duration, mut look: impl FnMut(&Self)) {
        let end = self.now + time;
        loop {
            let fits = self.in_flight + MSS <= self.plan().window.0;
            let send_at = if fits { self.may_send_at.max(self.now) } else { Instant::NEVER };
            let answer_at = self.flying.front().map_or(Instant::NEVER, |f| f.answer_at);
            let next = send_at.min(answer_at);
            if next > end {
                self.now = end;
                return;
            }
            self.now = next;
            if answer_at <= send_at {
                self.answer();
            } else {
                self.send();
            }
            look(self);
        }
    }

    fn send(&mut self) {
        let path = self.path();
        let snapshot = self.estimator.on_sent(self.now, self.in_flight == 0);
        if let Some(pace) = self.plan().pace {
            self.may_send_at = self.may_send_at.max(self.now) + pace.time_for(Size(MSS));
        }
        let number = self.sent / MSS + 1;
        let full = self.queue().0 / self.rate.time_for(Size(MSS)).0.max(1) > self.buffer;
        let lost = full || (self.lose_one_in > 0 && number.is_multiple_of(self.lose_one_in));
        if !full {
            self.free_at = self.free_at.max(self.now) + self.rate.time_for(Size(MSS));
        }
        self.sent += MSS;
        self.in_flight += MSS;
        let answer_at = self.free_at.max(self.now) + self.rtt;
        let position = self.sent;
        self.flying.push_back(InFlightSegment { answer_at, sent_at: self.now, snapshot, lost, position });
        let sent = SentSegment { bytes: Size(MSS), resent: false, probe: false };
        self.cc.on_sent(&mut self.world.cx(self.now, NodeId(0)), &path, &sent);
    }

    fn answer(&mut self) {
        let Some(seg) = self.flying.pop_front() else { return };
        self.in_flight -= MSS;
        self.answered += MSS;
        if seg.lost {
            self.lost += MSS;
            if seg.position > self.recover {
                self.recover = self.sent;
                let loss = Loss { cause: LossCause::Fast, last_sent: seg.sent_at, resends: 0 };
                let path = self.path();
                self.cc.on_loss(&mut self.world.cx(self.now, NodeId(0)), &path, &loss);
            }
            return;
        }
        let rtt = self.now.since(seg.sent_at);
        self.rtt_min = self.rtt_min.min(rtt);
        self.srtt = Duration(self.srtt.0 - self.srtt.0 / 8 + rtt.0 / 8);
        self.estimator.on_delivered(self.now, MSS, seg.sent_at, Some(seg.snapshot));
        let ack = Ack {
            delivered: Size(MSS),
            acked: Size(MSS),
            rtt: Some(rtt),
            rate: self.estimator.sample(self.rtt_min),
            round_ended: false,
            episode: if self.answered < self.recover { Episode::Fast } else { Episode::Open },
            limited_by: Limit::CongestionWindow,
            probes: 0,
        };
        let path = self.path();
        self.cc.on_ack(&mut self.world.cx(self.now, NodeId(0)), &path, &ack);
    }
}
