//! Measured gain: compares accelerated connections with a random sample of unaccelerated ones, with a
//! confidence interval.
//!
//! B. L. Welch, "The generalization of 'Student's' problem when several different population variances are
//! involved", Biometrika 34 (1947).
//!
//! The goodputs of connections differ by orders of magnitude, so their logarithms are compared: with means m,
//! variances v and counts n of the logarithms of both groups
//! ```text
//! d = m1 - m0    s^2 = v1/n1 + v0/n0    f = s^4 / ((v1/n1)^2/(n1-1) + (v0/n0)^2/(n0-1))
//! interval: d +- t(0.975; f) s
//! ```
//! exp(d) is the ratio of the geometric means, accelerated over unaccelerated, and the interval's ends give
//! its bounds. Only connections that moved at least [`LEAST_BYTES`] count: shorter ones are over before a
//! gateway can help. Old connections lose weight: when a group reaches 10 000, all weights in both groups are
//! halved, so that changes become visible.

use super::flow::FlowStats;
use bentpipe_stats::student_975;
use serde::{Deserialize, Serialize};

/// Minimum payload towards the satellite of a connection that counts.
pub const LEAST_BYTES: u64 = 100_000;
/// Minimum count per group for a verdict.
const LEAST: f64 = 10.0;
/// Count at which the weights are halved.
const MOST: f64 = 10_000.0;

/// Statistics of one group: count, mean and sum of squared deviations of the logarithms (Welford).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Group {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Group {
    fn add(&mut self, value: f64) {
        self.count += 1.0;
        let apart = value - self.mean;
        self.mean += apart / self.count;
        self.squares += apart * (value - self.mean);
    }

    fn variance(&self) -> f64 {
        if self.count > 1.0 { self.squares / (self.count - 1.0) } else { 0.0 }
    }

    const fn halve(&mut self) {
        self.count /= 2.0;
        self.squares /= 2.0;
    }
}

/// Both groups.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Groups {
    accelerated: Group,
    left_alone: Group,
}

/// Result of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// There are too few connections.
    TooFew,
    /// The difference is not significant.
    Undecided,
    /// The accelerated ones are faster.
    Faster,
    /// The accelerated ones are slower.
    Slower,
}

/// Comparison of both groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Weighted number of accelerated connections.
    pub accelerated: f64,
    /// Weighted number of unaccelerated connections.
    pub left_alone: f64,
    /// Geometric mean of the goodput of the accelerated connections, bit/s.
    pub accelerated_bps: f64,
    /// The same for the unaccelerated connections.
    pub left_alone_bps: f64,
    /// Ratio of the geometric means; null while there are too few connections.
    pub ratio: Option<f64>,
    /// 95 % confidence interval of the ratio.
    pub interval: Option<(f64, f64)>,
    /// Result.
    pub verdict: Verdict,
    /// The result as a sentence.
    pub sentence: String,
}

impl Groups {
    /// Adds a closed connection if it belongs to one of the groups.
    pub fn add(&mut self, flow: &FlowStats) {
        let Some(bps) = flow.goodput_bps.filter(|bps| *bps > 0 && flow.acked_bytes >= LEAST_BYTES) else {
            return;
        };
        let group = match flow.why_passing.as_deref() {
            None => &mut self.accelerated,
            Some("sampled") => &mut self.left_alone,
            Some(_) => return,
        };
        group.add(libm::log(bps as f64));
        if group.count >= MOST {
            self.accelerated.halve();
            self.left_alone.halve();
        }
    }

    /// Compares both groups.
    pub fn compare(&self) -> Comparison {
        let (fast, alone) = (self.accelerated, self.left_alone);
        let bps = |group: Group| if group.count > 0.0 { libm::exp(group.mean) } else { 0.0 };
        // the difference of the means, and the ends of its interval
        let found = (fast.count >= LEAST && alone.count >= LEAST).then(|| {
            let (difference, half) = (fast.mean - alone.mean, half_width(fast, alone));
            (difference, difference - half, difference + half)
        });
        let mut comparison = Comparison {
            accelerated: fast.count,
            left_alone: alone.count,
            accelerated_bps: bps(fast),
            left_alone_bps: bps(alone),
            ratio: found.map(|(difference, ..)| libm::exp(difference)),
            interval: found.map(|(_, low, high)| (libm::exp(low), libm::exp(high))),
            verdict: match found {
                None => Verdict::TooFew,
                Some((_, low, _)) if low > 0.0 => Verdict::Faster,
                Some((.., high)) if high < 0.0 => Verdict::Slower,
                Some(_) => Verdict::Undecided,
            },
            sentence: String::new(),
        };
        comparison.sentence = sentence(&comparison);
        comparison
    }
}

/// Half-width of the confidence interval of the difference.
fn half_width(a: Group, b: Group) -> f64 {
    let part = |g: Group| g.variance() / g.count;
    let (a_part, b_part) = (part(a), part(b));
    let squared = a_part + b_part;
    if squared <= 0.0 {
        return 0.0;
    }
    let freedom = squared * squared / (a_part * a_part / (a.count - 1.0) + b_part * b_part / (b.count - 1.0));
    student_975(freedom.max(3.0)) * squared.sqrt()
}

fn sentence(c: &Comparison) -> String {
    let counts = format!("{:.0} accelerated, {:.0} left alone", c.accelerated, c.left_alone);
    let (Some(ratio), Some((low, high))) = (c.ratio, c.interval) else {
        return format!("too few connections to compare ({counts}; each group needs {LEAST:.0})");
    };
    let bounds = format!("95 % confidence: {low:.2} to {high:.2}; {counts}");
    match c.verdict {
        Verdict::Faster => format!("accelerated connections are {ratio:.2} times as fast ({bounds})"),
        Verdict::Slower => format!("ACCELERATED CONNECTIONS ARE SLOWER: {ratio:.2} times as fast ({bounds})"),
        _ => format!("no difference is proven: {ratio:.2} times as fast ({bounds})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(bps: u64, why: Option<&str>) -> FlowStats {
        let why_passing = why.map(str::to_owned);
        FlowStats { goodput_bps: Some(bps), acked_bytes: 1_000_000, why_passing, ..FlowStats::default() }
    }

    /// `n` connections in each group, spread by a factor of e in both directions.
    fn groups(n: u64, fast: f64, alone: f64) -> Groups {
        let mut groups = Groups::default();
        for i in 0..n {
            let spread = libm::exp((i as f64 + 0.5) / n as f64 * 2.0 - 1.0);
            groups.add(&flow((fast * spread) as u64, None));
            groups.add(&flow((alone * spread) as u64, Some("sampled")));
        }
        groups
    }

    #[test]
    fn a_gain_is_found_and_measured() {
        let c = groups(100, 20e6, 5e6).compare();
        assert_eq!(c.verdict, Verdict::Faster);
        assert!((c.ratio.unwrap() - 4.0).abs() < 0.001, "{c:?}");
        let (low, high) = c.interval.unwrap();
        // by hand: v = 1/3 * 100/99 in both, s = sqrt(2 v / 100) = 0.0821, f = 198, t = 1.972
        assert!((low - 4.0 * libm::exp(-0.1619)).abs() < 0.01, "{low}");
        assert!((high - 4.0 * libm::exp(0.1619)).abs() < 0.01, "{high}");
    }

    #[test]
    fn a_loss_is_said_loudly_and_chance_is_not() {
        let slow = groups(100, 5e6, 20e6).compare();
        assert_eq!(slow.verdict, Verdict::Slower);
        assert!(
            slow.sentence.starts_with("ACCELERATED CONNECTIONS ARE SLOWER: 0.25 times"),
            "{}",
            slow.sentence
        );
        assert_eq!(groups(100, 5.1e6, 5e6).compare().verdict, Verdict::Undecided);
        assert_eq!(groups(9, 50e6, 5e6).compare().verdict, Verdict::TooFew);
        assert_eq!(Groups::default().compare().ratio, None);
    }

    #[test]
    fn only_what_can_be_compared_counts() {
        let mut groups = Groups::default();
        groups.add(&flow(1_000_000, Some("policy")));
        groups.add(&FlowStats { acked_bytes: LEAST_BYTES - 1, ..flow(1_000_000, None) });
        groups.add(&flow(0, None));
        assert_eq!(groups, Groups::default());
    }

    #[test]
    fn a_change_shows_after_many() {
        let mut all = groups(9_999, 20e6, 5e6);
        for _ in 0..30_000 {
            all.add(&flow(2_000_000, None));
            all.add(&flow(5_000_000, Some("sampled")));
        }
        assert_eq!(all.compare().verdict, Verdict::Slower);
        let equal = Group { count: 20.0, ..Group::default() };
        assert!(half_width(equal, equal) == 0.0);
    }
}
