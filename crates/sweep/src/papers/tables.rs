//! `verdicts.csv`, `statements.csv`, and the verdicts for a terminal.

use super::items::{ItemResult, Judged, Paper, id};
use crate::figure::{COLUMNS, Verdict, fields, ours};
use bentpipe_report::csv;
use core::fmt::Write as _;

/// Why an item or a statement without more words was not run.
pub(super) const NO_STATEMENT: &str = "no figure has a statement about it";
pub(super) const NOT_RUN: &str = "its curve is not run";

/// Formats one row for each item, in their order.
pub(super) fn verdicts(items: &[ItemResult<'_>]) -> String {
    let row = |of: &ItemResult<'_>| {
        let none = || ["", "", "", "0", "", "", of.verdict.word(), ""].map(str::to_owned);
        let fields = of.statements.first().map_or_else(none, |s| fields(s.result));
        [vec![of.paper.short.clone(), of.id()], fields.to_vec()].concat()
    };
    csv(COLUMNS.map(str::to_owned).to_vec(), items.iter().map(row))
}

/// Formats one row for each statement; a statement about several items names them with spaces between.
pub(super) fn statements(all: &[Judged<'_>]) -> String {
    let row = |of: &Judged<'_>| {
        let result = of.result;
        let known = result.known.as_ref();
        let own = [
            of.figure.name.as_str(),
            result.text.as_str(),
            result.at.as_str(),
            result.unit.as_str(),
            result.accepted.as_str(),
            known.map_or("", |k| k.why.as_str()),
            known.map_or("", |k| k.turn.as_str()),
            of.notes.unwrap_or(""),
        ];
        let head = vec![result.paper.clone().unwrap_or_default(), ids(of)];
        [head, fields(result).to_vec(), own.map(str::to_owned).to_vec()].concat()
    };
    let more = ["figure", "statement", "at", "unit", "accepted", "reason", "turn", "notes"];
    let columns = COLUMNS.iter().chain(&more).map(|c| (*c).to_owned()).collect();
    csv(columns, all.iter().map(row))
}

/// Names the items of a statement.
pub(super) fn ids(of: &Judged<'_>) -> String {
    let paper = of.result.paper.as_deref().unwrap_or("");
    let each: Vec<String> = of.result.items.iter().map(|n| id(paper, *n)).collect();
    each.join(" ")
}

/// Returns the numbers of items that agree, differ and were not run.
pub(super) fn counts<'a, 'b: 'a>(items: impl Iterator<Item = &'a ItemResult<'b>>) -> [usize; 3] {
    let mut counts = [0; 3];
    for of in items {
        counts[of.verdict as usize] += 1;
    }
    counts
}

/// Formats the verdicts for a terminal: counts of items, statements that differ, items that were not run.
pub(super) fn text(papers: &[Paper], statements: &[Judged<'_>], items: &[ItemResult<'_>]) -> String {
    let mut out = format!("{:<5}  {:>6}  {:>7}  {:>7}\n", "paper", "agrees", "differs", "not-run");
    let mut line = |name: &str, [agrees, differs, not_run]: [usize; 3], rest: &str| {
        let _ = writeln!(
            out,
            "{}",
            format!("{name:<5}  {agrees:>6}  {differs:>7}  {not_run:>7}  {rest}").trim_end()
        );
    };
    let of = |paper: &Paper| items.iter().filter(|i| i.paper.short == paper.short).collect::<Vec<_>>();
    for paper in papers {
        let of = of(paper);
        if !of.is_empty() {
            line(&paper.short, counts(of.into_iter()), &paper.name);
        }
    }
    line("items", counts(items.iter()), "");
    let differing = statements.iter().filter(|s| s.result.verdict == Verdict::Differs);
    for (n, of) in differing.enumerate() {
        let first = if n == 0 { "\ndiffers:\n" } else { "" };
        let at = if of.result.at.is_empty() { String::new() } else { format!(" ({})", of.result.at) };
        let _ = writeln!(
            out,
            "{first}{} {}{at}: ours {}, the paper's {} [{}]\n       {}",
            ids(of),
            of.result.text,
            ours(of.result),
            of.result.paper_value,
            of.figure.name,
            why(of)
        );
    }
    for (n, of) in items.iter().filter(|i| i.verdict == Verdict::NotRun).enumerate() {
        let first = if n == 0 { "\nnot run:\n" } else { "" };
        let _ = writeln!(out, "{first}{} {}: {}", of.id(), of.item.what, not_run(of));
    }
    out
}

/// Says why a statement differs and what turns it.
pub(super) fn why(of: &Judged<'_>) -> String {
    of.result.known.as_ref().map_or_else(
        || "the figure file does not say why".to_owned(),
        |k| format!("{}; it holds with {}", k.why.trim_end_matches('.'), k.turn),
    )
}

/// Says why an item was not run.
pub(super) fn not_run<'a>(of: &ItemResult<'a>) -> &'a str {
    match of.statements.first() {
        None => NO_STATEMENT,
        Some(statement) => statement.notes.or(statement.figure.job.file.notes.as_deref()).unwrap_or(NOT_RUN),
    }
}
