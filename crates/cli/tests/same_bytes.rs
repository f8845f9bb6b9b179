//! Exact fast-forward from the outside: runs, sweeps and folders are the same bytes with and without it.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use support::{bentpipe, contents, err, folder, runs, same};

fn utf8(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// A year of rain, the first quarter of an hour of it, in which it rains often.
const RAIN: [&str; 11] = [
    "scenarios/availability.toml",
    "--set",
    "duration=900 s",
    "--set",
    "step=20 s",
    "--set",
    "m=1.5",
    "--set",
    "p0=0.8",
    "--set",
    "tcp=sack",
];

/// The report of a run without what a sweep does not store: name of the file, parameters and samples.
fn stored(report: &serde_json::Value) -> String {
    let mut report = report.clone();
    let all = report.as_object_mut().expect("an object");
    all.retain(|key, _| !["scenario", "parameters", "instruments"].contains(&&**key));
    report.to_string()
}

/// What repeats itself is skipped in sweeps; their runs are those of single runs that skip nothing.
#[test]
fn one_thread_two_threads_and_no_fast_forward_give_the_same_bytes() {
    let axis = ["--axis", "window=8 segments,20 segments", "--seeds", "2", "--measure", "goodput"];
    let args = [&["sweep"], &RAIN[..], &axis].concat();
    let (one, two) = (folder("forward-1"), folder("forward-2"));
    for (threads, out) in [("1", &one), ("2", &two)] {
        let output = bentpipe(&[&args, &["--threads", threads, "--out", utf8(out)][..]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    }
    same(&one, &two);
    let json = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).expect("JSON");
    let run = |path: PathBuf| {
        let text = fs::read_to_string(path).expect("it can be read");
        stored(&json(text.split_once('\n').expect("a line with a digest").1.as_bytes())["report"])
    };
    let swept: BTreeSet<String> = runs(&one).into_iter().map(run).collect();
    let single = |window: &str, seed: &str, more: &[&str]| {
        let window = format!("window={window} segments");
        let output =
            bentpipe(&[&["sim"], &RAIN[..], &["--set", &window, "--seed", seed, "--json"], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        output.stdout
    };
    let mut plain = BTreeSet::new();
    for window in ["8", "20"] {
        for seed in ["1", "2"] {
            let bytes = single(window, seed, &["--no-fast-forward"]);
            assert!(bytes == single(window, seed, &[]), "{window} segments, seed {seed}");
            plain.insert(stored(&json(&bytes)));
        }
    }
    assert_eq!(plain.len(), 4, "each run is another one");
    assert!(plain == swept, "the runs of the sweep are other ones");
}

/// The folder of a run, with captures of its packets, is that of a run without fast-forward.
#[test]
fn a_folder_with_captures_is_the_same_without_fast_forward() {
    let window = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/window.toml"));
    let text = window.expect("it is there") + "\n[[captures]]\nlink = \"bottleneck\"\n";
    let [file, fast, plain] = ["captured", "captured-fast", "captured-plain"].map(folder);
    fs::create_dir_all(&file).expect("it can be made");
    let file = file.join("window.toml");
    fs::write(&file, text).expect("it can be written");
    for (out, more) in [(&fast, &[][..]), (&plain, &["--no-fast-forward"])] {
        let args = ["sim", utf8(&file), "--set", "duration=60 s", "--set", "window=8 segments"];
        let args = [&args[..], &["--out", utf8(out)]].concat();
        let output = bentpipe(&[&args, more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    }
    same(&fast, &plain);
    let captured = contents(&fast).into_iter().filter(|(name, _)| name.ends_with(".pcapng"));
    assert!(captured.map(|(_, bytes)| bytes.len()).sum::<usize>() > 60_000, "packets of 60 s");
}
