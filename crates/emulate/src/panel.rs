//! The control socket of a running session, and its connection to the link.

use crate::session::Session;
use bentpipe_live::Running;
use bentpipe_live::control::{Command, FlowState, Reply};
use bentpipe_service::{Server, SystemError};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// How long to wait for the data thread's answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The control socket of a session.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    pub(crate) server: Server,
    session: String,
    title: String,
}

impl ControlSocket {
    /// Opens the socket of `session`. Every reply contains the session's name and title.
    pub(crate) fn open(session: &Session, title: &str) -> Result<Self, SystemError> {
        let server = Server::bind(&session.registry.file(&session.id, "sock"))?;
        Ok(Self { server, session: session.id.clone(), title: title.to_owned() })
    }

    /// Answers requests; `flows` gives the state of TCP connections. Returns a log line for each change.
    pub(crate) fn serve(&mut self, link: &Running, flows: &mut dyn FnMut() -> Vec<FlowState>) -> Vec<String> {
        let mut log = Vec::new();
        let Self { server, session, title } = self;
        let silent = "the link has ended or does not answer";
        server.serve(&mut |request| {
            let (reply, answer) = sync_channel(1);
            link.command(Command { request, reply });
            let mut reply = answer.recv_timeout(PATIENCE).unwrap_or_else(|_| Err(silent.into()))?;
            match &mut reply {
                Reply::State(state) => {
                    state.session.clone_from(session);
                    state.title.clone_from(title);
                    state.flows = flows();
                }
                Reply::Done(done) => log.extend(done.lines()),
            }
            Ok(reply)
        });
        log
    }
}
