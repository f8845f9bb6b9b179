//! Runs the program `nft`: applies rules, lists them, and finds chains of other tables that drop forwarded
//! packets.

use crate::filters::{self, first_line, output};
use std::io;

/// The help for a machine without `nft`.
pub const MISSING: &str = "sudo apt-get install nftables, or the package of that name";

/// Version that `nft` prints, such as `nftables v1.0.6`; `None` if it is not installed.
///
/// # Errors
/// The error when it is installed but does not work.
pub fn version() -> Result<Option<String>, String> {
    match filters::run("nft", &["--version"], "") {
        Ok((text, true)) => Ok(Some(first_line(&text))),
        Ok((text, false)) => Err(first_line(&text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// Applies a script atomically.
///
/// # Errors
/// The first line of the error output.
pub fn run(script: &str) -> Result<(), String> {
    output("nft", &["-f", "-"], script).map(drop)
}

/// Lists all rules of this network namespace with their handles, without counters.
///
/// # Errors
/// The first line of the error output.
pub fn list() -> Result<String, String> {
    output("nft", &["-s", "-a", "list", "ruleset"], "")
}

/// Lists a table of family `inet` with its counters and sets.
///
/// # Errors
/// The first line of the error output.
pub fn list_table(name: &str) -> Result<String, String> {
    output("nft", &["list", "table", "inet", name], "")
}

/// Chains with policy drop on the forward hook: they apply even if another table accepts the packet.
pub fn closed_chains() -> Vec<String> {
    dropping(&output("nft", &["list", "chains"], "").unwrap_or_default())
}

fn dropping(listing: &str) -> Vec<String> {
    let (mut table, mut chain) = ("", "");
    let mut all = Vec::new();
    for line in listing.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("table ") {
            table = rest.trim_end_matches(" {");
        } else if let Some(rest) = line.strip_prefix("chain ") {
            chain = rest.trim_end_matches(" {");
        } else if line.contains("hook forward") && line.contains("policy drop") {
            all.push(format!("{table} {chain}"));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_firewall_that_forwards_nothing_is_named() {
        let listing = "table ip filter {\n\tchain INPUT {\n\t\ttype filter hook input priority filter; policy drop;\n\t}\n\tchain FORWARD {\n\t\ttype filter hook forward priority filter; policy drop;\n\t}\n}\n";
        assert_eq!(dropping(listing), ["ip filter FORWARD"]);
        assert_eq!(dropping(&listing.replace("drop", "accept")), Vec::<String>::new());
    }
}
