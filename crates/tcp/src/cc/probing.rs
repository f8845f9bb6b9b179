//! The probing law: what TCP-Peach, TCP-Peach+ and TCP-Swift share.
//!
//! Sources: Akyildiz, Morabito, Palazzo, "TCP-Peach" (2001); Akyildiz, Zhang, Fang, "TCP-Peach+" (2002);
//! Leung and Yeung, "TCP-Swift" (2004). Low-priority copies ask the path whether there is room; each
//! acknowledged one opens the window by a segment:
//!   start:     one segment (or the initial window), then a copy every tau = RTT / n until n are out; cwnd +=
//!              1 per probe ACK: n segments after two round trips
//!   recovery:  W0 = cwnd, cwnd = W0/2, aosn = W0 copies to send, wdsn = W0/2 probe ACKs to ignore; an ACK
//!              that lets no data go sends 2 copies
//!   probe ACK: if wdsn > 0: wdsn -= 1, else cwnd += 1; so a congested path, which drops the copies that did
//!              not fit into the halved window, gives nothing
//!   expanding: from the end of recovery to the ACK of the last data sent in it (the window expanding
//!              period); then congestion avoidance
//! The figure of speedy recovery in the Swift paper cannot be meant as printed (no line halves cwnd, and then
//! no probe is ever sent); it is read with cwnd = W0/2 and one segment per probe ACK after wdsn of them,
//! which gives the text's W0 probes and W0/2 data segments. Where queues are not known to serve probes last
//! (`priority` is off) there is no start, and W0/4 copies are sent: fewer than are ignored. They repair, and
//! never open the window: where they take the place of data an acknowledged one says nothing about room.
//! Deviations: W0 is what was in flight where that is less. A start ends in congestion avoidance, with the
//! window as the threshold, if more than one in ten of its probes are missing; else it leaves the threshold
//! alone, and what is below it is slow start. That is the papers' where the start reached the threshold, or
//! the peer's window, beyond which nothing grows; but `n` may also have been the cap, the window of a SYN,
//! which has no scale (RFC 7323, section 2.2), or one that the peer opens later. One that hears of no probe
//! leaves the threshold alone too; one after a timeout lets data ACKs grow the window as in slow start, since
//! most of what is sent then are repairs. Defaults: n = 64, LE (RFC 8622).

use super::law::Start;
use super::standard::Window;
use super::{
    Ack, CongestionControl, Episode, Loss, LossCause, Path, Plan, ProbeCarry, ProbeClock, ProbeSignal, Probes,
};
use bentpipe_base::{Cx, Dscp, Duration, Instant, Rate, Size};

/// The parameter that says whether queues on the way serve probes last, in all three schemes: who knows the
/// network sets it where the user does not.
pub const ASSUME_PRIORITY: &str = "assume_priority";
/// The parameter with the code point of probes.
pub const PROBE_DSCP: &str = "probe_dscp";

const HALF: f64 = 0.5;
/// Share of a start's probes that have come back where there is room for all of them; the rest may be lost by
/// errors.
const NEARLY_ALL: f64 = 0.9;
/// Copies per acknowledgment in recovery.
const COPIES: u8 = 2;
/// Segments that an acknowledgment lets go in recovery; the papers give no value, and this is what was usual
/// (Fall and Floyd, 1996).
const MAX_BURST: u64 = 4;

/// What tells the three schemes apart, and what users may set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Switches {
    /// What a probe copies.
    pub carry: ProbeCarry,
    /// A data ACK of the window expanding period adds a segment.
    pub expands: Expands,
    /// A partial acknowledgment adds a segment.
    pub partial: bool,
    /// Data ACKs of the window expanding period count the segments that they acknowledge.
    pub counts_bytes: bool,
    /// Queues on the way serve probes last.
    pub priority: bool,
    /// Most segments that a start opens the window to.
    pub cap: u64,
    /// Code point of probes.
    pub mark: Dscp,
}

impl Switches {
    /// Peach's and Peach+'s, who differ in what a probe copies: what the window expanding period and partial
    /// acknowledgments add is Swift's.
    pub(super) fn of_peach(carry: ProbeCarry, priority: bool, cap: f64, dscp: f64) -> Self {
        Self {
            carry,
            expands: Expands::Never,
            partial: false,
            counts_bytes: false,
            priority,
            cap: cap as u64,
            mark: Dscp::new(dscp as u8).unwrap_or(Dscp::LE),
        }
    }
}

/// When a data ACK of the window expanding period adds a segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expands {
    /// Never.
    Never,
    /// Once `share` of the probes sent in this episode came back, and at least half a window of them; and not
    /// above the window before the loss. Nothing adds a segment where `backlog` of our segments waited in
    /// queues at the loss.
    Gated {
        /// Share of the probes.
        share: f64,
        /// Segments.
        backlog: f64,
    },
    /// Always.
    Always,
}

/// One episode's counts, in segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    /// The window before the loss.
    w0: u64,
    /// Copies still to send.
    aosn: u32,
    /// Probe ACKs still to ignore.
    wdsn: u32,
    /// Copies sent, and probe ACKs that came.
    sent: u32,
    seen: u32,
    /// Queues were too full at the loss for it to be one of corruption: the window stays halved.
    congested: bool,
}

/// A start that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Opening {
    began: Instant,
    /// Segments that the window opens to.
    target: u64,
    /// Time between two of them.
    tau: Duration,
    /// The round trip as it began.
    rtt: Duration,
    /// Segments of data to send before the copies.
    data: u64,
    /// Copies to send.
    left: u32,
    /// Probe ACKs still to come, and those that came.
    due: u32,
    heard: u32,
    after_timeout: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The next data sent begins a start.
    Fresh,
    Opening(Opening),
    Avoidance,
    Recovery(Counts),
    Expanding(Counts, u64),
    /// After a timeout, until the first acknowledgment.
    TimedOut,
}

/// The controller.
#[derive(Clone, Debug)]
pub struct Probing {
    switches: Switches,
    window: Window,
    phase: Phase,
    /// After an ECN echo no probes until this round trip.
    mute_until: u64,
}

impl Probing {
    /// Starts from the host's window.
    pub fn new(start: &Start<'_>, switches: Switches) -> Self {
        Self { switches, window: start.window(), phase: Phase::Fresh, mute_until: 0 }
    }

    /// Segments that a start may open the window to now.
    fn target(&self, path: &Path) -> u64 {
        let mss = self.window.mss();
        let threshold = self.window.threshold().map_or(u64::MAX, |t| t.0 / mss);
        (path.peer_window.0 / mss).min(threshold).min(self.switches.cap)
    }

    /// A start is possible: somebody tells of probes, queues serve them last, and the round trip is known.
    const fn can_open(&self, path: &Path) -> bool {
        self.switches.priority && !matches!(path.probes, ProbeSignal::None) && !path.srtt.is_zero()
    }

    fn open(&mut self, now: Instant, path: &Path, after_timeout: bool) {
        let mss = self.window.mss();
        let own = self.window.cwnd() / mss;
        // where the end of the data is known there is no use in a window beyond it
        let wanted = path.rest.map_or(u64::MAX, |rest| (rest.0 + path.flight.0).div_ceil(mss));
        let target = self.target(path).min(wanted);
        if !self.can_open(path) || target <= own {
            self.phase = Phase::Avoidance;
            return;
        }
        let copies = u32::try_from(target - own).unwrap_or(u32::MAX);
        self.phase = Phase::Opening(Opening {
            began: now,
            target,
            tau: path.srtt / target,
            rtt: path.srtt,
            data: if after_timeout { 0 } else { own },
            left: copies,
            due: copies,
            heard: 0,
            after_timeout,
        });
    }

    /// One more segment, within the peer's window.
    fn grow(&mut self, path: &Path, segments: u64, most: u64) {
        let mss = self.window.mss();
        let most = most.saturating_mul(mss).min(path.peer_window.0);
        let cwnd = self.window.cwnd();
        if cwnd < most {
            self.window.set_cwnd((cwnd + segments * mss).min(most));
        }
    }

    /// Slow start below the threshold, congestion avoidance above.
    fn standard(&mut self, ack: &Ack) {
        if !ack.may_grow() {
            return;
        }
        if self.window.in_slow_start() {
            self.window.slow_start(ack.acked, self.window.mss());
        } else {
            self.window.avoid(ack.acked);
        }
    }

    fn opening(&mut self, now: Instant, path: &Path, ack: &Ack, mut opening: Opening) {
        let heard = ack.probes.min(opening.due);
        opening.heard += heard;
        opening.due -= heard;
        self.grow(path, u64::from(heard), opening.target);
        if ack.acked > Size::ZERO {
            opening.data = 0;
            if opening.after_timeout {
                self.standard(ack);
            } else if ack.may_grow() {
                self.window.avoid(ack.acked);
            }
        }
        let patience = (opening.rtt / 4).max(path.rttvar * 4);
        let over = now > opening.began + opening.rtt * 2 + patience;
        if opening.due > 0 && !over {
            self.phase = Phase::Opening(opening);
            return;
        }
        self.phase = Phase::Avoidance;
        let copies = opening.heard + opening.due;
        if opening.heard > 0 && f64::from(opening.heard) < NEARLY_ALL * f64::from(copies) {
            self.window.set_ssthresh(self.window.cwnd());
        }
    }

    /// Probe ACKs in recovery and in the window expanding period.
    fn probes_came(&mut self, path: &Path, ack: &Ack, counts: &mut Counts) {
        let ignored = ack.probes.min(counts.wdsn);
        counts.wdsn -= ignored;
        counts.seen = counts.seen.saturating_add(ack.probes);
        if !counts.congested {
            let most = self.most(counts);
            self.grow(path, u64::from(ack.probes - ignored), most);
        }
    }

    /// Largest window of the episode, in segments.
    fn most(&self, counts: &Counts) -> u64 {
        match self.switches.expands {
            Expands::Gated { .. } => counts.w0,
            Expands::Never | Expands::Always => u64::MAX,
        }
    }

    fn expanding(&mut self, path: &Path, ack: &Ack, mut counts: Counts, end: u64) {
        self.probes_came(path, ack, &mut counts);
        self.phase = Phase::Expanding(counts, end);
        if path.una >= end {
            self.phase = Phase::Avoidance;
            self.standard(ack);
            return;
        }
        let expands = match self.switches.expands {
            Expands::Never => false,
            Expands::Gated { share, .. } => {
                let enough = counts.wdsn == 0 && f64::from(counts.seen) >= share * f64::from(counts.sent);
                enough && !counts.congested
            }
            Expands::Always => true,
        };
        if !expands {
            self.standard(ack);
        } else if ack.acked > Size::ZERO {
            let whole = (ack.acked.0 / self.window.mss()).max(1);
            let most = self.most(&counts);
            self.grow(path, if self.switches.counts_bytes { whole } else { 1 }, most);
        }
    }

    /// Segments of `w0` that wait in queues, N = W0 (1 - RTTmin / RTT), are `backlog` or more (TCP Veno).
    fn congested(&self, path: &Path, w0: u64) -> bool {
        let Expands::Gated { backlog, .. } = self.switches.expands else { return false };
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
            Phase::Fresh | Phase::Avoidance => self.standard(ack),
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
                self.standard(ack);
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
        // a SYN that timed out twice says that the path is no place for probes
        self.phase = if path.next > 1 { Phase::Fresh } else { Phase::Avoidance };
    }

    fn plan(&self, path: &Path) -> Plan {
        let mss = self.window.mss();
        let plan = Plan::window(Size(self.window.cwnd()));
        let probes = |left: u32, clock: ProbeClock| {
            let loud = path.round >= self.mute_until && left > 0;
            loud.then_some(Probes { left, clock, carry: self.switches.carry, mark: self.switches.mark })
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

    fn ssthresh(&self) -> Option<Size> {
        self.window.threshold()
    }
}

#[cfg(test)]
#[path = "probing_tests.rs"]
mod tests;
