//! Curves that are computed.

use super::super::Verdict;
use super::{SCENARIO, make, read};

const WITH: &str = r#"
[x]
parameter = "loss"
values = ["0", "0.02"]

[[curves]]
name = "run"

[[curves]]
name = "ceiling"
formula = "ceiling-rate"
set = { rate = "10 Mbit/s", mss = "1000 B", headers = "40 B" }

[[statements]]
text = "the run is below it"
curve = "run"
over = "ceiling"
at_most = 1

[[statements]]
text = "its value"
curve = "ceiling"
at = "2 %"
expect = "9.423 Mbit/s"
tolerance = "0.01 %"
"#;

/// 10 Mbit/s x 1000 / 1040, and 98 % of it.
const POINTS: &str = "\
ceiling,formula,0,9615384.615384616,,0,bit/s,rate (1 - loss) mss / (mss + headers)
ceiling,formula,0.02,9423076.923076924,,0,bit/s,rate (1 - loss) mss / (mss + headers)
";

#[test]
fn a_formula_is_exact_and_needs_no_runs() {
    let made = make(&format!("{SCENARIO}{WITH}"), "formula", false).unwrap();
    assert_eq!(made.runs.executed, 4);
    let [ratio, value] = &made.verdicts[..] else { panic!("two") };
    assert_eq!((ratio.verdict, ratio.runs), (Verdict::Agrees, 2));
    assert!(ratio.interval.is_some());
    assert_eq!((value.verdict, value.runs, value.interval), (Verdict::Agrees, 0, None));
    assert!(read("formula", "points.csv").ends_with(POINTS), "{}", read("formula", "points.csv"));
    let page = read("formula", "index.html");
    assert!(page.contains("ceiling: rate (1 - loss) mss / (mss + headers) (each packet"), "{page}");
    assert!(read("formula", "figure.svg").contains("Lines without marks: formulas."));
    std::fs::remove_dir_all(
        std::env::temp_dir().join(format!("bentpipe-figure-formula-{}", std::process::id())),
    )
    .unwrap();
}

#[test]
fn arguments_come_from_x_the_curve_the_file_and_the_scenario() {
    let scenario = SCENARIO
        .replace(
            "duration = { default",
            "rtt = { default = \"100 ms\", doc = \"round trip\" }\nduration = { default",
        )
        .replace("rtt = \"100 ms\"\nrate", "rtt = \"$rtt\"\nrate");
    let curve = "[x]\nparameter = \"window\"\nvalues = [\"10 kB\", \"10 segments\"]\n[[curves]]\nname = \"w\"\n\
                 formula = \"window-rate\"\nset = { rate = \"10 Mbit/s\", mss = \"1 kB\" }\n";
    let values = |more: &str| {
        let made = make(&format!("{scenario}{more}{curve}"), "arguments", false).unwrap();
        assert_eq!(made.runs.executed, 0);
        let points = read("arguments", "points.csv");
        points.lines().skip(1).map(|row| row.split(',').nth(3).unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(values(""), ["800000", "800000"], "80 kbit in the scenario's 100 ms");
    assert_eq!(values("set = { rtt = \"200 ms\" }\n"), ["400000", "400000"]);
    std::fs::remove_dir_all(super::folder("arguments")).unwrap_or_default();
}

#[test]
fn what_a_formula_cannot_be_computed_with_is_refused_at_its_place() {
    let text = format!("{SCENARIO}{WITH}");
    let line = |start: &str| text.lines().position(|l| l.starts_with(start)).unwrap() + 1;
    let (formula, set) = (line("formula"), line("set = {"));
    let x = line("parameter");
    for (from, to, place, says) in [
        ("ceiling-rate", "ceiling", (formula, 11), "there is no formula `ceiling`"),
        ("ceiling-rate", "celing-rate", (formula, 11), "did you mean `ceiling-rate`?"),
        ("ceiling-rate", "packet-error", (formula, 11), "all curves of a figure have the same unit"),
        (
            "rate = \"10 Mbit/s\", ",
            "",
            (formula, 11),
            "give `rate` in `set` of the curve\n   = help: arguments of ceiling-rate: rate (the link's rate, as in 10 Mbit/s), loss",
        ),
        ("\"10 Mbit/s\", mss", "\"10 MB\", mss", (set, 16), "rate is the link's rate, as in 10 Mbit/s"),
        ("headers =", "header =", (set, 45), "did you mean `headers`?"),
    ] {
        let error = make(&text.replace(from, to), "formulas-refused", false).unwrap_err().to_string();
        let place = format!("f.toml:{}:{}\n", place.0, place.1);
        assert!(error.contains(says) && error.contains(&place), "{place}{says}:\n{error}");
    }
    let only =
        text.replace("[[curves]]\nname = \"run\"\n", "").split("[[statements]]").next().unwrap().to_owned();
    let error =
        make(&only.replace("\"loss\"\n", "\"los\"\n"), "formulas-refused", false).unwrap_err().to_string();
    assert!(error.contains(&format!("f.toml:{x}:13")), "{error}");
    assert!(error.contains("help: their arguments: headers, loss, mss, rate"), "{error}");
}
