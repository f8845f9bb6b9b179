//! The pictures of the page.

mod kaband;
mod simulators;
mod study;

use crate::check::{CheckResult, CheckTable, RunResults};
use crate::job::Job;
use crate::prelude::number;
use bentpipe_plot::{Colour, Curve, Dash, Mode, Plot, Point, Style};

/// The data for the pictures.
#[derive(Clone, Copy, Debug)]
pub struct Results<'a> {
    /// Results of all checks.
    pub judged: &'a [CheckResult],
    /// Results of the runs for the checks and of [`jobs`].
    pub seen: &'a RunResults,
}

impl<'a> Results<'a> {
    /// The checks of a table.
    fn of(&self, group: &'static CheckTable) -> impl Iterator<Item = &'a CheckResult> {
        self.judged.iter().filter(move |j| j.check.table == group)
    }
}

/// Runs needed only for pictures.
pub fn jobs() -> Vec<Job> {
    study::jobs().into_iter().chain(kaband::jobs()).collect()
}

/// Name and SVG text of every picture.
pub fn all(results: &Results<'_>) -> Vec<(&'static str, String)> {
    let plots = [simulators::all(results), kaband::all(results), study::all(results)];
    plots.into_iter().flatten().map(|(file, plot)| (file, plot.to_svg(Mode::Standalone))).collect()
}

/// A file name and its plot.
type NamedPlot = (&'static str, Plot);

/// A point, with an error bar if its half-width is known.
fn point(x: f64, y: f64, half_width: Option<f64>) -> Point {
    half_width.map_or(Point::new(x, y), |h| Point::with_error(x, y, h))
}

/// A point with the result of bentpipe, kB/s.
fn measured(x: f64, j: &CheckResult) -> Point {
    point(x, j.mean / 1e3, j.half_width.map(|h| h / 1e3))
}

/// A point with the expected value, kB/s.
fn expected(x: f64, j: &CheckResult) -> Point {
    let expected = j.check.expected;
    point(x, expected.value / 1e3, expected.half_width.map(|h| h / 1e3))
}

/// A curve through points computed by a formula.
fn reference(name: &str, points: impl Iterator<Item = (f64, f64)>) -> Curve {
    Curve::through(name, Style::Line, points).colour(Colour::Grey).dash(Dash::Long)
}

/// `n` points from `low` to `high` at equal ratios.
fn log_spaced(low: f64, high: f64, n: u32) -> impl Iterator<Item = f64> {
    (0..=n).map(move |i| low * libm::exp(f64::from(i) / f64::from(n) * libm::log(high / low)))
}

#[cfg(test)]
mod tests {
    use crate::sources::SECTIONS;
    use std::collections::BTreeMap;

    #[test]
    fn every_picture_of_the_page_is_drawn_and_every_drawn_one_is_on_the_page() {
        let results = super::Results { judged: &[], seen: &BTreeMap::new() };
        let mut drawn: Vec<&str> = super::all(&results).into_iter().map(|(file, _)| file).collect();
        let mut shown: Vec<&str> = SECTIONS.iter().flat_map(|s| s.pictures).map(|p| p.0).collect();
        drawn.sort_unstable();
        shown.sort_unstable();
        assert_eq!(drawn, shown);
    }

    #[test]
    fn points_at_equal_ratios() {
        let all: Vec<f64> = super::log_spaced(1.0, 100.0, 2).collect();
        assert!((all[1] - 10.0).abs() < 1e-9 && (all[2] - 100.0).abs() < 1e-9);
    }
}
