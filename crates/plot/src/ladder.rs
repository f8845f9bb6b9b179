//! Draws packets between stations: a vertical line for each station, time downwards, an arrow for each packet
//! on each hop.
//!
//! Long times in which nothing happens are shortened, and dense ones are stretched so that texts fit: the
//! times at the left edge are exact, the distances between them are not to scale.

use crate::Mode;
use crate::style::STYLE;
use crate::text::{Coordinate, SIZE, escape, lines, width};
use core::fmt::Write as _;

/// Width of the picture.
const WIDTH: f64 = 860.0;
/// Space for the times at the left edge.
const LEFT: f64 = 92.0;
/// Space at the right edge.
const RIGHT: f64 = 60.0;
/// Least and most distance between two times that follow each other.
const LEAST: f64 = 22.0;
const MOST: f64 = 46.0;
/// Place of a text along its arrow, as a part of the length.
const BEYOND: f64 = 0.58;
/// Length and half the width of the head of an arrow.
const HEAD: (f64, f64) = (8.0, 3.2);

/// Packets between stations.
#[derive(Clone, Debug, Default)]
pub struct Ladder {
    /// Title, drawn above.
    pub title: String,
    /// Description of one or two sentences for screen readers.
    pub description: String,
    /// Names of the stations from left to right.
    pub stations: Vec<String>,
    /// The arrows.
    pub arrows: Vec<Arrow>,
    /// Small text below.
    pub note: Option<String>,
}

/// A packet on one hop.
#[derive(Clone, Debug, Default)]
pub struct Arrow {
    /// Index of the station that sends it.
    pub from: usize,
    /// Index of the station to which it goes.
    pub to: usize,
    /// When it is sent, in seconds.
    pub sent_s: f64,
    /// When it arrives; `None` if it is lost.
    pub arrived_s: Option<f64>,
    /// Text along it.
    pub label: String,
    /// Drawn in colour.
    pub is_marked: bool,
}

/// Where times are in the picture: in order, each with its place.
struct Times(Vec<(f64, f64)>);

impl Times {
    fn new(arrows: &[Arrow], top: f64) -> Self {
        let mut all: Vec<f64> = arrows
            .iter()
            .flat_map(|a| [Some(a.sent_s), a.arrived_s])
            .flatten()
            .filter(|t| t.is_finite())
            .collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        let span = all.last().zip(all.first()).map_or(0.0, |(last, first)| last - first);
        let scale = if span > 0.0 { MOST * all.len() as f64 / span } else { 0.0 };
        let (mut y, mut before) = (top, None);
        let place = |t: f64| {
            y += before.map_or(0.0, |before: f64| ((t - before) * scale).clamp(LEAST, MOST));
            before = Some(t);
            (t, y)
        };
        Self(all.into_iter().map(place).collect())
    }

    fn at(&self, time: f64) -> f64 {
        let found = self.0.iter().find(|(t, _)| t.total_cmp(&time).is_eq());
        found.map_or_else(|| self.bottom(), |(_, y)| *y)
    }

    fn bottom(&self) -> f64 {
        self.0.last().map_or(0.0, |(_, y)| *y)
    }
}

impl Ladder {
    /// Draws it as SVG.
    pub fn to_svg(&self, mode: Mode) -> String {
        let title = lines(&self.title, WIDTH - 16.0);
        let top = 30.0 + 19.0 * title.len() as f64;
        let times = Times::new(&self.arrows, top + 34.0);
        let note = self.note.as_deref().map_or_else(Vec::new, |note| lines(note, WIDTH - 16.0));
        let bottom = times.bottom() + 22.0;
        let height = bottom + 12.0 + 17.0 * note.len() as f64;
        let mut out = String::new();
        self.head(&mut out, mode, height);
        for (i, line) in title.iter().enumerate() {
            text(
                &mut out,
                (8.0, 20.0 + 19.0 * i as f64),
                "start",
                " font-weight=\"600\" font-size=\"14.5\"",
                line,
            );
        }
        for (i, name) in self.stations.iter().enumerate() {
            let x = self.x(i);
            text(&mut out, (x, top), "middle", " font-weight=\"600\"", name);
            let (x, y, end) = (Coordinate(x), Coordinate(top + 8.0), Coordinate(bottom));
            let _ = writeln!(
                out,
                "<g class=\"grey\" color=\"#6e6e6e\"><path d=\"M{x} {y}V{end}\" stroke=\"currentColor\"/></g>"
            );
        }
        for (i, (time, y)) in times.0.iter().enumerate() {
            let unit = if i == 0 { " s" } else { "" };
            text(&mut out, (LEFT - 22.0, y + 4.0), "end", " font-size=\"11\"", &format!("{time:.4}{unit}"));
        }
        for arrow in &self.arrows {
            self.arrow(&mut out, arrow, &times);
        }
        for (i, line) in note.iter().enumerate() {
            text(&mut out, (8.0, bottom + 17.0 * (i + 1) as f64), "start", " font-size=\"12\"", line);
        }
        out.push_str("</svg>\n");
        out
    }

    /// Place of a station.
    fn x(&self, station: usize) -> f64 {
        let gaps = self.stations.len().saturating_sub(1).max(1) as f64;
        LEFT + (WIDTH - LEFT - RIGHT) * station as f64 / gaps
    }

    fn head(&self, out: &mut String, mode: Mode, height: f64) {
        let height = libm::ceil(height);
        let size = match mode {
            Mode::Standalone => format!("width=\"{WIDTH}\" height=\"{height}\""),
            Mode::Inline => "width=\"100%\"".to_owned(),
        };
        let _ = writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" role=\"img\" viewBox=\"0 0 {WIDTH} {height}\" {size} \
             font-family=\"sans-serif\" font-size=\"{SIZE}\" color=\"#1c1c1c\">\n<title>{}</title>\n<desc>{}</desc>",
            escape(&self.title),
            escape(&self.description)
        );
        if mode == Mode::Standalone {
            let _ = writeln!(
                out,
                "<style>{STYLE}</style>\n<rect class=\"paper\" width=\"100%\" height=\"100%\" fill=\"#fff\"/>"
            );
        }
    }

    fn arrow(&self, out: &mut String, arrow: &Arrow, times: &Times) {
        let (start, full) = ((self.x(arrow.from), times.at(arrow.sent_s)), self.x(arrow.to));
        // a lost packet ends on its way
        let end = arrow.arrived_s.map_or_else(
            || (f64::midpoint(start.0, full), start.1 + LEAST / 2.0),
            |arrived| (full, times.at(arrived)),
        );
        let (class, colour) = if arrow.is_marked { ("c2", "#d55e00") } else { ("c1", "#0072b2") };
        let _ = writeln!(out, "<g class=\"{class}\" color=\"{colour}\">");
        let (x0, y0, x1, y1) =
            (Coordinate(start.0), Coordinate(start.1), Coordinate(end.0), Coordinate(end.1));
        let _ =
            writeln!(out, "<path d=\"M{x0} {y0}L{x1} {y1}\" stroke=\"currentColor\" stroke-width=\"1.6\"/>");
        let (dx, dy) = (end.0 - start.0, end.1 - start.1);
        let length = libm::hypot(dx, dy).max(1.0);
        let (ux, uy) = (dx / length, dy / length);
        if arrow.arrived_s.is_some() {
            let base = (end.0 - HEAD.0 * ux, end.1 - HEAD.0 * uy);
            let [a, b] = [1.0, -1.0].map(|side| (base.0 - side * HEAD.1 * uy, base.1 + side * HEAD.1 * ux));
            let [ax, ay, bx, by] = [a.0, a.1, b.0, b.1].map(Coordinate);
            let _ = writeln!(out, "<path d=\"M{x1} {y1}L{ax} {ay}L{bx} {by}z\" fill=\"currentColor\"/>");
        } else {
            let _ = writeln!(
                out,
                "<path d=\"M{x1} {y1}m-4-4l8 8m0-8l-8 8\" stroke=\"currentColor\" stroke-width=\"1.6\" fill=\"none\"/>"
            );
        }
        out.push_str("</g>\n");
        label(out, &arrow.label, start, end);
    }
}

/// Writes the text of an arrow along it, beyond its middle: where it starts another one may end.
fn label(out: &mut String, label: &str, start: (f64, f64), end: (f64, f64)) {
    let (x, y) = (start.0 + BEYOND * (end.0 - start.0), start.1 + BEYOND * (end.1 - start.1));
    let (dx, dy) = ((end.0 - start.0).abs(), end.1 - start.1);
    let slope = if end.0 < start.0 { -dy } else { dy };
    let angle = libm::atan2(slope, dx).to_degrees();
    let most = SIZE * (dx - 16.0) / width(label).max(1.0);
    let more = format!(
        " font-size=\"{}\" transform=\"rotate({} {} {})\"",
        Coordinate(most.clamp(8.5, 11.0)),
        Coordinate(angle),
        Coordinate(x),
        Coordinate(y)
    );
    text(out, (x, y - 4.0), "middle", &more, label);
}

fn text(out: &mut String, at: (f64, f64), anchor: &str, more: &str, text: &str) {
    if text.is_empty() {
        return;
    }
    let (x, y, text) = (Coordinate(at.0), Coordinate(at.1), escape(text));
    let _ = writeln!(
        out,
        "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" fill=\"currentColor\"{more}>{text}</text>"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder() -> Ladder {
        let arrow = |from, to, sent_s, arrived_s, label: &str| Arrow {
            from,
            to,
            sent_s,
            arrived_s,
            label: label.to_owned(),
            is_marked: false,
        };
        Ladder {
            title: "A <title>".to_owned(),
            stations: ["a", "b", "c"].map(str::to_owned).to_vec(),
            arrows: vec![
                arrow(0, 1, 0.0, Some(0.010), "SYN"),
                arrow(1, 2, 0.010, Some(0.5), "SYN"),
                arrow(2, 1, 100.0, None, "lost"),
            ],
            ..Ladder::default()
        }
    }

    #[test]
    fn times_keep_their_order_and_distances_have_bounds() {
        let times = Times::new(&ladder().arrows, 10.0);
        let places: Vec<f64> = [0.0, 0.010, 0.5, 100.0].map(|t| times.at(t)).to_vec();
        assert!((places[0] - 10.0).abs() < 1e-9);
        for pair in places.windows(2) {
            assert!((LEAST..=MOST).contains(&(pair[1] - pair[0])), "{places:?}");
        }
    }

    #[test]
    fn each_packet_is_an_arrow_and_a_lost_one_ends_on_its_way() {
        let svg = ladder().to_svg(Mode::Standalone);
        assert!(svg.contains("A &lt;title&gt;") && svg.contains(">SYN<") && svg.contains(">lost<"));
        assert_eq!(svg.matches("z\" fill=\"currentColor\"").count(), 2, "heads of arrows that arrive");
        assert_eq!(svg.matches("m-4-4l8 8").count(), 1);
        assert_eq!(svg, ladder().to_svg(Mode::Standalone));
        assert!(!Ladder::default().to_svg(Mode::Inline).contains("NaN"));
    }
}
