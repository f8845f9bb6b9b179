//! `bentpipe top`: shows a running session in the terminal, updated a few times a second.

pub(crate) mod screen;
mod view;

use crate::outcome::Failure;
use bentpipe_emulate::client::find;
use bentpipe_live::control::{Reply, Request, State};
use bentpipe_service::Client;
use clap::Args;
use screen::{EVERY, plain, watch};
use std::thread::park_timeout;
use view::lines;

/// Width of printed output in columns.
const COLUMNS: usize = 100;

/// What to watch.
#[derive(Debug, Args)]
pub(crate) struct Top {
    /// Name of the session, if several are running.
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// Print the state once as plain text, and exit.
    #[arg(long)]
    once: bool,
}

/// Shows the session until `q` or until it ends; returns the text to print.
pub(crate) fn run(top: &Top) -> Result<String, Failure> {
    let mut client = find(top.session.as_deref())?;
    let state = look(&mut client)?;
    if top.once {
        park_timeout(EVERY);
        return look(&mut client).map(|state| plain(&lines(&state, u16::MAX), COLUMNS));
    }
    let help = "bentpipe top --once prints it once, bentpipe link show --json for programs";
    watch(("bentpipe top", help, "session"), COLUMNS, state, || look(&mut client), lines)
}

fn look(client: &mut Client<Reply>) -> Result<State, Failure> {
    let state = |reply| if let Reply::State(state) = reply { Some(*state) } else { None };
    Ok(client.ask(&Request::Show, state)?)
}
