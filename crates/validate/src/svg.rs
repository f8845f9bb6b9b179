//! Just enough SVG for a plot: two axes, curves, points with error bars, a legend. Same values, same bytes.

use core::fmt::Write as _;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 216.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 58.0;

/// One axis.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    /// What it shows, and in which unit.
    pub(crate) label: &'static str,
    /// Its two ends.
    pub(crate) range: (f64, f64),
    /// Logarithmic.
    pub(crate) log: bool,
    /// Where and what to write.
    pub(crate) ticks: Vec<(f64, String)>,
}

impl Axis {
    /// 0 to 1 along the axis.
    fn share(&self, v: f64) -> f64 {
        let (a, b) = self.range;
        if self.log {
            (libm::log(v) - libm::log(a)) / (libm::log(b) - libm::log(a))
        } else {
            (v - a) / (b - a)
        }
    }
}

/// How a mark looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A filled dot.
    Dot,
    /// A circle around it.
    Ring,
    /// A line.
    Line,
    /// A broken line.
    Dashes,
    /// An upright bar with ends.
    Bar,
}

/// A plot in the making.
pub(crate) struct Plot {
    x: Axis,
    y: Axis,
    body: String,
    legend: Vec<(Mark, &'static str, String)>,
}

impl Plot {
    /// An empty plot with its title, axes and grid.
    pub(crate) fn new(title: &str, x: Axis, y: Axis) -> Self {
        let mut plot = Self { x, y, body: String::new(), legend: Vec::new() };
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        plot.text(LEFT, 24.0, "start", "font-weight='bold'", title);
        for (v, text) in plot.x.ticks.clone() {
            let x = plot.at_x(v);
            plot.segment((x, TOP), (x, bottom), "#dddddd", "");
            plot.text(x, bottom + 18.0, "middle", "", &text);
        }
        for (v, text) in plot.y.ticks.clone() {
            let y = plot.at_y(v);
            plot.segment((LEFT, y), (right, y), "#dddddd", "");
            plot.text(LEFT - 8.0, y + 4.5, "end", "", &text);
        }
        plot.segment((LEFT, bottom), (right, bottom), "#222222", "");
        plot.segment((LEFT, TOP), (LEFT, bottom), "#222222", "");
        plot.text(f64::midpoint(LEFT, right), HEIGHT - 14.0, "middle", "", plot.x.label);
        let middle = f64::midpoint(TOP, bottom);
        let turned = format!("transform='rotate(-90 18 {middle:.1})'");
        plot.text(18.0, middle, "middle", &turned, plot.y.label);
        plot
    }

    fn at_x(&self, v: f64) -> f64 {
        LEFT + self.x.share(v) * (WIDTH - RIGHT - LEFT)
    }

    fn at_y(&self, v: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.share(v) * (HEIGHT - BOTTOM - TOP)
    }

    fn text(&mut self, x: f64, y: f64, anchor: &str, more: &str, text: &str) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        let _ =
            writeln!(self.body, "<text x='{x:.1}' y='{y:.1}' text-anchor='{anchor}' {more}>{text}</text>");
    }

    fn segment(&mut self, a: (f64, f64), b: (f64, f64), colour: &str, more: &str) {
        let _ = writeln!(
            self.body,
            "<line x1='{:.1}' y1='{:.1}' x2='{:.1}' y2='{:.1}' stroke='{colour}' {more}/>",
            a.0, a.1, b.0, b.1
        );
    }

    /// A curve; parts outside the axes must not be given.
    pub(crate) fn curve(&mut self, mark: Mark, colour: &str, points: &[(f64, f64)]) {
        let dashes = if mark == Mark::Dashes { "stroke-dasharray='6 4'" } else { "" };
        let path: Vec<String> =
            points.iter().map(|(x, y)| format!("{:.1},{:.1}", self.at_x(*x), self.at_y(*y))).collect();
        let _ = writeln!(
            self.body,
            "<polyline points='{}' fill='none' stroke='{colour}' stroke-width='1.6' {dashes}/>",
            path.join(" ")
        );
    }

    /// A point.
    pub(crate) fn point(&mut self, mark: Mark, colour: &str, at: (f64, f64)) {
        let (x, y) = (self.at_x(at.0), self.at_y(at.1));
        self.symbol(mark, colour, x, y);
    }

    /// A bar from `low` to `high`.
    pub(crate) fn bar(&mut self, colour: &str, x: f64, low: f64, high: f64) {
        let (x, low, high) = (self.at_x(x), self.at_y(low), self.at_y(high));
        self.ends(colour, x, low, high);
    }

    fn ends(&mut self, colour: &str, x: f64, low: f64, high: f64) {
        self.segment((x, low), (x, high), colour, "stroke-width='1.4'");
        for end in [low, high] {
            self.segment((x - 8.0, end), (x + 8.0, end), colour, "stroke-width='1.4'");
        }
    }

    fn symbol(&mut self, mark: Mark, colour: &str, x: f64, y: f64) {
        let (radius, style) = match mark {
            Mark::Dot => (3.2, format!("fill='{colour}'")),
            _ => (6.2, format!("fill='none' stroke='{colour}' stroke-width='1.6'")),
        };
        let _ = writeln!(self.body, "<circle cx='{x:.1}' cy='{y:.1}' r='{radius}' {style}/>");
    }

    /// Adds a line to the legend.
    pub(crate) fn explain(&mut self, mark: Mark, colour: &'static str, text: &str) {
        self.legend.push((mark, colour, text.to_owned()));
    }

    /// The file.
    pub(crate) fn finish(mut self) -> String {
        let x = WIDTH - RIGHT + 18.0;
        for (i, (mark, colour, text)) in core::mem::take(&mut self.legend).into_iter().enumerate() {
            let y = TOP + 10.0 + 22.0 * i as f64;
            match mark {
                Mark::Dot | Mark::Ring => self.symbol(mark, colour, x + 11.0, y),
                Mark::Bar => self.ends(colour, x + 11.0, y - 7.0, y + 7.0),
                Mark::Line => self.segment((x, y), (x + 22.0, y), colour, "stroke-width='1.6'"),
                Mark::Dashes => {
                    self.segment((x, y), (x + 22.0, y), colour, "stroke-width='1.6' stroke-dasharray='6 4'");
                }
            }
            self.text(x + 30.0, y + 4.5, "start", "", &text);
        }
        format!(
            "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' width='{WIDTH}' height='{HEIGHT}' \
             font-family='sans-serif' font-size='13' fill='#222222'>\n<rect width='100%' height='100%' fill='white'/>\n\
             {}</svg>\n",
            self.body
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_stand_where_they_belong() {
        let axis = |log, range| Axis { label: "a<b", range, log, ticks: vec![(10.0, "10".into())] };
        let mut plot = Plot::new("t", axis(true, (1.0, 100.0)), axis(false, (0.0, 20.0)));
        plot.point(Mark::Dot, "red", (10.0, 10.0));
        plot.bar("red", 10.0, 9.0, 11.0);
        plot.curve(Mark::Dashes, "blue", &[(1.0, 0.0), (100.0, 20.0)]);
        plot.explain(Mark::Line, "blue", "line");
        let svg = plot.finish();
        assert!(svg.contains("<circle cx='309.0' cy='213.0' r='3.2' fill='red'/>"), "{svg}");
        assert!(svg.contains("points='74.0,382.0 544.0,44.0'") && svg.contains("a&lt;b"), "{svg}");
    }
}
