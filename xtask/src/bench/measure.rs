//! CPU time and peak memory of one process.
//!
//! The kernel sums both over all finished children, so each measurement runs in an intermediate process:
//! `cargo xtask measure OUTPUT PROGRAM ARGS...`.

use crate::Outcome;
use lab::once;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use std::fs::File;
use std::path::Path;
use std::process::Command;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cost {
    /// User and system time of the process including start-up, s.
    pub cpu_s: f64,
    /// Peak resident memory, kB. Never below that of this tool, which a process shares until it calls exec.
    pub peak_kb: u64,
}

/// Runs `program` to its end; its standard output goes to the file `output`.
pub(super) fn run(program: &Path, args: &[String], output: &Path) -> Result<Cost, String> {
    let me = std::env::current_exe().map_err(|e| format!("the path of this program: {e}"))?;
    let mut command = Command::new(me);
    command.arg("measure").arg(output).arg(program).args(args);
    let text = once::output(&format!("{} {}", program.display(), args.join(" ")), &mut command)?;
    parse(&text).ok_or_else(|| "measure: unreadable".to_owned())
}

fn parse(text: &str) -> Option<Cost> {
    let mut words = text.split_whitespace();
    let (cpu_s, peak_kb) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    words.next().is_none().then_some(Cost { cpu_s, peak_kb })
}

/// The intermediate process: runs its arguments and prints CPU seconds and peak kilobytes.
pub(crate) fn command(args: &[String]) -> Outcome {
    let [output, program, args @ ..] = args else {
        return Err("usage: measure OUTPUT PROGRAM ARGS...".to_owned());
    };
    let file = File::create(output).map_err(|e| format!("{output}: {e}"))?;
    let status =
        Command::new(program).args(args).stdout(file).status().map_err(|e| format!("{program}: {e}"))?;
    if !status.success() {
        return Err(format!("{program}: {status}"));
    }
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|e| format!("getrusage: {e}"))?;
    println!("{:.6} {}", seconds(usage.user_time()) + seconds(usage.system_time()), usage.max_rss());
    Ok(())
}

fn seconds(t: TimeVal) -> f64 {
    t.tv_sec() as f64 + t.tv_usec() as f64 * 1e-6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read() {
        assert_eq!(parse("0.350000 3312\n"), Some(Cost { cpu_s: 0.35, peak_kb: 3312 }));
        assert_eq!(parse("0.35"), None);
        assert_eq!(parse("0.35 1 2"), None);
    }
}
