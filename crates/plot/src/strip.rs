//! Draws what was the case at each time: a row of coloured bands for each thing, with letters in wide bands.

use crate::axis::{Fit, FittedAxis};
use crate::layout::{LINE, SAMPLE, TITLE_LINE};
use crate::style::COLOURS;
use crate::svg::SvgWriter;
use crate::text::{Coordinate, cut, escape, lines, width};
use crate::{Axis, Colour, Mode};
use core::fmt::Write as _;

/// Width of the picture: that of a plot.
const WIDTH: f64 = 520.0;
const EDGE: f64 = 12.0;
const ROW: f64 = 22.0;
/// Bands of at least this width have their letter.
const LETTER: f64 = 13.0;

/// Bands over an axis.
#[derive(Clone, Debug, Default)]
pub struct Strip {
    /// Title, drawn above.
    pub title: String,
    /// Description of one or two sentences for screen readers.
    pub description: String,
    /// The horizontal axis.
    pub x: Axis,
    /// What bands can be; the legend has those that occur.
    pub kinds: Vec<StripKind>,
    /// Rows from top to bottom.
    pub rows: Vec<StripRow>,
}

/// What a band can be.
#[derive(Clone, Debug)]
pub struct StripKind {
    /// Name in the legend, and for those who point at a band.
    pub name: String,
    /// Letter in the bands.
    pub letter: char,
    /// Colour.
    pub colour: Colour,
}

/// A row of bands.
#[derive(Clone, Debug, Default)]
pub struct StripRow {
    /// Text above; none if empty.
    pub name: String,
    /// Bands; ranges without one are empty.
    pub bands: Vec<StripBand>,
}

/// A band.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StripBand {
    /// Where it begins.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// Index of its kind.
    pub kind: usize,
}

impl Strip {
    /// Draws it as SVG.
    pub fn to_svg(&self, mode: Mode) -> String {
        let title = lines(&self.title, WIDTH - 4.0 * EDGE);
        let values = self.rows.iter().flat_map(|r| r.bands.iter().flat_map(|b| [b.from, b.to]));
        let x = FittedAxis::new(&self.x, values, Fit::Tight, 6);
        let named = |row: &StripRow| if row.name.is_empty() { 0.0 } else { LINE + 2.0 };
        let top = 8.0 + TITLE_LINE * title.len() as f64 + 6.0;
        let bottom = top + self.rows.iter().map(|r| named(r) + ROW + 6.0).sum::<f64>();
        let legend = self.entries(bottom + 62.0);
        let height = legend.last().map_or(bottom + 50.0, |e| e.2 + 14.0);
        let mut pen = SvgWriter::default();
        pen.open((&self.title, &self.description), (WIDTH, height), mode);
        pen.title(&title);
        let at = |v: f64| Some(EDGE + x.position(v)?.clamp(0.0, 1.0) * (WIDTH - 2.5 * EDGE));
        let mut y = top;
        for row in &self.rows {
            if !row.name.is_empty() {
                pen.text((EDGE, y + 13.0), "start", "", &cut(&row.name, WIDTH - 2.0 * EDGE));
            }
            y += named(row);
            self.row(&mut pen, row, y, &at);
            y += ROW + 6.0;
        }
        for (v, text) in &x.ticks {
            let Some(place) = at(*v) else { continue };
            pen.text((place, bottom + 16.0), if place < 2.0 * EDGE { "start" } else { "middle" }, "", text);
        }
        pen.text((WIDTH / 2.0, bottom + 36.0), "middle", "", &self.x.label);
        for (kind, x, y) in legend {
            let StripKind { name, letter, colour } = &self.kinds[kind];
            band(&mut pen, *colour, (x, y - 13.0), (SAMPLE, 16.0), "");
            pen.text((x + SAMPLE / 2.0, y), "middle", "", &letter.to_string());
            pen.text((x + SAMPLE + 6.0, y), "start", "", name);
        }
        pen.out.push_str("</svg>\n");
        pen.out
    }

    fn row(&self, pen: &mut SvgWriter, row: &StripRow, y: f64, at: &dyn Fn(f64) -> Option<f64>) {
        for b in &row.bands {
            let (Some(kind), Some((from, to))) = (self.kinds.get(b.kind), at(b.from).zip(at(b.to))) else {
                continue;
            };
            let tip = format!("{}: {} to {}", kind.name, Coordinate(b.from), Coordinate(b.to));
            band(pen, kind.colour, (from, y), (to - from, ROW), &tip);
            if to - from >= LETTER {
                pen.text((f64::midpoint(from, to), y + 15.5), "middle", "", &kind.letter.to_string());
            }
        }
    }

    /// Kinds that occur, each with its place in the legend.
    fn entries(&self, top: f64) -> Vec<(usize, f64, f64)> {
        let occurs = |kind: usize| self.rows.iter().any(|r| r.bands.iter().any(|b| b.kind == kind));
        let (mut x, mut y) = (EDGE, top);
        let place = |kind: usize| {
            let wide = SAMPLE + 22.0 + width(&self.kinds[kind].name);
            if x > EDGE && x + wide > WIDTH - EDGE {
                (x, y) = (EDGE, y + 20.0);
            }
            let place = (kind, x, y);
            x += wide;
            place
        };
        (0..self.kinds.len()).filter(|kind| occurs(*kind)).map(place).collect()
    }
}

/// Draws a rectangle from its upper left corner, with a text for those who point at it.
fn band(pen: &mut SvgWriter, colour: Colour, (x, y): (f64, f64), (w, h): (f64, f64), tip: &str) {
    pen.group(COLOURS[colour as usize]);
    let [x, y, w, h] = [x, y, w.max(0.5), h].map(Coordinate);
    let tip = if tip.is_empty() { String::new() } else { format!("<title>{}</title>", escape(tip)) };
    let _ = writeln!(
        pen.out,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" fill=\"currentColor\" fill-opacity=\".45\">{tip}</rect>\n</g>"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_are_as_long_as_their_times_and_the_legend_has_what_occurs() {
        let kind = |name: &str, letter, colour| StripKind { name: name.into(), letter, colour };
        let strip = Strip {
            title: "What <limited>".into(),
            x: Axis::linear("time, s").within(0.0, 100.0),
            kinds: vec![
                kind("losses", 'L', Colour::Vermilion),
                kind("window", 'w', Colour::Blue),
                kind("never", 'n', Colour::Green),
            ],
            rows: vec![StripRow {
                name: "a".into(),
                bands: vec![
                    StripBand { from: 0.0, to: 50.0, kind: 0 },
                    StripBand { from: 50.0, to: 50.5, kind: 1 },
                    StripBand { from: 50.5, to: 100.0, kind: 7 },
                ],
            }],
            ..Strip::default()
        };
        let svg = strip.to_svg(Mode::Standalone);
        assert!(
            svg.contains("What &lt;limited&gt;") && svg.contains("<title>losses: 0 to 50</title>"),
            "{svg}"
        );
        // half of 490 units, and a hundredth of that
        assert!(
            svg.contains("width=\"245\" height=\"22\"") && svg.contains("width=\"2.4\" height=\"22\""),
            "{svg}"
        );
        assert_eq!(
            (svg.matches(">L<").count(), svg.matches(">w<").count()),
            (2, 1),
            "a narrow band has no letter"
        );
        assert!(svg.contains(">window<") && !svg.contains("never") && !svg.contains("NaN"));
        assert!(!Strip::default().to_svg(Mode::Inline).contains("NaN"));
    }
}
