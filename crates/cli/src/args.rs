//! The command-line arguments.

use crate::expect::Expect;
use crate::input::Input;
use crate::transfer::{receive, send};
use crate::{
    agent, compare, demo, emulate, figure, find, gateway, generate, link, new, papers, show, sweep, top,
};
use clap::{Parser, Subcommand};
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
    /// Run a scenario in simulated time and print the report.
    #[command(after_help = SIM_EXAMPLES)]
    Sim {
        #[command(flatten)]
        input: Input,
        /// Print the whole report as JSON.
        #[arg(long)]
        json: bool,
        /// Simulate each packet, also where a flow repeats itself; the results are the same.
        #[arg(long)]
        no_fast_forward: bool,
        /// Also write a page with pictures, tables and captures into this folder.
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        #[command(flatten)]
        pictures: show::Pictures,
        /// A condition on the results, such as 'goodput > 1 Mbit/s'; may be repeated.
        ///
        /// Operators: >, >=, <, <=, ==, within 5 % of. Exit status 3 if one is not met.
        #[arg(long, value_name = "EXPECTATION", value_parser = Expect::parse)]
        expect: Vec<Expect>,
    },
    /// Run a scenario for every combination of its axes and several seeds, on all cores.
    ///
    /// Finished runs are kept: after an interrupt the same command continues the sweep.
    #[command(after_help = sweep::EXAMPLES)]
    Sweep(Box<sweep::Sweep>),
    /// Find the value of a parameter at which a metric crosses a threshold.
    ///
    /// Exit status 4 if no crossing was found.
    #[command(after_help = find::EXAMPLES)]
    Find(Box<find::Find>),
    /// Merge the shards of a sweep and write its tables.
    Merge(sweep::Merge),
    /// Make a figure or table of a figure file, and check what it states.
    ///
    /// Writes figure.svg, points.csv, verdicts.csv and index.html, and prints the verdicts. Finished runs are
    /// kept: after an interrupt the same command continues. Exit status 3 if a statement differs.
    #[command(after_help = figure::EXAMPLES)]
    Figure(figure::Figure),
    /// Make the figures and tables of five papers, and say where they agree and where they differ.
    ///
    /// Writes index.html, verdicts.csv, statements.csv and figures/, and prints the verdicts. Finished runs
    /// are kept: after an interrupt the same command continues. Exit status 3 if a statement differs that is
    /// not known to differ.
    #[command(after_help = papers::EXAMPLES)]
    Papers(papers::Papers),
    /// Check a scenario and print it as TOML with all defaults filled in.
    ///
    /// The output is a scenario file of the same experiment.
    Check {
        #[command(flatten)]
        input: Input,
    },
    /// Run a command behind a link: real programs, real packets, in real time.
    ///
    /// LINK is a named link (`bentpipe links`) or a scenario file. The command runs at the near end, where
    /// the user of the satellite is; the other end is the host `far`. Without a command a shell is started.
    #[command(after_help = emulate::EXAMPLES)]
    Emulate(Box<emulate::Emulate>),
    /// Run a scenario in simulated time and with this machine's own TCP in real time, and print both side by
    /// side.
    #[command(after_help = compare::EXAMPLES)]
    Compare(Box<compare::Compare>),
    /// Show two or more runs on one page: their course over time, distributions, and a bar for each scheme.
    ///
    /// RUN is a folder of `--out` or a saved `report.json`.
    #[command(after_help = show::EXAMPLES)]
    Show(show::Show),
    /// Compare ordinary hosts with and without a gateway, side by side, in about a minute.
    ///
    /// Uses this machine's own TCP at both ends, in network namespaces. Where these are not allowed, the
    /// comparison is simulated.
    Demo(demo::Demo),
    /// List the named links that a scenario can use, with their sources.
    Links {
        /// Print them as JSON.
        #[arg(long)]
        json: bool,
    },
    /// List the scenarios that come with the program, or print one of them.
    Scenarios {
        /// Name of the scenario to print.
        #[arg(conflicts_with = "json")]
        name: Option<String>,
        /// Print them as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write a commented scenario file of your own: from options, or from answers to a few questions.
    #[command(after_help = new::EXAMPLES)]
    New(Box<new::New>),
    /// Check what this machine supports, and print the command that fixes each problem.
    ///
    /// Exit status 3 if links cannot be emulated here.
    Doctor {
        /// Print the result as JSON.
        #[arg(long, conflicts_with = "clean")]
        json: bool,
        /// Undo the changes that killed sessions have left behind.
        #[arg(long)]
        clean: bool,
    },
    /// Enter a host of a session and execute a program there.
    #[command(name = "__run", hide = true)]
    Run(emulate::Run),
    /// Run the flows of the scenario on standard input live, for a figure.
    #[command(name = "__measure", hide = true)]
    Measure,
    /// Show or change a running link from another terminal.
    #[command(after_help = link::EXAMPLES)]
    Link(link::Link),
    /// Run a gateway in front of a satellite hop on this machine, or control a running one.
    #[command(after_help = gateway::EXAMPLES)]
    Gateway(gateway::Gateway),
    /// Ask the network for rates in the place of hosts that cannot, or control a running agent.
    #[command(after_help = agent::EXAMPLES)]
    Agent(agent::Agent),
    /// Send a file to any listening peer with this program's own TCP and any congestion control.
    ///
    /// Behind a link of `bentpipe emulate` it needs no permission; elsewhere it needs root.
    #[command(after_help = send::EXAMPLES)]
    Send(send::Send),
    /// Receive a file from one sender with this program's own TCP.
    ///
    /// Behind a link of `bentpipe emulate` it needs no permission; elsewhere it needs root.
    #[command(after_help = receive::EXAMPLES)]
    Receive(receive::Receive),
    /// Watch a running link: rates, queues, losses, connections.
    Top(top::Top),
    /// Replay a journal of `emulate --journal` in simulated time, and compare the output.
    ///
    /// Exit status 3 if the output differs, or if the journal ends before its run did.
    Replay {
        /// The journal.
        file: PathBuf,
        /// Print the result as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print a file that is generated from the table of keys or from these arguments.
    #[command(hide = true)]
    Generate {
        #[command(subcommand)]
        page: generate::Page,
    },
}

const SIM_EXAMPLES: &str = "Examples:
  bentpipe sim scenarios/demo.toml
  bentpipe sim scenarios/sharing.toml --set tcp=cubic --set loss=1e-3 --seed 7
  bentpipe sim scenarios/window.toml --set window='32 segments' --json
  bentpipe sim scenarios/faded.toml --set ber=1e-7 --out results/
  bentpipe sim scenarios/faded.toml --out results/ --png";
