//! A host on a LAN, a router, and a host behind an emulated link, each in a network namespace of its own.
//!
//! The link is `bentpipe emulate`. Its far end becomes a router with a second interface to the host on the
//! LAN; its near end is the host that receives.
//!
//! ```text
//! sender a0 -- lan0 router bent0 == emulated link == bent0 receiver
//! ```

use crate::Outcome;
use crate::passage::{Host, in_namespace};
use crate::rig::{Rig, Running, Who, is_asleep, is_root, json, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);

/// Addresses of the host on the LAN, and of the host behind the link.
pub const SENDER: [&str; 2] = ["10.77.1.2", "fd77:1::2"];
/// Kernel settings of a receiver without window scaling and timestamps, and with a window of 65 535 B.
pub const OLD_KERNEL: &str = "cd /proc/sys/net/ipv4 && echo 0 >tcp_window_scaling && echo 0 >tcp_timestamps && echo 4096 131072 131072 >tcp_rmem";

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
#[derive(Debug)]
pub struct Chain {
    // fields drop in this order: programs first, then their namespaces
    session: Running,
    _lan: Option<Running>,
    /// Processes in the namespaces of the hosts.
    hosts: [u32; 3],
    /// The IPv4 address of the sender, and the interfaces of sender and receiver.
    names: [&'static str; 3],
    rig: Rig,
}

impl Chain {
    /// Creates the hosts, with the link of this scenario file; `receiver` is a shell line that sets the
    /// kernel of the receiver. Needs root.
    pub fn new(program: &Path, scenario: &str, receiver: &str) -> Outcome<Self> {
        if !is_root() {
            return Err("routers and their hosts need root".to_owned());
        }
        let rig = Rig::new(program, Who::CurrentUser)?;
        let scenario = rig.file("hop.toml", scenario)?;
        let [near, far] = ["near.pid", "far.pid"].map(|name| rig.path(name));
        let here = |path: &Path| format!("echo $$ >'{}'; exec sleep infinity", path.display());
        let (out, near_line) = (rig.path("session").display().to_string(), here(&near));
        let far_line = here(&far);
        let words = [
            "emulate",
            &scenario,
            "--out",
            &out,
            "--far",
            &far_line,
            "--far-ready",
            "off",
            "--",
            "sh",
            "-c",
            &near_line,
        ];
        let session = rig.start(&words)?;
        let sleep = rig.command(Path::new("unshare"), &["--net", "--", "sleep", "infinity"]);
        let lan = rig.spawn(sleep, "the host at the LAN")?;
        let [near, far] = [pid(&near)?, pid(&far)?];
        let script = format!("far={far}; lan={}; {CONNECT} at {near} '{receiver}'", lan.id());
        wait_for("the network of the host at the LAN", || Ok(is_asleep(lan.id())))?;
        rig.shell(&script, LIMIT)?;
        let hosts = [lan.id(), far, near];
        Ok(Self { session, _lan: Some(lan), hosts, names: [SENDER[0], "a0", "bent0"], rig })
    }

    /// The hosts of another bed: a running program, processes in the namespaces of sender, router and
    /// receiver, the IPv4 address of the sender, and the interfaces of sender and receiver.
    pub const fn of(rig: Rig, session: Running, hosts: [u32; 3], names: [&'static str; 3]) -> Self {
        Self { session, _lan: None, hosts, names, rig }
    }

    /// The IPv4 address of the sender.
    pub const fn sender(&self) -> &'static str {
        self.names[0]
    }

    /// The interface of the sender or of the receiver.
    pub const fn interface(&self, host: Host) -> &'static str {
        if matches!(host, Host::Sender) { self.names[1] } else { self.names[2] }
    }

    /// The folder and the program under test.
    pub const fn rig(&self) -> &Rig {
        &self.rig
    }

    /// Runs `act` in a thread in the namespace of a host.
    pub fn at<T: Send>(&self, host: Host, act: impl FnOnce() -> Outcome<T> + Send) -> Outcome<T> {
        in_namespace(self.hosts[host as usize], act)
    }

    /// Starts a program on a host.
    pub fn start(&self, host: Host, words: &[&str]) -> Outcome<Running> {
        let net = format!("--net=/proc/{}/ns/net", self.hosts[host as usize]);
        let command = self.rig.command(Path::new("nsenter"), &[&[&*net, "--"], words].concat());
        self.rig.spawn(command, &words.join(" "))
    }

    /// Runs a shell script on a host, which must succeed; returns its standard output.
    pub fn shell(&self, host: Host, script: &str, limit: Duration) -> Outcome<String> {
        Ok(self.start(host, &["sh", "-ec", script])?.wait(limit)?.succeeded(script)?.out)
    }

    /// Ends the link; returns the report of its session.
    pub fn report(self) -> Outcome<Value> {
        let near = Pid::from_raw(self.hosts[Host::Receiver as usize] as i32);
        // it only sleeps
        let _ = near.map(|near| kill_process(near, Signal::TERM));
        self.session.wait(LIMIT)?;
        json(&self.rig.path("session/report.json"))
    }
}

/// Kills a program and waits until it is gone.
pub fn kill(program: &mut Running) -> Outcome<()> {
    program.signal(Signal::KILL);
    wait_for("the end of a killed program", || program.has_ended())
}

/// The process id in a file, once it is there.
pub fn pid(path: &Path) -> Outcome<u32> {
    let mut found = None;
    wait_for("a process id in a file", || {
        found = fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok());
        Ok(found.is_some())
    })?;
    found.ok_or_else(|| format!("{}: no process", path.display()))
}
