//! What is missing for a gateway on this machine, before anything is changed; and a rehearsal of all that would be.
//!
//! The rehearsal carries out the whole plan in a network namespace that is made for it and goes with it: what this kernel or this `nft` cannot do shows there.

use super::divert::Scope;
use super::error::Error;
use super::firewall;
use super::plan::Plan;
use super::sandbox;
use super::session::{Session, Sessions};
use super::setup;
use crate::status::Http;
use bentpipe_base::names::nearest;
use bentpipe_os::netlink::Netlink;
use bentpipe_os::{capability, namespace, nft, realtime, sysctl};
use bentpipe_scenario::gateway_file::{Deploy, GatewayFile, Kind};
use rustix::thread::CapabilitySet;
use serde::Serialize;
use std::fs::File;
use std::path::Path;
use std::thread::Builder;

/// Longest packet of interfaces that are not there.
const USUAL_MTU: u32 = 1500;

/// How findings about gateways and about the address for metrics begin.
const RUNS: &str = "gateway `";
const METRICS: &str = "metrics at ";

/// How something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// It is as it should be.
    Good,
    /// The gateway can do without, or with this.
    Lack,
    /// Without this it does not start.
    Bad,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub name: String,
    /// How it stands.
    pub standing: Standing,
    /// What was found.
    pub found: String,
    /// What mends it, a line each.
    pub mends: Vec<String>,
}

impl Finding {
    fn new(name: &str, standing: Standing, found: impl Into<String>, mends: &[&str]) -> Self {
        let mends = mends.iter().map(|m| (*m).to_owned()).collect();
        Self { name: name.to_owned(), standing, found: found.into(), mends }
    }

    pub(super) fn of(name: &str, standing: Standing, found: impl Into<String>) -> Self {
        Self::new(name, standing, found, &[])
    }

    pub(super) fn lack(name: &str, found: impl Into<String>) -> Self {
        Self::new(name, Standing::Lack, found, &[])
    }

    pub(super) fn good(name: &str, found: impl Into<String>) -> Self {
        Self::new(name, Standing::Good, found, &[])
    }
}

/// What would be done, and what stands in the way.
#[derive(Clone, Debug)]
pub struct Check {
    /// What the gateway would get to see.
    pub intercepted: Vec<String>,
    /// What would be changed.
    pub plan: Plan,
    /// What was found.
    pub findings: Vec<Finding>,
}

impl Check {
    /// True when the gateway would start.
    pub fn is_good(&self) -> bool {
        self.findings.iter().all(|f| f.standing != Standing::Bad)
    }

    pub(super) fn refuse(&self) -> Result<(), Error> {
        let bad: Vec<Finding> =
            self.findings.iter().filter(|f| f.standing == Standing::Bad).cloned().collect();
        if bad.is_empty() { Ok(()) } else { Err(Error::Missing(bad)) }
    }

    /// The same, but for what a gateway of this name has that runs and will stop: its name, and the address of its metrics.
    pub(super) fn refuse_beside_running(mut self) -> Result<(), Error> {
        self.findings.retain(|f| !f.name.starts_with(RUNS) && !f.name.starts_with(METRICS));
        self.refuse()
    }
}

/// Looks at everything and changes nothing. `can_inline`: the data path has ports for frames.
pub fn check(file: &GatewayFile, sessions: &Sessions, can_inline: bool) -> Check {
    let deploy = &file.deploy;
    let mut findings = vec![permission(deploy.kind), priority()];
    let mut mtu = USUAL_MTU;
    match Netlink::open() {
        Ok(mut netlink) => findings.extend(interfaces(deploy, &mut netlink, &mut mtu)),
        Err(error) => findings.push(Finding::new("netlink", Standing::Bad, error.to_string(), &[])),
    }
    let plan = Plan::new(file, mtu);
    let allowed = findings[0].standing != Standing::Bad;
    let left = leftovers(sessions, deploy, &mut findings);
    if deploy.kind == Kind::Inline {
        if !can_inline {
            let found = "this program has no data path for frames";
            findings.push(Finding::new("inline", Standing::Bad, found, &["kind = \"routed\""]));
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
    Finding::new(name, Standing::Bad, format!("needs {words}"), &["sudo bentpipe gateway ..."])
}

/// Whether the data thread gets the processor in time.
fn priority() -> Finding {
    let name = "priority";
    match realtime::foresee() {
        Ok(priority) => Finding::good(name, format!("{priority} for the data thread")),
        Err((priority, why)) => {
            let found = format!(
                "{priority} for the data thread, {why}: where other programs are busy packets leave late"
            );
            Finding::new(
                name,
                Standing::Lack,
                found,
                &["run it as root, with CAP_SYS_NICE, or after `ulimit -r 10` (LimitRTPRIO=10 in a unit)"],
            )
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
        all.push(Finding::new(&name, Standing::Bad, "there is none of this name", &[&mend]));
    }
    *mtu = mtus.iter().copied().max().unwrap_or(USUAL_MTU);
    if deploy.kind == Kind::Inline && mtus.windows(2).any(|pair| pair[0] != pair[1]) {
        let found = "the two interfaces carry packets of different length";
        all.push(Finding::new("MTU", Standing::Bad, found, &["ip link set dev NAME mtu N"]));
    }
    all
}

/// A killed gateway of this name, or one that runs.
fn leftovers(sessions: &Sessions, deploy: &Deploy, findings: &mut Vec<Finding>) -> Option<Session> {
    let session = sessions.all().into_iter().find(|s| s.name == deploy.name)?;
    let name = format!("{RUNS}{}`", session.name);
    if sessions.is_running(&session.name) {
        let found = format!("it is running (process {})", session.pid);
        findings.push(Finding::new(
            &name,
            Standing::Bad,
            found,
            &["bentpipe gateway stop, or run --replace"],
        ));
    } else {
        let found = "it was killed and has left rules behind; the next run takes them back first";
        findings.push(Finding::new(&name, Standing::Lack, found, &["sudo bentpipe gateway undo"]));
    }
    Some(session)
}

fn tun() -> Finding {
    let name = "/dev/net/tun";
    match File::options().read(true).write(true).open(name) {
        Ok(_) => Finding::good(name, "may be opened"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Finding::new(
            name,
            Standing::Bad,
            "missing",
            &["sudo modprobe tun; in a container: --device /dev/net/tun"],
        ),
        Err(error) => Finding::new(name, Standing::Bad, error.to_string(), &["sudo bentpipe gateway ..."]),
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
        (true, false) => Finding::new(name, Standing::Lack, "this machine forwards IPv4, not IPv6", &[six]),
        (false, true) => Finding::new(name, Standing::Lack, "this machine forwards IPv6, not IPv4", &[four]),
        (false, false) => Finding::new(name, Standing::Bad, "this machine is no router", &[four, six]),
    }
}

fn nft_program() -> Finding {
    let name = "nft";
    match nft::version() {
        Ok(Some(version)) => Finding::good(name, version),
        Ok(None) => Finding::new(name, Standing::Bad, "missing", &[nft::MISSING]),
        Err(error) => Finding::new(name, Standing::Bad, error, &[]),
    }
}

fn settings() -> Option<Finding> {
    let name = "net/ipv4/conf/all/src_valid_mark";
    // then the way back is looked up with the mark, leads into our interface, and the packet is thrown away as forged
    sysctl::read(name).is_ok_and(|v| v == "1").then(|| {
        let found = "1: reverse path filters would throw marked packets away";
        Finding::new(
            "src_valid_mark",
            Standing::Bad,
            found,
            &["sudo sysctl -w net.ipv4.conf.all.src_valid_mark=0"],
        )
    })
}

/// Names and numbers that somebody else uses.
fn taken(deploy: &Deploy, plan: &Plan) -> Vec<Finding> {
    let mut all = Vec::new();
    let mut add = |what: String, key: &str| {
        let mend = format!("choose another `{key}` in [deploy]");
        all.push(Finding::new(&what, Standing::Bad, "somebody else uses it", &[&mend]));
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
    let debts = setup::Debts::of(plan);
    let rules = netlink.rules().unwrap_or_default();
    if let Some(rule) = rules.iter().find(|r| debts.rules.iter().any(|own| own.mark == r.mark)) {
        add(format!("mark {:#x}", rule.mark), "mark");
    }
    if let Some(rule) = rules.iter().find(|r| debts.rules.iter().any(|own| own.priority == r.priority)) {
        add(format!("rule preference {}", rule.priority), "priority");
    }
    let routes = netlink.routes().unwrap_or_default();
    if let Some(route) = routes.iter().find(|r| r.table == deploy.table || r.table == deploy.table + 1) {
        add(format!("routing table {}", route.table), "table");
    }
    all
}

/// Does it all where nobody is.
fn rehearsal(plan: &Plan) -> Finding {
    let name = "rehearsal";
    if !capability::has(CapabilitySet::SYS_ADMIN) {
        let found = "not made: a network namespace to make it in needs CAP_SYS_ADMIN";
        return Finding::new(name, Standing::Lack, found, &[]);
    }
    let plan = plan.clone();
    let act = move || {
        namespace::new_network().map_err(|e| format!("a network namespace: {e}"))?;
        let mut netlink = Netlink::open().map_err(|e| e.to_string())?;
        netlink.set_up("lo").map_err(|e| e.to_string())?;
        setup::apply(&plan).map(drop).map_err(|e| e.to_string().replacen("error: ", "", 1))
    };
    let ended = Builder::new().name(name.to_owned()).spawn(act).map(std::thread::JoinHandle::join);
    match ended {
        Ok(Ok(Ok(()))) => Finding::good(name, "every step works here, in a network namespace of its own"),
        Ok(Ok(Err(why))) => Finding::new(name, Standing::Bad, why, &["this kernel or nft lacks something"]),
        Ok(Err(_)) => Finding::new(name, Standing::Bad, "it panicked", &[]),
        Err(error) => Finding::new(name, Standing::Bad, error.to_string(), &[]),
    }
}

fn listeners(file: &GatewayFile) -> Vec<Finding> {
    let mut all = Vec::new();
    if let Some(at) = file.status.prometheus {
        let name = format!("{METRICS}{at}");
        match Http::bind(at) {
            Err(error) => all.push(Finding::new(&name, Standing::Bad, error.to_string(), &[])),
            Ok(_) if !at.ip().is_loopback() => {
                let found = "others on the network can read them";
                all.push(Finding::new(&name, Standing::Lack, found, &[]));
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
            all.push(Finding::new(
                &format!("{what} {path}"),
                Standing::Bad,
                "there is no such folder",
                &[&mend],
            ));
        }
    }
    all
}
