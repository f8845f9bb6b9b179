//! Plots with error bars. The first numeric axis is horizontal, another axis gives the curves, and each
//! combination of the remaining ones is a plot of its own.

use crate::table::Table;
use bentpipe_plot::{Axis, Curve, Plot, Point, Style};
use bentpipe_report::{Metric, Unit};
use bentpipe_scenario::{Dimension, amount_parts, parse_amount};
use bentpipe_sim::reference::in_unit;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of curves of a plot.
const MAX_CURVES: usize = 7;
/// Maximum number of plots; the tables have all values.
const MAX_PLOTS: usize = 60;
/// Axes whose values span more than this factor are logarithmic.
const LOG_SCALE_RATIO: f64 = 20.0;

/// Axes that end at this many seconds or later are in hours.
const HOURS_FROM_S: f64 = 7200.0;

struct HorizontalAxis {
    axis: usize,
    /// Label with unit.
    label: String,
    /// Plot units per base unit.
    scale: f64,
}

/// A plot for a file and for the page.
pub(crate) struct SweepPlot {
    /// File name without extension.
    pub(crate) name: String,
    /// The plot, with the scenario's title.
    pub(crate) plot: Plot,
    /// Title on the page, without that of the scenario.
    pub(crate) heading: String,
}

/// Creates the plots; also returns how many were omitted. There are none without a numeric axis of at least
/// two values.
pub(crate) fn draw(table: &Table) -> (Vec<SweepPlot>, usize) {
    let Some(across) = (0..table.axes.len()).find_map(|axis| numeric(table, axis)) else {
        return (Vec::new(), 0);
    };
    let rest = || (0..table.axes.len()).filter(|a| *a != across.axis && values(table, *a).len() > 1);
    let by = rest().find(|a| values(table, *a).len() <= MAX_CURVES);
    let others: Vec<usize> = rest().filter(|a| Some(*a) != by).collect();
    let choices = combinations(table, &others);
    let mut plots = Vec::new();
    for metric in 0..table.metrics.len() {
        for (n, (choice, cells)) in choices.iter().enumerate().take(MAX_PLOTS - plots.len()) {
            let suffix = if choices.len() > 1 { format!("-{}", n + 1) } else { String::new() };
            let mut plot = sweep_plot(table, metric, cells, &across, by);
            let words = others.iter().zip(choice).map(|(a, v)| format!(", {} = {v}", table.axes[*a]));
            let words = words.collect::<String>();
            plot.title = format!("{}{words}", table.title);
            let heading = format!("{}{words}", table.metrics[metric].text());
            plots.push(SweepPlot { name: format!("curve-{}{suffix}", metric + 1), plot, heading });
        }
    }
    let left_out = choices.len() * table.metrics.len() - plots.len();
    (plots, left_out)
}

/// Returns the distinct values of an axis.
fn values(table: &Table, axis: usize) -> BTreeSet<&str> {
    table.cells.iter().map(|cell| cell[axis].as_str()).collect()
}

/// Returns the distinct combinations of values of `axes` in the order of the cells, with the cells of each.
fn combinations<'a>(table: &'a Table, axes: &[usize]) -> Vec<(Vec<&'a str>, Vec<usize>)> {
    let mut places: BTreeMap<Vec<&str>, usize> = BTreeMap::new();
    let mut all: Vec<(Vec<&str>, Vec<usize>)> = Vec::new();
    for (n, cell) in table.cells.iter().enumerate() {
        let choice: Vec<&str> = axes.iter().map(|a| cell[*a].as_str()).collect();
        let place = *places.entry(choice.clone()).or_insert_with(|| {
            all.push((choice, Vec::new()));
            all.len() - 1
        });
        all[place].1.push(n);
    }
    all
}

/// Returns the axis if its values are all numbers of the same dimension.
fn numeric(table: &Table, axis: usize) -> Option<HorizontalAxis> {
    let amounts: Option<Vec<_>> = values(table, axis).into_iter().map(|v| parse_amount(v).ok()).collect();
    let amounts =
        amounts.filter(|a| a.len() > 1 && a.iter().all(|other| other.dimension == a[0].dimension))?;
    let most = amounts.iter().map(|a| a.value).fold(0.0, f64::max);
    let (unit, scale) = axis_unit(amounts[0].dimension, most, || values(table, axis).into_iter());
    Some(HorizontalAxis { axis, label: format!("{}{unit}", table.axes[axis]), scale })
}

/// Returns what follows the name of an axis, and plot units per base unit, for values up to `most`.
pub(crate) fn axis_unit<'a, I: Iterator<Item = &'a str>>(
    dimension: Dimension,
    most: f64,
    texts: impl Fn() -> I,
) -> (Cow<'static, str>, f64) {
    let (unit, scale) = match dimension {
        Dimension::Rate if most >= 1e6 => (", Mbit/s", 1e-6),
        Dimension::Rate => (", kbit/s", 1e-3),
        Dimension::Time if most < 1.0 => (", ms", 1e3),
        Dimension::Time if most < HOURS_FROM_S => (", s", 1.0),
        Dimension::Time => (", h", 1.0 / 3600.0),
        Dimension::Bytes if most >= 10e3 => (", kB", 1e-3),
        Dimension::Bytes => (", B", 1.0),
        Dimension::Pieces if texts().all(|v| v.contains("segment")) => (", segments", 1.0),
        Dimension::Pieces if texts().all(|v| v.contains("packet")) => (", packets", 1.0),
        Dimension::Pieces => (", packets or segments", 1.0),
        Dimension::Bare => ("", 1.0),
        Dimension::Decimal(unit) => return (format!(", {unit}").into(), 1.0),
    };
    (unit.into(), scale)
}

/// Returns axis label and scale of a metric: rates are drawn in Mbit/s.
pub(crate) fn unit(metric: &Metric) -> (String, f64) {
    scaled(metric.label(), metric.unit())
}

/// The same for a label that ends with the symbol of this unit.
pub(crate) fn scaled(label: String, unit: Unit) -> (String, f64) {
    match label.strip_suffix("bit/s").filter(|_| unit == Unit::Rate) {
        Some(words) => (format!("{words}Mbit/s"), 1e-6),
        None => (label, 1.0),
    }
}

/// Returns the unit of an amount as written, and how much of the metric's unit it is.
pub(crate) fn written_unit(text: &str, unit: Unit) -> (&str, f64) {
    let (_, name) = amount_parts(text);
    let one = parse_amount(&format!("1 {name}")).ok().and_then(|one| in_unit(unit, one));
    one.map_or((unit.symbol(), 1.0), |one| (name, one))
}

fn sweep_plot(
    table: &Table,
    metric: usize,
    cells: &[usize],
    across: &HorizontalAxis,
    by: Option<usize>,
) -> Plot {
    let x_of = |cell: usize| {
        parse_amount(&table.cells[cell][across.axis]).map_or(f64::NAN, |a| a.value * across.scale)
    };
    let (low, high) =
        cells.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), c| (low.min(x_of(*c)), high.max(x_of(*c))));
    let axis = if low > 0.0 && high > LOG_SCALE_RATIO * low { Axis::log } else { Axis::linear };
    let (label, scale) = unit(&table.metrics[metric]);
    let means = || cells.iter().filter_map(|cell| table.figures[*cell][metric].mean);
    let is_share = table.metrics[metric].unit() == Unit::Ratio && means().all(|m| (0.0..=1.0).contains(&m));
    let mut curves: Vec<Curve> = Vec::new();
    for &cell in cells {
        let name = by.map_or_else(String::new, |a| format!("{} = {}", table.axes[a], table.cells[cell][a]));
        let place = curves.iter().position(|c| c.name == name).unwrap_or_else(|| {
            curves.push(Curve::new(name, Style::LineAndPoints, Vec::new()));
            curves.len() - 1
        });
        let figure = &table.figures[cell][metric];
        let y = figure.mean.map_or(f64::NAN, |m| m * scale);
        let error = figure.half_width.unwrap_or(0.0) * scale;
        let mut point = Point::with_error(x_of(cell), y, error);
        if is_share {
            // the interval of a mean of shares says nothing beyond what a share can be
            point.range = point.range.map(|(low, high)| (low.max(0.0), high.min(1.0)));
        }
        curves[place].points.push(point);
    }
    for curve in &mut curves {
        curve.points.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    Plot {
        description: format!("{label} over {}, mean and 95 % interval", table.axes[across.axis]),
        x: axis(across.label.clone()),
        y: Axis::linear(label),
        curves,
        note: Some("mean and 95 % interval".to_owned()),
        ..Plot::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::CellStatistics;
    use bentpipe_plot::Scale;

    fn table(axes: &[(&str, &[&str])], metrics: &[&str]) -> Table {
        let cells = axes.iter().fold(vec![Vec::new()], |cells: Vec<Vec<String>>, (_, values)| {
            let with = |cell: &Vec<String>, v: &str| [cell.as_slice(), &[v.to_owned()]].concat();
            cells.iter().flat_map(|cell| values.iter().map(move |v| with(cell, v))).collect()
        });
        let figure = |n: usize| CellStatistics { mean: Some(n as f64 * 1e6), half_width: Some(1e5), n: 5 };
        Table {
            title: "t".to_owned(),
            axes: axes.iter().map(|(name, _)| (*name).to_owned()).collect(),
            metrics: metrics.iter().map(|m| Metric::parse(m).unwrap()).collect(),
            figures: (0..cells.len()).map(|n| vec![figure(n); metrics.len()]).collect(),
            cells,
            runs: Vec::new(),
        }
    }

    #[test]
    fn axes_find_their_places() {
        let many = ["1 kB", "2 kB", "3 kB", "4 kB", "5 kB", "6 kB", "7 kB", "8 kB"];
        let table = table(
            &[("tcp", &["reno", "sack"]), ("loss", &["1e-2", "1e-4"]), ("b", &many), ("on", &["on"])],
            &["goodput", "jain"],
        );
        let (plots, left_out) = draw(&table);
        // horizontal: loss; a curve for each tcp, a plot for each b
        assert_eq!((plots.len(), left_out), (16, 0));
        let SweepPlot { name, plot, heading } = &plots[9];
        assert_eq!((name.as_str(), plot.title.as_str()), ("curve-2-2", "t, b = 2 kB"));
        assert_eq!(heading, "jain, b = 2 kB");
        let plot = &plots[1].plot;
        assert_eq!((plot.x.scale, plot.x.label.as_str()), (Scale::Log, "loss"));
        assert_eq!(plot.y.label, "goodput, Mbit/s");
        let names: Vec<_> = plot.curves.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["tcp = reno", "tcp = sack"]);
        // cells are in the order tcp, loss, b: reno at 1e-4 and 2 kB is the tenth
        assert_eq!(
            plot.curves[0].points,
            [Point::with_error(1e-4, 9.0, 0.1), Point::with_error(1e-2, 1.0, 0.1)]
        );
    }

    #[test]
    fn units_are_those_of_the_values() {
        for (values, label) in [
            (["500 kbit/s", "2 Mbit/s"], "x, Mbit/s"),
            (["20 ms", "500 ms"], "x, ms"),
            (["20 ms", "5 s"], "x, s"),
            (["20 min", "3 h"], "x, h"),
            (["11 segments", "71 segments"], "x, segments"),
            (["1 packet", "50 packets"], "x, packets"),
            (["1 packet", "50 segments"], "x, packets or segments"),
            (["64 KiB", "6 MiB"], "x, kB"),
        ] {
            assert_eq!(draw(&table(&[("x", &values)], &["jain"])).0[0].plot.x.label, label);
        }
        for values in [["20 ms", "5 kB"], ["reno", "sack"], ["1", "fast"]] {
            assert_eq!(draw(&table(&[("x", &values)], &["jain"])).0.len(), 0);
        }
    }

    #[test]
    fn intervals_of_shares_end_at_0_and_1() {
        let drawn = |metric: &str, mean: f64| {
            let mut table = table(&[("x", &["1", "2"])], &[metric]);
            for cell in &mut table.figures {
                cell[0] = CellStatistics { mean: Some(mean), half_width: Some(0.6), n: 2 };
            }
            draw(&table).0[0].plot.curves[0].points[0].range
        };
        assert_eq!(drawn("jain", 0.5), Some((0.0, 1.0)));
        assert_eq!(drawn("retransmits", 0.5), Some((0.5 - 0.6, 1.1)));
    }

    #[test]
    fn the_axis_of_shares_ends_at_1() {
        let mut table = table(&[("x", &["10", "20"])], &["jain"]);
        for (cell, mean) in table.figures.iter_mut().zip([0.4, 0.97]) {
            cell[0] = CellStatistics { mean: Some(mean), half_width: Some(0.6), n: 2 };
        }
        let svg = draw(&table).0[0].plot.to_svg(bentpipe_plot::Mode::Inline);
        assert!(svg.contains(">1.0</text>"), "{svg}");
        for beyond in [">1.2</text>", ">1.5</text>"] {
            assert!(!svg.contains(beyond), "{beyond}");
        }
    }

    #[test]
    fn there_is_an_end_to_pictures() {
        let many: Vec<String> = (1..=50).map(|n| n.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let (plots, left_out) =
            draw(&table(&[("x", &["1", "2"]), ("y", &many), ("z", &many)], &["jain", "goodput"]));
        assert_eq!((plots.len(), left_out), (MAX_PLOTS, 5000 - MAX_PLOTS));
    }
}
