//! The far end's way to the internet for an ordinary user: `pasta` (package passt) or `slirp4netns` connects
//! the far network with sockets of the machine's own network, and changes nothing there.
//!
//! Either has to be started before this process enters a user namespace, since only then it is in the
//! machine's network; it waits for a line that says which network to connect. Packets from behind the link
//! get the address of its interface in the far network, because it knows only that one.

use crate::error::Error;
use crate::etc;
use bentpipe_base::Duration;
use bentpipe_os::netlink::Netlink;
use bentpipe_os::{nft, sysctl};
use bentpipe_service::{Process, wait_until};
use rustix::fs::{Access, access};
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Its interface in the far network.
const INTERFACE: &str = "uplink0";
/// Time in which the interface comes up.
const PATIENCE: Duration = Duration::from_secs(5);
const STEP: Duration = Duration::from_millis(10);
/// Where DNS queries go: an address of our choice with pasta, that of slirp4netns (its manual).
const PASTA_DNS: &str = "169.254.53.53";
const SLIRP_DNS: &str = "10.0.2.3";
const TUN: &str = "/dev/net/tun";

/// Reads which user and network namespace to enter, and becomes the program with its other arguments. Without
/// a line, because this process has ended, it ends too.
const SCRIPT: &str = r#"read -r user network || exit 0
case "$1" in
*pasta) exec "$1" --userns "$user" --netns "$network" --foreground --quiet --config-net --ns-ifname "$2" \
    --mtu 1500 --no-map-gw --dns-forward "$3" -t none -u none -T none -U none ;;
*) exec "$1" --configure --mtu=1500 --disable-host-loopback --userns-path="$user" --netns-type=path \
    "$network" "$2" ;;
esac"#;

/// The program, waiting or connected. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Rootless {
    child: Child,
    name: String,
    dns: &'static str,
}

impl Rootless {
    /// Starts the program that is installed. The process must still be where the user started it.
    pub(crate) fn prepare() -> Result<Self, Error> {
        let (program, dns) = installed().ok_or(Error::UplinkNeedsHelper)?;
        if access(TUN, Access::READ_OK | Access::WRITE_OK).is_err() {
            return Err(Error::Uplink(format!(
                "{} needs {TUN}, which this user cannot open\n\
                 help: sudo chmod 0666 {TUN}, or sudo bentpipe emulate ... --uplink",
                program.display()
            )));
        }
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, "sh"]).arg(&program).args([INTERFACE, dns]).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let name = program.display().to_string();
        let child = command.spawn().map_err(|e| Error::Uplink(format!("{name}: {e}")))?;
        Ok(Self { child, name, dns })
    }

    /// The process, for cleaning up.
    pub(crate) fn process(&self) -> Process {
        Process::of(self.child.id().cast_signed())
    }

    /// Connects the network at the path `network`, in which the calling thread is, and lets it forward.
    pub(crate) fn connect(&mut self, network: &str) -> Result<(), Error> {
        let fault = |why: String| Error::Uplink(why);
        let line = format!("/proc/{}/ns/user {network}\n", std::process::id());
        let sent = self.child.stdin.take().map(|mut input| input.write_all(line.as_bytes()));
        if !matches!(sent, Some(Ok(()))) {
            let said = self.said();
            return Err(fault(format!("{} has ended: {said}", self.name)));
        }
        let mut netlink = Netlink::open()?;
        let mut up = false;
        wait_until(PATIENCE, STEP, || {
            let index = netlink.index(INTERFACE).ok().flatten();
            let routes = netlink.routes().unwrap_or_default();
            up = index.is_some() && routes.iter().any(|r| r.to.1 == 0 && r.interface == index);
            up || !matches!(self.child.try_wait(), Ok(None))
        });
        if !up {
            let why = match self.child.try_wait() {
                Ok(Some(_)) => self.said(),
                _ => format!("it has connected nothing within {PATIENCE}; is there a route to the internet?"),
            };
            return Err(fault(format!("{}: {why}", self.name)));
        }
        for name in ["net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"] {
            sysctl::write_if_there(name, "1").map_err(|e| Error::setting(name, "1", e))?;
        }
        let rules = format!(
            "add table inet bentpipe\n\
             add chain inet bentpipe leave {{ type nat hook postrouting priority 100; policy accept; }}\n\
             add rule inet bentpipe leave oifname \"{INTERFACE}\" masquerade\n"
        );
        nft::run(&rules).map_err(|error| fault(format!("nft refuses the rules: {error}")))
    }

    /// Writes the file that replaces /etc/resolv.conf behind the link.
    pub(crate) fn names(&self, file: &Path) -> Result<(), Error> {
        let ours = fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
        let (text, local) = etc::resolv_conf(&ours);
        // resolvers elsewhere are reached directly, one on this machine by the program
        let first = local.map_or_else(String::new, |_| format!("nameserver {}\n", self.dns));
        fs::write(file, first + &text).map_err(|e| Error::system(file.display().to_string(), e))
    }

    /// What it said before it ended.
    fn said(&mut self) -> String {
        let mut text = String::new();
        let _ = self.child.kill();
        if let Some(mut output) = self.child.stderr.take() {
            // it has ended, so this returns
            let _ = output.read_to_string(&mut text);
        }
        text.trim().to_owned()
    }
}

impl Drop for Rootless {
    fn drop(&mut self) {
        // it may have ended, or have been reaped with the session's programs
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program that would be used.
pub(crate) fn connector() -> Option<PathBuf> {
    installed().map(|(program, _)| program)
}

/// The program that is installed, with the address for DNS queries.
fn installed() -> Option<(PathBuf, &'static str)> {
    let known = [("pasta", PASTA_DNS), ("slirp4netns", SLIRP_DNS)];
    known.into_iter().find_map(|(name, dns)| Some((program(name)?, dns)))
}

/// Finds a program as a shell does.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let found = std::env::split_paths(&path).map(|folder| folder.join(name));
    found.into_iter().find(|file| File::open(file).is_ok() && access(file, Access::EXEC_OK).is_ok())
}
