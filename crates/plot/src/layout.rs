//! Layout from top to bottom: title, label of the vertical axis, labels of markers, data, ticks, label of
//! the horizontal axis, legend, note. The data area contains only the data.

use crate::axis::{Fit, Ruler};
use crate::text::{cut, lines, width};
use crate::{Plot, Shape, Style};

pub(crate) const TITLE_LINE: f64 = 19.0;
pub(crate) const LINE: f64 = 17.0;
pub(crate) const LEGEND_LINE: f64 = 20.0;
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
    pub(crate) x: Ruler,
    pub(crate) y: Ruler,
    pub(crate) marks: Vec<Flag>,
    pub(crate) x_label: String,
    pub(crate) legend: Vec<Entry>,
    pub(crate) note: Vec<String>,
    /// Baseline of the first line of the note.
    pub(crate) note_top: f64,
}

/// Label of a vertical marker.
pub(crate) struct Flag {
    /// Position of the marker.
    pub(crate) x: f64,
    /// Start of the label.
    pub(crate) label_x: f64,
    pub(crate) label_y: f64,
    pub(crate) label: String,
}

/// An entry of the legend.
pub(crate) struct Entry {
    pub(crate) curve: usize,
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) name: String,
}

impl Layout {
    pub(crate) fn new(plot: &Plot) -> Self {
        let (whole, high) = match plot.shape {
            Shape::Normal => (520.0, 230.0),
            Shape::Wide => (800.0, 330.0),
        };
        let fitting = whole - 2.0 * EDGE;
        let (x, y) = rulers(plot);
        let title = lines(&plot.title, 0.82 * fitting);
        let y_label = lines(&plot.y.label, fitting);
        let widest = |r: &Ruler| r.ticks.iter().map(|t| width(&t.1)).fold(0.0, f64::max);
        let left = (widest(&y) + EDGE + 7.0).max(34.0);
        let last = x.ticks.last().map_or(0.0, |t| width(&t.1));
        let mut layout = Self {
            width: whole,
            left,
            right: whole - (last / 2.0).max(EDGE + 4.0),
            top: EDGE + TITLE_LINE * title.len() as f64 + LINE * y_label.len() as f64 + 10.0,
            x_label: cut(&plot.x.label, fitting),
            note: plot.note.as_deref().map(|n| lines(n, fitting)).unwrap_or_default(),
            title,
            y_label,
            x,
            y,
            height: 0.0,
            bottom: 0.0,
            marks: Vec::new(),
            legend: Vec::new(),
            note_top: 0.0,
        };
        layout.flags(plot);
        layout.bottom = layout.top + high;
        layout.entries(plot, layout.bottom + 56.0);
        let after = layout.legend.last().map_or(layout.bottom + 42.0, |e| e.y + 10.0);
        layout.note_top = after + LINE;
        layout.height = after + LINE * layout.note.len() as f64 + EDGE;
        layout
    }

    pub(crate) fn at_x(&self, v: f64) -> Option<f64> {
        self.x.share(v).map(|s| self.left + s * (self.right - self.left))
    }

    pub(crate) fn at_y(&self, v: f64) -> Option<f64> {
        self.y.share(v).map(|s| self.bottom - s * (self.bottom - self.top))
    }

    /// Distributes the labels of markers over as many rows as needed to avoid overlaps.
    fn flags(&mut self, plot: &Plot) {
        let mut marks: Vec<_> = plot.marks.iter().filter_map(|m| Some((self.at_x(m.x)?, &m.label))).collect();
        marks.retain(|(x, _)| (self.left - 0.1..=self.right + 0.1).contains(x));
        marks.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut ends: Vec<f64> = Vec::new();
        for (x, label) in marks {
            let label = cut(label, self.right - self.left);
            let wide = width(&label);
            let label_x = (x - wide / 2.0).min(self.width - EDGE - wide).max(EDGE);
            let row = ends.iter().position(|end| *end + 8.0 < label_x).unwrap_or(ends.len());
            if row == ends.len() {
                ends.push(0.0);
            }
            ends[row] = label_x + wide;
            self.marks.push(Flag { x, label_x, label_y: row as f64, label });
        }
        let top = self.top;
        for flag in &mut self.marks {
            flag.label_y = top + LINE * flag.label_y + 4.0;
        }
        self.top += LINE * ends.len() as f64;
    }

    fn entries(&mut self, plot: &Plot, top: f64) {
        let (mut x, mut y) = (EDGE, top);
        for (curve, c) in plot.curves.iter().enumerate().filter(|(_, c)| !c.name.is_empty()) {
            let name = cut(&c.name, self.width - 2.0 * EDGE - SAMPLE - 6.0);
            let wide = SAMPLE + 6.0 + width(&name);
            if x > EDGE && x + wide > self.width - EDGE {
                (x, y) = (EDGE, y + LEGEND_LINE);
            }
            self.legend.push(Entry { curve, x, y, name });
            x += wide + 16.0;
        }
    }
}

fn rulers(plot: &Plot) -> (Ruler, Ruler) {
    let points = || plot.curves.iter().flat_map(|c| c.points.iter().map(move |p| (c.style, p)));
    // without negative values, error bars are cut off at zero: goodput, for instance, cannot be negative
    let floor = if points().any(|(_, p)| p.y < 0.0) { f64::NEG_INFINITY } else { 0.0 };
    let shown = |(style, p): (Style, &crate::Point)| {
        let y = !matches!(style, Style::Bars | Style::Band);
        let range = p.range.filter(|_| !matches!(style, Style::Line | Style::Steps));
        [y.then_some(p.y), range.map(|r| r.0.max(floor)), range.map(|r| r.1)].into_iter().flatten()
    };
    let dots = |c: &crate::Curve| matches!(c.style, Style::Points | Style::LineAndPoints | Style::Bars);
    let fit = if plot.curves.iter().any(dots) { Fit::Roomy } else { Fit::Tight };
    let (across, up) = match plot.shape {
        Shape::Normal => (6, 5),
        Shape::Wide => (9, 6),
    };
    let x = Ruler::new(&plot.x, points().map(|(_, p)| p.x), fit, across);
    (x, Ruler::new(&plot.y, points().flat_map(shown), Fit::Round, up))
}
