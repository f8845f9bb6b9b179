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

/// One count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Processes of the rig: id and name.
    pub processes: BTreeSet<String>,
    /// Namespaces of these processes other than that of the test itself.
    pub namespaces: BTreeSet<String>,
    /// Interfaces and their addresses.
    pub interfaces: BTreeSet<String>,
    /// nftables tables; empty if they cannot be listed.
    pub tables: BTreeSet<String>,
    /// Routing rules and routes, and whether forwarding is on.
    pub settings: BTreeSet<String>,
    /// Files in the rig's folder.
    pub files: BTreeSet<String>,
    /// Open file descriptors of the whole machine.
    pub descriptors: u64,
}

impl Census {
    /// Counts now.
    pub fn take(rig: &Rig) -> Outcome<Self> {
        let mut census = Self::default();
        census.processes_of(rig);
        let lines = |script: &str| -> Outcome<BTreeSet<String>> {
            Ok(rig.shell(script, LOOK)?.lines().map(|l| l.trim().to_owned()).collect())
        };
        census.interfaces =
            lines("ip -o link show | sed 's/ state .*//'; ip -o addr show | sed 's/ valid.*//'")?;
        census.settings = lines(
            "ip rule; ip -6 rule; ip route show table all; cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/all/forwarding",
        )?;
        if !rig.is_ordinary() && has("nft") {
            census.tables = lines("nft list tables")?;
        }
        let mut files = BTreeSet::new();
        collect(rig.folder(), &mut files);
        // except files that the rig itself writes: outputs of programs
        files.retain(|f| f.contains('/') && !f.starts_with("bin/") && !f.starts_with("scenarios/"));
        census.files = files;
        census.descriptors = fs::read_to_string("/proc/sys/fs/file-nr")
            .ok()
            .and_then(|t| t.split_whitespace().next()?.parse().ok())
            .ok_or("/proc/sys/fs/file-nr: unreadable")?;
        Ok(census)
    }

    fn processes_of(&mut self, rig: &Rig) {
        let mark = rig.folder().as_os_str().as_bytes();
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
            self.processes.insert(format!("{} {}", process.display(), name.trim()));
            for kind in ["net", "user", "mnt", "pid", "ipc", "uts"] {
                let of = |p: &Path| fs::read_link(p.join("ns").join(kind)).ok();
                if let Some(theirs) = of(&process).filter(|t| Some(t) != of(Path::new("/proc/self")).as_ref())
                {
                    self.namespaces.insert(theirs.display().to_string());
                }
            }
        }
    }

    /// Lists what was added or removed since `before`. The number of descriptors may differ by `slack`,
    /// because other programs open and close files.
    pub fn differences(&self, before: &Self, slack: u64) -> Vec<String> {
        let mut all = Vec::new();
        for (what, then, now) in [
            ("process", &before.processes, &self.processes),
            ("namespace", &before.namespaces, &self.namespaces),
            ("interface", &before.interfaces, &self.interfaces),
            ("table", &before.tables, &self.tables),
            ("setting", &before.settings, &self.settings),
            ("file", &before.files, &self.files),
        ] {
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

/// Collects the paths of all files below `folder`, relative to it.
fn collect(folder: &Path, into: &mut BTreeSet<String>) {
    let mut open = vec![folder.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|t| t.is_dir()) {
                open.push(path);
            } else if let Ok(name) = path.strip_prefix(folder) {
                into.insert(name.display().to_string());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rig::Who;

    #[test]
    fn what_is_left_behind_is_named() {
        let skipped = |why: String| println!("SKIPPED what_is_left_behind_is_named: {why}");
        let rig = match Rig::new(Path::new("/bin/sh"), Who::Ourselves) {
            Ok(rig) if has("ip") => rig,
            Ok(_) => return skipped("there is no `ip`".to_owned()),
            Err(why) => return skipped(why),
        };
        let before = Census::take(&rig).unwrap();
        assert_eq!(before.processes.len(), usize::from(before.processes.iter().any(|p| p.contains("sleep"))));
        fs::write(rig.path("left"), "").unwrap();
        let left = rig.start(&["-c", "exec sleep 100"]).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let leaks = Census::take(&rig).unwrap().differences(&before, 10_000);
        assert!(leaks.contains(&"file left: tmp/left".to_owned()), "{leaks:?}");
        assert!(leaks.iter().any(|l| l.starts_with("process left: /proc/")), "{leaks:?}");
        drop(left);
        fs::remove_file(rig.path("left")).unwrap();
        assert_eq!(Census::leaks(&rig, &before, 10_000).unwrap(), Vec::<String>::new());
    }
}
