//! The Debian package: installed, started by systemd, upgraded under load, purged.

use super::machine::Machine;
use super::make;
use super::upgrade::{AGAIN_S, CONNECTIONS, process, upgrade};
use crate::accept::list::{List, Setup};
use crate::{Outcome, metadata};
use lab::chain::{Chain, OLD_KERNEL};
use lab::once::output;
use lab::scenario::OneLink;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The hop, which is slow enough for the transfers to last.
const HOP: OneLink<'_> =
    OneLink { rate: "50 Mbit/s", delay: "275 ms", buffer: "4 MB", seed: 7, ..OneLink::CLEAN };
/// What the package must install, besides the pages of commands.
const FILES: [&str; 7] = [
    "/usr/bin/bentpipe",
    "/usr/lib/systemd/system/bentpipe-gateway.service",
    "/usr/share/bash-completion/completions/bentpipe",
    "/usr/share/zsh/vendor-completions/_bentpipe",
    "/usr/share/fish/vendor_completions.d/bentpipe.fish",
    "/usr/share/man/man1/bentpipe-gateway-run.1.gz",
    "/usr/share/doc/bentpipe/examples/gateway.toml",
];
const START: &str = r#"
mkdir -p /etc/bentpipe
cat >/etc/bentpipe/gateway.toml <<END
schema = 1
[satellite]
rate = "50 Mbit/s"
[deploy]
kind = "routed"
lan = "lan0"
satellite = "bent0"
watch = "0 s"
END
systemctl enable --now bentpipe-gateway 2>&1
for n in $(seq 100); do bentpipe gateway status >/dev/null 2>&1 && exit; sleep 0.1; done
systemctl status bentpipe-gateway; journalctl -u bentpipe-gateway; exit 1"#;
/// The network of the machine without what the kernel counts, and without the state of interfaces.
const NETWORK: &str = "ip rule; ip -6 rule; ip -br link | cut -d ' ' -f 1; nft list ruleset";

pub(super) fn check(_: &Setup, list: &mut List) -> Outcome {
    make(&["deb"])?;
    let old = package(&metadata::root().join("target/debian"))?;
    let new = next(&old)?;
    let chain = Chain::new(&metadata::root().join("target/release/bentpipe"), &HOP.toml(), OLD_KERNEL)?;
    let machine = Machine::boot(&chain, &[&old, &new])?;
    let before = traces(&machine)?;
    installed(list, &machine, &old)?;
    started(list, &machine)?;
    let path = |package: &Path| format!("/run/packages/{}", name(package));
    list.judge(
        format!("upgraded under {CONNECTIONS} connections: all accelerated within {AGAIN_S} s, none broken"),
        upgrade(&chain, &machine, &path(&new)),
        |u| {
            let figure = format!(
                "{} accelerated before, {} again {:.1} s after the old gateway's stop, {} of {} intact",
                u.before, u.again.0, u.again.1, u.intact.0, u.intact.1
            );
            let all = CONNECTIONS as usize;
            let met = u.replaced && (u.before, u.again.0, u.intact) == (all, all, (all, all));
            (figure, met && u.again.1 <= AGAIN_S)
        },
    );
    refused(list, &machine, &path(&old))?;
    purged(list, &machine, &before)
}

/// Installs another version while the new gateway would not start with its file.
fn refused(list: &mut List, machine: &Machine<'_>, other: &str) -> Outcome {
    let old = process(machine)?;
    let said = machine.run(&format!(
        "echo 'unknown = 1' >>/etc/bentpipe/gateway.toml; DEBIAN_FRONTEND=noninteractive dpkg -i {other} 2>&1"
    ))?;
    let status = machine.run("bentpipe gateway status")?;
    let is_told = said.contains("bentpipe gateway check --replace /etc/bentpipe/gateway.toml");
    let met = is_told && process(machine)? == old && !status.is_empty();
    list.line("upgraded with a file that the new gateway refuses: the old one goes on", "", met);
    Ok(())
}

/// Paths that the machine has made, and lines of [`NETWORK`].
fn traces(machine: &Machine<'_>) -> Outcome<[BTreeSet<String>; 2]> {
    Ok([machine.made()?, machine.run(NETWORK)?.lines().map(|line| line.trim().to_owned()).collect()])
}

fn purged(list: &mut List, machine: &Machine<'_>, before: &[BTreeSet<String>; 2]) -> Outcome {
    let installed = traces(machine)?;
    machine.run("dpkg --purge bentpipe 2>&1")?;
    let now = traces(machine)?;
    for (i, what) in ["paths", "interfaces, rules and tables"].into_iter().enumerate() {
        let added = installed[i].difference(&before[i]).count();
        let left: Vec<&str> = now[i].difference(&before[i]).map(String::as_str).collect();
        let figure = format!("{} of {added} left {}", left.len(), left.join("; "));
        list.line(format!("purged: {what} of it are gone"), figure, left.is_empty() && added > 0);
    }
    Ok(())
}

/// The only package in a folder.
fn package(folder: &Path) -> Outcome<PathBuf> {
    let files = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut all = files.flatten().map(|f| f.path()).filter(|p| p.extension().is_some_and(|e| e == "deb"));
    all.next().ok_or_else(|| format!("{}: no package", folder.display()))
}

fn name(package: &Path) -> String {
    package.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The same package with a higher version.
fn next(package: &Path) -> Outcome<PathBuf> {
    let folder = metadata::root().join("target/debian-next");
    let (tree, new) = (folder.join("tree"), folder.join("bentpipe_next.deb"));
    let script = format!(
        "rm -rf '{0}' && mkdir -p '{0}' && dpkg-deb -R '{1}' '{2}' && sed -i 's/^Version: .*/&+next/' '{2}/DEBIAN/control' &&
         dpkg-deb --root-owner-group -Zgzip -b '{2}' '{3}' && rm -r '{2}'",
        folder.display(),
        package.display(),
        tree.display(),
        new.display()
    );
    output("a package of the next version", Command::new("sh").args(["-c", &script])).map(|_| new)
}

fn installed(list: &mut List, machine: &Machine<'_>, package: &Path) -> Outcome {
    machine.run(&format!("DEBIAN_FRONTEND=noninteractive dpkg -i /run/packages/{} 2>&1", name(package)))?;
    let there =
        machine.run("dpkg -L bentpipe | while read -r path; do test -e \"$path\" && echo \"$path\"; done")?;
    let lacking: Vec<&str> =
        FILES.iter().copied().filter(|f| !there.lines().any(|path| path == *f)).collect();
    let pages = there.lines().filter(|path| path.starts_with("/usr/share/man/man1/bentpipe")).count();
    let version = machine.run("bentpipe --version")?;
    let figure = format!("{}, {pages} manual pages; lacking: {}", version.trim(), lacking.join(" "));
    list.line(
        "installed: program, pages, completions, unit, examples",
        figure,
        lacking.is_empty() && pages > 30,
    );
    let said = machine.run("systemd-analyze verify /usr/lib/systemd/system/bentpipe-gateway.service 2>&1")?;
    list.line("systemd-analyze verify says nothing of the unit", said.trim(), said.trim().is_empty());
    Ok(())
}

/// Starts the unit; what limits its process is read from the kernel.
fn started(list: &mut List, machine: &Machine<'_>) -> Outcome {
    machine.run(START)?;
    let id = process(machine)?;
    let status = machine.run(&format!("cat /proc/{id}/status"))?;
    let value = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(":\t"));
        line.unwrap_or_default().to_owned()
    };
    // NET_ADMIN and SYS_NICE, capabilities 12 and 23
    let kept = (1_u64 << 12) | (1 << 23);
    let capabilities = u64::from_str_radix(&value("CapEff"), 16).unwrap_or(u64::MAX);
    let (filter, privileges) = (value("Seccomp"), value("NoNewPrivs"));
    let figure =
        format!("process {id}, capabilities {capabilities:x}, Seccomp {filter}, NoNewPrivs {privileges}");
    let met = capabilities & !kept == 0 && (filter.as_str(), privileges.as_str()) == ("2", "1");
    list.line("started by systemd with the limits of the unit", figure, met);
    Ok(())
}
