//! Invalid TCP options and applications: the full text of each error.

use crate::support::{DUMBBELL, edit};
use bentpipe_tcp::Scheme;

/// `@SCHEMES@` in the expected text stands for the list of schemes, so that a new scheme changes no test.
fn refuses(text: &str, with: &[(&str, &str)], picture: &str) {
    crate::support::refuses(text, with, &picture.replace("@SCHEMES@", &Scheme::NAMES.join(", ")));
}

#[test]
fn an_unknown_scheme() {
    refuses(
        &edit(DUMBBELL, "\"newreno\"", "\"new-reno\""),
        &[],
        r#"
error: `tcp` cannot be "new-reno"
  --> test.toml:26:7
   |
26 | tcp = "new-reno"
   |       ^^^^^^^^^^ did you mean `newreno`?
   = help: it can be @SCHEMES@
"#,
    );
}

#[test]
fn a_scheme_that_is_not_modelled_for_linux() {
    refuses(
        &edit(DUMBBELL, "\"newreno\"", "\"vegas\"\nstack = \"linux\""),
        &[],
        r#"
error: `vegas` as Linux has it is not modelled
  --> test.toml:26:7
   |
26 | tcp = "vegas"
   |       ^^^^^^^ one of reno, newreno, sack, cubic
"#,
    );
}

#[test]
fn a_scheme_that_is_a_number() {
    refuses(
        &edit(DUMBBELL, "\"newreno\"", "1"),
        &[],
        r"
error: `tcp` is a word in quotes
  --> test.toml:26:7
   |
26 | tcp = 1
   |       ^ this is a bare number
   = help: it can be @SCHEMES@
",
    );
}

#[test]
fn a_parameter_of_another_scheme() {
    refuses(
        &edit(DUMBBELL, "\"newreno\"", "{ scheme = \"newreno\", hystart = false }"),
        &[],
        r#"
error: `hystart` is not a parameter of newreno
  --> test.toml:26:39
   |
26 | tcp = { scheme = "newreno", hystart = false }
   |                                       ^^^^^ it belongs to cubic
"#,
    );
}

#[test]
fn beta_out_of_range() {
    refuses(
        &edit(DUMBBELL, "\"newreno\"", "{ scheme = \"cubic\", beta = 1.0 }"),
        &[],
        r#"
error: `beta` is out of range
  --> test.toml:26:34
   |
26 | tcp = { scheme = "cubic", beta = 1.0 }
   |                                  ^^^ from 0.1 to 0.95
"#,
    );
}

#[test]
fn an_unknown_detection() {
    refuses(
        &edit(DUMBBELL, "\"newreno\"", "{ scheme = \"cubic\", recovery = { detection = \"rak\" } }"),
        &[],
        r#"
error: `detection` cannot be "rak"
  --> test.toml:26:52
   |
26 | tcp = { scheme = "cubic", recovery = { detection = "rak" } }
   |                                                    ^^^^^ did you mean `rack`?
   = help: it can be reno, newreno, vegas, sack, rack
"#,
    );
}

#[test]
fn a_window_larger_than_the_scale() {
    refuses(
        &edit(DUMBBELL, "window = \"$window\"\n", "window = \"$window\"\nwindow_scale = false\n"),
        &[("window", "66 segments")],
        r"
error: a window of 66000 B needs window scale
 --> command line:1:14
  |
1 | --set window=66 segments
  |              ^^^^^^^^^^^ the limit is 65535 B with `window_scale = false`
  = note: used at test.toml:19:10
",
    );
}

#[test]
fn a_window_larger_than_any_scale() {
    refuses(
        DUMBBELL,
        &[("window", "1 GiB")],
        r"
error: a window of 1 GiB is more than TCP can announce
 --> command line:1:14
  |
1 | --set window=1 GiB
  |              ^^^^^ the limit is 1073725440 B
  = note: used at test.toml:19:10
",
    );
}

#[test]
fn the_default_window_without_scale() {
    let text = edit(DUMBBELL, "window = \"$window\"\n", "window_scale = false\n");
    let text = edit(&text, "window = \"64 segments\"\n", "");
    refuses(
        &text,
        &[],
        r#"
error: the default window of up to 6 MiB needs window scale
  --> test.toml:18:16
   |
18 | window_scale = false
   |                ^^^^^ give `window = "65535 B"` or less
"#,
    );
}

#[test]
fn a_window_that_shrinks() {
    refuses(
        &edit(
            DUMBBELL,
            "window = \"$window\"\n",
            "window = { initial = \"$window\", max = \"32 segments\" }\n",
        ),
        &[],
        r#"
error: `max` is less than `initial`
  --> test.toml:19:39
   |
19 | window = { initial = "$window", max = "32 segments" }
   |                                       ^^^^^^^^^^^^^ that is 64000 B
"#,
    );
}

#[test]
fn a_segment_that_no_packet_holds() {
    refuses(
        &edit(DUMBBELL, "\"1000 B\"", "\"64 KiB\""),
        &[],
        r#"
error: a segment of that size does not exist
  --> test.toml:18:11
   |
18 | segment = "64 KiB"
   |           ^^^^^^^^ from 1 B to 65495 B
"#,
    );
}

#[test]
fn rto_bounds_that_cross() {
    refuses(
        &edit(DUMBBELL, "window = \"$window\"\n", "window = \"$window\"\nmin_rto = \"2 min\"\n"),
        &[],
        r#"
error: `min_rto` is more than `max_rto`
  --> test.toml:20:11
   |
20 | min_rto = "2 min"
   |           ^^^^^^^ `min_rto` is 120 s, `max_rto` is 60 s
"#,
    );
}

#[test]
fn patience_that_is_none() {
    refuses(
        &edit(DUMBBELL, "window = \"$window\"\n", "window = \"$window\"\nuser_timeout = \"0 s\"\n"),
        &[],
        r#"
error: `user_timeout` is too short
  --> test.toml:20:16
   |
20 | user_timeout = "0 s"
   |                ^^^^^ at least 1 ms
"#,
    );
    refuses(
        &edit(
            DUMBBELL,
            "window = \"$window\"\n",
            "window = \"$window\"\nkeep_alive = { idle = \"1 min\", interval = \"10 ms\" }\n",
        ),
        &[],
        r#"
error: `interval` is too short
  --> test.toml:20:43
   |
20 | keep_alive = { idle = "1 min", interval = "10 ms" }
   |                                           ^^^^^^^ at least 1 s
"#,
    );
}

#[test]
fn an_ack_delayed_too_long() {
    refuses(
        &edit(
            DUMBBELL,
            "window = \"$window\"\n",
            "window = \"$window\"\ndelayed_ack = { timeout = \"500 ms\" }\n",
        ),
        &[],
        r#"
error: an ACK cannot be delayed that long
  --> test.toml:20:27
   |
20 | delayed_ack = { timeout = "500 ms" }
   |                           ^^^^^^^^ less than 500 ms
"#,
    );
}

#[test]
fn an_app_with_two_minds() {
    refuses(
        &edit(DUMBBELL, "\"newreno\"", "\"newreno\"\napp = { transfer = \"1 MB\", rate = \"1 Mbit/s\" }"),
        &[],
        r#"
error: `app` takes exactly one of transfer, rate, lasting, requests, telnet, udp
  --> test.toml:27:7
   |
27 | app = { transfer = "1 MB", rate = "1 Mbit/s" }
   |       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"#,
    );
}

#[test]
fn an_unknown_app() {
    refuses(
        &edit(DUMBBELL, "\"newreno\"", "\"newreno\"\napp = \"bulky\""),
        &[],
        r#"
error: `app` cannot be "bulky"
  --> test.toml:27:7
   |
27 | app = "bulky"
   |       ^^^^^^^ did you mean `bulk`?
   = help: it can be "bulk", { transfer = "50 kB" }, { rate = "1 Mbit/s" }, { lasting = "20 s" }, { requests = { response = "50 kB" } }, { telnet = {} }, { udp = { rate = "1 Mbit/s" } }
"#,
    );
}

#[test]
fn a_pause_that_ends_first() {
    refuses(
        &edit(DUMBBELL, "\"newreno\"", "\"newreno\"\nreader = { pause = { from = \"9 s\", to = \"8 s\" } }"),
        &[],
        r#"
error: `pause` ends before it begins
  --> test.toml:27:41
   |
27 | reader = { pause = { from = "9 s", to = "8 s" } }
   |                                         ^^^^^ it begins at 9 s
"#,
    );
}

#[test]
fn a_start_after_the_end() {
    refuses(
        &edit(DUMBBELL, "\"newreno\"", "\"newreno\"\nstart = \"100 s\""),
        &[],
        r#"
error: the flow starts after the run
  --> test.toml:27:9
   |
27 | start = "100 s"
   |         ^^^^^^^ the run lasts 100 s
"#,
    );
}

#[test]
fn a_measurement_after_the_end() {
    refuses(
        &edit(DUMBBELL, "[parameters]", "measure = { from = \"0 s\", to = \"101 s\" }\n[parameters]"),
        &[],
        r#"
error: the measurement ends after the run
 --> test.toml:5:32
  |
5 | measure = { from = "0 s", to = "101 s" }
  |                                ^^^^^^^ the run lasts 100 s
"#,
    );
}

#[test]
fn a_stop_that_never_comes() {
    refuses(
        &edit(DUMBBELL, "duration = \"100 s\"", "duration = \"100 s\"\nstop = \"finished\""),
        &[],
        r#"
error: no flow ever finishes
 --> test.toml:4:8
  |
4 | stop = "finished"
  |        ^^^^^^^^^^ give a flow `app = { transfer = "50 kB" }`, or stop at "duration"
"#,
    );
}

#[test]
fn a_name_with_a_space() {
    refuses(
        &edit(DUMBBELL, "name = \"flow\"", "name = \"my flow\""),
        &[],
        r#"
error: `name` is not a name
  --> test.toml:22:8
   |
22 | name = "my flow"
   |        ^^^^^^^^^ a space is not allowed
   = help: names are made of letters a-z and A-Z, digits, `-`, `_` and `.`
"#,
    );
}

#[test]
fn grants_that_cannot_be() {
    for (grant, message, underlined, label) in [
        ("{ fallback = 0.2 }", "`grant` has no `rate`", "{ fallback = 0.2 }", "`rate` must be given"),
        (
            "{ rate = \"1 Mbit/s\", fallback = 0.6 }",
            "a path that loses so much is no path",
            "0.6",
            "from 0 to 0.5",
        ),
        (
            "{ rate = \"1 Mbit/s\", changes = [[\"2 s\", \"3 Mbit/s\"], [\"2000 ms\", \"4 Mbit/s\"]] }",
            "`changes` goes back in time",
            "\"2000 ms\"",
            "each is later than the one before",
        ),
    ] {
        let text = edit(DUMBBELL, "tcp = \"newreno\"", &format!("grant = {grant}"));
        crate::support::points_at(&text, message, underlined, label);
    }
}
