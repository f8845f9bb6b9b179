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
use bentpipe_base::names::nearest;
use bentpipe_os::netlink::{self, Netlink};
use bentpipe_os::realtime::{self, PriorityResult};
use bentpipe_os::{capability, namespace, nft, sysctl};
use bentpipe_scenario::gateway_file::{Deploy, GatewayFile, Kind};
use bentpipe_service::{CheckStatus, Finding, Http, Registry};
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
    /// Changes that would be made, as commands.
    pub fn steps(&self) -> Vec<String> {
        self.plan.steps.iter().map(ToString::to_string).collect()
    }

    /// True if the gateway would start.
    pub fn is_good(&self) -> bool {
        self.findings.iter().all(|f| f.standing != CheckStatus::Bad)
    }

    /// Fails with the findings that keep it from starting, if there are any.
    ///
    /// # Errors
    /// These findings.
    pub fn refuse(&self) -> Result<(), Error> {
        let bad: Vec<Finding> =
            self.findings.iter().filter(|f| f.standing == CheckStatus::Bad).cloned().collect();
        if bad.is_empty() { Ok(()) } else { Err(Error::ChecksFailed(bad)) }
    }

    /// Returns the check without the findings that a gateway of this name is running and uses the metrics
    /// address: it will be stopped.
    #[must_use]
    pub fn besides_running(mut self) -> Self {
        self.findings.retain(|f| !f.name.starts_with(RUNS) && !f.name.starts_with(METRICS));
        self
    }
}

/// Runs all checks without changing anything.
pub fn check(file: &GatewayFile, registry: &Registry) -> Check {
    let mut check = check_site(file, leftovers(registry, &file.deploy));
    check.findings.extend(listeners(file));
    check
}

/// Checks the machine for `file`. `left` says what a killed or running service of this name has changed.
pub fn check_site(file: &GatewayFile, left: Option<Finding>) -> Check {
    let deploy = &file.deploy;
    let mut findings = vec![permission(deploy.kind), priority()];
    let (found, mtu) = interfaces(deploy)
        .unwrap_or_else(|error| (vec![Finding::failure("netlink", error.to_string())], USUAL_MTU));
    findings.extend(found);
    let plan = Plan::new(file, mtu);
    let allowed = findings[0].standing != CheckStatus::Bad;
    let has_left = left.is_some();
    findings.extend(left);
    if deploy.kind == Kind::Routed {
        findings.extend([tun(), forwarding(deploy)]);
        let nft = nft_program();
        let there = nft.standing == CheckStatus::Good;
        findings.push(nft);
        findings.extend(settings());
        if allowed && there {
            if !has_left {
                findings.extend(in_use(deploy, &plan));
            }
            let scope = Scope::of(file);
            if scope != Scope::Nothing {
                findings.extend(firewall::findings(deploy, !scope.has_all()));
            }
            findings.push(rehearsal(&plan));
        }
    }
    findings.extend(sandbox::findings());
    Check { intercepted: Plan::intercepted(file), plan, findings }
}

/// Checks this machine for a service that stands on the host itself, with this plan.
pub fn check_host(file: &GatewayFile, plan: Plan, left: Option<Finding>) -> Check {
    let to_network = Deploy { lan: Vec::new(), ..file.deploy.clone() };
    let mut findings = vec![permission(Kind::Inline)];
    let found = interfaces(&to_network).map(|(found, _)| found);
    findings.extend(found.unwrap_or_else(|error| vec![Finding::failure("netlink", error.to_string())]));
    let nft = nft_program();
    let can_try = findings[0].standing != CheckStatus::Bad && nft.standing == CheckStatus::Good;
    findings.push(nft);
    findings.extend(settings());
    if can_try {
        if left.is_none() {
            findings.extend(in_use(&file.deploy, &plan));
        }
        findings.push(rehearsal(&plan));
    }
    findings.extend(left);
    findings.extend(sandbox::findings());
    Check { intercepted: Vec::new(), plan, findings }
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
    Finding::failure(name, format!("needs {words}")).with_help("sudo bentpipe gateway ...")
}

fn priority() -> Finding {
    let name = "priority";
    let PriorityResult { priority, refused } = realtime::obtainable_priority();
    let found = format!("{priority} for the data thread");
    let Some(why) = refused else { return Finding::good(name, found) };
    let late = "where other programs are busy packets leave late";
    Finding::warning(name, format!("{found}, real time is refused ({why}): {late}"))
        .with_help("run it as root, with CAP_SYS_NICE, or after `ulimit -r 10` (LimitRTPRIO=10 in a unit)")
}

/// Checks the interfaces; also returns the largest MTU.
fn interfaces(deploy: &Deploy) -> Result<(Vec<Finding>, u32), netlink::Error> {
    let mut netlink = Netlink::open()?;
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
        let used: Vec<&str> = deploy.lan.iter().chain([&deploy.satellite]).map(String::as_str).collect();
        all.push(Finding::failure(name, "it does not exist").with_help(other(wanted, &known, &used)));
    }
    if deploy.kind == Kind::Inline && mtus.windows(2).any(|pair| pair[0] != pair[1]) {
        let found = "the two interfaces have different MTUs";
        all.push(Finding::failure("MTU", found).with_help("ip link set dev NAME mtu N"));
    }
    Ok((all, mtus.into_iter().max().unwrap_or(USUAL_MTU)))
}

/// Which interface may be meant: not one that the file uses in another place.
fn other(wanted: &str, known: &[String], used: &[&str]) -> String {
    let free = known.iter().map(String::as_str).filter(|name| !used.contains(name));
    let near = nearest(wanted, free).map(|near| format!("did you mean {near}?"));
    near.unwrap_or_else(|| format!("there are {}", known.join(", ")))
}

/// Checks for a gateway of this name that was killed or is running.
fn leftovers(registry: &Registry, deploy: &Deploy) -> Option<Finding> {
    let session: Session = registry.entry(&deploy.name)?;
    let name = format!("{RUNS}{}`", session.name);
    if is_running(registry, &session.name) {
        let found = format!("it is running (process {})", session.process.pid);
        return Some(Finding::failure(name, found).with_help("bentpipe gateway stop, or run --replace"));
    }
    let found = "it was killed and left rules behind; the next run removes them first";
    Some(Finding::warning(name, found).with_help("sudo bentpipe gateway undo"))
}

fn tun() -> Finding {
    let name = "/dev/net/tun";
    match File::options().read(true).write(true).open(name) {
        Ok(_) => Finding::good(name, "can be opened"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Finding::failure(name, "missing")
            .with_help("sudo modprobe tun; in a container: --device /dev/net/tun"),
        Err(error) => Finding::failure(name, error.to_string()).with_help("sudo bentpipe gateway ..."),
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
        (true, false) => Finding::warning(name, "this machine forwards IPv4, not IPv6").with_help(six),
        (false, true) => Finding::warning(name, "this machine forwards IPv6, not IPv4").with_help(four),
        (false, false) => {
            Finding::failure(name, "this machine is not a router").with_help(four).with_help(six)
        }
    }
}

fn nft_program() -> Finding {
    let name = "nft";
    match nft::version() {
        Ok(Some(version)) => Finding::good(name, version),
        Ok(None) => Finding::failure(name, "missing").with_help(nft::MISSING),
        Err(error) => Finding::failure(name, error),
    }
}

fn settings() -> Option<Finding> {
    let name = "net/ipv4/conf/all/src_valid_mark";
    // with this setting the reverse path lookup uses the mark and finds the TUN interface, so the packet is
    // dropped as spoofed
    sysctl::read(name).is_ok_and(|v| v == "1").then(|| {
        let found = "1: reverse path filters would drop marked packets";
        Finding::failure("src_valid_mark", found)
            .with_help("sudo sysctl -w net.ipv4.conf.all.src_valid_mark=0")
    })
}

/// Names and numbers that are already in use.
fn in_use(deploy: &Deploy, plan: &Plan) -> Vec<Finding> {
    let mut all = Vec::new();
    let mut add = |what: String, key: &str| {
        let mend = format!("choose another `{key}` in [deploy]");
        all.push(Finding::failure(what, "already in use").with_help(mend));
    };
    if nft::list_table(&deploy.nft_table).is_ok() {
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
    // a rule that compares only some bits of the mark may apply to the gateway's packets too
    if let Some((_, _, mark, _)) = own.iter().find(|own| rules.iter().any(|rule| rule.matches(own.2))) {
        add(format!("mark {mark:#x}"), "mark");
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

fn rehearsal(plan: &Plan) -> Finding {
    let name = "rehearsal";
    if !capability::has(CapabilitySet::SYS_ADMIN) {
        let found = "not done: creating a network namespace for it needs CAP_SYS_ADMIN";
        return Finding::warning(name, found);
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
        Ok(Ok(Ok(()))) => Finding::good(name, "every step works here; tried in a separate network namespace"),
        Ok(Ok(Err(why))) => Finding::failure(name, why).with_help("this kernel or nft does not support it"),
        Ok(Err(_)) => Finding::failure(name, "it panicked"),
        Err(error) => Finding::failure(name, error.to_string()),
    }
}

fn listeners(file: &GatewayFile) -> Vec<Finding> {
    let mut all = Vec::new();
    if let Some(at) = file.status.prometheus {
        let name = format!("{METRICS}{at}");
        match Http::bind(at) {
            Err(error) => all.push(Finding::failure(name, error.to_string())),
            Ok(_) if !at.ip().is_loopback() => {
                let found = "others on the network can read them";
                all.push(Finding::warning(name, found));
            }
            Ok(_) => all.push(Finding::good(&name, "the address is free")),
        }
    }
    for (what, path) in
        [("records", file.status.records.as_ref().map(|r| &r.0)), ("socket", file.status.socket.as_ref())]
    {
        let folder = path.and_then(|path| Path::new(path).parent()).filter(|folder| !folder.is_dir());
        if let (Some(path), Some(folder)) = (path, folder) {
            let mend = format!("sudo mkdir -p {}", folder.display());
            all.push(Finding::failure(format!("{what} {path}"), "there is no such folder").with_help(mend));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_used_is_no_hint() {
        let known = ["lo", "eth0", "wlan0"].map(str::to_owned);
        // eth0 is the satellite already
        assert_eq!(other("eth1", &known, &["eth1", "eth0"]), "there are lo, eth0, wlan0");
        assert_eq!(other("eth1", &known, &["eth1", "wlan0"]), "did you mean eth0?");
    }
}
