//! Runs a short program in the namespaces of the calling thread.

use crate::Outcome;
use std::process::Command;

/// Runs `program` with `arguments`, which are separated by spaces.
pub fn run(program: &str, arguments: &str) -> Outcome<()> {
    let out = Command::new(program).args(arguments.split(' ')).output();
    let out = out.map_err(|e| format!("no program {program}: {e}"))?;
    if out.status.success() {
        return Ok(());
    }
    Err(format!("{program} {arguments}: {}", String::from_utf8_lossy(&out.stderr).trim()))
}

/// Runs `ip ARGUMENTS` of iproute2.
pub fn ip(arguments: &str) -> Outcome<()> {
    run("ip", arguments)
}
