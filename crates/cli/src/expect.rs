//! `--expect "goodput > 1 Mbit/s"`: conditions on the results of a run.

use crate::options::OptionValue;
use crate::outcome::print_message;
use bentpipe_report::metric::{Error, Metric, Names};
use bentpipe_report::{Report, Unit};
use bentpipe_scenario::{Diagnostic, Dimension, Scenario, amount_parts, parse_amount};
use bentpipe_sim::reference::in_unit;
use bentpipe_sim::report::names;
use bentpipe_sweep::find::{Comparison, Condition};
use core::ops::Range;

/// Digits that tell any two values of a metric apart.
const DIGITS: usize = 17;

#[derive(Clone, Debug)]
pub(crate) struct Expect {
    text: String,
    metric: Metric,
    test: Test,
    /// Position and text of the operator.
    operator: (usize, &'static str),
    /// The limit, and the tolerance of `within`.
    limit: (f64, f64),
}

#[derive(Clone, Copy, Debug)]
enum Test {
    Side(Comparison),
    Equal,
    Within,
}

/// Longer operators first, since `>=` begins with `>`.
const OPERATORS: [(&str, Test); 6] = [
    (">=", Test::Side(Comparison::AtLeast)),
    ("<=", Test::Side(Comparison::AtMost)),
    ("==", Test::Equal),
    (">", Test::Side(Comparison::Above)),
    ("<", Test::Side(Comparison::Below)),
    (" within ", Test::Within),
];

impl Test {
    fn holds(self, value: f64, (limit, near): (f64, f64)) -> bool {
        match self {
            Self::Side(comparison) => comparison.holds(value, limit),
            Self::Equal => value.total_cmp(&limit).is_eq(),
            Self::Within => (value - limit).abs() <= near * limit.abs(),
        }
    }
}

impl Expect {
    /// Parses a condition; clap calls it too.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        // the name of a live connection has one too: `goodput[near:40112 > far:5201] > 1 Mbit/s`
        let from = text.rfind(']').unwrap_or(0);
        let place = |sign: &str| text[from..].find(sign).map(|at| from + at);
        let found = OPERATORS.iter().filter_map(|(sign, test)| Some((place(sign)?, *sign, *test)));
        let (at, sign, test) = found.min_by_key(|(at, ..)| *at).ok_or(
            "no operator: write METRIC OPERATOR QUANTITY, as in 'goodput > 1 Mbit/s'; operators: \
             >, >=, <, <=, ==, within 5 % of",
        )?;
        let metric = Metric::parse(&text[..at]).map_err(|e| e.to_string())?;
        let right = &text[at + sign.len()..];
        let limit = if sign.starts_with(' ') {
            let (near, of) = right.split_once(" of ").ok_or("write `within 5 % of QUANTITY`")?;
            let near = parse_amount(near).ok().filter(|a| a.dimension == Dimension::Bare && a.value >= 0.0);
            let near = near.ok_or("write `within 5 % of QUANTITY`: a percentage comes after `within`")?;
            (quantity(of, &metric)?, near.value)
        } else {
            (quantity(right, &metric)?, 0.0)
        };
        Ok(Self { text: text.to_owned(), metric, test, operator: (at, sign), limit })
    }

    /// Rejects, before the run, names that the run will not have.
    /// `option` is where it was written.
    pub(crate) fn check(&self, option: &str, scenario: &Scenario) -> Result<(), Box<Diagnostic>> {
        let given = OptionValue { name: option, value: &self.text };
        self.metric.check(&names(scenario)).map_err(|error| given.metric(&error))
    }

    /// The same for a run of other programs: their connections get names when they are made.
    pub(crate) fn check_live(&self, option: &str, scenario: &Scenario) -> Result<(), Box<Diagnostic>> {
        match self.metric.check(&Names { flows: Vec::new(), ..names(scenario) }) {
            Err(Error::NotInRun { what: "flow", .. }) | Ok(()) => Ok(()),
            Err(error) => Err(OptionValue { name: option, value: &self.text }.metric(&error)),
        }
    }

    /// Returns the same as a condition to search; `None` for operators that do not divide a range in two.
    pub(crate) fn condition(&self) -> Option<Condition> {
        let (at, sign) = self.operator;
        let written = self.text[at + sign.len()..].trim().to_owned();
        let Test::Side(comparison) = self.test else { return None };
        Some(Condition { metric: self.metric.clone(), comparison, limit: self.limit.0, written })
    }

    /// Returns the byte range of the operator in the text.
    pub(crate) fn operator(&self) -> Range<usize> {
        let (at, sign) = self.operator;
        let start = at + sign.len() - sign.trim_start().len();
        start..start + sign.trim().len()
    }

    /// Checks a report; returns whether the condition is met, and a line that says so.
    fn judge(&self, report: &Report) -> (bool, String) {
        let why = match self.metric.of(report) {
            Ok(Some(value)) => {
                let met = self.test.holds(value, self.limit);
                let word = if met { "met" } else { "not met" };
                return (met, format!("{word}: {}: it is {}", self.text.trim(), self.shown(value, met)));
            }
            Ok(None) => {
                "it has no value in this run: what it measures did not happen or did not finish".to_owned()
            }
            // a connection that no program has made
            Err(error) => error.to_string(),
        };
        (false, format!("not met: {}: {why}", self.text.trim()))
    }

    /// A value in the unit of the condition, with four digits, or as many as it takes to be judged the same.
    fn shown(&self, value: f64, met: bool) -> String {
        let (at, sign) = self.operator;
        let right = &self.text[at + sign.len()..];
        let name = amount_parts(right.rsplit(" of ").next().unwrap_or(right)).1;
        let one = parse_amount(&format!("1 {name}")).ok().and_then(|one| in_unit(self.metric.unit(), one));
        let (scale, name) = one.map_or((1.0, self.metric.unit().symbol()), |one| (one, name));
        let rounded = |digits: usize| format!("{:.digits$e}", value / scale).parse::<f64>().unwrap_or(value);
        let at_limit = |value: f64| value.total_cmp(&self.limit.0).is_eq();
        let judged = |shown: &f64| {
            let shown = shown * scale;
            self.test.holds(shown, self.limit) == met && at_limit(shown) == at_limit(value)
        };
        let shown = (3..DIGITS).map(rounded).find(judged).unwrap_or(value / scale);
        format!("{shown} {name}").trim_end().to_owned()
    }
}

/// Says of each condition whether the report meets it, after the name of the run; true if it meets all.
pub(crate) fn judge_all(expects: &[Expect], report: &Report, run: &str) -> bool {
    expects.iter().fold(true, |all_met, expect| {
        let (met, line) = expect.judge(report);
        print_message(&format!("{run}{line}"));
        all_met && met
    })
}

/// Converts the right side to the metric's unit.
fn quantity(text: &str, metric: &Metric) -> Result<f64, String> {
    let given = parse_amount(text)?;
    let unit = metric.unit();
    let value = in_unit(unit, given).filter(|_| unit != Unit::Count || !text.contains('%'));
    value.ok_or_else(|| {
        format!("`{}` does not fit `{}`: write {}", text.trim(), metric.text(), unit.example())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_report::{FlowKind, FlowReport, Quantiles, TcpReport};

    fn met(text: &str) -> bool {
        let rtt_ms = Quantiles { p50: Some(500.0), ..Quantiles::default() };
        let tcp = TcpReport { rtt_ms, retransmits: 3, ..TcpReport::default() };
        let name = "near:1 > far:2".to_owned();
        let flow = FlowReport {
            name: name.into(),
            goodput_bps: 1e6,
            kind: FlowKind::from(tcp),
            ..FlowReport::default()
        };
        let report = Report { flows: vec![flow], ..Report::default() };
        Expect::parse(text).unwrap().judge(&report).0
    }

    #[test]
    fn limits_are_judged_in_their_units() {
        for text in [
            "goodput >= 1 Mbit/s",
            "rtt_p50 < 0.6 s",
            "retransmits == 3 packets",
            "goodput within 5 % of 1.04 Mbit/s",
            "goodput[near:1 > far:2] > 0.9 Mbit/s",
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
    fn values_are_shown_in_the_unit_of_the_condition_with_the_digits_that_decide() {
        let shown = |text: &str, value: f64, met| Expect::parse(text).unwrap().shown(value, met);
        assert_eq!(shown("goodput > 1 Mbit/s", 1_473_456.0, true), "1.473 Mbit/s");
        assert_eq!(shown("goodput > 1 Mbit/s", 999_999.0, false), "0.999999 Mbit/s");
        assert_eq!(shown("utilisation > 50 %", 0.224_939_137_542_666_67, false), "22.49 %");
        assert_eq!(shown("utilisation > 0.5", 0.224_939_137_542_666_67, false), "0.2249");
        assert_eq!(shown("goodput within 5 % of 1.04 Mbit/s", 1e6, true), "1 Mbit/s");
        assert_eq!(shown("retransmits < 3 packets", 12_345_678.0, false), "12350000 packets");
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
            ("goodput within -5 % of 1 Mbit/s", "a percentage comes after `within`"),
        ] {
            let error = Expect::parse(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
