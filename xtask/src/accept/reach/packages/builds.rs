//! Builds: a program that needs no library, and the same bytes whatever the folders.

use super::make;
use crate::accept::list::{List, Setup, last_line};
use crate::{Outcome, metadata};
use lab::once::output;
use std::fs;
use std::process::Command;

/// Runs the static program where nothing else is.
pub(super) fn empty_root(_: &Setup, list: &mut List) -> Outcome {
    make(&["static"])?;
    let root = std::env::temp_dir().join(format!("bentpipe-empty-{}", std::process::id()));
    let failed = |e: std::io::Error| format!("{}: {e}", root.display());
    fs::create_dir_all(&root).map_err(failed)?;
    fs::copy(metadata::root().join("target/static/bentpipe"), root.join("bentpipe")).map_err(failed)?;
    let run = |words: &[&str]| {
        let mut command = Command::new("unshare");
        // also where the caller is no root
        command.args(["--map-root-user", "--root"]).arg(&root).arg("/bentpipe").args(words);
        output(&format!("bentpipe {}", words.join(" ")), &mut command)
    };
    let usual = Command::new(crate::bench::build("bentpipe")?).args(["sim", "sharing", "--json"]).output();
    let usual = usual.map_err(|e| e.to_string())?.stdout;
    list.judge(
        "in an empty root: the report of `sim sharing`, byte for byte",
        run(&["sim", "sharing", "--json"]),
        |text| (format!("{} bytes", text.len()), !text.is_empty() && text.as_bytes() == usual),
    );
    list.judge(
        "in an empty root: `sim demo --out` writes its page",
        run(&["sim", "demo", "--out", "/out"]),
        |_| {
            let page = root.join("out/report.html");
            (page.strip_prefix(&root).unwrap_or(&page).display().to_string(), page.exists())
        },
    );
    fs::remove_dir_all(&root).map_err(failed)
}

/// Builds twice, in folders of different names and depths.
pub(super) fn reproducible(_: &Setup, list: &mut List) -> Outcome {
    list.judge("two release builds in different folders: the same bytes", make(&["reproducible"]), |text| {
        (last_line(&text).to_owned(), true)
    });
    Ok(())
}
