//! A start at a rate that the path has approved, around any scheme.
//!
//! Source: RFC 4782, sections 4.3 to 4.6. The network approved R before the first data:
//!   jump: cwnd = R RTT mss / (mss + headers), paced at R, until the first data is acknowledged
//!   then: cwnd = what was under way, and the scheme goes on in congestion avoidance
//!   a loss among the packets sent in the jump: the scheme starts again with the default initial window, in
//!     slow start; ssthresh = half of what arrived of them
//! A window R RTT below the initial window changes nothing. An approval that is not used before an idle time
//! ends is void.
//! Readings: the RFC leaves open which threshold follows a jump without loss; here it is the window, because
//! the approved rate is what the path had unused. Until the lost packets are repaired, the window grows from
//! the initial one as in slow start, so that thousands of losses do not take hundreds of round trips. The
//! threshold is set when they are repaired, since only then it is known what arrived. A scheme without a
//! window, such as BBR, goes on with what it measured during the jump.

use super::advised::delegate_to_law;
use super::law::ControllerStart;
use super::{Ack, CongestionControl, Fallback, Loss, LossCause, Path, Plan, SentSegment, payload_rate};
use bentpipe_advice::negotiation::RateAnswer;
use bentpipe_base::{Cx, Rate, Size};

/// Largest burst of the jump in segments.
const BURST: u64 = 2;

/// What the sender does with an approval. Positions are those of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// There is none, or it has been used.
    Standard,
    /// It is used: nothing sent at this rate is acknowledged.
    Jump(Rate),
    /// What was sent up to `last` is not all acknowledged.
    UnderWay { last: u64 },
    /// One of the packets up to `jumped` was lost: until all up to `last` is acknowledged, the window is this
    /// one.
    Retreat { jumped: u64, last: u64, window: u64 },
}

/// A scheme that may start at an approved rate.
#[derive(Debug)]
pub struct QuickStart {
    law: Box<dyn CongestionControl>,
    name: &'static str,
    mss: u64,
    headers: u64,
    initial: u64,
    state: State,
    /// Data segments sent on this connection.
    segments: u64,
    /// The jump failed.
    fallback: Option<Fallback>,
}

impl QuickStart {
    /// `law` without an approval.
    pub fn new(start: &ControllerStart<'_>, law: Box<dyn CongestionControl>) -> Self {
        Self {
            law,
            name: start.config.scheme.name,
            mss: start.mss.0,
            headers: start.headers.0,
            initial: start.initial(),
            state: State::Standard,
            segments: 0,
            fallback: None,
        }
    }

    /// The window of the jump.
    fn window(&self, rate: Rate, path: &Path, standard: Size) -> Size {
        let payload = payload_rate(rate, self.mss, self.headers);
        payload.map_or(standard, |payload| payload.bytes_in(path.srtt).max(standard))
    }

    /// The first data of the jump is acknowledged.
    fn land(&mut self, cx: &mut Cx<'_>, path: &Path, ack: &Ack) {
        let standard = self.law.plan(path).window;
        let used = path.flight + ack.acked;
        self.state = State::UnderWay { last: path.next };
        if used > standard {
            self.law.on_jump(cx, path, used, used);
        }
    }

    /// All that was sent in the jump is repaired: the scheme gets the window of the retreat.
    fn recover(&mut self, cx: &mut Cx<'_>, path: &Path, jumped: u64, window: u64) {
        let arrived = jumped.saturating_sub(1).saturating_sub(path.lost);
        self.state = State::Standard;
        self.law.on_jump(cx, path, Size(window), Size(arrived / 2));
    }

    /// A packet of the jump, which ends at `jumped`, was lost.
    fn retreat(&mut self, cx: &mut Cx<'_>, path: &Path, loss: &Loss, jumped: u64) {
        let is_timeout = matches!(loss.cause, LossCause::Timeout | LossCause::RepeatedTimeout);
        let arrived = Size(path.delivered / 2);
        let window = self.law.plan(path).window.min(Size(self.initial));
        self.law.on_jump(cx, path, window, arrived);
        let retreat = State::Retreat { jumped, last: path.next, window: window.0 };
        self.state = if is_timeout { State::Standard } else { retreat };
        let why = "a packet of the Quick-Start was lost";
        let fallback = Fallback { to: self.name, why, at: cx.now, segments: self.segments };
        self.fallback.get_or_insert(fallback);
    }
}

impl CongestionControl for QuickStart {
    fn on_ack(&mut self, cx: &mut Cx<'_>, path: &Path, ack: &Ack) {
        match self.state {
            State::Jump(_) if ack.acked > Size::ZERO => self.land(cx, path, ack),
            State::UnderWay { last } if path.una >= last => self.state = State::Standard,
            State::Retreat { last, jumped, window } if path.una >= last => {
                self.recover(cx, path, jumped, window);
            }
            State::Retreat { jumped, last, window } => {
                let most = (path.delivered.min(jumped) / 2).max(self.initial);
                let window = (window + ack.delivered.0).min(most);
                self.state = State::Retreat { jumped, last, window };
            }
            _ => {}
        }
        self.law.on_ack(cx, path, ack);
    }

    fn on_loss(&mut self, cx: &mut Cx<'_>, path: &Path, loss: &Loss) {
        self.law.on_loss(cx, path, loss);
        let is_timeout = matches!(loss.cause, LossCause::Timeout | LossCause::RepeatedTimeout);
        match self.state {
            State::Jump(_) => self.retreat(cx, path, loss, path.next),
            State::UnderWay { last } if path.una < last => self.retreat(cx, path, loss, last),
            State::Retreat { .. } if is_timeout => self.state = State::Standard,
            _ => {}
        }
    }

    fn on_rate(&mut self, _cx: &mut Cx<'_>, _path: &Path, answer: RateAnswer) {
        if let RateAnswer::Granted(rate) = answer
            && self.segments == 0
        {
            self.state = State::Jump(rate);
        }
    }

    fn on_sent(&mut self, cx: &mut Cx<'_>, path: &Path, sent: &SentSegment) {
        self.segments += u64::from(sent.bytes > Size::ZERO && !sent.probe);
        self.law.on_sent(cx, path, sent);
    }

    fn on_undo(&mut self, cx: &mut Cx<'_>, path: &Path) {
        if let State::Retreat { jumped, .. } = self.state {
            (self.state, self.fallback) = (State::UnderWay { last: jumped }, None);
        }
        self.law.on_undo(cx, path);
    }

    fn on_restart(&mut self, cx: &mut Cx<'_>, path: &Path, window: Size) {
        self.state = State::Standard;
        self.law.on_restart(cx, path, window);
    }

    delegate_to_law! {
        on_jump(window: Size, ssthresh: Size);
    }

    fn plan(&self, path: &Path) -> Plan {
        let plan = self.law.plan(path);
        match self.state {
            State::Jump(rate) => {
                let window = self.window(rate, path, plan.window);
                if window == plan.window {
                    return plan;
                }
                let pace = payload_rate(rate, self.mss, self.headers);
                Plan { window, pace, burst: Size(BURST * self.mss), ..plan }
            }
            State::Retreat { window, .. } => Plan { window: Size(window), ..plan },
            State::Standard | State::UnderWay { .. } => plan,
        }
    }

    fn fallback(&self) -> Option<Fallback> {
        self.fallback.or_else(|| self.law.fallback())
    }

    fn ssthresh(&self) -> Option<Size> {
        self.law.ssthresh()
    }
}

#[cfg(test)]
mod tests {
    use super::super::bench::{Bench, MSS};
    use super::*;
    use crate::cc::law::Growth;
    use crate::cc::{cubic, reno};
    use crate::config::{Config, Stack};
    use bentpipe_base::Duration;

    /// 10 Mbit/s of payload: 250 segments in 200 ms.
    const APPROVED: RateAnswer = RateAnswer::Granted(Rate::from_bps(10_400_000).unwrap());

    fn bench(growth: Growth) -> Bench {
        let config = Config::default();
        let start = ControllerStart { mss: Size(MSS), headers: Size(40), config: &config };
        let plain = Bench::new(growth, Duration::from_millis(200), 10, None);
        plain.inside(|law| Box::new(QuickStart::new(&start, law)))
    }

    #[test]
    fn it_starts_at_the_approved_rate_and_goes_on_in_avoidance() {
        for growth in [Growth::of(&cubic::ALGORITHM), Growth::of(&reno::ALGORITHM)] {
            let mut b = bench(growth);
            assert!((b.segments() - 10.0).abs() < 1e-9);
            b.answer(APPROVED);
            assert!((b.segments() - 250.0).abs() < 1e-9, "{}", b.segments());
            let plan = b.plan();
            assert_eq!((plan.pace, plan.burst), (Rate::from_bps(10_000_000), Size(2000)));
            b.ack(1);
            assert_eq!(b.plan().pace, None, "one round trip");
            for _ in 0..3 {
                let window = b.round();
                assert!((250.0..256.0).contains(&window), "no slow start: {window}");
            }
            assert_eq!(b.fallback(), None);
        }
    }

    /// Linux counts whole segments; the same rule.
    #[test]
    fn a_linux_window_jumps_too() {
        let config = Config { stack: Stack::Linux, ..Config::linux() };
        let start = ControllerStart { mss: Size(MSS), headers: Size(40), config: &config };
        let plain = Bench::new(Growth::of(&reno::ALGORITHM), Duration::from_millis(200), 10, None);
        let law = start.controller(&Growth::of(&reno::ALGORITHM));
        let mut b = plain.inside(|_| Box::new(QuickStart::new(&start, law)));
        b.answer(APPROVED);
        b.round();
        assert!((250.0..253.0).contains(&b.segments()), "{}", b.segments());
    }

    #[test]
    fn a_loss_in_the_jump_starts_again_from_the_initial_window() {
        let mut b = bench(Growth::of(&reno::ALGORITHM));
        b.answer(APPROVED);
        b.ack(1);
        b.ack(149);
        b.lose();
        assert!((b.segments() - 10.0).abs() < 1e-9, "{}", b.segments());
        assert_eq!(b.fallback(), Some("a packet of the Quick-Start was lost"));
        // slow start up to half of what has arrived, and when all is repaired, of what was sent less the loss
        let windows: Vec<f64> = (0..12).map(|_| b.round()).collect();
        assert!((19.0..=20.0).contains(&windows[0]) && (37.0..=40.0).contains(&windows[1]), "{windows:?}");
        assert!(windows.is_sorted() && (124.0..134.0).contains(&windows[11]), "{windows:?}");
    }

    #[test]
    fn a_timeout_in_the_jump_leaves_one_segment() {
        let mut b = bench(Growth::of(&cubic::ALGORITHM));
        b.answer(APPROVED);
        b.time_out();
        assert!((b.segments() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn later_losses_are_the_schemes() {
        let mut b = bench(Growth::of(&reno::ALGORITHM));
        b.answer(APPROVED);
        b.round();
        b.round();
        let before = b.segments();
        b.lose();
        assert!((b.segments() / before - 0.5).abs() < 0.02, "{} after {before}", b.segments());
        assert_eq!(b.fallback(), None);
    }

    #[test]
    fn without_an_approval_and_after_the_first_data_nothing_changes() {
        let mut b = bench(Growth::of(&reno::ALGORITHM));
        b.answer(RateAnswer::Plain);
        b.answer(RateAnswer::Refused);
        assert_eq!((b.window(), b.plan().pace), (10 * MSS, None));
        // 40 kbit/s is less than the initial window
        b.answer(RateAnswer::Granted(Rate::from_bps(41_600).unwrap()));
        assert_eq!((b.window(), b.plan().pace), (10 * MSS, None));
    }
}
