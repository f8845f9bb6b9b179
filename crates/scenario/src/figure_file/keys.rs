//! All keys of a figure file, each with type, default and meaning.

use super::scalars::{Coordinate, Interval, Printed, ScenarioText, Settings};
use super::types::{Cost, Scale, Tolerance};
use crate::form::{At, table, words};
use crate::gateway_file::OneOrList;
use crate::keys::MAX_SEEDS;
use crate::lists::Pairs;
use crate::scalars::{Text, Version, Whole};

words!(Cost { "quick" => Quick, "normal" => Normal, "long" => Long, });
words!(Scale { "linear" => Linear, "log" => Log, });

table! {
    /// Keys and tables of a figure file.
    struct FigureKeys "the file" {
        /// Version of the file format.
        schema: Version,
        /// Title of the figure.
        title: Text,
        /// Short name of the paper, for tables over many figures.
        paper: Text = "none",
        /// Number of the item of the paper, for the same tables.
        item: Whole<1, 100_000> = "none",
        /// Where the paper has it, and how its numbers were read.
        source: Text = "none",
        /// The scenario: the name of one that comes with bentpipe, without `.toml`; or the path of a file,
        /// beside this one; or its whole text, of several lines, in three apostrophes.
        scenario: ScenarioText,
        /// Parameters of the scenario, the same in all runs. Text is in quotes.
        set: Settings = "the scenario's own values",
        /// The metric that is drawn, named as for `--expect`, or a ratio of two of them, with spaces around
        /// the `/`: `"goodput[x*] / goodput[y*]"`. A ratio is taken in each run.
        measure: Text = "`\"goodput\"`",
        /// Scale of the vertical axis: `"linear"` or `"log"`.
        scale: Scale = "`\"linear\"`",
        /// Number of runs of each point, with the scenario's seed and those after it. All points have the
        /// same seeds.
        seeds: Whole<1, MAX_SEEDS> = "`5`",
        /// How long it takes, for commands that choose among many figures: `"quick"`, some seconds;
        /// `"normal"`, minutes; `"long"`.
        cost: Cost = "`\"normal\"`",
        /// What `--quick` changes.
        quick: QuickKeys = "none: `--quick` is refused",
        /// What to know when reading the figure, for instance settings that the paper does not print.
        notes: Text = "none",
        /// What is horizontal. Without it the figure is a table, with a row for each curve.
        x: AcrossKeys = "none",
        /// The curves, or the rows of a table.
        curves: Vec<At<CurveKeys>>,
        /// What sources print, drawn as hollow marks.
        references: Vec<At<PrintedKeys>> = "none",
        /// What is checked.
        statements: Vec<At<StatementKeys>> = "none",
    }

    /// A shorter version of the figure, for `--quick`.
    struct QuickKeys "quick" {
        /// Parameters of the scenario.
        set: Settings = "none",
        /// Number of runs of each point.
        seeds: Whole<1, MAX_SEEDS> = "`1`",
        /// How far a value of so short runs may lie from that of the whole figure, as a share. Each
        /// statement has the wider one of this tolerance and its own. One run has no interval that could
        /// tell.
        tolerance: Tolerance,
    }

    /// The parameter of the scenario that is horizontal.
    struct AcrossKeys "[x]" {
        /// Its name.
        parameter: Text,
        /// Its values, as for `--set`.
        values: OneOrList<Coordinate>,
        /// Name on the axis; the unit is added.
        label: Text = "the parameter's name",
        /// `"linear"` or `"log"`. Values that are not numbers stand side by side.
        scale: Scale = "`\"log\"` if all values are above zero and the largest is more than 20 times the smallest",
    }

    /// A curve: one value at each value of `[x]`. Without `[x]` it is the row of a table, with one value.
    struct CurveKeys "[[curves]]" {
        /// Its name.
        name: Text,
        /// Parameters of the scenario.
        set: Settings = "none",
        /// Its metric, if it is not that of the figure. The unit must be the same.
        measure: Text = "`measure` of the file",
        /// `false`: it is not run, since bentpipe cannot; statements about it have the verdict not-run.
        run: bool = "`true`",
    }

    /// Points that a source prints.
    struct PrintedKeys "[[references]]" {
        /// Name in the legend.
        name: Text = "`\"printed\"`",
        /// The curve that they belong to; they have its colour and marks.
        curve: Text = "none",
        /// `[x, value]`, with x in the unit of `[x]`; in a table `[name of the row, value]`.
        points: Pairs<Coordinate, Printed>,
        /// Unit of values that are bare numbers.
        unit: Text = "none",
        /// Where they are printed, and how they were read.
        source: Text,
    }

    /// A statement and its tolerance. It has either `order`, or `curve` with what is expected of its mean.
    struct StatementKeys "[[statements]]" {
        /// The statement in words.
        text: Text,
        /// The curve whose mean is checked.
        curve: Text = "none",
        /// Check the ratio of `curve` to this curve instead: the mean of the ratios, seed by seed.
        over: Text = "none",
        /// Values of `[x]` at which the statement must hold, one or several.
        at: OneOrList<Coordinate> = "all",
        /// The expected value.
        expect: Printed = "none; not needed with `between`",
        /// How far the mean may be from `expect`: a share, as in `"5 %"`, or an amount, as in `"0.1
        /// Mbit/s"`. For `order`: the share by which a curve may be below the one after it.
        tolerance: Tolerance = "must be given, unless `between` is",
        /// The lowest and the highest accepted mean, in place of `tolerance`.
        between: Interval = "none",
        /// Names of curves, the highest first.
        order: OneOrList<Text> = "none",
        /// Why the tolerance is what it is, or what may differ.
        notes: Text = "none",
    }
}
