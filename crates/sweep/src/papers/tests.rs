//! Papers from figure files to their tables.

use super::*;
use crate::figure::live::tests::Fake;
use crate::figure::tests::{REST, SCENARIO};
use bentpipe_scenario::figure_file::{self, FigureFile, ScenarioRef};
use bentpipe_scenario::{Files, Source};
use std::collections::BTreeMap;
use std::path::PathBuf;

const PAPERS: &str = "paper,name,citation\n000,first,A, B\n001,second,C\n";
const ITEMS: &str = "paper,item,what,where\n000,1,it is fast,1\n000,2,it is slow,2, 3\n001,1,it is there,1\n";

const VERDICTS: &str = "paper,item,ours,low,high,runs,length,paper_value,verdict,command
000,000-1,0.00248477,0.00248477,0.00248477,2,2 s,1e0 Gbit/s,differs,bentpipe papers 000/a
000,000-2,2.70163,2.70163,2.70163,2,2 s,2.7,agrees,bentpipe papers 000/b
001,001-1,,,,0,,,not-run,
";

struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &str) -> Result<String, String> {
        Err("there are none".to_owned())
    }
}

fn file(item: u64, more: &str) -> FigureFile {
    let text = format!("{SCENARIO}paper = \"000\"\nitem = {item}\n{more}{REST}");
    figure_file::load(&Source::new("f.toml", text)).unwrap_or_else(|e| panic!("{e}"))
}

/// Two figures of the same runs. The second one is about the last two statements only.
fn files() -> [FigureFile; 2] {
    let mut second = file(2, "cost = \"long\"\n");
    second.statements.drain(..2);
    [file(1, ""), second]
}

fn with_job<T>(files: &[FigureFile], f: impl FnOnce(&PapersJob<'_>) -> T) -> T {
    let all = read(PAPERS, ITEMS).unwrap();
    let figures: Vec<Figure<'_>> = files
        .iter()
        .zip(["000/a", "000/b"])
        .map(|(file, name)| {
            let ScenarioRef::Inline(scenario) = &file.scenario else { panic!("{name}") };
            let command = format!("bentpipe papers {name}");
            let job = FigureJob { file, scenario, files: &NoFiles, quick: false, threads: 2, command };
            Figure { name: name.to_owned(), job }
        })
        .collect();
    f(&PapersJob { papers: &all, figures: &figures, whole: &|_| true, quick: false, threads: 2 })
}

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("bentpipe-papers-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    path
}

/// All files but the runs, with their bytes.
fn written(out: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for folder in [out.to_owned(), out.join("figures")] {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap).filter(|e| e.path().is_file()) {
            all.insert(entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap());
        }
    }
    all
}

#[test]
fn figures_share_runs_and_an_item_has_the_verdict_of_its_worst_statement() {
    let out = folder("whole");
    let files = files();
    let made = with_job(&files, |job| papers(job, &out, &|_| {})).unwrap();
    assert_eq!((made.runs.executed, made.runs.already_stored), (8, 0));
    assert!(made.differs);
    let first = written(&out);
    assert_eq!(String::from_utf8_lossy(&first["verdicts.csv"]), VERDICTS);
    let names: Vec<&str> = first.keys().map(String::as_str).collect();
    let figures = ["000-a.csv", "000-a.png", "000-a.svg", "000-b.csv", "000-b.png", "000-b.svg"];
    assert_eq!(names, [&figures[..], &["index.html", "statements.csv", "verdicts.csv"]].concat());
    let page = String::from_utf8_lossy(&first["index.html"]);
    for part in [
        "<a href=\"#000-a\">000/a</a>",
        "<article id=\"000-b\">",
        "<a href=\"figures/000-b.png\">",
        "<a href=\"#item-000-1\">000-1</a>",
        "<strong>not-run</strong></td><td>it is there: no figure has a statement about it",
        "<summary>Points</summary>",
    ] {
        assert!(page.contains(part), "{part}\n{page}");
    }
    assert!(!page.contains("<script") && !page.contains("src="), "{page}");
    // some runs are lost, as when it was killed: the same bytes again
    for run in fs::read_dir(out.join("runs")).unwrap().take(3) {
        fs::remove_file(run.unwrap().path()).unwrap();
    }
    let again = with_job(&files, |job| papers(job, &out, &|_| {})).unwrap();
    assert_eq!((again.runs.executed, again.runs.already_stored), (3, 5));
    assert!(written(&out) == first, "the bytes differ");
    fs::remove_dir_all(out).unwrap();
}

#[test]
fn live_values_of_figures_are_one_table_and_decide_what_is_not_simulated() {
    let out = folder("live");
    let mut files = files();
    let text = format!(
        "{SCENARIO}paper = \"001\"\nitem = 1\n[live]\ncurves = \"live\"\n[[curves]]\nname = \"live\"\nrun = false\n\
         [[statements]]\ntext = \"it is there\"\ncurve = \"live\"\nat_least = \"1 Mbit/s\"\n"
    );
    files[1] = figure_file::load(&Source::new("f.toml", text)).unwrap_or_else(|e| panic!("{e}"));
    let verdict = |out: &Path| {
        let verdicts = fs::read_to_string(out.join("verdicts.csv")).unwrap();
        let last = verdicts.lines().last().unwrap_or_default();
        last.split(',').rev().nth(1).unwrap_or_default().to_owned()
    };
    with_job(&files, |job| papers(job, &out, &|_| {})).unwrap();
    assert_eq!((verdict(&out).as_str(), out.join("live.csv").exists()), ("not-run", false));
    let fake = Fake::new(1.01);
    let made = with_job(&files, |job| papers_live(job, &fake, &out, &|_| {})).unwrap();
    // its simulated runs are those of a point of the other figure
    assert_eq!(made.runs, Summary { executed: 0, already_stored: 8 });
    assert_eq!(made.live, Some(Summary { executed: 1, already_stored: 0 }));
    assert_eq!(verdict(&out), "agrees");
    let table = fs::read_to_string(out.join("live.csv")).unwrap();
    assert!(table.lines().nth(1).unwrap_or_default().starts_with("001,000/b,live,,25096"), "{table}");
    assert!(
        made.text.contains("000/b: live\nnote: 000/b: differs from the scenario: jitter\n"),
        "{}",
        made.text
    );
    let page = String::from_utf8(written(&out)["index.html"].clone()).unwrap();
    assert!(page.contains("<h4>Real packets</h4>") && page.contains("<a href=\"live.csv\">"), "{page}");
    let none = with_job(&files[..1], |job| papers_live(job, &fake, &out, &|_| {})).unwrap_err().to_string();
    assert!(none.contains("leave out --live, or name others"), "{none}");
    fs::remove_dir_all(out).unwrap();
}

#[test]
fn the_text_counts_items_and_says_what_differs_and_what_was_not_run() {
    let out = folder("text");
    let made = with_job(&files(), |job| papers(job, &out, &|_| {})).unwrap();
    for line in [
        "paper  agrees  differs  not-run\n000         1        1        0  first\n001         0        0        1  second\n\
         items       1        1        1\n",
        "000-1 it is not that fast (loss = 0): ours 0.00248477 ± 0 Gbit/s, the paper's 1e0 Gbit/s [000/a]\n",
        "the figure file does not say why",
        "001-1 it is there: no figure has a statement about it\n",
    ] {
        assert!(made.text.contains(line), "{line}\n{}", made.text);
    }
    fs::remove_dir_all(out).unwrap();
}

#[test]
fn the_costliest_runs_are_the_first() {
    with_job(&files(), |job| {
        let plans: Vec<Plan> = job.figures.iter().map(|f| Plan::new(&f.job).unwrap()).collect();
        let classes: Vec<_> = in_order(job, &plans, &[]).iter().map(|wanted| wanted.job.file.cost).collect();
        assert_eq!(classes.len(), 8);
        assert!(classes.windows(2).all(|two| two[0] >= two[1]), "{classes:?}");
    });
}

#[test]
fn a_wrong_table_of_items_is_refused() {
    for (papers, items, says) in [
        ("p,n,c\n000,first", "", "papers, line 2: not three columns"),
        ("p,n,c\n000,a,b", "p,i,w,w\n000,1,what", "items, line 2: not four columns"),
        ("p,n,c\n000,a,b", "p,i,w,w\n000,one,what,1", "items, line 2: the item is no number"),
        ("p,n,c\n000,a,b", "p,i,w,w\n001,1,what,1", "items, line 2: there is no such paper"),
        ("p,n,c\n000,a,b", "p,i,w,w\n000,1,a,1\n000,1,b,1", "items, line 3: the item is there twice"),
    ] {
        let error = read(papers, items).unwrap_err().to_string();
        assert!(error.starts_with(says), "{error}");
    }
}
