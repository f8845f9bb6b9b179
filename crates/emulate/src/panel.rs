//! The control socket of a running session, its address for metrics, and their connection to the link.

use crate::error::Error;
use crate::metrics::metrics;
use crate::plan::Plan;
use crate::session::Session;
use bentpipe_live::Running;
use bentpipe_live::control::{Command, FlowState, Reply, Request};
use bentpipe_service::{Http, Refusal, Server, SystemError};
use std::os::fd::BorrowedFd;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// How long to wait for the data thread's answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Opens the address for metrics, while this process is in the network where it was started.
pub(crate) fn listen(plan: &Plan) -> Result<Option<Http>, Error> {
    let open = |at| Http::bind(at).map_err(|error| Error::Metrics(at, error));
    plan.metrics.map(open).transpose()
}

/// Where others ask a session for its state.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    server: Server,
    http: Option<Http>,
    names: Names,
}

/// Every reply contains the session's name and title.
#[derive(Debug)]
struct Names {
    session: String,
    title: String,
}

impl ControlSocket {
    /// Opens the socket of `session`.
    pub(crate) fn open(session: &Session, title: &str, http: Option<Http>) -> Result<Self, SystemError> {
        let server = Server::bind(&session.registry.file(&session.id, "sock"))?;
        let names = Names { session: session.id.clone(), title: title.to_owned() };
        Ok(Self { server, http, names })
    }

    /// Descriptors to wait for: call [`ControlSocket::serve`] when one is readable.
    pub(crate) fn fds(&self) -> Vec<BorrowedFd<'_>> {
        let mut all: Vec<_> = self.server.fds().into_iter().collect();
        all.extend(self.http.iter().flat_map(Http::fds));
        all
    }

    /// True if [`ControlSocket::serve`] should be called again soon, even if nothing is readable.
    pub(crate) fn is_behind(&self) -> bool {
        self.server.is_behind() || self.http.as_ref().is_some_and(Http::is_behind)
    }

    /// Answers requests; `flows` gives the state of TCP connections. Returns a log line for each change.
    pub(crate) fn serve(&mut self, link: &Running, flows: &mut dyn FnMut() -> Vec<FlowState>) -> Vec<String> {
        let mut log = Vec::new();
        let Self { server, http, names } = self;
        server.serve(&mut |request| {
            let reply = names.ask(link, request, flows)?;
            if let Reply::Done(done) = &reply {
                log.extend(done.lines());
            }
            Ok(reply)
        });
        if let Some(http) = http {
            http.serve(&mut || match names.ask(link, Request::Show, flows) {
                Ok(Reply::State(state)) => metrics(&state),
                // a link that has ended has none
                _ => String::new(),
            });
        }
        log
    }
}

impl Names {
    /// Asks the data thread.
    fn ask(
        &self,
        link: &Running,
        request: Request,
        flows: &mut dyn FnMut() -> Vec<FlowState>,
    ) -> Result<Reply, Refusal> {
        let (reply, answer) = sync_channel(1);
        link.command(Command { request, reply });
        let silent = || Err("the link has ended or does not answer".into());
        let mut reply = answer.recv_timeout(PATIENCE).unwrap_or_else(|_| silent())?;
        if let Reply::State(state) = &mut reply {
            state.session.clone_from(&self.session);
            state.title.clone_from(&self.title);
            state.flows = flows();
        }
        Ok(reply)
    }
}
