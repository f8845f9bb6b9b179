//! Invalid parameters, `--set` options and syntax: the full text of each error.

use crate::support::{DUMBBELL, GRAPH, edit, refuses};

#[test]
fn a_set_out_of_range() {
    refuses(
        DUMBBELL,
        &[("loss", "1.5")],
        r"
error: `loss` is a probability between 0 and 1
 --> command line:1:12
  |
1 | --set loss=1.5
  |            ^^^ greater than 1
  = note: used at test.toml:14:8
",
    );
}

#[test]
fn a_set_that_is_no_number() {
    refuses(
        DUMBBELL,
        &[("loss", "little")],
        r"
error: `loss` is a number without a unit
 --> command line:1:12
  |
1 | --set loss=little
  |            ^^^^^^ this is text
  = note: used at test.toml:14:8
",
    );
}

#[test]
fn a_set_without_its_unit() {
    refuses(
        DUMBBELL,
        &[("window", "64")],
        r#"
error: `window` needs a unit
 --> command line:1:14
  |
1 | --set window=64
  |              ^^ write "64 segments" if that is meant
  = help: units: B, kB, MB, GB, KiB, MiB, GiB, segments
  = note: used at test.toml:19:10
"#,
    );
}

#[test]
fn a_set_with_the_wrong_unit() {
    refuses(
        DUMBBELL,
        &[("window", "64 packets")],
        r"
error: `window` has an unknown unit, `packets`
 --> command line:1:14
  |
1 | --set window=64 packets
  |              ^^^^^^^^^^ windows are counted in segments, buffers in packets
  = help: units: B, kB, MB, GB, KiB, MiB, GiB, segments
  = note: used at test.toml:19:10
",
    );
}

#[test]
fn a_set_of_nothing() {
    refuses(
        DUMBBELL,
        &[("window", "")],
        r#"
error: `window` is not a window
 --> command line:1:14
  |
1 | --set window=
  |              ^ write "64 segments" or the like
  = help: units: B, kB, MB, GB, KiB, MiB, GiB, segments
  = note: used at test.toml:19:10
"#,
    );
}

#[test]
fn a_set_of_an_unknown_parameter() {
    refuses(
        DUMBBELL,
        &[("los", "1e-3")],
        r"
error: there is no parameter `los`
 --> command line:1:7
  |
1 | --set los=1e-3
  |       ^^^ did you mean `loss`?
  = help: parameters: loss, window
",
    );
}

#[test]
fn a_set_of_a_file_without_parameters() {
    refuses(
        GRAPH,
        &[("loss", "1e-3")],
        r"
error: there is no parameter `loss`
 --> command line:1:7
  |
1 | --set loss=1e-3
  |       ^^^^
  = help: the file declares no parameters
",
    );
}

#[test]
fn an_unused_parameter() {
    refuses(
        &edit(DUMBBELL, "loss = \"$loss\"\n", ""),
        &[],
        r#"
error: parameter `loss` is never used
 --> test.toml:6:1
  |
6 | loss = 1e-4
  | ^^^^ write "$loss" somewhere, or drop it
"#,
    );
}

#[test]
fn an_undeclared_parameter() {
    refuses(
        &edit(DUMBBELL, "\"$loss\"", "\"$lass\""),
        &[],
        r#"
error: there is no parameter `lass`
  --> test.toml:14:8
   |
14 | loss = "$lass"
   |        ^^^^^^^ did you mean `loss`?
   = help: parameters: loss, window
"#,
    );
}

#[test]
fn a_default_of_the_wrong_type() {
    refuses(
        &edit(DUMBBELL, "window = \"64 segments\"", "window = { default = 64, doc = \"the window\" }"),
        &[],
        r#"
error: `window` needs a unit
 --> test.toml:7:22
  |
7 | window = { default = 64, doc = "the window" }
  |                      ^^ write "64 segments" if that is meant
  = help: units: B, kB, MB, GB, KiB, MiB, GiB, segments
  = note: used at test.toml:19:10
"#,
    );
}

#[test]
fn a_parameter_without_a_default() {
    refuses(
        &edit(DUMBBELL, "window = \"64 segments\"", "window = { doc = \"the window\" }"),
        &[],
        r#"
error: parameter `window` has no default
 --> test.toml:7:10
  |
7 | window = { doc = "the window" }
  |          ^^^^^^^^^^^^^^^^^^^^^^ `default` must be given
"#,
    );
}

#[test]
fn a_parameter_with_an_unknown_key() {
    refuses(
        &edit(DUMBBELL, "window = \"64 segments\"", "window = { defualt = \"64 segments\" }"),
        &[],
        r#"
error: unknown key `defualt` in parameter `window`
 --> test.toml:7:12
  |
7 | window = { defualt = "64 segments" }
  |            ^^^^^^^ did you mean `default`?
  = help: a parameter has the keys default, doc
"#,
    );
}

#[test]
fn a_default_that_refers_to_a_parameter() {
    refuses(
        &edit(DUMBBELL, "\"64 segments\"", "\"$loss\""),
        &[],
        r#"
error: a default cannot refer to another parameter
 --> test.toml:7:10
  |
7 | window = "$loss"
  |          ^^^^^^^
"#,
    );
}

#[test]
fn a_default_that_is_a_list() {
    refuses(
        &edit(DUMBBELL, "\"64 segments\"", "[1, 2]"),
        &[],
        r"
error: `window` is a single value
 --> test.toml:7:10
  |
7 | window = [1, 2]
  |          ^^^^^^ this is a list
  = help: parameters are text, numbers or switches
",
    );
}

#[test]
fn a_record_beside_parameters() {
    refuses(
        &edit(DUMBBELL, "[dumbbell]", "[resolved]\nloss = 1\n\n[dumbbell]"),
        &[],
        r"
error: [resolved] and [parameters] exclude each other
 --> test.toml:9:1
  |
9 | [resolved]
  | ^^^^^^^^^^ drop this, unless `bentpipe check` wrote the file
",
    );
}

#[test]
fn another_schema() {
    refuses(
        &edit(DUMBBELL, "schema = 1", "schema = 2"),
        &[],
        r"
error: schema 2 is not known
 --> test.toml:1:10
  |
1 | schema = 2
  |          ^ this program reads schema 1
  = help: a scenario file begins with schema = 1
",
    );
}

#[test]
fn no_schema() {
    refuses(
        &edit(DUMBBELL, "schema = 1\n", ""),
        &[],
        r#"
error: the file has no `schema`
 --> test.toml:1:1
  |
1 | title = "a test"
  | ^ `schema` must be given
  = help: a scenario file begins with schema = 1
"#,
    );
}

#[test]
fn one_flow_in_single_brackets() {
    refuses(
        &edit(DUMBBELL, "[[flows]]", "[flows]"),
        &[],
        r"
error: `flows` is a list of tables
  --> test.toml:21:1
   |
21 | [flows]
   | ^^^^^^^ write [[flows]], in double brackets
",
    );
}

#[test]
fn a_dumbbell_in_double_brackets() {
    refuses(
        &edit(DUMBBELL, "[dumbbell]", "[[dumbbell]]"),
        &[],
        r"
error: there is one `dumbbell`, not several
 --> test.toml:9:1
  |
9 | [[dumbbell]]
  | ^^^^^^^^^^^^ write [dumbbell]
",
    );
}

#[test]
fn a_quantity_without_quotes() {
    refuses(
        &edit(DUMBBELL, "\"100 s\"", "100 s"),
        &[],
        r#"
error: this is not TOML
 --> test.toml:3:12
  |
3 | duration = 100 s
  |            ^^^^^ text and quantities stand in quotes: "100 s"
"#,
    );
}

#[test]
fn a_key_without_a_value() {
    refuses(
        &edit(DUMBBELL, "\"100 s\"", ""),
        &[],
        r"
error: this is not TOML
 --> test.toml:3:12
  |
3 | duration = 
  |            ^ a value is missing here
",
    );
}

#[test]
fn a_key_given_twice() {
    refuses(
        &edit(DUMBBELL, "pairs = 2", "pairs = 2\npairs = 3"),
        &[],
        r"
error: a key is given twice
  --> test.toml:11:1
   |
11 | pairs = 3
   | ^^^^^ `pairs` was given before
",
    );
}

#[test]
fn a_table_given_twice() {
    refuses(
        &edit(DUMBBELL, "[host]", "[host]\nnagle = true\n\n[host]"),
        &[],
        r"
error: a key is given twice
  --> test.toml:20:2
   |
20 | [host]
   |  ^^^^ `host` was given before
",
    );
}

#[test]
fn a_text_that_does_not_end() {
    refuses(
        &edit(DUMBBELL, "\"a test\"", "\"a test"),
        &[],
        r#"
error: this is not TOML
 --> test.toml:2:16
  |
2 | title = "a test
  |                ^ invalid basic string, expected `"`
"#,
    );
}

#[test]
fn a_date() {
    refuses(
        &edit(DUMBBELL, "\"100 s\"", "1979-05-27"),
        &[],
        r#"
error: nothing here is a date
 --> test.toml:3:12
  |
3 | duration = 1979-05-27
  |            ^^^^^^^^^^ write a time with a unit, such as "500 s"
"#,
    );
}

#[test]
fn a_number_beyond_all_bounds() {
    refuses(
        &edit(DUMBBELL, "pairs = 2", "pairs = 99999999999999999999999999999999999999999999"),
        &[],
        r"
error: this number is too large
  --> test.toml:10:9
   |
10 | pairs = 99999999999999999999999999999999999999999999
   |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
",
    );
}

#[test]
fn lists_in_lists() {
    refuses(
        &edit(DUMBBELL, "pairs = 2", "pairs = [[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]"),
        &[],
        r"
error: tables and lists are nested too deeply
  --> test.toml:10:25
   |
10 | pairs = [[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]
   |                         ^ the limit is 16
",
    );
}
