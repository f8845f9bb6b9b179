//! `bentpipe agent`: runs and controls a host agent.

mod show;

use crate::gateway::log;
use crate::input;
use crate::outcome::{BAD_INPUT, Failure, print_as};
use bentpipe_accelerate::deploy::RUN_FOLDER;
use bentpipe_agent::deploy::{self, Deployment};
use bentpipe_agent::status::{Reply, Request};
use bentpipe_scenario::agent_file::{AgentFile, load};
use bentpipe_service::{Client, Registry};
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};

pub(crate) const EXAMPLES: &str = "Examples:
  bentpipe agent check agent.toml
  sudo bentpipe agent run agent.toml
  sudo bentpipe agent status
  sudo bentpipe agent undo";

/// Options of `bentpipe agent`.
#[derive(Debug, Args)]
pub(crate) struct Agent {
    /// Folder of session files.
    #[arg(long, value_name = "DIR", global = true, default_value = RUN_FOLDER)]
    run_dir: PathBuf,
    #[command(subcommand)]
    action: Action,
    /// Print the result as JSON.
    #[arg(long, global = true)]
    json: bool,
    /// Name of the agent, if several are running.
    #[arg(long, value_name = "NAME", global = true)]
    name: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Run an agent until it is stopped, then undo all changes.
    ///
    /// SIGTERM and Ctrl-C stop it: it takes no new connections, and waits for those that it has. A second
    /// signal ends the wait; connections that are left are reset.
    Run {
        /// Agent file.
        file: PathBuf,
    },
    /// Print what an agent would take and change, and what this machine lacks. Changes nothing.
    ///
    /// Exit status 2 if the agent would not start.
    Check {
        /// Agent file.
        file: PathBuf,
    },
    /// Print its state: connections, granted rates, bytes.
    Status,
    /// Undo all changes made by agents: killed ones, and running ones, which are stopped first.
    Undo,
    /// Wait for the death of the agent that started this process, and reset its connections.
    #[command(name = "__mourn", hide = true)]
    Mourn {
        /// Agent file.
        file: PathBuf,
    },
}

/// Carries out the action; returns the exit status.
pub(crate) fn run(agent: &Agent) -> Result<u8, Failure> {
    let registry = Registry::at(&agent.run_dir);
    let name = agent.name.as_deref();
    let text = match &agent.action {
        Action::Check { file } => {
            let check = deploy::check(&read(file)?, &registry);
            print_as(&show::check(&file.display().to_string(), &check, agent.json)?, agent.json)?;
            return Ok(if check.site.is_good() { 0 } else { BAD_INPUT });
        }
        Action::Run { file } => {
            let path = &file.display().to_string();
            deploy::run(Deployment { path, registry, log: &mut log }, read(file)?)?;
            return Ok(0);
        }
        Action::Mourn { file } => {
            deploy::mourn(read(file)?, &registry)?;
            return Ok(0);
        }
        Action::Status => {
            let session = deploy::choose(&registry, name)?;
            let status = |Reply::Status(status)| Some(*status);
            let status = Client::connect(&session.base.socket)?.ask(&Request::Status, status)?;
            show::status(&status, agent.json)?
        }
        Action::Undo => {
            let done = deploy::undo(&registry, name)?;
            if done.is_empty() { "nothing to undo\n".to_owned() } else { done.join("\n") + "\n" }
        }
    };
    print_as(&text, agent.json).map(|()| 0)
}

/// Reads an agent file; an error in it is an input error.
fn read(path: &Path) -> Result<AgentFile, Failure> {
    Ok(load(&input::file(path)?)?)
}
