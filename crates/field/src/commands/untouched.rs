//! `field untouched`: checks what the gateway must not change.

use super::{bentpipe, options};
use bentpipe_field::untouched::{KINDS, run};

pub(crate) const USAGE: &str = "usage: field untouched [--bin FILE]      connections of several kinds, captured before and after the gateway (needs root, tcpdump, python3)";

pub(crate) fn command(words: &[String]) -> Result<(), String> {
    let mut program = bentpipe()?;
    for (name, value) in options(words, &[], USAGE)? {
        match name {
            "--bin" => program = value.into(),
            _ => return Err(format!("unknown option {name}\n{USAGE}")),
        }
    }
    for (kind, settings) in KINDS {
        let compared = run(&program, kind, settings)?;
        let verdict = if compared.faults.is_empty() && compared.pairs > 0 { "ok" } else { "MISS" };
        let first = compared.faults.first().map_or(String::new(), |f| format!(", first: {f}"));
        let figure = format!("{} pairs, {} differences{first}", compared.pairs, compared.faults.len());
        println!("{kind:<28} {figure:<74} {verdict}");
    }
    Ok(())
}
