//! What can be asked for on the command line.

pub(crate) mod matrix;
pub(crate) mod once;
pub(crate) mod readers;
pub(crate) mod recognise;
pub(crate) mod untouched;

use std::path::PathBuf;

/// The program that stands beside this one.
pub(crate) fn bentpipe() -> Result<PathBuf, String> {
    Ok(std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("bentpipe"))
}

/// Options with their values, and those of `switches` that stand alone; `usage` is shown when one is wrong.
pub(crate) fn options<'a>(
    words: &'a [String],
    switches: &[&str],
    usage: &str,
) -> Result<Vec<(&'a str, &'a str)>, String> {
    let (mut all, mut words) = (Vec::new(), words.iter());
    while let Some(name) = words.next() {
        if switches.contains(&name.as_str()) {
            all.push((name.as_str(), ""));
            continue;
        }
        let value = words.next().filter(|_| name.starts_with("--"));
        all.push((name.as_str(), value.ok_or_else(|| format!("{name}: what?\n{usage}"))?));
    }
    Ok(all)
}

/// A whole number.
pub(crate) fn whole(name: &str, value: &str) -> Result<u64, String> {
    value.parse().map_err(|_| format!("{name} {value}: a whole number is needed"))
}
