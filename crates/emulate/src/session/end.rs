//! How a session ends.

use super::{Session, Stand};
use crate::leftovers::{self, pause};
use crate::uplink;
use bentpipe_os::{namespace, process};
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

    /// Ends what still runs in it, gives the machine's network back as it was, and forgets itself. Namespaces and interfaces go with the process. The relay
    /// must have stopped: an uplink's interface goes here, and the relay's end of it with that.
    pub fn end(&mut self) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        self.end_programs();
        let _lock = self.lock.take().map_or_else(|| self.registry.lock(), Ok);
        // The forwarder first: it uses what goes next.
        self.uplink = None;
        if self.entry.uplink.is_some() {
            // Another session may have left something to this one: the file knows.
            let entries = self.registry.entries().into_iter();
            let written = entries.filter(|e| e.id == self.id).find_map(|e| e.uplink);
            if let Some(entry) = written.or(self.entry.uplink.take()) {
                // Nobody can be told of what fails here; `doctor` finds it.
                let _ = namespace::in_network(&self.home, || uplink::undo(&entry, &self.registry, &self.id));
            }
        }
        self.registry.remove(&self.id);
    }

    /// Programs that were to run as long as the session: asked to end, then made to.
    fn end_background(&mut self) {
        /// Time to end in peace.
        const PATIENCE_MS: u32 = 1000;
        const STEP_MS: u32 = 5;
        let signal = |session: &Self, signal| {
            session.programs.iter().for_each(|program| program.signal_group(signal));
        };
        signal(self, Signal::TERM);
        for _ in 0..PATIENCE_MS / STEP_MS {
            let _ = self.news();
            if !self.programs.iter().any(|p| p.stand == Stand::Background) {
                return;
            }
            pause(STEP_MS);
        }
        signal(self, Signal::KILL);
        for program in &self.programs {
            process::signal(program.pid, Signal::KILL);
        }
    }
}
