//! [`FigureFile`], the resolved form of a figure file.

use crate::amount::Amount;
use crate::diagnostic::{Diagnostic, Place};
use crate::quantity::Dimension;
use crate::source::Source;
use bentpipe_base::Duration;

/// A figure or table: what is run, drawn and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureFile {
    /// Title.
    pub title: String,
    /// Short name of the paper.
    pub paper: Option<String>,
    /// Numbers of the items of the paper.
    pub items: Vec<u64>,
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
    /// What is run with real packets.
    pub live: Option<Live>,
    /// Notes.
    pub notes: Option<String>,
    /// What is horizontal; `None` for a table.
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

/// What is run with real packets.
#[derive(Clone, Debug, PartialEq)]
pub struct Live {
    /// Indices of curves, in the order of the file.
    pub curves: Vec<usize>,
    /// Indices of values of x, in the order of the file; a single 0 in a table.
    pub at: Vec<usize>,
    /// Parameters.
    pub sets: Vec<Setting>,
    /// Number of live runs of each point.
    pub runs: u32,
    /// Number of simulated runs of each point.
    pub seeds: u32,
    /// Place of the table.
    pub place: Place,
    /// How far the live mean may be from the simulated one.
    pub tolerance: Located<Tolerance>,
    /// Notes.
    pub notes: Option<String>,
}

/// What is horizontal.
#[derive(Clone, Debug, PartialEq)]
pub struct Across {
    /// A parameter, or the time.
    pub of: Horizontal,
    /// Its values, as `--set` takes them; for the time the ends of the steps.
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

impl Across {
    /// Returns the horizontal parameter; `None` for the time.
    pub const fn parameter(&self) -> Option<&Located<String>> {
        match &self.of {
            Horizontal::Parameter(name) => Some(name),
            Horizontal::Time(_) => None,
        }
    }

    /// Returns the steps of time; `None` for a parameter.
    pub const fn steps(&self) -> Option<&Located<Steps>> {
        match &self.of {
            Horizontal::Parameter(_) => None,
            Horizontal::Time(steps) => Some(steps),
        }
    }

    /// Returns the name of what is horizontal.
    pub fn name(&self) -> &str {
        self.parameter().map_or("time", |name| &name.value)
    }
}

/// A parameter, or the time.
#[derive(Clone, Debug, PartialEq)]
pub enum Horizontal {
    /// The name of the parameter.
    Parameter(Located<String>),
    /// The course of the runs, in steps.
    Time(Located<Steps>),
}

/// Steps of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// Length of a step.
    pub every: Duration,
    /// Begin of the first one, a multiple of their length.
    pub from: Duration,
    /// Number of steps.
    pub number: usize,
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
    /// Formula in place of runs, not checked.
    pub formula: Option<Located<String>>,
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
    /// Numbers of the items of the paper that it answers.
    pub items: Vec<u64>,
    /// What it says.
    pub claim: Claim,
    /// Indices of the values of x at which it must hold; a single 0 in a table.
    pub at: Vec<usize>,
    /// Why it is known to differ.
    pub known: Option<Known>,
    /// Notes.
    pub notes: Option<String>,
}

/// A known disagreement.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// Why the statement differs.
    pub why: String,
    /// Parameters of the scenario with which it holds.
    pub turn: Vec<Setting>,
}

/// What a statement says. Curves are given by their indices.
#[derive(Clone, Debug, PartialEq)]
pub enum Claim {
    /// The mean of a curve, or of its ratio to another one.
    Value {
        /// The curve.
        curve: usize,
        /// The other one.
        over: Option<Over>,
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
    /// The mean of a curve rises or falls from each value of x to the next.
    Trend {
        /// The curve.
        curve: usize,
        /// True if it rises.
        rises: bool,
        /// Share by which a step may go the other way.
        tolerance: f64,
    },
}

/// What a curve is divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Over {
    /// The curve.
    pub curve: usize,
    /// Index of the value of x; `None`: the same one.
    pub at: Option<usize>,
}

impl Statement {
    /// Returns the points that it is about: curve and index of the value of x.
    pub fn points(&self) -> Vec<(usize, usize)> {
        let all = |curve: usize| self.at.iter().map(move |x| (curve, *x));
        match &self.claim {
            Claim::Value { curve, over, .. } => {
                let below = over.iter().flat_map(|o| match o.at {
                    Some(x) => vec![(o.curve, x)],
                    None => all(o.curve).collect(),
                });
                all(*curve).chain(below).collect()
            }
            Claim::Order { curves, .. } => curves.iter().copied().flat_map(all).collect(),
            Claim::Trend { curve, .. } => all(*curve).collect(),
        }
    }
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
    /// A range, of which one end is given at least.
    Range {
        /// Lowest value.
        low: Option<Located<PrintedValue>>,
        /// Highest value.
        high: Option<Located<PrintedValue>>,
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
