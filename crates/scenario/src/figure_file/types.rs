//! [`FigureFile`], the resolved form of a figure file.

use crate::amount::Amount;
use crate::diagnostic::{Diagnostic, Place};
use crate::quantity::Dimension;
use crate::source::Source;

/// A figure or table: what is run, drawn and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureFile {
    /// Title.
    pub title: String,
    /// Short name of the paper.
    pub paper: Option<String>,
    /// Number of the item of the paper.
    pub item: Option<u64>,
    /// Where the paper has it.
    pub source: Option<String>,
    /// The scenario.
    pub scenario: ScenarioRef,
    /// Parameters with the same value in all runs.
    pub sets: Vec<Setting>,
    /// Scale of the vertical axis.
    pub scale: Scale,
    /// Number of runs of each point.
    pub seeds: u32,
    /// How long it takes.
    pub cost: Cost,
    /// The shorter version.
    pub quick: Option<Quick>,
    /// Notes.
    pub notes: Option<String>,
    /// The horizontal parameter; `None` for a table.
    pub across: Option<Across>,
    /// Curves, or rows of a table.
    pub curves: Vec<FigureCurve>,
    /// What sources print.
    pub references: Vec<PrintedPoints>,
    /// What is checked.
    pub statements: Vec<Statement>,
}

/// A value, and its place in the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Its place.
    pub place: Place,
}

impl<T> Located<T> {
    /// Returns an error at this place.
    pub fn fault(&self, message: impl Into<String>, label: impl Into<String>) -> Box<Diagnostic> {
        let (message, label) = (message.into(), label.into());
        Box::new(Diagnostic { message, place: self.place.clone(), label, help: Vec::new() })
    }
}

/// Where the scenario is.
#[derive(Clone, Debug, PartialEq)]
pub enum ScenarioRef {
    /// A name or a path.
    Named(Located<String>),
    /// Its text, at its place in the figure file.
    Inline(Source),
}

/// A parameter and its value, as `--set` takes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Name of the parameter.
    pub name: Located<String>,
    /// Its value.
    pub value: Located<String>,
}

/// How long a figure takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cost {
    /// Some seconds.
    Quick,
    /// Minutes.
    Normal,
    /// More.
    Long,
}

/// The shorter version of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Quick {
    /// Parameters.
    pub sets: Vec<Setting>,
    /// Number of runs of each point.
    pub seeds: u32,
    /// The least tolerance of every statement, as a share.
    pub tolerance: f64,
}

/// The horizontal parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Across {
    /// Name of the parameter.
    pub parameter: Located<String>,
    /// Its values, as `--set` takes them.
    pub values: Vec<Located<String>>,
    /// Their places on the axis: amounts in base units, or 1, 2, 3 if the values are not numbers.
    pub positions: Vec<f64>,
    /// What the values measure; `None` if they are not numbers.
    pub dimension: Option<Dimension>,
    /// Name on the axis.
    pub label: String,
    /// Scale of the axis.
    pub scale: Scale,
}

/// Scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Linear.
    Linear,
    /// Logarithmic.
    Log,
}

/// A curve, or the row of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureCurve {
    /// Name.
    pub name: Located<String>,
    /// Parameters.
    pub sets: Vec<Setting>,
    /// Metric, or ratio of two metrics, not checked.
    pub measure: Located<String>,
    /// False if it is not run.
    pub run: bool,
}

/// A number as it is written, and its amount.
#[derive(Clone, Debug, PartialEq)]
pub struct PrintedValue {
    /// Text, with its unit.
    pub text: String,
    /// Amount.
    pub amount: Amount,
}

/// Points of a source.
#[derive(Clone, Debug, PartialEq)]
pub struct PrintedPoints {
    /// Name in the legend.
    pub name: String,
    /// Index of the curve that they belong to.
    pub curve: Option<usize>,
    /// The points.
    pub points: Vec<PrintedPoint>,
    /// Where they are printed.
    pub source: String,
}

/// A point of a source.
#[derive(Clone, Debug, PartialEq)]
pub struct PrintedPoint {
    /// Place on the axis, as in [`Across::positions`]. In a table the place of the first row is 1.
    pub place: f64,
    /// Its x as the equal value of the figure is written, or else as it is written itself. In a table the
    /// name of the row.
    pub x: String,
    /// Its value.
    pub value: Located<PrintedValue>,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// The statement in words.
    pub text: Located<String>,
    /// What it says.
    pub claim: Claim,
    /// Indices of the values of x at which it must hold; a single 0 in a table.
    pub at: Vec<usize>,
    /// Notes.
    pub notes: Option<String>,
}

/// What a statement says. Curves are given by their indices.
#[derive(Clone, Debug, PartialEq)]
pub enum Claim {
    /// The mean of a curve, or of its ratio to another one.
    Value {
        /// The curve.
        curve: usize,
        /// The other one.
        over: Option<usize>,
        /// What is accepted.
        accept: Box<Accept>,
    },
    /// An order of curves.
    Order {
        /// Curves, the highest first.
        curves: Vec<usize>,
        /// Share by which a curve may be below the one after it.
        tolerance: f64,
    },
}

/// Accepted values.
#[derive(Clone, Debug, PartialEq)]
pub enum Accept {
    /// An expected value with a tolerance.
    Near {
        /// Expected value.
        expect: Located<PrintedValue>,
        /// Tolerance.
        tolerance: Located<Tolerance>,
    },
    /// A range.
    Between {
        /// Lowest value.
        low: Located<PrintedValue>,
        /// Highest value.
        high: Located<PrintedValue>,
        /// What the source has.
        expect: Option<Located<PrintedValue>>,
    },
}

/// How far a mean may be from what is expected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// A share of the expected value.
    Share(f64),
    /// An amount.
    Amount(Amount),
}
