//! Checks which crate may depend on which, and which external crates the engine may use.

use super::Finding;
use Kind::{Driver, Engine, Model};
use cargo_metadata::{DependencyKind, Package};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Few dependencies, no clock, file, socket or thread.
    Engine,
    /// Like the engine, but may use more libraries.
    Model,
    /// May use clock, files, sockets and threads.
    Driver,
}

/// The crates of the workspace, what they are, and on which others they may depend; without `bentpipe-`.
const LAYERS: [(&str, Kind, &str); 29] = [
    ("base", Engine, ""),
    ("advice", Engine, "base"),
    ("wire", Engine, "base"),
    ("tcp", Engine, "base advice"),
    ("link", Engine, "base"),
    ("nodes", Engine, "base advice tcp"),
    ("gateway", Engine, "base"),
    ("flow-router", Engine, "base advice"),
    ("tagger", Engine, "base advice"),
    ("network", Engine, "base link nodes gateway"),
    ("scenario", Model, "base advice tcp link nodes gateway flow-router"),
    ("driver", Driver, "base advice wire gateway network os"),
    ("stats", Model, ""),
    ("report", Model, "base"),
    ("sim", Model, "base advice tcp link nodes gateway flow-router network scenario report"),
    ("plot", Model, ""),
    ("validate", Driver, "base scenario sim report stats sweep"),
    ("results", Driver, "base advice wire scenario sim plot report"),
    ("sweep", Driver, "base scenario sim plot report stats"),
    ("os", Driver, "base wire"),
    ("kernel-rate", Driver, "base os"),
    ("service", Driver, "base os"),
    ("field", Driver, "base wire os stats"),
    ("live", Driver, "base advice wire tcp link nodes driver scenario sim report os service"),
    (
        "emulate",
        Driver,
        "base wire tcp link nodes gateway scenario sim report results os service driver live",
    ),
    ("accelerate", Driver, "base wire gateway flow-router network driver scenario stats os service"),
    (
        "agent",
        Driver,
        "base wire tcp gateway tagger network driver scenario os kernel-rate service live accelerate",
    ),
    (
        "cli",
        Driver,
        "base wire tcp link nodes gateway scenario sim report plot validate results sweep os service live \
         emulate accelerate agent",
    ),
    ("python", Driver, "base cli os report results scenario sim sweep tcp"),
];

/// Third-party crates the engine may use.
const ENGINE_MAY_USE: [&str; 5] = ["zerocopy", "libm", "rand_chacha", "rand_core", "serde"];

const PREFIX: &str = "bentpipe-";
/// The fuzz tool, which runs product crates, and the crate for programs that use bentpipe.
const MAY_USE_ALL: [&str; 2] = ["fuzz", "bentpipe"];

/// The only product crate that tools may use: it contains no network code. They run bentpipe as a program.
const TOOLS_MAY_USE: &str = "bentpipe-stats";

/// True for crates that may not use clock, file, socket or thread. Takes the folder's name.
pub(crate) fn is_below_the_drivers(folder: &str) -> bool {
    LAYERS.iter().any(|(name, kind, _)| *name == folder && *kind != Driver)
}

/// Checks the manifests of the workspace's packages.
pub(super) fn check(packages: &[Package]) -> Vec<Finding> {
    let check_one = |package: &Package| {
        let shipped = |kind| kind != DependencyKind::Development;
        let on: Vec<_> = package.dependencies.iter().map(|d| (d.name.as_str(), shipped(d.kind))).collect();
        check_package(&package.name, &on)
    };
    packages.iter().flat_map(check_one).collect()
}

/// Additional dependencies of tests: gateway, flow router, tagger and agent are tested with the real engine,
/// the gateway and the agent also with the real link, and a deployed flow router with real requests.
const TESTS_MAY_USE: [(&str, &str); 11] = [
    ("gateway", "tcp"),
    ("gateway", "link"),
    ("gateway", "nodes"),
    ("flow-router", "tcp"),
    ("accelerate", "advice"),
    ("tagger", "tcp"),
    ("tagger", "flow-router"),
    ("agent", "advice"),
    ("agent", "flow-router"),
    ("agent", "link"),
    ("agent", "sim"),
];

/// Checks a package by its dependencies; the flag is false for dev-dependencies.
fn check_package(package: &str, dependencies: &[(&str, bool)]) -> Vec<Finding> {
    let finding = |text| Finding { place: package.to_owned(), line: 1, text };
    let Some(name) = package.strip_prefix(PREFIX) else {
        let may = |on: &str| MAY_USE_ALL.contains(&package) || !on.starts_with(PREFIX) || on == TOOLS_MAY_USE;
        let ours = dependencies.iter().filter(|(on, _)| !may(on));
        return ours.map(|(on, _)| finding(format!("a tool must not depend on {on}"))).collect();
    };
    let Some((_, kind, allowed)) = LAYERS.iter().find(|(layer, ..)| *layer == name) else {
        let hint = "not in the table of layers in xtask/src/tidy/layers.rs: add its row";
        return vec![finding(hint.to_owned())];
    };
    let fault = |&(on, shipped): &(&str, bool)| {
        if let Some(other) = on.strip_prefix(PREFIX) {
            let tests_may = !shipped && TESTS_MAY_USE.contains(&(name, other));
            let may = other == name || allowed.split(' ').any(|layer| layer == other) || tests_may;
            (!may).then(|| format!("{name} must not depend on {other}: it lies above or beside it"))
        } else {
            let may = *kind != Engine || !shipped || ENGINE_MAY_USE.contains(&on);
            let only = ENGINE_MAY_USE.join(", ");
            (!may).then(|| format!("an engine crate must not depend on {on} (only {only})"))
        }
    };
    dependencies.iter().filter_map(fault).map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(name: &str, on: &[(&str, bool)]) -> usize {
        check_package(name, on).len()
    }

    #[test]
    fn dependencies_point_one_way() {
        assert_eq!(faults("bentpipe-tcp", &[("bentpipe-base", true), ("libm", true)]), 0);
        assert_eq!(faults("bentpipe-sim", &[("bentpipe-scenario", true), ("serde_json", true)]), 0);
        assert_eq!(faults("bentpipe-cli", &[("bentpipe-sim", true), ("clap", true)]), 0);
        assert_eq!(faults("bentpipe-tcp", &[("bentpipe-link", true)]), 1);
        assert_eq!(faults("bentpipe-link", &[("bentpipe-tcp", false)]), 1);
        assert_eq!(faults("bentpipe-gateway", &[("bentpipe-tcp", false), ("bentpipe-link", false)]), 0);
        assert_eq!(faults("bentpipe-gateway", &[("bentpipe-tcp", true)]), 1);
        assert_eq!(faults("bentpipe-flow-router", &[("bentpipe-tcp", false)]), 0);
        assert_eq!(faults("bentpipe-base", &[("bentpipe-sim", true)]), 1);
        assert_eq!(faults("bentpipe-scenario", &[("bentpipe-sim", true)]), 1);
        assert_eq!(faults("xtask", &[("bentpipe-base", true), ("bentpipe-stats", true)]), 1);
        assert_eq!(faults("fuzz", &[("bentpipe-base", true)]), 0);
    }

    #[test]
    fn the_engine_takes_little_from_outside() {
        assert_eq!(faults("bentpipe-base", &[("tokio", true)]), 1);
        assert_eq!(faults("bentpipe-base", &[("proptest", false)]), 0);
        assert_eq!(faults("bentpipe-scenario", &[("toml", true)]), 0);
    }

    #[test]
    fn a_new_crate_needs_a_row() {
        assert_eq!(faults("bentpipe-moon", &[]), 1);
        assert!(is_below_the_drivers("sim") && !is_below_the_drivers("cli") && !is_below_the_drivers("moon"));
    }
}
