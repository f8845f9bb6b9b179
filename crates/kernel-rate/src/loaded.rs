//! The programs in the kernel, and the rates that they read.

use crate::tuple::{key, prefix};
use crate::{Counts, Grant, NAME, Policy, Reason, Tuple};
use bentpipe_os::clock::monotonic;
use bentpipe_os::{namespace, tcp};
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, MapType, Object, ObjectBuilder, OpenObject};
use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::{Path, PathBuf};

/// The compiled programs.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/rate.bpf.o"));
/// The kernel's description of its types, by which fields are found.
const TYPES: &str = "/sys/kernel/btf/vmlinux";
/// Bytes of a name of a congestion control, with the zero at its end.
const LONGEST_NAME: usize = 16;
/// Most agents on a machine.
const MOST_AGENTS: u32 = 100;
/// How often a name is chosen again that another agent took first.
const RACES: u32 = 5;
/// What fails then.
const ADD: &str = "add the congestion control";
/// The only key of an array with one value.
const FIRST: [u8; 4] = [0; 4];

/// Rates of the kernel's sockets. Dropped, or after the end of the process, its sockets go on without a rate.
pub struct KernelRate {
    rates: MapHandle,
    lease: MapHandle,
    counts: MapHandle,
    name: String,
    /// The congestion control, and the group's program: both end with their links.
    _links: (Link, Link),
    _object: Object,
}

impl core::fmt::Debug for KernelRate {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("KernelRate").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

fn refused(what: &'static str) -> impl Fn(libbpf_rs::Error) -> Reason {
    move |error| Reason::Refused { what, error: error.to_string() }
}

/// The mount point of the cgroup hierarchy of version 2.
fn mount_point() -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/mounts").ok()?;
    let of = |line: &str| {
        let mut words = line.split(' ');
        let (_, at, kind) = (words.next()?, words.next()?, words.next()?);
        (kind == "cgroup2").then(|| PathBuf::from(at))
    };
    mounts.lines().find_map(of)
}

fn group(policy: &Policy) -> Result<File, Reason> {
    let lacks = "has no cgroup hierarchy of version 2";
    let hint = "mount one: mount -t cgroup2 none /sys/fs/cgroup";
    let path = policy.cgroup.clone().or_else(mount_point).ok_or(Reason::Kernel { lacks, hint })?;
    File::open(&path).map_err(|source| Reason::Group { path, source })
}

/// A name that no other agent of this machine uses.
fn free_name() -> Result<String, Reason> {
    let taken = tcp::congestion_controls().unwrap_or_default();
    let mut names = (1..=MOST_AGENTS).map(|n| if n == 1 { NAME.to_owned() } else { format!("{NAME}{n}") });
    names.find(|name| !taken.contains(name)).ok_or(Reason::Full("agent"))
}

/// Number of the calling thread's network namespace.
fn network() -> Result<u32, Reason> {
    let inode = namespace::network().and_then(namespace::inode);
    let refused = |error: String| Reason::Refused { what: "tell the network namespace", error };
    let inode = inode.map_err(|error| refused(error.to_string()))?;
    u32::try_from(inode).map_err(|error| refused(error.to_string()))
}

/// Writes the name and the network namespace where the programs have them: the constants of the programs, of
/// which the name is the first, and the description of the congestion control.
fn settle(open: &mut OpenObject, name: &str, network: u32) {
    let padded = |name: &str| {
        let mut bytes = [0; LONGEST_NAME];
        bytes.iter_mut().zip(name.bytes()).take(LONGEST_NAME - 1).for_each(|(to, from)| *to = from);
        bytes
    };
    let (before, after) = (padded(NAME), padded(name));
    for mut map in open.maps_mut() {
        let is_control = map.map_type() == MapType::StructOps;
        let Some(bytes) = map.initial_value_mut() else { continue };
        let Some(at) = bytes.windows(LONGEST_NAME).position(|part| part == before) else { continue };
        let (text, rest) = bytes[at..].split_at_mut(LONGEST_NAME);
        text.copy_from_slice(&after);
        if let Some(number) = rest.first_chunk_mut::<4>().filter(|_| !is_control) {
            *number = network.to_ne_bytes();
        }
    }
}

impl KernelRate {
    /// Says if the kernel's sockets can have rates, as far as this can be seen without loading anything.
    ///
    /// # Errors
    /// What is missing.
    pub fn check() -> Result<(), Reason> {
        if !Path::new(TYPES).exists() {
            let lacks = "does not describe its types (/sys/kernel/btf/vmlinux)";
            return Err(Reason::Kernel { lacks, hint: "use one that was built with CONFIG_DEBUG_INFO_BTF" });
        }
        if !libbpf_rs::MapType::StructOps.is_supported().unwrap_or(false) {
            let lacks = "does not let this user load a congestion control in BPF";
            return Err(Reason::Kernel { lacks, hint: "be root, with Linux 6.4 or later" });
        }
        let policy = Policy { cgroup: None, peers: Vec::new() };
        group(&policy).map(drop)
    }

    /// Loads the programs. Sockets of the calling thread's network namespace to the policy's peers get the
    /// congestion control once they have a rate. Each agent of a machine has its own, called `bent_rate`,
    /// `bent_rate2` and so on.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn load(policy: &Policy) -> Result<Self, Reason> {
        Self::check()?;
        let mut loaded = Self::load_as(policy, free_name()?);
        for _ in 0..RACES {
            match loaded {
                // perhaps another agent took the name meanwhile
                Err(Reason::Refused { what: ADD, .. }) => loaded = Self::load_as(policy, free_name()?),
                other => return other,
            }
        }
        loaded
    }

    fn load_as(policy: &Policy, name: String) -> Result<Self, Reason> {
        let group = group(policy)?;
        let mut open = ObjectBuilder::default().open_memory(OBJECT).map_err(refused("read the programs"))?;
        settle(&mut open, &name, network()?);
        let mut object = open.load().map_err(refused("load the programs"))?;
        let of = |name: &str| {
            let found = object.maps().find(|map| map.name() == name);
            let map = found.expect("the program defines it");
            MapHandle::try_from(&map).map_err(refused("open a map"))
        };
        let (rates, lease, counts, peers) = (of("rates")?, of("lease")?, of("counts")?, of("peers")?);
        for peer in &policy.peers {
            let added = peers.update(&prefix(*peer), &[0; 4], MapFlags::ANY);
            added.map_err(|_| Reason::Full("prefix"))?;
        }
        let control = object
            .maps_mut()
            .find(|map| map.map_type() == MapType::StructOps)
            .expect("the program defines it")
            .attach_struct_ops()
            .map_err(refused(ADD))?;
        let sockets = object
            .progs_mut()
            .find(|program| program.name() == "bent_sockets")
            .expect("the program defines it")
            .attach_cgroup(group.as_fd().as_raw_fd())
            .map_err(refused("attach the program to the control group"))?;
        let loaded = Self { rates, lease, counts, name, _links: (control, sockets), _object: object };
        loaded.renew()?;
        Ok(loaded)
    }

    /// The name of its congestion control.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Gives a connection a rate, or another one. The rate counts as confirmed.
    ///
    /// # Errors
    /// When there are too many connections.
    pub fn set(&self, tuple: &Tuple, grant: &Grant) -> Result<(), Reason> {
        let mut value = [0; 24];
        let rtt_us = u32::try_from(grant.rtt.0 / 1000).unwrap_or(u32::MAX);
        value[..8].copy_from_slice(&(grant.rate.bps() / 8).to_ne_bytes());
        value[8..16].copy_from_slice(&monotonic().to_ne_bytes());
        value[16..20].copy_from_slice(&rtt_us.to_ne_bytes());
        value[20..22].copy_from_slice(&grant.extra.to_ne_bytes());
        value[22..].copy_from_slice(&grant.threshold.clamp(1, 999).to_ne_bytes());
        self.rates.update(&key(tuple), &value, MapFlags::ANY).map_err(|_| Reason::Full("connection"))
    }

    /// Takes the rate of a connection: it goes on under CUBIC.
    pub fn forget(&self, tuple: &Tuple) {
        // it is an error only if there is none
        let _ = self.rates.delete(&key(tuple));
    }

    /// Renews the lease of all rates: call it every second. Two seconds after the last call sockets go on
    /// without them.
    ///
    /// # Errors
    /// When the kernel refuses, which it has no reason for.
    pub fn renew(&self) -> Result<(), Reason> {
        let now = monotonic().to_ne_bytes();
        self.lease.update(&FIRST, &now, MapFlags::ANY).map_err(refused("renew the lease"))
    }

    /// Says what happened.
    pub fn counts(&self) -> Counts {
        let of = |index: u32| {
            let value = self.counts.lookup(&index.to_ne_bytes(), MapFlags::ANY).ok().flatten();
            value.and_then(|bytes| bytes.first_chunk().copied()).map_or(0, u64::from_ne_bytes)
        };
        Counts { adopted: of(0), fell_back: of(1), left: of(2), refused: of(3) }
    }
}
