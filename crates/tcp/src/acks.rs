//! Processes an acknowledgment: ACK -> scoreboard -> recovery -> scheme.
//!
//! Sources: RFC 9293, section 3.10.7.4 (fifth check) and RFC 5961, section 5 (acceptable acknowledgments),
//! RFC 6298 (timer), RFC 8985, section 7 (tail loss probe). The recovery module decides which bytes are
//! lost; the scheme decides how to respond.

use crate::board::AckSummary;
use crate::cc::{Ack, Episode, Loss, LossCause};
use crate::config::Validation;
use crate::connection::Connection;
use crate::handshake::reset_for;
use crate::limits::Limit;
use crate::probes::{DuplicateAck, ProbeAnswer};
use crate::recovery::{AckView, RecoveryResult};
use crate::state::{Event, State};
use crate::timers::Timer;
use crate::told::{Acked, Timing};
use bentpipe_advice::negotiation::RateAnswer;
use bentpipe_base::trace::{Event as Trace, Mask};
use bentpipe_base::{Cx, Duration, Instant, Packet, Seq, Size};

impl Connection {
    /// Fifth check. Returns false if the segment must not be processed further.
    pub(crate) fn acknowledgment(&mut self, cx: &mut Cx<'_>, segment: &Packet, left: u64) -> bool {
        let una = self.board.una();
        let ack = self.acknowledged(segment);
        if self.state == State::SynReceived {
            if ack.is_none_or(|a| a <= una) {
                self.outgoing = reset_for(cx, segment);
                return false;
            }
            self.acknowledge_syn(cx, segment);
            self.established(cx.now);
        }
        let Some(ack) = ack else {
            self.challenge_ack(cx); // RFC 5961, section 5.2
            return false;
        };
        if ack < self.board.una() {
            // a later ACK overtook this one: its data and SACK blocks may still be new, but its
            // acknowledgment number and window are out of date
            if self.negotiated.sack && !segment.tcp.sack.is_empty() && !self.board.is_empty() {
                self.take_ack(cx, segment, ack, false);
            }
            return true;
        }
        let window_changed = self.update_window(segment, left, ack);
        if self.board.is_empty()
            && ack == self.board.una()
            && !self.fin_queued
            && !self.tail_probe.is_outstanding()
            && !self.probes.as_ref().is_some_and(|p| p.waits())
        {
            return true; // nothing is outstanding: the usual case of a pure receiver
        }
        self.take_ack(cx, segment, ack, window_changed);
        self.closing_states(cx);
        true
    }

    /// Returns the position that a segment acknowledges; `None` if it was never sent, or lies more than the
    /// peer's largest window below SND.UNA (RFC 5961, section 5.2).
    pub(crate) fn acknowledged(&self, segment: &Packet) -> Option<u64> {
        let (una, next) = (self.board.una(), self.board.next());
        let ack = self.iss.offset_near(segment.tcp.ack, una)?;
        (ack <= next && ack + self.peer_window_max >= una).then_some(ack)
    }

    /// Updates SND.WND, SND.WL1 and SND.WL2. True if the window changed.
    #[inline]
    pub(crate) fn update_window(&mut self, segment: &Packet, left: u64, ack: u64) -> bool {
        let (wl1, wl2) = self.window_update;
        if !(wl1 < left || (wl1 == left && wl2 <= ack)) {
            return false;
        }
        let window = u64::from(segment.tcp.window) << self.negotiated.send_scale;
        self.window_update = (left, ack);
        self.peer_window_max = self.peer_window_max.max(window);
        let edge = ack + window;
        let changed = edge != self.peer_right_edge;
        self.peer_right_edge = edge;
        if window > 0 && changed {
            if self.timers.runs(Timer::Persist) && !self.board.is_empty() {
                self.board.mark_lost(0, true); // the closed window discarded the probe
            }
            self.persist_backoff = 0;
            self.timers.stop(Timer::Persist);
        }
        changed
    }

    /// Applies an acknowledgment. One that was overtaken (`ack` below SND.UNA) still counts for its SACK
    /// blocks: RFC 6675, section 5, calls Update() for every ACK. Its round trip and its ECN echo are out of
    /// date.
    fn take_ack(&mut self, cx: &mut Cx<'_>, segment: &Packet, ack: u64, window_changed: bool) {
        let limited_by = self.growth_limit(cx.now);
        let una = self.board.una();
        let overtaken = ack < una;
        let doubtful = self.probes.as_ref().is_some_and(|p| p.doubtful(&segment.tcp));
        let newest_repair = self.rtt.min().map(|min| Instant(cx.now.0.saturating_sub(min.0)));
        let mut digest =
            AckSummary { now: cx.now, newest_repair, copy_ambiguous: doubtful, ..AckSummary::default() };
        if self.negotiated.sack {
            self.take_sack(segment, ack, &mut digest);
        }
        if overtaken && digest.newly_sacked == 0 && digest.dsack.is_none() {
            return;
        }
        self.send.burst = 0;
        let bare = ack == una && segment.seq_len() == 0 && !window_changed;
        let claim = self.claim_probes(segment, bare, &mut digest);
        self.board.acknowledge(ack.max(una), &mut self.rate, &mut digest);
        self.count_for_probes(&digest);
        let rtt = if overtaken { None } else { self.take_rtt(cx.now, segment, &digest) };
        if let Some(rtt) = rtt {
            cx.trace(Mask::ROUND_TRIPS, || Trace::RoundTrip { port: self.tuple.local.1, rtt });
        }
        if digest.acked > 0 {
            self.peer_activity.progress(cx.now);
        }
        // RFC 9293, section 3.8.6.1: a peer that answers with a closed window is alive
        if digest.delivered > 0 || digest.acked > 0 || self.peer_right_edge <= self.board.una() {
            self.timeouts_in_a_row = 0;
        }
        let round_ended = self.advance_round(digest.acked);
        let other = window_changed || claim.own || overtaken;
        digest.duplicate = self.is_duplicate(segment, una, other, &digest);
        let finding = self.recover(cx, &digest);
        self.on_tail_probe_ack(cx, &digest, bare && !claim.own && segment.tcp.sack.is_empty());
        if overtaken && self.linux() {
            // `tcp_ack`, label `old_ack`: an overtaken ACK neither grows the window nor advances its
            // reduction
            self.after_ack(cx, &digest, &finding);
            return;
        }
        if !overtaken {
            self.ecn_echo(cx, segment);
        }
        if digest.delivered > 0 || claim.probes > 0 {
            let rate = self.rate.sample(self.rtt.min().unwrap_or_default());
            let ack = Ack {
                delivered: Size(self.recovery.delivered(&digest)),
                acked: Size(digest.acked.saturating_sub(u64::from(una == 0))), // without the SYN
                rtt,
                rate,
                round_ended,
                episode: self.reported_episode(&finding),
                limited_by,
                probes: claim.probes,
            };
            let path = self.path();
            if let Some(answer) = self.granted(&digest) {
                self.cc.on_rate(cx, &path, answer);
            }
            self.cc.on_ack(cx, &path, &ack);
        }
        self.lower_window(&digest, &finding);
        self.after_ack(cx, &digest, &finding);
    }

    /// Returns the recovery state that the scheme is told. On Linux the window does not grow while an ECN
    /// mark reduces it.
    fn reported_episode(&self, finding: &RecoveryResult) -> Episode {
        let again = self.linux() && finding.loss.is_some();
        match self.recovery.episode() {
            Episode::Open if self.recovery.is_reducing() => Episode::Fast,
            _ if finding.ended && !again => Episode::Ended,
            other => other,
        }
    }

    /// Counts delivered segments, each of which allows probes; one ACK may cover several.
    fn count_for_probes(&mut self, digest: &AckSummary) {
        let mss = self.mss();
        if let Some(probes) = &mut self.probes {
            let segments = u32::try_from(digest.delivered / mss).unwrap_or(u32::MAX).max(1);
            probes.acks = probes.acks.saturating_add(segments);
        }
    }

    /// Looks for answers to our own probes. This comes first, since a DSACK that a probe caused means
    /// nothing to the other mechanisms.
    fn claim_probes(&mut self, segment: &Packet, bare: bool, digest: &mut AckSummary) -> ProbeAnswer {
        let now = digest.now;
        let patience = self.rtt.rto() * 2;
        let soonest = self.rtt.min().unwrap_or_default() / 2;
        let bare = bare.then_some(DuplicateAck { now, min_age: soonest, max_age: self.rtt.rto() });
        let Some(probes) = &mut self.probes else { return ProbeAnswer::default() };
        probes.expire(now, &self.board, patience);
        let claim = probes.claim(&segment.tcp, digest.dsack, bare);
        if claim.own_dsack {
            digest.dsack = None;
        }
        claim
    }

    /// Returns a change of the granted rate, as of the newest segment acknowledged.
    fn granted(&mut self, digest: &AckSummary) -> Option<RateAnswer> {
        let (network, (sent_at, _)) = (self.config.grant.as_ref()?, digest.newest?);
        self.grant_state.on_ack(sent_at, network)
    }

    /// True for a duplicate ACK: RFC 5681, section 2, or with SACK any that reports new SACKed data (RFC
    /// 6675, section 2). Without SACK, an ACK that says something else too (`other`) is not a duplicate.
    fn is_duplicate(&self, segment: &Packet, una: u64, other: bool, digest: &AckSummary) -> bool {
        if self.recovery.detection().by_sack() {
            return digest.newly_sacked > 0 && digest.acked == 0;
        }
        digest.acked == 0
            && una == self.board.una()
            && !self.board.is_empty()
            && segment.seq_len() == 0
            && !other
            && !self.timers.runs(Timer::Persist) // it answers a window probe
            && digest.dsack.is_none()
    }

    fn take_sack(&mut self, segment: &Packet, ack: u64, digest: &mut AckSummary) {
        let (una, next, iss) = (self.board.una(), self.board.next(), self.iss);
        let range = |b: &(Seq, Seq)| iss.offset_near(b.0, next).zip(iss.offset_near(b.1, next));
        let blocks = segment.tcp.sack.as_slice();
        let second = blocks.get(1).and_then(range);
        for (i, block) in blocks.iter().enumerate() {
            let Some((l, r)) = range(block) else { continue };
            if l >= r || r > next {
                continue; // invalid, or data we never sent
            }
            // RFC 2883: the first block is a DSACK below the cumulative ACK or inside the second block
            if i == 0 && (r <= ack || second.is_some_and(|(left, right)| left <= l && r <= right)) {
                digest.dsack = Some((l, r));
                continue;
            }
            // loss detection by duplicate ACKs uses only DSACKs
            if l >= una && self.recovery.detection().by_sack() {
                self.board.sack(l, r, &mut self.rate, digest);
            }
        }
    }

    /// Takes an RTT sample: Karn's rule, or timestamps for a retransmission (RFC 7323, section 4).
    fn take_rtt(&mut self, now: Instant, segment: &Packet, digest: &AckSummary) -> Option<Duration> {
        if digest.delivered == 0 {
            return None;
        }
        let rtt = self.rtt_of(now, segment, digest)?;
        self.take_rtt_sample(rtt);
        Some(rtt)
    }

    #[inline]
    pub(crate) fn take_rtt_sample(&mut self, rtt: Duration) {
        let per_round = (self.board.flight(), 2 * self.mss());
        let (una, next) = (self.board.una(), self.board.next());
        self.rtt.take(rtt, (una, next), per_round);
        let seen = self.linux().then(|| self.rtt.seen());
        self.note(Timing::RoundTrip { rtt, una, next, per_round, seen });
        self.stats.rtt.record(rtt);
    }

    pub(crate) fn rtt_of(&mut self, now: Instant, segment: &Packet, digest: &AckSummary) -> Option<Duration> {
        match digest.rtt_from {
            Some(sent_at) if !digest.resent_acked => Some(now.since(sent_at)),
            _ if self.negotiated.timestamps && digest.acked > 0 => {
                let echo = segment.tcp.timestamps?.echo;
                self.clock.chosen_at = now;
                let rtt = Duration::from_millis(u64::from(self.timestamp(now).wrapping_sub(echo)));
                // at least one tick of the timestamp clock; more than the largest RTO is a false echo
                Some(rtt.max(Duration::from_millis(1))).filter(|rtt| *rtt <= self.config.rto.max)
            }
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn advance_round(&mut self, bytes: u64) -> bool {
        let (una, next) = (self.board.una(), self.board.next());
        self.note(Acked { una, next, bytes });
        let has_ended = self.round.advance(una, next);
        self.usage.pipe.on_ack(bytes, has_ended);
        has_ended
    }

    fn recover(&mut self, cx: &mut Cx<'_>, digest: &AckSummary) -> RecoveryResult {
        let window = if self.linux() { self.cwnd().0 } else { 0 };
        let view = AckView { digest, mss: self.mss(), rtt: &self.rtt, window };
        let finding = self.recovery.on_ack(&mut self.board, &view);
        if finding.undo {
            let path = self.path();
            self.cc.on_undo(cx, &path);
            self.rtt.reset_backoff();
            self.stats.undone += 1;
        }
        if let Some(loss) = &finding.loss {
            self.report_loss(cx, loss, 0);
        }
        finding
    }

    /// RFC 8985, section 7.4: if the probe repaired a loss, the scheme responds as to fast recovery.
    fn on_tail_probe_ack(&mut self, cx: &mut Cx<'_>, digest: &AckSummary, bare: bool) {
        if self.tail_probe.on_ack(self.board.una(), digest.dsack.is_some() || bare)
            && self.recovery.episode() == Episode::Open
        {
            let loss = Loss { cause: LossCause::Fast, last_sent: self.last_sent, resends: 0 };
            self.report_loss(cx, &loss, digest.acked);
        }
    }

    /// Reports a loss to the scheme. `acked` bytes were outstanding when it was found and have left since.
    pub(crate) fn report_loss(&mut self, cx: &mut Cx<'_>, loss: &Loss, acked: u64) {
        self.tail_probe.cancel();
        self.announce_reduction();
        let mut path = self.path();
        path.flight += Size(acked);
        self.cc.on_loss(cx, &path, loss);
    }

    /// Reduces the window in fast recovery by the step of one acknowledgment.
    fn lower_window(&mut self, digest: &AckSummary, finding: &RecoveryResult) {
        let reducing = self.recovery.episode() == Episode::Fast || self.recovery.is_reducing();
        if reducing && (digest.delivered > 0 || digest.duplicate) {
            let target = self.cwnd().0;
            let safe = digest.acked > 0 && !finding.lost_more;
            let mss = self.mss();
            self.recovery.reduce(&self.board, digest, target, mss, safe);
        }
    }

    /// Updates timers and counters.
    fn after_ack(&mut self, cx: &Cx<'_>, digest: &AckSummary, finding: &RecoveryResult) {
        self.stats.bytes_acked = Size(self.board.una().saturating_sub(1).min(self.written - 1));
        // RFC 6582: within NewReno's recovery only the first partial ACK restarts the timer; Linux restarts
        // it with each
        let newreno =
            !self.linux() && self.recovery.episode() == Episode::Fast && !self.recovery.detection().by_sack();
        if self.board.is_empty() {
            self.stop_retransmit_timer(cx.now);
            self.disarm_tail_probe(cx.now);
        } else if finding.restart_timer
            || (digest.acked > 0 && !newreno)
            || self.head_was_resent_since(digest)
        {
            self.restart_retransmit_timer(cx.now);
        }
        if digest.delivered > 0 {
            self.disarm_tail_probe(cx.now);
        }
        self.timers.set_or_stop(Timer::Reorder, self.recovery.reorder_deadline());
        if self.fin_queued && self.board.una() >= self.written && self.stats.finished_at.is_none() {
            self.stats.finished_at = Some(cx.now);
            self.limits.stop(cx.now);
        }
    }

    #[inline]
    pub(crate) fn restart_retransmit_timer(&mut self, now: Instant) {
        self.note(Timing::Restart { now, stops: false });
        self.timers.set(Timer::Retransmit, now + self.rtt.rto());
    }

    #[inline]
    pub(crate) fn stop_retransmit_timer(&mut self, now: Instant) {
        self.note(Timing::Restart { now, stops: true });
        self.timers.stop(Timer::Retransmit);
    }

    /// Handles the expiry of RACK's reordering timer.
    pub(crate) fn on_reorder_timer(&mut self, cx: &mut Cx<'_>) {
        let digest = AckSummary { now: cx.now, ..AckSummary::default() };
        let window = if self.linux() { self.cwnd().0 } else { 0 };
        let view = AckView { digest: &digest, mss: self.mss(), rtt: &self.rtt, window };
        let finding = self.recovery.on_reorder_timer(&mut self.board, &view);
        if let Some(loss) = &finding.loss {
            self.report_loss(cx, loss, 0);
            self.recovery.reduce_on_timer(&self.board, self.cwnd().0, self.mss());
            self.restart_retransmit_timer(cx.now);
        }
        self.timers.set_or_stop(Timer::Reorder, self.recovery.reorder_deadline());
    }

    /// Handles a retransmission timeout: RFC 6298, sections 5.4 to 5.7; RFC 9293, section 3.8.3 (giving up).
    pub(crate) fn on_retransmit_timer(&mut self, cx: &mut Cx<'_>) {
        if self.board.is_empty() {
            return;
        }
        self.timeouts_in_a_row += 1;
        if let Some(end) = &mut self.signalling {
            end.timeout();
        }
        if self.timeouts_in_a_row > self.config.max_timeouts && self.config.user_timeout.is_none() {
            self.end(cx.now, Event::TimedOut);
            return;
        }
        self.stats.timeouts += 1;
        // the wait for this timer counts as recovery, although that is only known now
        if self.state.synchronised() {
            let waited = self.rtt.rto();
            self.limits.attribute(Instant(cx.now.0.saturating_sub(waited.0)), cx.now, Limit::Recovery);
        }
        self.rtt.back_off();
        self.apply_pending_too_big(cx.now);
        self.tail_probe.cancel();
        self.disarm_tail_probe(cx.now);
        self.timers.stop(Timer::Reorder);
        let mut path = self.path();
        let loss = self.recovery.on_timeout(&mut self.board, cx.now, self.timeouts_in_a_row > 1);
        path.in_flight = Size(self.recovery.in_flight(&self.board));
        if self.state.synchronised() {
            self.announce_reduction();
            self.cc.on_loss(cx, &path, &loss);
        }
        self.restart_retransmit_timer(cx.now);
    }

    /// Changes the state if our FIN was acknowledged.
    fn closing_states(&mut self, cx: &Cx<'_>) {
        if !self.fin_queued || self.board.una() <= self.written {
            return;
        }
        match self.state {
            State::FinWait1 => self.state = State::FinWait2,
            State::Closing => self.time_wait(cx),
            State::LastAck => {
                self.events.push(Event::Closed);
                self.enter_closed();
            }
            _ => {}
        }
    }

    /// RFC 5681, section 4.1, and RFC 7661, section 4.4: reduces a window that was idle or unused.
    pub(crate) fn validate_window(&mut self, cx: &mut Cx<'_>) {
        if !self.board.is_empty() {
            return;
        }
        let path = self.path();
        match self.config.validation {
            Validation::Keep => {}
            Validation::Restart => {
                let idle = cx.now.since(self.last_sent);
                let answer = idle > self.rtt.rto();
                self.note(Timing::Idle { idle, answer });
                if self.rtt.has_sample() && answer && self.stats.segments_sent > 0 {
                    let cwnd = self.cc.plan(&path).window.0;
                    let initial = Size(u64::from(self.config.initial_window) * self.mss());
                    let halved = self.cwnd_after_idle(cwnd, idle);
                    self.cc.on_restart(cx, &path, initial.max(Size(halved)));
                }
            }
            Validation::Validate => {
                let cwnd = self.cc.plan(&path).window;
                if !self.usage.validated(cx.now, cwnd.0, true) && self.usage.expired(cx.now) {
                    let initial = u64::from(self.config.initial_window) * self.mss();
                    self.cc.on_restart(cx, &path, Size((cwnd.0 / 2).max(initial)));
                }
            }
        }
    }

    /// Returns what limits a sender that has nothing to send: a full send buffer, or the application.
    pub(crate) fn idle_limit(&self) -> Limit {
        if self.config.send_buffer.is_some() && !self.fin_queued && self.send_room() == 0 {
            Limit::SendBuffer
        } else {
            Limit::Application
        }
    }
}
