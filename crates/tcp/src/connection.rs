//! A TCP connection: its state and its public functions.
//!
//! A driver calls `segment` (a segment arrived), `icmp` (an ICMP message about one of ours arrived), `timer`
//! (a deadline passed), `transmit` (what may be sent now; call until `None`) and `deadline` (when to call
//! again). An application calls `write`, `close`, `readable`, `consume`, `abort`, `cork` and `event`. None
//! of them does I/O or reads a clock. The work is done in `input.rs` (RFC 9293's segment processing),
//! `acks.rs` (acknowledgments), `output.rs` (what to send next), `handshake.rs`, `receiver.rs`, `board.rs`,
//! `recovery/` and `cc/`. Payload is not handled here: a segment names a range of the stream, and the driver
//! copies the bytes.

use crate::board::Scoreboard;
use crate::cc::law::ControllerStart;
use crate::cc::{self, CongestionControl, Path, ProbeSignal};
use crate::config::{Config, Validation};
use crate::delivery::DeliveryRate;
use crate::ecn::EcnState;
use crate::grants::GrantState;
use crate::keep_alive::PeerActivity;
use crate::limits::{Limit, LimitClock};
use crate::nagle::Cork;
use crate::options::NegotiatedOptions;
use crate::pacer::Pacer;
use crate::prediction::ShortWay;
use crate::probes::Probes;
use crate::receiver::Receiver;
use crate::recovery::{Recovery, TailProbe};
use crate::rtt::RttEstimator;
use crate::signalling::End;
use crate::stamps::TimestampClock;
use crate::state::{Event, RandomValues, State, Stats, Tuple};
use crate::timers::{Timer, Timers};
use crate::tso_linux::TsoBurst;
use crate::usage::WindowUsage;
use crate::window::ReceiveWindow;
use bentpipe_base::{Cx, Duration, Instant, Pkt, Seq, Size};
use std::sync::Arc;

/// One end of a connection.
#[derive(Debug)]
pub struct Connection {
    pub(crate) config: Arc<Config>,
    pub(crate) tuple: Tuple,
    pub(crate) state: State,
    pub(crate) negotiated: NegotiatedOptions,
    pub(crate) iss: Seq,
    /// Position after the last byte the application wrote.
    pub(crate) written: u64,
    /// The application closed: a FIN follows the last byte.
    pub(crate) fin_queued: bool,
    /// Position after the last byte the peer's window allows.
    pub(crate) peer_right_edge: u64,
    /// Largest window the peer ever offered.
    pub(crate) peer_window_max: u64,
    /// Sequence and acknowledgment positions of the last window update (RFC 9293: SND.WL1, SND.WL2).
    pub(crate) window_update: (u64, u64),
    pub(crate) board: Scoreboard,
    pub(crate) recovery: Recovery,
    pub(crate) cc: Box<dyn CongestionControl>,
    pub(crate) rtt: RttEstimator,
    pub(crate) rate: DeliveryRate,
    pub(crate) usage: WindowUsage,
    pub(crate) grant_state: GrantState,
    /// Rate signalling, if configured.
    pub(crate) signalling: Option<End>,
    pub(crate) pacer: Pacer,
    pub(crate) timers: Timers,
    pub(crate) tail_probe: TailProbe,
    /// Probe segments and copies that were sent, if the scheme sends any.
    pub(crate) probes: Option<Box<Probes>>,
    pub(crate) round: Round,
    pub(crate) rcv: Receiver,
    pub(crate) clock: TimestampClock,
    pub(crate) ecn: EcnState,
    pub(crate) send: SendFlags,
    pub(crate) limits: LimitClock,
    pub(crate) last_sent: Instant,
    /// An ICMP message that waits for a timeout: the longest segment, and where the segment it quotes begins.
    pub(crate) pending_too_big: Option<(u16, u64)>,
    pub(crate) peer_activity: PeerActivity,
    pub(crate) cork: Cork,
    pub(crate) timeouts_in_a_row: u32,
    pub(crate) persist_backoff: u32,
    /// RFC 5961, section 7: challenge ACKs sent since this time.
    pub(crate) challenges: (Instant, u32),
    /// A RST or keep-alive, ready to be sent.
    pub(crate) outgoing: Option<Pkt>,
    pub(crate) events: Vec<Event>,
    pub(crate) stats: Stats,
    pub(crate) random_values: RandomValues,
    pub(crate) short_way: ShortWay,
}

/// Round trips, counted by data sent and acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Round {
    pub(crate) number: u64,
    /// The round ends when this position is acknowledged.
    pub(crate) end: u64,
}

impl Round {
    /// Data up to `una` is acknowledged and up to `next` sent. True if the round has ended.
    pub(crate) fn advance(&mut self, una: u64, next: u64) -> bool {
        let ended = una >= self.end;
        if ended {
            self.number += 1;
            self.end = next.max(una + 1);
        }
        ended
    }
}

/// What is due to be sent besides the stream, and counters of the sender.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SendFlags {
    /// A zero-window probe is due.
    pub(crate) persist: bool,
    /// A tail loss probe is due.
    pub(crate) tail_probe: bool,
    /// A RST is due.
    pub(crate) reset: bool,
    /// Our SYN is due again, now with an ACK (simultaneous open).
    pub(crate) syn: bool,
    /// Our SYN does not carry our request for a rate.
    pub(crate) hidden_request: bool,
    /// Sender jitter: whether new data may be sent.
    pub(crate) jitter_state: JitterState,
    /// Bytes sent since the last acknowledgment.
    pub(crate) burst: u64,
    /// Where the last new segment shorter than the MSS ends; 0 if there was none.
    pub(crate) partial_segment_end: u64,
    /// Linux: the TSO burst being sent.
    pub(crate) tso_burst: TsoBurst,
}

/// Sender jitter: whether new data may be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum JitterState {
    #[default]
    Closed,
    Waiting,
    Open,
}

impl Connection {
    /// Opens actively: the next `transmit` sends the SYN.
    pub fn connect(cx: &Cx<'_>, tuple: Tuple, config: Arc<Config>, chance: RandomValues) -> Self {
        let agreed = NegotiatedOptions::none(&config);
        let mss = Size(u64::from(agreed.mss));
        let window = ReceiveWindow::new(config.receive_buffer, config.reserve, 0);
        let cc = ControllerStart { mss, headers: agreed.headers(), config: &config }.build();
        let mut board = Scoreboard::default();
        board.keep_rates(cc.uses_rates());
        Self {
            tuple,
            state: State::SynSent,
            negotiated: agreed,
            iss: chance.isn,
            written: 1,
            fin_queued: false,
            peer_right_edge: 1,
            peer_window_max: 0,
            window_update: (0, 0),
            board,
            recovery: Recovery::new(&config, false, mss.0),
            cc,
            rtt: RttEstimator::new(config.stack, config.rto),
            rate: DeliveryRate::default(),
            usage: WindowUsage::default(),
            grant_state: GrantState::default(),
            signalling: End::new(&config),
            pacer: Pacer::default(),
            timers: Timers::default(),
            tail_probe: TailProbe::default(),
            probes: None,
            round: Round::default(),
            rcv: Receiver::new(Seq(0), window, config.delayed_ack),
            clock: TimestampClock::default(),
            ecn: EcnState::default(),
            send: SendFlags::default(),
            limits: LimitClock::new(cx.now),
            last_sent: cx.now,
            pending_too_big: None,
            peer_activity: PeerActivity::new(cx.now),
            cork: Cork::default(),
            timeouts_in_a_row: 0,
            persist_backoff: 0,
            challenges: (Instant::ZERO, 0),
            outgoing: None,
            events: Vec::new(),
            stats: Stats::default(),
            random_values: chance,
            short_way: ShortWay::default(),
            config,
        }
    }

    /// Hands over `bytes` of the application's stream; returns how many the send buffer took.
    pub fn write(&mut self, bytes: u64) -> u64 {
        if self.fin_queued || matches!(self.state, State::Closed | State::TimeWait) {
            return 0;
        }
        let taken = bytes.min(self.send_room());
        self.written += taken;
        taken
    }

    /// Returns how many bytes the send buffer would take now.
    #[inline]
    pub fn send_room(&self) -> u64 {
        let held = self.written - self.board.una().max(1);
        self.config.send_buffer.map_or(u64::MAX / 4 - self.written, |b| b.0.saturating_sub(held))
    }

    /// Sets the memory for the bytes of both directions: a send buffer only grows, and an auto-tuned receive
    /// window grows within its part, to at least `opened` at once as far as that fits.
    pub fn allow(&mut self, send: Size, receive: Size, opened: Size) {
        if self.config.send_buffer.is_some_and(|before| before < send) {
            Arc::make_mut(&mut self.config).send_buffer = Some(send);
        }
        self.rcv.window.allow(receive.0, opened.0);
    }

    /// Returns the receive window.
    pub const fn window(&self) -> &ReceiveWindow {
        &self.rcv.window
    }

    /// Closes our direction: a FIN follows what was written. The peer may go on sending.
    pub fn close(&mut self) {
        if self.fin_queued {
            return;
        }
        self.fin_queued = true;
        match self.state {
            // in SYN-RECEIVED the FIN waits for the handshake
            State::Established => self.state = State::FinWait1,
            State::CloseWait => self.state = State::LastAck,
            State::SynSent => self.enter_closed(),
            _ => {}
        }
    }

    /// Ends the connection with a RST.
    pub fn abort(&mut self) {
        if self.state != State::Closed {
            self.send.reset = self.state != State::SynSent && self.state != State::TimeWait;
            self.enter_closed();
        }
    }

    /// Returns how many in-order bytes the application can read.
    #[inline]
    pub fn readable(&self) -> u64 {
        self.rcv.readable()
    }

    /// Records that the application read `bytes`, which opens the receive window.
    #[inline]
    pub fn consume(&mut self, now: Instant, bytes: u64) {
        if self.rcv.consume(now, bytes, self.rtt.srtt(), self.linux()) && self.state.synchronised() {
            self.rcv.ack_now();
        }
    }

    /// Returns the oldest event for the application, if any.
    #[inline]
    pub fn event(&mut self) -> Option<Event> {
        if self.events.is_empty() { None } else { Some(self.events.remove(0)) }
    }

    /// Returns when `timer` must be called next; [`Instant::NEVER`] when only the peer or the application can
    /// cause something.
    #[inline]
    pub fn deadline(&self) -> Instant {
        self.timers.earliest()
    }

    /// True if the next deadline is that of a timer that runs in case nothing comes, and most often moves on.
    #[inline]
    pub fn rests(&mut self) -> bool {
        self.timers.first_rests()
    }

    /// True if `timer` need not be called before `at`; a false answer may be wrong.
    #[inline]
    pub const fn none_due_before(&self, at: Instant) -> bool {
        self.timers.none_before(at)
    }

    /// Returns when `timer` must be called next if that is before `known`.
    #[inline]
    pub fn deadline_before(&mut self, known: Instant) -> Option<Instant> {
        if self.timers.none_before(known) {
            return None;
        }
        Some(self.timers.settle()).filter(|at| *at < known)
    }

    /// Returns the same with its reason, for display.
    pub fn next_timer(&self) -> Option<(Instant, Timer)> {
        self.timers.next()
    }

    /// Handles every deadline that has passed. An early call does nothing; true if there was one.
    pub fn timer(&mut self, cx: &mut Cx<'_>) -> bool {
        let mut any = false;
        while let Some(timer) = self.timers.take_due(cx.now) {
            any = true;
            match timer {
                Timer::Retransmit => self.on_retransmit_timer(cx),
                Timer::Persist => {
                    self.persist_backoff += 1;
                    self.send.persist = true;
                }
                Timer::DelayedAck => self.rcv.delayed(),
                Timer::Pace | Timer::Probe => {}
                Timer::Opportunity => self.send.jitter_state = JitterState::Open,
                Timer::Reorder => self.on_reorder_timer(cx),
                Timer::TailProbe => {
                    self.send.tail_probe = true;
                    self.restart_retransmit_timer(cx.now); // RFC 8985, section 7.3
                }
                Timer::TimeWait => {
                    self.events.push(Event::Closed);
                    self.enter_closed();
                }
                Timer::Alive => self.on_alive_timer(cx),
                Timer::Cork => self.uncork(),
            }
        }
        any
    }

    /// Closes the connection and tells the application why.
    pub(crate) fn end(&mut self, now: Instant, why: Event) {
        self.events.push(why);
        self.limits.stop(now);
        self.enter_closed();
    }

    pub(crate) fn enter_closed(&mut self) {
        self.state = State::Closed;
        self.timers.stop_all();
    }

    /// Returns what the connection knows of the path.
    #[inline]
    pub fn path(&self) -> Path {
        Path {
            mss: Size(u64::from(self.negotiated.mss)),
            in_flight: Size(self.recovery.in_flight(&self.board)),
            flight: Size(self.recovery.flight(&self.board)),
            peer_window: Size(self.peer_right_edge.saturating_sub(self.board.una())),
            srtt: self.rtt.srtt(),
            rttvar: self.rtt.rttvar(),
            rtt_min: self.rtt.min().unwrap_or_default(),
            round: self.round.number,
            una: self.board.una(),
            next: self.board.next(),
            delivered: self.rate.delivered(),
            lost: self.board.marked(),
            unsent: self.fin_queued.then(|| Size(self.written.saturating_sub(self.board.next()))),
            probes: self
                .probes
                .as_ref()
                .map_or(ProbeSignal::None, |p| p.signal_during(self.recovery.episode())),
        }
    }

    #[inline]
    pub(crate) fn mss(&self) -> u64 {
        u64::from(self.negotiated.mss)
    }

    /// Returns what limits the sender. The window may grow only under [`Limit::CongestionWindow`].
    pub(crate) fn growth_limit(&mut self, now: Instant) -> Limit {
        let cwnd = self.cc.plan(&self.path()).window.0;
        let slow_start = self.cc.ssthresh().is_none_or(|s| cwnd < s.0);
        self.growth_limit_of(now, cwnd, slow_start)
    }

    /// The same if the scheme's window is `cwnd`.
    #[inline]
    pub(crate) fn growth_limit_of(&mut self, now: Instant, cwnd: u64, slow_start: bool) -> Limit {
        let used = self.usage.cwnd_limited(cwnd, slow_start);
        let is_kept = self.linux() || self.config.validation != Validation::Validate;
        let validated = is_kept || self.usage.validated(now, cwnd, used);
        match self.limits.current() {
            _ if used && validated => Limit::CongestionWindow,
            Limit::CongestionWindow => Limit::Application,
            other => other,
        }
    }

    /// Reads what the next acknowledgment will use, so that the memory is on its way to the cache while
    /// something else is done. Returns a number that depends on all of it.
    #[inline]
    pub fn touch_sender(&self) -> u64 {
        let ends = |seg: Option<&crate::board::Sent>| seg.map_or(0, |seg| seg.end);
        let board =
            self.board.una() ^ self.board.marked() ^ ends(self.board.get(0)) ^ ends(self.board.last());
        let state =
            self.written ^ self.recovery.flight(&self.board) ^ self.rtt.srtt().0 ^ self.rate.delivered();
        let timers = self.timers.touch() ^ self.round.end ^ self.clock.last_ack_sent ^ self.send.burst;
        let counted = self.stats.segments_sent ^ self.stats.bytes_acked.0 ^ self.stats.rtt.count();
        let more = self.usage.touch() ^ self.limits.touch() ^ self.last_sent.0 ^ u64::from(self.iss.0);
        let plan = self.cc.window_only().map_or(0, |window| window.0);
        board ^ state ^ timers ^ counted ^ more ^ plan ^ self.rcv.next() ^ self.rcv.window.right_edge()
    }

    /// The same for the next data.
    #[inline]
    pub fn touch_receiver(&self) -> u64 {
        let state = self.written ^ self.board.una() ^ u64::from(self.iss.0) ^ self.timers.touch();
        let received = self.rcv.next() ^ self.rcv.window.right_edge() ^ self.rcv.touch();
        state ^ received ^ self.clock.last_ack_sent ^ self.limits.touch() ^ u64::from(self.tuple.remote.1)
    }

    /// Returns the state (RFC 9293, figure 5).
    pub const fn state(&self) -> State {
        self.state
    }
    /// Returns the two ends.
    pub const fn tuple(&self) -> Tuple {
        self.tuple
    }
    /// Returns the options in force.
    pub const fn agreed(&self) -> &NegotiatedOptions {
        &self.negotiated
    }
    /// Returns the counters.
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }
    /// Returns the time under each limit up to `now`, in the order of [`Limit::ALL`].
    pub fn limited_by(&self, now: Instant) -> [Duration; Limit::COUNT] {
        self.limits.spent(now)
    }
    /// Returns how many in-order bytes ever arrived from the peer.
    #[inline]
    pub fn received(&self) -> u64 {
        self.rcv.received()
    }
    /// True once the peer's FIN and everything before it has arrived.
    pub fn peer_closed(&self) -> bool {
        self.rcv.fin_reached()
    }
    /// Returns how many bytes are written and not yet acknowledged.
    #[inline]
    pub fn unacknowledged(&self) -> u64 {
        self.written.saturating_sub(self.board.una().max(1))
    }
    /// Returns the congestion window in bytes.
    pub fn cwnd(&self) -> Size {
        self.cc.plan(&self.path()).window
    }
    /// Returns the slow-start threshold, where the scheme has one.
    pub fn ssthresh(&self) -> Option<Size> {
        self.cc.ssthresh()
    }
    /// Returns what the scheme fell back to, if it did.
    pub fn fallback(&self) -> Option<cc::Fallback> {
        self.cc.fallback()
    }
    /// Returns the round-trip time estimates.
    pub const fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }
    /// Returns what limits the sender now.
    pub const fn limit(&self) -> Limit {
        self.limits.current()
    }
    /// Returns the state of the probe segments, where the scheme sends some.
    pub fn probes(&self) -> Option<&Probes> {
        self.probes.as_deref()
    }
    /// Returns the receiving half.
    pub const fn receiver(&self) -> &Receiver {
        &self.rcv
    }
    /// Returns the scoreboard.
    pub const fn scoreboard(&self) -> &Scoreboard {
        &self.board
    }
    /// Returns the configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }
}
