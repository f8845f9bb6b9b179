//! `field readers`: slow readers, measured against their limits.

use super::{bentpipe, options, whole};
use bentpipe_field::slow::{self, Case};

pub(crate) const USAGE: &str = "usage: field readers [--live] [--only WORD] [--seed 1] [--bin FILE]      slow readers, simulated or in the bed; --only: cases whose name holds the word";

pub(crate) fn command(words: &[String]) -> Result<(), String> {
    let (mut only, mut seed, mut live, mut program) = ("", 1, false, bentpipe()?);
    for (name, value) in options(words, &["--live"], USAGE)? {
        match name {
            "--live" => live = true,
            "--only" => only = value,
            "--bin" => program = value.into(),
            "--seed" => seed = whole(name, value)?,
            _ => return Err(format!("unknown option {name}\n{USAGE}")),
        }
    }
    let came = |case: Case| if live { case.live(&program, seed) } else { case.simulate(&program, seed) };
    let chosen: Vec<Case> = slow::cases().into_iter().filter(|c| c.to_string().contains(only)).collect();
    // only the cases with stops need this figure
    let needs = chosen.iter().any(|c| matches!(c, Case::Stops(_)));
    let eager = if needs { came(Case::Stops(0.0))?.read } else { 0.0 };
    for case in chosen {
        let judged = case.judge(came(case)?, eager);
        let verdict = if judged.met { "ok" } else { "MISS" };
        println!("{:<28} {:<74} {verdict}", case.to_string(), judged.text);
    }
    Ok(())
}
