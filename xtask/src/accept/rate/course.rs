//! The course of granted rates in a report.

use crate::accept::list::Outcome;
use serde_json::Value;

/// When a flow got which rate, in the order of time, and when it ended.
struct Course {
    rates: Vec<(f64, f64)>,
    end_s: f64,
}

impl Course {
    /// `None` if the flow never had a rate.
    fn of(flow: &Value, run_s: f64) -> Option<Self> {
        let changes = flow["rate"]["changes"].as_array()?.iter();
        let rates: Vec<(f64, f64)> =
            changes.filter_map(|c| Some((c["at_s"].as_f64()?, c["bps"].as_f64()?))).collect();
        let end_s = flow["finished_s"].as_f64().unwrap_or(run_s);
        (!rates.is_empty()).then_some(Self { rates, end_s })
    }

    fn at(&self, t: f64) -> Option<f64> {
        let before = self.rates.iter().take_while(|(at, _)| *at <= t).last();
        before.filter(|_| t < self.end_s).map(|(_, bps)| *bps)
    }
}

fn courses(report: &Value) -> Outcome<Vec<Course>> {
    let run_s = report["simulated_s"].as_f64().ok_or("no simulated_s in the report")?;
    let flows = report["flows"].as_array().ok_or("no flows in the report")?;
    Ok(flows.iter().filter_map(|flow| Course::of(flow, run_s)).collect())
}

/// Jain's index: 1 if all are equal, 1/n if one has all.
fn jain(rates: &[f64]) -> f64 {
    let (sum, squares): (f64, f64) = (rates.iter().sum(), rates.iter().map(|r| r * r).sum());
    sum * sum / (rates.len() as f64 * squares)
}

/// The lowest index of the rates that flows have at any instant from `from` to `to`, s.
pub(super) fn lowest_jain(report: &Value, (from, to): (f64, f64)) -> Outcome<f64> {
    let all = courses(report)?;
    let times = all.iter().flat_map(|c| c.rates.iter().map(|(at, _)| *at).chain([c.end_s]));
    let times = times.filter(|t| (from..to).contains(t));
    let index = |t: f64| jain(&all.iter().filter_map(|course| course.at(t)).collect::<Vec<_>>());
    let lowest = times.map(index).filter(|index| index.is_finite()).fold(f64::INFINITY, f64::min);
    if lowest.is_finite() { Ok(lowest) } else { Err("no rate was granted".to_owned()) }
}

/// How long after `from` the last flow got at least `bps`, s.
pub(super) fn all_have(report: &Value, bps: f64, from: f64) -> Outcome<f64> {
    let reached = |course: &Course| {
        let first = course.rates.iter().find(|(at, rate)| *at >= from && *rate >= bps);
        first.map(|(at, _)| at - from).ok_or_else(|| format!("a flow never got {bps} bit/s again"))
    };
    courses(report)?.iter().try_fold(0.0, |latest: f64, course| Ok(latest.max(reached(course)?)))
}

#[cfg(test)]
mod unit {
    use super::*;
    use serde_json::json;

    fn report() -> Value {
        let flow =
            |changes: Value, end: Option<f64>| json!({"finished_s": end, "rate": {"changes": changes}});
        let at = |at_s: f64, bps: f64| json!({"at_s": at_s, "bps": bps});
        json!({"simulated_s": 10.0, "flows": [
            flow(json!([at(1.0, 8.0), at(2.0, 4.0), at(6.0, 8.0)]), None),
            flow(json!([at(2.5, 4.0)]), Some(5.0)),
            flow(json!([]), None),
            {"goodput_bps": 1.0},
        ]})
    }

    #[test]
    fn the_index_is_that_of_the_flows_that_are_there() {
        assert_eq!((jain(&[3.0, 3.0]), jain(&[1.0, 0.0, 0.0, 0.0])), (1.0, 0.25));
        assert_eq!(lowest_jain(&report(), (0.0, 10.0)), Ok(1.0));
        let mut late = report();
        late["flows"][1]["rate"]["changes"][0]["at_s"] = json!(1.5);
        // 8 and 4
        assert_eq!(lowest_jain(&late, (0.0, 10.0)), Ok(0.9));
        assert_eq!(lowest_jain(&late, (2.0, 10.0)), Ok(1.0));
        assert!(lowest_jain(&json!({"simulated_s": 1.0, "flows": []}), (0.0, 1.0)).is_err());
    }

    #[test]
    fn a_rate_is_reached_by_the_last() {
        let mut report = report();
        assert!(all_have(&report, 8.0, 5.0).is_err());
        report["flows"][1]["rate"]["changes"][0] = json!({"at_s": 9.0, "bps": 8.0});
        assert_eq!(all_have(&report, 8.0, 5.0), Ok(4.0));
    }
}
