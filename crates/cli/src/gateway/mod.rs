//! `bentpipe gateway`: runs and controls a gateway in front of a satellite hop.

mod show;
mod top;

use crate::input;
use crate::outcome::{BAD_INPUT, Failure, print_as, print_message};
use bentpipe_accelerate::deploy::{
    self, Deployment, Event, GatewayEngine, Level, PassThrough, RUN_FOLDER, Start,
};
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

/// Options of `bentpipe gateway`.
#[derive(Debug, Args)]
pub(crate) struct Gateway {
    #[command(subcommand)]
    action: Action,
    /// Name of the gateway, if several are running.
    #[arg(long, value_name = "NAME", global = true)]
    name: Option<String>,
    /// Folder of session files.
    #[arg(long, value_name = "DIR", global = true, default_value = RUN_FOLDER)]
    run_dir: PathBuf,
    /// Print the result as JSON.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print what a gateway would intercept and change, and what this machine lacks. Changes nothing.
    ///
    /// Exit status 2 if the gateway would not start.
    Check {
        /// Gateway file.
        file: PathBuf,
        /// Check whether `run --replace` would start: the running gateway of this name is no obstacle.
        #[arg(long)]
        replace: bool,
    },
    /// Run a gateway until it is stopped, then undo all changes.
    ///
    /// SIGTERM and Ctrl-C stop it, SIGHUP makes it reload its file. Exit status 3 if traffic stopped after
    /// the start, and all changes were undone.
    Run {
        /// Gateway file.
        file: PathBuf,
        /// Only forward packets from one side to the other, as the baseline of the gateway's cost.
        #[arg(long, hide = true)]
        bare: bool,
        /// Replace the running gateway and resume its connections, for a planned restart or an upgrade.
        #[arg(long)]
        replace: bool,
    },
    /// Stop a gateway, and wait until it has ended.
    Stop {
        /// Keep its connections for the next run, which must start within five minutes.
        #[arg(long)]
        keep: bool,
    },
    /// Print its state: connections, losses, bytes held, measured gain.
    Status,
    /// List its connections.
    Flows {
        /// Index of the first connection: the next one after the previous page.
        #[arg(long, value_name = "N", default_value_t = 0)]
        from: u32,
        /// Maximum number of connections.
        #[arg(long, value_name = "N", default_value_t = 100)]
        most: usize,
    },
    /// Watch it in the terminal.
    Top {
        /// Print the state once as plain text, and exit.
        #[arg(long)]
        once: bool,
    },
    /// Make it reload its file without losing a connection.
    Reload,
    /// Undo all changes made by gateways: killed ones, and running ones, which are stopped first.
    Undo,
}

/// Carries out the action; returns the exit status.
pub(crate) fn run(gateway: &Gateway) -> Result<u8, Failure> {
    let registry = Registry::at(&gateway.run_dir);
    let name = gateway.name.as_deref();
    let text = match &gateway.action {
        Action::Check { file, replace } => {
            let check = deploy::check(&read(file)?, &registry);
            let check = if *replace { check.besides_running() } else { check };
            print_as(&show::check(&file.display().to_string(), &check, gateway.json)?, gateway.json)?;
            return Ok(if check.is_good() { 0 } else { BAD_INPUT });
        }
        Action::Run { file, bare, replace } => {
            let start: Start = if *bare { PassThrough::start } else { GatewayEngine::start };
            return run_gateway(file, registry, start, *replace);
        }
        Action::Stop { keep } => {
            let name = deploy::stop(&registry, name, *keep)?;
            let left = if *keep { "; the next run continues its connections" } else { "" };
            format!("gateway {name} has ended{left}\n")
        }
        Action::Undo => {
            let done = deploy::undo(&registry, name)?;
            if done.is_empty() { "nothing to undo\n".to_owned() } else { done.join("\n") + "\n" }
        }
        Action::Reload => {
            let done = |reply| if let Reply::Done { message } = reply { Some(message) } else { None };
            connect(&registry, name)?.ask(&Request::Reload, done)? + "\n"
        }
        Action::Status => show::status(&mut connect(&registry, name)?, gateway.json)?,
        Action::Flows { from, most } => {
            show::flows(&show::page(&mut connect(&registry, name)?, *from, *most)?, gateway.json)?
        }
        Action::Top { once } => top::run(&mut connect(&registry, name)?, *once)?,
    };
    print_as(&text, gateway.json).map(|()| 0)
}

/// Reads a gateway file; an error in it is an input error.
fn read(path: &Path) -> Result<GatewayFile, Failure> {
    Ok(load(&input::file(path)?)?)
}

fn run_gateway(path: &Path, registry: Registry, start: Start, replace: bool) -> Result<u8, Failure> {
    let file = read(path)?;
    let deployment = Deployment {
        path: &path.display().to_string(),
        read: &|| read(path).map_err(|failure| deploy::Error::Reload(failure.text)),
        registry,
        start,
        replace,
        log: &mut log,
    };
    Ok(deploy::run(deployment, file).map(|()| 0)?)
}

/// Prints an event as a log line of keys and values.
pub(crate) fn log(event: &Event) {
    let level = if event.level == Level::Info { "info" } else { "warning" };
    for line in event.text.lines() {
        let text = line.replace('\\', "\\\\").replace('"', "\\\"");
        print_message(&format!("level={level} event=\"{}\" text=\"{text}\"", event.name));
    }
}

fn connect(registry: &Registry, name: Option<&str>) -> Result<Client<Reply>, Failure> {
    let session = deploy::choose(registry, name)?;
    Ok(Client::connect(&session.socket)?)
}
