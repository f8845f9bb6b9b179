//! `points.csv`, `verdicts.csv`, the table of verdicts as text, and the page.

use super::draw::vertical;
use super::judge::{StatementResult, Verdict};
use super::plan::{Origin, Plan};
use super::{Cells, FigureJob, LIVE_TABLE, Made, live};
use crate::page::{escape, foot, head};
use crate::rounding::{mean_and_half_width, rounded};
use crate::table::CellStatistics;
use crate::text::cut;
use bentpipe_plot::{Mode, Plot};
use bentpipe_report::{aligned, csv};
use bentpipe_scenario::figure_file::PrintedPoint;
use bentpipe_sim::reference::in_unit;
use core::fmt::Write as _;

/// Formats all points, ours and the printed ones, with values in the unit of the metric.
pub(crate) fn points(job: &FigureJob<'_>, plan: &Plan, cells: &Cells) -> String {
    let file = job.file;
    let number = |v: Option<f64>| v.map_or_else(String::new, |v| v.to_string());
    let unit = plan.unit.symbol();
    let mut rows = Vec::new();
    for ((curve, origin), cells) in file.curves.iter().zip(&plan.curves).zip(cells) {
        for (n, cell) in cells.iter().enumerate() {
            let x = file.across.as_ref().map_or("", |a| &a.values[n].value);
            let of = cell.estimate();
            let (mean, width) = (number(of.mean), number(of.half_width));
            let (kind, source) = match origin {
                Origin::Formula(formula, _) => ("formula", formula.equation),
                Origin::Runs(..) | Origin::Nothing(_) => ("run", ""),
            };
            let runs = of.n.to_string();
            rows.push([&curve.name.value, kind, x, &mean, &width, &runs, unit, source].map(str::to_owned));
        }
    }
    for of in &file.references {
        let curve = of.curve.and_then(|n| file.curves.get(n)).map_or("", |c| &c.name.value);
        for PrintedPoint { x, value, .. } in &of.points {
            let (name, x) = if file.across.is_some() { (curve, x.as_str()) } else { (x.as_str(), "") };
            let y = number(in_unit(plan.unit, value.value.amount));
            rows.push([name, "printed", x, &y, "", "", unit, &of.source].map(str::to_owned));
        }
    }
    let head = ["curve", "kind", "x", "value", "half_width_95", "runs", "unit", "source"].map(str::to_owned);
    csv(head.to_vec(), rows.into_iter().map(|r| r.to_vec()))
}

/// Columns of tables of verdicts.
pub(crate) const COLUMNS: [&str; 10] =
    ["paper", "item", "ours", "low", "high", "runs", "length", "paper_value", "verdict", "command"];

/// Returns the columns after `item`.
pub(crate) fn fields(v: &StatementResult) -> [String; 8] {
    let number = |v: Option<f64>| v.map_or_else(String::new, rounded);
    [
        number(v.ours),
        number(v.interval.map(|i| i.0)),
        number(v.interval.map(|i| i.1)),
        v.runs.to_string(),
        if v.runs == 0 { String::new() } else { format!("{} s", rounded(v.length)) },
        v.paper_value.clone(),
        v.verdict.word().to_owned(),
        v.command.clone(),
    ]
}

/// Formats the verdicts. The columns are the same for all figures, so that tables of many can be joined. A
/// statement that answers several items has a row for each.
pub(crate) fn verdicts(all: &[StatementResult]) -> String {
    let row = |v: &StatementResult, item: String| {
        [vec![v.paper.clone().unwrap_or_default(), item], fields(v).to_vec()].concat()
    };
    let items = |v: &StatementResult| -> Vec<String> {
        if v.items.is_empty() { vec![String::new()] } else { v.items.iter().map(u64::to_string).collect() }
    };
    let rows = all.iter().flat_map(|v| items(v).into_iter().map(move |item| row(v, item)));
    csv(COLUMNS.map(str::to_owned).to_vec(), rows)
}

/// Returns our value with its interval.
pub(crate) fn ours(v: &StatementResult) -> String {
    let Some(mean) = v.ours else {
        let not_run = v.verdict == Verdict::NotRun;
        return if not_run { "not run" } else { "no value in some runs" }.to_owned();
    };
    let half_width = v.interval.map(|(low, high)| (high - low) / 2.0);
    let text = mean_and_half_width(&CellStatistics { mean: Some(mean), half_width, n: v.runs }, 1.0);
    format!("{text} {}", v.unit).trim_end().to_owned()
}

/// Returns what the file says about a statement that differs.
fn known(v: &StatementResult) -> Option<String> {
    let known = v.known_difference()?;
    let why = known.why.trim_end_matches('.');
    Some(format!("\"{}\" differs: {why}; it holds with {}", v.text, known.turn))
}

/// Formats verdicts for a terminal, ending in a newline; empty without statements. What is known about those
/// that differ comes below.
pub fn verdict_text(all: &[StatementResult]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let head = ["verdict", "ours, 95 %", "paper's", "accepted", "statement"].map(str::to_owned);
    let row = |v: &StatementResult| {
        let at = if v.at.is_empty() { String::new() } else { format!(" ({})", v.at) };
        [
            v.verdict.word().to_owned(),
            ours(v),
            v.paper_value.clone(),
            v.accepted.clone(),
            format!("{}{at}", v.text),
        ]
    };
    let table = aligned(&core::iter::once(head).chain(all.iter().map(row)).collect::<Vec<_>>(), &[0, 4]);
    let notes = all.iter().filter_map(known).map(|note| format!("note: {note}\n"));
    core::iter::once(table).chain(notes).collect()
}

/// Creates the page: a single file without scripts and external resources.
pub(crate) fn page(job: &FigureJob<'_>, plan: &Plan, made: &Made) -> String {
    let mut out = head(&job.file.title, STATEMENT_STYLE, "");
    if job.quick {
        out += "<p>Made with --quick: shorter or fewer runs, and wider tolerances.</p>\n";
    }
    contents(&mut out, job, plan, made, Heading::Section);
    let live = made
        .live
        .as_ref()
        .map_or_else(String::new, |_| format!(", <a href=\"{LIVE_TABLE}\">{LIVE_TABLE}</a>"));
    out += &foot(&format!(
        "Files: <a href=\"figure.svg\">figure.svg</a>, <a href=\"figure.png\">figure.png</a>, \
         <a href=\"points.csv\">points.csv</a>, <a href=\"verdicts.csv\">verdicts.csv</a>{live}. {}",
        escape(&format!("Made by `{}`.", job.command)),
    ));
    out
}

/// Sentences, names of curves and points of the table of statements are on several lines if need be.
pub(crate) const STATEMENT_STYLE: &str = "\
.statements :is(td,th):is(:nth-child(2),:nth-child(4),:nth-child(7)){white-space:normal;text-align:left}\
.statements td:nth-child(4),.statements td:nth-child(7){min-width:9rem}.statements td:nth-child(2){min-width:13rem}
";

/// Where the contents of a figure are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heading {
    /// A page of its own.
    Section,
    /// A section of a page with many figures, where the points are folded.
    Below,
}

impl Heading {
    /// Returns what begins and ends a part with this title.
    fn around(self, title: &str) -> (String, &'static str) {
        let level = if self == Self::Section { "h2" } else { "h4" };
        (format!("<section>\n<{level}>{title}</{level}>\n"), "</section>\n")
    }
}

/// Adds source, notes, picture, statements, points and references of a figure.
pub(crate) fn contents(out: &mut String, job: &FigureJob<'_>, plan: &Plan, made: &Made, heading: Heading) {
    let file = job.file;
    let items: Vec<String> = file.items.iter().map(u64::to_string).collect();
    let of = if items.is_empty() { String::new() } else { format!(", item {}", items.join(", ")) };
    let paper = file.paper.as_ref().map(|p| format!("Paper {p}{of}."));
    for text in [paper.as_ref(), file.source.as_ref(), file.notes.as_ref()].into_iter().flatten() {
        let _ = writeln!(out, "<p>{}</p>", escape(text));
    }
    let drawn = Plot { title: String::new(), ..made.plot.clone() };
    let _ = writeln!(out, "<div class=\"plots\">\n{}</div>", drawn.to_svg(Mode::Inline));
    if let Some(part) = &made.live {
        let (begin, end) = heading.around("Real packets");
        live::html(out, (job, plan, part), (&begin, end));
    }
    statements(out, &made.verdicts, heading);
    for note in made.verdicts.iter().filter_map(known) {
        let _ = writeln!(out, "<p>{}</p>", escape(&note));
    }
    values(out, job, plan, &made.cells, heading);
    for (curve, origin) in file.curves.iter().zip(&plan.curves) {
        let Origin::Formula(formula, _) = origin else { continue };
        let text = format!("{}: {} ({}).", curve.name.value, formula.equation, formula.source);
        let _ = writeln!(out, "<p class=\"small\">{}</p>", escape(&text));
    }
    for of in &file.references {
        let _ = writeln!(
            out,
            "<p class=\"small\">{}: {}.</p>",
            escape(&of.name),
            escape(of.source.trim_end_matches('.'))
        );
    }
    for statement in &file.statements {
        if let Some(notes) = &statement.notes {
            let _ =
                writeln!(out, "<p class=\"small\">{}: {}</p>", escape(&statement.text.value), escape(notes));
        }
    }
}

/// Adds a table of texts.
pub(crate) fn table(out: &mut String, head: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    let cells = |row: Vec<String>| row.iter().map(|cell| escape(cell)).collect();
    html_table(out, head, rows.map(cells));
}

/// Adds a table of HTML.
pub(crate) fn html_table(out: &mut String, head: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    *out += "<div class=\"table\" tabindex=\"0\">\n<table>\n<thead><tr>";
    for name in head {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(name));
    }
    *out += "</tr></thead>\n<tbody>\n";
    for row in rows {
        *out += "<tr>";
        for cell in row {
            let _ = write!(out, "<td>{cell}</td>");
        }
        *out += "</tr>\n";
    }
    *out += "</tbody>\n</table>\n</div>\n";
}

fn statements(out: &mut String, verdicts: &[StatementResult], heading: Heading) {
    if verdicts.is_empty() {
        return;
    }
    let row = |v: &StatementResult| {
        let word = v.verdict.word().to_owned();
        let runs = v.runs.to_string();
        vec![word, v.text.clone(), ours(v), v.paper_value.clone(), v.accepted.clone(), runs, v.at.clone()]
    };
    let head = ["verdict", "statement", "ours", "paper's", "accepted", "runs", "reported at"];
    let (begin, end) = heading.around("Statements");
    *out += &begin;
    *out += "<div class=\"statements\">\n";
    table(out, &head, verdicts.iter().map(row));
    *out += "</div>\n";
    *out += end;
}

/// Returns the table of points; the first row is its head.
fn point_rows(job: &FigureJob<'_>, plan: &Plan, cells: &Cells) -> Vec<Vec<String>> {
    let (label, scale) = vertical(plan);
    let label = if label.is_empty() { "mean".to_owned() } else { label };
    let across = job.file.across.as_ref();
    let head = [Some("curve".to_owned()), across.map(|a| a.label.clone()), Some(label)];
    let head = head.into_iter().flatten().chain(["runs with a value".to_owned()]);
    let mut rows = vec![head.collect()];
    for (curve, cells) in job.file.curves.iter().zip(cells) {
        for (n, cell) in cells.iter().enumerate() {
            let estimate = cell.estimate();
            let value = mean_and_half_width(&estimate.into(), scale);
            let x = across.map(|a| a.values[n].value.clone());
            let row = [Some(curve.name.value.clone()), x, Some(value)];
            let runs = if cell.runs == 0 {
                "a formula".to_owned()
            } else {
                format!("{} of {}", estimate.n, estimate.of)
            };
            rows.push(row.into_iter().flatten().chain([runs]).collect());
        }
    }
    rows
}

/// Formats the points for a terminal.
pub(crate) fn point_text(job: &FigureJob<'_>, plan: &Plan, cells: &Cells) -> String {
    cut(point_rows(job, plan, cells), &[0], "points are in points.csv and on the page")
}

fn values(out: &mut String, job: &FigureJob<'_>, plan: &Plan, cells: &Cells, heading: Heading) {
    let mut rows = point_rows(job, plan, cells).into_iter();
    let head = rows.next().unwrap_or_default();
    let (begin, end) = match heading {
        Heading::Section => heading.around("Points"),
        Heading::Below => ("<details>\n<summary>Points</summary>\n".to_owned(), "</details>\n"),
    };
    *out += &begin;
    table(out, &head.iter().map(String::as_str).collect::<Vec<_>>(), rows);
    *out += end;
}
