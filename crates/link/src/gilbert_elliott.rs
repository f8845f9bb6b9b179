//! Burst losses: the Gilbert-Elliott channel. Its states last for a time, not for a number of packets, so a
//! flow that slows down does not lengthen the bad periods.
//!
//! Source: Gilbert 1960, Elliott 1963; satellite links: shadowing, interference. Two states with exponential
//! durations of means G (good) and B (bad); a packet is lost with probability `loss_good` or `loss_bad` of
//! the state in which its transmission begins.
//!
//! ```text
//! share of time that is bad:  pi = B / (G + B)
//! mean loss:                  P  = (1 - pi) loss_good + pi loss_bad
//! from P and B (loss_good 0, loss_bad 1):   G = B (1 - P) / P
//! ```
//!
//! The first state is drawn from the stationary distribution.

use crate::state::{Process, SHORTEST_STEP, State};
use bentpipe_base::{Cx, Duration, Instant, Probability, RngSlot};

/// Parameters of the channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// Mean duration of the good state, more than zero.
    pub good: Duration,
    /// Mean duration of the bad state, more than zero.
    pub bad: Duration,
    /// Loss probability in the good state.
    pub loss_good: Probability,
    /// Loss probability in the bad state.
    pub loss_bad: Probability,
}

/// The states of one direction. Only they use its random stream; packets use that of the errors.
#[derive(Debug)]
pub(crate) struct BurstProcess {
    parameters: GilbertElliott,
    rng: RngSlot,
    bad: bool,
    /// `None` before the first state is drawn.
    until: Option<Instant>,
}

impl BurstProcess {
    pub(crate) fn new(parameters: GilbertElliott, rng: RngSlot) -> Self {
        let GilbertElliott { good, bad, .. } = parameters;
        let parameters =
            GilbertElliott { good: good.max(SHORTEST_STEP), bad: bad.max(SHORTEST_STEP), ..parameters };
        Self { parameters, rng, bad: false, until: None }
    }
}

impl Process for BurstProcess {
    fn apply(&mut self, at: Instant, cx: &mut Cx<'_>, state: &mut State) -> Instant {
        let GilbertElliott { good, bad, loss_good, loss_bad } = self.parameters;
        let rng = cx.rng(self.rng);
        let mut until = self.until.unwrap_or_else(|| {
            // exponential durations are memoryless: the first is as long as any
            self.bad = rng.unit() * (good.0 as f64 + bad.0 as f64) < bad.0 as f64;
            Instant::ZERO + rng.exponential(if self.bad { bad } else { good })
        });
        while until <= at {
            self.bad = !self.bad;
            until += rng.exponential(if self.bad { bad } else { good }).max(Duration(1));
        }
        self.until = Some(until);
        state.burst_loss = if self.bad { loss_bad.get() } else { loss_good.get() };
        until
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::{NodeId, Purpose, World};

    fn clear() -> State {
        let rate = bentpipe_base::Rate::from_bps(1).unwrap();
        State::new(rate, Duration::ZERO, Probability::ZERO, Probability::ZERO)
    }

    #[test]
    fn spells_have_their_means_in_time() {
        let mut world = World::new(11);
        let rng = world.open_rng("link", Purpose::Bursts);
        let p = |p| Probability::new(p).unwrap();
        let (good, bad) = (Duration::from_millis(900), Duration::from_millis(100));
        let parameters = GilbertElliott { good, bad, loss_good: p(0.0), loss_bad: p(1.0) };
        let mut spells = BurstProcess::new(parameters, rng);
        let (mut at, mut sums, mut long, n) = (Instant::ZERO, [0.0; 2], 0, 40_000);
        for _ in 0..n {
            let mut state = clear();
            let until = spells.apply(at, &mut world.cx(at, NodeId(0)), &mut state);
            let is_bad = usize::from(state.burst_loss > 0.5);
            sums[is_bad] += until.since(at).as_millis_f64();
            long += usize::from(is_bad == 1 && until.since(at) > bad);
            at = until;
        }
        // 20 000 exponential durations of each kind: 4 sigma are 2.8 %
        let [good, bad] = sums.map(|s| s / 20_000.0);
        assert!((good / 900.0 - 1.0).abs() < 0.028 && (bad / 100.0 - 1.0).abs() < 0.028, "{good} {bad}");
        // a share exp(-1) is longer than the mean: 4 sigma are 0.0136
        assert!((f64::from(long as u32) / 20_000.0 - 0.3679).abs() < 0.0136, "{long}");
    }

    #[test]
    fn the_first_state_is_stationary() {
        let mut world = World::new(12);
        let rng = world.open_rng("link", Purpose::Bursts);
        let p = |p| Probability::new(p).unwrap();
        let parameters = GilbertElliott {
            good: Duration::from_millis(300),
            bad: Duration::from_millis(100),
            loss_good: p(0.0),
            loss_bad: p(1.0),
        };
        let bad = (0..10_000).filter(|_| {
            let mut spells = BurstProcess::new(parameters, rng);
            let mut state = clear();
            let now = Instant::ZERO;
            spells.apply(now, &mut world.cx(now, NodeId(0)), &mut state);
            state.burst_loss > 0.5
        });
        // a quarter: 4 sigma are 173
        let bad = bad.count();
        assert!(bad.abs_diff(2500) < 173, "{bad}");
    }
}
