//! A sender, a router and a receiver in separate network namespaces. The router uses kernel forwarding or a
//! gateway.
//!
//! ```text
//! sender ls -- rs router rc -- lc receiver     routed: by the kernel alone, or by the gateway and the kernel
//! sender is -- ri router rj -- ic receiver     inline: by the gateway, as if it were a wire
//! ```

use crate::rig::{Rig, Running, is_asleep, take_json, wait_for};
use crate::speed::received_bps;
use crate::{Outcome, join};
use rustix::process::Signal;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::Duration;

/// Time limit for a program to start or to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// Shell code for the two pairs of links with their addresses, routes and neighbour entries.
const LINKS: &str = "
ip link add name ls netns $s type veth peer name rs netns $r
ip link add name lc netns $c type veth peer name rc netns $r
ip link add name is netns $s type veth peer name ri netns $r
ip link add name ic netns $c type veth peer name rj netns $r
at() { p=$1; shift; nsenter --target $p --net -- \"$@\"; }
at $r sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward; for i in ri rj; do echo 1 >/proc/sys/net/ipv6/conf/$i/disable_ipv6; done'
for p in $s $r $c; do at $p ip link set lo up; at $p ip link set dev lo txqueuelen 20000; done
at $s ip addr add 10.9.1.1/24 dev ls; at $r ip addr add 10.9.1.2/24 dev rs
at $c ip addr add 10.9.2.1/24 dev lc; at $r ip addr add 10.9.2.2/24 dev rc
at $s ip addr add 10.9.3.1/24 dev is; at $c ip addr add 10.9.3.2/24 dev ic
at $s ip link set ls up; at $s ip link set is up; at $c ip link set lc up; at $c ip link set ic up
for i in rs rc ri rj; do at $r ip link set $i up; done
# no host has these addresses, so packets to them reach a host that drops them without an answer
mac() { at $1 ip -br link show $2 | awk '{print $3}'; }
at $r ip neigh add 10.9.1.200 lladdr $(mac $s ls) dev rs; at $r ip neigh add 10.9.2.200 lladdr $(mac $c lc) dev rc
at $s ip route add default via 10.9.1.2; at $c ip route add default via 10.9.2.2";

/// A host of the passage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// The host on the LAN, which sends.
    Sender,
    /// The host with the gateway.
    Router,
    /// The host on the satellite side.
    Receiver,
}

/// How the gateway is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatewayKind {
    /// Packet sockets on two interfaces.
    Inline,
    /// Two TUN interfaces, with kernel forwarding on both sides.
    Routed,
}

/// What forwards the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarding {
    /// Kernel forwarding.
    Kernel,
    /// A loop that copies packets between the ports without inspection.
    Bare(GatewayKind),
    /// A gateway whose rules pass every connection. If routed without a rate, the kernel forwards them.
    Passing(GatewayKind),
    /// A gateway that accelerates every connection.
    Accelerated(GatewayKind),
}

impl Forwarding {
    /// Addresses of the sender and the receiver; kernel forwarding uses those of the routed gateway.
    pub const fn ends(self) -> [&'static str; 2] {
        match self {
            Self::Bare(GatewayKind::Inline)
            | Self::Passing(GatewayKind::Inline)
            | Self::Accelerated(GatewayKind::Inline) => ["10.9.3.1", "10.9.3.2"],
            _ => ["10.9.1.1", "10.9.2.1"],
        }
    }
}

/// The hosts. Dropping it removes them.
#[derive(Debug)]
pub struct RouterTestbed {
    rig: Rig,
    hosts: [Running; 3],
}

/// Runs `act` in a thread whose sockets are in the network namespace of a process.
pub fn in_namespace<T: Send>(process: u32, act: impl FnOnce() -> Outcome<T> + Send) -> Outcome<T> {
    let path = format!("/proc/{process}/ns/net");
    let enter = || {
        let net = File::open(&path).map_err(|e| format!("{path}: {e}"))?;
        move_into_link_name_space(net.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|e| format!("{path}: {e}"))?;
        act()
    };
    std::thread::scope(|scope| join(scope.spawn(enter)))
}

/// A running gateway, or nothing for kernel forwarding.
#[derive(Debug)]
pub struct Gateway(Option<Running>);

impl RouterTestbed {
    /// Creates the hosts; needs root.
    pub fn new(rig: Rig) -> Outcome<Self> {
        let hold =
            || rig.spawn(rig.command(Path::new("unshare"), &["--net", "--", "sleep", "infinity"]), "unshare");
        let hosts = [hold()?, hold()?, hold()?];
        for host in &hosts {
            wait_for("a network namespace", || Ok(is_asleep(host.id())))?;
        }
        let [s, r, c] = hosts.each_ref().map(Running::id);
        rig.shell(&format!("set -e; s={s} r={r} c={c}{LINKS}"), PATIENCE)?;
        Ok(Self { rig, hosts })
    }

    /// The folder and the program under test.
    pub const fn rig(&self) -> &Rig {
        &self.rig
    }

    /// Starts a program on a host.
    pub fn start(&self, host: Host, program: &str, args: &[&str]) -> Outcome<Running> {
        let id = self.hosts[host as usize].id().to_string();
        let words = [&["--target", &id, "--net", "--", program], args].concat();
        self.rig.spawn(self.rig.command(Path::new("nsenter"), &words), program)
    }

    /// Runs `act` in a thread whose sockets are in the namespace of a host.
    pub fn within<T: Send>(&self, host: Host, act: impl FnOnce() -> Outcome<T> + Send) -> Outcome<T> {
        in_namespace(self.hosts[host as usize].id(), act)
    }

    /// Starts the forwarding and waits until it works. `hop` holds the gateway's settings of the satellite.
    pub fn start_forwarding(&self, carrier: Forwarding, hop: &str) -> Outcome<Gateway> {
        let (kind, rules, bare) = match carrier {
            Forwarding::Kernel => return Ok(Gateway(None)),
            // without a rate only packets that could be accelerated reach the gateway
            Forwarding::Bare(kind) => (kind, "accelerate", true),
            Forwarding::Passing(kind) => (kind, "pass", false),
            Forwarding::Accelerated(kind) => (kind, "accelerate", false),
        };
        let (word, lan, satellite) = match kind {
            GatewayKind::Routed => ("routed", "rs", "rc"),
            GatewayKind::Inline => ("inline", "ri", "rj"),
        };
        let text = format!(
            "schema = 1\n[satellite]\n{hop}\n[deploy]\nkind = \"{word}\"\nlan = \"{lan}\"\nsatellite = \"{satellite}\"\n[policy]\notherwise = \"{rules}\"\n"
        );
        let file = self.rig.file("gateway.toml", &text)?;
        let run_dir = self.rig.path("gateway").display().to_string();
        let mut args = vec!["gateway", "run", &file, "--run-dir", &run_dir];
        args.extend(bare.then_some("--bare"));
        let program = self.rig.program().display().to_string();
        let mut running = self.start(Host::Router, &program, &args)?;
        running.wait_for_stderr("event=\"started\"")?;
        Ok(Gateway(Some(running)))
    }

    /// Goodput, bit/s, of `streams` CUBIC connections to the receiver, which opens them.
    pub fn goodput(&self, carrier: Forwarding, streams: u32, seconds: u32) -> Outcome<f64> {
        let gateway = self.start_forwarding(carrier, "")?;
        let bps = self.iperf(carrier, &format!("-P {streams} -t {seconds}"), seconds);
        gateway.end()?;
        bps
    }

    /// Goodput over a running gateway or the kernel, with additional arguments for iperf3.
    pub fn iperf(&self, carrier: Forwarding, words: &str, seconds: u32) -> Outcome<f64> {
        received_bps(&self.iperf_report(carrier, words, seconds)?)
    }

    /// The whole report of the receiving iperf3.
    pub fn iperf_report(&self, carrier: Forwarding, words: &str, seconds: u32) -> Outcome<serde_json::Value> {
        let server = self.start(Host::Sender, "iperf3", &["-s", "-1", "--forceflush"])?;
        wait_for("iperf3", || Ok(server.out().contains("listening")))?;
        let file = self.rig.path("iperf.json");
        let script =
            format!("exec iperf3 -c {} -R -C cubic {words} -J >'{}'", carrier.ends()[0], file.display());
        let limit = Duration::from_secs(u64::from(seconds)) + PATIENCE;
        let done = self.start(Host::Receiver, "sh", &["-c", &script])?.wait(limit)?;
        let result = take_json(&file);
        done.succeeded(&format!("iperf3 over {carrier:?}"))?;
        result
    }
}

impl Gateway {
    /// Its process.
    pub const fn process(&mut self) -> Option<&mut Running> {
        self.0.as_mut()
    }

    /// Stops it in the normal way.
    pub fn end(self) -> Outcome<()> {
        let Some(mut running) = self.0 else { return Ok(()) };
        running.signal(Signal::TERM);
        running.wait(PATIENCE)?.succeeded("the gateway").map(drop)
    }
}
