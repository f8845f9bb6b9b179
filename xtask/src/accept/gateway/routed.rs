//! A gateway on a router in front of an emulated hop: a host on the LAN, the router, and a host behind the
//! hop, each in its own namespace.
//!
//! The hop is `bentpipe emulate`. Its far end becomes a router with a second interface to the sending host;
//! its near end is the receiving host.

use super::runs::OLD_KERNEL;
use crate::Outcome;
use lab::passage::{Host, in_namespace};
use lab::rig::{Rig, Running, Who, is_asleep, is_root, wait_for};
use lab::scenario::OneLink;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);

pub(super) const SENDER: [&str; 2] = ["10.77.1.2", "fd77:1::2"];

/// Connects the router to the host on the LAN. `$far` and `$lan` are processes in their namespaces.
const CONNECT: &str = "
at() { nsenter --net=/proc/$1/ns/net -- sh -ec \"$2\"; }
at $far \"ip link add name lan0 type veth peer name a0 netns $lan
ip addr add 10.77.1.1/24 dev lan0; ip -6 addr add fd77:1::1/64 dev lan0 nodad
# neighbour discovery needs a link-local address (RFC 4861, section 7.2.2), which the hop does not assign
ip -6 addr add fe80::1/64 dev lan0 nodad; ip link set lan0 up
echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding\"
# the default of 4 MB includes bookkeeping and allows only 19.7 Mbit/s at an RTT of 1 s
at $lan 'echo 4096 16384 67108864 >/proc/sys/net/ipv4/tcp_wmem; ip link set lo up; ip addr add 10.77.1.2/24 dev a0; ip -6 addr add fd77:1::2/64 dev a0 nodad; ip link set a0 up
ip route add default via 10.77.1.1; ip -6 route add default via fd77:1::1'
";

/// The three hosts. Dropping it ends everything in them.
pub(super) struct Routed {
    // fields drop in this order: programs first, then their namespaces
    _session: Running,
    _lan: Running,
    /// Processes in the namespaces of the hosts.
    hosts: [u32; 3],
    rig: Rig,
}

impl Routed {
    /// Creates the hosts; the receiver has the settings of an old kernel.
    pub(super) fn new(program: &Path, link: &OneLink<'_>) -> Outcome<Self> {
        if !is_root() {
            return Err("a routed gateway needs root".to_owned());
        }
        let rig = Rig::new(program, Who::CurrentUser)?;
        let scenario = rig.file("hop.toml", &link.toml())?;
        let [near, far] = ["near.pid", "far.pid"].map(|name| rig.path(name));
        let here = |path: &Path| format!("echo $$ >'{}'; exec sleep 1000", path.display());
        let words = ["emulate", &scenario, "--far", &here(&far), "--", "sh", "-c", &here(&near)];
        let session = rig.start(&words)?;
        let sleep = rig.command(Path::new("unshare"), &["--net", "--", "sleep", "1000"]);
        let lan = rig.spawn(sleep, "the host at the LAN")?;
        let [near, far] = [pid(&near)?, pid(&far)?];
        let script = format!("far={far}; lan={}; {CONNECT} at {near} '{OLD_KERNEL}'", lan.id());
        wait_for("the network of the host at the LAN", || Ok(is_asleep(lan.id())))?;
        rig.shell(&script, LIMIT)?;
        let hosts = [lan.id(), far, near];
        Ok(Self { _session: session, _lan: lan, hosts, rig })
    }

    /// Runs `act` in a thread in the namespace of a host.
    pub(super) fn at<T: Send>(&self, host: Host, act: impl FnOnce() -> Outcome<T> + Send) -> Outcome<T> {
        in_namespace(self.hosts[host as usize], act)
    }

    fn command(&self, words: &[&str]) -> Outcome<Running> {
        let net = format!("--net=/proc/{}/ns/net", self.hosts[Host::Router as usize]);
        let program = self.rig.program().display().to_string();
        let folder = self.rig.path("gateway").display().to_string();
        let words = [&[&*net, "--", &program, "gateway"], words, &["--run-dir", &folder]].concat();
        self.rig.spawn(self.rig.command(Path::new("nsenter"), &words), &words[3..].join(" "))
    }

    /// Starts the gateway on the router for a hop of this rate, and waits until it runs.
    pub(super) fn gateway(&self, rate: &str) -> Outcome<Running> {
        let text = format!(
            "schema = 1\n[satellite]\nrate = \"{rate}\"\n[deploy]\nkind = \"routed\"\nlan = \"lan0\"\nsatellite = \"bent0\"\nwatch = \"0 s\"\n"
        );
        let mut gateway = self.command(&["run", &self.rig.file("gateway.toml", &text)?])?;
        gateway.wait_for_stderr("event=\"started\"")?;
        Ok(gateway)
    }

    /// The gateway's flow list.
    pub(super) fn flows(&self) -> Outcome<Vec<Value>> {
        let done = self.command(&["flows", "--json", "--most", "1000"])?.wait(LIMIT)?;
        let page: Value =
            serde_json::from_str(&done.out).map_err(|_| format!("flows: {}", done.describe()))?;
        Ok(page["flows"].as_array().cloned().unwrap_or_default())
    }

    /// Kills a gateway and waits until nothing of it is left.
    pub(super) fn kill(gateway: &mut Running) -> Outcome<()> {
        gateway.signal(Signal::KILL);
        wait_for("the end of a killed gateway", || gateway.has_ended())
    }
}

/// The process id in a file, once it is there.
pub(super) fn pid(path: &Path) -> Outcome<u32> {
    let mut found = None;
    wait_for("a process id in a file", || {
        found = fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok());
        Ok(found.is_some())
    })?;
    found.ok_or_else(|| format!("{}: no process", path.display()))
}
