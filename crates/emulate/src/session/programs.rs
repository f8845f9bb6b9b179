//! Programs in a session: starting, waiting, sending signals.

use super::{FAR_VARIABLE, SESSION_VARIABLE, Session};
use crate::error::Error;
use crate::far::End;
use bentpipe_service::Signals;
use rustix::io::dup;
use rustix::process::{Pid, Signal, WaitOptions, getpgrp, kill_process_group, wait};
use rustix::termios::tcgetpgrp;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;

/// How a program uses the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgramMode {
    /// As if started by the user's shell: gets Ctrl-C from the terminal.
    Foreground,
    /// In its own process group and without input: Ctrl-C does not reach it; it ends with the session.
    Background,
}

/// Catches the signals that a session forwards or ends with, and SIGCHLD. Signals that were ignored when this
/// process was started stay ignored, for the programs that it starts too: `nohup` works.
pub(crate) fn listen() -> Result<Signals, Error> {
    let mut wanted = vec![Signal::TERM, Signal::HUP, Signal::INT, Signal::QUIT, Signal::USR1, Signal::USR2];
    wanted.retain(|signal| !Signals::is_ignored(*signal));
    wanted.push(Signal::CHILD);
    Signals::listen(&wanted).map_err(|e| Error::system("listening to signals", e))
}

#[derive(Debug)]
pub(super) struct Running {
    pub(super) pid: i32,
    pub(super) mode: ProgramMode,
}

impl Session {
    /// Starts a program on a host with our environment, folder and terminal; returns its process id.
    pub(crate) fn start(&mut self, host: usize, argv: &[OsString], stand: ProgramMode) -> Result<i32, Error> {
        let program = argv.first().map_or_else(String::new, |p| p.to_string_lossy().into_owned());
        let fault = |reason: String| Error::Start(program.clone(), reason);
        let (mut answers, answer) = io::pipe().map_err(|e| fault(e.to_string()))?;
        // copies that stay open across `exec`, for the helper only
        let network = dup(&self.hosts[host].network).map_err(|e| fault(e.to_string()))?;
        let report = dup(&answer).map_err(|e| fault(e.to_string()))?;
        let mut command = bentpipe_os::own_program();
        command.arg("__run").arg("--net-fd").arg(network.as_raw_fd().to_string());
        command.arg("--report-fd").arg(report.as_raw_fd().to_string());
        command.arg("--parent").arg(self.entry.process.pid.to_string());
        command.arg("--hosts").arg(self.registry.file(&self.id, "hosts"));
        let names = self.entry.uplink.is_some() || self.connector.is_some();
        if names && self.hosts[host].entry.own {
            command.arg("--resolv").arg(self.registry.file(&self.id, "resolv"));
        }
        command.arg("--").args(argv);
        command.env(SESSION_VARIABLE, &self.id).env(FAR_VARIABLE, &self.entry.far);
        if stand == ProgramMode::Background {
            command.process_group(0).stdin(Stdio::null());
        }
        let mut child = command.spawn().map_err(|e| fault(e.to_string()))?;
        drop((network, report, answer));
        let mut refusal = String::new();
        // returns when the helper has executed the program or reported an error
        let _ = answers.read_to_string(&mut refusal);
        let pid = child.id().cast_signed();
        if !refusal.is_empty() {
            let _ = child.wait();
            return Err(fault(refusal));
        }
        self.programs.push(Running { pid, mode: stand });
        Ok(pid)
    }

    /// Returns the programs that have ended since the last call, and those that were stopped, as by Ctrl-Z,
    /// without an end. Also reaps adopted orphans.
    pub(crate) fn program_events(&mut self) -> Vec<(i32, Option<End>)> {
        let mut all = Vec::new();
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
            let pid = pid.as_raw_nonzero().get();
            let ended = match (status.exit_status(), status.terminating_signal()) {
                (Some(status), _) => Some(End::Exited(status)),
                (_, Some(signal)) => Some(End::Killed(signal)),
                _ if status.stopped() => None,
                _ => continue,
            };
            if self.programs.iter().any(|p| p.pid == pid) {
                all.push((pid, ended));
            }
            if ended.is_some() {
                self.programs.retain(|p| p.pid != pid);
            }
        }
        all
    }

    /// Forwards a signal to the foreground programs. They already have those sent by the terminal;
    /// [`Session::program_events`] handles SIGCHLD.
    pub(crate) fn pass_on(&self, signal: Signal) {
        let typed = signal == Signal::INT || signal == Signal::QUIT;
        if signal == Signal::CHILD || typed && is_foreground() {
            return;
        }
        for program in self.programs.iter().filter(|p| p.mode == ProgramMode::Foreground) {
            bentpipe_os::process::signal(program.pid, signal);
        }
    }
}

impl Running {
    /// Sends a signal to its process group.
    pub(super) fn signal_group(&self, signal: Signal) {
        if let (ProgramMode::Background, Some(pid)) = (self.mode, Pid::from_raw(self.pid)) {
            // it may be gone already
            let _ = kill_process_group(pid, signal);
        }
    }
}

/// True if this process is in the foreground of its terminal.
fn is_foreground() -> bool {
    File::open("/dev/tty").is_ok_and(|tty| tcgetpgrp(&tty).is_ok_and(|group| group == getpgrp()))
}

/// Checks that a program exists and is executable, before anything is set up for it.
pub(crate) fn check_program(name: &OsStr) -> Result<(), Error> {
    use rustix::fs::{Access, access};
    let runs = |path: &std::path::Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let found = if name.as_encoded_bytes().contains(&b'/') {
        runs(name.as_ref())
    } else {
        !name.is_empty() && std::env::split_paths(&path).any(|folder| runs(&folder.join(name)))
    };
    if found { Ok(()) } else { Err(Error::NoProgram(name.to_string_lossy().into_owned())) }
}
