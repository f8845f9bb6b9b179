//! What a deployment changes on the machine, as a list of steps: shown by `check` as commands, carried out by
//! `run`.
//!
//! Routed: packets get a mark as they come in, a rule sends marked ones to a table of their own, and its only
//! route leads into a TUN interface. What the gateway writes to the other TUN interface comes into the kernel
//! there and is forwarded as always. The interfaces go with the process, their routes go with them, a rule
//! whose table is empty is passed over: a gateway that dies leaves a router that forwards by itself.
//!
//! Connection tracking sees a connection once, on the satellite's side of the gateway: packets from the LAN
//! are marked before it and left out when they are about to enter the gateway, packets to the LAN are left
//! out when they have passed it. So address translation on the same machine works. Whether a packet is about
//! to enter is asked of the routes (`fib daddr . mark`), not assumed: when the process is gone, tracking is
//! as without it.
//!
//! Inline: nothing but the two interfaces, which are brought up.

use super::divert::{self, LIBERAL, Scope};
use bentpipe_os::netlink::MarkRule;
use bentpipe_os::sysctl;
use bentpipe_scenario::gateway_file::{GatewayFile, Kind};
use bentpipe_service::Undo;
use std::fs;

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A TUN interface; it goes with the process.
    Tun(String),
    /// A kernel setting of an interface that goes with the process.
    Own {
        /// Below `/proc/sys`.
        name: String,
        /// What it becomes.
        value: String,
    },
    /// A kernel setting that has to be given back.
    Setting {
        /// Below `/proc/sys`.
        name: String,
        /// What it becomes.
        value: String,
        /// What it was.
        was: String,
    },
    /// The longest packet of an interface.
    Mtu(String, u32),
    /// An interface comes up.
    Up(String),
    /// A table that leads into an interface.
    Route {
        /// Its number.
        table: u32,
        /// The interface.
        interface: String,
        /// IPv6, not IPv4.
        v6: bool,
    },
    /// Marked packets use the table.
    Rule(MarkRule),
    /// An nftables table.
    Nft {
        /// Its name.
        table: String,
        /// The script that makes it.
        script: String,
    },
}

impl core::fmt::Display for Step {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let family = |v6: bool| if v6 { "ip -6" } else { "ip" };
        match self {
            Self::Tun(name) => write!(f, "ip tuntap add dev {name} mode tun vnet_hdr"),
            Self::Own { name, value } | Self::Setting { name, value, .. } => {
                write!(f, "echo {value} > /proc/sys/{name}")
            }
            Self::Mtu(name, mtu) => write!(f, "ip link set dev {name} mtu {mtu}"),
            Self::Up(name) => write!(f, "ip link set dev {name} up"),
            Self::Route { table, interface, v6 } => {
                write!(f, "{} route add default dev {interface} table {table}", family(*v6))
            }
            Self::Rule(rule) => write!(
                f,
                "{} rule add pref {} fwmark {:#x}/0xffffffff lookup {}",
                family(rule.v6),
                rule.priority,
                rule.mark,
                rule.table
            ),
            Self::Nft { script, .. } => write!(f, "nft -f - <<'END'\n{script}END"),
        }
    }
}

/// All that is changed, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
}

impl Plan {
    /// What `file` asks for, on a machine whose interfaces carry packets of at most `mtu` bytes. Reads
    /// settings of the calling thread's network namespace.
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
            for (i, tun) in [&deploy.tun_lan, &deploy.tun_satellite].into_iter().enumerate() {
                let table = deploy.table + i as u32;
                steps.push(Step::Route { table, interface: tun.clone(), v6 });
                let mark = deploy.mark + i as u32;
                steps.push(Step::Rule(MarkRule { v6, priority: deploy.priority + i as u32, mark, table }));
            }
        }
        let tracked = sysctl::read(LIBERAL).ok();
        if let Some(was) = tracked.clone().filter(|v| v == "0") {
            // the gateway sends beyond the window that the receiver advertised: that is its purpose
            steps.push(Step::Setting { name: LIBERAL.to_owned(), value: "1".to_owned(), was });
        }
        let script = divert::script(file, Scope::of(file), tracked.is_some());
        steps.push(Step::Nft { table: deploy.nft_table.clone(), script });
        Self { steps }
    }

    /// What has to be undone in the network namespace `network`; the rest goes with the process.
    pub(super) fn undo(&self, network: u64) -> Undo {
        let mut undo = Undo { network, ..Undo::default() };
        for step in &self.steps {
            match step {
                Step::Nft { table, .. } => undo.table = Some(table.clone()),
                Step::Rule(r) => undo.rules.push((r.v6, r.priority, r.mark, r.table)),
                Step::Setting { name, was, .. } => undo.settings.push((name.clone(), was.clone())),
                _ => {}
            }
        }
        undo
    }

    /// What the gateway gets to see, in words.
    pub fn intercepted(file: &GatewayFile) -> Vec<String> {
        let deploy = &file.deploy;
        let lan = deploy.lan.join(", ");
        if deploy.kind == Kind::Inline {
            return vec![format!("every frame between {lan} and {}", deploy.satellite)];
        }
        let (outward, inward) = match Scope::of(file) {
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
    let own = |name: String, value: &str| Step::Own { name, value: value.to_owned() };
    // the larger of this and the one for all is in effect: 2 asks only that the sender can be reached at all
    let all = sysctl::read("net/ipv4/conf/all/rp_filter").unwrap_or_default();
    let mut steps = vec![
        own(format!("net/ipv4/conf/{tun}/rp_filter"), if all == "0" { "0" } else { "2" }),
        own(format!("net/ipv4/conf/{tun}/forwarding"), "1"),
    ];
    if v6 {
        // no address of its own: nobody lives here, and nobody need be told
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
        // the rules that divert packets come last, when their way is there
        assert!(all.last().unwrap().starts_with("nft -f - <<'END'\nadd table inet bentpipe_gateway\n"));
    }

    #[test]
    fn inline_changes_next_to_nothing() {
        let plan = Plan::new(&file("inline", "rate = \"1 Mbit/s\""), 1500);
        let all: Vec<String> = plan.steps.iter().map(ToString::to_string).collect();
        assert_eq!(all, ["ip link set dev eth1 up", "ip link set dev eth0 up"]);
    }
}
