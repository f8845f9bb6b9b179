//! Counts resources of the machine before and after a test: processes, namespaces, interfaces, tables,
//! files, descriptors, settings.
//!
//! Only what belongs to a rig is counted, so that other activity does not interfere: processes with the
//! rig's folder in their environment, files in that folder, and interfaces and tables in the rig's network
//! namespace.

use crate::Outcome;
use crate::rig::{Rig, has};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time for the kernel to clean up after a process ended.
const SETTLED: Duration = Duration::from_secs(5);
/// Time limit of one count.
const LOOK: Duration = Duration::from_secs(20);
/// Interfaces and their addresses, without what changes by itself.
const INTERFACES: &str = "ip -o link show | sed 's/ state .*//'; ip -o addr show | sed 's/ valid.*//'";
/// Routing rules and routes, and whether forwarding is on.
const SETTINGS: &str = "ip rule; ip -6 rule; ip route show table all; \
    cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/all/forwarding";

/// One count.
#[derive(Clone, Debug)]
pub struct SystemState {
    /// What was found, by its kind.
    found: [(&'static str, BTreeSet<String>); 6],
    /// Open file descriptors of the whole machine.
    descriptors: u64,
}

impl SystemState {
    /// Counts now.
    pub fn take(rig: &Rig) -> Outcome<Self> {
        let (processes, namespaces) = processes_of(rig);
        let lines = |script: &str| -> Outcome<BTreeSet<String>> {
            Ok(rig.shell(script, LOOK)?.lines().map(|l| l.trim().to_owned()).collect())
        };
        let can_list = !rig.is_unprivileged() && has("nft");
        let mut files = lines("find . ! -type d 2>/dev/null | cut -c 3-")?;
        // except files that the rig itself writes: outputs of programs
        files.retain(|f| f.contains('/') && !f.starts_with("bin/") && !f.starts_with("scenarios/"));
        let descriptors = fs::read_to_string("/proc/sys/fs/file-nr")
            .ok()
            .and_then(|t| t.split_whitespace().next()?.parse().ok())
            .ok_or("/proc/sys/fs/file-nr: unreadable")?;
        let found = [
            ("process", processes),
            ("namespace", namespaces),
            ("interface", lines(INTERFACES)?),
            ("table", if can_list { lines("nft list tables")? } else { BTreeSet::new() }),
            ("setting", lines(SETTINGS)?),
            ("file", files),
        ];
        Ok(Self { found, descriptors })
    }

    /// Lists what was added or removed since `before`. The number of descriptors may differ by `slack`,
    /// because other programs open and close files.
    pub fn differences(&self, before: &Self, slack: u64) -> Vec<String> {
        let mut all = Vec::new();
        for ((what, then), (_, now)) in before.found.iter().zip(&self.found) {
            all.extend(now.difference(then).map(|x| format!("{what} left: {x}")));
            all.extend(then.difference(now).map(|x| format!("{what} gone: {x}")));
        }
        if self.descriptors > before.descriptors + slack {
            all.push(format!("descriptors: {} before, {} after", before.descriptors, self.descriptors));
        }
        all
    }

    /// Differences that remain after the kernel had time to clean up.
    pub fn leaks(rig: &Rig, before: &Self, slack: u64) -> Outcome<Vec<String>> {
        let since = Instant::now();
        loop {
            let leaks = Self::take(rig)?.differences(before, slack);
            if leaks.is_empty() || since.elapsed() > SETTLED {
                return Ok(leaks);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// The processes of the rig, and their namespaces other than those of the test itself.
fn processes_of(rig: &Rig) -> (BTreeSet<String>, BTreeSet<String>) {
    let mark = rig.folder().as_os_str().as_bytes();
    let (mut processes, mut namespaces) = (BTreeSet::new(), BTreeSet::new());
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    for process in entries.map(|e| e.path()) {
        let is_number = process.file_name().is_some_and(|n| n.as_bytes().iter().all(u8::is_ascii_digit));
        let environment = if is_number { fs::read(process.join("environ")) } else { continue };
        let is_ours = environment.is_ok_and(|e| e.windows(mark.len()).any(|w| w == mark));
        let state = fs::read_to_string(process.join("stat")).unwrap_or_default();
        let is_dead =
            state.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']));
        if !is_ours || is_dead {
            continue;
        }
        let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
        processes.insert(format!("{} {}", process.display(), name.trim()));
        for kind in ["net", "user", "mnt", "pid", "ipc", "uts"] {
            let of = |p: &Path| fs::read_link(p.join("ns").join(kind)).ok();
            let theirs = of(&process).filter(|t| Some(t) != of(Path::new("/proc/self")).as_ref());
            namespaces.extend(theirs.map(|t| t.display().to_string()));
        }
    }
    (processes, namespaces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rig::Who;

    #[test]
    fn what_is_left_behind_is_named() {
        let skipped = |why: String| println!("SKIPPED what_is_left_behind_is_named: {why}");
        let rig = match Rig::new(Path::new("/bin/sh"), Who::CurrentUser) {
            Ok(rig) if has("ip") => rig,
            Ok(_) => return skipped("there is no `ip`".to_owned()),
            Err(why) => return skipped(why),
        };
        let before = SystemState::take(&rig).unwrap();
        let processes = &before.found[0].1;
        assert_eq!(processes.len(), usize::from(processes.iter().any(|p| p.contains("sleep"))));
        fs::write(rig.path("left"), "").unwrap();
        let left = rig.start(&["-c", "exec sleep 100"]).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let leaks = SystemState::take(&rig).unwrap().differences(&before, 10_000);
        assert!(leaks.contains(&"file left: tmp/left".to_owned()), "{leaks:?}");
        assert!(leaks.iter().any(|l| l.starts_with("process left: /proc/")), "{leaks:?}");
        drop(left);
        fs::remove_file(rig.path("left")).unwrap();
        assert_eq!(SystemState::leaks(&rig, &before, 10_000).unwrap(), Vec::<String>::new());
    }
}
