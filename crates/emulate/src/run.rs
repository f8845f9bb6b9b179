//! The helper `bentpipe __run`: goes to a host and becomes the program.

use bentpipe_os::{namespace, process};
use rustix::process::getppid;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the helper is told.
#[derive(Debug)]
pub struct Run {
    /// Number of the open descriptor of the network namespace.
    pub network: i32,
    /// Number of the open descriptor to which a refusal is written.
    pub report: i32,
    /// Process number of the session.
    pub parent: i32,
    /// What to show in the place of /etc/hosts.
    pub hosts: PathBuf,
    /// What to show in the place of /etc/resolv.conf.
    pub resolv: Option<PathBuf>,
    /// The program and its arguments.
    pub argv: Vec<OsString>,
}

/// Name services that answer from outside, over sockets in the file system that know no network namespace.
const NAME_SERVICES: [&str; 2] = ["/run/nscd/socket", "/run/systemd/resolve/io.systemd.Resolve"];

impl Run {
    /// Becomes the program; returns only when that fails, with the exit status. The session hears why.
    pub fn run(&self) -> u8 {
        /// By convention of shells: found, but not to be run.
        const NOT_RUN: u8 = 126;
        let Ok(report) = process::take_inherited(self.report) else { return NOT_RUN };
        if let Err(reason) = self.become_program() {
            // If the session is gone there is nobody left to tell.
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
                // Without it, names are looked up less well, but not wrongly for lack of trying.
                let _ = namespace::bind(&self.hosts, service);
            }
        }
        let (program, arguments) = self.argv.split_first().ok_or("no program is named")?;
        Err(Command::new(program).args(arguments).exec().to_string())
    }
}

/// Shows a file in the place of another, which may be a symbolic link.
fn show(file: &Path, place: &str) -> io::Result<()> {
    let place = match fs::canonicalize(place) {
        Ok(place) => place,
        // Some containers have none; then names are found by their addresses only.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    namespace::bind(file, &place).map_err(io::Error::from)
}
