//! `--expect "goodput > 1 Mbit/s"`: figures that a run must reach.

use crate::options::Given;
use bentpipe_scenario::{Diagnostic, Measures, Scenario, amount};
use bentpipe_sim::metric::{Error, Metric, Unit};
use serde_json::Value;

/// One expectation.
#[derive(Clone, Debug)]
pub(crate) struct Expect {
    text: String,
    metric: Metric,
    holds: Test,
}

#[derive(Clone, Copy, Debug)]
enum Test {
    More(f64),
    AtLeast(f64),
    Less(f64),
    AtMost(f64),
    Equal(f64),
    /// Relative distance, and from what.
    Within(f64, f64),
}

/// Two signs before one: `>=` begins with `>`.
const OPERATORS: [&str; 6] = [">=", "<=", "==", ">", "<", " within "];

impl Expect {
    /// Reads one; also what clap calls.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let found =
            OPERATORS.iter().filter_map(|o| text.find(o).map(|at| (at, *o))).min_by_key(|(at, _)| *at);
        let Some((at, operator)) = found else {
            return Err(
                "no operator: write METRIC OPERATOR QUANTITY, as in 'goodput > 1 Mbit/s'; operators: \
                        >, >=, <, <=, ==, within 5 % of"
                    .to_owned(),
            );
        };
        let metric = Metric::parse(&text[..at]).map_err(|e| e.to_string())?;
        let right = &text[at + operator.len()..];
        let holds = match operator {
            ">=" => Test::AtLeast(quantity(right, &metric)?),
            "<=" => Test::AtMost(quantity(right, &metric)?),
            "==" => Test::Equal(quantity(right, &metric)?),
            ">" => Test::More(quantity(right, &metric)?),
            "<" => Test::Less(quantity(right, &metric)?),
            _ => {
                let (near, of) = right.split_once(" of ").ok_or("write `within 5 % of QUANTITY`")?;
                let near = amount(near).ok().filter(|a| a.measures == Measures::Bare);
                let near = near.ok_or("write `within 5 % of QUANTITY`: a percentage comes after `within`")?;
                Test::Within(near.value, quantity(of, &metric)?)
            }
        };
        Ok(Self { text: text.trim().to_owned(), metric, holds })
    }

    /// Refuses, before the run, names that it will not have.
    pub(crate) fn check(&self, scenario: &Scenario) -> Result<(), Box<Diagnostic>> {
        let given = Given { name: "--expect", value: &self.text };
        self.metric.check(scenario).map_err(|error| given.metric(&error))
    }

    /// Judges a report; the line that says so, and whether it is met.
    pub(crate) fn judge(&self, report: &Value) -> Result<(bool, String), Error> {
        let symbol = self.metric.unit().symbol();
        let Some(value) = self.metric.of_json(report)? else {
            let why = "it has no value in this run: what it measures did not happen or did not finish";
            return Ok((false, format!("not met: {}: {why}", self.text)));
        };
        let met = match self.holds {
            Test::More(limit) => value > limit,
            Test::AtLeast(limit) => value >= limit,
            Test::Less(limit) => value < limit,
            Test::AtMost(limit) => value <= limit,
            Test::Equal(wanted) => value.total_cmp(&wanted).is_eq(),
            Test::Within(near, of) => (value - of).abs() <= near * of.abs(),
        };
        let word = if met { "met" } else { "not met" };
        let line = format!("{word}: {}: it is {value} {symbol}", self.text);
        Ok((met, line.trim_end().to_owned()))
    }
}

/// The right side in the metric's unit.
fn quantity(text: &str, metric: &Metric) -> Result<f64, String> {
    let given = amount(text)?;
    let unit = metric.unit();
    let value = unit.takes(given).filter(|_| unit != Unit::Count || !text.contains('%'));
    value.ok_or_else(|| {
        format!("`{}` does not fit `{}`: write {}", text.trim(), metric.text(), unit.example())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn met(text: &str) -> bool {
        let report = json!({ "flows": [{ "name": "a", "goodput_bps": 1e6, "rtt_ms": { "p50": 500 }, "retransmits": 3 }] });
        Expect::parse(text).unwrap().judge(&report).unwrap().0
    }

    #[test]
    fn limits_are_judged_in_their_units() {
        for text in [
            "goodput >= 1 Mbit/s",
            "rtt_p50 < 0.6 s",
            "retransmits == 3 packets",
            "goodput within 5 % of 1.04 Mbit/s",
        ] {
            assert!(met(text), "{text}");
        }
        for text in
            ["goodput > 1 Mbit/s", "rtt_p50 < 500 ms", "goodput within 1 % of 1.04 Mbit/s", "finished < 1 h"]
        {
            assert!(!met(text), "{text}");
        }
    }

    #[test]
    fn slips_are_answered() {
        for (text, words) in [
            ("goodput", "no operator"),
            ("goodput > 5 ms", "a rate, as in"),
            ("goodput > 5", "a rate, as in"),
            ("retransmits < 5 %", "a number, as in 3"),
            ("godput > 1 bit/s", "did you mean `goodput`?"),
            ("goodput within 5 Mbit/s", "within 5 % of"),
        ] {
            let error = Expect::parse(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
