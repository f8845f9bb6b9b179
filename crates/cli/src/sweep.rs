//! `bentpipe sweep` and `bentpipe merge`.

use crate::input::{self, Input, name_and_value};
use crate::options::{OptionValue, faulty_range, in_file, message_and_help};
use crate::outcome::Failure;
use crate::progress::{Words, print_page, print_summary, with_progress};
use crate::show::Pictures;
use bentpipe_os::Clock;
use bentpipe_report::metric;
use bentpipe_scenario::{Diagnostic, Dimension, Precision, Source, SweepSpec, parse_amount};
use bentpipe_sweep::{Error, Job, Shard};
use clap::Args;
use std::path::PathBuf;

/// Names and values of `--set`.
type Sets = Vec<(String, String)>;

/// Default maximum of runs per combination with a precision.
const MAX_SEEDS: u32 = 50;

pub(crate) const EXAMPLES: &str = "Examples:
  bentpipe sweep scenarios/faded.toml --out results/
  bentpipe sweep scenarios/sharing.toml --axis loss=1e-4,1e-3,1e-2 --axis tcp=newreno,cubic --out results/
  bentpipe sweep scenarios/faded.toml --set tcp=sack --precision 'goodput 5 %' --out results/
  bentpipe sweep scenarios/faded.toml --shard 1/4 --out shard-1/";

/// Options of `bentpipe sweep`.
#[derive(Debug, Args)]
pub(crate) struct Sweep {
    #[command(flatten)]
    pub(crate) input: Input,
    /// An axis and its values, replacing the file's axis of this name; may be repeated.
    ///
    /// A parameter given by --set is no axis: it keeps this one value.
    #[arg(long = "axis", value_name = "NAME=A,B,C", value_parser = name_and_value)]
    pub(crate) axes: Vec<(String, String)>,
    /// Number of runs per combination, replacing the file's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) seeds: Option<u32>,
    /// A metric for the tables, replacing the file's; may be repeated.
    #[arg(long, value_name = "METRIC")]
    pub(crate) measure: Vec<String>,
    /// Add seeds until a mean has this relative precision, as in 'goodput 5 %'; 'none': only --seeds.
    #[arg(long, value_name = "METRIC SHARE")]
    pub(crate) precision: Option<String>,
    /// With a precision: maximum number of runs per combination [default: the file's, or 50].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) max_seeds: Option<u32>,
    /// Number of threads; 0 for one per core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u16).range(..=1024))]
    pub(crate) threads: u16,
    /// Only part i of n of the runs; `bentpipe merge` merges the parts.
    #[arg(long, value_name = "I/N", conflicts_with_all = ["svg", "png"])]
    pub(crate) shard: Option<String>,
    /// Folder for runs, tables and pictures.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) pictures: Pictures,
}

/// Options of `bentpipe merge`.
#[derive(Debug, Args)]
pub(crate) struct Merge {
    /// Folders of the shards.
    #[arg(required = true)]
    shards: Vec<PathBuf>,
    /// Folder for the merged sweep.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    pictures: Pictures,
}

/// Makes the missing runs, then the tables; returns that of combinations.
pub(crate) fn run(args: &Sweep) -> Result<String, Failure> {
    let source = input::scenario(&args.input.file)?;
    let (spec, sets) = changed(bentpipe_scenario::sweep(&source)?, args)?;
    let job = Job {
        source: &source,
        files: &input::Beside(&args.input.file),
        sets,
        seed: args.input.seed,
        shard: args.shard.as_deref().map(shard).transpose()?,
        spec,
        threads: args.threads.into(),
    };
    let clock = Clock::start();
    let words = Words { out: Some(&args.out), cells: "combinations" };
    let done =
        with_progress(words, |tell| bentpipe_sweep::sweep(&job, &args.out, args.pictures.formats(), tell));
    let done = done.map_err(|error| failure(error, args, &source))?;
    print_summary(done.runs, &args.out, done.page(), clock);
    Ok(done.to_text())
}

/// Merges shards; returns the table.
pub(crate) fn merge(Merge { shards, out, pictures }: &Merge) -> Result<String, Failure> {
    let merged = bentpipe_sweep::merge(shards, out, pictures.formats()).map_err(|error| match error {
        Error::File { .. } => Failure::run(error),
        _ => Failure::input(error),
    })?;
    print_page(out, merged.page());
    Ok(merged.to_text())
}

/// Converts an error; the diagnostic shows where the user wrote the wrong value.
fn failure(error: Error, args: &Sweep, source: &Source) -> Failure {
    match error {
        Error::File { .. } => Failure::run(error),
        Error::Input(text) => Failure::input(text),
        Error::Figure(diagnostic) => diagnostic.into(),
        Error::Live(error) => Failure::run(error),
        Error::Metric { text, error } => unmeasurable(&text, &error, args, source).into(),
        Error::Cell { diagnostic, cell } => in_axis(diagnostic, &cell, args).into(),
    }
}

/// Diagnoses a bad metric where it was written: in `--measure`, `--precision` or the file.
fn unmeasurable(text: &str, error: &metric::Error, args: &Sweep, source: &Source) -> Box<Diagnostic> {
    if args.measure.iter().any(|m| m == text) {
        let mut fault = OptionValue { name: "--measure", value: text }.metric(error);
        // a comma may also be in the name of a connection
        if text.contains(',') && text.split(',').all(|one| metric::Metric::parse(one).is_ok()) {
            let each: Vec<String> = text.split(',').map(|one| format!("--measure {}", one.trim())).collect();
            fault.label = format!("write {}", each.join(" "));
            fault.help.clear();
        }
        return fault;
    }
    if let Some(value) = args.precision.as_deref().filter(|p| p.trim_start().starts_with(text)) {
        return OptionValue { name: "--precision", value }.metric(error);
    }
    in_file(source, (0, text), &faulty_range(text, error), message_and_help(error))
}

/// Moves a diagnostic about an axis value, which is parsed like `--set`, to where the user wrote it.
fn in_axis(mut diagnostic: Box<Diagnostic>, cell: &[(String, String)], args: &Sweep) -> Box<Diagnostic> {
    let set = |name: &str| format!("--set {name}=");
    let here =
        |name: &str| diagnostic.place.name == "command line" && diagnostic.place.text.starts_with(&set(name));
    let Some((name, value)) = cell.iter().find(|(name, _)| here(name)) else {
        let words: Vec<String> = cell.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        if !words.is_empty() && diagnostic.place.name != "command line" {
            diagnostic.help.push(format!("note: in the combination {}", words.join(", ")));
        }
        return diagnostic;
    };
    if let Some((_, values)) = args.axes.iter().find(|(axis, _)| axis == name) {
        let (place, shown) = (&diagnostic.place, format!("{name}={values}"));
        // a place is in characters, and a fault of an option in bytes
        let bytes = |text: &str, n| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
        let written = &place.text["--set ".len()..];
        let inside = bytes(written, place.offset.saturating_sub("--set ".len()));
        let at = inside + if inside > name.len() { place_of(values, value) } else { 0 };
        let end = at + bytes(&written[inside..], place.width);
        diagnostic.place = OptionValue { name: "--axis", value: &shown }.fault(at..end, "", "").place;
    } else if !args.input.sets.iter().any(|(set, _)| set == name) {
        diagnostic.help.push(format!("note: `{value}` is a value of the axis `{name}` of [sweep]"));
    }
    diagnostic
}

/// Returns the position of a value in a comma-separated list, in bytes.
fn place_of(values: &str, wanted: &str) -> usize {
    // a sweep writes all numbers of an axis in one notation
    let number = |text: &str| text.parse::<f64>().ok();
    let is_it = |value: &&str| *value == wanted || number(wanted).is_some_and(|n| number(value) == Some(n));
    let value = values.split(',').map(str::trim).find(is_it);
    value.map_or(0, |value| value.as_ptr().addr() - values.as_ptr().addr())
}

/// Returns the file's sweep with the changes from the command line, and the values set that are no axis's.
fn changed(spec: Option<SweepSpec>, args: &Sweep) -> Result<(SweepSpec, Sets), Box<Diagnostic>> {
    let mut spec = spec.unwrap_or_default();
    let sets = spec.keep(&args.input.sets);
    for (n, (name, values)) in args.axes.iter().enumerate() {
        let shown = format!("{name}={values}");
        let given = OptionValue { name: "--axis", value: &shown };
        let is_set = args.input.sets.iter().any(|(set, _)| set == name);
        if is_set || args.axes[..n].iter().any(|(before, _)| before == name) {
            let (message, help) = if is_set {
                let help = "help: --set keeps one value, --axis compares several: write one of the two";
                (format!("`{name}` is given by --set too"), help.to_owned())
            } else {
                let help = format!("help: write all its values behind one --axis {name}=");
                (format!("the axis `{name}` is given twice"), help)
            };
            let mut fault = given.fault(0..name.len(), message, "");
            fault.help.push(help);
            return Err(fault);
        }
        spec.set_axis(name, axis(name, values, given)?);
    }
    if !args.measure.is_empty() {
        spec.measure.clone_from(&args.measure);
    }
    spec.seeds = args.seeds.unwrap_or(spec.seeds);
    precise(&mut spec, args)?;
    Ok((spec, sets))
}

/// Splits the values of an axis. They must be neither empty nor equal.
fn axis(name: &str, values: &str, given: OptionValue<'_>) -> Result<Vec<String>, Box<Diagnostic>> {
    let mut all: Vec<String> = Vec::new();
    let mut at = name.len() + 1;
    for value in values.split(',') {
        let place = at..at + value.len();
        at = place.end + 1;
        let value = value.trim().to_owned();
        if value.is_empty() {
            let label = format!("write values with commas between, as in {name}=a,b,c");
            return Err(given.fault(place, format!("a value of the axis `{name}` is empty"), label));
        }
        if all.contains(&value) {
            return Err(given.fault(place, format!("the axis `{name}` has `{value}` twice"), "leave it out"));
        }
        all.push(value);
    }
    Ok(all)
}

/// Takes the precision from the command line, otherwise from the file; its metric is always in the tables.
fn precise(spec: &mut SweepSpec, args: &Sweep) -> Result<(), Box<Diagnostic>> {
    let of_file = spec.precision.as_ref().map(|p| p.max_seeds);
    match args.precision.as_deref() {
        Some(text) if text.trim() == "none" => spec.precision = None,
        Some(text) => {
            let (of, relative) = precision(text)?;
            spec.precision = Some(Precision { of, relative, max_seeds: of_file.unwrap_or(MAX_SEEDS) });
        }
        None => {}
    }
    let fault = |n: u32, message: &str, label: &str| {
        OptionValue { name: "--max-seeds", value: &n.to_string() }.wrong(message, label)
    };
    let Some(precision) = &mut spec.precision else {
        let needless = "there is no precision to reach";
        let fault = args.max_seeds.map(|n| fault(n, needless, "it goes with --precision 'goodput 5 %'"));
        return fault.map_or(Ok(()), Err);
    };
    if let Some(n) = args.max_seeds {
        if n < spec.seeds {
            let message = format!("`--max-seeds` is less than the {} seeds of every combination", spec.seeds);
            return Err(fault(n, &message, "write more, or fewer --seeds"));
        }
        precision.max_seeds = n;
    }
    precision.max_seeds = precision.max_seeds.max(spec.seeds);
    if !spec.measure.contains(&precision.of) {
        spec.measure.push(precision.of.clone());
    }
    Ok(())
}

/// Parses a metric and, after the last space before the number, the wanted ratio of half-width to mean.
fn precision(text: &str) -> Result<(String, f64), Box<Diagnostic>> {
    let given = OptionValue { name: "--precision", value: text };
    let number = text.trim_end_matches(|c: char| c == '%' || c.is_whitespace());
    let Some(at) = number.rfind(char::is_whitespace) else {
        return Err(given.wrong("the precision needs a metric and a share", "write it as 'goodput 5 %'"));
    };
    let share = parse_amount(&text[at..])
        .ok()
        .filter(|a| a.dimension == Dimension::Bare && a.value > 0.0 && a.value < 1.0);
    match share {
        Some(share) => Ok((text[..at].trim().to_owned(), share.value)),
        None => Err(given.fault(
            at + 1..text.len(),
            "the share of a precision is more than 0 and less than 1",
            "half-width of the 95 % interval over the mean, as in 5 % or 0.05",
        )),
    }
}

fn shard(text: &str) -> Result<Shard, Box<Diagnostic>> {
    let given = OptionValue { name: "--shard", value: text };
    let parts = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    match parts {
        Some((number, of)) if number >= 1 && number <= of => Ok(Shard { number, of }),
        Some(_) => {
            let end = text.find('/').unwrap_or(text.len());
            Err(given.fault(0..end, "there is no such shard", "i of i/n is from 1 to n"))
        }
        None => Err(given.wrong("a shard is written as i/n", "the first of four is 1/4")),
    }
}
