//! Puts the figure files of papers into the program: a file in `papers/` is a figure of it, and named nowhere
//! else.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let variable = |name: &str| env::var(name).map_err(io::Error::other);
    let folder = Path::new(&variable("CARGO_MANIFEST_DIR")?).join("papers");
    println!("cargo:rerun-if-changed={}", folder.display());
    let stem = |p: &Path| p.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut rows = Vec::new();
    for paper in sorted(&folder)?.iter().filter(|p| p.is_dir()) {
        for file in sorted(paper)?.iter().filter(|f| f.extension().is_some_and(|e| e == "toml")) {
            let name = format!("{}/{}", stem(paper), stem(file));
            let path = format!("concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/papers/{name}.toml\")");
            rows.push(format!("(\"{name}\", include_str!({path}))"));
        }
    }
    let text = format!("&[{}]\n", rows.join(",\n"));
    fs::write(Path::new(&variable("OUT_DIR")?).join("figures.rs"), text)
}

fn sorted(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut all: Vec<PathBuf> = fs::read_dir(folder)?.map(|e| Ok(e?.path())).collect::<io::Result<_>>()?;
    all.sort();
    Ok(all)
}
