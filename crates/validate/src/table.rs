//! Tables of the page: results as text, from checks in code and from figure files alike.

use crate::check::Verdict;

/// A table with its picture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Heading, unique on the page.
    pub title: String,
    /// What stands above it, if the page does not say it.
    pub head: String,
    /// What stands below it.
    pub foot: String,
    /// File name and SVG text of its picture.
    pub picture: Option<(String, String)>,
    /// Headings of the columns before the verdict.
    pub columns: Vec<String>,
    /// Number of columns that hold words, before those with numbers.
    pub words: usize,
    /// The rows.
    pub rows: Vec<Row>,
}

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its name within the table.
    pub name: String,
    /// The result, with its interval and unit.
    pub ours: String,
    /// What is expected, with its unit; empty if there is no single value.
    pub expected: String,
    /// What is accepted; empty without verdict.
    pub allowed: String,
    /// Text of each column.
    pub cells: Vec<String>,
    /// Share of the tolerance used: 0 in its middle, 1 at its edge.
    pub used: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
}

/// Shown for an empty cell.
pub const NOTHING: &str = "–";

/// Share of the room between `middle` and the nearer limit that a mean uses. Of one limit alone it is the ratio
/// to the limit.
pub fn share_used(mean: f64, middle: Option<f64>, (low, high): (f64, f64)) -> f64 {
    let share = match (low.is_finite(), high.is_finite()) {
        (true, false) => low / mean,
        (false, _) => mean / high,
        (true, true) => {
            let middle = middle.unwrap_or_else(|| f64::midpoint(low, high));
            (mean - middle).abs() / if mean < middle { middle - low } else { high - middle }
        }
    };
    // 0/0 is the limit itself; any other division by zero is not
    if share.is_nan() && low <= mean && mean <= high { 0.0 } else { share.abs() }
}

impl Table {
    /// The full names of its rows.
    pub fn name(&self, row: &Row) -> String {
        format!("{}: {}", self.title, row.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_a_tolerance() {
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        close(share_used(103.0, Some(100.0), (94.0, 106.0)), 0.5);
        close(share_used(105.0, None, (100.0, 120.0)), 0.5);
        close(share_used(100.0, None, (80.0, f64::INFINITY)), 0.8);
        close(share_used(60.0, None, (f64::NEG_INFINITY, 80.0)), 0.75);
        // nothing is allowed, and nothing there
        close(share_used(0.0, Some(0.0), (0.0, 0.0)), 0.0);
        close(share_used(0.0, None, (f64::NEG_INFINITY, 0.0)), 0.0);
    }
}
