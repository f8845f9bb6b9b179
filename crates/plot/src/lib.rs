//! Plots as SVG: a value in, a text out, and the same value gives the same bytes.
//!
//! A [`Plot`] is plain data. What a reader would otherwise do by hand is done here: ranges, ticks at 1-2-5 or
//! powers of ten, a legend below the data, thinning of long series that keeps every peak. Colours are a
//! colour-blind safe palette after Okabe and Ito ("Color Universal Design", 2008), darkened or lightened for
//! contrast; curves differ in dash or marker too. Styles are custom properties, so one file is readable in
//! light and dark mode and in print.

mod axis;
mod layout;
mod reduce;
mod style;
mod svg;
mod text;

pub use style::{PAGE_STYLE, STYLE, TABLE_STYLE};

/// A picture with two axes.
#[derive(Clone, Debug, Default)]
pub struct Plot {
    /// What it shows; drawn above.
    pub title: String,
    /// One or two sentences for those who cannot see it.
    pub description: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The data, drawn in this order.
    pub curves: Vec<Curve>,
    /// Vertical markers.
    pub marks: Vec<Mark>,
    /// Small print below.
    pub note: Option<String>,
    /// Shape of the picture; it scales to the width it is given.
    pub shape: Shape,
}

/// Proportions, and so the size of letters when two pictures are shown equally wide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// For a phone, or two in a row on a screen.
    #[default]
    Normal,
    /// For a whole row, or a page of the documentation.
    Wide,
}

/// One axis.
#[derive(Clone, Debug, Default)]
pub struct Axis {
    /// What it shows, and in which unit: `goodput, Mbit/s`.
    pub label: String,
    /// Even or logarithmic.
    pub scale: Scale,
    /// Its two ends; chosen by the data when none, or when the two cannot be ends of such an axis.
    pub range: Option<(f64, f64)>,
}

/// How values are laid out along an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    #[default]
    Linear,
    /// By their logarithm; values that are not positive leave a gap.
    Log,
}

/// A set of points with a name.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Its line in the legend; none when empty.
    pub name: String,
    /// The points in the order they are joined. One that is not finite leaves a gap.
    pub points: Vec<Point>,
    /// How they are drawn.
    pub style: Style,
    /// Colour; by its place among the curves when none.
    pub tone: Option<Tone>,
    /// Dashes of lines; by its place among the curves when none.
    pub dash: Option<Dash>,
    /// Shape of points; by its place among the curves when none.
    pub marker: Option<Marker>,
}

/// One point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Where along the horizontal axis.
    pub x: f64,
    /// Where along the vertical axis.
    pub y: f64,
    /// Ends of its error bar, or of the band.
    pub range: Option<(f64, f64)>,
}

/// How the points of a curve are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Joined by straight lines.
    Line,
    /// Each value holds from the x before it up to its own: for means over intervals, given at their ends.
    Steps,
    /// Markers, with error bars where there is a range.
    Points,
    /// Both, with error bars where there is a range.
    LineAndPoints,
    /// Only the ranges, as upright bars.
    Bars,
    /// Only the ranges, as a shaded area.
    Band,
}

/// A colour by name; what it is exactly depends on light or dark mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Blue.
    Blue,
    /// Vermilion, between red and orange.
    Vermilion,
    /// Bluish green.
    Green,
    /// Reddish purple.
    Purple,
    /// Orange.
    Orange,
    /// That of the letters.
    Ink,
    /// Grey: for what the others are compared with.
    Grey,
}

/// How a line is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dash {
    /// Not at all.
    Solid,
    /// Long pieces.
    Long,
    /// Dots.
    Dots,
    /// A long piece and a dot in turn.
    Mixed,
    /// Short pieces.
    Short,
}

/// Shape of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// A filled dot.
    Dot,
    /// A filled square.
    Square,
    /// A filled triangle.
    Triangle,
    /// A filled diamond.
    Diamond,
    /// An open circle.
    Ring,
    /// A cross.
    Cross,
    /// The smallest dot, for thousands of points.
    Speck,
}

/// A vertical marker.
#[derive(Clone, Debug)]
pub struct Mark {
    /// Where.
    pub x: f64,
    /// What happened there.
    pub label: String,
}

/// Where the SVG will stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A file of its own, with its style and a background.
    Standalone,
    /// Inside an HTML page that holds [`STYLE`] once.
    Inline,
}

impl Plot {
    /// The picture.
    pub fn to_svg(&self, mode: Mode) -> String {
        svg::draw(self, mode)
    }
}

impl Axis {
    /// An even axis with a range chosen by the data.
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Linear, range: None }
    }

    /// A logarithmic axis with a range chosen by the data.
    pub fn log(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Log, range: None }
    }

    /// The same from `low` to `high`.
    #[must_use]
    pub fn within(mut self, low: f64, high: f64) -> Self {
        self.range = Some((low, high));
        self
    }
}

impl Point {
    /// A point without a range.
    pub const fn new(x: f64, y: f64) -> Self {
        Self { x, y, range: None }
    }

    /// A point with an error bar of `half_width` to both sides.
    pub const fn with_error(x: f64, y: f64, half_width: f64) -> Self {
        Self { x, y, range: Some((y - half_width, y + half_width)) }
    }

    /// A point with a bar from `low` to `high`.
    pub const fn with_range(x: f64, y: f64, low: f64, high: f64) -> Self {
        Self { x, y, range: Some((low, high)) }
    }
}

impl Curve {
    /// A curve whose colour, dashes and markers follow from its place.
    pub fn new(name: impl Into<String>, style: Style, points: Vec<Point>) -> Self {
        Self { name: name.into(), points, style, tone: None, dash: None, marker: None }
    }

    /// A curve through `(x, y)`.
    pub fn through(
        name: impl Into<String>,
        style: Style,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        Self::new(name, style, points.into_iter().map(|(x, y)| Point::new(x, y)).collect())
    }

    /// The same in this colour.
    #[must_use]
    pub const fn tone(mut self, tone: Tone) -> Self {
        self.tone = Some(tone);
        self
    }

    /// The same with these dashes.
    #[must_use]
    pub const fn dash(mut self, dash: Dash) -> Self {
        self.dash = Some(dash);
        self
    }

    /// The same with these markers.
    #[must_use]
    pub const fn marker(mut self, marker: Marker) -> Self {
        self.marker = Some(marker);
        self
    }
}
