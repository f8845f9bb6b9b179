//! Live parts of figures, with a runner that simulates and changes what it reports.

use super::{LiveError, LiveRun, LiveRunner, LiveVerdict};
use crate::Summary;
use crate::error::Error;
use crate::figure::tests::{REST, SCENARIO, folder, read, with_job};
use crate::figure::{FigureResult, Verdict, figure, figure_live};
use bentpipe_report::LiveReport;
use bentpipe_scenario::Scenario;
use bentpipe_sim::{RecordOptions, run_recorded};
use std::cell::{Cell, RefCell};
use std::fs;
use std::path::PathBuf;

/// Runs in simulated time; what it measures is `factor` times as much.
pub(crate) struct Fake {
    factor: f64,
    /// How many of the next runs are not to be trusted.
    slow: Cell<usize>,
    /// Seeds of the runs.
    seeds: RefCell<Vec<u64>>,
    refuses: Option<&'static str>,
}

impl Fake {
    pub(crate) fn new(factor: f64) -> Self {
        Self { factor, slow: Cell::new(0), seeds: RefCell::default(), refuses: None }
    }
}

impl LiveRunner for Fake {
    fn check(&self, _: &Scenario) -> Result<(), LiveError> {
        self.refuses.map_or(Ok(()), |text| Err(LiveError { text: text.to_owned(), refused: true }))
    }

    fn run(&self, scenario: &Scenario) -> Result<LiveRun, LiveError> {
        self.seeds.borrow_mut().push(scenario.seed);
        let (mut report, mut record) = run_recorded(scenario, &RecordOptions::default(), |_| None);
        report.flows.iter_mut().for_each(|flow| flow.goodput_bps *= self.factor);
        let columns = record.flows.iter_mut().flat_map(|f| &mut f.columns);
        let goodput = columns.filter(|c| c.key == "goodput_bps");
        goodput.for_each(|c| c.values.iter_mut().for_each(|v| *v *= self.factor));
        let trusted = self.slow.get() == 0;
        self.slow.set(self.slow.get().saturating_sub(1));
        let doubts = if trusted { Vec::new() } else { vec!["7 packets were lost".to_owned()] };
        let differs = vec!["jitter".to_owned()];
        report.live = Some(LiveReport { trusted, doubts, differs, ..LiveReport::default() });
        Ok(LiveRun { report, record })
    }
}

fn text(live: &str) -> String {
    format!("{SCENARIO}[live]\n{live}{REST}")
}

/// Path of a folder, which is kept.
fn folder_of(out: &str) -> PathBuf {
    std::env::temp_dir().join(format!("bentpipe-figure-{out}-{}", std::process::id()))
}

fn make(text: &str, out: &str, runner: &Fake) -> Result<FigureResult, Error> {
    with_job(text, false, |job| figure_live(job, runner, &folder_of(out), &|_| {}))?
}

/// Columns of `live.csv` by their names, one row for each live value.
fn rows(out: &str) -> Vec<Vec<String>> {
    let table = read(out, "live.csv");
    assert!(
        table.starts_with("paper,figure,curve,x,live,simulated,low,high,unit,tolerance,verdict,command\n")
    );
    // the name of a curve has a comma
    let lines = table.lines().skip(1).map(|line| line.replace("\"SACK, too\"", "SACK"));
    lines.map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

fn number(row: &[String], column: usize) -> f64 {
    row[column].parse().unwrap_or_else(|_| panic!("{row:?}"))
}

#[test]
fn a_live_value_stands_beside_the_mean_of_simulated_runs_with_its_parameters() {
    let out = "live-whole";
    drop(folder(out));
    let fake = Fake::new(1.0);
    let live = "at = 0.02\nset = { duration = \"1 s\" }\nseeds = 3\ntolerance = \"1 %\"\n";
    let made = make(&text(live), out, &fake).unwrap();
    assert_eq!(made.live, Some(Summary { executed: 2, already_stored: 0 }));
    assert_eq!(fake.seeds.borrow()[..], [1, 1], "the first seed of each point");
    // eight of the figure, and three beside each of two live ones
    assert_eq!(made.runs, Summary { executed: 14, already_stored: 0 });
    let rows = rows(out);
    let curves: Vec<(&str, &str)> = rows.iter().map(|row| (row[2].as_str(), row[3].as_str())).collect();
    assert_eq!(curves, [("NewReno", "0.02"), ("SACK", "0.02")]);
    let points = read(out, "points.csv");
    for row in &rows {
        assert_eq!((row[8].as_str(), row[9].as_str()), ("bit/s", "1 %"));
        // the mean of three more runs differs from one run, and the interval is around it
        assert_ne!(row[4], row[5]);
        let middle = (number(row, 6) + number(row, 7)) / 2.0;
        assert!((middle / number(row, 5) - 1.0).abs() < 1e-9, "{row:?}");
        assert!(!points.contains(&row[5]), "these are shorter than those of the figure");
    }
    let page = read(out, "index.html");
    for part in
        ["<h2>Real packets</h2>", "Crosses: real packets.", "differs from the scenario: jitter", "live.csv"]
    {
        assert!(page.contains(part), "{part}\n{page}");
    }
    assert!(read(out, "figure.svg").contains(">live</text>"));
    assert!(made.to_text().contains("small: NewReno, 0.02\n"), "{}", made.to_text());
    fs::remove_dir_all(folder_of(out)).unwrap();
}

#[test]
fn a_live_value_is_judged_by_the_tolerance_or_the_interval() {
    let out = "live-judged";
    // without loss the two seeds are equal, so the interval is no wider than the mean
    for (factor, tolerance, verdict) in [
        (1.04, "5 %", "agrees"),
        (1.06, "5 %", "differs"),
        (0.94, "5 %", "differs"),
        (1.04, "0.1 Mbit/s", "agrees"),
        (1.05, "0.1 Mbit/s", "differs"),
    ] {
        drop(folder(out));
        let live = format!("curves = \"NewReno\"\nat = 0\ntolerance = \"{tolerance}\"\n");
        let made = make(&text(&live), out, &Fake::new(factor)).unwrap();
        let rows = rows(out);
        assert_eq!(rows[0][10], verdict, "{factor} {tolerance} {rows:?}");
        assert!((number(&rows[0], 4) / number(&rows[0], 5) - factor).abs() < 1e-9);
        assert_eq!(made.live_differs, verdict == "differs");
        assert!(made.differs(), "a statement of the figure differs too");
    }
    // with loss two runs differ by more than these 60 %, and so may a third one
    drop(folder(out));
    make(&text("curves = \"NewReno\"\nat = 0.02\n"), out, &Fake::new(1.6)).unwrap();
    assert_eq!(rows(out)[0][10], "agrees");
    fs::remove_dir_all(folder_of(out)).unwrap();
}

#[test]
fn a_run_that_is_not_to_be_trusted_is_repeated_once_and_said() {
    let out = "live-slow";
    drop(folder(out));
    let text = text("curves = \"NewReno\"\nat = 0\n");
    let fake = Fake::new(1.0);
    fake.slow.set(1);
    make(&text, out, &fake).unwrap();
    assert_eq!((fake.seeds.borrow().len(), rows(out)[0][10].as_str()), (2, "agrees"));
    // it was to be trusted, so it is kept
    let made = make(&text, out, &fake).unwrap();
    assert_eq!(made.live, Some(Summary { executed: 0, already_stored: 1 }));
    drop(folder(out));
    let fake = Fake::new(1.0);
    fake.slow.set(2);
    let made = make(&text, out, &fake).unwrap();
    assert_eq!((fake.seeds.borrow().len(), rows(out)[0][10].as_str()), (2, "untrusted"));
    assert!(!made.live_differs);
    let said = made.to_text();
    assert!(said.contains("note: small: the machine was too slow: 7 packets were lost\n"), "{said}");
    let again = make(&text, out, &fake).unwrap();
    assert_eq!(again.live, Some(Summary { executed: 1, already_stored: 0 }), "it was not kept");
    assert_eq!(rows(out)[0][10], LiveVerdict::Agrees.word());
    fs::remove_dir_all(folder_of(out)).unwrap();
}

#[test]
fn a_curve_that_is_not_run_is_judged_by_its_live_values() {
    let out = "live-only";
    drop(folder(out));
    let statement = "\n[[statements]]\ntext = \"live is as simulated\"\ncurve = \"another\"\nover = \"NewReno\"\n\
                     at = 0\nexpect = 2\ntolerance = \"1 %\"\n";
    let elsewhere = statement.replace("at = 0\n", "at = 0.02\n");
    let text = text("curves = [\"another\"]\nat = 0\n") + statement + &elsewhere;
    let last = |made: &FigureResult| {
        let [.., one, other] = &made.verdicts[..] else { panic!("{made:?}") };
        (one.verdict, other.verdict, one.ours.map(f64::round))
    };
    let made = with_job(&text, false, |job| figure(job, &folder_of(out), &|_| {})).unwrap().unwrap();
    assert_eq!(last(&made), (Verdict::NotRun, Verdict::NotRun, None));
    let made = make(&text, out, &Fake::new(2.0)).unwrap();
    assert_eq!(last(&made), (Verdict::Agrees, Verdict::NotRun, Some(2.0)));
    // the slow machine says nothing about it
    drop(folder(out));
    let fake = Fake::new(2.0);
    fake.slow.set(2);
    assert_eq!(last(&make(&text, out, &fake).unwrap()), (Verdict::NotRun, Verdict::NotRun, None));
    fs::remove_dir_all(folder_of(out)).unwrap();
}

#[test]
fn the_course_of_a_live_run_has_the_steps_of_the_figure() {
    let out = "live-course";
    drop(folder(out));
    let text = format!(
        "{SCENARIO}measure = \"goodput[flow]\"\n[live]\nat = [\"1 s\", \"2 s\"]\ntolerance = \"0.01 %\"\n\
         [x]\ntime = \"500 ms\"\nto = \"2 s\"\n[[curves]]\nname = \"NewReno\"\n"
    );
    let made = make(&text, out, &Fake::new(1.0)).unwrap();
    assert_eq!(made.live, Some(Summary { executed: 1, already_stored: 0 }));
    let rows = rows(out);
    let seen: Vec<(&str, &str)> = rows.iter().map(|row| (row[3].as_str(), row[10].as_str())).collect();
    assert_eq!(seen, [("1 s", "agrees"), ("2 s", "agrees")]);
    assert!(number(&rows[1], 4) > 0.0 && rows[0][4] != rows[1][4], "{rows:?}");
    fs::remove_dir_all(folder_of(out)).unwrap();
}

#[test]
fn what_cannot_be_run_live_is_refused_before_any_run() {
    let out = "live-refused";
    let with = |live: &str, scenario: (&str, &str)| text(live).replacen(scenario.0, scenario.1, 1);
    let none = ("", "");
    let mut wrong = Vec::new();
    for (text, place, says) in [
        (with("set = { loss = 0.1 }\n", none), "f.toml:31:9", "`loss` is the parameter of `[x]`"),
        (with("set = { durations = \"1 s\" }\n", none), "f.toml:31:9", "did you mean `duration`?"),
        (with("tolerance = \"1 s\"\n", none), "f.toml:31:13", "that is a rate, as in 1 Mbit/s, or a share"),
        (
            with("", ("loss = \"$loss\"", "loss = \"$loss\"\nmtu = { size = \"1000 B\" }")),
            "f.toml:31:1",
            "an MTU does not act on real packets",
        ),
    ] {
        let fake = Fake::new(1.0);
        let error = make(&text, out, &fake).unwrap_err().to_string();
        // also where nothing is run live
        let without = with_job(&text, false, |job| figure(job, &folder_of(out), &|_| {})).unwrap();
        if !error.contains(says) || !error.contains(place) || without.unwrap_err().to_string() != error {
            wrong.push(format!("{place} {says}:\n{error}\n"));
        }
        assert!(fake.seeds.borrow().is_empty());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let fake = Fake { refuses: Some("no namespaces\nhelp: do this"), ..Fake::new(1.0) };
    let error = make(&text(""), out, &fake).unwrap_err();
    assert!(matches!(&error, Error::Live(live) if live.refused), "{error}");
    assert_eq!(error.to_string(), "no namespaces\nhelp: do this");
    let nothing = make(&format!("{SCENARIO}{REST}"), out, &Fake::new(1.0)).unwrap_err().to_string();
    assert!(nothing.contains("give its file a table [live], or leave out --live"), "{nothing}");
    assert!(!folder_of(out).exists());
}
