//! Sweeps from the outside: the same bytes of output despite interruptions.

mod support;

use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::time::Duration;
use support::{bentpipe, contents, err, folder, program, runs, same};

/// Five connections with losses and jitter: the results differ for every seed.
const SMALL: [&str; 13] = [
    "sweep",
    "scenarios/sharing.toml",
    "--set",
    "duration=5 s",
    "--set",
    "flows=5",
    "--axis",
    "loss=1e-3,1e-2",
    "--axis",
    "tcp=newreno,cubic",
    "--measure",
    "goodput",
    "--measure=drops[bottleneck].packet_loss",
];
/// Number of its runs with three seeds.
const SMALL_RUNS: usize = 12;

fn sweep(args: &[&str], more: &[&str], out: &Path) -> Output {
    let out = out.to_str().expect("UTF-8");
    bentpipe(&[args, more, &["--out", out]].concat())
}

/// Runs a sweep that must succeed; returns how many runs it made and kept.
#[track_caller]
fn swept(args: &[&str], more: &[&str], out: &Path) -> (usize, usize) {
    let output = sweep(args, more, out);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    // a shard has no table, and no page
    let is_whole = !more.contains(&"--shard");
    assert_eq!(output.stdout.is_empty(), !is_whole);
    let page = format!("\npage: {}/report.html\n", out.display());
    assert_eq!(err(&output).contains(&page), is_whole, "{}", err(&output));
    counts(&err(&output))
}

/// Parses `12 runs made, 3 kept, in ...`.
#[track_caller]
fn counts(text: &str) -> (usize, usize) {
    let number = |before: &str| text.split(before).next().and_then(|t| t.rsplit(' ').next()?.parse().ok());
    number(" runs made").zip(number(" kept")).unwrap_or_else(|| panic!("{text}"))
}

#[test]
fn curves_are_png_files_if_asked_for() {
    let out = folder("pictures");
    let pictures = |out: &Path| -> Vec<String> {
        contents(out).into_keys().filter(|name| name.starts_with("curve-")).collect()
    };
    swept(&SMALL, &["--seeds", "1", "--png"], &out);
    assert_eq!(pictures(&out), ["curve-1.png", "curve-1.svg", "curve-2.png", "curve-2.svg"]);
    assert!(contents(&out)["curve-1.png"].starts_with(b"\x89PNG"));
    // the same sweep without them leaves no older ones beside its new tables
    swept(&SMALL, &["--seeds", "1", "--svg"], &out);
    assert_eq!(pictures(&out), ["curve-1.svg", "curve-2.svg"]);
    let merged = folder("pictures_merged");
    let folders = [&out, &merged].map(|dir| dir.to_str().expect("UTF-8"));
    let done = bentpipe(&["merge", folders[0], "--out", folders[1], "--png"]);
    assert!(done.status.success() && pictures(&merged).len() == 4, "{}", err(&done));
    // a shard has no pictures
    let refused = sweep(&SMALL, &["--shard", "1/2", "--png"], &folder("pictures_shard"));
    assert_eq!(refused.status.code(), Some(2));
    assert!(err(&refused).contains("'--shard <I/N>' cannot be used with '--png'"), "{}", err(&refused));
}

#[test]
fn one_thread_two_threads_and_shards_give_the_same_bytes() {
    let args = [&SMALL[..], &["--seeds", "3"]].concat();
    let (one, two, whole) = (folder("threads-1"), folder("threads-2"), folder("merged"));
    assert_eq!(swept(&args, &["--threads", "1"], &one), (SMALL_RUNS, 0));
    assert_eq!(swept(&args, &["--threads", "2"], &two), (SMALL_RUNS, 0));
    same(&one, &two);
    let mut merge = vec!["merge".to_owned(), "--out".to_owned(), whole.display().to_string()];
    for n in 1..=3 {
        let shard = folder(&format!("shard-{n}"));
        let threads = n.to_string();
        let made = swept(&args, &["--shard", &format!("{n}/3"), "--threads", &threads], &shard);
        assert_eq!(made, (SMALL_RUNS / 3, 0));
        let names: Vec<_> = contents(&shard).into_keys().filter(|n| !n.starts_with("runs/")).collect();
        assert_eq!(names, ["sweep.json"], "a shard is no whole");
        merge.push(shard.display().to_string());
    }
    let output = bentpipe(&merge);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    same(&one, &whole);
    let again = sweep(&args, &[], &one);
    assert_eq!(String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&again.stdout));

    // the figures are those of a single run
    let row = "1e-2,cubic,2,";
    let table = String::from_utf8(contents(&one)["runs.csv"].clone()).expect("UTF-8");
    let row = table.lines().find_map(|l| l.strip_prefix(row)).expect("the run is in the table");
    let single = bentpipe(&[
        "sim",
        "scenarios/sharing.toml",
        "--set",
        "duration=5 s",
        "--set",
        "flows=5",
        "--set",
        "loss=1e-2",
        "--set",
        "tcp=cubic",
        "--seed",
        "2",
        "--json",
    ]);
    let single: serde_json::Value = serde_json::from_slice(&single.stdout).expect("JSON");
    let drops = single["links"].as_array().and_then(|l| l.iter().find(|l| l["name"] == "bottleneck"));
    let drops = drops.map_or(0, |l| l["drops"]["packet_loss"].as_u64().unwrap_or(0));
    let (goodput, lost) = row.split_once(',').expect("two figures");
    let goodput: f64 = goodput.parse().expect("a number");
    assert!((goodput / single["total"]["goodput_bps"].as_f64().expect("a number") - 1.0).abs() < 1e-12);
    assert!(lost == drops.to_string() && drops > 0, "{lost} {drops}");
}

#[test]
fn a_precision_asks_for_the_same_runs_on_any_number_of_threads() {
    let args = [&SMALL[..], &["--seeds", "2", "--precision", "goodput 5 %", "--max-seeds", "7"]].concat();
    let (one, two) = (folder("precision-1"), folder("precision-2"));
    let made = swept(&args, &["--threads", "1"], &one);
    assert_eq!(swept(&args, &["--threads", "2"], &two), made);
    same(&one, &two);
    assert!(made.0 > 8 && made.0 <= 28, "{made:?}: not fixed, and not more than allowed");
    // every cell has reached the precision or the maximum number of runs
    let table = String::from_utf8(contents(&one)["cells.csv"].clone()).expect("UTF-8");
    for row in table.lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        let value = |n: usize| cells[n].parse::<f64>().expect("a number");
        assert!(value(3) <= 0.05 * value(2) || cells[4] == "7", "{row}");
    }
    // a repeated sweep has nothing left to do
    assert_eq!(swept(&args, &[], &one), (0, made.0));
    same(&one, &two);
}

#[test]
fn damaged_torn_foreign_and_missing_runs_are_made_anew() {
    let args = [&SMALL[..], &["--seeds", "3"]].concat();
    let (good, bad) = (folder("sound"), folder("damaged"));
    swept(&args, &[], &good);
    swept(&args, &[], &bad);
    let files = runs(&bad);
    assert_eq!(files.len(), SMALL_RUNS);
    let bytes = |n: usize| fs::read(&files[n]).expect("it can be read");
    let write = |n: usize, bytes: &[u8]| fs::write(&files[n], bytes).expect("it can be written");
    write(0, &bytes(0)[..bytes(0).len() / 2]);
    write(1, b"");
    write(2, &bytes(3));
    write(
        4,
        &String::from_utf8(bytes(4))
            .expect("UTF-8")
            .replacen("\"goodput_bps\":", "\"goodput_bps\":1", 1)
            .into_bytes(),
    );
    write(5, &[0xff; 1000]);
    fs::remove_file(&files[6]).expect("it is there");
    assert_eq!(swept(&args, &[], &bad), (6, SMALL_RUNS - 6));
    same(&good, &bad);
    // nor does a merge accept them
    write(0, b"");
    let output =
        bentpipe(&["merge", bad.to_str().expect("UTF-8"), "--out", folder("never").to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("error: 1 of 12 runs are in none of the folders"), "{}", err(&output));
    assert!(!folder("never").exists());
}

/// Starts a sweep and kills it after some more runs have finished.
#[allow(clippy::disallowed_methods, reason = "it waits for another process")]
fn killed(args: &[&str], out: &Path, finished: usize) {
    let mut child: Child =
        program().args(args).arg("--out").arg(out).stderr(Stdio::null()).spawn().expect("it starts");
    while runs(out).len() < finished && child.try_wait().expect("it can be asked").is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    // SIGKILL to this child only
    child.kill().expect("it is ours");
    child.wait().expect("it ends");
}

#[test]
fn kill_9_in_the_middle_loses_no_finished_run() {
    let all = 32;
    let (whole, out) = (folder("uninterrupted"), folder("killed"));
    // longer runs, if the sweep finishes before it is killed
    for seconds in [10, 60, 300] {
        let duration = format!("duration={seconds} s");
        let args = [
            "sweep",
            "scenarios/sharing.toml",
            "--set",
            &duration,
            "--axis",
            "loss=1e-3,1e-2",
            "--seeds",
            "16",
        ];
        let _ = fs::remove_dir_all(&out);
        let mut before: BTreeMap<PathBuf, (u64, Vec<u8>)> = BTreeMap::new();
        let mut kills = 0;
        for finished in [2, 7, 15] {
            killed(&args, &out, finished);
            let now: BTreeMap<_, _> =
                runs(&out).into_iter().map(|path| (path.clone(), state(&path))).collect();
            for (path, state) in &before {
                assert!(now.get(path) == Some(state), "{} was touched again", path.display());
            }
            kills += usize::from(now.len() > before.len() && now.len() < all);
            before = now;
        }
        if kills < 2 {
            continue;
        }
        assert_eq!(swept(&args, &[], &out), (all - before.len(), before.len()));
        for (path, before) in &before {
            assert!(state(path) == *before, "{} was made twice", path.display());
        }
        swept(&args, &[], &whole);
        same(&whole, &out);
        return;
    }
    panic!("it could not be killed in the middle");
}

/// The process ends by the signal, as if it had not been caught, and says how to go on.
#[test]
#[allow(clippy::disallowed_methods, reason = "it waits for another process")]
fn an_interrupted_sweep_says_what_is_kept_and_how_to_go_on() {
    let out = folder("interrupted by a signal");
    let args = ["sweep", "scenarios/sharing.toml", "--set", "duration=60 s", "--seeds", "400"];
    let mut command = program();
    command.args(args).args(["--axis", "loss=1e-3"]).arg("--out").arg(&out);
    let child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
    while runs(&out).len() < 2 {
        std::thread::sleep(Duration::from_millis(1));
    }
    // SIGINT may be ignored where this test was started in the background
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it is ours");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.signal(), Some(Signal::TERM.as_raw()), "{output:?}");
    let text = err(&output);
    let rest = format!(
        " of 400 runs are kept in {0}; to go on from there: {1} sweep scenarios/sharing.toml \
         --set 'duration=60 s' --seeds 400 --axis loss=1e-3 --out '{0}'",
        out.display(),
        env!("CARGO_BIN_EXE_bentpipe")
    );
    // on a slow machine an estimate is said before
    let last = text.lines().last().unwrap_or_default();
    let kept = last.strip_prefix("interrupted: ").and_then(|t| t.strip_suffix(&rest));
    let kept: usize = kept.and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{text}"));
    // those that were being written then may be finished too
    assert!(kept >= 1 && kept <= runs(&out).len(), "{kept}: {text}");
}

/// Returns inode and contents of a file.
fn state(path: &Path) -> (u64, Vec<u8>) {
    (fs::metadata(path).expect("it is there").ino(), fs::read(path).expect("it can be read"))
}

/// Fails for partly written files; returns the number of finished runs.
#[track_caller]
fn only_whole_files(out: &Path, good: &Path) -> usize {
    let (here, wanted) = (contents(out), contents(good));
    for (name, bytes) in &here {
        assert!(wanted.get(name) == Some(bytes), "{name} is not what it should be");
    }
    here.keys().filter(|n| n.starts_with("runs/")).count()
}

#[test]
fn a_full_disk_is_reported_and_leaves_no_corrupt_file() {
    let args = [&SMALL[..], &["--seeds", "3"]].concat();
    let (good, disk, out) = (folder("enough"), folder("disk"), folder("full"));
    swept(&args, &[], &good);
    fs::create_dir_all(&disk).expect("it can be made");
    fs::create_dir_all(&out).expect("it can be made");
    // a private disk; its contents are copied before it is unmounted
    let script = "mount -t tmpfs -o size=64k none \"$1\" || exit 77; disk=$1; out=$2; shift 2; \
                  \"$@\" --out \"$disk\"; code=$?; cp -a \"$disk/.\" \"$out\"; exit $code";
    let mut command = std::process::Command::new("unshare");
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).args(["-m", "sh", "-c", script, "sh"]);
    let output = command.args([&disk, &out]).arg(env!("CARGO_BIN_EXE_bentpipe")).args(&args).output();
    let output = match output {
        Ok(output) if output.status.code() != Some(77) && !err(&output).starts_with("unshare:") => output,
        other => {
            println!(
                "SKIPPED a_full_disk_is_reported_and_leaves_no_corrupt_file: needs unshare and mount as root: {other:?}"
            );
            return;
        }
    };
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    let text = err(&output);
    assert!(text.contains(&format!("error: {}/runs/", disk.display())), "{text}");
    assert!(text.contains("No space left on device") && text.contains("finished runs are kept"), "{text}");
    let kept = only_whole_files(&out, &good);
    assert!(kept > 0 && kept < SMALL_RUNS, "{kept} runs fit");
    assert_eq!(swept(&args, &[], &out), (SMALL_RUNS - kept, kept));
    same(&good, &out);
}

#[test]
fn a_table_that_does_not_fit_leaves_the_old_one() {
    let args = [&SMALL[..], &["--seeds", "3"]].concat();
    let (good, out) = (folder("fits"), folder("too-small"));
    swept(&args, &[], &good);
    let largest = runs(&good).iter().map(|p| p.metadata().expect("it is there").len()).max().expect("runs");
    let page = contents(&good)["report.html"].len() as u64;
    let blocks = largest.div_ceil(512);
    assert!(blocks * 512 < page, "the page is to be the first that does not fit");
    // limits the file size, in blocks of 512 bytes
    let script = "trap '' XFSZ; ulimit -f \"$1\" || exit 77; shift; exec \"$@\"";
    let limited = || {
        let mut command = std::process::Command::new("sh");
        command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        command.args(["-c", script, "sh", &blocks.to_string(), env!("CARGO_BIN_EXE_bentpipe")]);
        command.args(&args).arg("--out").arg(&out).output().expect("there is a shell")
    };
    let output = limited();
    if output.status.code() == Some(77) {
        println!("SKIPPED a_table_that_does_not_fit_leaves_the_old_one: the shell has no ulimit -f");
        return;
    }
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    assert!(err(&output).contains(&format!("error: {}/", out.display())), "{}", err(&output));
    assert!(err(&output).contains("File too large"), "{}", err(&output));
    assert_eq!(only_whole_files(&out, &good), SMALL_RUNS);
    assert!(!out.join("report.html").exists());
    assert_eq!(swept(&args, &[], &out), (0, SMALL_RUNS));
    same(&good, &out);
    // and an existing file stays unchanged
    assert_eq!(limited().status.code(), Some(1));
    same(&good, &out);
}

#[test]
fn values_that_say_the_same_are_one_run() {
    let out = folder("same-values");
    let args =
        ["sweep", "scenarios/sharing.toml", "--set", "duration=2 s", "--set", "flows=2", "--seeds", "2"];
    let args = [&args[..], &["--axis", "loss=1e-2,0.01,1e-1"]].concat();
    assert_eq!(swept(&args, &["--threads", "2"], &out), (4, 0));
    assert_eq!(runs(&out).len(), 4);
    let table = String::from_utf8(contents(&out)["cells.csv"].clone()).expect("UTF-8");
    let rows: Vec<&str> =
        table.lines().skip(1).filter_map(|l| l.split_once(',').map(|(_, rest)| rest)).collect();
    assert!(rows.len() == 3 && rows[0] == rows[1] && rows[1] != rows[2], "{table}");
}

#[test]
fn another_sweep_into_the_same_folder_leaves_nothing_of_the_first_in_its_tables() {
    let (used, fresh) = (folder("used"), folder("fresh"));
    let base =
        ["sweep", "scenarios/sharing.toml", "--set", "duration=2 s", "--set", "flows=2", "--seeds", "2"];
    let first =
        [&base[..], &["--axis", "loss=1e-2,1e-1", "--measure", "goodput", "--measure", "jain"]].concat();
    swept(&first, &[], &used);
    assert!(used.join("curve-2.svg").exists());
    let second = [&base[..], &["--axis", "loss=1e-3,1e-1", "--measure", "goodput"]].concat();
    assert_eq!(swept(&second, &[], &used), (2, 2), "what is known is used");
    swept(&second, &[], &fresh);
    let tables = |path: &Path| -> BTreeMap<_, _> {
        contents(path).into_iter().filter(|(name, _)| !name.starts_with("runs/")).collect()
    };
    assert!(tables(&used) == tables(&fresh));
}

#[test]
fn only_shards_of_one_sweep_are_merged() {
    let base =
        ["sweep", "scenarios/sharing.toml", "--set", "duration=1 s", "--set", "flows=1", "--seeds", "2"];
    let (a, b) = (folder("of-one"), folder("of-another"));
    swept(&[&base[..], &["--axis", "loss=0,0.1"]].concat(), &["--shard", "1/2"], &a);
    swept(&[&base[..], &["--axis", "loss=0,0.2"]].concat(), &["--shard", "2/2"], &b);
    let out = folder("no-whole");
    let merge = |shards: &[&Path]| {
        let shards = shards.iter().map(|s| s.to_str().expect("UTF-8"));
        let args = ["merge", "--out", out.to_str().expect("UTF-8")].into_iter().chain(shards);
        bentpipe(&args.collect::<Vec<_>>())
    };
    for (shards, words) in [
        (&[a.as_path(), &b][..], "belongs to another sweep"),
        (&[&a], "2 of 4 runs are in none of the folders"),
        (&[&out], "sweep.json: No such file"),
    ] {
        let output = merge(shards);
        assert_eq!(output.status.code(), Some(2), "{}", err(&output));
        assert!(err(&output).contains(words), "{}", err(&output));
    }
    // a manifest of another version
    let manifest = a.join("sweep.json");
    let text = fs::read_to_string(&manifest).expect("it is there");
    fs::write(&manifest, text.replacen("\"semantics\":\"", "\"semantics\":\"x", 1))
        .expect("it can be written");
    assert!(err(&merge(&[&a])).contains("made by another version"));
    assert!(!out.exists(), "nothing was written");
}
