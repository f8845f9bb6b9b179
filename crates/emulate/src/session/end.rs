//! Ending a session.

use super::{ProgramMode, Session};
use crate::registry::{self, Entry};
use crate::{leftovers, uplink};
use bentpipe_base::Duration;
use bentpipe_os::{namespace, process};
use bentpipe_service::wait_until;
use rustix::process::Signal;

impl Session {
    /// Ends the programs in it. The relay keeps running until they are gone.
    pub(crate) fn end_programs(&mut self) {
        self.end_background();
        let _ = self.program_events();
        leftovers::end_nested_sessions(&self.registry, &self.id);
        let own = self.hosts.iter().map(|h| &h.entry).filter(|h| h.own);
        let networks: Vec<u64> = own.map(|h| h.network).collect();
        leftovers::end_processes(&networks, &mut || drop(self.program_events()));
    }

    /// Ends the programs in it, undoes the changes to the machine's network, and removes its entry.
    /// Namespaces and interfaces go with the process. The relay must have stopped: this removes an uplink's
    /// interface, and with it the relay's end.
    pub(crate) fn end(&mut self) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        self.end_programs();
        let _lock = self.lock.take().map_or_else(|| registry::lock(&self.registry), Ok);
        // the DNS forwarder first: it uses what is removed next
        self.forwarder = None;
        self.connector = None;
        if self.entry.uplink.is_some() {
            // another session may have added settings to undo to our entry
            let written = self.registry.entry(&self.id).and_then(|entry: Entry| entry.uplink);
            if let Some(undo) = written.or(self.entry.uplink.take()) {
                // nobody to report errors to; `doctor` finds what is left
                let _ = namespace::in_network(&self.home, || uplink::undo(&undo, &self.registry, &self.id));
            }
        }
        self.registry.remove(&self.id, &registry::KINDS);
    }

    /// Ends the background programs: SIGTERM, then SIGKILL.
    fn end_background(&mut self) {
        /// Time to end after SIGTERM.
        const PATIENCE: Duration = Duration::from_secs(1);
        self.programs.iter().for_each(|program| program.signal_group(Signal::TERM));
        let ended = wait_until(PATIENCE, leftovers::STEP, || {
            let _ = self.program_events();
            !self.programs.iter().any(|p| p.mode == ProgramMode::Background)
        });
        if !ended {
            for program in &self.programs {
                program.signal_group(Signal::KILL);
                process::signal(program.pid, Signal::KILL);
            }
        }
    }
}
