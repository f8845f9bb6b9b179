//! `index.html`: all figures, statements and items on one page without scripts and external resources.

use super::items::{ItemResult, Judged};
use super::tables::{counts, not_run, why};
use super::{Figure, Paper, PapersJob};
use crate::figure::{
    Heading, LIVE_TABLE, Made, Plan, STATEMENT_STYLE, StatementResult, Verdict, contents, html_table, ours,
};
use crate::page::{escape, foot, head};
use crate::rounding::rounded;
use core::fmt::Write as _;
use std::collections::BTreeSet;

const TITLE: &str = "Papers: their figures and tables, made by bentpipe";

/// The tables of items and differences have sentences.
const STYLE: &str = "\
h3{font-size:1rem;margin:2rem 0 .25rem}h4{font-size:.9375rem;margin:1rem 0 .25rem}\
.texts :is(td,th){white-space:normal;text-align:left;vertical-align:top}\
.texts td:nth-child(-n+2),.texts .value{white-space:nowrap}.texts td:nth-child(3){min-width:14rem}\
.texts td:last-child{min-width:9rem}p{max-width:75ch;overflow-wrap:anywhere}summary{cursor:pointer}
@media print{article{break-inside:avoid-page}.texts :is(td:nth-child(3),td:last-child){min-width:0}\
.texts .value{white-space:normal}th,td{overflow-wrap:anywhere}}
";

/// Creates the page.
pub(super) fn page(
    job: &PapersJob<'_>,
    plans: &[Plan],
    made: &[Made],
    statements: &[Judged<'_>],
    items: &[ItemResult<'_>],
) -> String {
    let mut out = head(TITLE, &[STATEMENT_STYLE, STYLE].concat(), &summary(job, statements));
    overview(&mut out, job.papers, items);
    differences(&mut out, statements);
    out += "<section>\n<h2 id=\"items\">All items</h2>\n";
    item_table(&mut out, items);
    out += "</section>\n";
    for paper in job.papers {
        let of = |figure: &Figure<'_>| figure.job.file.paper.as_deref() == Some(&paper.short);
        let figures: Vec<usize> = (0..job.figures.len()).filter(|n| of(&job.figures[*n])).collect();
        if figures.is_empty() {
            continue;
        }
        let (id, name) = (escape(&paper.short), escape(&paper.name));
        let _ = write!(
            out,
            "<section>\n<h2 id=\"paper-{id}\">{id}: {name}</h2>\n<p>{}.</p>\n",
            escape(&paper.citation)
        );
        for n in figures {
            figure(&mut out, &job.figures[n], &plans[n], &made[n]);
        }
        out += "</section>\n";
    }
    let live = if made.iter().any(|m| m.live.is_some()) {
        format!("; <a href=\"{LIVE_TABLE}\">{LIVE_TABLE}</a>, one for each live value")
    } else {
        String::new()
    };
    out += &foot(&format!(
        "Verdicts: <a href=\"verdicts.csv\">verdicts.csv</a>, one row for each item; \
         <a href=\"statements.csv\">statements.csv</a>, one for each statement{live}."
    ));
    out
}

fn summary(job: &PapersJob<'_>, statements: &[Judged<'_>]) -> String {
    let mode = if job.quick {
        "Made with --quick: fewer and shorter runs, with wider tolerances, as the columns runs and length say."
    } else {
        "Made with --full: all seeds and lengths."
    };
    format!(
        "{} figures with {} statements. {mode} Lines, filled marks and bars are ours, with the 95 % interval of the \
         mean where there are several runs; hollow marks are what a paper prints.",
        job.figures.len(),
        statements.len()
    )
}

/// Adds the numbers of each paper.
fn overview(out: &mut String, papers: &[Paper], items: &[ItemResult<'_>]) {
    let row = |paper: &Paper| {
        let of: Vec<_> = items.iter().filter(|i| i.paper.short == paper.short).collect();
        (!of.is_empty()).then(|| {
            let id = escape(&paper.short);
            let numbers = counts(of.into_iter()).map(|n| n.to_string());
            let [agrees, differs, not_run] = numbers;
            vec![format!("<a href=\"#paper-{id}\">{id}</a>"), agrees, differs, not_run, escape(&paper.name)]
        })
    };
    let head = ["paper", "agrees", "differs", "not run", "name"];
    html_table(out, &head, papers.iter().filter_map(row));
}

/// Adds what differs, with the reason and what turns it.
fn differences(out: &mut String, statements: &[Judged<'_>]) {
    let differ: Vec<_> = statements.iter().filter(|s| s.result.verdict == Verdict::Differs).collect();
    *out += "<section>\n<h2 id=\"differs\">Where we differ, and why</h2>\n";
    if differ.is_empty() {
        *out += "<p>No statement differs.</p>\n</section>\n";
        return;
    }
    let row = |of: &&Judged<'_>| {
        let result = of.result;
        let at = if result.at.is_empty() { String::new() } else { format!(" ({})", result.at) };
        vec![
            item_links(of),
            link(of.figure),
            escape(&format!("{}{at}", result.text)),
            value(&ours(result)),
            escape(&result.paper_value),
            escape(&why(of)),
        ]
    };
    *out += "<div class=\"texts\">\n";
    let head = ["item", "figure", "statement", "ours", "paper's", "why, and with what it holds"];
    html_table(out, &head, differ.iter().map(row));
    *out += "</div>\n</section>\n";
}

/// Adds all items with verdicts and links to figures.
fn item_table(out: &mut String, items: &[ItemResult<'_>]) {
    let row = |of: &ItemResult<'_>| {
        let mut figures: Vec<String> = of.statements.iter().map(|s| link(s.figure)).collect();
        let mut seen = BTreeSet::new();
        figures.retain(|link| seen.insert(link.clone()));
        let verdict = of.verdict.word();
        let verdict = if of.verdict == Verdict::Agrees {
            verdict.to_owned()
        } else {
            format!("<strong>{verdict}</strong>")
        };
        let first = of.statements.first().map(|s| s.result);
        // formulas have no runs
        let text = |f: &dyn Fn(&StatementResult) -> String| {
            first.filter(|s| s.ours.is_some()).map_or_else(String::new, |s| value(&f(s)))
        };
        let because =
            if of.verdict == Verdict::NotRun { format!(": {}", not_run(of)) } else { String::new() };
        vec![
            format!("<span id=\"item-{0}\">{0}</span>", escape(&of.id())),
            verdict,
            escape(&format!("{}{because}", of.item.what)),
            escape(&of.item.place),
            text(&|s| ours(s)),
            first.map_or_else(String::new, |s| escape(&s.paper_value)),
            text(&|s| s.runs.to_string()),
            text(&|s| if s.runs == 0 { String::new() } else { format!("{} s", rounded(s.length)) }),
            figures.join(", "),
        ]
    };
    *out += "<div class=\"texts\">\n";
    let head = ["item", "verdict", "what", "where", "ours", "paper's", "runs", "length", "figures"];
    html_table(out, &head, items.iter().map(row));
    *out += "</div>\n";
}

fn figure(out: &mut String, figure: &Figure<'_>, plan: &Plan, made: &Made) {
    let name = escape(&figure.file_name());
    let _ = write!(out, "<article id=\"{name}\">\n<h3>{}</h3>\n", escape(&figure.job.file.title));
    contents(out, &figure.job, plan, made, Heading::Below);
    let _ = write!(
        out,
        "<p class=\"small\">Files: <a href=\"figures/{name}.svg\">SVG</a>, <a href=\"figures/{name}.png\">PNG</a>, \
         <a href=\"figures/{name}.csv\">CSV</a>. {}</p>\n</article>\n",
        escape(&format!("Made by `{}`.", figure.job.command))
    );
}

/// A value with its unit, on one line.
fn value(text: &str) -> String {
    format!("<span class=\"value\">{}</span>", escape(text))
}

/// A link to a figure of the page.
fn link(figure: &Figure<'_>) -> String {
    format!("<a href=\"#{}\">{}</a>", escape(&figure.file_name()), escape(&figure.name))
}

/// The items of a statement as links.
fn item_links(of: &Judged<'_>) -> String {
    let ids = super::tables::ids(of);
    let each: Vec<String> =
        ids.split(' ').map(|id| format!("<a href=\"#item-{0}\">{0}</a>", escape(id))).collect();
    each.join(" ")
}
