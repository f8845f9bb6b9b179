//! Rules of `iptables`, in the kernel's older tables and in nftables, as the programs around it save them.

use std::fs;
use std::io;
use std::process::{Command, Stdio};

/// Which of the two kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The kernel's older tables.
    Legacy,
    /// Tables in nftables.
    Nft,
}

/// True when there are older tables in the calling thread's network namespace. Asking a program would make
/// one.
pub fn is_loaded(v6: bool) -> bool {
    let name = if v6 { "ip6_tables_names" } else { "ip_tables_names" };
    fs::read_to_string(format!("/proc/thread-self/net/{name}")).is_ok_and(|text| !text.trim().is_empty())
}

/// All rules of a kind, with the program that takes commands for them; none when there is no program of the
/// kind.
///
/// # Errors
/// What the program says when it fails.
pub fn saved(v6: bool, kind: Kind) -> Option<Result<(String, String), String>> {
    let base = if v6 { "ip6tables" } else { "iptables" };
    let (own, word) = match kind {
        Kind::Legacy => ("legacy", "(legacy)"),
        Kind::Nft => ("nft", "(nf_tables)"),
    };
    for name in [format!("{base}-{own}"), base.to_owned()] {
        // the plain name may be either; programs from before there were two say neither
        let version = match run(&name, &["--version"]) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            other => other.map_or_else(|e| e.to_string(), |(text, _)| text),
        };
        let is_it = version.contains(word) || (kind == Kind::Legacy && !version.contains('('));
        if !is_it {
            continue;
        }
        return Some(match run(&format!("{name}-save"), &[]) {
            Ok((text, true)) => Ok((name, text)),
            Ok((text, false)) => Err(text.lines().next().unwrap_or_default().to_owned()),
            Err(error) => Err(error.to_string()),
        });
    }
    None
}

/// What a program says, or when it fails, what it says of that.
fn run(name: &str, arguments: &[&str]) -> io::Result<(String, bool)> {
    let output = Command::new(name).args(arguments).stdin(Stdio::null()).output()?;
    let is_good = output.status.success();
    let bytes = if is_good { output.stdout } else { output.stderr };
    Ok((String::from_utf8_lossy(&bytes).into_owned(), is_good))
}
