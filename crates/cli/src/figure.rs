//! `bentpipe figure`: a figure or table from its file.

use crate::input::{self, Beside};
use crate::live::RealPackets;
use crate::outcome::Failure;
use crate::progress::{Words, print_live, print_summary, with_progress};
use crate::shipped;
use bentpipe_os::Clock;
use bentpipe_scenario::figure_file::{self, FigureFile, Located, ScenarioRef};
use bentpipe_scenario::{Diagnostic, Source};
use bentpipe_sweep::figure::{self, FigureJob, PAGE, Verdict, figure, verdict_text};
use bentpipe_sweep::{Error, Summary};
use std::path::{Path, PathBuf};

pub(crate) const EXAMPLES: &str = "Examples:
  bentpipe figure papers/004/table-2.toml --out table/
  bentpipe figure my-figure.toml --quick --out figure/
  bentpipe figure papers/002/window.toml --live --out figure/
  bentpipe figure papers/000/figure-3.toml --turned --out figure/";

/// Options of `bentpipe figure`.
#[derive(Debug, clap::Args)]
pub(crate) struct Figure {
    /// Figure file.
    pub(crate) file: PathBuf,
    /// Make the shorter version that the file has, with its wider tolerance.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Also run what the file names in `[live]` with real packets, in real time, and compare it with the
    /// simulated value.
    #[arg(long, conflicts_with = "turned")]
    pub(crate) live: bool,
    /// Check the statements that are known to differ with the parameters of their `turn`, and nothing else.
    #[arg(long)]
    pub(crate) turned: bool,
    /// Number of threads; 0 for one per core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u16).range(..=1024))]
    pub(crate) threads: u16,
    /// Folder for runs, figure, tables and page.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
}

/// Makes the figure; returns the verdicts, and whether no statement differs.
pub(crate) fn run(options: &Figure) -> Result<(String, bool), Failure> {
    let source = input::file(&options.file)?;
    let file = figure_file::load(&source)?;
    let quick = if options.quick { " --quick" } else { "" };
    let live = if options.live { " --live" } else { "" };
    let (scenario, path) = scenario(&file, &options.file)?;
    let job = FigureJob {
        file: &file,
        scenario: &scenario,
        files: &Beside(&path),
        quick: options.quick,
        threads: options.threads.into(),
        // the folder is left out, so that the tables do not depend on it
        command: format!("bentpipe figure {}{quick}{live} --out DIR", options.file.display()),
    };
    let clock = Clock::start();
    if options.turned {
        return turned(&job, &options.out, clock);
    }
    let live = options.live.then(RealPackets::new).transpose()?;
    let made = with_progress(words(&options.out), |tell| match &live {
        Some(runner) => figure::figure_live(&job, runner, &options.out, tell),
        None => figure(&job, &options.out, tell),
    });
    let made = made.map_err(failure)?;
    print_live(made.live);
    print_summary(made.runs, &options.out, Some(PAGE), clock);
    Ok((made.to_text(), !made.differs()))
}

/// What is said of the runs of figures.
pub(crate) const fn words(out: &Path) -> Words<'_> {
    Words { out: Some(out), cells: "points" }
}

pub(crate) fn failure(error: Error) -> Failure {
    match error {
        Error::File { .. } => Failure::run(error),
        Error::Live(live) if !live.refused => Failure::run(live),
        _ => Failure::input(error),
    }
}

/// Runs the statements that are known to differ with what turns them; returns as [`run`].
fn turned(job: &FigureJob<'_>, out: &Path, clock: Clock) -> Result<(String, bool), Failure> {
    let (mut runs, mut verdicts) = (Summary { executed: 0, already_stored: 0 }, Vec::new());
    for n in 0..job.file.statements.len() {
        let made = with_progress(words(out), |tell| figure::turned(job, n, out, tell)).map_err(failure)?;
        let Some((made, verdict)) = made else { continue };
        runs.executed += made.executed;
        runs.already_stored += made.already_stored;
        verdicts.push(verdict);
    }
    if verdicts.is_empty() {
        let message = "no statement of the file has `differs`\nhelp: leave out --turned, or write `differs` and \
                       `turn` in a statement that is known to differ";
        return Err(Failure::input(message));
    }
    print_summary(runs, out, None, clock);
    let agree = verdicts.iter().all(|v| v.verdict == Verdict::Agrees);
    Ok((verdict_text(&verdicts), agree))
}

/// Returns the scenario of a figure: its own text, a file beside it, or one that comes with the program.
/// Also returns the path that the scenario's trace files are relative to.
fn scenario(file: &FigureFile, path: &Path) -> Result<(Source, PathBuf), Failure> {
    let named = match &file.scenario {
        ScenarioRef::Inline(source) => return Ok((source.clone(), path.to_owned())),
        ScenarioRef::Named(named) => named,
    };
    let is_path =
        Path::new(&named.value).extension().is_some_and(|e| e == "toml") || named.value.contains('/');
    if is_path {
        let beside = path.parent().unwrap_or(Path::new("")).join(&named.value);
        return match (input::file(&beside), std::fs::metadata(&beside)) {
            (Ok(source), _) => Ok((source, beside)),
            (Err(failure), Ok(_)) => Err(failure),
            (_, Err(error)) => {
                Err(Box::<Diagnostic>::into(named.fault(format!("{}: {error}", beside.display()), "")))
            }
        };
    }
    shipped(named).map(|source| (source, path.to_owned()))
}

/// Returns the scenario of this name that comes with the program.
pub(crate) fn shipped(named: &Located<String>) -> Result<Source, Failure> {
    shipped::scenario(&named.value).map_err(|(near, help)| {
        let mut fault = named.fault(format!("there is no scenario `{}`", named.value), near);
        fault.help.extend(help);
        Box::<Diagnostic>::into(fault)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_sweep::figure::check;

    /// A scenario in another folder has its trace file beside it, not beside the figure.
    #[test]
    fn trace_files_are_beside_the_scenario() {
        let folder = std::env::temp_dir().join(format!("bentpipe-figure-traces-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("links")).unwrap();
        let window = include_str!("../scenarios/window.toml");
        let text = window.replace("[dumbbell]\n", "[dumbbell]\ncapacity = { file = \"rate.csv\" }\n");
        assert_ne!(text, window);
        std::fs::write(folder.join("links/traced.toml"), text).unwrap();
        std::fs::write(folder.join("links/rate.csv"), "time_s,rate_bps\n0,1000000\n").unwrap();
        let text = "schema = 1\ntitle = \"t\"\nscenario = \"links/traced.toml\"\n[[curves]]\nname = \"a\"\n";
        let file = figure_file::load(&Source::new("f.toml", text)).unwrap();
        let (scenario, beside) =
            scenario(&file, &folder.join("f.toml")).unwrap_or_else(|e| panic!("{}", e.text));
        let (files, command) = (&Beside(&beside), String::new());
        let job = FigureJob { file: &file, scenario: &scenario, files, quick: false, threads: 1, command };
        check(&job).unwrap_or_else(|e| panic!("{e}"));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
