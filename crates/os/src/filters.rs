//! Rules of `iptables`, both legacy and nftables, as `iptables-save` prints them.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::{env, fs};

/// Back end of `iptables`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The legacy kernel tables (x_tables).
    Legacy,
    /// nftables.
    Nft,
}

/// True if there are legacy tables in the calling thread's network namespace. Reads `/proc`, because running
/// `iptables-legacy` would create a table.
pub fn is_loaded(v6: bool) -> bool {
    let name = if v6 { "ip6_tables_names" } else { "ip_tables_names" };
    fs::read_to_string(format!("/proc/thread-self/net/{name}")).is_ok_and(|text| !text.trim().is_empty())
}

/// Returns the program that changes the rules of a back end, and all its rules; `None` if no such program is
/// installed. An error is the first line of the program's error output.
pub fn saved(v6: bool, kind: Kind) -> Option<Result<(String, String), String>> {
    let base = if v6 { "ip6tables" } else { "iptables" };
    let (own, word) = match kind {
        Kind::Legacy => ("legacy", "(legacy)"),
        Kind::Nft => ("nft", "(nf_tables)"),
    };
    for name in [format!("{base}-{own}"), base.to_owned()] {
        // `iptables` without a suffix may be either; versions from before the nftables back end print neither
        // name
        let version = match run(&name, &["--version"], "") {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            other => other.map_or_else(|e| e.to_string(), |(text, _)| text),
        };
        let is_it = version.contains(word) || (kind == Kind::Legacy && !version.contains('('));
        if !is_it {
            continue;
        }
        return Some(output(&format!("{name}-save"), &[], "").map(|text| (name, text)));
    }
    None
}

/// Runs a program with this input; returns its output. An error is the first line of its error output.
pub(crate) fn output(name: &str, arguments: &[&str], input: &str) -> Result<String, String> {
    match run(name, arguments, input) {
        Ok((text, true)) => Ok(text),
        Ok((text, false)) => Err(first_line(&text)),
        Err(error) => Err(error.to_string()),
    }
}

pub(crate) fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim().to_owned()
}

/// Where distributions keep these programs; the `PATH` of an ordinary user often lacks it.
const FOLDERS: [&str; 2] = ["/usr/sbin", "/sbin"];

/// Returns what to execute as `name`: a program in one of `folders` if only these have it.
fn program(name: &str, path: Option<&OsStr>, folders: &[&str]) -> PathBuf {
    let there = |folder: PathBuf| Some(folder.join(name)).filter(|program| program.is_file());
    let named = path.into_iter().flat_map(env::split_paths).find_map(there);
    let outside = || folders.iter().find_map(|folder| there(PathBuf::from(folder)));
    named.or_else(outside).unwrap_or_else(|| PathBuf::from(name))
}

/// Runs a program with this input; returns its output and true, or its error output and false.
pub(crate) fn run(name: &str, arguments: &[&str], input: &str) -> io::Result<(String, bool)> {
    // root executes only what PATH names
    let folders = if rustix::process::geteuid().is_root() { &[][..] } else { &FOLDERS };
    let mut command = Command::new(program(name, env::var_os("PATH").as_deref(), folders));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // if the program does not read its input, its exit status reports the error
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output()?;
    let is_good = output.status.success();
    let bytes = if is_good { output.stdout } else { output.stderr };
    Ok((String::from_utf8_lossy(&bytes).into_owned(), is_good))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_outside_path_are_found_where_distributions_keep_them() {
        let folder = env::temp_dir().join(format!("bentpipe-programs-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("nft"), "").unwrap();
        let sbin = folder.to_str().unwrap();
        let found = |name: &str, path: &str, folders: &[&str]| program(name, Some(OsStr::new(path)), folders);
        assert_eq!(found("nft", "/nowhere", &["/neither", sbin]), folder.join("nft"));
        assert_eq!(found("nft", sbin, &[]), folder.join("nft"));
        for (name, folders) in [("nft", &[][..]), ("iptables", &[sbin])] {
            assert_eq!(found(name, "/nowhere", folders), PathBuf::from(name));
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
