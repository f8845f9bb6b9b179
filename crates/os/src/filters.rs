//! Rules of `iptables`, both legacy and nftables, as `iptables-save` prints them.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::path::Path;
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

/// True if a folder of `PATH` has the program.
fn in_path(name: &str) -> bool {
    env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|folder| folder.join(name).is_file()))
}

/// Runs a program with this input; returns its output and true, or its error output and false.
pub(crate) fn run(name: &str, arguments: &[&str], input: &str) -> io::Result<(String, bool)> {
    // an ordinary user's PATH often lacks the folders in which distributions keep these programs
    let folders = ["/usr/sbin", "/sbin"].map(|folder| Path::new(folder).join(name));
    let outside = || folders.iter().find(|path| path.is_file()).map(|path| path.as_os_str());
    let found = if in_path(name) { None } else { outside() };
    let mut command = Command::new(found.unwrap_or(OsStr::new(name)));
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
