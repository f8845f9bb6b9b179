//! Creating a session.

use super::interfaces::{add_host_routes, attach, set_addresses, wait_until_up};
use super::{HOST_MAC, INTERFACE, MTU, PORT_MAC, Session, SessionHost, nested};
use crate::error::Error;
use crate::plan::Plan;
use crate::registry::{self, Entry, HostEntry};
use crate::uplink::Rootless;
use crate::{etc, fixes, leftovers, uplink};
use bentpipe_os::netlink::{Netlink, VethPair};
use bentpipe_os::{capability, namespace, process, sysctl};
use bentpipe_scenario::{NodeKind, Scenario};
use bentpipe_service::{Process, Registry};
use core::net::IpAddr;
use rustix::process::getegid;
use std::fs;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};

/// Addresses per slot.
const SLOT: usize = 250;
/// Slots at a depth.
const SLOTS: usize = 255;
/// Most nested links.
const MAX_DEPTH: u8 = 20;

impl Session {
    /// Creates the namespaces and their content; with `uplink` the far end is this machine's own network. The
    /// calling thread ends in the relay's network namespace, even on failure, so a process opens only one
    /// session, before it starts other threads: for a process with several threads the kernel creates no user
    /// namespace. If it fails, nothing is left behind.
    pub(crate) fn open(plan: &Plan, uplink: bool) -> Result<Self, Error> {
        plan.scenario.simulated_only().map_or(Ok(()), |what| Err(Error::SimulatedOnly(what)))?;
        let (nodes, near, far) = hosts_of(&plan.scenario);
        let registry = registry::open()?;
        let lock = registry::lock(&registry)?;
        leftovers::clean(&registry, &mut |_| ());
        let home = namespace::network().map_err(|e| Error::system("the network namespace", e))?;
        let enclosing = nested::enclosing(&registry, &home)?;
        let entry = new_entry(plan, nodes.len(), uplink, &registry, enclosing.as_ref())?;
        if uplink {
            let is_inner = enclosing.is_some();
            let inner = || Error::Uplink("this is already behind a link; start it outside".to_owned());
            if is_inner { Err(inner()) } else { uplink::check() }?;
        }
        // an ordinary user's far network is one of the session, with a way out that needs no rights
        let wants_connector = uplink && !capability::has(capability::NEEDED);
        let connector = wants_connector.then(Rootless::prepare).transpose()?;
        let uplink = uplink && connector.is_none();
        let rootless = privileges()?;
        let outlet = if connector.is_some() {
            Outlet::Connector
        } else if uplink {
            Outlet::Machine
        } else {
            Outlet::None
        };
        let hosts = make_hosts(plan, &entry, (&nodes, far), (&home, enclosing.as_ref()), (outlet, rootless))?;
        make_relay_network()?;
        let mut session = Self {
            id: entry.id.clone(),
            hosts,
            near,
            far,
            notes: Vec::new(),
            home,
            registry,
            entry,
            programs: Vec::new(),
            forwarder: None,
            connector: None,
            lock: Some(lock),
            ended: false,
        };
        session.wire(enclosing.as_ref())?;
        session.register()?;
        if uplink {
            session.add_uplink()?;
        }
        if let Some(connector) = connector {
            session.connect(connector)?;
        }
        session.lock = None;
        process::adopt_orphans().map_err(|e| Error::system("adopting orphans", e))?;
        for host in &session.hosts {
            let fault = |e| Error::system(format!("the interface of {}", host.entry.name), e);
            wait_until_up(&host.port).map_err(fault)?;
        }
        Ok(session)
    }

    /// Connects the relay to the hosts.
    fn wire(&mut self, enclosing: Option<&Entry>) -> Result<(), Error> {
        let mut middle = Netlink::open()?;
        let own = self.hosts.iter().map(|h| &h.entry).filter(|h| h.own);
        let own: Vec<IpAddr> = own.flat_map(|h| h.addresses.clone()).collect();
        for SessionHost { entry: host, network, port, .. } in &mut self.hosts {
            if host.own {
                middle.add_veth(&veth_pair(port, INTERFACE, network))?;
                middle.set_up(port)?;
                INTERFACE.clone_into(&mut host.interface);
                in_network(&*network, || {
                    if !host.outlet {
                        return attach(&host.addresses);
                    }
                    set_addresses(&host.addresses)?;
                    let others: Vec<IpAddr> =
                        own.iter().copied().filter(|address| !host.addresses.contains(address)).collect();
                    add_host_routes(INTERFACE, &others)
                })??;
                continue;
            }
            // not our network: use any free name
            let stem = if enclosing.is_some() { "bent" } else { "bentup" };
            host.interface = free_pair(&mut middle, port, stem, &self.home)?;
            in_network(&self.home, || {
                quiet(&host.interface)?;
                add_host_routes(&host.interface, &own)
            })??;
        }
        if let Some(enclosing) = enclosing {
            in_network(&self.home, forward)??;
            nested::add_outer_routes(enclosing, &self.registry, &own)?;
        }
        Ok(())
    }

    /// Writes the registry entry of this session.
    fn register(&mut self) -> Result<(), Error> {
        let hosts: Vec<HostEntry> = self.hosts.iter().map(|h| h.entry.clone()).collect();
        self.entry.far.clone_from(&hosts[self.far].path);
        self.entry.far_addresses.clone_from(&hosts[self.far].addresses);
        let mut names: Vec<(String, Vec<IpAddr>)> =
            hosts.iter().map(|h| (h.name.clone(), h.addresses.clone())).collect();
        for (name, host) in [("near", self.near), ("far", self.far)] {
            if !hosts.iter().any(|h| h.name == name) {
                names.push((name.to_owned(), hosts[host].addresses.clone()));
            }
        }
        self.entry.hosts = hosts;
        let system = fs::read_to_string("/etc/hosts").unwrap_or_default();
        let path = self.registry.file(&self.id, "hosts");
        // the entry first: cleaning up relies on it
        self.registry.write(&self.entry)?;
        fs::write(&path, etc::hosts(&names, &system))
            .map_err(|e| Error::system(path.display().to_string(), e))
    }

    /// Connects the far network with the machine's, as an ordinary user can.
    fn connect(&mut self, mut connector: Rootless) -> Result<(), Error> {
        // recorded before it is used, so that it can be ended after a crash
        self.entry.connector = Some(connector.process());
        self.registry.write(&self.entry)?;
        let far = &self.hosts[self.far];
        in_network(&far.network, || connector.connect(&far.entry.path))??;
        connector.names(&self.registry.file(&self.id, "resolv"))?;
        self.connector = Some(connector);
        Ok(())
    }

    /// Connects the machine's own network.
    fn add_uplink(&mut self) -> Result<(), Error> {
        let HostEntry { interface, addresses, .. } = &self.hosts[self.far].entry;
        let others = self.registry.entries();
        let (plan, notes) =
            in_network(&self.home, || (uplink::plan(interface, &others), uplink::firewall_warnings()))?;
        self.notes.extend(notes);
        let plan = plan?;
        // recorded before it is done, so that it can be undone after a crash
        self.entry.uplink = Some(plan.clone());
        self.registry.write(&self.entry)?;
        in_network(&self.home, || uplink::apply(&plan, addresses))??;
        let resolv = self.registry.file(&self.id, "resolv");
        self.forwarder = uplink::names(&self.home, &resolv, addresses)?;
        Ok(())
    }
}

/// What is behind the far end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outlet {
    /// Nothing, or the far end of an outer link.
    None,
    /// The machine's own network.
    Machine,
    /// A program of an ordinary user.
    Connector,
}

/// Creates the namespaces of the hosts, `nodes` of the scenario, of which the one at `far` may be outside.
fn make_hosts(
    plan: &Plan,
    entry: &Entry,
    (nodes, far): (&[usize], usize),
    (home, enclosing): (&OwnedFd, Option<&Entry>),
    (outlet, rootless): (Outlet, bool),
) -> Result<Vec<SessionHost>, Error> {
    let uplink = outlet == Outlet::Machine;
    let off = |name: &str| sysctl::read(name).map_or(true, |value| value == "1");
    let ipv6 = fs::exists("/proc/sys/net/ipv6").unwrap_or(false)
        && !(uplink && off("net/ipv6/conf/all/disable_ipv6"));
    let path = |fd: &OwnedFd| format!("/proc/{}/fd/{}", entry.process.pid, fd.as_raw_fd());
    let mut hosts = Vec::new();
    for (i, &node) in nodes.iter().enumerate() {
        let outside = i == far && (uplink || enclosing.is_some());
        let (network, mut addresses) = match enclosing {
            _ if !outside => (make_host(ipv6, rootless)?, Vec::new()),
            Some(enclosing) => nested::outermost(enclosing)?,
            None => (home.try_clone().map_err(|e| Error::system("a descriptor", e))?, Vec::new()),
        };
        if !outside || uplink {
            let index = entry.slot * SLOT as u16 + i as u16;
            addresses.extend(bentpipe_scenario::host_addresses(entry.depth, index));
            addresses.truncate(1 + usize::from(ipv6));
        }
        let host = HostEntry {
            name: plan.scenario.nodes[node].name.to_string(),
            addresses,
            network: namespace::inode(&network).map_err(|e| Error::system("a network namespace", e))?,
            path: path(&network),
            interface: String::new(),
            attached: path(if outside { home } else { &network }),
            own: !outside,
            outlet: i == far && outlet == Outlet::Connector,
        };
        hosts.push(SessionHost { entry: host, node, network, port: format!("p{i}") });
    }
    Ok(hosts)
}

/// Indices of `near` and `far` among a scenario's nodes.
pub(crate) fn ends(scenario: &Scenario) -> Option<[usize; 2]> {
    let (nodes, near, far) = hosts_of(scenario);
    Some([*nodes.get(near)?, *nodes.get(far)?])
}

/// Indices of the hosts among a scenario's nodes; and among these, of `near` and `far`: the receiver of the
/// first flow, where the user is, and its sender.
fn hosts_of(scenario: &Scenario) -> (Vec<usize>, usize, usize) {
    let all = scenario.nodes.iter().enumerate();
    let nodes: Vec<usize> = all.filter(|(_, n)| n.kind == NodeKind::Host).map(|(i, _)| i).collect();
    let place = |node: usize| nodes.iter().position(|n| *n == node).unwrap_or(0);
    let (near, far) = scenario.flows.first().map_or((0, 1), |f| (place(f.to), place(f.from)));
    (nodes, near, far)
}

/// Chooses a name and addresses, before anything is created.
fn new_entry(
    plan: &Plan,
    hosts: usize,
    uplink: bool,
    registry: &Registry,
    enclosing: Option<&Entry>,
) -> Result<Entry, Error> {
    let (process, all) = (Process::this(), registry.entries());
    let taken = |id: &str| all.iter().any(|e: &Entry| e.id == id);
    let id = match &plan.name {
        Some(name) if !is_name(name) => return Err(Error::BadName(name.clone())),
        Some(name) if taken(name) => return Err(Error::Taken(name.clone())),
        Some(name) => name.clone(),
        None => {
            let plain = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '-' };
            let stem: String = plan.title.chars().map(plain).take(24).collect();
            format!("{stem}-{}", process.pid)
        }
    };
    let depth = match enclosing {
        Some(enclosing) => enclosing.depth + 1,
        None if uplink => uplink::free_depth(MAX_DEPTH)?,
        None => 0,
    };
    if depth > MAX_DEPTH {
        return Err(Error::TooDeep(MAX_DEPTH));
    }
    let slots = hosts.div_ceil(SLOT).max(1);
    // outermost sessions cannot see each other, so they may use the same addresses
    let beside = all.iter().filter(|e| depth > 0 && e.depth == depth);
    let slot = beside.map(|e| usize::from(e.slot + e.slots)).max().unwrap_or(0);
    let slot = if slot + slots > SLOTS { 0 } else { slot };
    if slot + slots > SLOTS {
        return Err(Error::TooManyHosts(hosts, SLOTS * SLOT));
    }
    Ok(Entry {
        id,
        title: plan.title.clone(),
        process,
        depth,
        slot: slot as u16,
        slots: slots as u16,
        parent: enclosing.map(|e| e.id.clone()),
        ..Entry::default()
    })
}

fn is_name(name: &str) -> bool {
    (1..=40).contains(&name.len())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        && !name.starts_with('.')
}

/// Makes sure that we may create namespaces and interfaces; true if that needed a user namespace.
fn privileges() -> Result<bool, Error> {
    if capability::has(capability::NEEDED) {
        return Ok(false);
    }
    namespace::new_user().map_err(|error| Error::UserNamespace(error, fixes::help_lines()))?;
    capability::keep_over_exec().map_err(|e| Error::system("keeping capabilities", e))?;
    Ok(true)
}

fn in_network<T>(network: impl AsFd, act: impl FnOnce() -> T) -> Result<T, Error> {
    namespace::in_network(network, act).map_err(|e| Error::system("entering a network namespace", e))
}

fn new_network() -> Result<OwnedFd, Error> {
    namespace::new_network().map_err(|error| Error::NetworkNamespace(error.into(), fixes::help_lines()))
}

/// Creates a network namespace with only a loopback interface; the thread is in it afterwards.
fn make_host(ipv6: bool, rootless: bool) -> Result<OwnedFd, Error> {
    let network = new_network()?;
    // A new namespace inherits some settings from the machine. Echo requests of ordinary programs need a
    // group that exists in the user namespace, which may also be that of an outer link.
    let ping = "net/ipv4/ping_group_range";
    if rootless || set(ping, "0 2147483647").is_err() {
        let group = getegid().as_raw();
        set(ping, &format!("{group} {group}"))?;
    }
    for name in ["ip_forward", "conf/all/rp_filter", "conf/default/rp_filter", "conf/all/send_redirects"] {
        set(&format!("net/ipv4/{name}"), "0")?;
    }
    if ipv6 {
        // no automatic addresses and no neighbour or router discovery: none of that belongs on the link
        let quiet =
            ["accept_ra", "autoconf", "accept_dad", "dad_transmits", "router_solicitations", "disable_ipv6"];
        for scope in ["all", "default"] {
            for name in quiet {
                set(&format!("net/ipv6/conf/{scope}/{name}"), "0")?;
            }
            set(&format!("net/ipv6/conf/{scope}/addr_gen_mode"), "1")?;
        }
    }
    Netlink::open()?.set_up("lo")?;
    Ok(network)
}

/// Creates the relay's network namespace, in which the kernel's own stack is silent, and enters it.
fn make_relay_network() -> Result<(), Error> {
    new_network()?;
    for name in ["net/ipv6/conf/all/disable_ipv6", "net/ipv6/conf/default/disable_ipv6"] {
        sysctl::write_if_there(name, "1").map_err(|e| Error::setting(name, "1", e))?;
    }
    set("net/ipv4/ip_forward", "0")
}

fn set(name: &str, value: &str) -> Result<(), Error> {
    sysctl::write(name, value).map_err(|e| Error::setting(name, value, e))
}

/// Keeps an interface in another network from sending traffic of its own. Called there, before it is up.
fn quiet(interface: &str) -> Result<(), Error> {
    for (name, value) in [("addr_gen_mode", "1"), ("accept_ra", "0"), ("autoconf", "0"), ("accept_dad", "0")]
    {
        let name = format!("net/ipv6/conf/{interface}/{name}");
        sysctl::write_if_there(&name, value).map_err(|e| Error::setting(&name, value, e))?;
    }
    Ok(())
}

/// A port of the relay and its peer interface.
pub(crate) fn veth_pair<'a>(port: &'a str, peer: &'a str, network: &'a OwnedFd) -> VethPair<'a> {
    VethPair { name: port, mac: PORT_MAC, peer, peer_mac: HOST_MAC, peer_network: network.as_fd(), mtu: MTU }
}

/// Creates a pair whose other end has the first free name with this stem.
fn free_pair(middle: &mut Netlink, port: &str, stem: &str, network: &OwnedFd) -> Result<String, Error> {
    const MOST: u32 = 1000;
    for number in 1..MOST {
        let name = format!("{stem}{number}");
        match middle.add_veth(&veth_pair(port, &name, network)) {
            Ok(()) => {
                middle.set_up(port)?;
                return Ok(name);
            }
            Err(error) if error.is_taken() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Error::Uplink(format!("all interface names from {stem}1 on are taken: remove some (ip link)")))
}

/// Enables forwarding in the network around an inner session. Called in its namespace.
fn forward() -> Result<(), Error> {
    set("net/ipv4/ip_forward", "1")?;
    let name = "net/ipv6/conf/all/forwarding";
    sysctl::write_if_there(name, "1").map(|_| ()).map_err(|e| Error::setting(name, "1", e))
}
