//! A gateway on a router before an emulated hop: a host at the LAN, the router, and a host behind the hop, in namespaces of their own.
//!
//! The hop is `bentpipe emulate`. Its far end is made a router with one more interface, behind which stands the host that sends; its near end is the host that receives.

use crate::Outcome;
use crate::rig::{Rig, Running, Who, is_root};
use crate::scenario::OneLink;
use rustix::process::Signal;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;
use std::fs::{self, File};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// How long a start may take.
const LIMIT: Duration = Duration::from_secs(20);
const GLANCE: Duration = Duration::from_millis(20);

/// The sender's addresses.
pub const SENDER: [&str; 2] = ["10.77.1.2", "fd77:1::2"];

/// An interface from the router to the host at the LAN. `$far` and `$lan` are processes in their namespaces.
const CONNECT: &str = "
at() { nsenter --net=/proc/$1/ns/net -- sh -ec \"$2\"; }
at $far \"ip link add name lan0 type veth peer name a0 netns $lan
ip addr add 10.77.1.1/24 dev lan0; ip -6 addr add fd77:1::1/64 dev lan0 nodad
# without an address of the link a router asks nobody where a host is (RFC 4861, section 7.2.2), and the hop gives none
ip -6 addr add fe80::1/64 dev lan0 nodad; ip link set lan0 up
echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding\"
# the kernel's own limit of what waits to be acknowledged, 4 MB with what it takes to hold it, is 19.7 Mbit/s over a second
at $lan 'echo 4096 16384 67108864 >/proc/sys/net/ipv4/tcp_wmem; ip link set lo up; ip addr add 10.77.1.2/24 dev a0; ip -6 addr add fd77:1::2/64 dev a0 nodad; ip link set a0 up
ip route add default via 10.77.1.1; ip -6 route add default via fd77:1::1'
";
/// A receiver of 2002: 64 KB, no scaling, no timestamps.
const OLD: &str = "echo 0 >/proc/sys/net/ipv4/tcp_window_scaling; echo 0 >/proc/sys/net/ipv4/tcp_timestamps
echo 4096 131072 131072 >/proc/sys/net/ipv4/tcp_rmem";

/// The three places. Dropping it ends everything in them.
#[derive(Debug)]
pub struct Routed {
    // dropped in this order: programs first, then the place they are in
    session: Running,
    lan: Running,
    nets: [File; 3],
    rig: Rig,
    far: u32,
}

/// A host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// At the LAN, where data comes from.
    Sender,
    /// With the gateway.
    Router,
    /// Behind the hop.
    Receiver,
}

impl Routed {
    /// Makes it, with a receiver of the old kind.
    ///
    /// # Errors
    /// When we are not root, or a program fails.
    pub fn new(program: &Path, link: &OneLink<'_>) -> Outcome<Self> {
        if !is_root() {
            return Err("a routed gateway needs root".to_owned());
        }
        let rig = Rig::new(program, Who::Ourselves)?;
        let scenario = rig.file("hop.toml", &link.toml())?;
        let [near, far] = ["near.pid", "far.pid"].map(|name| rig.path(name));
        let here = |path: &Path| format!("echo $$ >'{}'; exec sleep 1000", path.display());
        let words = ["emulate", &scenario, "--far", &here(&far), "--", "sh", "-c", &here(&near)];
        let session = rig.start(&words)?;
        let sleep = rig.command(Path::new("unshare"), &["--net", "--", "sleep", "1000"]);
        let lan = rig.begin(sleep, "the host at the LAN")?;
        let [near, far] = [pid(&near)?, pid(&far)?];
        let script = format!("far={far}; lan={}; {CONNECT} at {near} '{OLD}'", lan.id());
        until("the network of the host at the LAN", || Ok(net(lan.id())? != net(std::process::id())?))?;
        rig.shell(&script, LIMIT)?;
        let open =
            |pid: u32| File::open(format!("/proc/{pid}/ns/net")).map_err(|e| format!("process {pid}: {e}"));
        let nets = [open(lan.id())?, open(far)?, open(near)?];
        Ok(Self { session, lan, nets, rig, far })
    }

    /// Does something in the network of a host, in a thread of its own.
    ///
    /// # Errors
    /// When it fails.
    pub fn at<T: Send>(&self, host: Host, act: impl FnOnce() -> Outcome<T> + Send) -> Outcome<T> {
        let net = &self.nets[host as usize];
        thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let kind = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(net.as_fd(), kind).map_err(|e| format!("a namespace: {e}"))?;
                act()
            });
            thread.join().map_err(|_| "a measuring thread panicked".to_owned())?
        })
    }

    fn command(&self, words: &[&str]) -> Outcome<Running> {
        let (net, program) =
            (format!("--net=/proc/{}/ns/net", self.far), self.rig.program().display().to_string());
        let folder = self.rig.path("gateway").display().to_string();
        let words = [&[&*net, "--", &program, "gateway"], words, &["--run-dir", &folder]].concat();
        self.rig.begin(self.rig.command(Path::new("nsenter"), &words), &words[3..].join(" "))
    }

    /// Starts the gateway on the router, for a hop of this rate, and waits until it has started.
    ///
    /// # Errors
    /// When it does not.
    pub fn gateway(&self, rate: &str) -> Outcome<Running> {
        let text = format!(
            "schema = 1\n[satellite]\nrate = \"{rate}\"\n[deploy]\nkind = \"routed\"\nlan = \"lan0\"\nsatellite = \"bent0\"\nwatch = \"0 s\"\n"
        );
        let mut gateway = self.command(&["run", &self.rig.file("gateway.toml", &text)?])?;
        until("the gateway's start", || {
            if gateway.has_ended()? {
                return Err(format!("the gateway has ended: {}", gateway.err()));
            }
            Ok(gateway.err().contains("event=\"started\""))
        })?;
        Ok(gateway)
    }

    /// The gateway's connections.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn flows(&self) -> Outcome<Vec<Value>> {
        let done = self.command(&["flows", "--json", "--most", "1000"])?.wait(LIMIT)?;
        let page: Value = serde_json::from_str(&done.out).map_err(|_| format!("flows: {}", done.story()))?;
        Ok(page["flows"].as_array().cloned().unwrap_or_default())
    }

    /// Kills a gateway and waits until nothing of it is there.
    ///
    /// # Errors
    /// When it stays.
    pub fn kill(&self, gateway: &mut Running) -> Outcome<()> {
        gateway.signal(Signal::KILL);
        until("the end of a killed gateway", || gateway.has_ended())
    }

    /// True while the hop and the hosts are there.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn is_there(&mut self) -> Outcome<bool> {
        Ok(!self.session.has_ended()? && !self.lan.has_ended()?)
    }
}

fn net(pid: u32) -> Outcome<std::path::PathBuf> {
    fs::read_link(format!("/proc/{pid}/ns/net")).map_err(|e| format!("process {pid}: {e}"))
}

fn pid(path: &Path) -> Outcome<u32> {
    let mut found = None;
    until("the two ends of the hop", || {
        found = fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok());
        Ok(found.is_some())
    })?;
    found.ok_or_else(|| format!("{}: no process", path.display()))
}

fn until(what: &str, mut is_so: impl FnMut() -> Outcome<bool>) -> Outcome<()> {
    let since = Instant::now();
    while !is_so()? {
        if since.elapsed() > LIMIT {
            return Err(format!("{what}: not within {} s", LIMIT.as_secs()));
        }
        thread::sleep(GLANCE);
    }
    Ok(())
}
