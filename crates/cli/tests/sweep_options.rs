//! Errors in a sweep's options are shown at their place before anything is run or written; and how options
//! change the file's sweep.

mod support;

use support::{bentpipe, contents, err, folder};

const FILE: &str = "scenarios/sharing.toml";

/// Checks that the options are rejected with exactly this message.
#[track_caller]
fn refused(args: &[&str], picture: &str) {
    // a folder per test, since tests run in parallel
    let out = folder(&format!("refused-{}", std::thread::current().name().unwrap_or_default()));
    let output = bentpipe(&[&["sweep"], args, &["--out", out.to_str().expect("UTF-8")]].concat());
    assert_eq!((output.status.code(), err(&output)), (Some(2), picture.trim_start_matches('\n').to_owned()));
    assert!(output.stdout.is_empty() && !out.exists(), "nothing is written");
}

#[test]
fn axes_point_at_the_character() {
    refused(
        &[FILE, "--axis", "los=1,2"],
        "
error: there is no parameter `los`
 --> command line:1:8
  |
1 | --axis los=1,2
  |        ^^^ did you mean `loss`?
  = help: parameters: tcp, loss, flows, jitter, buffer, window, duration
",
    );
    refused(
        &[FILE, "--axis", "loss=1e-3, 1.5"],
        "
error: `loss` is a probability between 0 and 1
 --> command line:1:19
  |
1 | --axis loss=1e-3, 1.5
  |                   ^^^ greater than 1
  = note: used at scenarios/sharing.toml:26:8
",
    );
    refused(
        &[FILE, "--axis", "loss=1e-3,,1"],
        "
error: a value of the axis `loss` is empty
 --> command line:1:18
  |
1 | --axis loss=1e-3,,1
  |                  ^ write values with commas between, as in loss=a,b,c
",
    );
    refused(
        &[FILE, "--axis", "loss=1e-3,1e-2,1e-3"],
        "
error: the axis `loss` has `1e-3` twice
 --> command line:1:23
  |
1 | --axis loss=1e-3,1e-2,1e-3
  |                       ^^^^ leave it out
",
    );
    refused(
        &[FILE, "--axis", "loss=0", "--axis", "loss=1"],
        "
error: the axis `loss` is given twice
 --> command line:1:8
  |
1 | --axis loss=1
  |        ^^^^
  = help: write all its values behind one --axis loss=
",
    );
    refused(
        &[FILE, "--axis", "loss=0,1", "--set", "loss=1"],
        "
error: `loss` is given by --set too
 --> command line:1:8
  |
1 | --axis loss=0,1
  |        ^^^^
  = help: --set keeps one value, --axis compares several: write one of the two
",
    );
}

#[test]
fn metrics_point_at_the_character() {
    refused(
        &[FILE, "--set", "flows=1", "--measure", "goodput", "--measure", "drops[bottlneck]"],
        "
error: `drops[bottlneck]`: the run has no link `bottlneck`: did you mean `bottleneck`?
 --> command line:1:17
  |
1 | --measure drops[bottlneck]
  |                 ^^^^^^^^^
  = help: it has bottleneck, bottleneck-return, src1-access, src1-access-return, dst1-access, dst1-access-return
",
    );
    // a flow that exists only in some combinations
    refused(
        &[FILE, "--axis", "flows=3,2", "--measure", "goodput[flow3]"],
        "
error: `goodput[flow3]`: the run has no flow `flow3`: did you mean `flow1`?
 --> command line:1:19
  |
1 | --measure goodput[flow3]
  |                   ^^^^^
  = help: it has flow1, flow2
",
    );
    refused(
        &[FILE, "--precision", "goodput[flow77] 5 %"],
        "
error: `goodput[flow77]`: the run has no flow `flow77`: did you mean `flow7`?
 --> command line:1:21
  |
1 | --precision goodput[flow77] 5 %
  |                     ^^^^^^
  = help: it has flow1, flow2, flow3, flow4, flow5, flow6, flow7, flow8, flow9, flow10, flow11, flow12, flow13, flow14, flow15, \
flow16, flow17, flow18, flow19, flow20
",
    );
}

#[test]
fn a_metric_of_the_file_is_shown_there() {
    let path = with_sweep("bad-measure.toml", "measure = [\"goodput\", \"rtt_p50[flw1]\"]");
    let path = path.to_str().expect("UTF-8");
    let output = bentpipe(&["sweep", path, "--out", folder("refused").to_str().expect("UTF-8")]);
    let text = err(&output);
    assert!(
        text.starts_with("error: `rtt_p50[flw1]`: the run has no flow `flw1`: did you mean `flow1`?\n"),
        "{text}"
    );
    assert!(text.contains(&format!(" --> {path}:")), "{text}");
    assert!(text.contains("measure = [\"goodput\", \"rtt_p50[flw1]\"]\n"), "{text}");
    assert!(text.contains("|                                ^^^^\n"), "{text}");
}

#[test]
fn shards_point_at_the_character() {
    refused(
        &[FILE, "--shard", "5/4"],
        "
error: there is no such shard
 --> command line:1:9
  |
1 | --shard 5/4
  |         ^ i of i/n is from 1 to n
",
    );
    refused(
        &[FILE, "--shard", "1-4"],
        "
error: a shard is written as i/n
 --> command line:1:9
  |
1 | --shard 1-4
  |         ^^^ the first of four is 1/4
",
    );
}

#[test]
fn precisions_point_at_the_character() {
    refused(
        &[FILE, "--precision", "goodput"],
        "
error: the precision needs a metric and a share
 --> command line:1:13
  |
1 | --precision goodput
  |             ^^^^^^^ write it as 'goodput 5 %'
",
    );
    refused(
        &[FILE, "--precision", "goodput 500 %"],
        "
error: the share of a precision is more than 0 and less than 1
 --> command line:1:21
  |
1 | --precision goodput 500 %
  |                     ^^^^^ half-width of the 95 % interval over the mean, as in 5 % or 0.05
",
    );
    refused(
        &[FILE, "--max-seeds", "7"],
        "
error: there is no precision to reach
 --> command line:1:13
  |
1 | --max-seeds 7
  |             ^ it goes with --precision 'goodput 5 %'
",
    );
    refused(
        &[FILE, "--seeds", "8", "--max-seeds", "7", "--precision", "goodput 5 %"],
        "
error: `--max-seeds` is less than the 8 seeds of every combination
 --> command line:1:13
  |
1 | --max-seeds 7
  |             ^ write more, or fewer --seeds
",
    );
    refused(
        &[FILE, "--precision", "goodput 5 %", "--shard", "1/2"],
        "
error: a sweep with a precision cannot be split into shards: how many runs it needs depends on all of them
help: write --precision none and a fixed number of --seeds
",
    );
}

#[test]
fn there_is_an_end_to_runs() {
    let many: Vec<String> = (0..5000).map(|n| (f64::from(n) * 1e-4).to_string()).collect();
    refused(
        &[FILE, "--seeds", "1000", "--axis", &format!("loss={}", many.join(","))],
        "
error: there are too many runs: combinations times seeds must not exceed 100000
help: with a precision, its max_seeds counts
",
    );
}

/// Writes a copy of `sharing.toml` with another sweep.
fn with_sweep(name: &str, keys: &str) -> std::path::PathBuf {
    let text = std::fs::read_to_string("../../scenarios/sharing.toml").expect("it is there");
    let axes = "loss = [0.0, 1e-2], window = [\"11 segments\", \"71 segments\"], tcp = [\"reno\", \"sack\"]";
    let path = folder(name);
    std::fs::write(&path, format!("{text}\n[sweep]\naxes = {{ {axes} }}\nseeds = 2\n{keys}\n"))
        .expect("it can be written");
    path
}

#[test]
fn set_keeps_one_value_of_an_axis_and_axis_replaces_them() {
    let path =
        with_sweep("own-sweep.toml", "precision = { of = \"goodput\", relative = 0.5, max_seeds = 3 }");
    let out = folder("set-axis");
    let args = |more: &[&'static str]| {
        let base = [
            "sweep",
            path.to_str().expect("UTF-8"),
            "--out",
            out.to_str().expect("UTF-8"),
            "--set",
            "duration=5 s",
        ];
        let args: Vec<String> = base.iter().chain(more).map(|s| (*s).to_owned()).collect();
        let output = bentpipe(&args);
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        String::from_utf8(contents(&out)["cells.csv"].clone()).expect("UTF-8")
    };
    let table = args(&[
        "--set",
        "tcp=reno",
        "--set",
        "window=11 segments",
        "--axis",
        "loss=0",
        "--measure",
        "timeouts",
    ]);
    let rows: Vec<&str> = table.lines().collect();
    // the metric of the file's precision is in the tables
    let head = "loss,window,tcp,timeouts_mean,timeouts_half_width_95,timeouts_n,goodput_bps_mean,goodput_bps_half_width_95,goodput_bps_n";
    assert_eq!(rows[0], head);
    assert!(rows.len() == 2 && rows[1].starts_with("0,11 segments,reno,0,0,2,"), "{table}");
    // an unreachable precision stops at max_seeds of the file or of the option
    let hard = [
        "--set",
        "tcp=reno",
        "--set",
        "window=11 segments",
        "--axis",
        "loss=1e-2",
        "--precision",
        "goodput 0.01 %",
    ];
    assert!(args(&hard).trim_end().ends_with(",3"));
    assert!(args(&[&hard[..], &["--max-seeds", "4"]].concat()).trim_end().ends_with(",4"));
    let none =
        ["--set", "tcp=reno", "--set", "window=11 segments", "--axis", "loss=1e-2", "--precision", "none"];
    assert!(args(&none).trim_end().ends_with(",2"));
}
