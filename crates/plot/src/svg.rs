//! Writes SVG. Colours come from CSS classes, with an attribute for viewers without custom properties.

use core::fmt::Write as _;

use crate::layout::{LINE, Layout, SAMPLE, Sample, TITLE_LINE};
use crate::reduce::{Polyline, decimate, marker_positions, polylines};
use crate::style::{COLOURS, DASHES, STYLE};
use crate::text::{Coordinate, escape};
use crate::{Curve, Marker, Mode, Plot, Style};

/// Half the width of the caps of error bars.
const CAP: f64 = 4.0;
/// Width of bars, in units of the horizontal axis.
const BAR: f64 = 0.6;

pub(crate) fn draw(plot: &Plot, mode: Mode) -> String {
    let layout = Layout::new(plot);
    let mut pen = SvgWriter::default();
    pen.head(plot, &layout, mode);
    pen.frame(&layout);
    pen.marks(plot, &layout);
    pen.data(plot, &layout);
    pen.legend(plot, &layout);
    pen.out.push_str("</svg>\n");
    pen.out
}

#[derive(Default)]
pub(crate) struct SvgWriter {
    pub(crate) out: String,
}

/// Appearance of a curve.
pub(crate) struct CurveStyle {
    /// CSS class, and the colour for viewers without custom properties.
    pub(crate) colour: (&'static str, &'static str),
    /// Value of `stroke-dasharray`; empty for a solid line.
    pub(crate) dash: &'static str,
    pub(crate) marker: Marker,
}

impl CurveStyle {
    pub(crate) fn of(curve: &Curve, place: usize) -> Self {
        Self {
            colour: COLOURS[curve.colour.map_or(place % COLOURS.len(), |c| c as usize)],
            dash: DASHES[curve.dash.map_or(place % DASHES.len(), |d| d as usize)],
            marker: curve.marker.unwrap_or(Marker::ORDER[place % Marker::ORDER.len()]),
        }
    }
}

impl SvgWriter {
    fn head(&mut self, plot: &Plot, layout: &Layout, mode: Mode) {
        self.open((&plot.title, &plot.description), (layout.width, layout.height), mode);
        let y = self.title(&layout.title);
        self.block(y, LINE, "", &layout.y_label);
    }

    /// Begins a picture of this size. The texts are for screen readers.
    pub(crate) fn open(&mut self, (title, description): (&str, &str), (w, h): (f64, f64), mode: Mode) {
        let h = libm::ceil(h);
        let size = match mode {
            Mode::Standalone => format!("width=\"{w}\" height=\"{h}\""),
            Mode::Inline => "width=\"100%\"".to_owned(),
        };
        let _ = writeln!(
            self.out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" role=\"img\" viewBox=\"0 0 {w} {h}\" {size} \
             font-family=\"sans-serif\" font-size=\"13\" color=\"#1c1c1c\">\n<title>{}</title>\n<desc>{}</desc>",
            escape(title),
            escape(description)
        );
        if mode == Mode::Standalone {
            let _ = writeln!(
                self.out,
                "<style>{STYLE}</style>\n<rect class=\"paper\" width=\"100%\" height=\"100%\" fill=\"#fff\"/>"
            );
        }
    }

    /// Writes the title at the top; returns the place of the next line.
    pub(crate) fn title(&mut self, lines: &[String]) -> f64 {
        let top = 8.0 + 0.75 * TITLE_LINE;
        self.block(top, TITLE_LINE, " font-weight=\"600\" font-size=\"14.5\"", lines)
    }

    /// Grid, ticks and axes.
    fn frame(&mut self, layout: &Layout) {
        let (left, right, top, bottom) = (layout.left, layout.right, layout.top, layout.bottom);
        self.out.push_str("<g class=\"grid\" color=\"#dcdcdc\" stroke=\"currentColor\">\n");
        for x in layout.x.ticks.iter().filter_map(|t| layout.at_x(t.0)) {
            self.line((x, top), (x, bottom));
        }
        for y in layout.y.ticks.iter().filter_map(|t| layout.at_y(t.0)) {
            self.line((left, y), (right, y));
        }
        self.out.push_str("</g>\n<g stroke=\"currentColor\">\n");
        self.line((left, bottom), (right, bottom));
        self.line((left, top), (left, bottom));
        self.out.push_str("</g>\n");
        for ((v, _), lines) in layout.x.ticks.iter().zip(&layout.x_ticks) {
            let x = layout.at_x(*v).unwrap_or(left);
            for (n, text) in lines.iter().enumerate() {
                self.text((x, bottom + 17.0 + LINE * n as f64), "middle", "", text);
            }
        }
        for (v, text) in &layout.y.ticks {
            let y = layout.at_y(*v).unwrap_or(bottom);
            self.text((left - 6.0, y + 4.5), "end", "", text);
        }
        self.text(
            (f64::midpoint(left, right), bottom + layout.x_ticks_high + 36.0),
            "middle",
            "",
            &layout.x_label,
        );
    }

    /// Shades the marked ranges, behind the curves.
    fn marks(&mut self, plot: &Plot, layout: &Layout) {
        for mark in &plot.marks {
            let ends = layout.at_x(mark.from).zip(layout.at_x(mark.to));
            let Some((from, to)) = ends.map(|(a, b)| (a.max(layout.left), b.min(layout.right))) else {
                continue;
            };
            if to >= from {
                self.group(COLOURS[mark.colour as usize]);
                // a moment is shown too
                self.rectangle((from, layout.top), ((to - from).max(1.5), layout.bottom - layout.top));
                self.out.push_str("</g>\n");
            }
        }
    }

    /// Draws all curves, clipped to the data area; markers are drawn whole or not at all.
    fn data(&mut self, plot: &Plot, layout: &Layout) {
        let (w, h) = (layout.right - layout.left, layout.bottom - layout.top);
        let mut empty = true;
        for (place, curve) in plot.curves.iter().enumerate() {
            let look = CurveStyle::of(curve, place);
            let mut shape = SvgWriter::default();
            shape.curve(curve, &look, layout);
            if !shape.out.is_empty() {
                empty = false;
                self.group(look.colour);
                let [x, y, w, h] = [layout.left, layout.top - 1.0, w + 1.0, h + 2.0].map(Coordinate);
                let _ = writeln!(
                    self.out,
                    "<svg x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" viewBox=\"{x} {y} {w} {h}\">\n{}</svg>\n</g>",
                    shape.out
                );
            }
            if curve.style.has_markers() {
                empty &= !self.markers(curve, &look, layout);
            }
        }
        if empty {
            let middle = (f64::midpoint(layout.left, layout.right), f64::midpoint(layout.top, layout.bottom));
            self.text(middle, "middle", "", "no data");
        }
    }

    fn curve(&mut self, curve: &Curve, look: &CurveStyle, layout: &Layout) {
        let place = |p: &crate::Point| Some((layout.at_x(p.x)?, layout.at_y(p.y)?));
        match curve.style {
            Style::Line | Style::LineAndPoints => {
                self.lines(&polylines(curve.points.iter().map(place)), look.dash);
            }
            Style::Steps => self.lines(&stairs(curve, layout), look.dash),
            Style::Band => self.band(curve, layout),
            Style::Bars => self.bars(curve, layout),
            Style::Boxes => self.boxes(curve, layout),
            Style::Points | Style::Ranges => {}
        }
        if !curve.style.has_error_bars() {
            return;
        }
        let mut path = SvgWriter::default();
        for p in &curve.points {
            let (Some(x), Some((low, high))) = (layout.at_x(p.x), ends(p.range, layout)) else { continue };
            path.error_bar(x, low, high);
        }
        self.stroke(&path.out, "stroke-width=\"1.3\"");
    }

    fn lines(&mut self, pieces: &[Polyline], dash: &str) {
        let mut path = SvgWriter::default();
        for piece in pieces {
            path.connect(piece.iter());
            if piece.len() == 1 {
                // make a single value between gaps visible
                path.out.push_str("h1.5");
            }
        }
        let dashes = if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
        self.stroke(&path.out, &format!("stroke-width=\"1.7\" stroke-linejoin=\"round\"{dashes}"));
    }

    /// Draws a path, unless it is empty.
    fn stroke(&mut self, path: &str, style: &str) {
        if !path.is_empty() {
            let _ = writeln!(self.out, "<path d=\"{path}\" fill=\"none\" stroke=\"currentColor\" {style}/>");
        }
    }

    fn band(&mut self, curve: &Curve, layout: &Layout) {
        let both = |p: &crate::Point| Some((layout.at_x(p.x)?, ends(p.range, layout)?));
        for part in curve.points.split(|p| both(p).is_none()).filter(|p| !p.is_empty()) {
            let edge = |end: fn((f64, f64)) -> f64| -> Polyline {
                decimate(&part.iter().filter_map(both).map(|(x, r)| (x, end(r))).collect::<Polyline>())
            };
            let (low, high) = (edge(|r| r.0), edge(|r| r.1));
            self.out.push_str("<path d=\"");
            self.connect(high.iter().chain(low.iter().rev()));
            self.out.push_str("z\" fill=\"currentColor\" fill-opacity=\".22\" stroke=\"none\"/>\n");
        }
    }

    fn bars(&mut self, curve: &Curve, layout: &Layout) {
        let zero = layout.at_y(0.0).unwrap_or(layout.bottom);
        for p in &curve.points {
            let ends = layout.at_x(p.x - BAR / 2.0).zip(layout.at_x(p.x + BAR / 2.0));
            let (Some((left, right)), Some(y)) = (ends, layout.at_y(p.y)) else { continue };
            self.rectangle((left, y.min(zero)), (right - left, (zero - y).abs()));
        }
    }

    /// Draws a box over each range, with a line at the value.
    fn boxes(&mut self, curve: &Curve, layout: &Layout) {
        for p in &curve.points {
            let across = layout.at_x(p.x - BAR / 3.0).zip(layout.at_x(p.x + BAR / 3.0));
            let (Some((left, right)), Some(y), Some((low, high))) =
                (across, layout.at_y(p.y), ends(p.range, layout))
            else {
                continue;
            };
            self.rectangle((left, high), (right - left, low - high));
            let mut middle = Self::default();
            middle.connect([(left, y), (right, y)].iter());
            self.stroke(&middle.out, "stroke-width=\"2.2\"");
        }
    }

    /// Draws a half transparent rectangle from its upper left corner.
    pub(crate) fn rectangle(&mut self, (x, y): (f64, f64), (w, h): (f64, f64)) {
        let [x, y, w, h] = [x, y, w, h].map(Coordinate);
        let _ = writeln!(
            self.out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" fill=\"currentColor\" fill-opacity=\".22\"/>"
        );
    }

    /// Draws markers; returns true if there were any.
    fn markers(&mut self, curve: &Curve, look: &CurveStyle, layout: &Layout) -> bool {
        let inside = |p: &crate::Point| {
            let (x, y) = (layout.at_x(p.x)?, layout.at_y(p.y)?);
            let within = (layout.left - 0.1..=layout.right + 0.1).contains(&x)
                && (layout.top - 0.1..=layout.bottom + 0.1).contains(&y);
            within.then_some((x, y))
        };
        let places = marker_positions(curve.points.iter().filter_map(inside));
        if places.is_empty() {
            return false;
        }
        self.group(look.colour);
        self.symbols(&places, look.marker);
        self.out.push_str("</g>\n");
        true
    }

    fn symbols(&mut self, places: &[(f64, f64)], marker: Marker) {
        let (shape, filled) = marker.path();
        self.out.push_str("<path d=\"");
        for at in places {
            self.to('M', *at);
            self.out.push_str(shape);
        }
        let paint = if filled {
            "fill=\"currentColor\""
        } else {
            "fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.5\""
        };
        let _ = writeln!(self.out, "\" {paint}/>");
    }

    fn legend(&mut self, plot: &Plot, layout: &Layout) {
        for entry in &layout.legend {
            let (x, y, end) = (entry.x, entry.y - 4.5, entry.x + SAMPLE);
            match entry.sample {
                Sample::Curve(place) => self.sample(&plot.curves[place], place, (x, y)),
                Sample::Mark(place) => {
                    self.group(COLOURS[plot.marks[place].colour as usize]);
                    self.rectangle((x, y - 5.0), (SAMPLE, 10.0));
                }
            }
            self.out.push_str("</g>\n");
            self.text((end + 6.0, entry.y), "start", "", &entry.name);
        }
        self.block(layout.note_top, LINE, " font-size=\"12\"", &layout.note);
    }

    /// Draws the sample of a curve in the legend, in a group that stays open.
    fn sample(&mut self, curve: &Curve, place: usize, (x, y): (f64, f64)) {
        let (look, end) = (CurveStyle::of(curve, place), x + SAMPLE);
        self.group(look.colour);
        match curve.style {
            Style::Line | Style::Steps | Style::LineAndPoints => {
                self.lines(&[vec![(x, y), (end, y)]], look.dash);
            }
            Style::Band | Style::Bars | Style::Boxes => self.rectangle((x, y - 5.0), (SAMPLE, 10.0)),
            Style::Points | Style::Ranges => {}
        }
        if curve.style.has_markers() {
            let marker = if look.marker == Marker::Speck { Marker::Dot } else { look.marker };
            self.symbols(&[(f64::midpoint(x, end), y)], marker);
        }
    }

    /// Writes lines of text at the left edge, the first at `y`; returns the place of the next line.
    pub(crate) fn block(&mut self, mut y: f64, spacing: f64, more: &str, lines: &[String]) -> f64 {
        for line in lines {
            self.text((8.0, y), "start", more, line);
            y += spacing;
        }
        y
    }

    pub(crate) fn group(&mut self, (class, colour): (&str, &str)) {
        let _ = writeln!(self.out, "<g class=\"{class}\" color=\"{colour}\">");
    }

    pub(crate) fn text(&mut self, at: (f64, f64), anchor: &str, more: &str, text: &str) {
        let (x, y, text) = (Coordinate(at.0), Coordinate(at.1), escape(text));
        let _ = writeln!(
            self.out,
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" fill=\"currentColor\"{more}>{text}</text>"
        );
    }

    pub(crate) fn line(&mut self, a: (f64, f64), b: (f64, f64)) {
        self.out.push_str("<path d=\"");
        self.to('M', a);
        self.to('L', b);
        self.out.push_str("\"/>\n");
    }

    /// Adds a vertical bar with caps to the path.
    fn error_bar(&mut self, x: f64, low: f64, high: f64) {
        self.to('M', (x, low));
        self.to('L', (x, high));
        for end in [low, high] {
            self.to('M', (x - CAP, end));
            let _ = write!(self.out, "h{}", 2.0 * CAP);
        }
    }

    /// Adds places connected by straight lines to the path.
    fn connect<'a>(&mut self, places: impl Iterator<Item = &'a (f64, f64)>) {
        for (i, at) in places.enumerate() {
            self.to(if i == 0 { 'M' } else { 'L' }, *at);
        }
    }

    fn to(&mut self, command: char, at: (f64, f64)) {
        let _ = write!(self.out, "{command}{} {}", Coordinate(at.0), Coordinate(at.1));
    }
}

/// Positions of the ends of a range; values that a logarithmic axis cannot show are placed below it.
fn ends(range: Option<(f64, f64)>, layout: &Layout) -> Option<(f64, f64)> {
    let (low, high) = range.filter(|(a, b)| a.is_finite() && b.is_finite())?;
    let below = layout.bottom + 20.0;
    Some((layout.at_y(low).unwrap_or(below), layout.at_y(high).unwrap_or(below)))
}

/// Corners of steps: each value holds from the previous x.
fn stairs(curve: &Curve, layout: &Layout) -> Vec<Polyline> {
    let mut before: Option<f64> = None;
    let mut corners = Vec::with_capacity(2 * curve.points.len());
    for p in &curve.points {
        let x = layout.at_x(p.x);
        match (x, layout.at_y(p.y)) {
            (Some(x), Some(y)) => corners.extend([Some((before.unwrap_or(x), y)), Some((x, y))]),
            _ => corners.push(None),
        }
        before = x;
    }
    polylines(corners.into_iter())
}
