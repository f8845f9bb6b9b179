//! Shared by all parts of a list: the program under test, the run of all tests, and the time allowed.

use super::tests::Tests;
use crate::{Outcome, bench, metadata, program};
use lab::{Rig, Who};
use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Measuring programs, and their Debian packages.
const PROGRAMS: [(&str, &str); 5] = [
    ("iperf3", "iperf3"),
    ("ping", "iputils-ping"),
    ("tcpdump", "tcpdump"),
    ("ip", "iproute2"),
    ("nft", "nftables"),
];

/// Shared state, created when first needed.
pub(super) struct Setup {
    pub long: bool,
    bentpipe: OnceCell<Outcome<PathBuf>>,
    with_bpf: OnceCell<Outcome<PathBuf>>,
    tests: OnceCell<Outcome<Tests>>,
}

impl Setup {
    pub(super) const fn new(long: bool) -> Self {
        Self { long, bentpipe: OnceCell::new(), with_bpf: OnceCell::new(), tests: OnceCell::new() }
    }

    /// Chooses by the time allowed.
    pub(super) fn pick<T>(&self, long: T, short: T) -> T {
        if self.long { long } else { short }
    }

    /// Note for a line whose measurement is shortened.
    pub(super) const fn short(&self) -> &'static str {
        if self.long { "" } else { " (short)" }
    }

    /// The release build of bentpipe, after checking that the measuring programs exist.
    pub(super) fn bentpipe(&self) -> Outcome<&Path> {
        let make = || {
            PROGRAMS.iter().try_for_each(|(name, package)| program::find(&[name], package).map(|_| ()))?;
            bench::build("bentpipe")
        };
        self.bentpipe.get_or_init(make).as_deref().map_err(Clone::clone)
    }

    /// The same with the feature `bpf`, for agents of the method `kernel`.
    pub(super) fn with_bpf(&self) -> Outcome<&Path> {
        let make = || {
            self.bentpipe()?;
            let built = bench::build_with("bentpipe", &["--features", "bentpipe-cli/bpf"])?;
            let own = built.with_file_name("bentpipe-bpf");
            std::fs::copy(&built, &own).map_err(|e| format!("{}: {e}", own.display()))?;
            // in its place again, for all others
            bench::build("bentpipe")?;
            Ok(own)
        };
        self.with_bpf.get_or_init(make).as_deref().map_err(Clone::clone)
    }

    pub(super) fn rig(&self, who: Who) -> Outcome<Rig> {
        Rig::new(self.bentpipe()?, who)
    }

    /// The run of all tests of the workspace.
    pub(super) fn tests(&self) -> Outcome<&Tests> {
        self.tests
            .get_or_init(|| Tests::of("--workspace --exclude bentpipe-python", &[]))
            .as_ref()
            .map_err(Clone::clone)
    }
}

/// Why [`Setup::with_bpf`] cannot be built here, if so.
pub(super) fn lacks_for_bpf() -> Option<String> {
    let has_clang = std::env::var_os("CLANG").is_some() || lab::rig::has("clang");
    let has_headers = Path::new("/usr/include/libelf.h").exists();
    let why =
        "not run: the program is built without the feature `bpf`, which needs clang and libelf's headers";
    (!has_clang || !has_headers).then(|| why.to_owned())
}

/// Runs cargo with environment variables; returns its standard output and whether it succeeded.
pub(super) fn run_cargo(args: &[&str], variables: &[(&str, &str)]) -> (String, bool) {
    let variables = variables.iter().copied();
    match Command::new(metadata::cargo()).args(args).envs(variables).current_dir(metadata::root()).output() {
        Ok(done) => (String::from_utf8_lossy(&done.stdout).into_owned(), done.status.success()),
        Err(e) => (e.to_string(), false),
    }
}
