//! The picture: our curves with error bars, filled marks and lines; what sources print as hollow marks
//! without lines. So they differ without colour. Rows of a table are bars.

use super::plan::{Origin, Plan};
use super::{Cell, Cells, FigureJob};
use crate::pictures::axis_unit;
use crate::table::Estimate;
use bentpipe_plot::{Axis, Colour, Curve, Marker, Plot, Point, Style};
use bentpipe_scenario::figure_file::{Across, PrintedPoints, Scale};
use bentpipe_sim::reference::in_unit;

/// Marks of curves, and of what is printed about them.
const MARKS: [(Marker, Marker); 4] = [
    (Marker::Dot, Marker::Ring),
    (Marker::Square, Marker::HollowSquare),
    (Marker::Triangle, Marker::HollowTriangle),
    (Marker::Diamond, Marker::HollowDiamond),
];
const COLOURS: [Colour; 6] =
    [Colour::Blue, Colour::Vermilion, Colour::Green, Colour::Purple, Colour::Orange, Colour::Ink];

pub(crate) fn plot(job: &FigureJob<'_>, plan: &Plan, cells: &Cells) -> Plot {
    let file = job.file;
    let (label, scale) = vertical(plan);
    let names = match &file.across {
        None => file.curves.iter().map(|c| c.name.value.clone()).collect(),
        Some(a) if a.dimension.is_none() => a.values.iter().map(|v| v.value.clone()).collect(),
        Some(_) => Vec::new(),
    };
    let (mut x, x_scale) = horizontal(file.across.as_ref());
    x.names = names;
    let mut curves = if file.across.is_some() {
        ours(job, plan, cells, (x_scale, scale))
    } else {
        vec![rows(cells, scale)]
    };
    curves.extend(file.references.iter().enumerate().map(|(n, r)| printed(n, r, plan, (x_scale, scale))));
    let of_x = file.across.as_ref().map_or("the rows of the table", |a| &a.label);
    let bars =
        if plan.recording.is_none() { "Error bars: 95 % interval of the mean." } else { "Means of steps." };
    let mut note = bars.to_owned();
    if plan.curves.iter().any(|origin| origin.measure().is_none()) && file.across.is_some() {
        note += " Lines without marks: formulas.";
    }
    let shown = if label.is_empty() { "values" } else { &label };
    let mut description = match plan.recording {
        None => format!("{shown} over {of_x}, mean and 95 % interval"),
        Some(_) => format!("{shown} over {of_x}"),
    };
    if !file.references.is_empty() {
        note += " Hollow marks: printed by the source.";
        description += "; hollow marks: printed by the source";
    }
    Plot {
        title: file.title.clone(),
        description,
        x,
        y: axis(file.scale, label),
        curves,
        note: Some(note),
        ..Plot::default()
    }
}

/// Returns the label of the values, and plot units per unit of the metric. Curves with metrics of their own
/// share the unit alone, which may be empty.
pub(crate) fn vertical(plan: &Plan) -> (String, f64) {
    // formulas have the label of what they are compared with
    let mut all = plan.curves.iter().filter_map(Origin::measure).map(super::measure::Measure::axis);
    let Some((label, scale)) = all.next() else {
        return crate::pictures::scaled(plan.unit.symbol().to_owned(), plan.unit);
    };
    if all.all(|(other, _)| other == label) {
        return (label, scale);
    }
    crate::pictures::scaled(plan.unit.symbol().to_owned(), plan.unit)
}

/// Returns the horizontal axis, and plot units per base unit.
pub(crate) fn horizontal(across: Option<&Across>) -> (Axis, f64) {
    let Some(across) = across else { return (Axis::linear(""), 1.0) };
    let most = across.positions.iter().copied().fold(0.0, f64::max);
    let texts = || across.values.iter().map(|v| v.value.as_str());
    let (unit, scale) = across.dimension.map_or(("".into(), 1.0), |d| axis_unit(d, most, texts));
    let label = format!("{}{unit}", across.label);
    (axis(across.scale, label), scale)
}

fn axis(scale: Scale, label: String) -> Axis {
    if scale == Scale::Log { Axis::log(label) } else { Axis::linear(label) }
}

fn point(x: f64, cell: &Cell, scale: f64) -> Point {
    let Estimate { mean, half_width, .. } = cell.estimate();
    let y = mean.map_or(f64::NAN, |m| m * scale);
    half_width.map_or(Point::new(x, y), |h| Point::with_error(x, y, h * scale))
}

/// One curve for each of the figure. One that is not run has no points, but keeps its name and marks.
/// Formulas are lines without marks, and the course of a run has steps.
fn ours(job: &FigureJob<'_>, plan: &Plan, cells: &Cells, (x_scale, scale): (f64, f64)) -> Vec<Curve> {
    let positions = job.file.across.as_ref().map_or(&[][..], |a| &a.positions);
    let curve = |(n, cells): (usize, &Vec<Cell>)| {
        let at = |(x, cell): (&f64, &Cell)| point(x * x_scale, cell, scale);
        let mut points: Vec<Point> = positions.iter().zip(cells).map(at).collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        let formula = matches!(plan.curves[n], Origin::Formula(..));
        let style = match (formula, &plan.recording) {
            (true, _) => Style::Line,
            (false, Some(_)) => Style::Steps,
            (false, None) => Style::LineAndPoints,
        };
        Curve::new(job.file.curves[n].name.value.clone(), style, points)
            .colour(COLOURS[n % COLOURS.len()])
            .marker(MARKS[n % MARKS.len()].0)
    };
    cells.iter().enumerate().map(curve).collect()
}

/// All rows of a table as one series.
fn rows(cells: &Cells, scale: f64) -> Curve {
    let rows = cells.iter().enumerate().filter_map(|(n, cells)| Some((n, cells.first()?)));
    let points = rows.map(|(n, cell)| point(n as f64 + 1.0, cell, scale)).collect();
    Curve::new("bentpipe", Style::Bars, points).colour(COLOURS[0])
}

fn printed(index: usize, of: &PrintedPoints, plan: &Plan, (x_scale, scale): (f64, f64)) -> Curve {
    let n = of.curve.unwrap_or(index);
    // units were checked with the plan
    let value = |v| in_unit(plan.unit, v).unwrap_or(f64::NAN) * scale;
    let points =
        of.points.iter().map(|p| Point::new(p.place * x_scale, value(p.value.value.amount))).collect();
    let colour = if of.curve.is_some() { COLOURS[n % COLOURS.len()] } else { Colour::Grey };
    Curve::new(of.name.clone(), Style::Points, points).colour(colour).marker(MARKS[n % MARKS.len()].1)
}
