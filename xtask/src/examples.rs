//! `examples`: runs the commands shown in the documents and compares their output with the one shown.
//!
//! A line `$ bentpipe ...` in a ```` ```console ```` block must succeed. A ```` ```text ```` block after the
//! comment `<!-- output of: bentpipe ... -->` must be the output of that command; `--write` updates it.

use crate::{Outcome, bench, metadata};
use lab::once::output;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const MARK: &str = "<!-- output of: ";
const OPEN: &str = "```text";
const CLOSE: &str = "```";
/// Stands for a file of the reader; commands with it are not run.
const PLACEHOLDER: &str = "file.toml";

/// Checks all documents; with `--write` updates the shown outputs.
pub(crate) fn command(args: &[String]) -> Outcome {
    let write = match args {
        [] => false,
        [only] if only == "--write" => true,
        _ => return Err("examples: only --write is an option".to_owned()),
    };
    let root = metadata::root();
    let bentpipe = bench::build("bentpipe")?;
    let run = |line: &str| {
        let script = format!("exec '{}' {line}", bentpipe.display());
        output(
            &format!("bentpipe {line}"),
            Command::new("sh").args(["-c", &script]).current_dir(&root).env("LC_ALL", "C.UTF-8"),
        )
    };
    let (mut ran, mut shown, mut faults) = (0, 0, Vec::new());
    for path in documents(&root)? {
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        for line in commands(&text) {
            ran += 1;
            faults.extend(run(line).err());
        }
        let fresh = refresh(&text, |line| {
            shown += 1;
            run(line)
        })?;
        if fresh != text && write {
            fs::write(&path, fresh).map_err(|e| format!("{}: {e}", path.display()))?;
        } else if fresh != text {
            let text = "shows another output than there is (cargo xtask examples --write)";
            faults.push(format!("{}: {text}", path.display()));
        }
    }
    println!("examples: {ran} commands run, {shown} outputs compared, {} faults", faults.len());
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

/// README and the pages of the book.
fn documents(root: &Path) -> Result<Vec<PathBuf>, String> {
    let folder = root.join("docs/src");
    let pages = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let paths = pages.flatten().map(|page| page.path()).chain([root.join("README.md")]);
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|e| e == "md")).collect();
    paths.sort();
    Ok(paths)
}

/// The bentpipe commands in the console blocks, without prompt, program name and comment.
fn commands(text: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    text.lines().filter_map(move |line| {
        if line.starts_with(CLOSE) {
            inside = line == "```console";
            return None;
        }
        let command = line.strip_prefix("$ ").filter(|_| inside)?;
        let command = command.split(" #").next().unwrap_or(command).trim_end();
        let rest = command.strip_prefix("target/release/").unwrap_or(command).strip_prefix("bentpipe ")?;
        (!rest.split(' ').any(|word| word == PLACEHOLDER)).then_some(rest)
    })
}

/// Replaces every shown output in the text by that of its command.
fn refresh(text: &str, mut run: impl FnMut(&str) -> Result<String, String>) -> Result<String, String> {
    let mut out = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        let Some(command) = line.strip_prefix(MARK).and_then(|l| l.strip_suffix(" -->")) else { continue };
        let arguments =
            command.strip_prefix("bentpipe ").ok_or_else(|| format!("{command}: not for bentpipe"))?;
        if lines.next() != Some(OPEN) || !lines.any(|l| l == CLOSE) {
            return Err(format!("{command}: no {OPEN} block after it"));
        }
        for part in [OPEN, run(arguments)?.trim_end(), CLOSE] {
            out.push_str(part);
            out.push('\n');
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_in_console_blocks_only() {
        let text = "$ bentpipe no\n```console\n$ bentpipe sim a.toml   # why\n$ make build\noutput\n$ target/release/bentpipe check b\n\
                    $ bentpipe sim file.toml\n```\n```text\n$ bentpipe no\n```\n";
        assert_eq!(commands(text).collect::<Vec<_>>(), ["sim a.toml", "check b"]);
    }

    #[test]
    fn shown_outputs_are_replaced() {
        let text = "a\n<!-- output of: bentpipe sim x -->\n```text\nold\nolder\n```\nb\n";
        let fresh = refresh(text, |line| Ok(format!("new {line}\n\n")));
        assert_eq!(fresh.unwrap(), "a\n<!-- output of: bentpipe sim x -->\n```text\nnew sim x\n```\nb\n");
        assert!(refresh("<!-- output of: bentpipe sim x -->\nno block\n", |_| Ok(String::new())).is_err());
        assert!(refresh(text, |_| Err("failed".to_owned())).is_err());
    }
}
