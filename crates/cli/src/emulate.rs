//! `bentpipe emulate`: runs a command behind a link.

use crate::expect::Expect;
use crate::input::{self, Beside, name_and_value};
use crate::outcome::{Failure, NOT_MET, by_signal, print_as, print_message};
use crate::show::Pictures;
use crate::simulate::in_words;
use crate::{expect, shipped};
use bentpipe_base::Duration;
use bentpipe_emulate::far::{Ready, USUAL_LIMIT};
use bentpipe_emulate::plan::Plan;
use bentpipe_emulate::report::{Place, capture};
use bentpipe_emulate::{emulation, measure, named, run as helper};
use bentpipe_scenario::{Dimension, parse_amount, profiles};
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

pub(crate) const EXAMPLES: &str = "Examples:
  bentpipe emulate geo-10m -- ping far
  bentpipe emulate winds-24m --far 'iperf3 -s' -- iperf3 -c far
  bentpipe emulate geo-10m --set loss=1e-3 --set rate=5Mbit/s
  bentpipe emulate geo-10m --far 'python3 -m http.server 80' --expect 'goodput > 1 Mbit/s' -- \
    curl -so /dev/null http://far/file
  bentpipe emulate ka-band-t1 --uplink -- curl https://example.org";

const JSON_OF_FLOWS: &str =
    "--json prints the report of a scenario's own flows, and a command runs in their place
help: leave out the command and --far, or give a scenario file; --out DIR writes report.json of any session";

/// Options of `bentpipe emulate`.
#[derive(Debug, Args)]
pub(crate) struct Emulate {
    /// A named link, a scenario file, or the name of a scenario that comes with the program.
    pub(crate) link: String,
    /// The command with its own options, after those of `emulate`; without it a shell.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
    /// A shell command line for the far end: started before the command, and stopped when that ends.
    #[arg(long, value_name = "LINE")]
    pub(crate) far: Option<OsString>,
    /// The port at which the far program must listen before the command starts [default: the first that it
    /// opens]. `off` waits for nothing.
    #[arg(long, value_name = "PORT", value_parser = ready, requires = "far")]
    pub(crate) far_ready: Option<Ready>,
    /// How long to wait for it, as in '30 s' [default: 5 s].
    #[arg(long, value_name = "TIME", value_parser = limit, requires = "far")]
    pub(crate) far_within: Option<Duration>,
    /// Change a named link (rate, delay, buffer, loss or ber, as `bentpipe link set` does), or a parameter of
    /// a scenario; may be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(crate) sets: Vec<(String, String)>,
    /// Seed of every random stream.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Run the scenario's timeline faster by this factor.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = bentpipe_live::speed::parse)]
    pub(crate) speed: f64,
    /// Use this machine's own network as the far end, with its route to the internet.
    ///
    /// As root it changes the machine's network while it runs. For an ordinary user, `pasta` (package passt)
    /// or `slirp4netns` connects a network of the session instead.
    #[arg(long)]
    pub(crate) uplink: bool,
    /// Record every packet and every change of the link in this file, for `bentpipe replay`.
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,
    /// Write a page with pictures, tables and captures into this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) pictures: Pictures,
    /// With --out: where packets are captured [default: the links of both ends, or what the scenario's
    /// `captures` say].
    #[arg(long, value_name = "WHERE", requires = "out")]
    pub(crate) capture: Option<CaptureAt>,
    /// A condition on the report, such as 'goodput > 1 Mbit/s'; may be repeated. Exit status 3 if one is not
    /// met and the command did not fail.
    #[arg(long, value_name = "EXPECTATION", value_parser = Expect::parse)]
    pub(crate) expect: Vec<Expect>,
    /// If a scenario's own flows run: print the report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Serve metrics for Prometheus at this address of this machine, as in 127.0.0.1:9465.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Name of the session, for `bentpipe link` and `bentpipe top`.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Do not use real-time priority, even where it is allowed.
    #[arg(long)]
    pub(crate) no_realtime: bool,
}

/// Where packets are captured.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum CaptureAt {
    /// At the link of the near end.
    Near,
    /// At the link of the far end.
    Far,
    /// At both.
    Ends,
    /// At every link.
    All,
    /// Nowhere, not even where the scenario says.
    None,
}

/// Parses a port to wait for.
fn ready(text: &str) -> Result<Ready, String> {
    match text {
        "off" => Ok(Ready::Off),
        _ => text
            .parse()
            .ok()
            .filter(|port| *port > 0)
            .map(Ready::Port)
            .ok_or_else(|| "write a port from 1 to 65535, or `off`".to_owned()),
    }
}

/// Parses a time to wait, at most an hour.
fn limit(text: &str) -> Result<Duration, String> {
    const MOST_S: f64 = 3600.0;
    let given = parse_amount(text)?;
    let fits = given.dimension == Dimension::Time && (0.0..=MOST_S).contains(&given.value);
    fits.then_some(Duration((given.value * 1e9) as u64))
        .ok_or_else(|| "write a time up to 1 h, as in 30 s".to_owned())
}

/// Arguments of the helper process of `emulate`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Run {
    #[arg(long)]
    pub(crate) net_fd: i32,
    #[arg(long)]
    pub(crate) report_fd: i32,
    #[arg(long)]
    pub(crate) parent: i32,
    #[arg(long)]
    pub(crate) hosts: PathBuf,
    #[arg(long)]
    pub(crate) resolv: Option<PathBuf>,
    #[arg(last = true)]
    pub(crate) argv: Vec<OsString>,
}

/// Runs the command; returns its exit status.
pub(crate) fn run(options: &Emulate) -> Result<u8, Failure> {
    if options.json && (!is_scenario(&options.link) || !options.command.is_empty() || options.far.is_some()) {
        return Err(Failure::input(JSON_OF_FLOWS));
    }
    let plan = plan(options)?;
    if options.command.is_empty() && options.far.is_none() && is_scenario(&options.link) {
        return flows(options, &plan);
    }
    options.expect.iter().try_for_each(|expect| expect.check_live("--expect", &plan.scenario))?;
    notes(&plan, is_scenario(&options.link));
    let ended = emulation::run(&plan, &mut |line| print_message(line))?;
    for doubt in ended.timing.doubts.iter().filter(|_| !ended.timing.trusted) {
        print_message(&format!("warning: the figures of this run are not to be trusted: {doubt}"));
    }
    if let Some(dir) = &plan.out {
        print_message(&format!("{} files in {}", ended.files.len(), dir.display()));
    }
    let met = ended.report.is_none_or(|report| expect::judge_all(&options.expect, &report, ""));
    // the command's own failure says more
    Ok(if ended.status == 0 && !met { NOT_MET } else { ended.status })
}

/// Runs the helper process; returns only if it could not execute the program.
pub(crate) fn exec_program(options: &Run) -> u8 {
    let Run { net_fd, report_fd, parent, hosts, resolv, argv } = options;
    helper::run((*net_fd, *report_fd), *parent, hosts, resolv.as_deref(), argv)
}

fn plan(options: &Emulate) -> Result<Plan, Failure> {
    let (mut scenario, title) = if is_scenario(&options.link) {
        let path = Path::new(&options.link);
        let source = input::scenario(path)?;
        let scenario = bentpipe_scenario::load_with(&source, &options.sets, options.seed, &Beside(path))?;
        (scenario, input::title(path))
    } else {
        let mut scenario = named::profile_scenario(&options.link, options.seed)?;
        let words: Vec<String> = options.sets.iter().map(|(name, value)| format!("{name}={value}")).collect();
        named::change(&mut scenario, &bentpipe_scenario::parse_change(&words)?);
        (scenario, options.link.clone())
    };
    match options.capture {
        // a scenario may define its captures itself
        None if options.out.is_none() || !scenario.captures.is_empty() => {}
        None | Some(CaptureAt::Ends) => capture(&mut scenario, Place::Ends),
        Some(CaptureAt::Near) => capture(&mut scenario, Place::Near),
        Some(CaptureAt::Far) => capture(&mut scenario, Place::Far),
        Some(CaptureAt::All) => capture(&mut scenario, Place::All),
        Some(CaptureAt::None) => scenario.captures.clear(),
    }
    Ok(Plan {
        name: options.name.clone(),
        uplink: options.uplink,
        speed: options.speed,
        realtime: !options.no_realtime,
        journal: options.journal.clone(),
        out: options.out.clone(),
        pictures: options.pictures.formats(),
        far: options.far.clone(),
        far_ready: (options.far_ready.unwrap_or(Ready::First), options.far_within.unwrap_or(USUAL_LIMIT)),
        metrics: options.metrics,
        report: !options.expect.is_empty(),
        command: if options.command.is_empty() { vec![shell()] } else { options.command.clone() },
        ..Plan::new(scenario, &title)
    })
}

/// Runs the scenario's own flows and prints the report; returns the exit status.
fn flows(options: &Emulate, plan: &Plan) -> Result<u8, Failure> {
    options.expect.iter().try_for_each(|expect| expect.check("--expect", &plan.scenario))?;
    let measured = measure::run(plan, &mut || (), &mut |line| print_message(line), &mut |_, _| ())?;
    if let Some(dir) = &options.out {
        print_message(&format!("{} files in {}", measured.files.len(), dir.display()));
    }
    let report = &measured.report;
    let met = expect::judge_all(&options.expect, report, "");
    let text = if options.json { report.to_json() + "\n" } else { in_words(report, &measured.record) };
    print_as(&text, options.json)?;
    Ok(if measured.interrupted.is_none() && !met { NOT_MET } else { by_signal(measured.interrupted) })
}

/// Prints notes on behaviour that a user may not expect.
fn notes(plan: &Plan, from_file: bool) {
    if from_file {
        print_message("note: a command runs instead of the scenario's own flows");
    }
    for (name, has, wants) in named::small_queues(&plan.scenario) {
        print_message(&format!(
            "note: the queue of {name} holds {has}; what its rate carries in one round trip is {wants}"
        ));
    }
}

/// True if `link` is a scenario: it is not the name of a link, but that of a scenario, or it looks like a
/// path.
fn is_scenario(link: &str) -> bool {
    let named = profiles().iter().any(|p| p.name == link);
    let path = Path::new(link);
    let is_toml = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("toml"));
    !named && (link.contains('/') || is_toml || path.is_file() || shipped::scenario(link).is_ok())
}

fn shell() -> OsString {
    std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into())
}
