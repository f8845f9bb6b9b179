//! `bentpipe papers`: all figures and tables of five papers.

use crate::figure;
use crate::live::RealPackets;
use crate::outcome::Failure;
use crate::progress::{print_live, print_summary, with_progress};
use crate::shipped::{FIGURES, PAPERS};
use bentpipe_base::names::{listed, nearest};
use bentpipe_os::Clock;
use bentpipe_scenario::figure_file::{self, Cost, FigureFile, ScenarioRef};
use bentpipe_scenario::{Files, Source};
use bentpipe_sweep::figure::{FigureJob, PAGE};
use bentpipe_sweep::papers::{self, Figure, Paper, PapersJob};
use core::fmt::Write as _;
use std::path::PathBuf;

pub(crate) const EXAMPLES: &str = "Examples:
  bentpipe papers --out results/
  bentpipe papers 003 004/table-2 --full --out results/
  bentpipe papers --live --out results/
  bentpipe papers --list
  bentpipe papers --show 004/table-2 > my-figure.toml";

/// Options of `bentpipe papers`.
#[derive(Debug, clap::Args)]
pub(crate) struct Papers {
    /// A paper (003) or a figure (003/figure-5), or several; without one all of them.
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Shorter or fewer runs where a figure is long, and wider tolerances: at most two minutes on two cores
    /// (default).
    #[arg(long, conflicts_with = "full")]
    pub(crate) quick: bool,
    /// All seeds and lengths.
    #[arg(long)]
    pub(crate) full: bool,
    /// Also run with real packets what the figures name, in real time, and compare it with the simulated
    /// value: a quarter of an hour for all of them.
    #[arg(long)]
    pub(crate) live: bool,
    /// List the figures, and make none.
    #[arg(long, conflicts_with_all = ["quick", "full", "live", "out", "show"])]
    pub(crate) list: bool,
    /// Print the file of a figure, and make none.
    #[arg(long, value_name = "FIGURE", conflicts_with_all = ["names", "quick", "full", "live", "out"])]
    pub(crate) show: Option<String>,
    /// Number of threads; 0 for one per core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u16).range(..=1024))]
    pub(crate) threads: u16,
    /// Folder for runs, figures, tables and page.
    #[arg(long, value_name = "DIR", required_unless_present_any = ["list", "show"])]
    pub(crate) out: Option<PathBuf>,
}

/// A figure of the program.
struct Shipped {
    name: &'static str,
    file: FigureFile,
    scenario: Source,
}

/// A figure of the program has its whole scenario in it.
struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &str) -> Result<String, String> {
        Err("figures of papers have no files beside them".to_owned())
    }
}

/// Makes the figures; returns the verdicts, and whether nothing differs but what the files say.
pub(crate) fn run(options: &Papers) -> Result<(String, bool), Failure> {
    if let Some(name) = &options.show {
        let found = FIGURES.iter().find(|(figure, _)| figure == name);
        return found.map(|(_, text)| ((*text).to_owned(), true)).ok_or_else(|| unknown(name));
    }
    let figures: Vec<Shipped> = chosen(&options.names)?.into_iter().map(load).collect::<Result<_, _>>()?;
    let Some(out) = options.out.as_ref().filter(|_| !options.list) else {
        return Ok((list(&figures), true));
    };
    let all = papers::read(PAPERS.0, PAPERS.1).map_err(Failure::input)?;
    let is_whole = |p: &Paper| options.names.is_empty() || options.names.contains(&p.short);
    let figures: Vec<Figure<'_>> = figures.iter().map(|f| as_job(f, !options.full, options.live)).collect();
    let job = PapersJob {
        papers: &all,
        figures: &figures,
        whole: &|paper| is_whole(paper),
        quick: !options.full,
        threads: options.threads.into(),
    };
    let clock = Clock::start();
    let live = options.live.then(RealPackets::new).transpose()?;
    let made = with_progress(figure::words(out), |tell| match &live {
        Some(runner) => papers::papers_live(&job, runner, out, tell),
        None => papers::papers(&job, out, tell),
    });
    let made = made.map_err(figure::failure)?;
    print_live(made.live);
    print_summary(made.runs, out, Some(PAGE), clock);
    Ok((made.text, !made.differs))
}

/// Returns the figures that are named, each once and in the order of the program's; all without a name.
fn chosen(names: &[String]) -> Result<Vec<(&'static str, &'static str)>, Failure> {
    let is = |figure: &str, name: &str| {
        figure == name || figure.split_once('/').is_some_and(|(paper, _)| paper == name)
    };
    if let Some(wrong) = names.iter().find(|name| !FIGURES.iter().any(|(figure, _)| is(figure, name))) {
        return Err(unknown(wrong));
    }
    let wanted = |figure: &str| names.is_empty() || names.iter().any(|name| is(figure, name));
    Ok(FIGURES.iter().filter(|(figure, _)| wanted(figure)).copied().collect())
}

fn unknown(name: &str) -> Failure {
    let mut papers: Vec<&str> = FIGURES.iter().filter_map(|(f, _)| f.split('/').next()).collect();
    papers.dedup();
    let names = FIGURES.iter().map(|(figure, _)| *figure).chain(papers.iter().copied());
    let near = nearest(name, names).map_or_else(String::new, |n| format!(": did you mean `{n}`?"));
    Failure::input(format!(
        "there is no paper or figure `{name}`{near}\nhelp: papers: {}; `bentpipe papers --list` lists their figures",
        listed(papers)
    ))
}

fn load((name, text): (&'static str, &'static str)) -> Result<Shipped, Failure> {
    let file = figure_file::load(&Source::new(format!("papers/{name}.toml"), text))?;
    let scenario = match &file.scenario {
        ScenarioRef::Inline(source) => source.clone(),
        ScenarioRef::Named(named) => figure::shipped(named)?,
    };
    Ok(Shipped { name, file, scenario })
}

/// A figure without a shorter version is whole nevertheless.
fn as_job(of: &Shipped, quick: bool, live: bool) -> Figure<'_> {
    let mode = if quick { "--quick" } else { "--full" };
    let live = if live && of.file.live.is_some() { " --live" } else { "" };
    Figure {
        name: of.name.to_owned(),
        job: FigureJob {
            file: &of.file,
            scenario: &of.scenario,
            files: &NoFiles,
            quick: quick && of.file.quick.is_some(),
            threads: 0,
            command: format!("bentpipe papers {} {mode}{live} --out DIR", of.name),
        },
    }
}

fn list(figures: &[Shipped]) -> String {
    let width = figures.iter().map(|f| f.name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for Shipped { name, file, .. } in figures {
        let cost = match file.cost {
            Cost::Quick => "quick",
            Cost::Normal => "normal",
            Cost::Long => "long",
        };
        let _ = writeln!(out, "{name:width$}  {cost:<6}  {}", file.title);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_sweep::figure::check;

    fn error(names: &[&str]) -> String {
        let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
        chosen(&names).err().map_or_else(String::new, |failure| failure.text)
    }

    #[test]
    fn the_papers_have_113_items_in_their_order() {
        let papers = papers::read(PAPERS.0, PAPERS.1).unwrap();
        let numbers: Vec<(&str, usize)> = papers.iter().map(|p| (p.short.as_str(), p.items.len())).collect();
        assert_eq!(numbers, [("000", 27), ("001", 28), ("002", 17), ("003", 16), ("004", 25)]);
        for paper in &papers {
            assert!(paper.items.iter().zip(1..).all(|(item, n)| item.number == n), "{}", paper.short);
        }
    }

    #[test]
    fn a_figure_of_a_paper_is_about_its_items_and_needs_no_files() {
        let papers = papers::read(PAPERS.0, PAPERS.1).unwrap();
        for shipped in chosen(&[]).unwrap_or_default() {
            let shipped = load(shipped).unwrap_or_else(|e| panic!("{}", e.text));
            let (short, _) = shipped.name.split_once('/').unwrap();
            assert_eq!(shipped.file.paper.as_deref(), Some(short), "{}", shipped.name);
            assert!(!shipped.file.statements.is_empty(), "{}", shipped.name);
            let paper = papers.iter().find(|p| p.short == short).unwrap();
            for statement in &shipped.file.statements {
                let known = |n: &u64| paper.items.iter().any(|i| i.number == *n);
                let text = &statement.text.value;
                assert!(
                    !statement.items.is_empty() && statement.items.iter().all(known),
                    "{}: {text}",
                    shipped.name
                );
            }
            for quick in [true, false] {
                check(&as_job(&shipped, quick, false).job).unwrap_or_else(|e| panic!("{e}"));
            }
        }
    }

    #[test]
    fn names_are_papers_or_figures() {
        let names = |given: &[&str]| {
            let given: Vec<String> = given.iter().map(|n| (*n).to_owned()).collect();
            chosen(&given).map(|all| all.into_iter().map(|f| f.0).collect::<Vec<_>>()).unwrap_or_default()
        };
        assert_eq!(names(&["004/table-2", "003/figure-5"]), ["003/figure-5", "004/table-2"]);
        assert!(names(&["003"]).len() > 1 && names(&["003"]).iter().all(|n| n.starts_with("003/")));
        assert_eq!(names(&[]).len(), FIGURES.len());
        assert_eq!(
            error(&["003", "004/tabel-2"]),
            "there is no paper or figure `004/tabel-2`: did you mean `004/table-2`?\n\
             help: papers: 000, 001, 002, 003, 004; `bentpipe papers --list` lists their figures"
        );
    }
}
