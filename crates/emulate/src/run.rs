//! The helper `bentpipe __run`: enters a host's namespaces and executes the program.

use bentpipe_os::{namespace, process};
use rustix::process::getppid;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Arguments of the helper.
#[derive(Debug)]
pub struct Run {
    /// File descriptor of the network namespace.
    pub network: i32,
    /// File descriptor to which an error is written.
    pub report: i32,
    /// Process id of the session.
    pub parent: i32,
    /// File to mount over /etc/hosts.
    pub hosts: PathBuf,
    /// File to mount over /etc/resolv.conf.
    pub resolv: Option<PathBuf>,
    /// The program and its arguments.
    pub argv: Vec<OsString>,
}

/// Sockets of name services, which ignore network namespaces.
const NAME_SERVICES: [&str; 2] = ["/run/nscd/socket", "/run/systemd/resolve/io.systemd.Resolve"];

impl Run {
    /// Executes the program; returns only on failure, with the exit status. The session gets the error.
    pub fn run(&self) -> u8 {
        /// Exit status of shells for "found but not executable".
        const NOT_RUN: u8 = 126;
        let Ok(report) = process::take_inherited(self.report) else { return NOT_RUN };
        if let Err(reason) = self.become_program() {
            // fails only if the session is gone
            let _ = File::from(report).write_all(reason.as_bytes());
        }
        NOT_RUN
    }

    fn become_program(&self) -> Result<(), String> {
        let fault = |what: &'static str| move |e: rustix::io::Errno| format!("{what}: {e}");
        process::die_with_parent().map_err(fault("asking to end with the session"))?;
        if getppid().is_none_or(|pid| pid.as_raw_nonzero().get() != self.parent) {
            return Err("the session is gone".to_owned());
        }
        let network = process::take_inherited(self.network).map_err(fault("the network namespace"))?;
        namespace::enter_network(&network).map_err(fault("entering the network namespace"))?;
        drop(network);
        namespace::new_mount().map_err(fault("a new mount namespace"))?;
        show(&self.hosts, "/etc/hosts").map_err(|e| format!("/etc/hosts: {e}"))?;
        if let Some(resolv) = &self.resolv {
            show(resolv, "/etc/resolv.conf").map_err(|e| format!("/etc/resolv.conf: {e}"))?;
        }
        for service in NAME_SERVICES.map(Path::new) {
            if fs::exists(service).unwrap_or(false) {
                // if this fails, names may be resolved from outside the session
                let _ = namespace::bind(&self.hosts, service);
            }
        }
        let (program, arguments) = self.argv.split_first().ok_or("no program is named")?;
        Err(Command::new(program).args(arguments).exec().to_string())
    }
}

/// Mounts a file over another one, which may be a symbolic link.
fn show(file: &Path, place: &str) -> io::Result<()> {
    let place = match fs::canonicalize(place) {
        Ok(place) => place,
        // some containers have none; then names do not resolve
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    namespace::bind(file, &place).map_err(io::Error::from)
}
