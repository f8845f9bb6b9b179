//! What may stand on the command line.

use clap::{Args as ArgGroup, Parser, Subcommand, ValueEnum};
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
    },
    /// Check a scenario and print it as TOML, every default filled in.
    ///
    /// The output is a scenario file itself and describes the same experiment.
    Check {
        #[command(flatten)]
        input: Input,
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

/// A generated file.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Page {
    /// schema/scenario.schema.json
    Schema,
    /// docs/src/scenario-file.md
    Reference,
}

const SIM_EXAMPLES: &str = "Examples:
  bentpipe sim scenarios/demo.toml
  bentpipe sim scenarios/sharing.toml --set tcp=cubic --set loss=1e-3 --seed 7
  bentpipe sim scenarios/window.toml --set window='32 segments' --json";

fn name_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.to_owned())),
        _ => Err("write it as NAME=VALUE".to_owned()),
    }
}
