//! How a session ends.

use super::{Session, Stand};
use crate::leftovers;
use crate::registry::{self, Entry};
use crate::uplink;
use bentpipe_base::Duration;
use bentpipe_os::{namespace, process};
use bentpipe_service::wait_until;
use rustix::process::Signal;

impl Session {
    /// Ends what still runs in it. The relay goes on until nothing is left to talk over it.
    pub fn end_programs(&mut self) {
        self.end_background();
        let _ = self.news();
        leftovers::end_inner(&self.registry, &self.id);
        let networks: Vec<u64> = self.hosts.iter().filter(|h| h.own).map(|h| h.inode).collect();
        leftovers::end_processes(&networks, &mut || drop(self.news()));
    }

    /// Ends what still runs in it, gives the machine's network back as it was, and forgets itself. Namespaces
    /// and interfaces go with the process. The relay must have stopped: an uplink's interface goes here, and
    /// the relay's end of it with that.
    pub fn end(&mut self) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        self.end_programs();
        let _lock = self.lock.take().map_or_else(|| registry::lock(&self.registry), Ok);
        // The forwarder first: it uses what goes next.
        self.uplink = None;
        if self.entry.uplink.is_some() {
            // Another session may have left something to this one: the file knows.
            let written = self.registry.entry(&self.id).and_then(|entry: Entry| entry.uplink);
            if let Some(undo) = written.or(self.entry.uplink.take()) {
                // Nobody can be told of what fails here; `doctor` finds it.
                let _ = namespace::in_network(&self.home, || uplink::undo(&undo, &self.registry, &self.id));
            }
        }
        registry::remove(&self.registry, &self.id);
    }

    /// Programs that were to run as long as the session: asked to end, then made to.
    fn end_background(&mut self) {
        /// Time to end in peace.
        const PATIENCE: Duration = Duration::from_secs(1);
        let signal = |session: &Self, signal| {
            session.programs.iter().for_each(|program| program.signal_group(signal));
        };
        signal(self, Signal::TERM);
        let ended = wait_until(PATIENCE, leftovers::STEP, || {
            let _ = self.news();
            !self.programs.iter().any(|p| p.stand == Stand::Background)
        });
        if !ended {
            signal(self, Signal::KILL);
            for program in &self.programs {
                process::signal(program.pid, Signal::KILL);
            }
        }
    }
}
