//! All keys of a figure file, each with type, default and meaning.

use super::scalars::{Coordinate, Interval, Printed, ScenarioText, Settings};
use super::types::{Cost, Scale, Tolerance};
use crate::form::{At, table, words};
use crate::gateway_file::OneOrList;
use crate::keys::MAX_SEEDS;
use crate::lists::Pairs;
use crate::scalars::{Text, Version, Whole};
use bentpipe_base::Duration;

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
        /// Number of the item of the paper, or several, for the same tables.
        item: OneOrList<Whole<1, 100_000>> = "none",
        /// Where the paper has it, and how its numbers were read.
        source: Text = "none",
        /// The scenario: the name of one that comes with bentpipe, without `.toml`; or the path of a file,
        /// beside this one; or its whole text, of several lines, in three apostrophes.
        scenario: ScenarioText,
        /// Parameters of the scenario, the same in all runs. Text is in quotes.
        set: Settings = "the scenario's own values",
        /// The metric that is drawn, named as for `--expect`, or a ratio of two of them, with spaces around
        /// the `/`: `"goodput[x*] / goodput[y*]"`. A ratio is taken in each run. With `time` in `[x]` it is a
        /// quantity of the course of a run.
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
        /// What `--live` also runs with real packets, in real time.
        live: LiveKeys = "none: `--live` runs nothing of it",
        /// What to know when reading the figure, for instance settings that the paper does not print.
        notes: Text = "none",
        /// What is horizontal: a parameter, or the time. Without it the figure is a table, with a row for
        /// each curve.
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

    /// What `--live` runs with real packets, with simulated runs of the same beside it. It is the same with
    /// and without `--quick`.
    struct LiveKeys "[live]" {
        /// Names of curves, one or several. Statements about one with `run = false` are judged by its live
        /// values.
        curves: OneOrList<Text> = "all that are run",
        /// Values of x, one or several.
        at: OneOrList<Coordinate> = "all",
        /// Parameters of the scenario, for the live runs and the simulated ones beside them.
        set: Settings = "none",
        /// Number of live runs of each point.
        runs: Whole<1, 100> = "`1`",
        /// Number of simulated runs of each point beside them; not fewer than `runs`.
        seeds: Whole<1, MAX_SEEDS> = "`seeds` of the file",
        /// How far the mean of the live runs may be from that of the simulated ones: a share of the latter,
        /// or an amount.
        tolerance: Tolerance = "`\"5 %\"`",
        /// What to know when reading the live values.
        notes: Text = "none",
    }

    /// What is horizontal: `parameter` with `values`, or `time` with `to`.
    struct AcrossKeys "[x]" {
        /// Name of a parameter of the scenario.
        parameter: Text = "must be given, unless `time` is",
        /// Its values, as for `--set`.
        values: OneOrList<Coordinate> = "must be given, unless `time` is",
        /// The figure shows the course of the runs, in steps of this length. The values of x are the ends of
        /// the steps.
        time: Duration = "none",
        /// Begin of the first step; a multiple of `time`.
        from: Duration = "`\"0 s\"`",
        /// End of the last step.
        to: Duration = "must be given with `time`",
        /// Name on the axis; the unit is added.
        label: Text = "the parameter's name, or `\"time\"`",
        /// `"linear"` or `"log"`. Values that are not numbers stand side by side.
        scale: Scale = "`\"log\"` if all values of a parameter are above zero and the largest is more than 20 times the smallest",
    }

    /// A curve: one value at each value of `[x]`. Without `[x]` it is the row of a table, with one value.
    struct CurveKeys "[[curves]]" {
        /// Its name.
        name: Text,
        /// Parameters of the scenario.
        set: Settings = "none",
        /// Its metric, if it is not that of the figure. The unit must be the same.
        measure: Text = "`measure` of the file",
        /// It is computed by this formula, and not run. Arguments are the values of x, of `set` here, of
        /// `set` of the file, and the parameters of the scenario.
        formula: Text = "none",
        /// `false`: it is not simulated; statements about it have the verdict not-run, unless it is run live.
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
    /// With `rises` or `falls` nothing else is expected.
    struct StatementKeys "[[statements]]" {
        /// The statement in words.
        text: Text,
        /// Number of the item of the paper that it answers, or several.
        item: OneOrList<Whole<1, 100_000>> = "`item` of the file",
        /// The curve whose mean is checked.
        curve: Text = "none",
        /// Check the ratio of `curve` to this curve instead: the mean of the ratios, seed by seed.
        over: Text = "none",
        /// Check the ratio to the mean of `over`, or of the curve itself, at this value of `[x]`.
        over_at: Coordinate = "none",
        /// Values of `[x]` at which the statement must hold, one or several.
        at: OneOrList<Coordinate> = "all",
        /// The expected value.
        expect: Printed = "none; not needed with `between`, `at_least` or `at_most`",
        /// How far the mean may be from `expect`: a share, as in `"5 %"`, or an amount, as in `"0.1
        /// Mbit/s"`. For `order`: the share by which a curve may be below the one after it. For `rises` and
        /// `falls`: the share by which a step may go the other way.
        tolerance: Tolerance = "must be given, unless one of the next three is",
        /// The lowest and the highest accepted mean, in place of `tolerance`.
        between: Interval = "none",
        /// The lowest accepted mean, in place of `tolerance`.
        at_least: Printed = "none",
        /// The highest accepted mean, in place of `tolerance`.
        at_most: Printed = "none",
        /// `true`: the mean rises from each value of x in `at` to the next higher one.
        rises: bool = "`false`",
        /// `true`: it falls.
        falls: bool = "`false`",
        /// Names of curves, the highest first.
        order: OneOrList<Text> = "none",
        /// Why the statement does not hold. A statement that is known to differ is not an error; needs
        /// `turn`.
        differs: Text = "none",
        /// Parameters of the scenario with which it holds: `--turned` runs it with them. They come after all
        /// others, that of `[x]` included.
        turn: Settings = "none",
        /// Why the tolerance is what it is, or what may differ.
        notes: Text = "none",
    }
}
