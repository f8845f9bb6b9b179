//! `live.csv`, the live values for a terminal and for the page, and their marks.

use super::points::{LivePart, LivePoint, value};
use crate::figure::draw::{horizontal, vertical};
use crate::figure::tables::table;
use crate::figure::{FigureJob, Plan};
use crate::page::escape;
use bentpipe_plot::{Colour, Curve, Marker, Plot, Point, Style};
use bentpipe_report::aligned;
use core::fmt::Write as _;

const COLUMNS: [&str; 12] = [
    "paper",
    "figure",
    "curve",
    "x",
    "live",
    "simulated",
    "low",
    "high",
    "unit",
    "tolerance",
    "verdict",
    "command",
];

/// A figure with its name in tables.
pub(crate) type Named<'a> = (&'a str, &'a FigureJob<'a>, &'a Plan, &'a LivePart);

/// Formats the live values of figures, in the unit of the metric.
pub(crate) fn csv(figures: &[Named<'_>]) -> String {
    let number = |v: Option<f64>| v.map_or_else(String::new, |v| v.to_string());
    let row = |(name, job, plan, part): &Named<'_>, point: &LivePoint| {
        let (curve, x) = place(job, point);
        vec![
            job.file.paper.clone().unwrap_or_default(),
            (*name).to_owned(),
            curve,
            x,
            number(point.live.estimate().mean),
            number(point.simulated.estimate().mean),
            number(point.interval.map(|i| i.0)),
            number(point.interval.map(|i| i.1)),
            plan.unit.symbol().to_owned(),
            part.tolerance.clone(),
            point.verdict.word().to_owned(),
            job.command.clone(),
        ]
    };
    let rows = figures.iter().flat_map(|of| of.3.points.iter().map(move |point| row(of, point)));
    bentpipe_report::csv(COLUMNS.map(str::to_owned).to_vec(), rows)
}

/// Name of the curve, and the value of x; empty in a table.
fn place(job: &FigureJob<'_>, point: &LivePoint) -> (String, String) {
    let x = job.file.across.as_ref().map_or_else(String::new, |a| a.values[point.x].value.clone());
    (job.file.curves[point.curve].name.value.clone(), x)
}

/// Verdict, values, their difference, the interval, and how many runs there are.
fn cells(plan: &Plan, point: &LivePoint) -> Vec<String> {
    let of = |v: Option<f64>| v.map_or_else(|| "no value".to_owned(), |v| value(v, plan.unit));
    let (live, simulated) = (point.live.estimate().mean, point.simulated.estimate().mean);
    let share = live.zip(simulated).filter(|(_, s)| *s != 0.0).map(|(l, s)| (l / s - 1.0) * 100.0);
    let interval = point.interval.map_or_else(String::new, |(low, high)| {
        format!("{} to {}", value(low, plan.unit), value(high, plan.unit))
    });
    vec![
        point.verdict.word().to_owned(),
        of(live),
        of(simulated),
        share.map_or_else(String::new, |share| format!("{share:+.1} %")),
        interval,
        format!("{} and {}", point.live.values.len(), point.simulated.values.len()),
    ]
}

const HEAD: [&str; 6] =
    ["verdict", "live", "simulated", "difference", "95 % of simulated", "runs, live and simulated"];

/// Formats the live values of figures for a terminal, ending in a newline; empty without values.
pub(crate) fn text(figures: &[Named<'_>]) -> String {
    let row = |(name, job, plan, _): &Named<'_>, point: &LivePoint| {
        let (curve, x) = place(job, point);
        let curve = if x.is_empty() { curve } else { format!("{curve}, {x}") };
        [cells(plan, point), vec![format!("{name}: {curve}")]].concat()
    };
    let rows: Vec<_> =
        figures.iter().flat_map(|of| of.3.points.iter().map(move |point| row(of, point))).collect();
    if rows.is_empty() {
        return String::new();
    }
    let head: Vec<String> = HEAD.iter().chain(&["curve"]).map(|h| (*h).to_owned()).collect();
    let mut out = aligned(&core::iter::once(head).chain(rows).collect::<Vec<_>>(), &[0, HEAD.len()]);
    for (name, _, _, part) in figures {
        for note in &part.notes {
            let _ = writeln!(out, "note: {name}: {note}");
        }
    }
    out
}

/// Adds a table of the live values to a page; `around` is what begins and ends its section.
pub(crate) fn html(
    out: &mut String,
    (job, plan, part): (&FigureJob<'_>, &Plan, &LivePart),
    (begin, end): (&str, &str),
) {
    let row = |point: &LivePoint| {
        let (curve, x) = place(job, point);
        let x = job.file.across.as_ref().map(|_| x);
        [Some(curve), x].into_iter().flatten().chain(cells(plan, point)).collect()
    };
    let x = job.file.across.as_ref().map(|a| a.label.as_str());
    let head: Vec<&str> = [Some("curve"), x].into_iter().flatten().chain(HEAD).collect();
    *out += begin;
    let _ = writeln!(
        out,
        "<p>Accepted: within {} of the simulated mean, or inside the interval.</p>",
        part.tolerance
    );
    table(out, &head, part.points.iter().map(row));
    for note in &part.notes {
        let _ = writeln!(out, "<p class=\"small\">{}</p>", escape(note));
    }
    *out += end;
}

/// Adds the live values to the picture, as crosses: no curve and nothing printed has them.
pub(crate) fn draw(plot: &mut Plot, (job, plan): (&FigureJob<'_>, &Plan), part: &LivePart) {
    let (_, scale) = vertical(plan);
    let across = job.file.across.as_ref();
    let (_, x_scale) = horizontal(across);
    let point = |of: &LivePoint| {
        let x = across.map_or(of.curve as f64 + 1.0, |a| a.positions[of.x] * x_scale);
        Point::new(x, of.live.estimate().mean.map_or(f64::NAN, |mean| mean * scale))
    };
    let mut points: Vec<Point> = part.points.iter().map(point).collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    let curve = Curve::new("live", Style::Points, points).colour(Colour::Ink).marker(Marker::Cross);
    plot.curves.push(curve);
    plot.description += "; crosses: real packets";
    if let Some(note) = &mut plot.note {
        *note += " Crosses: real packets.";
    }
}
