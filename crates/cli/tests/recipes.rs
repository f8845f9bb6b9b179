//! The recipes for clusters in `examples/clusters`, without a cluster.

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{bentpipe, contents, err, folder, program};

const OPTIONS: [&str; 8] =
    ["--set", "duration=2 s", "--axis", "loss=1e-3,1e-2", "--seeds", "2", "--measure", "goodput"];

/// A command that finds the program on its path.
fn with_program(name: &str, here: &Path) -> Command {
    let mut command = Command::new(name);
    let own = Path::new(env!("CARGO_BIN_EXE_bentpipe")).parent().expect("a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", own.display())).current_dir(here);
    command
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/clusters").join(name)
}

/// The tables of the sweep on one machine.
fn tables(out: &Path) -> BTreeMap<String, Vec<u8>> {
    contents(out).into_iter().filter(|(name, _)| ["cells.csv", "runs.csv"].contains(&name.as_str())).collect()
}

fn expected(test: &str) -> BTreeMap<String, Vec<u8>> {
    let whole = folder(&format!("{test}-whole"));
    let mut sweep = program();
    let made = sweep.args(["sweep", "sharing"]).args(OPTIONS).arg("--out").arg(&whole).output();
    assert!(made.is_ok_and(|o| o.status.success()));
    tables(&whole)
}

#[test]
fn an_array_of_slurm_gives_the_tables_of_one_machine() {
    let out = folder("slurm");
    let mut merge = vec!["merge".to_owned()];
    for task in 1..=3 {
        let mut command = with_program("sh", Path::new(env!("CARGO_TARGET_TMPDIR")));
        command.arg(example("slurm.sh")).arg("sharing").arg(&out).args(OPTIONS);
        command.env("SLURM_ARRAY_TASK_ID", task.to_string()).env("SLURM_ARRAY_TASK_COUNT", "3");
        let done = command.output().expect("it starts");
        assert!(done.status.success(), "{}", err(&done));
        merge.push(out.join(format!("shard-{task}")).display().to_string());
    }
    merge.extend(["--out".to_owned(), out.join("all").display().to_string()]);
    let merged = bentpipe(&merge);
    assert!(merged.status.success(), "{}", err(&merged));
    assert_eq!(tables(&out.join("all")), expected("slurm"));
}

#[test]
fn snakemake_gives_the_tables_of_one_machine() {
    if Command::new("snakemake").arg("--version").output().is_err() {
        // it is no tool of this project: who changes the recipe installs it
        println!("snakemake is not installed: its recipe was not tried");
        return;
    }
    let here = folder("snakemake");
    std::fs::create_dir_all(&here).expect("a folder");
    let file = here.join("sharing.toml");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/sharing.toml");
    std::fs::copy(source, &file).expect("the scenario");
    let quote = |word: &str| if word.contains(' ') { format!("'{word}'") } else { word.to_owned() };
    let quoted = OPTIONS.map(quote).join(" ");
    let mut command = with_program("snakemake", &here);
    command.args(["--cores", "2", "--snakefile"]).arg(example("Snakefile"));
    command.args(["--config", "file=sharing.toml", "shards=3", &format!("options={quoted}")]);
    let done = command.output().expect("it starts");
    assert!(done.status.success(), "{}", err(&done));
    assert_eq!(tables(&here.join("results")), expected("snakemake"));
}
