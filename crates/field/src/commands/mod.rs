//! The subcommands of `field`.

pub(crate) mod matrix;
pub(crate) mod once;
pub(crate) mod readers;
pub(crate) mod recognise;
pub(crate) mod untouched;

use std::path::PathBuf;

/// The `bentpipe` program in the directory of this one.
pub(crate) fn bentpipe() -> Result<PathBuf, String> {
    Ok(std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("bentpipe"))
}

/// Parses options with values, and `switches` without; an error shows `usage`.
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

/// Parses a whole number.
pub(crate) fn whole(name: &str, value: &str) -> Result<u64, String> {
    value.parse().map_err(|_| format!("{name} {value}: a whole number is needed"))
}
