//! What cargo knows about the workspace, read from `cargo metadata`.

use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// One dependency as a manifest declares it.
#[derive(Clone, Debug)]
pub(crate) struct Dependency {
    /// Package name.
    pub name: String,
    /// False for dev-dependencies.
    pub shipped: bool,
}

/// One package of the resolved graph.
#[derive(Clone, Debug)]
pub(crate) struct Package {
    /// Package name.
    pub name: String,
    /// Version as printed by cargo.
    pub version: String,
    /// Licence expression, when the manifest has one.
    pub licence: Option<String>,
    /// Where it was downloaded from; `None` for a package of this workspace.
    pub source: Option<String>,
    /// Declared dependencies.
    pub dependencies: Vec<Dependency>,
}

/// The workspace's directory.
pub(crate) fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or(here.clone(), PathBuf::from)
}

/// All packages of the resolved graph, those of the workspace included.
///
/// # Errors
/// When cargo cannot be run, fails, or prints something else than its documented JSON.
pub(crate) fn packages() -> Result<Vec<Package>, String> {
    let out = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--format-version", "1"])
        .current_dir(root())
        .output()
        .map_err(|e| format!("cargo metadata: {e}"))?;
    if !out.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&out.stderr)));
    }
    parse(&out.stdout)
}

fn parse(json: &[u8]) -> Result<Vec<Package>, String> {
    let value: Value = serde_json::from_slice(json).map_err(|e| format!("cargo metadata: {e}"))?;
    let list = value["packages"].as_array().ok_or("cargo metadata: no packages")?;
    list.iter().map(package).collect()
}

fn package(value: &Value) -> Result<Package, String> {
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    let dependencies = value["dependencies"].as_array().ok_or("cargo metadata: no dependencies")?;
    Ok(Package {
        name: text("name").ok_or("cargo metadata: a package without a name")?,
        version: text("version").unwrap_or_default(),
        licence: text("license"),
        source: text("source"),
        dependencies: dependencies
            .iter()
            .filter_map(|d| {
                Some(Dependency {
                    name: d["name"].as_str()?.to_owned(),
                    shipped: d["kind"].as_str() != Some("dev"),
                })
            })
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_cargos_json() {
        let json = br#"{"packages":[{"name":"a","version":"1.0.0","license":null,"source":null,
            "dependencies":[{"name":"b","kind":null},{"name":"c","kind":"dev"}]}]}"#;
        let packages = parse(json).unwrap();
        assert_eq!(packages[0].name, "a");
        assert_eq!(packages[0].licence, None);
        assert_eq!(packages[0].dependencies.iter().map(|d| d.shipped).collect::<Vec<_>>(), [true, false]);
        assert!(parse(b"{}").is_err());
    }
}
