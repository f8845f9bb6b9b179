//! Which senders the gateway takes for ones that cannot gain.

use super::{bentpipe, options, whole};
use bentpipe_field::recognition::{Sender, drawn};

pub(crate) const USAGE: &str = "usage: field recognise [--runs 100] [--first 1] [--bin FILE]      simulated flows, drawn by seed: of BBR, and of cubic and reno as they are, paced, limited by their application";

pub(crate) fn command(words: &[String]) -> Result<(), String> {
    let (mut runs, mut first, mut program) = (100, 1, bentpipe()?);
    for (name, value) in options(words, &[], USAGE)? {
        match name {
            "--runs" => runs = whole(name, value)?,
            "--first" => first = whole(name, value)?,
            "--bin" => program = value.into(),
            _ => return Err(format!("unknown option {name}\n{USAGE}")),
        }
    }
    let file = std::env::temp_dir().join(format!("bentpipe-recognise-{}.toml", std::process::id()));
    for sender in Sender::ALL {
        let mut passed = 0;
        for seed in first..first + runs {
            let (words, is_passed) = drawn(sender, seed, &program, &file)?;
            passed += u64::from(is_passed);
            if is_passed != (sender == Sender::Bbr) {
                eprintln!(
                    "{sender:?}, seed {seed}: {words}: {}",
                    if is_passed { "passed" } else { "accelerated" }
                );
            }
        }
        println!("{sender:?} {passed} of {runs} passed");
    }
    let _ = std::fs::remove_file(&file);
    Ok(())
}
