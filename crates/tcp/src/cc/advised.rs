//! A limit on the rate, as the network advises it, around any scheme.
//!
//! Sources: draft-eddy-tcpm-scone (2025), draft-ietf-scone-protocol (2026): advice is the rate that a flow
//! should not exceed; it is no grant and no congestion control.
//!   pace <= advice * mss / (mss + headers), whatever the scheme says; all else is the scheme's
//!   no advice: no limit
//! So the scheme starts, grows and reacts to losses as ever. While the limit holds it back, the pacer and not
//! its window is the limit, and no scheme grows an unused window. The advice counts IP packets.

use super::law::ControllerStart;
use super::{Ack, CongestionControl, Fallback, Loss, Path, Plan, SentSegment, payload_rate};
use bentpipe_advice::negotiation::RateAnswer;
use bentpipe_base::{Cx, Rate, Size};

/// Methods of [`CongestionControl`] in which a scheme only passes on to its field `law`.
macro_rules! delegate_to_law {
    ($($method:ident($($name:ident: $Type:ty),*);)+) => { $(
        fn $method(&mut self, cx: &mut Cx<'_>, path: &Path $(, $name: $Type)*) {
            self.law.$method(cx, path $(, $name)*);
        }
    )+ };
}
pub(super) use delegate_to_law;

/// A scheme that obeys advice.
#[derive(Debug)]
pub struct Advised {
    law: Box<dyn CongestionControl>,
    mss: u64,
    headers: u64,
    /// The most that may be sent, in bit/s of payload.
    most: Option<Rate>,
}

impl Advised {
    /// `law` without advice.
    pub fn new(start: &ControllerStart<'_>, law: Box<dyn CongestionControl>) -> Self {
        Self { law, mss: start.mss.0, headers: start.headers.0, most: None }
    }
}

impl CongestionControl for Advised {
    fn on_rate(&mut self, _cx: &mut Cx<'_>, _path: &Path, answer: RateAnswer) {
        self.most = match answer {
            RateAnswer::Granted(rate) | RateAnswer::Reduced(rate) => {
                payload_rate(rate, self.mss, self.headers)
            }
            RateAnswer::Refused | RateAnswer::Plain => None,
        };
    }

    delegate_to_law! {
        on_ack(ack: &Ack);
        on_loss(loss: &Loss);
        on_sent(sent: &SentSegment);
        on_undo();
        on_jump(window: Size, ssthresh: Size);
        on_restart(window: Size);
    }

    fn plan(&self, path: &Path) -> Plan {
        Plan { most: self.most, ..self.law.plan(path) }
    }

    fn fallback(&self) -> Option<Fallback> {
        self.law.fallback()
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
    use crate::cc::{bbr, cubic};
    use crate::config::Config;
    use bentpipe_base::Duration;

    const RATE: Rate = Rate::from_bps(10_400_000).unwrap();

    fn bench(growth: Growth) -> Bench {
        let config = Config::default();
        let start = ControllerStart { mss: Size(MSS), headers: Size(40), config: &config };
        let plain = Bench::new(growth, Duration::from_millis(100), 10, None);
        plain.inside(|law| Box::new(Advised::new(&start, law)))
    }

    #[test]
    fn only_the_rate_is_limited() {
        for growth in [Growth::of(&cubic::ALGORITHM), Growth::of(&bbr::ALGORITHM)] {
            let (mut a, mut b) = (bench(growth), bench(growth));
            a.answer(RateAnswer::Granted(RATE));
            for _ in 0..3 {
                assert_eq!(a.round().to_bits(), b.round().to_bits());
            }
            // 10.4 Mbit/s with 40 bytes of headers for 1000 of payload
            let expected = Plan { most: Rate::from_bps(10_000_000), ..b.plan() };
            assert_eq!(a.plan(), expected);
            for none in [RateAnswer::Plain, RateAnswer::Refused] {
                a.answer(RateAnswer::Reduced(RATE));
                a.answer(none);
                assert_eq!(a.plan(), b.plan());
            }
        }
    }
}
