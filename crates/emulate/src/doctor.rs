//! Checks what this machine can do and what is missing, with the command that fixes each problem.

use crate::error::Error;
use crate::session::{HOST_MAC, INTERFACE, veth_pair};
use crate::{fixes, leftovers, registry};
use bentpipe_os::netlink::Netlink;
use bentpipe_os::packet::VethPort;
use bentpipe_os::{capability, namespace, nft, realtime, sysctl};
use bentpipe_service::{CheckStatus, Finding};
use std::fs::{self, File};
use std::os::fd::OwnedFd;

/// Runs all checks. The process must have one thread, and must exit soon: it is left in other namespaces.
pub fn run_checks() -> Vec<Finding> {
    let mut all = vec![
        leftovers_of_the_dead(),
        cores(),
        ipv6(),
        congestion_controls(),
        nft_program(),
        connector(),
        tun(),
    ];
    all.extend(namespaces());
    all.push(priority());
    // the most important first
    all.reverse();
    all
}

fn leftovers_of_the_dead() -> Finding {
    let name = "leftovers";
    match registry::open() {
        Err(error) => {
            let text = error.to_string();
            let mut lines = text.split("\nhelp: ");
            let found = lines.next().unwrap_or_default().to_owned();
            Finding { mends: lines.map(str::to_owned).collect(), ..Finding::failure(name, found) }
        }
        Ok(registry) => {
            let dead = leftovers::found(&registry);
            let names: Vec<&str> = dead.iter().map(|e| e.id.as_str()).collect();
            if names.is_empty() {
                return Finding::good(name, "none");
            }
            let found = format!("of sessions that were killed: {}", names.join(", "));
            Finding::warning(name, found).with_help("bentpipe doctor --clean")
        }
    }
}

fn cores() -> Finding {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    if count > 1 {
        return Finding::good("cores", count.to_string());
    }
    Finding::warning("cores", "1: the link and the programs behind it take turns, so packets are late")
}

fn ipv6() -> Finding {
    if fs::exists("/proc/sys/net/ipv6").unwrap_or(false) {
        return Finding::good("IPv6", "there");
    }
    Finding::warning("IPv6", "missing: links carry IPv4 only")
        .with_help("remove ipv6.disable=1 from the kernel's command line, then restart")
}

fn congestion_controls() -> Finding {
    let name = "congestion controls";
    let there = sysctl::read("net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    let mends: Vec<String> = ["cubic", "reno", "bbr", "vegas", "hybla", "westwood"]
        .into_iter()
        .filter(|wanted| !there.split_whitespace().any(|known| known == *wanted))
        .map(|missing| {
            format!("for {missing}: sudo modprobe tcp_{missing}, if this kernel was built with it")
        })
        .collect();
    let standing = if mends.is_empty() { CheckStatus::Good } else { CheckStatus::Lack };
    Finding { mends, ..Finding::new(name, standing, there) }
}

fn nft_program() -> Finding {
    let name = "nft (for --uplink)";
    match nft::version() {
        Ok(Some(version)) => Finding::good(name, version),
        _ => Finding::warning(name, "missing").with_help(nft::MISSING),
    }
}

fn connector() -> Finding {
    let name = "pasta or slirp4netns (for --uplink without root)";
    match crate::uplink::connector() {
        Some(path) => Finding::good(name, path.display().to_string()),
        None => Finding::warning(name, "missing").with_help("sudo apt-get install passt"),
    }
}

fn tun() -> Finding {
    let name = "/dev/net/tun (for TUN ports)";
    match File::options().read(true).write(true).open("/dev/net/tun") {
        Ok(_) => Finding::good(name, "can be opened"),
        Err(error) => {
            let fixes = match error.kind() {
                std::io::ErrorKind::NotFound => "sudo modprobe tun; in a container: --device /dev/net/tun",
                _ => "not needed: bentpipe uses veth; for others: sudo chmod 0666 /dev/net/tun",
            };
            Finding::warning(name, error.to_string()).with_help(fixes)
        }
    }
}

/// Tries everything that a session needs, in the order in which a session does.
fn namespaces() -> Vec<Finding> {
    let (users, networks, ports) = ("user namespaces", "network namespaces", "packet ports");
    let mut all = Vec::new();
    if capability::has(capability::NEEDED) {
        all.push(Finding::good(users, "not needed: this process may create network namespaces"));
    } else if let Err(error) = namespace::new_user() {
        let found = error.to_string();
        return vec![Finding { mends: fixes::user_namespaces(), ..Finding::failure(users, found) }];
    } else {
        all.push(Finding::good(users, "an ordinary user may create them"));
    }
    // the handle keeps the other network, and with it the veth pair, until the port was tried
    let pair = || -> Result<OwnedFd, Error> {
        let host = namespace::new_network().map_err(|e| Error::system("a network namespace", e))?;
        namespace::new_network().map_err(|e| Error::system("a second network namespace", e))?;
        let mut netlink = Netlink::open()?;
        netlink.add_veth(&veth_pair("p0", INTERFACE, &host))?;
        netlink.set_up("p0")?;
        Ok(host)
    };
    let held = pair();
    if let Err(error) = &held {
        let found = error.to_string();
        let no_veth = found.contains("pair of interfaces");
        let mends = if no_veth { vec!["sudo modprobe veth".to_owned()] } else { fixes::user_namespaces() };
        all.push(Finding { mends, ..Finding::failure(networks, found) });
        return all;
    }
    all.push(Finding::good(networks, "they can be created, with interfaces in them"));
    let port = VethPort::open("p0", HOST_MAC);
    drop(held);
    all.push(match port {
        Ok(_) => Finding::good(ports, "packet sockets with virtio headers work"),
        Err(error) => Finding::failure(ports, error.to_string()).with_help("sudo modprobe af_packet"),
    });
    all
}

fn priority() -> Finding {
    let name = "real-time priority";
    let got = realtime::raise();
    let found = got.to_string();
    if got.refused.is_none() {
        return Finding::good(name, found);
    }
    let fixes = "start bentpipe as root, or: echo \"$USER - rtprio 50\" | sudo tee /etc/security/limits.d/bentpipe.conf, then log in again";
    Finding::warning(name, found).with_help(fixes)
}
