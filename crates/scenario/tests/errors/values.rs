//! Values of the wrong type or range: the full text of each error.

use crate::support::{DUMBBELL, edit, refuses};

#[test]
fn an_unknown_key() {
    refuses(
        &edit(DUMBBELL, "buffer = \"50", "bufer = \"50"),
        &[],
        r#"
error: unknown key `bufer` in [dumbbell]
  --> test.toml:13:1
   |
13 | bufer = "50 packets"
   | ^^^^^ did you mean `buffer`?
   = help: keys of [dumbbell]: access, rtt, profile, pairs, return, rate, buffer, discipline, loss, loss_draw, ber, framing, mtu, capacity, orbit, fade, bursts, outages, dama, idle_release
"#,
    );
}

#[test]
fn an_unknown_key_at_the_top() {
    refuses(
        &edit(DUMBBELL, "[dumbbell]", "[dumbell]"),
        &[],
        r"
error: unknown key `dumbell` in the file
 --> test.toml:9:2
  |
9 | [dumbell]
  |  ^^^^^^^ did you mean `dumbbell`?
  = help: keys of the file: schema, title, duration, flows, seed, stop, measure, parameters, resolved, dumbbell, satellite, hosts, routers, links, gateways, flow_routers, middleboxes, nodes, host, timeline, instruments, captures, references, sweep
",
    );
}

#[test]
fn an_unknown_key_of_a_flow() {
    refuses(
        &edit(DUMBBELL, "count = 2", "cuont = 2"),
        &[],
        r"
error: unknown key `cuont` in [[flows]]
  --> test.toml:23:1
   |
23 | cuont = 2
   | ^^^^^ did you mean `count`?
   = help: keys of [[flows]]: name, from, to, count, app, connections, enabled, group, reader, receiver, start, stack, tcp, segment, window, reserve, iw, ssthresh, delayed_ack, send_buffer, nagle, jitter, jitter_kind, min_rto, max_rto, initial_rto, rto_granularity, max_timeouts, user_timeout, keep_alive, limited_transmit, validation, pacing, ecn, probe_option, grant, encoding, ask, take, trust_path, ask_fallback, ip, timestamps, sack, window_scale, mss_option, time_wait
",
    );
}

#[test]
fn an_unknown_key_of_an_inline_table() {
    refuses(
        &edit(DUMBBELL, "delay = \"1 ms\"", "latency = \"1 ms\""),
        &[],
        r#"
error: unknown key `latency` in `access`
  --> test.toml:15:33
   |
15 | access = { rate = "100 Mbit/s", latency = "1 ms", buffer = "1 MB" }
   |                                 ^^^^^^^
   = help: keys of `access`: delay, rate, buffer, discipline, loss, loss_draw, ber, framing, mtu, capacity, orbit, fade, bursts, outages, dama, idle_release
"#,
    );
}

#[test]
fn a_missing_key() {
    refuses(
        &edit(DUMBBELL, "from = \"src\"\n", ""),
        &[],
        r"
error: [[flows]] has no `from`
  --> test.toml:21:1
   |
21 | [[flows]]
   | ^^^^^^^^^ `from` must be given
",
    );
}

#[test]
fn a_missing_rate() {
    refuses(
        &edit(DUMBBELL, "rate = \"10 Mbit/s\"\n", ""),
        &[],
        r"
error: [dumbbell] has no `rate`
 --> test.toml:9:1
  |
9 | [dumbbell]
  | ^^^^^^^^^^ `rate` must be given
",
    );
}

#[test]
fn a_bare_number_for_a_rate() {
    refuses(
        &edit(DUMBBELL, "rate = \"10 Mbit/s\"", "rate = 10"),
        &[],
        r#"
error: `rate` needs a unit
  --> test.toml:12:8
   |
12 | rate = 10
   |        ^^ write "10 Mbit/s" if that is meant
   = help: units: bit/s, kbit/s, Mbit/s, Gbit/s
"#,
    );
}

#[test]
fn a_missing_unit() {
    refuses(
        &edit(DUMBBELL, "\"550 ms\"", "\"550\""),
        &[],
        r#"
error: `rtt` needs a unit
  --> test.toml:11:7
   |
11 | rtt = "550"
   |       ^^^^^ write "550 ms" if that is meant
   = help: units: ns, us, ms, s, min, h
"#,
    );
}

#[test]
fn an_ambiguous_rate() {
    refuses(
        &edit(DUMBBELL, "10 Mbit/s", "10 Mb"),
        &[],
        r#"
error: `rate` has an unknown unit, `Mb`
  --> test.toml:12:8
   |
12 | rate = "10 Mb"
   |        ^^^^^^^ it could be megabits or megabytes: write "10 Mbit/s" for 10^6 bit/s
   = help: units: bit/s, kbit/s, Mbit/s, Gbit/s
"#,
    );
}

#[test]
fn a_rate_in_bytes() {
    refuses(
        &edit(DUMBBELL, "10 Mbit/s", "10 MB/s"),
        &[],
        r#"
error: `rate` has an unknown unit, `MB/s`
  --> test.toml:12:8
   |
12 | rate = "10 MB/s"
   |        ^^^^^^^^^ rates are in bits: 1 MB/s is "8 Mbit/s"
   = help: units: bit/s, kbit/s, Mbit/s, Gbit/s
"#,
    );
}

#[test]
fn an_ambiguous_size() {
    refuses(
        &edit(DUMBBELL, "1 MB", "1 Mb"),
        &[],
        r#"
error: `buffer` has an unknown unit, `Mb`
  --> test.toml:15:58
   |
15 | access = { rate = "100 Mbit/s", delay = "1 ms", buffer = "1 Mb" }
   |                                                          ^^^^^^ it could be megabits or megabytes: write MB (10^6 bytes) or MiB (2^20 bytes)
   = help: units: B, kB, MB, GB, KiB, MiB, GiB, packets
"#,
    );
}

#[test]
fn a_kilobyte_of_either_kind() {
    refuses(
        &edit(DUMBBELL, "1000 B", "1 KB"),
        &[],
        r#"
error: `segment` has an unknown unit, `KB`
  --> test.toml:18:11
   |
18 | segment = "1 KB"
   |           ^^^^^^ it is ambiguous: write kB (1000 bytes) or KiB (1024 bytes)
   = help: units: B, kB, MB, GB, KiB, MiB, GiB
"#,
    );
}

#[test]
fn minutes_or_milliseconds() {
    refuses(
        &edit(DUMBBELL, "100 s", "100 m"),
        &[],
        r#"
error: `duration` has an unknown unit, `m`
 --> test.toml:3:12
  |
3 | duration = "100 m"
  |            ^^^^^^^ write ms for milliseconds, min for minutes
  = help: units: ns, us, ms, s, min, h
"#,
    );
}

#[test]
fn a_missing_key_of_an_inline_table() {
    refuses(
        &edit(DUMBBELL, "\"newreno\"", "{ beta = 0.8 }"),
        &[],
        r"
error: `tcp` has no `scheme`
  --> test.toml:26:7
   |
26 | tcp = { beta = 0.8 }
   |       ^^^^^^^^^^^^^^ `scheme` must be given
",
    );
}

#[test]
fn a_misspelt_unit() {
    refuses(
        &edit(DUMBBELL, "50 packets", "50 pakets"),
        &[],
        r#"
error: `buffer` has an unknown unit, `pakets`
  --> test.toml:13:10
   |
13 | buffer = "50 pakets"
   |          ^^^^^^^^^^^ did you mean "50 packets"?
   = help: units: B, kB, MB, GB, KiB, MiB, GiB, packets
"#,
    );
}

#[test]
fn a_time_where_a_rate_belongs() {
    refuses(
        &edit(DUMBBELL, "\"10 Mbit/s\"", "\"10 ms\""),
        &[],
        r#"
error: `rate` has an unknown unit, `ms`
  --> test.toml:12:8
   |
12 | rate = "10 ms"
   |        ^^^^^^^ this is a time
   = help: units: bit/s, kbit/s, Mbit/s, Gbit/s
"#,
    );
}

#[test]
fn no_number() {
    refuses(
        &edit(DUMBBELL, "\"550 ms\"", "\"long\""),
        &[],
        r#"
error: `rtt` is not a time
  --> test.toml:11:7
   |
11 | rtt = "long"
   |       ^^^^^^ write "500 ms" or the like
   = help: units: ns, us, ms, s, min, h
"#,
    );
}

#[test]
fn a_negative_time() {
    refuses(
        &edit(DUMBBELL, "\"550 ms\"", "\"-550 ms\""),
        &[],
        r#"
error: `rtt` cannot be negative
  --> test.toml:11:7
   |
11 | rtt = "-550 ms"
   |       ^^^^^^^^^
"#,
    );
}

#[test]
fn half_a_nanosecond() {
    refuses(
        &edit(DUMBBELL, "\"550 ms\"", "\"0.5 ns\""),
        &[],
        r#"
error: `rtt` is not a whole number of nanoseconds
  --> test.toml:11:7
   |
11 | rtt = "0.5 ns"
   |       ^^^^^^^^
"#,
    );
}

#[test]
fn more_than_a_year() {
    refuses(
        &edit(DUMBBELL, "100 s", "9000 h"),
        &[],
        r#"
error: `duration` is too large
 --> test.toml:3:12
  |
3 | duration = "9000 h"
  |            ^^^^^^^^ the limit is 8760 h
"#,
    );
}

#[test]
fn a_zero_rate() {
    refuses(
        &edit(DUMBBELL, "10 Mbit/s", "0 Mbit/s"),
        &[],
        r#"
error: `rate` must be more than zero
  --> test.toml:12:8
   |
12 | rate = "0 Mbit/s"
   |        ^^^^^^^^^^
"#,
    );
}

#[test]
fn a_zero_duration() {
    refuses(
        &edit(DUMBBELL, "100 s", "0 s"),
        &[],
        r#"
error: `duration` must be more than zero
 --> test.toml:3:12
  |
3 | duration = "0 s"
  |            ^^^^^
"#,
    );
}

#[test]
fn a_loss_of_one_and_a_half() {
    let text = edit(DUMBBELL, "loss = \"$loss\"", "loss = 1.5\n# $loss");
    let text = edit(&text, "loss = 1e-4\n", "");
    refuses(
        &text,
        &[],
        r"
error: `loss` is a probability between 0 and 1
  --> test.toml:13:8
   |
13 | loss = 1.5
   |        ^^^ greater than 1
",
    );
}

#[test]
fn a_loss_in_percent() {
    let text = edit(DUMBBELL, "loss = \"$loss\"", "loss = \"1 %\"");
    let text = edit(&text, "loss = 1e-4\n", "");
    refuses(
        &text,
        &[],
        r#"
error: `loss` is a bare number between 0 and 1
  --> test.toml:13:8
   |
13 | loss = "1 %"
   |        ^^^^^ write 0.01
"#,
    );
}

#[test]
fn a_number_in_quotes() {
    refuses(
        &edit(DUMBBELL, "loss = 1e-4", "loss = \"1e-4\""),
        &[],
        r#"
error: `loss` is a number without a unit
 --> test.toml:6:8
  |
6 | loss = "1e-4"
  |        ^^^^^^ this is text
  = help: write it without quotes
  = note: used at test.toml:14:8
"#,
    );
}

#[test]
fn a_whole_number_in_quotes() {
    refuses(
        &edit(DUMBBELL, "pairs = 2", "pairs = \"2\""),
        &[],
        r#"
error: `pairs` is a whole number
  --> test.toml:10:9
   |
10 | pairs = "2"
   |         ^^^ this is text
   = help: write it without quotes
"#,
    );
}

#[test]
fn a_count_of_zero() {
    refuses(
        &edit(DUMBBELL, "count = 2", "count = 0"),
        &[],
        r"
error: `count` is too small
  --> test.toml:23:9
   |
23 | count = 0
   |         ^ at least 1
",
    );
}

#[test]
fn too_many_flows() {
    refuses(
        &edit(DUMBBELL, "count = 2", "count = 100001"),
        &[],
        r"
error: `count` is too large
  --> test.toml:23:9
   |
23 | count = 100001
   |         ^^^^^^ at most 100000
",
    );
}
