//! What may stand on the command line.

use crate::expect::Expect;
use clap::{Args as ArgGroup, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// Simulates TCP over satellite links.
///
/// A scenario file describes the network, the flows and when to stop. The same file, parameters and seed give the same
/// bytes of output.
#[derive(Debug, Parser)]
#[command(name = "bentpipe", version, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a scenario in simulated time and print what came out of it.
    #[command(after_help = SIM_EXAMPLES)]
    Sim {
        #[command(flatten)]
        input: Input,
        /// Print the whole report as JSON.
        #[arg(long)]
        json: bool,
        /// Write a page with pictures, tables and captures into this folder.
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// A figure that the run must reach, as in 'goodput > 1 Mbit/s'; may be repeated.
        ///
        /// Operators: >, >=, <, <=, ==, within 5 % of. Exit status 3 when one is not met.
        #[arg(long, value_name = "EXPECTATION", value_parser = Expect::parse)]
        expect: Vec<Expect>,
    },
    /// Run a scenario for every combination of its axes and several seeds, on all cores.
    ///
    /// What is finished stays: the same command goes on after an interrupt.
    #[command(after_help = SWEEP_EXAMPLES)]
    Sweep(Box<Sweep>),
    /// Put the shards of a sweep together and write its tables.
    Merge {
        /// Folders of the shards.
        #[arg(required = true)]
        shards: Vec<PathBuf>,
        /// Folder for the whole.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// Check a scenario and print it as TOML, every default filled in.
    ///
    /// The output is a scenario file itself and describes the same experiment.
    Check {
        #[command(flatten)]
        input: Input,
    },
    /// Run a command behind a link: real programs, real packets, in real time.
    ///
    /// LINK is a named link (`bentpipe links`) or a scenario file. The command runs at the near end, where the user of the satellite is; `far` is the name of
    /// the other end. Without a command a shell is started.
    #[command(after_help = EMULATE_EXAMPLES)]
    Emulate(Box<Emulate>),
    /// Run a scenario in simulated time and with this machine's own TCP in real time, and print both side by side.
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(Box<Compare>),
    /// Show what a gateway does for hosts that know nothing of satellites: with and without, side by side, in about a minute.
    ///
    /// Uses this machine's own TCP at both ends, in network namespaces; where these are not allowed it is simulated.
    Demo(crate::demo::Demo),
    /// List the named links that a scenario can use, with their sources.
    Links {
        /// Print them as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Say what this machine can do and, for each lack, the command that mends it.
    ///
    /// Exit status 3 when links cannot be emulated here.
    Doctor {
        /// Print it as JSON.
        #[arg(long, conflicts_with = "clean")]
        json: bool,
        /// Remove what killed sessions have left behind.
        #[arg(long)]
        clean: bool,
    },
    /// Go to a host of a session and become a program there.
    #[command(name = "__run", hide = true)]
    Run(Run),
    /// Show or change a link that is running, from another terminal.
    #[command(after_help = crate::link::EXAMPLES)]
    Link(crate::link::Link),
    /// Run a gateway before a satellite hop on this machine, or look at one.
    #[command(after_help = crate::gateway::EXAMPLES)]
    Gateway(crate::gateway::Gateway),
    /// Send a file with this program's own TCP, by any scheme, to any peer that listens.
    ///
    /// Behind a link of `bentpipe emulate` it needs no permission; elsewhere it needs root.
    #[command(after_help = crate::transfer::SEND_EXAMPLES)]
    Send(crate::transfer::Send),
    /// Wait for one sender and write what it sends, with this program's own TCP.
    ///
    /// Behind a link of `bentpipe emulate` it needs no permission; elsewhere it needs root.
    #[command(after_help = crate::transfer::RECEIVE_EXAMPLES)]
    Receive(crate::transfer::Receive),
    /// Watch a link that is running: rates, queues, losses, connections.
    Top(crate::top::Top),
    /// Run again what `emulate --journal` has recorded, in simulated time, and compare what comes out.
    ///
    /// Exit status 3 when it is something else.
    Replay {
        /// The journal.
        file: PathBuf,
        /// Print what came of it as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print a file that is made from the table of keys.
    #[command(hide = true)]
    Generate {
        /// Which file.
        page: Page,
    },
}

/// A scenario and what the command line changes about it.
#[derive(Debug, ArgGroup)]
pub(crate) struct Input {
    /// Scenario file.
    pub(crate) file: PathBuf,
    /// Seed of every random stream, instead of the file's.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Give a parameter of the file another value; may be repeated.
    ///
    /// The value is written as in the file but without quotes: loss=1e-3, window='64 segments', delayed_ack=on.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(crate) sets: Vec<(String, String)>,
}

/// A command behind a link.
#[derive(Debug, ArgGroup)]
pub(crate) struct Emulate {
    /// A named link, or a scenario file.
    pub(crate) link: String,
    /// The command, after `--`; a shell when there is none.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
    /// A line for a shell at the far end: it is started first, and ended with the command.
    #[arg(long, value_name = "LINE")]
    pub(crate) far: Option<OsString>,
    /// Change a named link (rate, delay, buffer, loss or ber, as `bentpipe link set` does), or a parameter of a scenario; may be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(crate) sets: Vec<(String, String)>,
    /// Seed of every random stream.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Let a scenario's timeline run faster by this factor.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = bentpipe_live::speed::parse)]
    pub(crate) speed: f64,
    /// Let the far end be this machine's own network, with its way to the internet. Needs root.
    #[arg(long)]
    pub(crate) uplink: bool,
    /// Record every packet and every change in this file, for `bentpipe replay`.
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,
    /// Write a page with pictures, tables and captures into this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Capture every direction of every link, not only those that a scenario's `captures` name. A named link is captured anyway.
    #[arg(long, requires = "out")]
    pub(crate) capture: bool,
    /// Without a command: print the whole report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Name of the session, by which `bentpipe link` and `bentpipe top` find it.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Do without real-time priority even where it is allowed.
    #[arg(long)]
    pub(crate) no_realtime: bool,
}

/// Simulated beside emulated.
#[derive(Debug, ArgGroup)]
pub(crate) struct Compare {
    #[command(flatten)]
    pub(crate) input: Input,
    /// Print both reports and the figures side by side as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the pages of both runs into folders in this one, `simulated` and `emulated`.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Do without real-time priority even where it is allowed.
    #[arg(long)]
    pub(crate) no_realtime: bool,
}

/// What the helper of `emulate` is told.
#[derive(Debug, ArgGroup)]
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

/// A sweep.
#[derive(Debug, ArgGroup)]
pub(crate) struct Sweep {
    #[command(flatten)]
    pub(crate) input: Input,
    /// An axis, instead of the file's of that name; may be repeated.
    ///
    /// An axis that is given by --set instead keeps this one value.
    #[arg(long = "axis", value_name = "NAME=A,B,C", value_parser = name_and_value)]
    pub(crate) axes: Vec<(String, String)>,
    /// Runs of each combination, instead of the file's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) seeds: Option<u32>,
    /// What to measure, instead of the file's; may be repeated.
    #[arg(long, value_name = "METRIC")]
    pub(crate) measure: Vec<String>,
    /// More seeds until a mean is known this well, as in 'goodput 5 %'; 'none' keeps to --seeds.
    #[arg(long, value_name = "METRIC SHARE")]
    pub(crate) precision: Option<String>,
    /// With a precision: most runs of a combination [default: the file's, or 50].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) max_seeds: Option<u32>,
    /// Threads; 0 for one per core.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = threads)]
    pub(crate) threads: usize,
    /// Only part i of n of the runs; put together by `bentpipe merge`.
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<String>,
    /// Folder for runs, tables and pictures.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
}

/// Not more than any machine has any use for.
fn threads(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n <= 1024).ok_or_else(|| "write a number from 0 to 1024".to_owned())
}

/// A generated file.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Page {
    /// schema/scenario.schema.json
    Schema,
    /// docs/src/scenario-file.md
    Reference,
    /// schema/gateway.schema.json
    GatewaySchema,
    /// docs/src/gateway-file.md
    GatewayReference,
}

const SIM_EXAMPLES: &str = "Examples:
  bentpipe sim scenarios/demo.toml
  bentpipe sim scenarios/sharing.toml --set tcp=cubic --set loss=1e-3 --seed 7
  bentpipe sim scenarios/window.toml --set window='32 segments' --json
  bentpipe sim scenarios/faded.toml --set ber=1e-7 --out results/";

const COMPARE_EXAMPLES: &str = "Examples:
  bentpipe compare scenarios/window.toml --set duration='60 s'
  bentpipe compare scenarios/transfer.toml --set size='10 kB' --json
  bentpipe compare scenarios/sharing.toml --set tcp=cubic --set loss=1e-2 --out results/";

const EMULATE_EXAMPLES: &str = "Examples:
  bentpipe emulate geo-10m -- ping far
  bentpipe emulate winds-24m --far 'iperf3 -s' -- iperf3 -c far
  bentpipe emulate geo-10m --set loss=1e-3 --set rate=5Mbit/s
  sudo bentpipe emulate ka-band-t1 --uplink -- curl https://example.org";

const SWEEP_EXAMPLES: &str = "Examples:
  bentpipe sweep scenarios/faded.toml --out results/
  bentpipe sweep scenarios/sharing.toml --axis loss=1e-4,1e-3,1e-2 --axis tcp=newreno,cubic --out results/
  bentpipe sweep scenarios/faded.toml --set tcp=sack --precision 'goodput 5 %' --out results/
  bentpipe sweep scenarios/faded.toml --shard 1/4 --out shard-1/";

pub(crate) fn name_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.to_owned())),
        _ => Err("write it as NAME=VALUE".to_owned()),
    }
}
