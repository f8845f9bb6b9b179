//! `bentpipe top`: shows a running session in the terminal, updated a few times a second.

mod view;

use crate::outcome::Failure;
use bentpipe_emulate::client::find;
use bentpipe_live::control::{Reply, Request, State};
use bentpipe_service::Client;
use clap::Args;
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use std::io::{self, IsTerminal as _};
use std::thread::park_timeout;
use std::time::Duration;

/// Interval between updates.
const EVERY: Duration = Duration::from_millis(300);
/// Width of printed output in columns.
const COLUMNS: u16 = 100;

/// What to watch.
#[derive(Debug, Args)]
pub(crate) struct Top {
    /// Which session, when several are running.
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// Print it once, as plain text, and end.
    #[arg(long)]
    once: bool,
}

/// Shows the session until `q` or until it ends; returns the text to print.
pub(crate) fn run(top: &Top) -> Result<String, Failure> {
    let mut client = find(top.session.as_deref())?;
    let state = look(&mut client)?;
    if top.once {
        park_timeout(EVERY);
        return look(&mut client).map(|state| view::plain(&state, COLUMNS));
    }
    let help = "bentpipe top --once prints it once, bentpipe link show --json for programs";
    watch(
        ("bentpipe top", help),
        state,
        || look(&mut client),
        |frame, state| frame.render_widget(view::View(state), frame.area()),
        |state| format!("The session has ended.\n{}", view::plain(state, COLUMNS)),
    )
}

/// Shows the result of `look` repeatedly until `q`. Returns the text to print: nothing, or the result of
/// `end` if the service has ended. `name` is the command, `help` what to use if there is no terminal.
pub(crate) fn watch<T>(
    (name, help): (&str, &str),
    mut now: T,
    mut look: impl FnMut() -> Result<T, Failure>,
    draw: impl Fn(&mut Frame<'_>, &T),
    end: impl Fn(&T) -> String,
) -> Result<String, Failure> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Failure::Input(format!("{name} needs a terminal\nhelp: {help}")));
    }
    let terminal = |error: io::Error| Failure::Run(format!("the terminal: {error}"));
    let mut screen = ratatui::try_init().map_err(terminal)?;
    let ended = loop {
        if let Err(error) = screen.draw(|frame| draw(frame, &now)) {
            break Err(terminal(error));
        }
        match quits() {
            Ok(true) => break Ok(String::new()),
            Ok(false) => {}
            Err(error) => break Err(terminal(error)),
        }
        match look() {
            Ok(next) => now = next,
            // the last state shown is the final one
            Err(_) => break Ok(end(&now)),
        }
    };
    ratatui::restore();
    ended
}

fn look(client: &mut Client<Reply>) -> Result<State, Failure> {
    let state = |reply| if let Reply::State(state) = reply { Some(*state) } else { None };
    Ok(client.ask(&Request::Show, state)?)
}

/// Waits until the next update; returns true if the user quits.
fn quits() -> io::Result<bool> {
    if !event::poll(EVERY)? {
        return Ok(false);
    }
    let Event::Key(key) = event::read()? else { return Ok(false) };
    let control_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    let quit = matches!(key.code, KeyCode::Char('q' | 'Q') | KeyCode::Esc) || control_c;
    Ok(quit && key.kind == KeyEventKind::Press)
}
