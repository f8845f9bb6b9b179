//! BBR version 3's RTT measurement and `ProbeRTT`.
//!
//! Source: draft-ietf-ccwg-bbr-06, cited as (D), section 5.3.4.3: half a BDP in flight for a short time, if
//! no smaller RTT was measured for an interval.

use super::{AckPhase, Bbr3, State};
use crate::cc::{Ack, Path};
use bentpipe_base::{Duration, Instant};

/// min_rtt expires after this time.
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);

impl Bbr3 {
    pub(super) fn probe_rtt_window(&self) -> u64 {
        self.bdp(State::ProbeRtt.cwnd_gain()).max(self.least())
    }

    /// (D) 5.3.4.3, `UpdateMinRTT`: takes an RTT sample.
    pub(super) fn take_rtt(&mut self, now: Instant, ack: &Ack) {
        let (least, at) = self.probe_rtt;
        self.probe_rtt_expired = least.is_some() && now > at + self.params.probe_rtt_interval;
        if let Some(rtt) = ack.rtt
            && (self.probe_rtt_expired || least.is_none_or(|least| rtt < least))
        {
            self.probe_rtt = (Some(rtt), now);
        }
        let expired = now > self.min_rtt_at + MIN_RTT_WINDOW;
        if let (Some(rtt), at) = self.probe_rtt
            && (expired || self.min_rtt.is_none_or(|least| rtt < least))
        {
            self.min_rtt = Some(rtt);
            self.min_rtt_at = at;
        }
    }

    /// (D) 5.3.4.3, `CheckProbeRTT`: enters and leaves ProbeRTT.
    pub(super) fn check_probe_rtt(&mut self, now: Instant, path: &Path) {
        if self.state != State::ProbeRtt && self.probe_rtt_expired && !self.idle {
            self.save_window();
            self.state = State::ProbeRtt;
            self.probe_rtt_until = None;
            self.ack_phase = AckPhase::ProbeStopping;
            self.round_end = path.delivered;
        }
        if self.state != State::ProbeRtt {
            return;
        }
        match self.probe_rtt_until {
            None if path.in_flight.0 <= self.probe_rtt_window() => {
                self.probe_rtt_until = Some(now + self.params.probe_rtt_time);
                self.probe_rtt_round = false;
                self.round_end = path.delivered;
            }
            None => {}
            Some(until) => {
                self.probe_rtt_round |= self.round_began;
                if self.probe_rtt_round && now > until {
                    self.end_probe_rtt(now, path);
                }
            }
        }
    }

    pub(super) fn end_probe_rtt(&mut self, now: Instant, path: &Path) {
        self.probe_rtt.1 = now;
        self.cwnd = self.cwnd.max(self.saved);
        self.bounds.forget_short_term();
        if self.full.reached {
            self.start_down(now, path);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }
}
