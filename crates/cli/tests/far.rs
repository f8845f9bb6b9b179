//! `emulate --far`: waiting for it, and how it ended; `--expect` of live runs; where packets are captured.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "helpers of tests say why one cannot run, and it waits for other programs"
)]

use lab::{Rig, Who, rig};
use std::path::Path;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);
const NOT_MET: i32 = 3;

fn place(test: &str) -> Option<Rig> {
    if let Some(program) = ["iperf3", "unshare", "setpriv"].iter().find(|p| !rig::has(p)) {
        println!("SKIPPED {test}: {program} is not installed");
        return None;
    }
    Rig::new(Path::new(env!("CARGO_BIN_EXE_bentpipe")), Who::Unprivileged)
        .inspect_err(|why| println!("SKIPPED {test}: {why}"))
        .ok()
}

/// The server takes its time: without waiting, the client finds nobody.
#[test]
fn the_command_starts_when_the_far_program_listens() {
    let Some(rig) = place("the_command_starts_when_the_far_program_listens") else { return };
    let late = "sleep 1; iperf3 -s -1 -p 5999 >/dev/null";
    let client = ["--", "iperf3", "-c", "far", "-p", "5999", "-R", "-t", "1"];
    for ready in [&[][..], &["--far-ready", "5999"]] {
        let done =
            rig.run(&[&["emulate", "terrestrial", "--far", late], ready, &client].concat(), LIMIT).unwrap();
        assert_eq!(done.code, Some(0), "{ready:?}: {}", done.describe());
    }
    let words = ["emulate", "terrestrial", "--far", late, "--far-ready", "off"];
    let done = rig.run(&[&words[..], &client].concat(), LIMIT).unwrap();
    assert_eq!(done.code, Some(1), "nobody listens yet: {}", done.describe());
}

#[test]
fn a_far_program_that_does_not_listen_is_named() {
    let Some(rig) = place("a_far_program_that_does_not_listen_is_named") else { return };
    let far = ["emulate", "terrestrial", "--far", "sleep 30", "--far-within", "300 ms"];
    let since = Instant::now();
    let done = rig.run(&[&far[..], &["--", "echo", "started"]].concat(), LIMIT).unwrap();
    assert_eq!((done.code, done.out.trim()), (Some(0), "started"), "{}", done.describe());
    let note = "note: the far program opened no port to listen at: not within 300 ms; the command starts now";
    assert!(done.err.contains(note), "{}", done.err);
    // a port that was asked for is no note
    let done = rig.run(&[&far[..], &["--far-ready", "80", "--", "echo", "started"]].concat(), LIMIT).unwrap();
    assert_eq!((done.code, done.out.as_str()), (Some(1), ""), "{}", done.describe());
    let error =
        "error: the far program did not open port 80: not within 300 ms\nhelp: --far-within gives it longer";
    assert!(done.err.contains(error), "{}", done.err);
    // one that has ended is not waited for
    let ended = [
        "emulate",
        "terrestrial",
        "--far",
        "exit 7",
        "--far-ready",
        "80",
        "--far-within",
        "50 s",
        "--",
        "true",
    ];
    let done = rig.run(&ended, LIMIT).unwrap();
    assert!(done.err.contains("did not open port 80: it has ended"), "{}", done.err);
    assert!(since.elapsed() < Duration::from_secs(40));
}

#[test]
fn the_end_of_the_far_program_is_reported() {
    let Some(rig) = place("the_end_of_the_far_program_is_reported") else { return };
    for (line, end) in [("exit 7", "exit status 7"), ("kill -9 $$", "signal 9"), ("true", "exit status 0")] {
        let done = rig.run(&["emulate", "terrestrial", "--far", line, "--", "sleep", "0.5"], LIMIT).unwrap();
        let said = format!("the far program has ended: {end}");
        assert!(done.code == Some(0) && done.err.contains(&said), "{line}: {}", done.describe());
    }
    // also while the command runs, but not when the session ends it
    let later =
        ["emulate", "terrestrial", "--far", "sleep 0.3; exit 4", "--far-ready", "off", "--", "sleep", "1"];
    let done = rig.run(&later, LIMIT).unwrap();
    assert!(done.err.contains("the far program has ended: exit status 4"), "{}", done.err);
    let kept = ["emulate", "terrestrial", "--far", "sleep 30", "--far-ready", "off", "--", "true"];
    let done = rig.run(&kept, LIMIT).unwrap();
    assert!(!done.err.contains("has ended"), "{}", done.err);
}

#[test]
fn wrong_words_about_the_far_program_are_answered() {
    let Some(rig) = place("wrong_words_about_the_far_program_are_answered") else { return };
    for (words, said) in [
        (&["--far", "true", "--far-ready", "http"][..], "write a port from 1 to 65535, or `off`"),
        (&["--far", "true", "--far-ready", "0"], "write a port from 1 to 65535, or `off`"),
        (&["--far", "true", "--far-within", "5"], "write a time up to 1 h, as in 30 s"),
        (&["--far", "true", "--far-within", "2 h"], "write a time up to 1 h, as in 30 s"),
        (&["--far-ready", "80"], "--far <LINE>"),
        (&["--capture", "all"], "--out <DIR>"),
        (&["--expect", "utilisation[lnk] > 0.5"], "the run has no link `lnk`: did you mean `link`?"),
        (&["--expect", "goodput > 5 ms"], "write a rate, as in 1 Mbit/s"),
    ] {
        let done = rig.run(&[&["emulate", "terrestrial"], words, &["--", "true"]].concat(), LIMIT).unwrap();
        assert!(done.code == Some(2) && done.err.contains(said), "{words:?}: {}", done.describe());
    }
}

#[test]
fn a_live_link_is_judged_by_its_report() {
    let Some(rig) = place("a_live_link_is_judged_by_its_report") else { return };
    let judged = |expectations: &[&str], script: &str| {
        let expects: Vec<&str> = expectations.iter().flat_map(|e| ["--expect", e]).collect();
        let words = ["emulate", "terrestrial", "--far", "iperf3 -s -1 >/dev/null"];
        let done = rig.run(&[&words[..], &expects, &["--", "sh", "-c", script]].concat(), LIMIT).unwrap();
        (done.code, done.err)
    };
    let client = "iperf3 -c far -R -t 2 >/dev/null";
    let (code, said) = judged(&["goodput > 10 Mbit/s", "drops[link].packet_loss == 0"], client);
    let is_met = said.lines().any(|line| line.starts_with("met: goodput > 10 Mbit/s: it is "));
    assert!(code == Some(0) && is_met, "{said}");
    assert!(said.contains("met: drops[link].packet_loss == 0: it is 0"), "{said}");
    let (code, said) = judged(&["goodput > 1 Gbit/s", "rtt_min > 19 ms"], client);
    assert!(code == Some(NOT_MET) && said.contains("not met: goodput > 1 Gbit/s: it is 0.0"), "{said}");
    // a connection that nobody makes is not met; a command that fails says more
    let (code, said) = judged(&["goodput[near:1 > far:2] > 1 bit/s"], client);
    assert!(code == Some(NOT_MET) && said.contains("the run has no flow `near:1 > far:2`"), "{said}");
    let (code, said) = judged(&["goodput > 1 Gbit/s"], "exit 9");
    assert!(code == Some(9) && said.contains("not met"), "{said}");
}

#[test]
fn both_runs_of_a_comparison_are_judged() {
    let Some(rig) = place("both_runs_of_a_comparison_are_judged") else { return };
    let judged = |command: &str, expectation: &str| {
        let words = [command, "scenarios/transfer.toml", "--set", "size=10 kB", "--expect", expectation];
        let done = rig.run(&words, LIMIT).unwrap();
        assert!(done.out.contains("transfer"), "{}", done.describe());
        (done.code, done.err)
    };
    let (code, said) = judged("compare", "finished < 20 s");
    assert_eq!(code, Some(0), "{said}");
    for run in ["simulated", "emulated"] {
        assert!(said.contains(&format!("{run}: met: finished < 20 s: it is ")), "{said}");
    }
    let (code, said) = judged("compare", "finished > 20 s");
    assert!(code == Some(NOT_MET) && said.contains("emulated: not met: finished > 20 s"), "{said}");
    // the scenario's own flows
    assert_eq!(judged("emulate", "acked >= 10 kB").0, Some(0));
    assert_eq!(judged("emulate", "acked > 1 MB").0, Some(NOT_MET));
}

/// `near` of this scenario is `old`, `far` is `server`.
#[test]
fn packets_are_captured_where_the_flag_says() {
    let Some(rig) = place("packets_are_captured_where_the_flag_says") else { return };
    let captures = |flag: &[&str]| {
        let out = rig.path("captures");
        let _ = std::fs::remove_dir_all(&out);
        let words = ["emulate", "demo", "--out", out.to_str().unwrap()];
        rig.output(&[&words[..], flag, &["--", "true"]].concat(), LIMIT).unwrap();
        let names = std::fs::read_dir(&out).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap());
        // three files for each direction: before it, after it, and what it lost
        let names = names.filter_map(|n| Some(n.strip_suffix(".pcapng")?.split('.').next()?.to_owned()));
        let names: std::collections::BTreeSet<String> = names.collect();
        let names: Vec<String> = names.into_iter().collect();
        names.join(" ")
    };
    let (near, far) = ("lan-old lan-old-return", "internet internet-return");
    assert_eq!(captures(&[]), format!("{far} {near}"));
    assert_eq!(captures(&["--capture", "ends"]), format!("{far} {near}"));
    assert_eq!(captures(&["--capture", "near"]), near);
    assert_eq!(captures(&["--capture", "far"]), far);
    assert_eq!(captures(&["--capture", "none"]), "");
    assert_eq!(captures(&["--capture", "all"]).split(' ').count(), 12);
}

#[test]
fn pictures_of_a_live_run_are_files_if_asked_for() {
    let Some(rig) = place("pictures_of_a_live_run_are_files_if_asked_for") else { return };
    let pictures = |flags: &[&str]| -> Vec<Vec<u8>> {
        let out = rig.path("pictures");
        let _ = std::fs::remove_dir_all(&out);
        let words = ["emulate", "terrestrial", "--capture", "none", "--out", out.to_str().unwrap()];
        let ping = ["--", "ping", "-n", "-q", "-c", "5", "-i", "0.1", "far"];
        rig.output(&[&words[..], flags, &ping].concat(), LIMIT).unwrap();
        let files = std::fs::read_dir(&out).unwrap().map(|file| file.unwrap().path());
        let files = files.filter(|f| f.file_name().unwrap().to_str().unwrap().starts_with("picture-link-"));
        files.map(|file| std::fs::read(file).unwrap()).collect()
    };
    assert!(pictures(&[]).is_empty());
    let png = pictures(&["--png"]);
    assert!(!png.is_empty() && png.iter().all(|bytes| bytes.starts_with(b"\x89PNG")));
    let svg = pictures(&["--svg"]);
    assert!(svg.len() == png.len() && svg.iter().all(|bytes| bytes.starts_with(b"<svg ")));
}

#[test]
fn a_command_needs_no_dashes() {
    let Some(rig) = place("a_command_needs_no_dashes") else { return };
    let done = rig.run(&["emulate", "terrestrial", "ping", "-n", "-c", "1", "far"], LIMIT).unwrap();
    assert!(done.code == Some(0) && done.out.contains("1 received"), "{}", done.describe());
}

#[test]
fn a_journal_that_was_cut_is_no_success() {
    let Some(rig) = place("a_journal_that_was_cut_is_no_success") else { return };
    let journal = rig.path("journal");
    let path = journal.to_str().unwrap();
    rig.output(
        &["emulate", "terrestrial", "--journal", path, "--", "ping", "-n", "-c", "3", "-i", "0.2", "far"],
        LIMIT,
    )
    .unwrap();
    let replay = || rig.run(&["replay", path], LIMIT).unwrap();
    assert_eq!(replay().code, Some(0), "{}", replay().describe());
    let whole = std::fs::read(&journal).unwrap();
    std::fs::write(&journal, &whole[..whole.len() * 3 / 4]).unwrap();
    let done = replay();
    let said = done.out.contains("the journal ends before its run did") || done.code == Some(2);
    assert!(done.code != Some(0) && said, "{}", done.describe());
}

/// Not only low ports: what an ordinary user lacks is the permission to read and write packets.
#[test]
fn a_port_of_an_ordinary_user_is_not_said_to_be_for_root() {
    let Some(rig) = place("a_port_of_an_ordinary_user_is_not_said_to_be_for_root") else { return };
    let done = rig.run(&["receive", "127.0.0.1:5000"], LIMIT).unwrap();
    assert!(done.code != Some(0) && !done.err.contains("is for root"), "{}", done.describe());
    assert!(done.err.contains("CAP_NET_RAW"), "{}", done.err);
}

/// `--metrics` serves the link's figures in the network where the session was started.
#[test]
fn a_link_has_metrics() {
    let Some(rig) = place("a_link_has_metrics") else { return };
    let ask = "exec 3<>/dev/tcp/127.0.0.1/9465; printf 'GET /metrics HTTP/1.1\\r\\n\\r\\n' >&3; cat <&3";
    let ask = rig.file("ask.sh", ask).unwrap();
    let script = format!(
        "\"$BENTPIPE\" emulate geo-10m --metrics 127.0.0.1:9465 -- sleep 20 & session=$!
for n in $(seq 100); do page=$(bash {ask} 2>/dev/null) && [ -n \"$page\" ] && break; sleep 0.1; done
echo \"$page\"
kill $session; wait $session || true"
    );
    let text = rig.shell(&script, LIMIT).unwrap();
    assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
    for direction in ["link", "link-return"] {
        let up = format!(",direction=\"{direction}\"}} 1");
        assert!(
            text.lines().any(|l| l.starts_with("bentpipe_link_up{") && l.trim().ends_with(&up)),
            "{text}"
        );
    }
    let taken = ["emulate", "geo-10m", "--metrics", "192.0.2.77:1", "--", "true"];
    let done = rig.run(&taken, LIMIT).unwrap();
    assert!(done.code == Some(2) && done.err.contains("metrics at 192.0.2.77:1"), "{}", done.describe());
}
