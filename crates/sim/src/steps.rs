//! A scenario that runs in steps, for programs that decide between them what a sender does next.

use crate::build::{Network, build};
use crate::flow::{delivered_by, finished_at};
use bentpipe_base::Instant;
use bentpipe_scenario::Scenario;

/// A running scenario.
#[derive(Debug)]
pub struct Steps {
    net: Network,
    end: Instant,
}

impl Steps {
    /// Builds the network of `scenario`, at time zero.
    pub fn new(scenario: &Scenario) -> Self {
        Self { net: build(scenario), end: Instant::ZERO + scenario.duration }
    }

    /// Runs until `until` or the scenario's end, or until `stop`, called after each event, returns true.
    pub fn run_until(&mut self, until: Instant, mut stop: impl FnMut() -> bool) {
        self.net.sim.run_until(until.min(self.end), |_| stop());
    }

    /// The present time.
    pub const fn now(&self) -> Instant {
        self.net.sim.now()
    }

    /// True once the scenario's time is over.
    pub fn is_over(&self) -> bool {
        self.now() >= self.end
    }

    /// True once flow `i` has transferred all that it has.
    pub fn is_finished(&self, i: usize) -> bool {
        finished_at(&self.net.sim, &self.net.flows[i]).is_some()
    }

    /// Bytes of flow `i` delivered to the application so far.
    pub fn delivered(&self, i: usize) -> u64 {
        delivered_by(&self.net, i)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::Duration;
    use bentpipe_scenario::{Source, load};

    /// Steps change no result: what is delivered is what a run reports.
    #[test]
    fn steps_of_any_length_are_the_run() {
        let text = include_str!("../../../scenarios/sharing.toml");
        let sets = [("duration", "20 s"), ("flows", "2"), ("loss", "1e-3")];
        let sets = sets.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let scenario = load(&Source::new("s.toml", text), &sets, Some(3)).unwrap();
        let report = crate::run(&scenario);
        let mut steps = Steps::new(&scenario);
        let mut n = 0_u64;
        while !steps.is_over() {
            n += 1;
            steps.run_until(steps.now() + Duration::from_millis(1 + 37 * n % 500), || false);
        }
        assert_eq!(scenario.measure, None, "the report's rates are those of the whole run");
        for (i, flow) in report.flows.iter().enumerate() {
            let rate_bps = steps.delivered(i) as f64 * 8.0 / scenario.duration.as_secs_f64();
            assert!(rate_bps > 0.0 && (rate_bps - flow.goodput_bps).abs() < 1e-6, "{rate_bps}");
            assert!(!steps.is_finished(i));
        }
    }
}
