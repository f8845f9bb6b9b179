//! `points.csv`, `verdicts.csv`, the table of verdicts as text, and the page.

use super::draw::vertical;
use super::judge::{StatementResult, Verdict};
use super::plan::{Origin, Plan};
use super::{Cells, FigureJob};
use crate::page::{REST, escape, mean_and_half_width, rounded};
use crate::table::CellStatistics;
use bentpipe_plot::{Mode, PAGE_STYLE, Plot, STYLE, TABLE_STYLE};
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

/// Formats the verdicts. The columns are the same for all figures, so that tables of many can be joined. A
/// statement that answers several items has a row for each.
pub(crate) fn verdicts(all: &[StatementResult]) -> String {
    let columns = "paper,item,ours,low,high,runs,length,paper_value,verdict,command";
    let row = |v: &StatementResult, item: String| {
        let number = |v: Option<f64>| v.map_or_else(String::new, rounded);
        vec![
            v.paper.clone().unwrap_or_default(),
            item,
            number(v.ours),
            number(v.interval.map(|i| i.0)),
            number(v.interval.map(|i| i.1)),
            v.runs.to_string(),
            if v.runs == 0 { String::new() } else { format!("{} s", rounded(v.length)) },
            v.paper_value.clone(),
            v.verdict.word().to_owned(),
            v.command.clone(),
        ]
    };
    let items = |v: &StatementResult| -> Vec<String> {
        if v.items.is_empty() { vec![String::new()] } else { v.items.iter().map(u64::to_string).collect() }
    };
    let rows = all.iter().flat_map(|v| items(v).into_iter().map(move |item| row(v, item)));
    csv(columns.split(',').map(str::to_owned).collect(), rows)
}

/// Returns our value with its interval.
fn ours(v: &StatementResult) -> String {
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
    let table = aligned(&core::iter::once(head).chain(all.iter().map(row)).collect::<Vec<_>>());
    let notes = all.iter().filter_map(known).map(|note| format!("note: {note}\n"));
    core::iter::once(table).chain(notes).collect()
}

/// Creates the page: a single file without scripts and external resources.
pub(crate) fn page(
    job: &FigureJob<'_>,
    plan: &Plan,
    cells: &Cells,
    plot: &Plot,
    verdicts: &[StatementResult],
) -> String {
    let file = job.file;
    let title = escape(&file.title);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>{STYLE}{PAGE_STYLE}{TABLE_STYLE}{REST}td:last-child{{white-space:normal;text-align:left}}</style>\n\
         </head>\n<body>\n<main>\n<h1>{title}</h1>\n"
    );
    let items: Vec<String> = file.items.iter().map(u64::to_string).collect();
    let of = if items.is_empty() { String::new() } else { format!(", item {}", items.join(", ")) };
    let paper = file.paper.as_ref().map(|p| format!("Paper {p}{of}."));
    for text in [paper.as_ref(), file.source.as_ref(), file.notes.as_ref()].into_iter().flatten() {
        let _ = writeln!(out, "<p>{}</p>", escape(text));
    }
    if job.quick {
        out += "<p>Made with --quick: shorter or fewer runs, and wider tolerances.</p>\n";
    }
    let drawn = Plot { title: String::new(), ..plot.clone() };
    let _ = writeln!(out, "<div class=\"plots\">\n{}</div>", drawn.to_svg(Mode::Inline));
    statements(&mut out, verdicts);
    for note in verdicts.iter().filter_map(known) {
        let _ = writeln!(out, "<p>{}</p>", escape(&note));
    }
    values(&mut out, job, plan, cells);
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
    let _ = write!(
        out,
        "<p class=\"small\">Files: <a href=\"figure.svg\">figure.svg</a>, <a href=\"points.csv\">points.csv</a>, \
         <a href=\"verdicts.csv\">verdicts.csv</a>. {} bentpipe {}.</p>\n</main>\n</body>\n</html>\n",
        escape(&format!("Made by `{}`.", job.command)),
        env!("CARGO_PKG_VERSION")
    );
    out
}

fn table(out: &mut String, title: &str, head: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    let _ = writeln!(
        out,
        "<section>\n<h2>{title}</h2>\n<div class=\"table\" tabindex=\"0\">\n<table>\n<thead><tr>"
    );
    for name in head {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(name));
    }
    *out += "</tr></thead>\n<tbody>\n";
    for row in rows {
        *out += "<tr>";
        for cell in row {
            let _ = write!(out, "<td>{}</td>", escape(&cell));
        }
        *out += "</tr>\n";
    }
    *out += "</tbody>\n</table>\n</div>\n</section>\n";
}

fn statements(out: &mut String, verdicts: &[StatementResult]) {
    if verdicts.is_empty() {
        return;
    }
    let row = |v: &StatementResult| {
        let word = v.verdict.word().to_owned();
        let runs = v.runs.to_string();
        vec![word, ours(v), v.paper_value.clone(), v.accepted.clone(), runs, v.at.clone(), v.text.clone()]
    };
    let head = ["verdict", "ours", "paper's", "accepted", "runs", "reported at", "statement"];
    table(out, "Statements", &head, verdicts.iter().map(row));
}

fn values(out: &mut String, job: &FigureJob<'_>, plan: &Plan, cells: &Cells) {
    let (label, scale) = vertical(plan);
    let label = if label.is_empty() { "mean" } else { &label };
    let across = job.file.across.as_ref();
    let mut rows = Vec::new();
    for (curve, cells) in job.file.curves.iter().zip(cells) {
        for (n, cell) in cells.iter().enumerate() {
            let estimate = cell.estimate();
            let value = mean_and_half_width(&estimate.into(), scale);
            let x = across.map(|a| a.values[n].value.clone());
            let row = [
                Some(curve.name.value.clone()),
                x,
                Some(value),
                Some(if cell.runs == 0 {
                    "a formula".to_owned()
                } else {
                    format!("{} of {}", estimate.n, estimate.of)
                }),
            ];
            rows.push(row.into_iter().flatten().collect());
        }
    }
    let head = [Some("curve"), across.map(|a| a.label.as_str()), Some(label), Some("runs with a value")];
    table(out, "Points", &head.into_iter().flatten().collect::<Vec<_>>(), rows.into_iter());
}
