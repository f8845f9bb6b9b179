//! Trends along x, and ratios to another x.

use super::super::{StatementResult, Verdict};
use super::{SCENARIO, judged};

const CURVES: &str = r#"
[x]
parameter = "loss"
values = ["0.02", "0"]

[[curves]]
name = "a"

[[curves]]
name = "b"

[[statements]]
text = "s"
"#;

fn judge(statement: &str, values: [[[f64; 2]; 2]; 2]) -> StatementResult {
    judged(&format!("{SCENARIO}{CURVES}{statement}"), &values).remove(0)
}

const OTHER: [[f64; 2]; 2] = [[4.0, 8.0], [10.0, 10.0]];

/// The values of x are 0.02 and 0: towards higher x the mean falls if the first is the smaller one.
#[test]
fn a_trend_is_along_rising_x_whatever_their_order() {
    let of = |word: &str, first: f64, second: f64| {
        let statement = format!("curve = \"a\"\n{word} = true\ntolerance = \"10 %\"\n");
        let result = judge(&statement, [[[first; 2], [second; 2]], OTHER]);
        (result.verdict, result.ours)
    };
    assert_eq!(of("falls", 1.0, 2.0), (Verdict::Agrees, Some(0.5)));
    assert_eq!(of("rises", 1.0, 2.0), (Verdict::Differs, Some(2.0)));
    assert_eq!(of("falls", 2.1, 2.0), (Verdict::Agrees, Some(1.05)));
    assert_eq!(of("rises", 2.0, 1.0), (Verdict::Agrees, Some(0.5)));
    assert_eq!(of("falls", 2.3, 2.0).0, Verdict::Differs);
    assert_eq!(of("falls", 0.0, 0.0), (Verdict::Agrees, Some(1.0)), "two zeros are equal");
    assert_eq!(of("falls", 1.0, 0.0), (Verdict::Differs, None), "by zero is no value");
}

#[test]
fn a_trend_without_tolerance_is_strict() {
    let of = |values| judge("curve = \"a\"\nfalls = true\ntolerance = \"0 %\"\n", [values, OTHER]);
    let equal = of([[2.0; 2]; 2]);
    assert_eq!((equal.verdict, equal.paper_value.as_str()), (Verdict::Differs, "falls"));
    assert_eq!((equal.accepted.as_str(), equal.at.as_str()), ("below 1", "loss = 0.02 over loss = 0"));
}

#[test]
fn a_ratio_to_another_x_is_taken_seed_by_seed() {
    let a = [[2.0, 3.0], [1.0, 2.0]];
    let own = judge("curve = \"a\"\nat = 0\nover_at = 0.02\nbetween = [0.5, 0.6]\n", [a, OTHER]);
    // (1 / 2 + 2 / 3) / 2
    assert!((own.ours.unwrap() - 7.0 / 12.0).abs() < 1e-12, "{own:?}");
    assert_eq!((own.verdict, own.at.as_str()), (Verdict::Agrees, "loss = 0 over loss = 0.02"));
    let other = judge(
        "curve = \"a\"\nover = \"b\"\nat = 0\nover_at = 0.02\nexpect = 0.25\ntolerance = \"1 %\"\n",
        [a, OTHER],
    );
    assert_eq!((other.verdict, other.ours), (Verdict::Agrees, Some(0.25)));
    assert_eq!(other.at, "a over b, loss = 0 over loss = 0.02");
}
