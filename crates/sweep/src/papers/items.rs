//! The items of papers: what they describe, numbered, and the verdict on each from the statements about it.

use super::Figure;
use crate::error::Error;
use crate::figure::{StatementResult, Verdict};

/// A paper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paper {
    /// Short name, as in figure files.
    pub short: String,
    /// Name in words.
    pub name: String,
    /// Authors and title.
    pub citation: String,
    /// What it describes.
    pub items: Vec<Item>,
}

/// An item of a paper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Number in its paper, as in figure files.
    pub number: u64,
    /// What the paper says or shows.
    pub what: String,
    /// Section, figure or slide.
    pub place: String,
}

/// Reads the tables of papers (`paper,name,citation`) and items (`paper,item,what,where`). Fields have no
/// quotes; commas may be in the last one.
///
/// # Errors
/// A line that is none, an item of no paper, or one that is there twice.
pub fn read(papers: &str, items: &str) -> Result<Vec<Paper>, Error> {
    let wrong = |table: &str, n: usize, why: &str| {
        Error::Input(format!("{table}, line {}: {why}\nhelp: the first line names the columns", n + 1))
    };
    let mut all = Vec::new();
    for (n, line) in papers.lines().enumerate().skip(1) {
        let [short, name, citation] = fields(line).ok_or_else(|| wrong("papers", n, "not three columns"))?;
        all.push(Paper { short, name, citation, items: Vec::new() });
    }
    for (n, line) in items.lines().enumerate().skip(1) {
        let wrong = |why: &str| wrong("items", n, why);
        let [short, number, what, place] = fields(line).ok_or_else(|| wrong("not four columns"))?;
        let number = number.parse().map_err(|_| wrong("the item is no number"))?;
        let of = all.iter_mut().find(|p| p.short == short).ok_or_else(|| wrong("there is no such paper"))?;
        if of.items.iter().any(|i| i.number == number) {
            return Err(wrong("the item is there twice"));
        }
        of.items.push(Item { number, what, place });
    }
    Ok(all)
}

fn fields<const N: usize>(line: &str) -> Option<[String; N]> {
    let fields: Vec<String> = line.splitn(N, ',').map(str::to_owned).collect();
    fields.try_into().ok()
}

/// A statement, the figure that it is from, and its notes.
#[derive(Clone, Copy)]
pub(super) struct Judged<'a> {
    pub(super) figure: &'a Figure<'a>,
    pub(super) result: &'a StatementResult,
    pub(super) notes: Option<&'a str>,
}

/// The verdict on an item.
#[derive(Clone)]
pub(super) struct ItemResult<'a> {
    pub(super) paper: &'a Paper,
    pub(super) item: &'a Item,
    pub(super) verdict: Verdict,
    /// Statements about it, first the one that decides.
    pub(super) statements: Vec<Judged<'a>>,
}

impl ItemResult<'_> {
    /// Formats paper and number: `000-16`.
    pub(super) fn id(&self) -> String {
        id(&self.paper.short, self.item.number)
    }
}

pub(super) fn id(paper: &str, number: u64) -> String {
    format!("{paper}-{number}")
}

/// Returns the items of papers in their order. The verdict is that of the worst statement, and
/// [`Verdict::NotRun`] only if none was run. Items without a statement are left out unless their paper is
/// `whole`.
pub(super) fn judge<'a>(
    papers: &'a [Paper],
    statements: &[Judged<'a>],
    whole: &dyn Fn(&Paper) -> bool,
) -> Vec<ItemResult<'a>> {
    let mut all = Vec::new();
    for (paper, item) in papers.iter().flat_map(|p| p.items.iter().map(move |i| (p, i))) {
        let about = |s: &&Judged<'_>| {
            s.result.paper.as_deref() == Some(&paper.short) && s.result.items.contains(&item.number)
        };
        let mut statements: Vec<Judged<'a>> = statements.iter().filter(about).copied().collect();
        // a stable order: the first of equal ones decides
        statements.sort_by(|a, b| {
            rank(a.result).partial_cmp(&rank(b.result)).unwrap_or(core::cmp::Ordering::Equal)
        });
        let verdict = statements.first().map_or(Verdict::NotRun, |s| s.result.verdict);
        if whole(paper) || !statements.is_empty() {
            all.push(ItemResult { paper, item, verdict, statements });
        }
    }
    all
}

/// Statements that differ are before those that agree; of the former those with a value are first, of the
/// latter those that are nearest to their limit.
fn rank(of: &StatementResult) -> (u8, f64) {
    match (of.verdict, of.ours) {
        (Verdict::Differs, Some(_)) => (0, 0.0),
        (Verdict::Differs, None) => (1, 0.0),
        (Verdict::Agrees, _) => (2, of.room.unwrap_or(0.0)),
        (Verdict::NotRun, _) => (3, 0.0),
    }
}
