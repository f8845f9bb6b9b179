//! Figures from their files to their tables.

mod course;
mod formulas;
mod known;
mod trends;

use super::plan::Plan;
use super::{Cell, Cells, FigureJob, FigureResult, StatementResult, Verdict, draw, figure, judge};
use crate::error::Error;
use bentpipe_scenario::figure_file::{self, ScenarioRef};
use bentpipe_scenario::{Files, Source};
use std::fs;
use std::path::PathBuf;

pub(crate) const SCENARIO: &str = r#"schema = 1
title = "small"
scenario = '''
schema = 1
title = "a second of one connection"
duration = "$duration"

[parameters]
loss = { default = 0.0, doc = "packet loss probability" }
tcp = { default = "newreno", doc = "a scheme" }
duration = { default = "2 s", doc = "length" }

[dumbbell]
rtt = "100 ms"
rate = "10 Mbit/s"
buffer = "50 packets"
loss = "$loss"
access = { rate = "100 Mbit/s", delay = "1 ms", buffer = "1000 packets" }

[host]
tcp = "$tcp"

[[flows]]
name = "flow"
from = "src1"
to = "dst1"
'''
seeds = 2
quick = { set = { duration = "1 s" }, tolerance = "90 %" }
"#;

pub(crate) const REST: &str = r#"
[x]
parameter = "loss"
values = ["0", "0.02"]

[[curves]]
name = "NewReno"

[[curves]]
name = "SACK, too"
set = { tcp = "sack" }

[[curves]]
name = "another"
run = false

[[references]]
curve = "another"
unit = "Mbit/s"
points = [["1e-2", 2], ["2 %", 3]]
source = "made up"

[[statements]]
text = "loss costs"
curve = "NewReno"
at = "0.02"
between = ["0.1 Mbit/s", "4 Mbit/s"]

[[statements]]
text = "it is not that fast"
curve = "NewReno"
at = 0
expect = "1e0 Gbit/s"
tolerance = "5 %"

[[statements]]
text = "SACK recovers sooner"
curve = "SACK, too"
over = "NewReno"
at = 0
expect = 2.7
tolerance = "10 %"

[[statements]]
text = "nobody knows"
order = ["NewReno", "another"]
tolerance = "0 %"
"#;

const POINTS: &str = r#"curve,kind,x,value,half_width_95,runs,unit,source
NewReno,run,0,2484768,0,2,bit/s,
NewReno,run,0.02,1508816,5703469.279999999,2,bit/s,
"SACK, too",run,0,6712928,0,2,bit/s,
"SACK, too",run,0.02,1520400,5482689.824,2,bit/s,
another,printed,1e-2,2000000,,,bit/s,made up
another,printed,0.02,3000000,,,bit/s,made up
"#;

const VERDICTS: &str = r"paper,item,ours,low,high,runs,length,paper_value,verdict,command
,,1.50882,-4.19465,7.21229,2,2 s,0.1 Mbit/s to 4 Mbit/s,agrees,bentpipe figure f.toml --out DIR
,,0.00248477,0.00248477,0.00248477,2,2 s,1e0 Gbit/s,differs,bentpipe figure f.toml --out DIR
,,2.70163,2.70163,2.70163,2,2 s,2.7,agrees,bentpipe figure f.toml --out DIR
,,,,,0,,NewReno > another,not-run,bentpipe figure f.toml --out DIR
";

struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &str) -> Result<String, String> {
        Err("there are none".to_owned())
    }
}

pub(crate) fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("bentpipe-figure-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    path
}

pub(crate) fn with_job<T>(text: &str, quick: bool, f: impl FnOnce(&FigureJob<'_>) -> T) -> Result<T, Error> {
    let file = figure_file::load(&Source::new("f.toml", text)).map_err(Error::Figure)?;
    let ScenarioRef::Inline(scenario) = &file.scenario else { panic!("{text}") };
    let command = "bentpipe figure f.toml --out DIR".to_owned();
    Ok(f(&FigureJob { file: &file, scenario, files: &NoFiles, quick, threads: 2, command }))
}

fn make(text: &str, out: &str, quick: bool) -> Result<FigureResult, Error> {
    with_job(text, quick, |job| figure(job, &folder(out), &|_| {}))?
}

/// Judges cells with these values: curves, then values of x, then seeds.
fn judged(text: &str, values: &[[[f64; 2]; 2]]) -> Vec<StatementResult> {
    let cell = |v: &[f64; 2]| Cell { values: v.map(Some).to_vec(), runs: 2, length: 1.0 };
    let cells: Cells = values.iter().map(|of| of.iter().map(cell).collect()).collect();
    with_job(text, false, |job| judge::all(job, &Plan::new(job).unwrap(), &cells)).unwrap()
}

#[test]
fn a_ratio_by_zero_is_no_value() {
    let order = "text = \"an order\"\norder = [\"NewReno\", \"SACK, too\"]";
    let text = format!(
        "{SCENARIO}{}",
        REST.replace("text = \"nobody knows\"\norder = [\"NewReno\", \"another\"]", order)
    );
    let of =
        |below: f64| judged(&text, &[[[2e6, 3e6], [2e6, 3e6]], [[1e6, below], [1e6, 1e6]]]).pop().unwrap();
    assert_eq!((of(1e6).verdict, of(1e6).ours), (Verdict::Agrees, Some(2.5)));
    assert_eq!((of(0.0).verdict, of(0.0).ours), (Verdict::Differs, None));
}

#[test]
fn a_tolerance_is_as_wide_around_a_value_below_zero() {
    let text = format!("{SCENARIO}{}", REST.replace("expect = 2.7", "expect = -2.7"));
    let [_, _, ratio, _] = &judged(&text, &[[[1e6; 2]; 2], [[-2.6e6; 2]; 2]])[..] else { panic!("four") };
    assert_eq!((ratio.verdict, ratio.accepted.as_str()), (Verdict::Agrees, "-2.97 to -2.43"));
}

#[test]
fn curves_with_metrics_of_their_own_share_the_unit() {
    let plot =
        |text: &str| with_job(text, false, |job| draw::plot(job, &Plan::new(job).unwrap(), &Vec::new()));
    let without = &REST[..REST.find("[[references]]").unwrap()];
    let same = plot(&format!("{SCENARIO}{without}")).unwrap();
    assert_eq!(same.y.label, "goodput, Mbit/s");
    assert!(same.description.ends_with("over loss, mean and 95 % interval"), "{}", same.description);
    let with = |first: &str, second: &str| {
        let text = REST.replace("name = \"NewReno\"", &format!("name = \"NewReno\"\nmeasure = \"{first}\""));
        let to = format!("name = \"SACK, too\"\nmeasure = \"{second}\"");
        let text = text.replace("name = \"SACK, too\"", &to);
        let text = text.replace("name = \"another\"", &format!("name = \"another\"\nmeasure = \"{first}\""));
        plot(&format!("{SCENARIO}{}", text.split("[[references]]").next().unwrap())).unwrap()
    };
    let rates = with("goodput", "goodput[flow]");
    assert_eq!(rates.y.label, "Mbit/s");
    let counts = with("timeouts", "retransmits");
    assert_eq!(counts.y.label, "");
    assert!(counts.description.starts_with("values over loss"), "{}", counts.description);
}

pub(crate) fn read(out: &str, name: &str) -> String {
    let path = std::env::temp_dir().join(format!("bentpipe-figure-{out}-{}", std::process::id()));
    fs::read_to_string(path.join(name)).unwrap()
}

#[test]
fn a_figure_from_its_file_to_its_verdicts() {
    let made = make(&format!("{SCENARIO}{REST}"), "whole", false).unwrap();
    assert_eq!((made.runs.executed, made.runs.already_stored), (8, 0));
    let verdicts: Vec<Verdict> = made.verdicts.iter().map(|v| v.verdict).collect();
    assert_eq!(verdicts, [Verdict::Agrees, Verdict::Differs, Verdict::Agrees, Verdict::NotRun]);
    assert!(made.differs());
    assert_eq!(read("whole", "points.csv"), POINTS);
    assert_eq!(read("whole", "verdicts.csv"), VERDICTS);
    let svg = read("whole", "figure.svg");
    assert!(svg.contains(">SACK, too</text>") && svg.contains("Hollow marks"), "{svg}");
    let page = read("whole", "index.html");
    assert!(page.contains("it is not that fast") && page.contains("made up"), "{page}");
    fs::remove_dir_all(std::env::temp_dir().join(format!("bentpipe-figure-whole-{}", std::process::id())))
        .unwrap();
}

#[test]
fn a_quick_figure_has_fewer_runs_and_wider_tolerances() {
    let made = make(&format!("{SCENARIO}{REST}"), "quick", true).unwrap();
    let first = &made.verdicts[0];
    assert_eq!((made.runs.executed, first.runs, first.length), (4, 1, 1.0));
    assert_eq!(first.accepted, "0.01 to 7.6 Mbit/s");
    let table = SCENARIO.replace("quick = ", "# ");
    let error = make(&format!("{table}{REST}"), "none", true).unwrap_err();
    assert!(error.to_string().contains("give its file a table [quick]"), "{error}");
}

#[test]
fn what_the_scenario_does_not_have_is_refused_in_the_figure_file() {
    let with = |from: &str, to: &str| format!("{SCENARIO}{}", REST.replace(from, to));
    let mut wrong = Vec::new();
    for (text, place, says) in [
        (
            with("name = \"NewReno\"", "name = \"NewReno\"\nmeasure = \"goodputt\""),
            "f.toml:37:11",
            "did you mean `goodput`?",
        ),
        (
            with("name = \"NewReno\"", "name = \"NewReno\"\nmeasure = \"goodput[y]\""),
            "f.toml:37:11",
            "the run has no flow `y`",
        ),
        (
            with("name = \"NewReno\"", "name = \"NewReno\"\nmeasure = \"goodput / jain\""),
            "f.toml:37:11",
            "two metrics with the same unit",
        ),
        (
            with("name = \"NewReno\"", "name = \"NewReno\"\nmeasure = \"jain\""),
            "f.toml:40:8",
            "all curves of a figure have the same unit",
        ),
        (with("{ tcp = \"sack\" }", "{ tpc = \"sack\" }"), "f.toml:40:9", "did you mean `tcp`?"),
        (
            with("{ tcp = \"sack\" }", "{ tcp = \"sakc\" }"),
            "f.toml:40:15",
            "note: in the curve `SACK, too` with tcp = sakc, loss = 0",
        ),
        (with("{ tcp = \"sack\" }", "{ loss = 0.1 }"), "f.toml:40:9", "`loss` is the parameter of `[x]`"),
        (
            with("\"0.02\"", "\"2\"").replace("at = \"2\"", "at = 2"),
            "f.toml:33:16",
            "`loss` is a probability",
        ),
        (with("unit = \"Mbit/s\"", "unit = \"s\""), "f.toml:49:20", "this does not fit what is drawn"),
        (with("\"1e0 Gbit/s\"", "\"1 s\""), "f.toml:62:10", "a rate, as in 1 Mbit/s"),
        (
            with("rtt", "rtt").replace("rate = \"10 Mbit/s\"", "rate = \"10 MB\""),
            "f.toml:15:8",
            "note: in the curve `NewReno` with loss = 0",
        ),
    ] {
        let error = make(&text, "refused", false).unwrap_err().to_string();
        if !error.contains(says) || !error.contains(place) {
            wrong.push(format!("{place} {says}:\n{error}\n"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let bad = SCENARIO.replace("rate = \"10 Mbit/s\"", "rate = \"10 MB\"");
    let error = make(&format!("{bad}[[curves]]\nname = \"a\"\n"), "refused", false).unwrap_err().to_string();
    assert!(error.trim_end().ends_with("note: in the curve `a`"), "{error}");
    assert!(!folder("refused").exists());
}
