//! `sweep.json`: the cells and runs of a sweep. It is the same for all shards.

use crate::error::Error;
use crate::key::semantics;
use serde::{Deserialize, Serialize};

/// Version of the format.
const SCHEMA: u32 = 1;

/// A sweep. Field order is the order of the JSON.
#[derive(Serialize, Deserialize)]
pub(crate) struct Manifest {
    schema: u32,
    version: String,
    semantics: String,
    pub(crate) title: String,
    pub(crate) axes: Vec<String>,
    pub(crate) measure: Vec<String>,
    /// Axis values of each cell.
    pub(crate) cells: Vec<Vec<String>>,
    pub(crate) runs: Vec<ManifestRun>,
}

/// A run and its name in the store.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct ManifestRun {
    pub(crate) cell: usize,
    pub(crate) seed: u64,
    pub(crate) key: String,
}

impl Manifest {
    pub(crate) fn new(
        title: String,
        axes: Vec<String>,
        measure: Vec<String>,
        cells: Vec<Vec<String>>,
        runs: Vec<ManifestRun>,
    ) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self { schema: SCHEMA, version, semantics: semantics(), title, axes, measure, cells, runs }
    }

    /// Formats the manifest as one line of JSON.
    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }

    /// Parses a manifest of a version with the same results. Keys become file names: only hashes pass.
    pub(crate) fn read(text: &str) -> Result<Self, Error> {
        let broken = || Error::Input("sweep.json is not one that bentpipe wrote".to_owned());
        let value: serde_json::Value = serde_json::from_str(text).map_err(|_| broken())?;
        if value["schema"] != SCHEMA || value["semantics"] != semantics() {
            return Err(Error::Input(
                "the sweep was made by another version of bentpipe, whose results cannot be mixed with this one's\n\
                 help: merge with the version that made the runs, or sweep again"
                    .to_owned(),
            ));
        }
        let manifest: Self = serde_json::from_value(value).map_err(|_| broken())?;
        let is_hash = |k: &str| k.len() == 64 && k.bytes().all(|b| b.is_ascii_hexdigit());
        let fits = manifest.runs.iter().all(|r| r.cell < manifest.cells.len() && is_hash(&r.key));
        let whole = manifest.cells.iter().all(|c| c.len() == manifest.axes.len());
        if fits && whole { Ok(manifest) } else { Err(broken()) }
    }
}

/// True if `text` is the manifest of a version with other results.
pub(crate) fn is_of_another_version(text: &str) -> bool {
    let value: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    value["semantics"].as_str().is_some_and(|made_by| made_by != semantics())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_that_is_none_is_refused() {
        for text in ["", "{}", "[]", "{\"schema\":1}"] {
            assert!(Manifest::read(text).is_err(), "{text}");
        }
        let with = |cell, key: &str| {
            let (cells, runs) = (vec![Vec::new()], vec![ManifestRun { cell, seed: 1, key: key.to_owned() }]);
            Manifest::new("t".to_owned(), Vec::new(), Vec::new(), cells, runs).to_json()
        };
        let hash = "0".repeat(64);
        assert!(Manifest::read(&with(0, &hash)).is_ok() && Manifest::read(&with(1, &hash)).is_err());
        for key in ["../../etc/passwd", "", &"g".repeat(64)] {
            assert!(Manifest::read(&with(0, key)).is_err(), "{key}");
        }
        let other = with(0, &hash).replace(&semantics(), "0-0");
        assert!(Manifest::read(&other).err().unwrap().to_string().contains("another version"));
        assert!(is_of_another_version(&other) && !is_of_another_version(&with(0, &hash)));
        assert!(!is_of_another_version("") && !is_of_another_version("[]"));
    }
}
