//! The helper `bentpipe __run`: enters a host's namespaces and executes the program.

use bentpipe_os::{namespace, process};
use rustix::io::Errno;
use rustix::process::getppid;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

/// Sockets of name services, which ignore network namespaces.
const NAME_SERVICES: [&str; 2] = ["/run/nscd/socket", "/run/systemd/resolve/io.systemd.Resolve"];

/// Exit status of shells for "found but not executable".
const NOT_RUN: u8 = 126;

/// Executes the program `argv`; returns only on failure, with the exit status. The session, process `parent`,
/// gets the error through the file descriptor `report`. `network` is the descriptor of the network namespace;
/// `hosts` and `resolv` are mounted over /etc/hosts and /etc/resolv.conf.
pub fn run(
    (network, report): (i32, i32),
    parent: i32,
    hosts: &Path,
    resolv: Option<&Path>,
    argv: &[OsString],
) -> u8 {
    let Ok(report) = process::take_inherited(report) else { return NOT_RUN };
    let become_program = || -> Result<(), String> {
        let fault = |what: &'static str| move |e: Errno| format!("{what}: {e}");
        process::die_with_parent().map_err(fault("asking to end with the session"))?;
        if getppid().is_none_or(|pid| pid.as_raw_nonzero().get() != parent) {
            return Err("the session is gone".to_owned());
        }
        let network = process::take_inherited(network).map_err(fault("the network namespace"))?;
        namespace::enter_network(&network).map_err(fault("entering the network namespace"))?;
        drop(network);
        namespace::new_mount().map_err(fault("a new mount namespace"))?;
        show(hosts, "/etc/hosts").map_err(|e| format!("/etc/hosts: {e}"))?;
        if let Some(resolv) = resolv {
            show(resolv, "/etc/resolv.conf").map_err(|e| format!("/etc/resolv.conf: {e}"))?;
        }
        for service in NAME_SERVICES.map(Path::new) {
            if fs::exists(service).unwrap_or(false) {
                // if this fails, names may be resolved from outside the session
                let _ = namespace::bind(hosts, service);
            }
        }
        let (program, arguments) = argv.split_first().ok_or("no program is named")?;
        Err(Command::new(program).args(arguments).exec().to_string())
    };
    if let Err(reason) = become_program() {
        // fails only if the session is gone
        let _ = File::from(report).write_all(reason.as_bytes());
    }
    NOT_RUN
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
