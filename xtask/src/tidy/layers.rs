//! Checks which crate may depend on which, and which external crates the engine may use.

use super::Finding;
use cargo_metadata::{DependencyKind, Package};

/// A crate of the workspace and its allowed dependencies, without the `bentpipe-` prefix.
struct Layer {
    name: &'static str,
    on: &'static [&'static str],
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Few dependencies, no clock, file, socket or thread.
    Engine,
    /// Like the engine, but may use more libraries.
    Model,
    /// May use clock, files, sockets and threads.
    Driver,
}

const LAYERS: [Layer; 23] = [
    Layer { name: "base", on: &[], kind: Kind::Engine },
    Layer { name: "wire", on: &["base"], kind: Kind::Engine },
    Layer { name: "tcp", on: &["base"], kind: Kind::Engine },
    Layer { name: "link", on: &["base"], kind: Kind::Engine },
    Layer { name: "nodes", on: &["base", "tcp"], kind: Kind::Engine },
    Layer { name: "gateway", on: &["base"], kind: Kind::Engine },
    Layer { name: "network", on: &["base", "link", "nodes", "gateway"], kind: Kind::Engine },
    Layer { name: "scenario", on: &["base", "tcp", "link", "nodes", "gateway"], kind: Kind::Model },
    Layer { name: "driver", on: &["base", "wire", "gateway", "network", "os"], kind: Kind::Driver },
    Layer { name: "stats", on: &[], kind: Kind::Model },
    Layer { name: "report", on: &["base"], kind: Kind::Model },
    Layer {
        name: "sim",
        on: &["base", "tcp", "link", "nodes", "gateway", "network", "scenario", "report"],
        kind: Kind::Model,
    },
    Layer { name: "plot", on: &[], kind: Kind::Model },
    Layer {
        name: "validate",
        on: &["base", "tcp", "link", "nodes", "scenario", "sim", "plot", "report", "stats"],
        kind: Kind::Driver,
    },
    Layer { name: "results", on: &["base", "wire", "scenario", "sim", "plot", "report"], kind: Kind::Driver },
    Layer { name: "sweep", on: &["base", "scenario", "sim", "plot", "report", "stats"], kind: Kind::Driver },
    Layer { name: "os", on: &["base", "wire"], kind: Kind::Driver },
    Layer { name: "service", on: &["base", "os"], kind: Kind::Driver },
    Layer { name: "field", on: &["base", "wire", "os", "stats"], kind: Kind::Driver },
    Layer {
        name: "live",
        on: &["base", "wire", "tcp", "link", "nodes", "driver", "scenario", "sim", "report", "os", "service"],
        kind: Kind::Driver,
    },
    Layer {
        name: "emulate",
        on: &[
            "base", "wire", "tcp", "link", "nodes", "gateway", "scenario", "sim", "report", "results", "os",
            "service", "driver", "live",
        ],
        kind: Kind::Driver,
    },
    Layer {
        name: "accelerate",
        on: &["base", "wire", "gateway", "network", "driver", "scenario", "stats", "os", "service"],
        kind: Kind::Driver,
    },
    Layer {
        name: "cli",
        on: &[
            "base",
            "wire",
            "tcp",
            "link",
            "nodes",
            "gateway",
            "scenario",
            "sim",
            "report",
            "plot",
            "validate",
            "results",
            "sweep",
            "os",
            "service",
            "live",
            "emulate",
            "accelerate",
        ],
        kind: Kind::Driver,
    },
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
    LAYERS.iter().any(|l| l.name == folder && l.kind != Kind::Driver)
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

/// Additional dependencies of tests: the gateway is tested with real engines and a real hop.
const TESTS_MAY_USE: [(&str, &str); 3] = [("gateway", "tcp"), ("gateway", "link"), ("gateway", "nodes")];

/// Checks a package by its dependencies; the flag is false for dev-dependencies.
fn check_package(package: &str, dependencies: &[(&str, bool)]) -> Vec<Finding> {
    let finding = |text| Finding { place: package.to_owned(), line: 1, text };
    let Some(name) = package.strip_prefix(PREFIX) else {
        let ours =
            dependencies.iter().filter(|(on, _)| !MAY_USE_ALL.contains(&package) && on.starts_with(PREFIX));
        let ours = ours.filter(|(on, _)| *on != TOOLS_MAY_USE);
        return ours.map(|(on, _)| finding(format!("a tool must not depend on {on}"))).collect();
    };
    let Some(layer) = LAYERS.iter().find(|l| l.name == name) else {
        let hint = "not in the table of layers in xtask/src/tidy/layers.rs: add its row";
        return vec![finding(hint.to_owned())];
    };
    let mut findings = Vec::new();
    for &(on, shipped) in dependencies {
        match on.strip_prefix(PREFIX) {
            Some(other) => {
                let tests_may = !shipped && TESTS_MAY_USE.contains(&(name, other));
                if other != name && !layer.on.contains(&other) && !tests_may {
                    let text = format!("{name} must not depend on {other}: it lies above or beside it");
                    findings.push(finding(text));
                }
            }
            None if layer.kind == Kind::Engine && shipped && !ENGINE_MAY_USE.contains(&on) => {
                let allowed = ENGINE_MAY_USE.join(", ");
                findings.push(finding(format!("an engine crate must not depend on {on} (only {allowed})")));
            }
            None => {}
        }
    }
    findings
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
