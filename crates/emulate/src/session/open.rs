//! How a session comes to be.

use super::nested::Enclosing;
use super::routes::{attach, lead_to};
use super::{HOST_MAC, HostEnd, HostLayout, INTERFACE, Layout, MTU, PORT_MAC, Session};
use crate::error::Error;
use crate::hosts;
use crate::mend;
use crate::registry::{self, Entry, HostEntry};
use crate::uplink::Uplink;
use bentpipe_os::capability;
use bentpipe_os::namespace;
use bentpipe_os::netlink::{Netlink, VethPair};
use bentpipe_os::{process, sysctl};
use bentpipe_service::{Process, Registry};
use core::net::IpAddr;
use rustix::process::getegid;
use std::fs;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};

/// Addresses of a depth come in places of this many.
const SLOT: usize = 250;
/// Places at a depth.
const SLOTS: usize = 255;
/// Links within links.
const MAX_DEPTH: u8 = 20;

impl Session {
    /// Makes the namespaces and what is in them. The calling thread ends in the relay's network namespace,
    /// whether or not this works, so a process opens one session, before it has other threads: a user
    /// namespace is only given to a process with one.
    ///
    /// # Errors
    /// What is missing, and how to mend it. Nothing is left behind.
    pub fn open(layout: &Layout) -> Result<Self, Error> {
        let registry = registry::open()?;
        let lock = registry::lock(&registry)?;
        crate::leftovers::clean(&registry, &mut |_| ());
        let home = namespace::network().map_err(|e| Error::system("the network namespace", e))?;
        let enclosing = Enclosing::find(&registry, &home)?;
        let entry = new_entry(layout, &registry, enclosing.as_ref())?;
        if layout.uplink && enclosing.is_some() {
            return Err(Error::Uplink("this is already behind a link; start it outside".to_owned()));
        }
        let rootless = privileges(layout.uplink)?;
        let off = |name: &str| sysctl::read(name).map_or(true, |value| value == "1");
        let ipv6 = fs::exists("/proc/sys/net/ipv6").unwrap_or(false)
            && !(layout.uplink && off("net/ipv6/conf/all/disable_ipv6"));
        let mut hosts = Vec::new();
        for (i, host) in layout.hosts.iter().enumerate() {
            let outside = i == layout.far && (layout.uplink || enclosing.is_some());
            let mut end = if outside {
                outside_end(host, &home, enclosing.as_ref())?
            } else {
                make_host(host, ipv6, rootless)?
            };
            end.port = format!("p{i}");
            if !outside || layout.uplink {
                let index = entry.slot * SLOT as u16 + i as u16;
                end.addresses = bentpipe_scenario::host_addresses(entry.depth, index)
                    .into_iter()
                    .take(1 + usize::from(ipv6))
                    .collect();
            }
            hosts.push(end);
        }
        make_middle()?;
        let mut session = Self {
            id: entry.id.clone(),
            hosts,
            near: layout.near,
            far: layout.far,
            depth: entry.depth,
            notes: Vec::new(),
            rootless,
            home,
            registry,
            entry,
            programs: Vec::new(),
            uplink: None,
            lock: Some(lock),
            ended: false,
        };
        session.wire(layout, enclosing.as_ref())?;
        session.register()?;
        if layout.uplink {
            session.add_uplink()?;
        }
        session.lock = None;
        process::adopt_orphans().map_err(|e| Error::system("adopting orphans", e))?;
        Ok(session)
    }

    /// Joins the relay's ends with the hosts.
    fn wire(&mut self, layout: &Layout, enclosing: Option<&Enclosing>) -> Result<(), Error> {
        let mut middle = Netlink::open()?;
        let own: Vec<IpAddr> =
            self.hosts.iter().filter(|h| h.own).flat_map(|h| h.addresses.clone()).collect();
        for (i, host) in self.hosts.iter_mut().enumerate() {
            let metrics = &layout.hosts[i].metrics;
            if host.own {
                middle.add_veth(&pair(&host.port, INTERFACE, &host.network))?;
                middle.set_up(&host.port)?;
                INTERFACE.clone_into(&mut host.interface);
                in_network(&host.network, || attach(&host.addresses, metrics))??;
                continue;
            }
            // Somebody else's network: any free name will do.
            let stem = if enclosing.is_some() { "bent" } else { "bentup" };
            host.interface = free_pair(&mut middle, &host.port, stem, &self.home)?;
            in_network(&self.home, || {
                quiet(&host.interface)?;
                lead_to(&host.interface, &own)
            })??;
        }
        if let Some(enclosing) = enclosing {
            in_network(&self.home, forward)??;
            enclosing.tell_ancestors(&self.registry, &own)?;
        }
        Ok(())
    }

    /// Writes down who and where this session is.
    fn register(&mut self) -> Result<(), Error> {
        let pid = self.entry.process.pid;
        let path = |fd: &OwnedFd| format!("/proc/{pid}/fd/{}", fd.as_raw_fd());
        let text = |host: &HostEnd| host.addresses.iter().map(ToString::to_string).collect::<Vec<_>>();
        self.entry.hosts = self
            .hosts
            .iter()
            .map(|host| HostEntry {
                name: host.name.clone(),
                addresses: text(host),
                network: host.inode,
                path: path(&host.network),
                interface: host.interface.clone(),
                attached: path(if host.own { &host.network } else { &self.home }),
                own: host.own,
            })
            .collect();
        let far = &self.hosts[self.far];
        self.entry.far = path(&far.network);
        self.entry.far_addresses = text(far);
        let mut names: Vec<(String, Vec<IpAddr>)> =
            self.hosts.iter().map(|h| (h.name.clone(), h.addresses.clone())).collect();
        for (name, host) in [("near", self.near), ("far", self.far)] {
            if !self.hosts.iter().any(|h| h.name == name) {
                names.push((name.to_owned(), self.hosts[host].addresses.clone()));
            }
        }
        let system = fs::read_to_string("/etc/hosts").unwrap_or_default();
        let path = self.registry.file(&self.id, "hosts");
        // The entry first: whoever cleans up after us goes by it.
        self.registry.write(&self.entry)?;
        fs::write(&path, hosts::file(&names, &system))
            .map_err(|e| Error::system(path.display().to_string(), e))
    }

    /// Lets the host's network in on it.
    fn add_uplink(&mut self) -> Result<(), Error> {
        let interface = self.hosts[self.far].interface.clone();
        let address = self.hosts[self.far].addresses.clone();
        let others = self.registry.entries();
        let (plan, notes) = in_network(&self.home, || (Uplink::plan(&interface, &others), Uplink::doubts()))?;
        self.notes.extend(notes);
        let plan = plan?;
        // Written down before it is done: whoever cleans up after us must know.
        self.entry.uplink = Some(plan.clone());
        self.registry.write(&self.entry)?;
        let home = self.home.try_clone().map_err(|e| Error::system("a descriptor", e))?;
        self.uplink = Some(Uplink::apply(home, &plan, &address)?);
        let resolv = self.registry.file(&self.id, "resolv");
        if let Some(uplink) = &mut self.uplink {
            uplink.names(&resolv, &address)?;
        }
        Ok(())
    }
}

/// A name and a place among the addresses, before anything is made.
fn new_entry(layout: &Layout, registry: &Registry, enclosing: Option<&Enclosing>) -> Result<Entry, Error> {
    let (process, all) = (Process::this(), registry.entries());
    let taken = |id: &str| all.iter().any(|e: &Entry| e.id == id);
    let id = match &layout.name {
        Some(name) if !is_name(name) => return Err(Error::BadName(name.clone())),
        Some(name) if taken(name) => return Err(Error::Taken(name.clone())),
        Some(name) => name.clone(),
        None => {
            let plain = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '-' };
            let stem: String = layout.title.chars().map(plain).take(24).collect();
            format!("{stem}-{}", process.pid)
        }
    };
    let depth = match enclosing {
        Some(enclosing) => enclosing.depth + 1,
        None if layout.uplink => Uplink::free_depth(MAX_DEPTH)?,
        None => 0,
    };
    if depth > MAX_DEPTH {
        return Err(Error::TooDeep(MAX_DEPTH));
    }
    let (count, most) = (layout.hosts.len(), SLOTS * SLOT);
    let slots = count.div_ceil(SLOT).max(1);
    // Outermost sessions cannot see each other: they may have the same addresses.
    let beside = all.iter().filter(|e| depth > 0 && e.depth == depth);
    let slot = beside.map(|e| usize::from(e.slot + e.slots)).max().unwrap_or(0);
    let slot = if slot + slots > SLOTS { 0 } else { slot };
    if slot + slots > SLOTS {
        return Err(Error::TooManyHosts(count, most));
    }
    Ok(Entry {
        id,
        title: layout.title.clone(),
        process,
        depth,
        slot: slot as u16,
        slots: slots as u16,
        parent: enclosing.map(|e| e.session.clone()),
        ..Entry::default()
    })
}

fn is_name(name: &str) -> bool {
    (1..=40).contains(&name.len())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        && !name.starts_with('.')
}

/// Makes sure that namespaces and interfaces may be made; true when that took a user namespace.
fn privileges(uplink: bool) -> Result<bool, Error> {
    if capability::has(capability::NEEDED) {
        return Ok(false);
    }
    if uplink {
        return Err(Error::UplinkNeedsRoot);
    }
    namespace::new_user()
        .map_err(|source| Error::UserNamespace { source, mend: mend::lines(&mend::user_namespaces()) })?;
    capability::keep_over_exec().map_err(|e| Error::system("keeping capabilities", e))?;
    Ok(true)
}

fn in_network<T>(network: impl AsFd, act: impl FnOnce() -> T) -> Result<T, Error> {
    namespace::in_network(network, act).map_err(|e| Error::system("entering a network namespace", e))
}

fn new_network() -> Result<OwnedFd, Error> {
    namespace::new_network().map_err(|source| Error::Namespace {
        what: "network namespace",
        source: source.into(),
        mend: mend::lines(&mend::user_namespaces()),
    })
}

/// A network namespace with nothing but a loopback interface; the thread is in it afterwards.
fn make_host(host: &HostLayout, ipv6: bool, rootless: bool) -> Result<HostEnd, Error> {
    let network = new_network()?;
    // A new namespace takes some of these from the machine's own. Echo requests of ordinary programs: a group
    // must be known in the user namespace, which may also be that of a link around this one.
    let ping = "net/ipv4/ping_group_range";
    if rootless || set(ping, "0 2147483647").is_err() {
        let group = getegid().as_raw();
        set(ping, &format!("{group} {group}"))?;
    }
    for name in ["ip_forward", "conf/all/rp_filter", "conf/default/rp_filter", "conf/all/send_redirects"] {
        set(&format!("net/ipv4/{name}"), "0")?;
    }
    if ipv6 {
        // No address of its own making, and no questions to neighbours or routers: none of that belongs on
        // the link.
        let quiet =
            ["accept_ra", "autoconf", "accept_dad", "dad_transmits", "router_solicitations", "disable_ipv6"];
        for scope in ["all", "default"] {
            for name in quiet {
                set(&format!("net/ipv6/conf/{scope}/{name}"), "0")?;
            }
            set(&format!("net/ipv6/conf/{scope}/addr_gen_mode"), "1")?;
        }
    }
    for (name, value) in &host.settings {
        set(name, value)?;
    }
    Netlink::open()?.set_up("lo")?;
    Ok(HostEnd {
        name: host.name.clone(),
        inode: inode(&network)?,
        network,
        own: true,
        addresses: Vec::new(),
        port: String::new(),
        interface: String::new(),
    })
}

/// The far end, where it is not made here.
fn outside_end(host: &HostLayout, home: &OwnedFd, enclosing: Option<&Enclosing>) -> Result<HostEnd, Error> {
    let (network, addresses) = match enclosing {
        Some(enclosing) => enclosing.far()?,
        None => (home.try_clone().map_err(|e| Error::system("a descriptor", e))?, Vec::new()),
    };
    Ok(HostEnd {
        name: host.name.clone(),
        inode: inode(&network)?,
        network,
        own: false,
        addresses,
        port: String::new(),
        interface: String::new(),
    })
}

/// The relay's network namespace, in which the kernel itself has nothing to say; the thread is in it
/// afterwards.
fn make_middle() -> Result<(), Error> {
    new_network()?;
    for name in ["net/ipv6/conf/all/disable_ipv6", "net/ipv6/conf/default/disable_ipv6"] {
        sysctl::write_if_there(name, "1").map_err(|e| setting(name, "1", e))?;
    }
    set("net/ipv4/ip_forward", "0")
}

fn inode(network: &OwnedFd) -> Result<u64, Error> {
    namespace::inode(network).map_err(|e| Error::system("a network namespace", e))
}

pub(super) fn set(name: &str, value: &str) -> Result<(), Error> {
    sysctl::write(name, value).map_err(|e| setting(name, value, e))
}

fn setting(name: &str, value: &str, source: std::io::Error) -> Error {
    Error::Setting { name: name.to_owned(), value: value.to_owned(), source }
}

/// Of an interface in somebody else's network: no traffic of its own making. Called there, before it comes
/// up.
fn quiet(interface: &str) -> Result<(), Error> {
    for (name, value) in [("addr_gen_mode", "1"), ("accept_ra", "0"), ("autoconf", "0"), ("accept_dad", "0")]
    {
        let name = format!("net/ipv6/conf/{interface}/{name}");
        sysctl::write_if_there(&name, value).map_err(|e| setting(&name, value, e))?;
    }
    Ok(())
}

/// A port of the relay and the other end of its wire.
fn pair<'a>(port: &'a str, peer: &'a str, network: &'a OwnedFd) -> VethPair<'a> {
    VethPair { name: port, mac: PORT_MAC, peer, peer_mac: HOST_MAC, peer_network: network.as_fd(), mtu: MTU }
}

/// A pair whose other end has the first name with this stem that is free there.
fn free_pair(middle: &mut Netlink, port: &str, stem: &str, network: &OwnedFd) -> Result<String, Error> {
    const MOST: u32 = 1000;
    for number in 1..MOST {
        let name = format!("{stem}{number}");
        match middle.add_veth(&pair(port, &name, network)) {
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

/// Makes a router of the network around an inner session. Called in its namespace.
fn forward() -> Result<(), Error> {
    set("net/ipv4/ip_forward", "1")?;
    let name = "net/ipv6/conf/all/forwarding";
    sysctl::write_if_there(name, "1").map(|_| ()).map_err(|e| setting(name, "1", e))
}
