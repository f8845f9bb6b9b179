//! Reads runs that were saved: the report and, where it is there, the course.

use bentpipe_base::names::nearest;
use bentpipe_report::{ReadError, Report};
use bentpipe_sim::record::{DARK, FLOW_COLUMNS, LIMIT_COLUMNS, LINK_COLUMNS, Record, Series};
use bentpipe_sim::report::describe_schemes;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Longest report and longest table of series that are read, in bytes.
const MOST: u64 = 1 << 30;

/// What a run is.
const HELP: &str = "\
help: a run is a folder with report.json, as `bentpipe sim FILE --out FOLDER` writes it (emulate and compare, too),
      or a saved report, as in `bentpipe sim FILE --json > run.json`";
/// Maximum number of runs that an error names.
const MOST_NAMED: usize = 5;
/// Maximum number of entries of a folder in which runs are looked for.
const MOST_ENTRIES: usize = 1000;

/// A saved run.
#[derive(Debug)]
pub struct SavedRun {
    /// Name by which it is shown: that of its folder or file.
    pub name: String,
    /// The report.
    pub report: Report,
    /// The course; without intervals if it was not saved.
    pub record: Record,
}

/// Why saved runs cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum ShowError {
    /// A file that cannot be read.
    #[error("{}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
    /// There is no run at this path.
    #[error("{}: {reason}\n{HELP}{near}", path.display())]
    NoRun {
        /// The path.
        path: PathBuf,
        /// What is in its place.
        reason: &'static str,
        /// The runs beside it, as a line of help; empty if there are none.
        near: String,
    },
    /// A report that cannot be read.
    #[error("{}: {cause}", path.display())]
    Report {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: ReadError,
    },
    /// A table of series that cannot be read.
    #[error("{}:{line}: {problem}", path.display())]
    Series {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What is wrong there.
        problem: String,
    },
    /// More runs than colours and dashes tell apart.
    #[error("{0} runs: at most {1} are shown on one page; a sweep has a page for more")]
    TooMany(usize, usize),
}

impl SavedRun {
    /// Reads a folder with `report.json` and `series.csv`, or a saved report alone.
    ///
    /// # Errors
    /// When there is no such file, or it cannot be understood.
    pub fn read(path: &Path) -> Result<Self, ShowError> {
        let folder = path.is_dir();
        let file = if folder { path.join("report.json") } else { path.to_owned() };
        if !file.exists() {
            let reason = if !folder {
                "there is no such folder or file"
            } else if path.join("runs.csv").exists() {
                "this is a sweep, whose own page has all runs"
            } else {
                "there is no report.json in it"
            };
            return Err(ShowError::NoRun { path: path.to_owned(), reason, near: near(path) });
        }
        let report = Report::from_json(&text(&file)?);
        let mut report = report.map_err(|cause| ShowError::Report { path: file.clone(), cause })?;
        describe_schemes(&mut report.flows);
        let series = path.join("series.csv");
        let record =
            if folder && series.exists() { record(&series, &text(&series)?)? } else { Record::default() };
        let named = if folder { std::path::absolute(path).ok() } else { path.file_stem().map(PathBuf::from) };
        let name = named.as_deref().and_then(Path::file_name).map(|n| n.to_string_lossy().into_owned());
        Ok(Self { name: name.unwrap_or_else(|| path.display().to_string()), report, record })
    }
}

/// Names runs in the folder `path`, or else beside it: those that `path` may misspell first.
fn near(path: &Path) -> String {
    let beside =
        path.parent().map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
    let mut found = [Some(path), beside].into_iter().flatten().map(runs_in).find(|runs| !runs.is_empty());
    let Some(runs) = found.as_mut() else { return String::new() };
    let shown = |run: &PathBuf| run.strip_prefix(".").unwrap_or(run).display().to_string();
    let mut names: Vec<String> = runs.iter().map(shown).collect();
    let meant = nearest(&path.display().to_string(), names.iter().map(String::as_str)).map(str::to_owned);
    names.sort_by_key(|name| Some(name) != meant.as_ref());
    let more = names.len().saturating_sub(MOST_NAMED);
    names.truncate(MOST_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("\nhelp: runs there are: {}{more}", names.join(", "))
}

/// Folders in `dir` with a report, in the order of their names.
fn runs_in(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().take(MOST_ENTRIES).filter_map(Result::ok);
    let folders = entries.map(|entry| entry.path()).filter(|path| path.join("report.json").is_file());
    let mut runs: Vec<PathBuf> = folders.collect();
    runs.sort();
    runs
}

/// Reads several runs. Those with the same name are shown by their paths.
///
/// # Errors
/// The first one that cannot be read.
pub fn read_all(paths: &[PathBuf]) -> Result<Vec<SavedRun>, ShowError> {
    if paths.len() > super::MOST_RUNS {
        return Err(ShowError::TooMany(paths.len(), super::MOST_RUNS));
    }
    let mut runs: Vec<SavedRun> = paths.iter().map(|path| SavedRun::read(path)).collect::<Result<_, _>>()?;
    let names: Vec<String> = runs.iter().map(|run| run.name.clone()).collect();
    for (run, path) in runs.iter_mut().zip(paths) {
        if names.iter().filter(|name| **name == run.name).count() > 1 {
            run.name = path.display().to_string();
        }
    }
    Ok(runs)
}

fn text(path: &Path) -> Result<String, ShowError> {
    let failed = |cause| ShowError::Io { path: path.to_owned(), cause };
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(MOST + 1).read_to_end(&mut bytes)).map_err(failed)?;
    if bytes.len() as u64 > MOST {
        return Err(failed(io::Error::other(format!("it is longer than {} MiB", MOST >> 20))));
    }
    String::from_utf8(bytes).map_err(|_| failed(io::Error::other("it is not UTF-8 text")))
}

/// Reads `series.csv`: a row for each interval and flow or link direction.
fn record(path: &Path, text: &str) -> Result<Record, ShowError> {
    let fault =
        |line: usize, problem: String| ShowError::Series { path: path.to_owned(), line: line + 1, problem };
    let mut lines = text.lines().enumerate();
    let head = cells(lines.next().map_or("", |(_, line)| line));
    if head.len() < 3 || head[..3] != ["time_s", "kind", "name"] {
        return Err(fault(
            0,
            "the columns must begin with time_s,kind,name, as bentpipe writes them".to_owned(),
        ));
    }
    let place = |key: &&'static str| head.iter().position(|h| h == key).map(|at| (*key, at));
    // a folder of an older version has fewer columns
    let (flow, link): (Vec<_>, Vec<_>) = (
        FLOW_COLUMNS.iter().chain(&LIMIT_COLUMNS).filter_map(place).collect(),
        LINK_COLUMNS.iter().chain(&[DARK]).filter_map(place).collect(),
    );
    let mut record = Record::default();
    let mut known: [BTreeMap<String, usize>; 2] = [BTreeMap::new(), BTreeMap::new()];
    for (n, line) in lines {
        let row = cells(line);
        if row.len() != head.len() {
            return Err(fault(n, format!("{} cells in place of {}", row.len(), head.len())));
        }
        let time = number(&row[0]).filter(|t| t.is_finite());
        let time = time.ok_or_else(|| fault(n, format!("`{}` is no time in seconds", row[0])))?;
        match record.time_s.last() {
            Some(last) if time < *last => return Err(fault(n, "the time goes back".to_owned())),
            Some(last) if time.total_cmp(last).is_eq() => {}
            _ => record.time_s.push(time),
        }
        let (columns, all, known) = match row[1].as_str() {
            "flow" => (&flow, &mut record.flows, &mut known[0]),
            "link" => (&link, &mut record.links, &mut known[1]),
            other => return Err(fault(n, format!("`{other}` is neither flow nor link"))),
        };
        let at = *known.entry(row[2].clone()).or_insert_with(|| {
            all.push(Series::new(&*row[2], &columns.iter().map(|(key, _)| *key).collect::<Vec<_>>()));
            all.len() - 1
        });
        let rows = all[at].columns.first().map_or(0, |c| c.values.len());
        if rows + 1 != record.time_s.len() {
            return Err(fault(
                n,
                format!(
                    "{} `{}` has {rows} rows before this one, not {}",
                    row[1],
                    row[2],
                    record.time_s.len() - 1
                ),
            ));
        }
        let value = |(key, at): &(&str, usize)| {
            number(&row[*at]).ok_or_else(|| fault(n, format!("{key}: `{}` is no number", row[*at])))
        };
        let values = columns.iter().map(value).collect::<Result<Vec<f64>, _>>()?;
        all[at].push(&values);
    }
    Ok(record)
}

/// A number; NaN for an empty cell.
fn number(cell: &str) -> Option<f64> {
    if cell.is_empty() { Some(f64::NAN) } else { cell.parse().ok() }
}

/// The cells of a line (RFC 4180). Names of flows and links have no line breaks.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut quoted) = (vec![String::new()], false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let cell = cells.last_mut().expect("there is a first cell");
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                cell.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            c => cell.push(c),
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_report::{FlowKind, FlowReport, TcpReport};
    use bentpipe_sim::observe::flow_series;

    fn read(text: &str) -> Result<Record, String> {
        record(Path::new("series.csv"), text).map_err(|e| e.to_string())
    }

    #[test]
    fn what_was_written_is_read() {
        let mut flow = flow_series("a, \"b\"");
        let mut link = Series::new("hop", &[&LINK_COLUMNS[..], &[DARK]].concat());
        for i in 0..3 {
            flow.push(&vec![1.5 * f64::from(i); flow.columns.len()]);
            link.push(&vec![if i == 1 { f64::NAN } else { 1e-7 }; link.columns.len()]);
        }
        let written =
            Record { time_s: vec![0.1, 0.2, 0.3], flows: vec![flow], links: vec![link], ..Record::default() };
        let text = crate::tables::series(&written);
        let read = read(&text).unwrap();
        assert_eq!((read.time_s.len(), read.flows[0].name.as_str()), (3, "a, \"b\""));
        assert_eq!(read.flows[0].column("limit_recovery_s"), Some(&[0.0, 1.5, 3.0][..]));
        assert_eq!(crate::tables::series(&read), text);
    }

    #[test]
    fn a_saved_report_knows_again_what_its_schemes_heed() {
        let of = |scheme: &str| {
            let tcp = TcpReport { scheme: scheme.to_owned().into(), ..TcpReport::default() };
            FlowReport { kind: FlowKind::from(tcp), ..FlowReport::default() }
        };
        let path = std::env::temp_dir().join(format!("bentpipe-saved-{}.json", std::process::id()));
        std::fs::write(&path, Report::new("t", vec![of("bbr"), of("cubic")]).to_json()).unwrap();
        let saved = SavedRun::read(&path);
        std::fs::remove_file(&path).unwrap();
        let flows = saved.unwrap().report.flows;
        assert_eq!(flows.iter().map(|f| f.context.ignores_losses).collect::<Vec<_>>(), [true, false]);
    }

    #[test]
    fn a_damaged_table_is_refused_with_its_line() {
        let head = "time_s,kind,name,goodput_bps,rate_bps\n";
        let of = |rows: &str| read(&format!("{head}{rows}")).unwrap_err();
        assert_eq!(of("1,flow,a,2\n"), "series.csv:2: 4 cells in place of 5");
        assert_eq!(of("x,flow,a,2,\n"), "series.csv:2: `x` is no time in seconds");
        assert_eq!(of("1,flow,a,2,\n1,node,b,,\n"), "series.csv:3: `node` is neither flow nor link");
        assert_eq!(of("1,flow,a,2x,\n"), "series.csv:2: goodput_bps: `2x` is no number");
        assert_eq!(of("2,flow,a,2,\n1,flow,a,2,\n"), "series.csv:3: the time goes back");
        assert_eq!(
            of("1,flow,a,2,\n1,flow,a,2,\n"),
            "series.csv:3: flow `a` has 1 rows before this one, not 0"
        );
        assert!(read("time,x\n").unwrap_err().starts_with("series.csv:1: the columns must begin"));
        assert!(read("").is_err());
    }
}
