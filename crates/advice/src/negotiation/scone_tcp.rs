//! One end of a connection that takes advice in SCONE's TCP option.
//!
//! Source: draft-eddy-tcpm-scone (2025), and draft-ietf-scone-protocol (2026) for what it leaves open.
//!   SYN and SYN/ACK carry the option; it is used later only if both had it
//!   an end that asks sends it as unknown (127), routers lower it, the peer echoes what came
//!   advice of the last 67 s: the lowest holds; after 67 s without any there is none
//! So a lower rate is known after a round trip, and a higher one up to 67 s later.
//!
//! Where the draft is silent, here:
//! - An end that asks sends the option in its first packet with data, then 1, 2, 4 and 8 s later, then every
//!   10 s. The interval has no random part.
//! - What came is echoed at once, in the next segment with room, if it differs from the last echo; what came
//!   with data also if this end sent no option for a second; else with the next option of this end, or 10 s
//!   after its last one. Of several that came in between, the lowest is echoed. So two ends with data answer
//!   each other at most once a second.
//! - A receiver that takes less than was advised (`take`) echoes that. `ask` is the most that the sender uses
//!   of any advice.
//! - A SYN that is resent once still has the option, a later one does not: the path may drop unknown options.
//! - An echo counts only from a peer that knows it (see [`crate::scone_tcp`]). Nobody can tell a forged echo
//!   from a true one. It lowers the rate for 67 s, or removes a limit that the network advised, and never
//!   makes a sender faster than its congestion control.

use super::history::History;
use super::{AskConfig, Carrier, RateAnswer, RateChange, RateState};
use crate::scone::Advice;
use crate::scone_tcp::{Advised, Kind};
use bentpipe_base::{Duration, Instant, Rate};
use std::collections::VecDeque;

/// How long advice holds (draft-ietf-scone-protocol).
pub const PERIOD: Duration = Duration::from_secs(67);
/// Longest time between two options of an end that asks, and before an echo is repeated.
const EVERY: Duration = Duration::from_secs(10);
/// Time between the first two, and between echoes of the same.
const AT_FIRST: Duration = Duration::from_secs(1);

/// Advice of the last period: each is lower than those after it, so there are at most 127.
#[derive(Clone, Debug, Default)]
struct Heard(VecDeque<(Instant, Advice)>);

impl Heard {
    fn push(&mut self, now: Instant, advice: Advice) {
        while self.0.back().is_some_and(|(_, last)| *last >= advice) {
            self.0.pop_back();
        }
        self.0.push_back((now, advice));
    }

    /// The lowest of the last period.
    fn lowest(&mut self, now: Instant) -> Option<Advice> {
        while self.0.front().is_some_and(|(at, _)| now.since(*at) >= PERIOD) {
            self.0.pop_front();
        }
        self.0.front().map(|(_, advice)| *advice)
    }
}

/// One end of one connection.
#[derive(Clone, Debug)]
pub struct SconeTcp {
    config: AskConfig,
    /// A SYN of ours had the option.
    offered: bool,
    /// Both had it.
    agreed: bool,
    /// The peer's SYN had an echo.
    peer_echoes: bool,
    heard: Heard,
    /// The lowest signal that came since our last option.
    to_echo: Option<Advice>,
    /// It came with data.
    came_with_data: bool,
    /// Our last echo.
    echoed: Option<Advice>,
    /// When our last option after the handshake was sent.
    sent_at: Option<Instant>,
    /// When our next question is due; `None` before the first packet with data.
    next_at: Option<Instant>,
    interval: Duration,
    history: History,
}

impl SconeTcp {
    /// The end of a connection whose SYN was neither sent nor received yet.
    pub fn new(config: AskConfig) -> Self {
        Self {
            config,
            offered: false,
            agreed: false,
            peer_echoes: false,
            heard: Heard::default(),
            to_echo: None,
            came_with_data: false,
            echoed: None,
            sent_at: None,
            next_at: None,
            interval: AT_FIRST,
            history: History::default(),
        }
    }

    /// Returns the configuration.
    pub const fn config(&self) -> &AskConfig {
        &self.config
    }
    /// True if both ends use the option.
    pub const fn is_agreed(&self) -> bool {
        self.agreed
    }
    /// Returns the state of the rate that this end asked for.
    pub const fn state(&self) -> RateState {
        self.history.state()
    }
    /// Returns the rate that is advised now, in bit/s of IP packets.
    pub const fn granted(&self) -> Option<Rate> {
        self.history.granted()
    }
    /// Returns the first changes of the advised rate, at most 1000.
    pub fn changes(&self) -> &[RateChange] {
        self.history.changes()
    }

    /// Returns the option of our SYN, or of our SYN/ACK (`answers`), which was sent `resends` times before.
    pub fn syn(&mut self, answers: bool, resends: u32) -> Option<Advised> {
        if resends > 1 || answers && !self.agreed {
            return None;
        }
        self.offered = true;
        if self.config.ask.is_some() && !self.agreed {
            self.history.clear(RateState::Asked);
        }
        // resent, it says the same
        let echo = self.to_echo.take().or(self.echoed).unwrap_or(Advice::UNKNOWN);
        self.echoed = (echo != Advice::UNKNOWN).then_some(echo);
        Some(Advised::new(Kind::default(), Advice::UNKNOWN).with_echo(echo))
    }

    /// Takes the option of the peer's SYN (`answers`: of its SYN/ACK, or of a SYN that crossed ours).
    pub fn peer_syn(&mut self, now: Instant, answers: bool, option: Option<Advised>) -> Option<RateAnswer> {
        let Some(option) = option.filter(|_| self.offered || !answers) else {
            self.history.clear(RateState::Plain);
            return self.config.ask.map(|_| RateAnswer::Plain);
        };
        self.agreed = true;
        self.peer_echoes = option.has_echo();
        self.hear(now, option)
    }

    /// Takes the option of another packet of the peer. Call it for packets without one too.
    pub fn incoming(&mut self, now: Instant, packet: Carrier, option: Option<Advised>) -> Option<RateAnswer> {
        match option.filter(|_| self.agreed) {
            Some(option) => {
                self.came_with_data |= packet == Carrier::Data;
                self.hear(now, option)
            }
            None => self.review(now),
        }
    }

    /// Returns the option that the next packet of ours carries, if it has room and one is due.
    pub fn outgoing(&mut self, now: Instant, packet: Carrier) -> Option<Advised> {
        if !self.agreed {
            return None;
        }
        let is_late = self.next_at.is_some_and(|at| now >= at);
        let is_first = self.next_at.is_none() && packet == Carrier::Data;
        let asks = self.config.ask.is_some() && (is_first || is_late);
        let patience = if self.came_with_data { AT_FIRST } else { EVERY };
        let is_again = self.sent_at.is_none_or(|at| now.since(at) >= patience);
        let echoes = self.to_echo.is_some_and(|came| self.echoed != Some(came) || is_again);
        if !asks && !echoes {
            return None;
        }
        if asks {
            self.next_at = Some(now + self.interval);
            self.interval = (self.interval * 2).min(EVERY);
        }
        self.sent_at = Some(now);
        self.came_with_data = false;
        let echo = self.to_echo.take();
        self.echoed = echo.or(self.echoed);
        let option = Advised::new(Kind::default(), Advice::UNKNOWN);
        Some(option.with_echo(echo.unwrap_or(Advice::UNKNOWN)))
    }

    fn hear(&mut self, now: Instant, option: Advised) -> Option<RateAnswer> {
        let taken = self.config.take.map(|most| Advice::at_most(most).unwrap_or(Advice::LOWEST));
        let came = taken.map_or(option.advice(), |most| most.min(option.advice()));
        if came != Advice::UNKNOWN {
            self.to_echo = Some(self.to_echo.map_or(came, |before| before.min(came)));
        }
        if let Some(advice) = option.echo(self.peer_echoes) {
            self.heard.push(now, advice);
        }
        self.review(now)
    }

    /// Applies what was heard in the last period.
    fn review(&mut self, now: Instant) -> Option<RateAnswer> {
        let most = self.config.ask?;
        let before = self.history.granted();
        let Some(rate) = self.heard.lowest(now).and_then(Advice::rate).map(|rate| rate.min(most)) else {
            let is_news = before.is_some() || self.history.state() == RateState::Asked && self.agreed;
            self.history.clear(if is_news { RateState::Plain } else { self.history.state() });
            return is_news.then_some(RateAnswer::Plain);
        };
        self.history.set(now, rate);
        match before {
            Some(before) if rate == before => None,
            Some(before) if rate < before => Some(RateAnswer::Reduced(rate)),
            _ => Some(RateAnswer::Granted(rate)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Carrier::{Ack, Data};

    fn at(ms: u64) -> Instant {
        Instant(ms * 1_000_000)
    }

    fn advice(signal: u8) -> Advice {
        Advice::new(signal).unwrap()
    }

    fn rate(signal: u8) -> Rate {
        advice(signal).rate().unwrap()
    }

    fn end(ask: Option<Rate>) -> SconeTcp {
        SconeTcp::new(AskConfig { ask, ..AskConfig::default() })
    }

    fn asks() -> SconeTcp {
        end(Some(rate(126)))
    }

    /// What a router with this limit makes of an option.
    fn through(option: Advised, limit: u8) -> Advised {
        option.with_advice(option.advice().min(advice(limit)))
    }

    /// Both ends after a handshake over a router that advises `limit`.
    fn pair(limit: u8) -> (SconeTcp, SconeTcp) {
        let (mut a, mut b) = (asks(), end(None));
        let syn = a.syn(false, 0).unwrap();
        assert_eq!((syn.advice(), syn.has_echo(), syn.echo(true)), (Advice::UNKNOWN, true, None));
        assert_eq!(b.peer_syn(at(50), false, Some(through(syn, limit))), None);
        let answer = b.syn(true, 0).unwrap();
        assert_eq!(a.peer_syn(at(100), true, Some(answer)), Some(RateAnswer::Granted(rate(limit))));
        (a, b)
    }

    /// An option that echoes this signal.
    fn echoing(signal: u8) -> Advised {
        Advised::new(Kind::default(), Advice::UNKNOWN).with_echo(advice(signal))
    }

    #[test]
    fn a_handshake_brings_the_first_advice() {
        let (a, b) = pair(40);
        assert_eq!((a.granted(), a.state(), a.is_agreed()), (Some(rate(40)), RateState::Granted, true));
        assert_eq!((b.granted(), b.state(), b.is_agreed()), (None, RateState::Plain, true));
    }

    #[test]
    fn without_the_option_in_both_syns_it_is_not_used() {
        let mut a = asks();
        a.syn(false, 0);
        assert_eq!(a.peer_syn(at(1), true, None), Some(RateAnswer::Plain));
        assert_eq!(
            (a.outgoing(at(2), Data), a.incoming(at(2), Ack, Some(echoing(3))), a.granted()),
            (None, None, None)
        );
        // a SYN/ACK with the option although the SYN had none
        let mut a = asks();
        assert_eq!(a.peer_syn(at(1), true, Some(echoing(3))), Some(RateAnswer::Plain));
        assert!(!a.is_agreed());
        // the answer to a SYN without it has none
        let mut b = end(None);
        assert_eq!((b.peer_syn(at(1), false, None), b.syn(true, 0)), (None, None));
        // a SYN that was lost twice
        let mut a = asks();
        assert!(a.syn(false, 0).is_some() && a.syn(false, 1).is_some() && a.syn(false, 2).is_none());
    }

    #[test]
    fn a_path_without_elements_gives_no_advice_until_there_is_one() {
        let (mut a, mut b) = (asks(), end(None));
        let syn = a.syn(false, 0);
        b.peer_syn(at(50), false, syn);
        let answer = b.syn(true, 0);
        assert_eq!(a.peer_syn(at(100), true, answer), Some(RateAnswer::Plain));
        assert_eq!((a.state(), a.incoming(at(150), Ack, None)), (RateState::Plain, None));
        assert_eq!(a.incoming(at(200), Ack, Some(echoing(30))), Some(RateAnswer::Granted(rate(30))));
        assert_eq!(a.state(), RateState::Granted);
    }

    #[test]
    fn options_are_sent_at_first_often_and_then_every_ten_seconds() {
        let (mut a, _) = pair(40);
        assert_eq!(a.outgoing(at(100), Ack), None, "there is no data yet");
        let sent: Vec<u64> = (1..60).filter(|s| a.outgoing(at(s * 1000), Data).is_some()).collect();
        assert_eq!(sent, [1, 2, 4, 8, 16, 26, 36, 46, 56]);
    }

    #[test]
    fn news_is_echoed_at_once_and_the_same_not_too_often() {
        let (mut a, mut b) = pair(40);
        let option = a.outgoing(at(200), Data).unwrap();
        let mut echo = |ms, packet, signal: u8| {
            b.incoming(at(ms), packet, Some(through(option, signal)));
            b.outgoing(at(ms), Ack).and_then(|option| option.echo(true)).map(Advice::get)
        };
        assert_eq!(echo(250, Data, 40), Some(40), "the first one after the handshake");
        assert_eq!((echo(1249, Data, 40), echo(1250, Data, 40)), (None, Some(40)));
        assert_eq!((echo(1300, Data, 30), echo(1301, Ack, 40)), (Some(30), Some(40)));
        assert_eq!((echo(11_300, Ack, 40), echo(11_301, Ack, 40)), (None, Some(40)), "it is no answer");
        b.incoming(at(20_000), Ack, Some(through(option, 50)));
        b.incoming(at(20_001), Ack, Some(through(option, 45)));
        assert_eq!(b.outgoing(at(20_002), Ack).and_then(|o| o.echo(true)), Some(advice(45)), "the lowest");
        assert_eq!(b.outgoing(at(90_000), Ack), None, "nothing came since");
    }

    /// Lower advice applies at once, higher advice once the lower one is 67 s old, and none after 67 s.
    #[test]
    fn the_lowest_advice_of_a_period_holds() {
        let (mut a, _) = pair(40);
        assert_eq!(a.incoming(at(1000), Ack, Some(echoing(30))), Some(RateAnswer::Reduced(rate(30))));
        assert_eq!(a.incoming(at(2000), Ack, Some(echoing(40))), None);
        assert_eq!(a.incoming(at(60_000), Ack, Some(echoing(35))), None);
        assert_eq!(a.incoming(at(67_999), Ack, None), None);
        assert_eq!(a.incoming(at(68_000), Ack, None), Some(RateAnswer::Granted(rate(35))));
        assert_eq!((a.state(), a.incoming(at(126_999), Ack, None)), (RateState::Granted, None));
        assert_eq!(a.incoming(at(127_000), Ack, None), Some(RateAnswer::Plain));
        assert_eq!(
            (a.granted(), a.state(), a.incoming(at(128_000), Ack, None)),
            (None, RateState::Plain, None)
        );
        let causes: Vec<_> = a.changes().iter().map(|change| change.cause).collect();
        assert_eq!(causes, ["granted", "reduced", "raised"]);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let (mut a, _) = pair(126);
        for n in 0..10_000u64 {
            a.incoming(at(1000 + n), Ack, Some(echoing((n * 37 % 127) as u8)));
        }
        assert!(a.heard.0.len() <= 127, "{}", a.heard.0.len());
    }

    #[test]
    fn a_peer_that_does_not_know_the_echo_gives_no_advice() {
        let mut a = asks();
        a.syn(false, 0);
        let plain = Advised::new(Kind::First, advice(20));
        assert_eq!(a.peer_syn(at(1), true, Some(plain)), Some(RateAnswer::Plain));
        assert_eq!(
            (a.is_agreed(), a.incoming(at(2), Ack, Some(echoing(3))), a.granted()),
            (true, None, None)
        );
    }

    #[test]
    fn take_and_ask_are_limits_of_the_two_ends() {
        let mut b = SconeTcp::new(AskConfig { take: Some(rate(10)), ..AskConfig::default() });
        b.peer_syn(at(1), false, asks().syn(false, 0));
        assert_eq!(b.syn(true, 0).and_then(|option| option.echo(true)), Some(advice(10)));
        let mut a = end(Some(rate(5)));
        a.syn(false, 0);
        assert_eq!(a.peer_syn(at(1), true, Some(echoing(10))), Some(RateAnswer::Granted(rate(5))));
    }
}
