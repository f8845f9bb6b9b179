//! Figures from their files to their tables.

use super::{FigureJob, FigureResult, Verdict, figure};
use crate::error::Error;
use bentpipe_scenario::figure_file::{self, ScenarioRef};
use bentpipe_scenario::{Files, Source};
use std::fs;
use std::path::PathBuf;

const SCENARIO: &str = r#"schema = 1
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

const REST: &str = r#"
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
points = [[0.01, 2]]
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
expect = "1 Gbit/s"
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
another,printed,0.01,2000000,,,bit/s,made up
"#;

const VERDICTS: &str = r"paper,item,ours,low,high,runs,length,paper_value,verdict,command
,,1.50882,-4.19465,7.21229,2,2 s,0.1 Mbit/s to 4 Mbit/s,agrees,bentpipe figure f.toml --out DIR
,,0.00248477,0.00248477,0.00248477,2,2 s,1 Gbit/s,differs,bentpipe figure f.toml --out DIR
,,2.70163,2.70163,2.70163,2,2 s,2.7,agrees,bentpipe figure f.toml --out DIR
,,,,,0,,NewReno > another,not-run,bentpipe figure f.toml --out DIR
";

struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &str) -> Result<String, String> {
        Err("there are none".to_owned())
    }
}

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("bentpipe-figure-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    path
}

fn make(text: &str, out: &str, quick: bool) -> Result<FigureResult, Error> {
    let file = figure_file::load(&Source::new("f.toml", text)).map_err(Error::Figure)?;
    let ScenarioRef::Inline(scenario) = &file.scenario else { panic!("{text}") };
    let command = "bentpipe figure f.toml --out DIR".to_owned();
    let job = FigureJob { file: &file, scenario, files: &NoFiles, quick, threads: 2, command };
    figure(&job, &folder(out), &|_, _| {})
}

fn read(out: &str, name: &str) -> String {
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
        (with("unit = \"Mbit/s\"", "unit = \"s\""), "f.toml:49:18", "this does not fit what is drawn"),
        (with("\"1 Gbit/s\"", "\"1 s\""), "f.toml:62:10", "a rate, as in 1 Mbit/s"),
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
    assert!(!folder("refused").exists());
}
