//! `bentpipe find`.

mod vary;

use crate::expect::Expect;
use crate::input::{self, Input};
use crate::options::OptionValue;
use crate::outcome::{Failure, NOT_FOUND, print_as, print_message, to_json};
use crate::progress::{Words, print_summary, with_progress};
use bentpipe_os::Clock;
use bentpipe_scenario::{DEFAULT_SEEDS, Diagnostic, Files, Source, SweepSpec};
use bentpipe_sweep::find::{Condition, Find as Search, Found};
use bentpipe_sweep::{Error, Job, PAGE};
use clap::Args;
use serde_json::{Value, json};
use std::path::PathBuf;
use vary::Range;

pub(crate) const EXAMPLES: &str = "Examples:
  bentpipe find scenarios/window.toml --vary ber=1e-9..1e-4 --until 'goodput < 1 Mbit/s'
  bentpipe find scenarios/burst.toml --vary 'buffer=1..200 packets' --until 'drops[bottleneck] <= 0' --seeds 1
  bentpipe find scenarios/window.toml --vary 'rtt=100..900 ms' --until 'goodput < 1 Mbit/s' --out results/";

/// Options of `bentpipe find`.
#[derive(Debug, Args)]
pub(crate) struct Find {
    #[command(flatten)]
    pub(crate) input: Input,
    /// The parameter to vary and its range, as in ber=1e-9..1e-4 or 'rate=1..20 Mbit/s'.
    ///
    /// A unit at the end holds for both bounds. Ranges of a ratio above 100 are searched by the logarithm.
    #[arg(long, value_name = "NAME=LOW..HIGH")]
    pub(crate) vary: String,
    /// The condition that begins to be met at the value, such as 'goodput < 1 Mbit/s'.
    ///
    /// Operators: >, >=, <, <=. It is judged by the mean over the seeds.
    #[arg(long, value_name = "CONDITION")]
    pub(crate) until: String,
    /// Number of runs of each value [default: the file's, or 5].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) seeds: Option<u32>,
    /// Print the answer as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Keep the runs in this folder, and write a page, a picture and a table.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Number of threads; 0 for one per core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u16).range(..=1024))]
    pub(crate) threads: u16,
}

/// Searches; prints the answer and returns the exit status.
pub(crate) fn run(args: &Find) -> Result<u8, Failure> {
    let source = input::scenario(&args.input.file)?;
    let files = input::Beside(&args.input.file);
    let (range, mut search) = prepare(args, &source, &files)?;
    let clock = Clock::start();
    let words = Words { out: args.out.as_deref(), cells: "values" };
    let found =
        with_progress(words, |tell| bentpipe_sweep::find::find(&mut search, args.out.as_deref(), tell));
    let found = found.map_err(|error| match Unfound::of(error, &range) {
        Unfound::Diagnostic(diagnostic) => diagnostic.into(),
        Unfound::Sweep(error @ Error::File { .. }) => Failure::run(error),
        Unfound::Sweep(error) => Failure::input(error),
    })?;
    if let Some(out) = &args.out {
        print_summary(found.summary, out, Some(PAGE), clock);
    }
    print_as(&answer(&found, &search, args.json)?, args.json)?;
    Ok(if found.crossing.is_some() { 0 } else { NOT_FOUND })
}

/// Searches, and returns the answer as `--json` prints it, and as text. `go_on` is asked at times.
pub(crate) fn search(
    args: &Find,
    source: &Source,
    files: &(dyn Files + Sync),
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<(Value, String), Unfound> {
    let (range, mut search) = prepare(args, source, files).map_err(Unfound::Diagnostic)?;
    search.go_on = Some(go_on);
    let found = bentpipe_sweep::find::find(&mut search, args.out.as_deref(), &|_| ());
    let found = found.map_err(|error| Unfound::of(error, &range))?;
    Ok((object(&found, &search), text(&found, &search)))
}

/// Why a search was aborted.
#[derive(Debug)]
pub enum Unfound {
    /// The scenario, the range or the condition is wrong.
    Diagnostic(Box<Diagnostic>),
    /// Another input is wrong, or a file cannot be read or written.
    Sweep(Error),
}

impl Unfound {
    fn of(error: Error, range: &Range<'_>) -> Self {
        let Error::Cell { mut diagnostic, cell } = error else { return Self::Sweep(error) };
        let words: Vec<String> = cell.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        diagnostic.help.push(format!("note: with {}", words.join(", ")));
        Self::Diagnostic(range.shown_in_option(diagnostic, None))
    }
}

/// Checks what is asked, before anything is run.
fn prepare<'a>(
    args: &'a Find,
    source: &'a Source,
    files: &'a (dyn Files + Sync),
) -> Result<(Range<'a>, Search<'a>), Box<Diagnostic>> {
    let range = Range::parse(&args.vary, &args.input.sets)?;
    let until = checked(args, source, files, &range)?;
    let seeds = bentpipe_scenario::sweep(source)?.map_or(DEFAULT_SEEDS, |spec| spec.seeds);
    let seeds = args.seeds.unwrap_or(seeds);
    let job = Job {
        source,
        files,
        sets: args.input.sets.clone(),
        seed: args.input.seed,
        shard: None,
        spec: SweepSpec { axes: Vec::new(), seeds, measure: Vec::new(), precision: None },
        threads: args.threads.into(),
    };
    let vary = range.vary.clone();
    Ok((range, Search { job, vary, until, go_on: None }))
}

/// Parses and checks the condition, and both bounds, before anything is run.
fn checked(
    args: &Find,
    source: &Source,
    files: &(dyn Files + Sync),
    range: &Range<'_>,
) -> Result<Condition, Box<Diagnostic>> {
    let given = OptionValue { name: "--until", value: &args.until };
    let until = Expect::parse(&args.until).map_err(|error| {
        let mut lines = error.lines().map(str::to_owned);
        let fault = given.wrong(lines.next().unwrap_or_default(), "");
        let help = lines.chain(["help: a search takes <, <=, > or >=".to_owned()]).collect();
        Box::new(Diagnostic { help, ..*fault })
    })?;
    let condition = until.condition().ok_or_else(|| {
        given.fault(until.operator(), "a search needs a side of a limit", "write <, <=, > or >=")
    })?;
    // the higher one first: it has the unit
    for bound in [1, 0] {
        let scenario = range.load(bound, source, files, &args.input)?;
        until.check("--until", &scenario)?;
    }
    Ok(condition)
}

/// The answer as a sentence, or as JSON with the notes on standard error.
fn answer(found: &Found, search: &Search<'_>, as_json: bool) -> Result<String, Failure> {
    if !as_json {
        return Ok(text(found, search));
    }
    for note in found.notes(search) {
        print_message(&format!("note: {note}"));
    }
    to_json(&object(found, search))
}

fn text(found: &Found, search: &Search<'_>) -> String {
    [&[found.sentence(search)], &found.notes(search)[..]].concat().join("\n") + "\n"
}

fn object(found: &Found, search: &Search<'_>) -> Value {
    let number = |value: f64| if found.whole { json!(value as i64) } else { json!(value) };
    let crossing = found.crossing.as_ref();
    let mut object = json!({
        "value": crossing.map(|c| number(c.value)),
        "low": crossing.map(|c| number(c.low)),
        "high": crossing.map(|c| number(c.high)),
        "unit": search.vary.unit,
        "metric": search.until.metric.text(),
        "runs": found.runs,
    });
    if crossing.is_none() {
        object["error"] = Value::String(found.sentence(search));
    }
    object
}
