//! `bentpipe gateway`: runs and controls a gateway in front of a satellite hop.

mod check;
mod show;
mod top;

use crate::input;
use crate::outcome::{BAD_INPUT, Failure, NOT_MET, print, say};
use bentpipe_accelerate::deploy::{self, Bare, Deployment, Event, Level, Live, RUN_FOLDER, Start};
use bentpipe_accelerate::status::{Reply, Request};
use bentpipe_scenario::gateway_file::{GatewayFile, load};
use bentpipe_service::{Client, Registry};
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};

pub(crate) const EXAMPLES: &str = "Examples:
  bentpipe gateway check gateway.toml
  sudo bentpipe gateway run gateway.toml
  sudo bentpipe gateway status
  sudo bentpipe gateway top
  sudo bentpipe gateway undo";

/// A gateway.
#[derive(Debug, Args)]
pub(crate) struct Gateway {
    #[command(subcommand)]
    action: Action,
    /// Which gateway, when several are running.
    #[arg(long, value_name = "NAME", global = true)]
    name: Option<String>,
    /// Folder of session files.
    #[arg(long, value_name = "DIR", global = true, default_value = RUN_FOLDER)]
    run_dir: PathBuf,
    /// Print the answer as JSON.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Say what would be intercepted and changed, and what is missing. Changes nothing.
    ///
    /// Exit status 2 when the gateway would not start.
    Check {
        /// Gateway file.
        file: PathBuf,
    },
    /// Run a gateway until it is ended; then everything is as before.
    ///
    /// SIGTERM and Ctrl-C end it, SIGHUP has it read its file again. Exit status 3 when traffic stopped with
    /// it, so that everything was taken back.
    Run {
        /// Gateway file.
        file: PathBuf,
        /// Only copy packets from one side to the other: what the gateway's cost is measured against.
        #[arg(long, hide = true)]
        bare: bool,
        /// Take the place of the gateway that runs, and go on with its connections: for a planned restart or
        /// an upgrade.
        #[arg(long)]
        replace: bool,
    },
    /// Have it end as planned, and wait until it has.
    Stop {
        /// Leave its connections to the next run, which must come within five minutes.
        #[arg(long)]
        keep: bool,
    },
    /// Show how it is: connections, losses, what it holds, the proof of gain.
    Status,
    /// List its connections.
    Flows {
        /// Where to begin: where the page before ended.
        #[arg(long, value_name = "N", default_value_t = 0)]
        from: u32,
        /// At most so many.
        #[arg(long, value_name = "N", default_value_t = 100)]
        most: usize,
    },
    /// Watch it in the terminal.
    Top {
        /// Print it once, as plain text, and end.
        #[arg(long)]
        once: bool,
    },
    /// Have it read its file again, without losing a connection.
    Reload,
    /// Take back everything that gateways have changed: those that were killed, and those that run, after
    /// asking them to stop.
    Undo,
}

/// Carries out the action; returns the exit status.
pub(crate) fn run(gateway: &Gateway) -> Result<u8, Failure> {
    let registry = Registry::at(&gateway.run_dir);
    let name = gateway.name.as_deref();
    let text = match &gateway.action {
        Action::Check { file } => {
            let check = deploy::check(&read(file)?, &registry, true);
            print(&check::text(&file.display().to_string(), &check, gateway.json)?)?;
            return Ok(if check.is_good() { 0 } else { BAD_INPUT });
        }
        Action::Run { file, bare, replace } => {
            return carry(file, registry, if *bare { Bare::start } else { Live::start }, *replace);
        }
        Action::Stop { keep } => {
            let name = deploy::stop(&registry, name, *keep)?;
            let left = if *keep { "; the next run goes on with its connections" } else { "" };
            format!("gateway {name} has ended{left}\n")
        }
        Action::Undo => undo(&registry, name)?,
        Action::Reload => {
            let done = |reply| if let Reply::Done { message } = reply { Some(message) } else { None };
            connect(&registry, name)?.ask(&Request::Reload, done)? + "\n"
        }
        Action::Status => show::status(&mut connect(&registry, name)?, gateway.json)?,
        Action::Flows { from, most } => {
            show::flows(&mut connect(&registry, name)?, *from, *most, gateway.json)?
        }
        Action::Top { once } => top::run(&mut connect(&registry, name)?, *once)?,
    };
    print(&text).map(|()| 0)
}

/// Reads a gateway file; an error in it is an input error.
fn read(path: &Path) -> Result<GatewayFile, Failure> {
    Ok(load(&input::file(path)?)?)
}

fn carry(path: &Path, registry: Registry, start: Start, replace: bool) -> Result<u8, Failure> {
    let file = read(path)?;
    let deployment = Deployment {
        path: &path.display().to_string(),
        read: &|| {
            read(path).map_err(|(Failure::Input(text) | Failure::Run(text))| deploy::Error::Reload(text))
        },
        registry,
        start,
        inline: Some(Live::inline),
        replace,
        log: &mut log,
    };
    match deploy::run(deployment, file) {
        Err(error @ deploy::Error::Harm(_)) => {
            Failure::run(error).report();
            Ok(NOT_MET)
        }
        ended => Ok(ended.map(|()| 0)?),
    }
}

/// Prints an event as a log line of keys and values.
fn log(event: &Event) {
    let level = match event.level {
        Level::Info => "info",
        Level::Warning => "warning",
    };
    for line in event.text.lines() {
        let text = line.replace('\\', "\\\\").replace('"', "\\\"");
        say(&format!("level={level} event=\"{}\" text=\"{text}\"", event.name));
    }
}

fn undo(registry: &Registry, name: Option<&str>) -> Result<String, Failure> {
    let done = deploy::undo(registry, name)?;
    if done.is_empty() {
        return Ok("nothing to take back\n".to_owned());
    }
    Ok(done.join("\n") + "\n")
}

fn connect(registry: &Registry, name: Option<&str>) -> Result<Client<Reply>, Failure> {
    let session = deploy::choose(registry, name)?;
    Ok(Client::connect(&session.socket)?)
}
