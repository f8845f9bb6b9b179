//! Draws plots as SVG. The same [`Plot`] gives the same bytes.
//!
//! A [`Plot`] is plain data. Ranges, ticks (1-2-5 or powers of ten), the legend below the data, and the
//! reduction of long series, which keeps every peak, are automatic. Colours are a colour-blind safe palette
//! after Okabe and Ito ("Color Universal Design", 2008), darkened or lightened for contrast; curves also
//! differ in dash or marker. Colours are CSS custom properties, so a file is readable in light and dark
//! mode and in print.

mod axis;
mod ladder;
mod layout;
mod live;
mod png;
mod reduce;
mod strip;
mod style;
mod svg;
mod text;

pub use ladder::{Arrow, Ladder};
pub use live::{LIVE_STYLE, live_script};
pub use png::{Formats, PngError};
pub use strip::{Strip, StripBand, StripKind, StripRow};
pub use style::{PAGE_STYLE, STYLE, TABLE_STYLE};

/// A plot with two axes.
#[derive(Clone, Debug, Default)]
pub struct Plot {
    /// Title, drawn above.
    pub title: String,
    /// Description of one or two sentences for screen readers.
    pub description: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Curves, drawn in this order.
    pub curves: Vec<Curve>,
    /// Marked ranges of the horizontal axis, behind the curves.
    pub marks: Vec<Mark>,
    /// Small text below.
    pub note: Option<String>,
    /// Proportions; the plot scales to the available width.
    pub shape: Shape,
}

/// A marked range of the horizontal axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Where it begins.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// Name in the legend; marks of the same name have one entry.
    pub name: String,
    /// Colour.
    pub colour: Colour,
}

/// Proportions, which also determine the relative size of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// For a phone, or two plots side by side.
    #[default]
    Normal,
    /// For the full width of a page.
    Wide,
}

/// One axis.
#[derive(Clone, Debug, Default)]
pub struct Axis {
    /// Quantity and unit: `goodput, Mbit/s`.
    pub label: String,
    /// Linear or logarithmic.
    pub scale: Scale,
    /// Both ends; `None`, or ends that the axis cannot have: chosen from the data.
    pub range: Option<(f64, f64)>,
    /// Names of the values 1, 2, 3 and so on, in place of numbers; empty: numbers. For horizontal axes.
    pub names: Vec<String>,
}

/// Scale of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Linear.
    #[default]
    Linear,
    /// Logarithmic; values that are not positive leave a gap.
    Log,
}

/// A named series of points.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Name in the legend; no entry if empty.
    pub name: String,
    /// Points in the order in which they are connected. A point that is not finite leaves a gap.
    pub points: Vec<Point>,
    /// How the points are drawn.
    pub style: Style,
    /// Colour; `None`: by the curve's index.
    pub colour: Option<Colour>,
    /// Dash pattern of lines; `None`: by the curve's index.
    pub dash: Option<Dash>,
    /// Shape of markers; `None`: by the curve's index.
    pub marker: Option<Marker>,
}

/// One point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Horizontal value.
    pub x: f64,
    /// Vertical value.
    pub y: f64,
    /// Ends of the error bar or band.
    pub range: Option<(f64, f64)>,
}

/// How the points of a curve are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Connected by straight lines.
    Line,
    /// Steps: each value holds from the previous x to its own, as for means over intervals.
    Steps,
    /// Markers, with error bars for points with a range.
    Points,
    /// Lines and markers, with error bars for points with a range.
    LineAndPoints,
    /// Only the ranges, as a shaded area.
    Band,
    /// Bars from zero, 0.6 wide in units of the horizontal axis, with error bars for points with a range.
    Bars,
    /// Boxes over the ranges, 0.4 wide, with a line at the value.
    Boxes,
    /// Only the ranges, as bars with caps.
    Ranges,
}

impl Style {
    const fn has_markers(self) -> bool {
        matches!(self, Self::Points | Self::LineAndPoints)
    }

    const fn has_error_bars(self) -> bool {
        self.has_markers() || matches!(self, Self::Bars | Self::Ranges)
    }
}

/// A colour name. The exact colour depends on light or dark mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
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
    /// Colour of the text.
    Ink,
    /// Grey, for reference curves.
    Grey,
}

/// Dash pattern of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dash {
    /// Solid.
    Solid,
    /// Long dashes.
    Long,
    /// Dots.
    Dots,
    /// Long dashes and dots alternately.
    Mixed,
    /// Short dashes.
    Short,
}

/// Shape of a marker.
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
    /// An open square, slightly larger than [`Marker::Square`].
    HollowSquare,
    /// An open triangle, larger than [`Marker::Triangle`].
    HollowTriangle,
    /// An open diamond, larger than [`Marker::Diamond`].
    HollowDiamond,
    /// A cross.
    Cross,
    /// Very small dot, for thousands of points.
    Speck,
}

/// Where the SVG is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// As a separate file, with its own style and background.
    Standalone,
    /// Inside an HTML page that contains [`STYLE`] once.
    Inline,
}

impl Plot {
    /// A plot of normal shape without a note.
    pub fn new(
        title: impl Into<String>,
        description: impl Into<String>,
        x: Axis,
        y: Axis,
        curves: Vec<Curve>,
    ) -> Self {
        let (title, description) = (title.into(), description.into());
        Self { title, description, x, y, curves, ..Self::default() }
    }

    /// Sets the text below.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }

    /// Draws the plot as SVG.
    pub fn to_svg(&self, mode: Mode) -> String {
        svg::draw(self, mode)
    }
}

impl Axis {
    /// A linear axis with a range chosen from the data.
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Linear, ..Self::default() }
    }

    /// A logarithmic axis with a range chosen from the data.
    pub fn log(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Log, ..Self::default() }
    }

    /// Sets the range.
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

    /// A point with an error bar of plus and minus `half_width`.
    pub const fn with_error(x: f64, y: f64, half_width: f64) -> Self {
        Self { x, y, range: Some((y - half_width, y + half_width)) }
    }

    /// A point with an error bar from `low` to `high`.
    pub const fn with_range(x: f64, y: f64, low: f64, high: f64) -> Self {
        Self { x, y, range: Some((low, high)) }
    }
}

impl Curve {
    /// A curve with colour, dash pattern and markers by its index.
    pub fn new(name: impl Into<String>, style: Style, points: Vec<Point>) -> Self {
        Self { name: name.into(), points, style, colour: None, dash: None, marker: None }
    }

    /// A curve through the points `(x, y)`.
    pub fn through(
        name: impl Into<String>,
        style: Style,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        Self::new(name, style, points.into_iter().map(|(x, y)| Point::new(x, y)).collect())
    }

    /// Sets the colour.
    #[must_use]
    pub const fn colour(mut self, tone: Colour) -> Self {
        self.colour = Some(tone);
        self
    }

    /// Sets the dash pattern.
    #[must_use]
    pub const fn dash(mut self, dash: Dash) -> Self {
        self.dash = Some(dash);
        self
    }

    /// Sets the marker.
    #[must_use]
    pub const fn marker(mut self, marker: Marker) -> Self {
        self.marker = Some(marker);
        self
    }
}
