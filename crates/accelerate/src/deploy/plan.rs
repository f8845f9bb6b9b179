//! The changes that a deployment makes on the machine, as a list of steps: shown as commands by `check`,
//! carried out by `run`.
//!
//! Routed: incoming packets get a mark, a routing rule sends marked packets to a separate table, and the only
//! route of this table leads into a TUN interface. The kernel receives the packets that the gateway writes to
//! the other TUN interface and forwards them as usual. The interfaces and their routes disappear with the
//! process, and the kernel skips a rule with an empty table: if the gateway dies, the router forwards by
//! itself.
//!
//! Connection tracking sees a connection once, on the satellite side of the gateway: packets from the LAN are
//! marked before connection tracking and set to notrack when they are about to enter the gateway; packets to
//! the LAN are set to notrack after they have passed it. So NAT on the same machine works. Whether a packet
//! will enter the gateway is looked up in the routes (`fib daddr . mark`), so that tracking works as without
//! the gateway once the process is gone.
//!
//! Inline: only brings the two interfaces up.

use super::divert::{self, LIBERAL, Scope};
use bentpipe_os::netlink::{Mac, MarkRule};
use bentpipe_os::sysctl;
use bentpipe_scenario::gateway_file::{GatewayFile, Kind, Policy};
use bentpipe_service::Undo;
use std::fs;

/// Hardware address of the first end of a pair that [`Step::Veth`] makes.
pub const VETH_MAC: Mac = [0x02, 0x62, 0x65, 0x6e, 0x74, 0x11];
/// Hardware address of its other end.
pub(super) const VETH_PEER_MAC: Mac = [0x02, 0x62, 0x65, 0x6e, 0x74, 0x12];

/// A change on the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Create a TUN interface; it disappears with the process.
    Tun(String),
    /// Change a kernel setting.
    Setting {
        /// Path below `/proc/sys`.
        name: String,
        /// New value.
        value: String,
        /// What is restored at the end; `None` for a setting of an interface that disappears then.
        was: Option<String>,
    },
    /// Create a pair of veth interfaces without ARP, for packets of this MTU.
    Veth {
        /// The end with [`VETH_MAC`].
        name: String,
        /// The other end.
        peer: String,
        /// MTU in bytes.
        mtu: u32,
    },
    /// Set the MTU of an interface.
    Mtu(String, u32),
    /// Bring an interface up.
    Up(String),
    /// Add a default route into an interface to a table.
    Route {
        /// The routing table.
        table: u32,
        /// The interface.
        interface: String,
        /// For IPv6.
        v6: bool,
    },
    /// Add a routing rule.
    Rule(MarkRule),
    /// Add an nftables table of family `inet`.
    Nft {
        /// Its name.
        table: String,
        /// The script that adds it.
        script: String,
    },
}

impl core::fmt::Display for Step {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let family = |v6: bool| if v6 { "ip -6" } else { "ip" };
        match self {
            Self::Tun(name) => write!(f, "ip tuntap add dev {name} mode tun vnet_hdr"),
            Self::Setting { name, value, .. } => write!(f, "echo {value} > /proc/sys/{name}"),
            Self::Veth { name, peer, mtu } => {
                write!(
                    f,
                    "ip link add dev {name} mtu {mtu} arp off type veth peer name {peer} mtu {mtu} arp off"
                )
            }
            Self::Mtu(name, mtu) => write!(f, "ip link set dev {name} mtu {mtu}"),
            Self::Up(name) => write!(f, "ip link set dev {name} up"),
            Self::Route { table, interface, v6 } => {
                write!(f, "{} route add default dev {interface} table {table}", family(*v6))
            }
            Self::Rule(MarkRule { v6, priority, mark, mask, table }) => {
                let ip = family(*v6);
                write!(f, "{ip} rule add pref {priority} fwmark {mark:#x}/{mask:#x} lookup {table}")
            }
            Self::Nft { script, .. } => write!(f, "nft -f - <<'END'\n{script}END"),
        }
    }
}

/// All changes, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The changes.
    pub steps: Vec<Step>,
}

impl Plan {
    /// The changes for `file` on a machine whose interfaces have the MTU `mtu`. Reads settings of the calling
    /// thread's network namespace.
    pub fn new(file: &GatewayFile, mtu: u32) -> Self {
        let deploy = &file.deploy;
        let mut steps = Vec::new();
        if deploy.kind == Kind::Inline {
            steps.extend(deploy.lan.iter().chain([&deploy.satellite]).cloned().map(Step::Up));
            return Self { steps };
        }
        let v6 = fs::exists("/proc/sys/net/ipv6").unwrap_or(false);
        for tun in [&deploy.tun_lan, &deploy.tun_satellite] {
            steps.push(Step::Tun(tun.clone()));
            steps.extend(own_settings(tun, v6));
            steps.extend([Step::Mtu(tun.clone(), mtu), Step::Up(tun.clone())]);
        }
        for v6 in [false].into_iter().chain(v6.then_some(true)) {
            for (i, tun) in [(0, &deploy.tun_lan), (1, &deploy.tun_satellite)] {
                let (table, priority, mark) = (deploy.table + i, deploy.priority + i, deploy.mark + i);
                steps.push(Step::Route { table, interface: tun.clone(), v6 });
                steps.push(Step::Rule(MarkRule { v6, priority, mark, mask: u32::MAX, table }));
            }
        }
        let tracked = sysctl::read(LIBERAL).ok();
        if tracked.as_deref() == Some("0") {
            // the gateway sends beyond the window that the receiver advertised
            let was = tracked.clone();
            steps.push(Step::Setting { name: LIBERAL.to_owned(), value: "1".to_owned(), was });
        }
        let script = divert::script(file, Scope::of(file), tracked.is_some());
        steps.push(Step::Nft { table: deploy.nft_table.clone(), script });
        Self { steps }
    }

    /// The changes to undo in the network namespace `network`; the others disappear with the process.
    pub fn undo(&self, network: u64) -> Undo {
        let mut undo = Undo { network, ..Undo::default() };
        for step in &self.steps {
            match step {
                Step::Nft { table, .. } => undo.table = Some(table.clone()),
                Step::Veth { name, .. } => undo.interface = Some(name.clone()),
                Step::Rule(r) => undo.rules.push((r.v6, r.priority, r.mark, r.table)),
                Step::Setting { name, was: Some(was), .. } => undo.settings.push((name.clone(), was.clone())),
                _ => {}
            }
        }
        undo
    }

    /// The changes for a service on the host itself: `deploy.tun_lan` is the host's end of a veth pair.
    /// Packets that the policy could accelerate are routed into it, and the datagrams of a policy of their
    /// own.
    pub fn on_host(file: &GatewayFile, datagrams: Option<&Policy>, mtu: u32) -> Self {
        let deploy = &file.deploy;
        let v6 = fs::exists("/proc/sys/net/ipv6").unwrap_or(false);
        let (host, peer) = (&deploy.tun_lan, &deploy.tun_satellite);
        let mut steps = vec![Step::Veth { name: host.clone(), peer: peer.clone(), mtu }];
        for end in [host, peer] {
            // nothing is forwarded there
            let is_needed = |step: &Step| !step.to_string().contains("/forwarding");
            steps.extend(own_settings(end, v6).into_iter().filter(is_needed));
            steps.push(Step::Up(end.clone()));
        }
        let (table, priority, mark) = (deploy.table, deploy.priority, deploy.mark);
        for v6 in [false].into_iter().chain(v6.then_some(true)) {
            steps.push(Step::Route { table, interface: host.clone(), v6 });
            steps.push(Step::Rule(MarkRule { v6, priority, mark, mask: u32::MAX, table }));
        }
        steps.push(Step::Nft {
            table: deploy.nft_table.clone(),
            script: divert::host_script(file, datagrams),
        });
        Self { steps }
    }

    pub(super) fn intercepted(file: &GatewayFile) -> Vec<String> {
        let deploy = &file.deploy;
        let lan = deploy.lan.join(", ");
        if deploy.kind == Kind::Inline {
            return vec![format!("every frame between {lan} and {}", deploy.satellite)];
        }
        let (outward, inward) = match Scope::of(file) {
            Scope::Both => ("everything", "everything"),
            Scope::All => ("everything", "TCP"),
            Scope::Tcp => ("TCP", "TCP"),
            Scope::Policy => ("TCP that the policy could accelerate,", "the same"),
            Scope::Nothing => return vec!["nothing: the policy accelerates no connection".to_owned()],
        };
        vec![
            format!("{outward} that is forwarded from {lan} to {}", deploy.satellite),
            format!("{inward} that is forwarded from {} to {lan}", deploy.satellite),
        ]
    }
}

fn own_settings(tun: &str, v6: bool) -> Vec<Step> {
    let own = |name: String, value: &str| Step::Setting { name, value: value.to_owned(), was: None };
    // the larger of this value and the one for all applies; 2 only requires that the source is reachable
    let all = sysctl::read("net/ipv4/conf/all/rp_filter").unwrap_or_default();
    let mut steps = vec![
        own(format!("net/ipv4/conf/{tun}/rp_filter"), if all == "0" { "0" } else { "2" }),
        own(format!("net/ipv4/conf/{tun}/forwarding"), "1"),
    ];
    if v6 {
        // no IPv6 address on this interface
        steps.push(own(format!("net/ipv6/conf/{tun}/addr_gen_mode"), "1"));
        steps.push(own(format!("net/ipv6/conf/{tun}/accept_ra"), "0"));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_scenario::Source;
    use bentpipe_scenario::gateway_file::load;

    fn file(kind: &str, rate: &str) -> GatewayFile {
        let lan = if kind == "routed" { "[\"eth1\", \"eth2\"]" } else { "\"eth1\"" };
        let text = format!(
            "schema = 1\n[satellite]\n{rate}\n[deploy]\nkind = \"{kind}\"\nlan = {lan}\nsatellite = \"eth0\"\n"
        );
        load(&Source::new("t", text)).unwrap()
    }

    #[test]
    fn steps_read_as_commands() {
        let plan = Plan::new(&file("routed", ""), 1500);
        let all: Vec<String> = plan.steps.iter().map(ToString::to_string).collect();
        assert_eq!(all[0], "ip tuntap add dev bentlan mode tun vnet_hdr");
        assert!(all.contains(&"ip route add default dev bentlan table 6270".to_owned()), "{all:#?}");
        assert!(all.contains(&"ip rule add pref 6271 fwmark 0x6271/0xffffffff lookup 6271".to_owned()));
        // the rules that divert packets come last, when their route exists
        assert!(all.last().unwrap().starts_with("nft -f - <<'END'\nadd table inet bentpipe_gateway\n"));
    }

    #[test]
    fn inline_changes_next_to_nothing() {
        let plan = Plan::new(&file("inline", "rate = \"1 Mbit/s\""), 1500);
        let all: Vec<String> = plan.steps.iter().map(ToString::to_string).collect();
        assert_eq!(all, ["ip link set dev eth1 up", "ip link set dev eth0 up"]);
    }
}
