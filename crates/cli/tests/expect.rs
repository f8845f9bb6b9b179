//! `--expect`: conditions on the results of a run, for CI.

mod support;

use std::process::Output;
use support::{bentpipe, err};

const NOT_MET: i32 = 3;
const BAD_INPUT: i32 = 2;

/// One transfer of 20 kB over a satellite link without losses; it takes some round trips of 585 ms.
fn transfer(more: &[&str]) -> Output {
    bentpipe(&[&["sim", "scenarios/transfer.toml", "--set", "size=20 kB"], more].concat())
}

#[track_caller]
fn judged(expectation: &str, code: i32, words: &str) {
    let output = transfer(&["--expect", expectation]);
    assert_eq!((output.status.code(), err(&output)), (Some(code), format!("{words}\n")), "{expectation}");
}

#[test]
fn what_is_met_exits_with_0_and_what_is_not_with_3() {
    let text = String::from_utf8(transfer(&["--json"]).stdout).expect("UTF-8");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let finished = report["flows"][0]["finished_s"].as_f64().expect("it finished");
    assert!(finished > 2.0 && finished < 6.0, "{finished}");
    let shown = format!("{finished:.3}");
    judged("retransmits == 0", 0, "met: retransmits == 0: it is 0");
    judged("finished < 6 s", 0, &format!("met: finished < 6 s: it is {shown} s"));
    judged(
        "finished[transfer] >= 6000 ms",
        NOT_MET,
        &format!("not met: finished[transfer] >= 6000 ms: it is {:.0} ms", finished * 1e3),
    );
    judged("drops[bottleneck].queue_full > 0", NOT_MET, "not met: drops[bottleneck].queue_full > 0: it is 0");
    let within = |share: &str, of: f64| format!("finished within {share} of {of} s");
    judged(
        &within("5 %", finished * 1.04),
        0,
        &format!("met: {}: it is {shown} s", within("5 %", finished * 1.04)),
    );
    judged(
        &within("1 %", finished * 1.04),
        NOT_MET,
        &format!("not met: {}: it is {shown} s", within("1 %", finished * 1.04)),
    );
}

#[test]
fn all_are_judged_and_one_that_is_not_met_decides() {
    let output = transfer(&["--expect", "retransmits > 0", "--expect", "timeouts == 0"]);
    assert_eq!(output.status.code(), Some(NOT_MET));
    assert_eq!(err(&output), "not met: retransmits > 0: it is 0\nmet: timeouts == 0: it is 0\n");
}

#[test]
fn what_has_no_value_is_not_met() {
    let output = transfer(&["--set", "size=1 GB", "--expect", "finished < 1 h"]);
    assert_eq!(output.status.code(), Some(NOT_MET));
    assert!(
        err(&output).starts_with("not met: finished < 1 h: it has no value in this run"),
        "{}",
        err(&output)
    );
}

/// Standard output is the same with and without `--expect`.
#[test]
fn data_is_the_same_with_and_without() {
    for format in [&[][..], &["--json"]] {
        let plain = transfer(format);
        for (expectation, code) in [("retransmits == 0", 0), ("retransmits > 0", NOT_MET)] {
            let output = transfer(&[format, &["--expect", expectation]].concat());
            assert_eq!(output.status.code(), Some(code));
            assert_eq!(output.stdout, plain.stdout);
        }
    }
}

#[test]
fn slips_are_answered_before_the_run() {
    for (expectation, words) in [
        ("goodput > 5 ms", "`5 ms` does not fit `goodput`: write a rate, as in 1 Mbit/s"),
        ("finished < 5", "write a time, as in 10 s"),
        ("retransmits < 5 %", "write a number, as in 3"),
        ("goodput > 1 parsec", "unknown unit `parsec`"),
        ("goodput > fast", "`fast` is not a number with a unit"),
        ("godput > 1 bit/s", "unknown metric `godput`: did you mean `goodput`?"),
        ("goodput", "no operator: write METRIC OPERATOR QUANTITY"),
        ("goodput within 5 Mbit/s", "write `within 5 % of QUANTITY`"),
        ("limited_by > 0.5", "name the cause, as in limited_by[flow].congestion_window"),
    ] {
        let output = transfer(&["--expect", expectation]);
        assert_eq!(output.status.code(), Some(BAD_INPUT), "{expectation}");
        assert!(err(&output).contains(words), "{expectation}: {}", err(&output));
        assert!(output.stdout.is_empty());
    }
    // a wrong flow name is shown at its place in the option
    let output = transfer(&["--expect", "goodput[transfr] > 1 bit/s"]);
    let picture = "\
error: `goodput[transfr]`: the run has no flow `transfr`: did you mean `transfer`?
 --> command line:1:18
  |
1 | --expect goodput[transfr] > 1 bit/s
  |                  ^^^^^^^
  = help: it has transfer
";
    assert_eq!((output.status.code(), err(&output)), (Some(BAD_INPUT), picture.to_owned()));
    let output = transfer(&["--expect", "drops[bottleneck].queuefull == 0"]);
    assert!(err(&output).contains("no cause `queuefull`: did you mean `queue_full`?"), "{}", err(&output));
}
