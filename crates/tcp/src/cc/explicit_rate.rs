//! Explicit rate: the sender's part.
//!
//! Source: L. G. Roberts' explicit-rate TCP with in-band QoS signalling, TIA-1039 (2006). The network grants
//! a rate AR, and the sender uses it:
//!   pace = AR from the first segment on: no slow start, no reduction on loss; cwnd = 3 AR RTT + 32 segments
//!     is never the limit
//!   a lower AR applies at once; a higher one only as the answer to a request, which every 128th segment may
//!     carry
//!   share lost > threshold: the network does not have what it grants (a router without signalling drops);
//!     the sender becomes a standard TCP
//! The source does not define how to measure the loss, when to request more, what a timeout means and how to
//! return to the grant. Here: the loss must exceed the threshold by five standard deviations over max(4096
//! packets, 4 RTT), or by far in each of four blocks (`meter.rs`), or a trial shows that the sender itself is
//! the cause of less (`trial.rs`); the sender requests more if the application is not the limit and 90 % of
//! AR are used; a timeout keeps the rate, a second one in a row falls back to standard TCP; from there a
//! new request is sent once less than half of the threshold was lost over max(128 packets, 10 RTT), four
//! times as late after each further failure, up to 640 RTT, and up to twice that at random; after 2 s of
//! silence, since the last segment or since the grant, the sender requests the rate again before it sends
//! more than the initial window; at a low rate it requests more every 2 s, since 128 segments take longer.
//! AR counts IP packets with headers, so the payload rate is AR mss / (mss + headers), and a short segment
//! counts its headers as well. (Age of a grant, every 2 s and short segments: only where the rate is
//! signalled in packets.) Unused granted capacity is used too: when all data is sent, and in the first ten
//! rounds while the peer's window is full, each unacknowledged segment is sent once more at the granted
//! rate, the newest first (`copies`), so a loss there is repaired without waiting a round trip. The
//! signalling is not here: `signalling/` carries it in packets, or `grants.rs` takes its place. Until the
//! first answer, and without one, the sender is a standard TCP. Defaults: threshold 10 % (20 % for radio),
//! CUBIC as standard TCP (both configured with the signalling or the grant); a request is for twice AR.

mod meter;
#[cfg(test)]
mod tests;
mod trial;

use super::law::{Algorithm, ControllerStart, Params as _};
use super::{
    Ack, CongestionControl, Fallback, Loss, LossCause, Path, Plan, ProbeCarry, ProbeClock, ProbeRequest,
    ProbeSignal, SentSegment, payload_rate,
};
use crate::grants::{FallbackScheme, GrantConfig};
use crate::params;
use bentpipe_advice::negotiation::RateAnswer;
use bentpipe_base::{Cx, Dscp, Duration, Instant, Rate, Size, mix};
use meter::LossMeter;
use trial::{Trials, Verdict};

/// cwnd in multiples of AR times RTT, plus segments: each retransmission stalls the window for more than a
/// round trip.
const WINDOW: (f64, u64) = (3.0, 32);
/// RTT before the first sample: RFC 6298's first timeout.
const UNKNOWN_RTT: Duration = Duration::from_secs(1);
/// Segments between requests.
const REQUEST_EVERY: u64 = 128;
/// Share of AR that must be used for a request.
const USED: f64 = 0.9;
/// Idle time after which the grant must be requested again; longest time between requests.
const SILENCE: Duration = Duration::from_secs(2);
/// Round trips with less than half of the threshold lost before a new request.
const QUIET_ROUNDS: u64 = 10;
/// Longest time to the next request or trial, in multiples of the first: 640 round trips.
const LONGEST_PAUSE: u64 = 64;
/// Largest burst in segments.
const BURST: u64 = 2;
/// Round trips in which a full peer window counts as still opening; without this limit a window that stays
/// small would have all data sent twice.
const OPENING: u64 = 10;

params! {
    /// Parameters of explicit rate.
    pub struct ExplicitRateParams {
        /// A request asks for this multiple of the granted rate.
        wish: f64 = 2.0, from 1.0, to 1000.0;
        /// Sends unacknowledged segments once more when all data is sent or while the peer's window opens, so
        /// losses there are repaired before they are detected.
        copies: bool = true;
    }
}

/// The entry in the table of schemes (`scheme.rs`).
pub const ALGORITHM: Algorithm = Algorithm {
    grants: true,
    copies: true,
    ignores_losses: true,
    ..Algorithm::of::<ExplicitRateParams>("explicit-rate", |start, values| {
        Box::new(ExplicitRate::new(start, ExplicitRateParams::of(values)))
    })
};

/// What controls the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The grant.
    Granted,
    /// The grant, but the sender was idle: at most the initial window until the grant is confirmed.
    Unconfirmed,
    /// The standard TCP.
    Standard,
}

/// The explicit-rate controller.
#[derive(Debug)]
pub struct ExplicitRate {
    params: ExplicitRateParams,
    mss: u64,
    headers: u64,
    initial: u64,
    threshold: f64,
    /// The rate is signalled in packets.
    signals: bool,
    state: State,
    /// AR, including headers; `None` if nothing was ever granted.
    granted: Option<Rate>,
    /// A request that the next segment carries.
    pending_request: Option<Rate>,
    /// A grant was requested that ends the standard TCP: the first one, or one after a fallback.
    grant_requested: bool,
    /// Segments sent since the last chance of a request, and the time of the first.
    sent: u64,
    sent_since: Instant,
    last_sent: Instant,
    /// When a request was last answered.
    granted_at: Instant,
    /// When it last began to use a grant.
    began_at: Instant,
    /// When the grant had to be confirmed again.
    unconfirmed_since: Instant,
    app_limited: bool,
    meter: LossMeter,
    trials: Trials,
    /// The path did not have the granted rate, and has not had it for long since.
    has_failed: bool,
    /// Time to the next request after that, in multiples of the shortest.
    backoff: u64,
    standard: Box<dyn CongestionControl>,
    /// The name of the standard TCP.
    to: &'static str,
    /// Data segments sent on this connection.
    segments: u64,
    fallback: Option<Fallback>,
}

/// What the sender does without a grant.
struct WithoutGrant {
    /// Share of lost packets above which a grant is not trusted.
    threshold: f64,
    /// The name of the standard TCP.
    to: &'static str,
    standard: Box<dyn CongestionControl>,
}

impl WithoutGrant {
    fn of(start: &ControllerStart<'_>) -> Self {
        if let Some(signalling) = &start.config.signalling {
            // explicit rate itself is no way out
            let usable = Some(signalling.fallback_to).filter(|scheme| !scheme.growth.algorithm().grants);
            let scheme = usable.unwrap_or_default();
            let standard = start.controller(&scheme.growth);
            return Self { threshold: signalling.fallback, to: scheme.name, standard };
        }
        let default = (GrantConfig::FALLBACK, FallbackScheme::default());
        let (threshold, to) = start.config.grant.as_ref().map_or(default, |g| (g.fallback, g.fallback_to));
        Self { threshold, to: to.scheme(), standard: start.standard(to.scheme()) }
    }
}

impl ExplicitRate {
    /// Starts as a standard TCP. The first grant ends that; one from the handshake comes before the first
    /// segment.
    pub fn new(start: &ControllerStart<'_>, params: ExplicitRateParams) -> Self {
        let WithoutGrant { threshold, to, standard } = WithoutGrant::of(start);
        let asks = start.config.signalling.as_ref().is_some_and(|s| s.ask.ask.is_some());
        let (why, at) = ("no rate was granted", Instant::ZERO);
        Self {
            params,
            mss: start.mss.0,
            headers: start.headers.0,
            initial: start.initial(),
            threshold,
            signals: asks,
            state: State::Standard,
            granted: None,
            pending_request: None,
            grant_requested: true,
            sent: 0,
            sent_since: Instant::ZERO,
            last_sent: Instant::ZERO,
            granted_at: Instant::ZERO,
            began_at: Instant::ZERO,
            unconfirmed_since: Instant::ZERO,
            app_limited: false,
            meter: LossMeter::new(start.mss.0),
            trials: Trials::default(),
            has_failed: false,
            backoff: 1,
            standard,
            to,
            segments: 0,
            // an answer may still come
            fallback: (!asks).then_some(Fallback { to, why, at, segments: 0 }),
        }
    }

    /// Time since this sender used its grant or heard of it.
    fn silence(&self, now: Instant) -> Duration {
        match (self.signals, self.segments) {
            (true, _) => now.since(self.last_sent.max(self.granted_at)),
            (false, 0) => Duration::ZERO,
            (false, _) => now.since(self.last_sent),
        }
    }

    /// The payload rate at a granted rate, or at half of it in a trial.
    fn pace(&self, granted: Rate) -> Option<Rate> {
        let half = Rate::from_bps(granted.bps() / 2).filter(|_| self.trials.is_running());
        payload_rate(half.unwrap_or(granted), self.mss, self.headers)
    }

    fn window(&self, granted: Rate, path: &Path) -> Size {
        let rtt = if path.srtt.is_zero() { UNKNOWN_RTT } else { path.srtt };
        Size((WINDOW.0 * granted.bytes_in(rtt).0 as f64) as u64 + WINDOW.1 * self.mss)
    }

    /// Copies at the granted rate, if the stream has ended or the peer's window is not open yet.
    fn spare(&self, granted: Rate, path: &Path) -> Option<ProbeRequest> {
        let ended = path.unsent == Some(Size::ZERO);
        let opening = path.round <= OPENING && path.flight.0 + self.mss > path.peer_window.0;
        let idle = self.state == State::Granted && (ended || opening);
        let heard = path.probes != ProbeSignal::None;
        (self.params.copies && idle && heard).then(|| ProbeRequest {
            left: u32::MAX,
            clock: ProbeClock::Spare(granted.time_for(Size(self.mss + self.headers))),
            carry: ProbeCarry::NewestOnce,
            mark: Dscp::DEFAULT,
        })
    }

    /// A request was answered.
    fn take_grant(&mut self, now: Instant, rate: Rate) {
        (self.granted, self.granted_at) = (Some(rate), now);
        if self.state == State::Unconfirmed {
            self.state = State::Granted;
        }
        if self.state == State::Standard && self.grant_requested {
            self.state = State::Granted;
            self.began_at = now;
            self.fallback = None;
            self.meter.forget();
        }
        self.grant_requested = false;
    }

    /// There is no grant, or none any more.
    fn do_without(&mut self, cx: &mut Cx<'_>, path: &Path, why: &'static str) {
        if self.state != State::Standard {
            self.fall_back(cx, path, why);
            return;
        }
        self.pending_request = None;
        self.grant_requested = false;
        let fallback = Fallback { to: self.to, why, at: cx.now, segments: self.segments };
        self.fallback.get_or_insert(fallback);
    }

    fn fall_back(&mut self, cx: &mut Cx<'_>, path: &Path, why: &'static str) {
        self.state = State::Standard;
        self.pending_request = None;
        self.grant_requested = false;
        self.meter.forget();
        self.trials.stop();
        self.fallback = Some(Fallback { to: self.to, why, at: cx.now, segments: self.segments });
        // nothing from the grant is kept: it starts as on a new connection
        self.standard.on_restart(cx, path, Size(self.initial));
    }

    /// The path does not have the granted rate: each time it takes longer until the next request.
    fn fail(&mut self, cx: &mut Cx<'_>, path: &Path, why: &'static str) {
        self.backoff = if self.has_failed { (self.backoff * 4).min(LONGEST_PAUSE) } else { 1 };
        self.has_failed = true;
        self.fall_back(cx, path, why);
    }

    /// Time from a fallback to the next request, at least: four times as long after each failure, and up to
    /// twice that at random. Others displaced by the attempts retry after times that double, and must not
    /// meet each of them.
    fn pause(&self, path: &Path) -> Duration {
        let pause = path.srtt * QUIET_ROUNDS * self.backoff;
        let phase = mix(self.began_at.0) & 0xFF;
        if self.backoff > 1 { pause + pause / 256 * phase } else { pause }
    }

    /// Evaluates the loss after each step of the meter.
    fn judge(&mut self, cx: &mut Cx<'_>, path: &Path) {
        if self.state != State::Standard {
            if self.meter.exceeds(self.threshold, path.srtt) {
                return self.fail(cx, path, "more was lost than a grant explains");
            }
            let is_proven = self.meter.over(meter::PACKETS, Duration::ZERO).is_some();
            if is_proven && cx.now.since(self.began_at) >= self.pause(path) {
                (self.has_failed, self.backoff) = (false, 1);
            }
            if let Some(granted) = self.granted.filter(|_| self.signals && self.state == State::Granted) {
                let packet = Size(self.mss + self.headers);
                self.trials.suspect(cx.now, path, &self.meter, granted, packet);
            }
            return;
        }
        let is_over = self.fallback.is_none_or(|f| cx.now.since(f.at) >= self.pause(path));
        let quiet = self.meter.over(meter::STEP, path.srtt * QUIET_ROUNDS).filter(|_| is_over);
        if self.granted.is_some() && quiet.is_some_and(|(_, lost)| lost < self.threshold / 2.0) {
            self.pending_request = self.granted;
            self.grant_requested = true;
            self.meter.forget();
        }
    }

    /// Requests more, every `REQUEST_EVERY` segments, if the granted rate is used.
    fn request_more(&mut self, now: Instant) {
        let Some(granted) = self.granted else { return };
        let used = self.sent * (self.mss + self.headers);
        let due = granted.bytes_in(now.since(self.sent_since)).0;
        let busy = !self.app_limited && used as f64 >= USED * due as f64;
        if busy && self.state == State::Granted {
            let wished = granted.bps() as f64 * self.params.wish;
            self.pending_request = Rate::from_bps(wished as u64);
        }
        self.sent = 0;
        self.sent_since = now;
    }
}

impl CongestionControl for ExplicitRate {
    fn on_ack(&mut self, cx: &mut Cx<'_>, path: &Path, ack: &Ack) {
        let patience = SILENCE.max(path.srtt * QUIET_ROUNDS);
        if self.state == State::Unconfirmed && cx.now.since(self.unconfirmed_since) > patience {
            self.fall_back(cx, path, "the network does not answer any more");
        }
        self.app_limited = ack.rate.map_or(self.app_limited, |r| r.app_limited);
        let rounds = if self.state == State::Standard { QUIET_ROUNDS } else { meter::ROUNDS };
        if self.meter.take(cx.now, path, ack.rtt, rounds) {
            self.judge(cx, path);
        }
        if self.trials.judge(cx.now, path, &self.meter, ack.rtt, self.mss) == Some(Verdict::Guilty) {
            self.fail(cx, path, "its rate alone made a queue overflow");
        }
        if self.state == State::Standard {
            self.standard.on_ack(cx, path, ack);
        }
    }

    fn on_rate(&mut self, cx: &mut Cx<'_>, path: &Path, answer: RateAnswer) {
        match answer {
            RateAnswer::Granted(rate) => self.take_grant(cx.now, rate),
            RateAnswer::Reduced(rate) => {
                self.granted = Some(self.granted.map_or(rate, |granted| granted.min(rate)));
            }
            RateAnswer::Refused => self.do_without(cx, path, "the network refused the rate"),
            RateAnswer::Plain => self.do_without(cx, path, "the path or the peer does not signal"),
        }
    }

    fn on_loss(&mut self, cx: &mut Cx<'_>, path: &Path, loss: &Loss) {
        let timeout = matches!(loss.cause, LossCause::Timeout | LossCause::RepeatedTimeout);
        if timeout {
            self.meter.timeout(path);
        }
        if self.state != State::Standard && loss.cause == LossCause::RepeatedTimeout {
            self.fail(cx, path, "two timeouts in a row");
        }
        if self.state == State::Standard {
            // FlightSize (RFC 5681) also counts what left at the granted rate, and what was SACKed behind its
            // holes: half of that may be more than the window
            let flight = path.flight.min(self.standard.plan(path).window);
            self.standard.on_loss(cx, &Path { flight, ..*path }, loss);
        }
    }

    fn on_sent(&mut self, cx: &mut Cx<'_>, path: &Path, sent: &SentSegment) {
        if sent.bytes == Size::ZERO || sent.probe {
            return;
        }
        self.pending_request = None; // this segment carried the request
        let is_old = path.flight == Size::ZERO && self.silence(cx.now) > SILENCE;
        if is_old && self.state == State::Granted {
            self.state = State::Unconfirmed;
            self.unconfirmed_since = cx.now;
        }
        if self.state == State::Unconfirmed {
            self.pending_request = self.granted; // with each segment until the answer arrives
        }
        if self.sent == 0 {
            self.sent_since = cx.now;
        }
        self.segments += 1;
        self.sent += 1;
        self.last_sent = cx.now;
        let is_slow = self.signals && cx.now.since(self.sent_since) >= SILENCE;
        if self.sent >= REQUEST_EVERY || is_slow {
            self.request_more(cx.now);
        }
        self.standard.on_sent(cx, path, sent);
    }

    fn on_undo(&mut self, cx: &mut Cx<'_>, path: &Path) {
        if self.state == State::Standard {
            self.standard.on_undo(cx, path);
        }
    }

    fn on_restart(&mut self, cx: &mut Cx<'_>, path: &Path, window: Size) {
        if self.state == State::Standard {
            self.standard.on_restart(cx, path, window);
        }
    }

    fn plan(&self, path: &Path) -> Plan {
        let plan = match self.granted.filter(|_| self.state != State::Standard) {
            None => self.standard.plan(path),
            Some(granted) => {
                let window = match self.state {
                    State::Unconfirmed => Size(self.initial),
                    _ => self.window(granted, path),
                };
                Plan {
                    pace: self.pace(granted),
                    headers: Size(if self.signals { self.headers } else { 0 }),
                    burst: Size(BURST * self.mss),
                    probes: self.spare(granted, path),
                    ..Plan::window(window)
                }
            }
        };
        Plan { requested_rate: self.pending_request, ..plan }
    }

    fn ssthresh(&self) -> Option<Size> {
        self.standard.ssthresh().filter(|_| self.state == State::Standard)
    }

    fn fallback(&self) -> Option<Fallback> {
        self.fallback
    }
}
