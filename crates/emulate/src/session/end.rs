//! How a session ends.

use super::{Session, Stand};
use crate::leftovers::{self, pause};
use bentpipe_os::process;
use rustix::process::Signal;

impl Session {
    /// Ends what still runs in it, gives the machine's network back as it was, and forgets itself. Namespaces and interfaces go with the process.
    pub fn end(&mut self) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        self.end_background();
        let _ = self.news();
        leftovers::end_inner(&self.registry, &self.id);
        let networks: Vec<u64> = self.hosts.iter().filter(|h| h.own).map(|h| h.inode).collect();
        leftovers::end_processes(&networks, &mut || drop(self.news()));
        if let Some(uplink) = self.uplink.take() {
            uplink.undo(&self.registry, &self.id);
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
