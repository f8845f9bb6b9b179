//! Processes an arriving segment.
//!
//! Source: RFC 9293, section 3.10.7.4, in its order: acceptability (and PAWS, RFC 7323, section 5), RST, SYN,
//! ACK, text, FIN. A RST or SYN in the window whose sequence number is not exactly the expected one draws a
//! challenge ACK (RFC 5961, sections 3 to 5).

use crate::connection::Connection;
use crate::handshake::reset_for;
use crate::state::{Event, State};
use crate::timers::Timer;
use bentpipe_base::{Cx, Duration, Flags, Instant, Packet, ProbeOption};

/// RFC 5961, section 7: challenge ACKs per interval.
const CHALLENGES: u32 = 10;
const CHALLENGE_INTERVAL: Duration = Duration::from_secs(5);

impl Connection {
    /// Processes one segment that is addressed to this connection.
    #[inline]
    pub fn segment(&mut self, cx: &mut Cx<'_>, segment: &Packet) {
        if self.take_expected(cx, segment) {
            return;
        }
        match self.state {
            State::Closed => self.outgoing = reset_for(cx, segment), // RFC 9293, section 3.10.7.1
            State::SynSent => self.syn_sent(cx, segment),
            _ if self.is_rewritten(segment) => {}
            _ => self.synchronised(cx, segment),
        }
    }

    fn synchronised(&mut self, cx: &mut Cx<'_>, segment: &Packet) {
        let h = &segment.tcp;
        if self.crossing(segment) {
            self.acknowledge_syn(cx, segment);
            self.established(cx.now);
            self.rcv.ack_now();
            return;
        }
        let Some(left) = self.acceptable(cx, segment) else { return };
        if h.flags.has(Flags::RST) {
            self.reset_received(cx, left);
            return;
        }
        if h.flags.has(Flags::SYN) {
            self.challenge_ack(cx); // RFC 5961, section 4.2
            return;
        }
        if !h.flags.has(Flags::ACK) {
            return;
        }
        if self.negotiated.signalling.is_some() {
            self.take_signal(cx, segment);
        }
        if !self.acknowledgment(cx, segment, left) {
            return; // its timestamp must not be used, or PAWS would drop the peer's real segments
        }
        self.peer_activity.heard(cx.now);
        self.take_timestamp(cx, segment, left);
        self.take_probe(segment);
        if segment.seq_len() > 0 {
            self.text(cx, segment, left);
        }
    }

    /// First check: sequence number and PAWS. Returns the stream position of the segment; an unacceptable one
    /// is answered with an ACK and dropped.
    fn acceptable(&mut self, cx: &mut Cx<'_>, segment: &Packet) -> Option<u64> {
        let h = &segment.tcp;
        let len = segment.seq_len();
        let position = self.rcv.position(h.seq);
        if self.negotiated.timestamps && !h.flags.has(Flags::RST) {
            match h.timestamps {
                Some(ts) if self.paws_rejects(cx, ts, h.phases.value) => {
                    // a copy that was overtaken by newer data has an old timestamp
                    self.take_old_text(cx, segment, position);
                    self.take_probe(segment);
                    self.answer_unacceptable(cx, segment);
                    return None;
                }
                // RFC 7323, section 3.2: dropped silently; but a SYN may belong to a new connection and
                // draws a challenge ACK
                None if !h.flags.has(Flags::SYN) => return None,
                _ => {}
            }
        }
        match position {
            Some(left) if self.rcv.acceptable(left, len) => Some(left),
            _ => {
                if !h.flags.has(Flags::RST) {
                    self.unacceptable(cx, segment, position);
                }
                None
            }
        }
    }

    /// Acknowledges an old duplicate, a keep-alive or a zero-window probe.
    fn unacceptable(&mut self, cx: &mut Cx<'_>, segment: &Packet, position: Option<u64>) {
        if self.state == State::TimeWait && segment.tcp.flags.has(Flags::FIN) {
            self.timers.set(Timer::TimeWait, cx.now + self.config.time_wait);
        }
        if self.take_old_text(cx, segment, position) {
            self.take_probe(segment);
            self.linux_takes_timestamp(cx, segment, position);
        }
        // a zero-window probe still carries a valid acknowledgment (RFC 9293, section 3.10.7.4)
        if segment.tcp.flags.has(Flags::ACK) && !segment.tcp.flags.has(Flags::SYN) && self.rcv.room() == 0 {
            self.acknowledgment(cx, segment, position.unwrap_or_default());
        }
        self.answer_unacceptable(cx, segment);
    }

    /// Reports text that has all arrived before (RFC 2883), also if its timestamp is old (RFC 7323, section
    /// 5.3, asks for an ACK; Linux's `tcp_send_dupack` sets the block). Returns false if there is no such
    /// text.
    fn take_old_text(&mut self, cx: &Cx<'_>, segment: &Packet, position: Option<u64>) -> bool {
        let len = u64::from(segment.body.len);
        let Some(left) = position.filter(|left| len > 0 && left + len <= self.rcv.next()) else {
            return false;
        };
        self.rcv.text(cx.now, left, left + len, false);
        true
    }

    /// Acknowledges the segment. One without text draws only a limited number of ACKs: otherwise two ends
    /// that disagree would answer each other for ever.
    fn answer_unacceptable(&mut self, cx: &Cx<'_>, segment: &Packet) {
        if segment.seq_len() > 0 {
            self.rcv.ack_now();
        } else {
            self.challenge_ack(cx);
        }
    }

    /// Linux's `tcp_sequence` accepts a segment that ends at or beyond the last acknowledgment sent, and
    /// `tcp_replace_ts_recent` takes its timestamp. By RFC 7323, section 5.3, it lies outside the window,
    /// and its timestamp is not recorded.
    fn linux_takes_timestamp(&mut self, cx: &Cx<'_>, segment: &Packet, position: Option<u64>) {
        let reaches = |left: &u64| left + u64::from(segment.body.len) >= self.clock.last_ack_sent;
        if let Some(left) = position.filter(reaches)
            && self.linux()
            && self.acknowledged(segment).is_some()
        {
            self.take_timestamp(cx, segment, left);
        }
    }

    /// Echoes a probe, whether it fills a hole or has arrived before.
    const fn take_probe(&mut self, segment: &Packet) {
        if let ProbeOption::Probe(number) = segment.tcp.probe
            && self.negotiated.probe_option
        {
            self.rcv.probed(number);
        }
    }

    /// Handles a RST: only the expected sequence number resets the connection (RFC 5961, section 3.2).
    fn reset_received(&mut self, cx: &Cx<'_>, left: u64) {
        if left == self.rcv.next() {
            // in TIME-WAIT everything has arrived already, so this is no failure
            self.end(cx.now, if self.state == State::TimeWait { Event::Closed } else { Event::Reset });
        } else {
            self.challenge_ack(cx);
        }
    }

    /// True for the SYN/ACK of a simultaneous open (RFC 9293, figure 7): an old SYN with a new ACK.
    fn crossing(&self, segment: &Packet) -> bool {
        let h = &segment.tcp;
        self.state == State::SynReceived
            && h.flags.has(Flags::SYN.with(Flags::ACK))
            && !h.flags.has(Flags::RST)
            && h.ack == self.iss.at(1)
            && self.board.next() == 1
            && self.rcv.position(h.seq) == Some(0)
    }

    pub(crate) fn challenge_ack(&mut self, cx: &Cx<'_>) {
        if cx.now.since(self.challenges.0) >= CHALLENGE_INTERVAL {
            self.challenges = (cx.now, 0);
        }
        if self.challenges.1 < CHALLENGES {
            self.challenges.1 += 1;
            self.rcv.ack_now();
        }
    }

    /// Seventh and eighth check: takes text and FIN.
    pub(crate) fn text(&mut self, cx: &Cx<'_>, segment: &Packet, left: u64) {
        if !matches!(self.state, State::Established | State::FinWait1 | State::FinWait2) {
            self.after_the_end(cx, segment);
            return;
        }
        self.congestion_experienced(segment);
        self.take_receiver_rtt(cx.now, segment);
        if self.linux() {
            let text = (u64::from(segment.body.len), segment.tcp.flags.has(Flags::PSH));
            let srtt = self.negotiated.sack.then(|| self.rtt.srtt());
            self.rcv.quick_acks(cx.now, (self.rtt.rto(), srtt), self.mss(), text);
        }
        let was_closed = self.rcv.fin_reached();
        let fin = segment.tcp.flags.has(Flags::FIN);
        self.rcv.text(cx.now, left, left + u64::from(segment.body.len), fin);
        if self.rcv.fin_reached() && !was_closed {
            self.events.push(Event::PeerClosed);
            self.fin_received(cx);
        }
    }

    /// The peer's stream has ended: a FIN is acknowledged again and restarts TIME-WAIT. Text is ignored;
    /// Linux (`tcp_timewait_state_process`) treats it in TIME-WAIT like a FIN.
    fn after_the_end(&mut self, cx: &Cx<'_>, segment: &Packet) {
        let waits = self.state == State::TimeWait;
        if segment.tcp.flags.has(Flags::FIN) || (waits && self.linux()) {
            self.rcv.ack_now();
            if waits {
                self.timers.set(Timer::TimeWait, cx.now + self.config.time_wait);
            }
        }
    }

    /// Takes an RTT sample as a pure receiver sees it: a segment of at least half the MSS answers the
    /// acknowledgment whose timestamp it echoes. Echoes older than the largest RTO are false, or from before
    /// a pause.
    #[inline]
    pub(crate) fn take_receiver_rtt(&mut self, now: Instant, segment: &Packet) {
        let full = u64::from(segment.body.len) >= u64::from(self.negotiated.mss) / 2;
        let Some(ts) = segment.tcp.timestamps.filter(|t| full && self.rcv.window.wants_rtt(t.echo)) else {
            return;
        };
        let rtt = Duration::from_millis(u64::from(self.timestamp(now).wrapping_sub(ts.echo)));
        if rtt <= self.config.rto.max {
            self.rcv.window.on_echo(ts.echo, rtt.max(Duration::from_millis(1)));
        }
    }

    fn fin_received(&mut self, cx: &Cx<'_>) {
        self.state = match self.state {
            State::Established => State::CloseWait,
            State::FinWait1 => State::Closing,
            State::FinWait2 => {
                self.time_wait(cx);
                State::TimeWait
            }
            other => other,
        };
    }

    pub(crate) fn time_wait(&mut self, cx: &Cx<'_>) {
        self.timers.stop_all();
        self.timers.set(Timer::TimeWait, cx.now + self.config.time_wait);
        self.state = State::TimeWait;
    }
}
