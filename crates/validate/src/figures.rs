//! Figure files of the repository as tables of the page.

use crate::check::Verdict;
use crate::table::{NOTHING, Row, Table, share_used};
use bentpipe_scenario::figure_file::{self, Cost, FigureFile, ScenarioRef};
use bentpipe_scenario::{NoFiles, Source};
use bentpipe_sweep::figure::{self, Evaluation, FigureJob, PointResult, evaluate, rounded};
use core::fmt::Write as _;
use std::fs;
use std::path::Path;

/// A figure file of the repository, with its scenario.
#[derive(Debug)]
pub struct Figure {
    path: &'static str,
    file: FigureFile,
    scenario: Source,
}

impl Figure {
    /// Reads a file, given from the root of the repository. Its scenario is inline, or one of `scenarios/`.
    ///
    /// # Errors
    /// If it or its scenario cannot be read.
    pub fn read(path: &'static str) -> Result<Self, String> {
        let source = source(Path::new(path))?;
        let file = figure_file::load(&source).map_err(|diagnostic| diagnostic.to_string())?;
        let scenario = match &file.scenario {
            ScenarioRef::Inline(source) => source.clone(),
            ScenarioRef::Named(name) => {
                self::source(&Path::new("scenarios").join(format!("{}.toml", name.value)))?
            }
        };
        Ok(Self { path, file, scenario })
    }

    /// The heading of its table.
    pub fn title(&self) -> &str {
        &self.file.title
    }

    /// True if it takes some seconds at most.
    pub fn is_quick(&self) -> bool {
        self.file.cost == Cost::Quick
    }

    fn job(&self) -> FigureJob<'_> {
        let command = format!("bentpipe figure {}", self.path);
        FigureJob {
            file: &self.file,
            scenario: &self.scenario,
            files: &NoFiles,
            quick: false,
            threads: 0,
            command,
        }
    }

    /// Checks that the figure fits its scenario.
    ///
    /// # Errors
    /// The first parameter or metric that does not exist.
    pub fn check(&self) -> Result<(), String> {
        figure::check(&self.job()).map_err(|e| format!("{}: {e}", self.path))
    }

    fn table(&self, evaluation: &Evaluation) -> Table {
        let columns = ["statement", "value", "runs"].map(str::to_owned).into_iter();
        let unit = &evaluation.unit;
        let in_unit = |name: &str| if unit.is_empty() { name.to_owned() } else { format!("{name}, {unit}") };
        let numbers = ["bentpipe".to_owned()].into_iter().chain(evaluation.sources.iter().cloned());
        let of_sources = self.file.references.iter().map(|r| {
            let curve = r.curve.map(|n| format!(" ({})", self.file.curves[n].name.value));
            format!("{}{}: {}", r.name, curve.unwrap_or_default(), r.source)
        });
        let mut sources: Vec<String> = of_sources.collect();
        sources.dedup_by(|a, b| a.split(": ").nth(1) == b.split(": ").nth(1));
        let notes = self.file.notes.as_deref().unwrap_or_default();
        let name = self.path.replace('/', "-").replace(".toml", ".svg");
        let text = format!("{notes} `{}`.", self.path);
        let mut head = format!("### {}\n\n{}\n\n", self.title(), text.trim_start());
        if !sources.is_empty() {
            let _ = writeln!(head, "{}.\n", sources.join("; "));
        }
        let picture = self.file.across.is_some().then(|| (name, evaluation.svg.clone()));
        if let Some((name, _)) = &picture {
            let _ = writeln!(head, "![{}](img/{name})\n", self.title());
        }
        let known = self.file.statements.iter().filter_map(|s| Some((s, s.known.as_ref()?)));
        let why = known.map(|(s, known)| {
            let turn: Vec<_> =
                known.turn.iter().map(|t| format!("{} = {}", t.name.value, t.value.value)).collect();
            format!("\n*{}*: {}. It holds with `{}`.\n", s.text.value, known.why, turn.join(", "))
        });
        Table {
            title: self.file.title.clone(),
            head,
            foot: why.collect(),
            picture,
            columns: columns.chain(numbers.map(|n| in_unit(&n))).chain(["accepted".to_owned()]).collect(),
            words: 2,
            rows: evaluation.points.iter().map(|point| self.row(evaluation, point)).collect(),
        }
    }

    fn row(&self, all: &Evaluation, point: &PointResult) -> Row {
        let statement = point.statement.map(|n| &self.file.statements[n]);
        let text = statement.map_or(NOTHING, |s| s.text.value.as_str());
        let known = statement.is_some_and(|s| s.known.is_some());
        let ours = point.ours().unwrap_or_else(|| NOTHING.to_owned());
        let allowed = point.bounds.map_or(NOTHING.to_owned(), in_words);
        let mut cells = vec![text.to_owned(), point.name.clone(), point.runs.to_string(), ours.clone()];
        cells.extend(point.printed.iter().map(|v| v.map_or(NOTHING.to_owned(), rounded)));
        cells.push(allowed.clone());
        let unit = if point.is_ratio { "" } else { &all.unit };
        let with_unit = |text: String| format!("{text} {unit}");
        Row {
            name: point.name.clone(),
            ours: with_unit(ours),
            expected: point.expected.map_or(NOTHING.to_owned(), |v| with_unit(rounded(v))),
            allowed,
            cells,
            used: point.mean.zip(point.bounds).map(|(mean, bounds)| share_used(mean, point.expected, bounds)),
            verdict: match point.verdict {
                None => Verdict::Unjudged,
                Some(figure::Verdict::Agrees) => Verdict::Agrees,
                Some(_) if known => Verdict::Differs,
                Some(_) => Verdict::Misses,
            },
        }
    }
}

/// Makes the runs of figures that are not in `out` yet, and their tables.
///
/// # Errors
/// If a figure does not fit its scenario, or `out` cannot be written.
pub fn tables(figures: &[Figure], out: &Path) -> Result<Vec<Table>, String> {
    let jobs: Vec<FigureJob<'_>> = figures.iter().map(Figure::job).collect();
    let all = evaluate(&jobs, 0, out).map_err(|e| e.to_string())?;
    Ok(figures.iter().zip(&all).map(|(figure, evaluation)| figure.table(evaluation)).collect())
}

/// Reads a file, given from the root of the repository.
pub(crate) fn source(path: &Path) -> Result<Source, String> {
    let whole = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    let text = fs::read_to_string(&whole).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Source::new(path.display().to_string(), text))
}

fn in_words((low, high): (f64, f64)) -> String {
    match (low.is_finite(), high.is_finite()) {
        (true, true) => format!("{} to {}", rounded(low), rounded(high)),
        (true, false) => format!("≥ {}", rounded(low)),
        (false, _) => format!("≤ {}", rounded(high)),
    }
}
