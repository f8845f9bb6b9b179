//! Checks whether a gateway can run on this machine, before anything is changed, and rehearses its set-up.
//!
//! The rehearsal carries out the whole plan in a temporary network namespace, which shows what this kernel or
//! this `nft` does not support.

use super::divert::Scope;
use super::error::Error;
use super::firewall;
use super::plan::Plan;
use super::sandbox;
use super::session::{Session, is_running};
use super::setup;
use crate::status::Http;
use bentpipe_base::names::nearest;
use bentpipe_os::netlink::Netlink;
use bentpipe_os::{capability, namespace, nft, realtime, sysctl};
use bentpipe_scenario::gateway_file::{Deploy, GatewayFile, Kind};
use bentpipe_service::{Finding, Registry, Standing};
use rustix::thread::CapabilitySet;
use std::fs::File;
use std::path::Path;
use std::thread::Builder;

/// MTU assumed for missing interfaces.
const USUAL_MTU: u32 = 1500;

/// Prefixes of the names of findings about running gateways and the metrics address.
const RUNS: &str = "gateway `";
const METRICS: &str = "metrics at ";

/// The result of a check: planned changes and findings.
#[derive(Clone, Debug)]
pub struct Check {
    /// Description of the traffic that the gateway would intercept.
    pub intercepted: Vec<String>,
    /// Changes that would be made.
    pub plan: Plan,
    /// Findings.
    pub findings: Vec<Finding>,
}

impl Check {
    /// True if the gateway would start.
    pub fn is_good(&self) -> bool {
        self.findings.iter().all(|f| f.standing != Standing::Bad)
    }

    pub(super) fn refuse(&self) -> Result<(), Error> {
        let bad: Vec<Finding> =
            self.findings.iter().filter(|f| f.standing == Standing::Bad).cloned().collect();
        if bad.is_empty() { Ok(()) } else { Err(Error::Missing(bad)) }
    }

    /// The same, but ignores that a gateway of this name is running and uses the metrics address, since it
    /// will be stopped.
    pub(super) fn refuse_beside_running(mut self) -> Result<(), Error> {
        self.findings.retain(|f| !f.name.starts_with(RUNS) && !f.name.starts_with(METRICS));
        self.refuse()
    }
}

/// Runs all checks without changing anything. `can_inline`: the data path supports inline ports.
pub fn check(file: &GatewayFile, registry: &Registry, can_inline: bool) -> Check {
    let deploy = &file.deploy;
    let mut findings = vec![permission(deploy.kind), priority()];
    let mut mtu = USUAL_MTU;
    match Netlink::open() {
        Ok(mut netlink) => findings.extend(interfaces(deploy, &mut netlink, &mut mtu)),
        Err(error) => findings.push(Finding::bad("netlink", error.to_string())),
    }
    let plan = Plan::new(file, mtu);
    let allowed = findings[0].standing != Standing::Bad;
    let left = leftovers(registry, deploy, &mut findings);
    if deploy.kind == Kind::Inline {
        if !can_inline {
            let found = "this program has no data path for frames";
            findings.push(Finding::bad("inline", found).mend("kind = \"routed\""));
        }
    } else {
        findings.extend([tun(), forwarding(deploy)]);
        let nft = nft_program();
        let there = nft.standing == Standing::Good;
        findings.push(nft);
        findings.extend(settings());
        if allowed && there {
            if left.is_none() {
                findings.extend(taken(deploy, &plan));
            }
            let scope = Scope::of(file);
            if scope != Scope::Nothing {
                findings.extend(firewall::findings(deploy, scope != Scope::All));
            }
            findings.push(rehearsal(&plan));
        }
    }
    findings.extend(sandbox::findings());
    findings.extend(listeners(file));
    Check { intercepted: Plan::intercepted(file), plan, findings }
}

fn permission(kind: Kind) -> Finding {
    let name = "permission";
    let (needed, words) = match kind {
        Kind::Routed => (CapabilitySet::NET_ADMIN, "CAP_NET_ADMIN"),
        Kind::Inline => {
            (CapabilitySet::NET_ADMIN.union(CapabilitySet::NET_RAW), "CAP_NET_ADMIN and CAP_NET_RAW")
        }
    };
    if capability::has(needed) {
        return Finding::good(name, "may change interfaces, routes and rules");
    }
    Finding::bad(name, format!("needs {words}")).mend("sudo bentpipe gateway ...")
}

/// Checks which scheduling priority the data thread would get.
fn priority() -> Finding {
    let name = "priority";
    match realtime::foresee() {
        Ok(priority) => Finding::good(name, format!("{priority} for the data thread")),
        Err((priority, why)) => {
            let found = format!(
                "{priority} for the data thread, {why}: where other programs are busy packets leave late"
            );
            Finding::lack(name, found)
                .mend("run it as root, with CAP_SYS_NICE, or after `ulimit -r 10` (LimitRTPRIO=10 in a unit)")
        }
    }
}

fn interfaces(deploy: &Deploy, netlink: &mut Netlink, mtu: &mut u32) -> Vec<Finding> {
    let known: Vec<String> =
        netlink.interfaces().unwrap_or_default().into_iter().map(|(_, name)| name).collect();
    let mut all = Vec::new();
    let mut mtus = Vec::new();
    for wanted in deploy.lan.iter().chain([&deploy.satellite]) {
        let name = format!("interface {wanted}");
        if let Ok(Some(bytes)) = netlink.mtu(wanted) {
            mtus.push(bytes);
            let state = if netlink.carries(wanted).unwrap_or(false) { "up" } else { "not up" };
            all.push(Finding::good(&name, format!("there, {state}, packets of {bytes} bytes")));
            continue;
        }
        let near = nearest(wanted, known.iter().map(String::as_str));
        let listed = || format!("there are {}", known.join(", "));
        let mend = near.map_or_else(listed, |near| format!("did you mean {near}?"));
        all.push(Finding::bad(name, "there is none of this name").mend(mend));
    }
    *mtu = mtus.iter().copied().max().unwrap_or(USUAL_MTU);
    if deploy.kind == Kind::Inline && mtus.windows(2).any(|pair| pair[0] != pair[1]) {
        let found = "the two interfaces carry packets of different length";
        all.push(Finding::bad("MTU", found).mend("ip link set dev NAME mtu N"));
    }
    all
}

/// Checks for a gateway of this name that was killed or is running.
fn leftovers(registry: &Registry, deploy: &Deploy, findings: &mut Vec<Finding>) -> Option<Session> {
    let session: Session = registry.entry(&deploy.name)?;
    let name = format!("{RUNS}{}`", session.name);
    if is_running(registry, &session.name) {
        let found = format!("it is running (process {})", session.process.pid);
        findings.push(Finding::bad(name, found).mend("bentpipe gateway stop, or run --replace"));
    } else {
        let found = "it was killed and has left rules behind; the next run takes them back first";
        findings.push(Finding::lack(name, found).mend("sudo bentpipe gateway undo"));
    }
    Some(session)
}

fn tun() -> Finding {
    let name = "/dev/net/tun";
    match File::options().read(true).write(true).open(name) {
        Ok(_) => Finding::good(name, "may be opened"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Finding::bad(name, "missing").mend("sudo modprobe tun; in a container: --device /dev/net/tun")
        }
        Err(error) => Finding::bad(name, error.to_string()).mend("sudo bentpipe gateway ..."),
    }
}

fn forwarding(deploy: &Deploy) -> Finding {
    let on = |name: String| sysctl::read(&name).is_ok_and(|v| v == "1");
    let v4 = deploy
        .lan
        .iter()
        .chain([&deploy.satellite])
        .all(|interface| on(format!("net/ipv4/conf/{interface}/forwarding")));
    let v6 = on("net/ipv6/conf/all/forwarding".to_owned());
    let name = "forwarding";
    let (four, six) =
        ("sudo sysctl -w net.ipv4.ip_forward=1", "sudo sysctl -w net.ipv6.conf.all.forwarding=1");
    match (v4, v6) {
        (true, true) => Finding::good(name, "this machine forwards IPv4 and IPv6"),
        (true, false) => Finding::lack(name, "this machine forwards IPv4, not IPv6").mend(six),
        (false, true) => Finding::lack(name, "this machine forwards IPv6, not IPv4").mend(four),
        (false, false) => Finding::bad(name, "this machine is no router").mend(four).mend(six),
    }
}

fn nft_program() -> Finding {
    let name = "nft";
    match nft::version() {
        Ok(Some(version)) => Finding::good(name, version),
        Ok(None) => Finding::bad(name, "missing").mend(nft::MISSING),
        Err(error) => Finding::bad(name, error),
    }
}

fn settings() -> Option<Finding> {
    let name = "net/ipv4/conf/all/src_valid_mark";
    // with this setting the reverse path lookup uses the mark and finds the TUN interface, so the packet is
    // dropped as spoofed
    sysctl::read(name).is_ok_and(|v| v == "1").then(|| {
        let found = "1: reverse path filters would throw marked packets away";
        Finding::bad("src_valid_mark", found).mend("sudo sysctl -w net.ipv4.conf.all.src_valid_mark=0")
    })
}

/// Names and numbers that are already in use.
fn taken(deploy: &Deploy, plan: &Plan) -> Vec<Finding> {
    let mut all = Vec::new();
    let mut add = |what: String, key: &str| {
        let mend = format!("choose another `{key}` in [deploy]");
        all.push(Finding::bad(what, "somebody else uses it").mend(mend));
    };
    if nft::has_table(&deploy.nft_table) {
        add(format!("nftables table inet {}", deploy.nft_table), "nft_table");
    }
    let Ok(mut netlink) = Netlink::open() else { return all };
    for (tun, key) in [(&deploy.tun_lan, "tun_lan"), (&deploy.tun_satellite, "tun_satellite")] {
        if matches!(netlink.index(tun), Ok(Some(_))) {
            add(format!("interface {tun}"), key);
        }
    }
    let own = plan.undo(0).rules;
    let rules = netlink.rules().unwrap_or_default();
    if let Some(rule) = rules.iter().find(|r| own.iter().any(|(_, _, mark, _)| *mark == r.mark)) {
        add(format!("mark {:#x}", rule.mark), "mark");
    }
    if let Some(rule) = rules.iter().find(|r| own.iter().any(|(_, priority, _, _)| *priority == r.priority)) {
        add(format!("rule preference {}", rule.priority), "priority");
    }
    let routes = netlink.routes().unwrap_or_default();
    if let Some(route) = routes.iter().find(|r| r.table == deploy.table || r.table == deploy.table + 1) {
        add(format!("routing table {}", route.table), "table");
    }
    all
}

/// Carries out the plan in a new network namespace.
fn rehearsal(plan: &Plan) -> Finding {
    let name = "rehearsal";
    if !capability::has(CapabilitySet::SYS_ADMIN) {
        let found = "not made: a network namespace to make it in needs CAP_SYS_ADMIN";
        return Finding::lack(name, found);
    }
    let plan = plan.clone();
    let act = move || {
        namespace::new_network().map_err(|e| format!("a network namespace: {e}"))?;
        let mut netlink = Netlink::open().map_err(|e| e.to_string())?;
        netlink.set_up("lo").map_err(|e| e.to_string())?;
        setup::apply(&plan).map(drop).map_err(|e| e.to_string())
    };
    let ended = Builder::new().name(name.to_owned()).spawn(act).map(std::thread::JoinHandle::join);
    match ended {
        Ok(Ok(Ok(()))) => Finding::good(name, "every step works here, in a network namespace of its own"),
        Ok(Ok(Err(why))) => Finding::bad(name, why).mend("this kernel or nft lacks something"),
        Ok(Err(_)) => Finding::bad(name, "it panicked"),
        Err(error) => Finding::bad(name, error.to_string()),
    }
}

fn listeners(file: &GatewayFile) -> Vec<Finding> {
    let mut all = Vec::new();
    if let Some(at) = file.status.prometheus {
        let name = format!("{METRICS}{at}");
        match Http::bind(at) {
            Err(error) => all.push(Finding::bad(name, error.to_string())),
            Ok(_) if !at.ip().is_loopback() => {
                let found = "others on the network can read them";
                all.push(Finding::lack(name, found));
            }
            Ok(_) => all.push(Finding::good(&name, "the address is free")),
        }
    }
    let folder = |path: &str| Path::new(path).parent().is_some_and(Path::is_dir);
    for (what, path) in
        [("records", file.status.records.as_ref().map(|r| &r.0)), ("socket", file.status.socket.as_ref())]
    {
        if let Some(path) = path.filter(|path| !folder(path)) {
            let mend =
                format!("sudo mkdir -p {}", Path::new(path).parent().unwrap_or(Path::new("/")).display());
            all.push(Finding::bad(format!("{what} {path}"), "there is no such folder").mend(mend));
        }
    }
    all
}
