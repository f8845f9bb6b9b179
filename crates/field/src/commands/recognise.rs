//! `field recognise`: which senders the gateway classifies as unable to gain.

use super::{bentpipe, options, whole};
use bentpipe_field::recognition::{Draw, Sender, simulate_seed};

pub(crate) const USAGE: &str = "usage: field recognise [--runs 100] [--first 1] [--wide] [--flows 1] [--only WORDS] [--bin FILE]      simulated flows, drawn by seed: of BBR, and of cubic and reno as they are, paced, limited by their application; --wide: rates, round trips and queues that the matrix has not; --only: senders whose name has the words";

pub(crate) fn command(words: &[String]) -> Result<(), String> {
    let (mut runs, mut first, mut program) = (100, 1, bentpipe()?);
    let (mut draw, mut only) = (Draw { is_wide: false, flows: 1 }, String::new());
    for (name, value) in options(words, &["--wide"], USAGE)? {
        match name {
            "--runs" => runs = whole(name, value)?,
            "--first" => first = whole(name, value)?,
            "--flows" => draw.flows = whole(name, value)? as u32,
            "--wide" => draw.is_wide = true,
            "--only" => value.clone_into(&mut only),
            "--bin" => program = value.into(),
            _ => return Err(format!("unknown option {name}\n{USAGE}")),
        }
    }
    for sender in Sender::ALL.iter().filter(|sender| sender.to_string().contains(&only)) {
        let mut passed = 0;
        for seed in first..first + runs {
            let (words, n) = simulate_seed(sender, seed, draw, &program)?;
            passed += n;
            let right = if sender.is_model() { u64::from(draw.flows) } else { 0 };
            if n != right {
                eprintln!("{sender}, seed {seed}: {words}: {n} passed");
            }
        }
        println!("{sender}: {passed} of {} passed", runs * u64::from(draw.flows));
    }
    Ok(())
}
