//! Opening a connection.
//!
//! Source: RFC 9293, sections 3.5 and 3.10.7.3. A passive open has two phases, so that a proxy can first ask
//! the other side: an [`Offer`] holds the peer's SYN until it is completed (SYN/ACK) or refused (RST).
//! Simultaneous open needs no code of its own beyond answering a SYN in SYN-SENT.

use crate::board::AckSummary;
use crate::cc::law::ControllerStart;
use crate::config::{Config, Stack};
use crate::connection::Connection;
use crate::options::NegotiatedOptions;
use crate::probes::Probes;
use crate::receiver::Receiver;
use crate::recovery::Recovery;
use crate::signalling::SynSignal;
use crate::state::{Event, RandomValues, State, Tuple};
use crate::window::ReceiveWindow;
use bentpipe_advice::negotiation::Encoding;
use bentpipe_base::{Cx, Flags, Instant, IpVersion, Packet, Pkt, Size, TcpHeader};
use std::sync::Arc;

/// A peer's SYN that waits for a decision.
#[derive(Clone, Debug)]
pub struct Offer {
    tuple: Tuple,
    syn: TcpHeader,
    /// What it says about rates, if it shows that the peer signals.
    signal: Option<SynSignal>,
    config: Arc<Config>,
}

impl Offer {
    /// Takes a SYN. Returns `None` if the segment is not one (RFC 9293, section 3.10.7.2), or if it also
    /// carries a FIN and the host is a Linux host (`tcp_rcv_state_process`).
    pub fn new(syn: &Packet, config: Arc<Config>) -> Option<Self> {
        let flags = syn.tcp.flags;
        let ends = flags.has(Flags::FIN) && config.stack == Stack::Linux;
        if !flags.has(Flags::SYN) || flags.has(Flags::ACK) || flags.has(Flags::RST) || ends {
            return None;
        }
        let tuple = Tuple { local: (syn.dst, syn.dport), remote: (syn.src, syn.sport) };
        let signal = SynSignal::of(&config, syn);
        Some(Self { tuple, syn: syn.tcp.clone(), signal, config })
    }

    /// Returns the two ends.
    pub const fn tuple(&self) -> Tuple {
        self.tuple
    }

    /// Returns the SYN's header.
    pub const fn syn(&self) -> &TcpHeader {
        &self.syn
    }

    /// Accepts: the next `transmit` sends the SYN/ACK.
    pub fn complete(self, cx: &mut Cx<'_>, chance: RandomValues) -> Connection {
        let mut c = Connection::connect(cx, self.tuple, self.config, chance);
        c.state = State::SynReceived;
        c.take_syn(cx, &self.syn, self.signal.as_ref(), false);
        c
    }

    /// Refuses: returns the RST to send.
    pub fn refuse(self, cx: &mut Cx<'_>) -> Pkt {
        let mut rst = cx.packet();
        set_addresses(&mut rst, self.tuple, self.config.ip);
        rst.tcp.flags = Flags::RST.with(Flags::ACK);
        rst.tcp.ack = self.syn.seq.at(1);
        rst.seal();
        rst
    }
}

/// Returns the RST that a listener sends for a segment other than a SYN (RFC 9293, section 3.10.7.2): only
/// an acknowledgment draws one.
pub fn reset_in_listen(cx: &mut Cx<'_>, segment: &Packet) -> Option<Pkt> {
    if segment.tcp.flags.has(Flags::ACK) { reset_for(cx, segment) } else { None }
}

/// Returns the RST for a segment that has neither connection nor listener (RFC 9293, section 3.10.7.1);
/// `None` for a RST.
pub fn reset_for(cx: &mut Cx<'_>, segment: &Packet) -> Option<Pkt> {
    if segment.tcp.flags.has(Flags::RST) {
        return None;
    }
    let mut rst = cx.packet();
    let tuple = Tuple { local: (segment.dst, segment.dport), remote: (segment.src, segment.sport) };
    set_addresses(&mut rst, tuple, segment.ip);
    if segment.tcp.flags.has(Flags::ACK) {
        rst.tcp.flags = Flags::RST;
        rst.tcp.seq = segment.tcp.ack;
    } else {
        rst.tcp.flags = Flags::RST.with(Flags::ACK);
        rst.tcp.ack = segment.tcp.seq.at(segment.seq_len());
    }
    rst.seal();
    Some(rst)
}

/// Fills in addresses, ports, the IP version and the hop limit.
pub(crate) const fn set_addresses(packet: &mut Packet, tuple: Tuple, ip: IpVersion) {
    packet.src = tuple.local.0;
    packet.sport = tuple.local.1;
    packet.dst = tuple.remote.0;
    packet.dport = tuple.remote.1;
    packet.ip = ip;
    packet.hops = 64;
}

impl Connection {
    /// Takes the peer's SYN: options, initial sequence number, first window, and what it says about rates if
    /// it shows that the peer signals. `is_answer`: it acknowledges our SYN.
    pub(crate) fn take_syn(
        &mut self,
        cx: &mut Cx<'_>,
        syn: &TcpHeader,
        signal: Option<&SynSignal>,
        is_answer: bool,
    ) {
        let now = cx.now;
        let encoding = self.signalling.as_ref().and_then(|end| end.agreed(signal));
        self.negotiated = NegotiatedOptions::from_syn(&self.config, syn, encoding);
        let window = ReceiveWindow::new(
            self.config.receive_buffer,
            self.config.reserve,
            self.negotiated.receive_scale,
        );
        self.rcv = Receiver::new(syn.seq, window, self.config.delayed_ack);
        self.recovery = Recovery::new(&self.config, self.negotiated.sack, self.mss());
        let (mss, headers) = (Size(self.mss()), self.negotiated.headers());
        self.cc = ControllerStart { mss, headers, config: &self.config }.build();
        self.board.keep_rates(self.cc.uses_rates());
        self.take_first_answer(cx, signal, is_answer);
        if self.config.scheme.copies() {
            let seed = u64::from(self.random_values.isn.0) << 32 | u64::from(self.random_values.timestamp);
            let signal = Probes::signal_of(&self.negotiated, self.config.scheme.probes());
            self.probes = Some(Box::new(Probes::new(signal, seed)));
        }
        if let Some(ts) = syn.timestamps
            && self.negotiated.timestamps
        {
            (self.clock.recent, self.clock.recent_phase) = (ts.value, syn.phases.value);
            self.clock.recent_at = now;
        }
        // RFC 7323, section 2.2: the window of a SYN is never scaled
        self.peer_right_edge = self.board.una().max(1) + u64::from(syn.window);
        self.peer_window_max = u64::from(syn.window);
        self.window_update = (0, self.board.una());
        self.clock.last_ack_sent = 1;
    }

    /// Handles a segment in SYN-SENT (RFC 9293, section 3.10.7.3).
    pub(crate) fn syn_sent(&mut self, cx: &mut Cx<'_>, segment: &Packet) {
        let h = &segment.tcp;
        let ack_ok = h.flags.has(Flags::ACK) && h.ack == self.iss.at(1) && self.board.next() >= 1;
        if h.flags.has(Flags::ACK) && !ack_ok {
            if !h.flags.has(Flags::RST)
                && let Some(rst) = reset_for(cx, segment)
            {
                self.outgoing = Some(rst);
            }
            return;
        }
        if h.flags.has(Flags::RST) {
            if ack_ok {
                self.events.push(Event::Reset); // refused
                self.enter_closed();
            }
            return;
        }
        if !h.flags.has(Flags::SYN) {
            return;
        }
        let signal = SynSignal::of(&self.config, segment);
        self.take_syn(cx, h, signal.as_ref(), ack_ok);
        self.rcv.ack_now();
        if ack_ok {
            self.acknowledge_syn(cx, segment);
            self.established(cx.now);
            // what follows the SYN may be a structure whose DSCP the path has rewritten; data come again
            if segment.seq_len() > 1 && !self.linux() && !self.may_have_structures_in_payload() {
                // data with the SYN, which Linux drops without Fast Open (`tcp_rcv_synsent_state_process`)
                self.rcv.window.advertise_syn(self.rcv.next()); // our SYN advertised it
                self.text(cx, segment, 1);
            }
        } else {
            // simultaneous open: our SYN is resent, now with an ACK; the peer resends data behind its SYN
            self.state = State::SynReceived;
            self.send.syn = true;
        }
    }

    /// Our SYN is acknowledged: takes the first RTT sample, by timestamps only if it was resent (Karn).
    pub(crate) fn acknowledge_syn(&mut self, cx: &mut Cx<'_>, segment: &Packet) {
        let mut digest = AckSummary { now: cx.now, ..AckSummary::default() };
        self.board.acknowledge(1, &mut self.rate, &mut digest);
        if let Some(rtt) = self.rtt_of(cx.now, segment, &digest) {
            self.rtt.take(rtt, (self.board.una(), self.board.next()), (1, 1));
            self.stats.rtt.record(rtt);
        }
        self.rtt.reset_backoff();
        if self.timeouts_in_a_row > 0 {
            self.rtt.after_lost_syn();
        }
        if self.timeouts_in_a_row > 1 {
            let path = self.path(); // RFC 5681, section 3.1, as amended by RFC 6928, section 2
            self.cc.on_restart(cx, &path, Size(self.mss()));
        }
        self.timeouts_in_a_row = 0;
        self.timers.stop(crate::timers::Timer::Retransmit);
        self.recovery = Recovery::new(&self.config, self.negotiated.sack, self.mss());
        self.peer_right_edge = self.peer_right_edge.max(1);
        self.round.end = 1;
    }

    /// The window of a SYN is never scaled (RFC 7323, section 2.2), so a peer with a granted rate could send
    /// only 64 KB in the first round trip. The end that answers a SYN therefore also sends an ACK with the
    /// real window.
    pub(crate) fn follow_syn(&mut self) {
        let clipped = self.negotiated.scaling && self.config.receive_buffer.initial().0 > u64::from(u16::MAX);
        let granted = self.config.grant.is_some() && self.config.scheme.growth.algorithm().grants;
        let jumps = matches!(self.negotiated.signalling, Some(Encoding::Tia1039 | Encoding::QuickStart));
        if (granted || jumps) && self.state == State::SynReceived && clipped {
            self.rcv.ack_now();
        }
    }

    pub(crate) fn established(&mut self, now: Instant) {
        // the application may have closed while still opening
        self.state = if self.fin_queued { State::FinWait1 } else { State::Established };
        self.stats.established_at.get_or_insert(now);
        self.peer_activity.heard(now);
        self.restart_user_timeout(now);
        self.allow_short_way();
        self.events.push(Event::Established);
    }
}
