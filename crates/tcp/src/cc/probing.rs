//! The probing algorithm that TCP-Peach, TCP-Peach+ and TCP-Swift share.
//!
//! Sources: Akyildiz, Morabito, Palazzo, "TCP-Peach" (2001); Akyildiz, Zhang, Fang, "TCP-Peach+" (2002);
//! Leung and Yeung, "TCP-Swift" (2004). Low-priority copies of data probe for spare capacity; each
//! acknowledged copy opens the window by a segment:
//!   start: one segment (or the initial window), then a copy every tau = RTT / n until n are sent; cwnd += 1
//!     per probe ACK: n segments after two round trips
//!   recovery: W0 = cwnd, cwnd = W0/2, aosn = W0 copies to send, wdsn = W0/2 probe ACKs to ignore; an ACK
//!     that allows no data segment sends 2 copies
//!   probe ACK: if wdsn > 0: wdsn -= 1, else cwnd += 1; a congested path drops the copies that exceed the
//!     halved window, so cwnd does not grow
//!   expanding: from the end of recovery to the ACK of the last data sent in it (the window expanding
//!     period); then congestion avoidance
//! The figure of speedy recovery in the Swift paper cannot be right as printed (no line halves cwnd, so no
//! probe would ever be sent). Here cwnd = W0/2 and each probe ACK after the first wdsn adds a segment, which
//! gives the text's W0 probes and W0/2 data segments. If queues are not known to serve probes last
//! (`priority` is off) there is no start, and W0/4 copies are sent, fewer than are ignored: they repair
//! losses but never open the window, since a copy that displaces data proves nothing about spare capacity.
//! Deviations: W0 is what was in flight if that is less. A start ends in congestion avoidance, with
//! ssthresh = cwnd, if more than one in ten of its probes are missing; otherwise ssthresh stays and slow
//! start continues below it. This is the papers' behaviour if the start reached ssthresh or the peer's
//! window; but `n` may also have been the cap, the unscaled window of a SYN (RFC 7323, section 2.2), or a
//! window that the peer opens later. A start without any probe ACK leaves ssthresh unchanged too. In a start
//! after a timeout data ACKs grow the window as in slow start, since most segments sent then are
//! retransmissions. Defaults: n = 64, LE (RFC 8622).

use super::law::ControllerStart;
use super::standard::{Window, delegate_to_window};
use super::{
    Ack, CongestionControl, Episode, Loss, LossCause, Path, Plan, ProbeCarry, ProbeClock, ProbeRequest,
    ProbeSignal,
};
use crate::params;
use bentpipe_base::{Cx, Dscp, Duration, Instant, Rate, Size};

/// The parameter of all three schemes that says whether queues on the path serve probes last. The caller sets
/// it from the scenario if the user does not.
pub const ASSUME_PRIORITY: &str = "assume_priority";
/// The parameter with the DSCP of probes.
pub const PROBE_DSCP: &str = "probe_dscp";

const HALF: f64 = 0.5;
/// Share of a start's probes that must be acknowledged; the rest may be lost by errors.
const NEARLY_ALL: f64 = 0.9;
/// Copies per acknowledgment in recovery that allows no data segment.
const COPIES: u8 = 2;
/// Largest burst in recovery in segments; the papers give no value, this one was usual (Fall and Floyd,
/// 1996).
const MAX_BURST: u64 = 4;

/// The differences between the three schemes, and their parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbingParams {
    /// What a probe copies.
    pub carry: ProbeCarry,
    /// When a data ACK of the window expanding period adds a segment.
    pub expands: ExpansionRule,
    /// A partial acknowledgment adds a segment.
    pub partial: bool,
    /// Data ACKs of the window expanding period count the segments that they acknowledge.
    pub counts_bytes: bool,
    /// Queues on the path serve probes last.
    pub priority: bool,
    /// Largest window of a start in segments.
    pub cap: u64,
    /// DSCP of probes.
    pub mark: Dscp,
}

params! {
    /// Parameters of TCP-Peach and TCP-Peach+.
    pub struct PeachParams {
        /// Queues on the path serve probes last. If a scenario does not set it, it follows from the
        /// `discipline` of the queues. Off: no sudden start (Peach+: jump start), and a quarter of the
        /// probes, which repair losses and never open the window.
        assume_priority: bool = true;
        /// Largest window of sudden start (Peach+: jump start) in segments.
        probe_cap: f64 = 64.0, from 2.0, to 1e6;
        /// DSCP of probes; 1 is LE.
        probe_dscp: f64 = 1.0, from 0.0, to 63.0;
    }
}

impl ProbingParams {
    /// Returns the settings of Peach and Peach+, which differ only in `carry`; they have no increments for
    /// data ACKs or partial acknowledgments.
    pub(super) fn of_peach(carry: ProbeCarry, params: PeachParams) -> Self {
        Self {
            carry,
            expands: ExpansionRule::Never,
            partial: false,
            counts_bytes: false,
            priority: params.assume_priority,
            cap: params.probe_cap as u64,
            mark: Dscp::new(params.probe_dscp as u8).unwrap_or(Dscp::LE),
        }
    }
}

/// When a data ACK of the window expanding period adds a segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ExpansionRule {
    /// Never.
    Never,
    /// Once `share` of this episode's probes and at least half a window of them were acknowledged, and not
    /// above the window before the loss. If at least `backlog` of our segments were queued at the loss,
    /// nothing adds a segment.
    Gated {
        /// Share of the probes, 0 to 1.
        share: f64,
        /// Queued segments that make a loss count as congestion.
        backlog: f64,
    },
    /// Always.
    Always,
}

/// Counters of one recovery episode, in segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    /// The window before the loss.
    w0: u64,
    /// Copies still to send.
    aosn: u32,
    /// Probe ACKs still to ignore.
    wdsn: u32,
    /// Copies sent, and probe ACKs received.
    sent: u32,
    seen: u32,
    /// The queue was so long at the loss that it counts as congestion: the window stays halved.
    congested: bool,
}

/// A start in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StartState {
    began: Instant,
    /// Window in segments at the end of the start.
    target: u64,
    /// Time between two segments.
    tau: Duration,
    /// SRTT when the start began.
    rtt: Duration,
    /// Data segments to send before the copies.
    data: u64,
    /// Copies still to send.
    left: u32,
    /// Probe ACKs still expected, and those received.
    probe_acks_expected: u32,
    probe_acks: u32,
    after_timeout: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The next data segment begins a start.
    Fresh,
    Opening(StartState),
    Avoidance,
    Recovery(Counts),
    Expanding(Counts, u64),
    /// After a timeout, until the first acknowledgment.
    TimedOut,
}

/// The controller of the three schemes.
#[derive(Clone, Debug)]
pub struct Probing {
    switches: ProbingParams,
    window: Window,
    phase: Phase,
    /// After an ECN echo, no probes until this round trip.
    mute_until: u64,
}

impl Probing {
    /// Starts from the host's window.
    pub fn new(start: &ControllerStart<'_>, switches: ProbingParams) -> Self {
        Self { switches, window: start.window(), phase: Phase::Fresh, mute_until: 0 }
    }

    /// Returns the largest window in segments to which a start may open now.
    fn target(&self, path: &Path) -> u64 {
        let mss = self.window.mss();
        let threshold = self.window.threshold().map_or(u64::MAX, |t| t.0 / mss);
        (path.peer_window.0 / mss).min(threshold).min(self.switches.cap)
    }

    /// True if a start is possible: probes can be recognised, queues serve them last, and the RTT is known.
    const fn can_open(&self, path: &Path) -> bool {
        self.switches.priority && !matches!(path.probes, ProbeSignal::None) && !path.srtt.is_zero()
    }

    fn open(&mut self, now: Instant, path: &Path, after_timeout: bool) {
        let mss = self.window.mss();
        let own = self.window.cwnd() / mss;
        // a window larger than the remaining data is useless
        let wanted = path.unsent.map_or(u64::MAX, |rest| (rest.0 + path.flight.0).div_ceil(mss));
        let target = self.target(path).min(wanted);
        if !self.can_open(path) || target <= own {
            self.phase = Phase::Avoidance;
            return;
        }
        let copies = u32::try_from(target - own).unwrap_or(u32::MAX);
        self.phase = Phase::Opening(StartState {
            began: now,
            target,
            tau: path.srtt / target,
            rtt: path.srtt,
            data: if after_timeout { 0 } else { own },
            left: copies,
            probe_acks_expected: copies,
            probe_acks: 0,
            after_timeout,
        });
    }

    /// Adds `segments` to the window, up to `most` segments and the peer's window.
    fn grow(&mut self, path: &Path, segments: u64, most: u64) {
        let mss = self.window.mss();
        let most = most.saturating_mul(mss).min(path.peer_window.0);
        let cwnd = self.window.cwnd();
        if cwnd < most {
            self.window.set_cwnd((cwnd + segments * mss).min(most));
        }
    }

    fn opening(&mut self, now: Instant, path: &Path, ack: &Ack, mut opening: StartState) {
        let heard = ack.probes.min(opening.probe_acks_expected);
        opening.probe_acks += heard;
        opening.probe_acks_expected -= heard;
        self.grow(path, u64::from(heard), opening.target);
        if ack.acked > Size::ZERO {
            opening.data = 0;
            if opening.after_timeout {
                self.window.grow(ack);
            } else if ack.may_grow() {
                self.window.avoid(ack.acked);
            }
        }
        let patience = (opening.rtt / 4).max(path.rttvar * 4);
        let over = now > opening.began + opening.rtt * 2 + patience;
        if opening.probe_acks_expected > 0 && !over {
            self.phase = Phase::Opening(opening);
            return;
        }
        self.phase = Phase::Avoidance;
        let copies = opening.probe_acks + opening.probe_acks_expected;
        if opening.probe_acks > 0 && f64::from(opening.probe_acks) < NEARLY_ALL * f64::from(copies) {
            self.window.set_ssthresh(self.window.cwnd());
        }
    }

    /// Processes probe ACKs in recovery and in the window expanding period.
    fn probes_came(&mut self, path: &Path, ack: &Ack, counts: &mut Counts) {
        let ignored = ack.probes.min(counts.wdsn);
        counts.wdsn -= ignored;
        counts.seen = counts.seen.saturating_add(ack.probes);
        if !counts.congested {
            let most = self.most(counts);
            self.grow(path, u64::from(ack.probes - ignored), most);
        }
    }

    /// Returns the largest window of the episode in segments.
    fn most(&self, counts: &Counts) -> u64 {
        match self.switches.expands {
            ExpansionRule::Gated { .. } => counts.w0,
            ExpansionRule::Never | ExpansionRule::Always => u64::MAX,
        }
    }

    fn expanding(&mut self, path: &Path, ack: &Ack, mut counts: Counts, end: u64) {
        self.probes_came(path, ack, &mut counts);
        self.phase = Phase::Expanding(counts, end);
        if path.una >= end {
            self.phase = Phase::Avoidance;
            self.window.grow(ack);
            return;
        }
        let expands = match self.switches.expands {
            ExpansionRule::Never => false,
            ExpansionRule::Gated { share, .. } => {
                let enough = counts.wdsn == 0 && f64::from(counts.seen) >= share * f64::from(counts.sent);
                enough && !counts.congested
            }
            ExpansionRule::Always => true,
        };
        if !expands {
            self.window.grow(ack);
        } else if ack.acked > Size::ZERO {
            let whole = (ack.acked.0 / self.window.mss()).max(1);
            let most = self.most(&counts);
            self.grow(path, if self.switches.counts_bytes { whole } else { 1 }, most);
        }
    }

    /// TCP Veno's test: true if N = W0 (1 - RTTmin / RTT), the segments of `w0` that are queued, reaches
    /// `backlog`.
    fn congested(&self, path: &Path, w0: u64) -> bool {
        let ExpansionRule::Gated { backlog, .. } = self.switches.expands else { return false };
        if path.srtt.is_zero() || path.rtt_min.is_zero() {
            return false;
        }
        let waiting = 1.0 - path.rtt_min.as_secs_f64() / path.srtt.as_secs_f64();
        w0 as f64 / self.window.mss() as f64 * waiting >= backlog
    }

    fn recover(&mut self, path: &Path) {
        let w0 = self.window.cwnd().min(path.flight.0);
        let congested = self.congested(path, w0);
        self.window.reduce_from(Size(w0), LossCause::Fast, HALF);
        let w0 = w0 / self.window.mss();
        let copies = if self.switches.priority { w0 } else { w0 / 4 };
        let copies = if path.probes == ProbeSignal::None { 0 } else { copies };
        let count = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        let (aosn, wdsn) = (count(copies), count(w0 / 2));
        self.phase = Phase::Recovery(Counts { w0, aosn, wdsn, sent: 0, seen: 0, congested });
    }
}

impl CongestionControl for Probing {
    fn on_ack(&mut self, cx: &mut Cx<'_>, path: &Path, ack: &Ack) {
        match self.phase {
            Phase::Fresh | Phase::Avoidance => self.window.grow(ack),
            Phase::Opening(opening) => self.opening(cx.now, path, ack, opening),
            Phase::Recovery(mut counts) => {
                self.probes_came(path, ack, &mut counts);
                if ack.episode == Episode::Fast {
                    self.phase = Phase::Recovery(counts);
                    if ack.acked > Size::ZERO && self.switches.partial && !counts.congested {
                        self.grow(path, 1, u64::MAX);
                    }
                } else {
                    self.phase = Phase::Expanding(counts, path.next);
                }
            }
            Phase::Expanding(counts, end) => self.expanding(path, ack, counts, end),
            Phase::TimedOut if ack.acked > Size::ZERO => {
                self.window.grow(ack);
                self.open(cx.now, path, true);
            }
            Phase::TimedOut => {}
        }
    }

    fn on_loss(&mut self, _cx: &mut Cx<'_>, path: &Path, loss: &Loss) {
        match loss.cause {
            LossCause::Fast => self.recover(path),
            LossCause::Mark => {
                self.window.reduce(path, loss.cause, HALF);
                self.mute_until = path.round + 2;
                self.phase = Phase::Avoidance;
            }
            LossCause::Timeout | LossCause::RepeatedTimeout => {
                self.window.reduce(path, loss.cause, HALF);
                self.phase = Phase::TimedOut;
            }
        }
    }

    fn on_sent(&mut self, cx: &mut Cx<'_>, path: &Path, sent: &super::SentSegment) {
        if self.phase == Phase::Fresh && !sent.probe && sent.bytes > Size::ZERO {
            self.open(cx.now, path, false);
        }
        match &mut self.phase {
            Phase::Opening(opening) if sent.probe => opening.left = opening.left.saturating_sub(1),
            Phase::Opening(opening) => opening.data = opening.data.saturating_sub(1),
            Phase::Recovery(counts) if sent.probe => {
                counts.aosn = counts.aosn.saturating_sub(1);
                counts.sent += 1;
            }
            _ => {}
        }
    }

    fn on_undo(&mut self, _cx: &mut Cx<'_>, _path: &Path) {
        self.window.undo();
        self.phase = Phase::Avoidance;
    }

    fn on_restart(&mut self, _cx: &mut Cx<'_>, path: &Path, window: Size) {
        self.window.restart(window);
        // a SYN that timed out twice: the path is too lossy for probes
        self.phase = if path.next > 1 { Phase::Fresh } else { Phase::Avoidance };
    }

    fn plan(&self, path: &Path) -> Plan {
        let mss = self.window.mss();
        let plan = Plan::window(Size(self.window.cwnd()));
        let probes = |left: u32, clock: ProbeClock| {
            let loud = path.round >= self.mute_until && left > 0;
            loud.then_some(ProbeRequest { left, clock, carry: self.switches.carry, mark: self.switches.mark })
        };
        match self.phase {
            Phase::Opening(o) if o.data > 0 => {
                let pace = Rate::from_bps((mss as f64 * 8.0 / o.tau.as_secs_f64()) as u64);
                Plan { pace, burst: Size(mss), ..plan }
            }
            Phase::Opening(o) => Plan { probes: probes(o.left, ProbeClock::Every(o.tau)), ..plan },
            Phase::Recovery(counts) => Plan {
                probes: probes(counts.aosn, ProbeClock::PerAck(COPIES)),
                burst: Size(MAX_BURST * mss),
                ..plan
            },
            _ => plan,
        }
    }

    delegate_to_window!(ssthresh);
}

#[cfg(test)]
#[path = "probing_tests.rs"]
mod tests;
