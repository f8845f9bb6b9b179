//! The command-line arguments.

use crate::expect::Expect;
use crate::input::Input;
use crate::transfer::{receive, send};
use crate::{compare, demo, emulate, gateway, link, sweep, top};
use clap::{Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Simulates TCP over satellite links.
///
/// A scenario file describes the network, the flows and when to stop. The same file, parameters and seed give
/// the same bytes of output.
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
    #[command(after_help = sweep::EXAMPLES)]
    Sweep(Box<sweep::Sweep>),
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
    /// LINK is a named link (`bentpipe links`) or a scenario file. The command runs at the near end, where
    /// the user of the satellite is; `far` is the name of the other end. Without a command a shell is
    /// started.
    #[command(after_help = emulate::EXAMPLES)]
    Emulate(Box<emulate::Emulate>),
    /// Run a scenario in simulated time and with this machine's own TCP in real time, and print both side by
    /// side.
    #[command(after_help = compare::EXAMPLES)]
    Compare(Box<compare::Compare>),
    /// Show what a gateway does for hosts that know nothing of satellites: with and without, side by side, in
    /// about a minute.
    ///
    /// Uses this machine's own TCP at both ends, in network namespaces; where these are not allowed it is
    /// simulated.
    Demo(demo::Demo),
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
    Run(emulate::Run),
    /// Show or change a link that is running, from another terminal.
    #[command(after_help = link::EXAMPLES)]
    Link(link::Link),
    /// Run a gateway before a satellite hop on this machine, or look at one.
    #[command(after_help = gateway::EXAMPLES)]
    Gateway(gateway::Gateway),
    /// Send a file with this program's own TCP, by any scheme, to any peer that listens.
    ///
    /// Behind a link of `bentpipe emulate` it needs no permission; elsewhere it needs root.
    #[command(after_help = send::EXAMPLES)]
    Send(send::Send),
    /// Wait for one sender and write what it sends, with this program's own TCP.
    ///
    /// Behind a link of `bentpipe emulate` it needs no permission; elsewhere it needs root.
    #[command(after_help = receive::EXAMPLES)]
    Receive(receive::Receive),
    /// Watch a link that is running: rates, queues, losses, connections.
    Top(top::Top),
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
