//! Layout from top to bottom: title, label of the vertical axis, data, ticks, label of the horizontal axis,
//! legend, note. The data area contains only the data.

use crate::axis::{Fit, FittedAxis};
use crate::text::{cut, lines, width};
use crate::{Plot, Shape, Style};

pub(crate) const TITLE_LINE: f64 = 19.0;
pub(crate) const LINE: f64 = 17.0;
const LEGEND_LINE: f64 = 20.0;
/// Length of the line sample in the legend.
pub(crate) const SAMPLE: f64 = 28.0;
const EDGE: f64 = 8.0;

/// Positions in user units.
pub(crate) struct Layout {
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) title: Vec<String>,
    pub(crate) y_label: Vec<String>,
    /// Data area.
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
    pub(crate) x: FittedAxis,
    /// Labels of the ticks of `x`, in lines.
    pub(crate) x_ticks: Vec<Vec<String>>,
    /// Height of these lines below the first.
    pub(crate) x_ticks_high: f64,
    pub(crate) y: FittedAxis,
    pub(crate) x_label: String,
    pub(crate) legend: Vec<LegendEntry>,
    pub(crate) note: Vec<String>,
    /// Baseline of the first line of the note.
    pub(crate) note_top: f64,
}

/// What an entry of the legend explains: a curve or a mark, by its index.
#[derive(Clone, Copy)]
pub(crate) enum Sample {
    Curve(usize),
    Mark(usize),
}

/// An entry of the legend.
pub(crate) struct LegendEntry {
    pub(crate) sample: Sample,
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) name: String,
}

impl Layout {
    pub(crate) fn new(plot: &Plot) -> Self {
        let (whole, high, ticks) = match plot.shape {
            Shape::Normal => (520.0, 230.0, (6, 5)),
            Shape::Wide => (800.0, 330.0, (9, 6)),
        };
        let fitting = whole - 2.0 * EDGE;
        let (x, y) = fit_axes(plot, ticks);
        let title = lines(&plot.title, 0.82 * fitting);
        let y_label = lines(&plot.y.label, fitting);
        let note = plot.note.as_deref().map(|n| lines(n, fitting)).unwrap_or_default();
        let widest = y.ticks.iter().map(|t| width(&t.1)).fold(0.0, f64::max);
        let named = !plot.x.names.is_empty();
        // names share the width, numbers never need more than a line
        let share = if named { (fitting - widest) / plot.x.names.len() as f64 - 6.0 } else { f64::INFINITY };
        let x_ticks: Vec<Vec<String>> = x.ticks.iter().map(|t| lines(&t.1, share)).collect();
        let x_ticks_high = LINE * x_ticks.iter().map(Vec::len).max().unwrap_or(1).saturating_sub(1) as f64;
        let last = if named { 0.0 } else { x.ticks.last().map_or(0.0, |t| width(&t.1)) };
        let top = EDGE + TITLE_LINE * title.len() as f64 + LINE * y_label.len() as f64 + 10.0;
        let bottom = top + high;
        let legend = entries(plot, whole, bottom + x_ticks_high + 56.0);
        let after = legend.last().map_or(bottom + x_ticks_high + 42.0, |e| e.y + 10.0);
        Self {
            width: whole,
            height: after + LINE * note.len() as f64 + EDGE,
            left: (widest + EDGE + 7.0).max(34.0),
            right: whole - (last / 2.0).max(EDGE + 4.0),
            top,
            bottom,
            x_label: cut(&plot.x.label, fitting),
            note_top: after + LINE,
            title,
            y_label,
            x,
            x_ticks,
            x_ticks_high,
            y,
            legend,
            note,
        }
    }

    pub(crate) fn at_x(&self, v: f64) -> Option<f64> {
        self.x.position(v).map(|s| self.left + s * (self.right - self.left))
    }

    pub(crate) fn at_y(&self, v: f64) -> Option<f64> {
        self.y.position(v).map(|s| self.bottom - s * (self.bottom - self.top))
    }
}

/// The legend's entries from left to right, in as many rows as needed.
fn entries(plot: &Plot, whole: f64, top: f64) -> Vec<LegendEntry> {
    let (mut entries, mut x, mut y) = (Vec::new(), EDGE, top);
    let curves = plot.curves.iter().enumerate().map(|(i, c)| (Sample::Curve(i), &c.name));
    // marks of the same name have one entry
    let first = |i: usize, name: &str| !plot.marks[..i].iter().any(|m| m.name == name);
    let marks = plot.marks.iter().enumerate().filter(|(i, m)| first(*i, &m.name));
    let all = curves.chain(marks.map(|(i, m)| (Sample::Mark(i), &m.name)));
    for (sample, name) in all.filter(|(_, name)| !name.is_empty()) {
        let name = cut(name, whole - 2.0 * EDGE - SAMPLE - 6.0);
        let wide = SAMPLE + 6.0 + width(&name);
        if x > EDGE && x + wide > whole - EDGE {
            (x, y) = (EDGE, y + LEGEND_LINE);
        }
        entries.push(LegendEntry { sample, x, y, name });
        x += wide + 16.0;
    }
    entries
}

/// The axes, with about as many ticks as given for each.
fn fit_axes(plot: &Plot, (across, up): (u32, u32)) -> (FittedAxis, FittedAxis) {
    let points = || plot.curves.iter().flat_map(|c| c.points.iter().map(move |p| (c.style, p)));
    // without negative values, error bars are cut off at zero: goodput, for instance, cannot be negative
    let floor = if points().any(|(_, p)| p.y < 0.0) { f64::NEG_INFINITY } else { 0.0 };
    let shown = |(style, p): (Style, &crate::Point)| {
        let y = !matches!(style, Style::Band | Style::Ranges);
        let range = p.range.filter(|_| !matches!(style, Style::Line | Style::Steps));
        let zero = (style == Style::Bars).then_some(0.0);
        [zero, y.then_some(p.y), range.map(|r| r.0.max(floor)), range.map(|r| r.1)].into_iter().flatten()
    };
    let fit = if plot.curves.iter().any(|c| c.style.has_markers()) { Fit::Padded } else { Fit::Tight };
    let x = if plot.x.names.is_empty() {
        FittedAxis::new(&plot.x, points().map(|(_, p)| p.x), fit, across)
    } else {
        FittedAxis::named(&plot.x.names)
    };
    (x, FittedAxis::new(&plot.y, points().flat_map(shown), Fit::Round, up))
}
