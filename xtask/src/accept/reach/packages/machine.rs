//! A machine with systemd, on which packages are installed: the router of a [`Chain`] with a root folder,
//! processes and control groups of its own. Its root folder is this machine's, under a layer in memory that
//! takes all changes.

use crate::Outcome;
use lab::Running;
use lab::chain::{Chain, pid};
use lab::passage::Host;
use lab::rig::wait_for;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);
/// How often [`Machine::drop`] tries to remove the control groups of processes that are just ending.
const TRIES: u32 = 50;

/// Starts the machine, whose files are in the folder `$1`, in a control group of its own.
const BOOT: &str = r#"
mkdir "$1/groups" && mount -t cgroup2 none "$1/groups"
mkdir "$1/groups/bentpipe-$$" && echo $$ >"$1/groups/bentpipe-$$/cgroup.procs"
exec unshare --mount --pid --fork --kill-child --cgroup --uts --ipc -- sh -ec "$2" sh "$1"
"#;

/// Continues as the first process of the machine. `/proc` is still that of all processes when its id is read.
const INIT: &str = r#"
read -r init rest </proc/self/stat
layer=$1/layer
mkdir "$layer" && mount -t tmpfs -o size=3g tmpfs "$layer"
cd "$layer" && mkdir upper work all
mount -t overlay -o "lowerdir=/,upperdir=$layer/upper,workdir=$layer/work" overlay all
cd all
# as on a fresh machine: no services, nothing that keeps dpkg from installing files or from restarting services
rm -rf etc/systemd/system/*.wants etc/dpkg/dpkg.cfg.d usr/sbin/policy-rc.d
mount -t proc proc proc && mount -t sysfs sysfs sys && mount -t cgroup2 none sys/fs/cgroup
for folder in dev run tmp; do mount -t tmpfs tmpfs $folder; done
mkdir dev/net dev/shm dev/pts run/packages run/changes run/below
# what is changed, and what is below
mount --bind "$layer/upper" run/changes && mount --bind / run/below
for device in 'null 1 3' 'zero 1 5' 'full 1 7' 'random 1 8' 'urandom 1 9' 'tty 5 0' 'net/tun 10 200'; do
    set -- "$1" $device
    mknod -m 666 "dev/$2" c "$3" "$4"
done
ln -s /proc/self/fd dev/fd
# of the kernel's settings only those of its network are its own
mount --bind proc/sys proc/sys && mount -o remount,bind,ro proc/sys
mount --bind proc/sys/net proc/sys/net && mount -o remount,bind,rw proc/sys/net
ln -s /dev/null etc/systemd/system/systemd-sysctl.service
cp "$1"/*.deb run/packages
echo "$init" >"$1/init.part" && mv "$1/init.part" "$1/init"
pivot_root . mnt && umount -l mnt
exec env -i container=chroot PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot . \
    /lib/systemd/systemd --unit=basic.target --show-status=0
"#;

/// What dpkg, apt and ldconfig write, besides the files of packages.
const OF_DPKG: [&str; 8] = [
    "/var/lib/dpkg",
    "/var/log/dpkg.log",
    "/var/cache/debconf",
    "/var/lib/apt",
    "/var/cache/apt",
    "/var/log/apt",
    "/etc/ld.so.cache",
    "/var/cache/ldconfig",
];

pub(super) struct Machine<'a> {
    chain: &'a Chain,
    init: u32,
    _running: Running,
}

impl<'a> Machine<'a> {
    /// Boots the router of `chain`, with these packages in `/run/packages`.
    pub(super) fn boot(chain: &'a Chain, packages: &[&Path]) -> Outcome<Self> {
        let folder = chain.rig().folder();
        for package in packages {
            let to = folder.join(package.file_name().unwrap_or_default());
            std::fs::copy(package, &to).map_err(|e| format!("{}: {e}", package.display()))?;
        }
        let words = ["sh", "-ec", BOOT, "sh", &folder.display().to_string(), INIT];
        let running = chain.start(Host::Router, &words)?;
        let init = pid(&folder.join("init")).map_err(|e| format!("{e}: {}", running.err()))?;
        let machine = Self { chain, init, _running: running };
        wait_for("the start of systemd in a namespace", || {
            // it is `degraded` where units of this machine do not start in a namespace
            let state = machine.run("systemctl is-system-running || true")?;
            Ok(matches!(state.trim(), "running" | "degraded"))
        })?;
        Ok(machine)
    }

    /// Runs a shell script there as root, which must succeed; returns its standard output.
    pub(super) fn run(&self, script: &str) -> Outcome<String> {
        let init = self.init.to_string();
        let path = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
        // the folder of the caller is none of that machine's
        let inside = format!("cd /; {script}");
        let words = ["--target", &init, "--all", "--root", "--", "env", "-i", path, "sh", "-ec", &inside];
        let command = self.chain.rig().command(Path::new("nsenter"), &words);
        Ok(self.chain.rig().spawn(command, script)?.wait(LIMIT)?.succeeded(script)?.out)
    }

    /// All paths that this machine has made and still has, but for those of dpkg. Those that other programs
    /// make meanwhile in the layer below are not among them.
    pub(super) fn made(&self) -> Outcome<BTreeSet<String>> {
        // what is removed is a device in this layer
        let all = self.run(
            "cd /run/changes; find . ! -type c | sed 's/^.//' | while read -r path; do
                 [ -e \"/run/below$path\" ] || [ -L \"/run/below$path\" ] || echo \"$path\"
             done; find /run /tmp -xdev -path '*bentpipe*' ! -path '/run/packages/*'",
        )?;
        let own = |path: &&str| !OF_DPKG.iter().any(|of| path.starts_with(of));
        Ok(all.lines().filter(own).map(str::to_owned).collect())
    }
}

impl Drop for Machine<'_> {
    fn drop(&mut self) {
        if let Some(init) = Pid::from_raw(self.init as i32) {
            // all its processes end with it
            let _ = kill_process(init, Signal::KILL);
        }
        let script = format!(
            "for n in $(seq {TRIES}); do find groups/bentpipe-* -depth -type d -exec rmdir {{}} + 2>/dev/null && break; sleep 0.1; done"
        );
        let _ = self.chain.rig().shell(&script, LIMIT);
    }
}
