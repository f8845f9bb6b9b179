//! Invalid timelines, instruments, captures and applications: the message, position and label of each error.

use crate::support::{DUMBBELL, edit, points_at, refuses};
use bentpipe_scenario::{Source, load};

/// The dumbbell with additional tables at its end.
fn with(tables: &str) -> String {
    format!("{DUMBBELL}\n{tables}\n")
}

/// The dumbbell with another application.
fn app(app: &str) -> String {
    edit(DUMBBELL, "tcp = \"newreno\"", app)
}

#[test]
fn a_change_of_an_unknown_link() {
    refuses(
        &with("[[timeline]]\nat = \"5 s\"\nlink = \"botleneck\"\nloss = 0.1"),
        &[],
        "
error: there is no link `botleneck`
  --> test.toml:30:8
   |
30 | link = \"botleneck\"
   |        ^^^^^^^^^^^ did you mean `bottleneck`?
   = help: links: bottleneck, bottleneck-return, dst1-access, dst1-access-return, dst2-access, dst2-access-return, src1-access, src1-access-return, src2-access, src2-access-return
",
    );
}

#[test]
fn timelines() {
    let entry = |rest: &str| format!("[[timeline]]\nlink = \"bottleneck\"\n{rest}");
    for (rest, message, underlined, label) in [
        ("at = \"100 s\"\nloss = 0.1", "this change comes after the run", "\"100 s\"", "the run lasts 100 s"),
        (
            "at = \"5 s\"",
            "this entry changes nothing",
            "[[timeline]]",
            "give rate, delay, buffer, loss, ber, outage or up",
        ),
        ("at = \"5 s\"\noutage = \"0 s\"", "`outage` must be more than zero", "\"0 s\"", ""),
        (
            "at = \"5 s\"\noutage = \"1 s\"\nup = true",
            "`up` and `outage` exclude each other",
            "true",
            "an outage takes the link down and brings it up again",
        ),
        ("at = 5\nloss = 0.1", "`at` needs a unit", "5", "write \"5 ms\" if that is meant"),
        (
            "at = \"5 s\"\nrates = \"1 Mbit/s\"",
            "unknown key `rates` in [[timeline]]",
            "rates",
            "did you mean `rate`?",
        ),
        ("at = \"5 s\"\nloss = 2", "`loss` is a probability between 0 and 1", "2", "greater than 1"),
        ("loss = 0.1", "[[timeline]] has no `at`", "[[timeline]]", "`at` must be given"),
    ] {
        points_at(&with(&entry(rest)), message, underlined, label);
    }
    let gaps =
        with(&entry("at = \"5 s\"\nber = 1e-6")).replace("[dumbbell]", "[dumbbell]\nloss_draw = \"gap\"");
    let label =
        "bit errors are drawn for each packet: give `loss` in place of `ber`, or `loss_draw = \"packet\"`";
    points_at(&gaps, "`ber` and `loss_draw = \"gap\"` exclude each other", "1e-6", label);
    let first = entry("at = \"5 s\"\noutage = \"10 s\"");
    let text = with(&format!("{first}\n\n[[timeline]]\nat = \"9 s\"\nlink = \"bottleneck\"\nup = true"));
    points_at(&text, "this falls into an outage", "[[timeline]]", "one lasts from 5 s to 15 s");
    let text =
        with(&format!("{first}\n\n[[timeline]]\nat = \"15 s\"\nlink = \"bottleneck\"\noutage = \"1 s\""));
    assert!(load(&Source::new("test.toml", text), &[], None).is_ok());
    let text = with("[timeline]\nat = \"5 s\"");
    let error = load(&Source::new("test.toml", text), &[], None).expect_err("it is a list");
    assert_eq!(
        (error.message.as_str(), error.label.as_str()),
        ("`timeline` is a list of tables", "write [[timeline]], in double brackets")
    );
}

#[test]
fn instruments() {
    let one = |rest: &str| format!("[[instruments]]\nname = \"i\"\nlink = \"bottleneck\"\n{rest}");
    for (rest, message, underlined, label) in [
        (
            "kind = \"counter\"\nevery = \"1 s\"",
            "`kind` cannot be \"counter\"",
            "\"counter\"",
            "did you mean `counters`?",
        ),
        ("kind = \"counters\"", "[[instruments]] has no `every`", "[[instruments]]", "`every` must be given"),
        ("kind = \"counters\"\nevery = \"0 s\"", "`every` is too short", "\"0 s\"", "at least 0.1 ms"),
        (
            "kind = \"counters\"\nevery = \"1 s\"\nrate = \"1 kbit/s\"",
            "only a side channel has a rate",
            "\"1 kbit/s\"",
            "",
        ),
        ("kind = \"counters\"\nevery = \"1 s\"\nflow = \"flow1\"", "only bins have a flow", "\"flow1\"", ""),
        ("kind = \"bins\"\nevery = \"1 s\"", "bins have no `flow`", "\"bins\"", "`flow` must be given"),
        (
            "kind = \"bins\"\nevery = \"1 s\"\nflow = \"flow\"",
            "there is no flow `flow`",
            "\"flow\"",
            "did you mean `flow1`?",
        ),
    ] {
        points_at(&with(&one(rest)), message, underlined, label);
    }
    let fine = one("kind = \"counters\"\nevery = \"1 s\"");
    points_at(
        &with(&format!("{fine}\n\n{fine}")),
        "two instruments are called `i`",
        "\"i\"",
        "this name is taken",
    );
    let text = edit(&with(&one("kind = \"counters\"\nevery = \"0.1 ms\"")), "\"100 s\"", "\"201 s\"");
    points_at(
        &text,
        "there are too many intervals",
        "\"0.1 ms\"",
        "all instruments together have at most 2000000",
    );
}

#[test]
fn captures() {
    let one = |rest: &str| format!("[[captures]]\nlink = \"bottleneck\"\n{rest}");
    for (rest, message, underlined, label) in [
        ("from = \"101 s\"", "the capture goes beyond the run", "\"101 s\"", "the run lasts 100 s"),
        ("to = \"101 s\"", "the capture goes beyond the run", "\"101 s\"", "the run lasts 100 s"),
        ("from = \"5 s\"\nto = \"5 s\"", "`capture` ends before it begins", "\"5 s\"", "it begins at 5 s"),
        ("from = \"100 s\"", "`capture` ends before it begins", "\"100 s\"", "it begins at 100 s"),
        ("snap = \"63 B\"", "`snap` is out of range", "\"63 B\"", "from 64 B to 65535 B"),
        ("limit = \"1 B\"", "`limit` is out of range", "\"1 B\"", "from 4096 B to 1099511627776 B"),
    ] {
        points_at(&with(&one(rest)), message, underlined, label);
    }
    let twice = format!("{}\n{}", one(""), one(""));
    points_at(
        &with(&twice),
        "two captures of `bottleneck`",
        "\"bottleneck\"",
        "one records all packets of a direction",
    );
}

#[test]
fn applications() {
    for (line, message, underlined, label) in [
        ("app = { requests = {} }", "`requests` has no `response`", "{}", "`response` must be given"),
        ("app = { requests = { response = \"0 B\" } }", "`response` must be more than zero", "\"0 B\"", ""),
        (
            "app = { requests = { response = \"2048 GiB\" } }",
            "`response` is too large",
            "\"2048 GiB\"",
            "the limit is 1024 GiB",
        ),
        ("app = { requests = { response = \"1 B\", count = 0 } }", "`count` is too small", "0", "at least 1"),
        ("app = { telnet = { gap = \"0 s\" } }", "`gap` is too short", "\"0 s\"", "at least 0.1 ms"),
        ("app = { udp = {} }", "`udp` has no `rate`", "{}", "`rate` must be given"),
        (
            "app = { udp = { rate = \"1 Mbit/s\", size = \"65508 B\" } }",
            "a datagram of that size does not exist",
            "\"65508 B\"",
            "from 1 B to 65507 B",
        ),
        (
            "app = { udp = { rate = \"1 Mbit/s\", pattern = \"posson\" } }",
            "`pattern` cannot be \"posson\"",
            "\"posson\"",
            "did you mean `poisson`?",
        ),
        (
            "app = { udp = { rate = \"1 Mbit/s\", pattern = { on = \"1 s\" } } }",
            "`pattern` has no `off`",
            "{ on = \"1 s\" }",
            "`off` must be given",
        ),
        (
            "app = { udp = { rate = \"1 Mbit/s\" } }\nreader = { rate = \"1 Mbit/s\" }",
            "datagrams are always read at once",
            "{ rate = \"1 Mbit/s\" }",
            "drop this",
        ),
        (
            "connections = 2",
            "these connections have nothing to share",
            "2",
            "only `app = { transfer = ... }` can be parted",
        ),
        (
            "app = { transfer = \"9 B\" }\nconnections = 10",
            "some of these connections would carry nothing",
            "10",
            "the transfer has 9 B",
        ),
        (
            "app = { transfer = \"9 B\" }\nconnections = 1001",
            "`connections` is too large",
            "1001",
            "at most 1000",
        ),
        (
            "app = { transfer = \"9 B\" }\nconnections = 2\ngroup = \"g\"",
            "`group` and `connections` exclude each other",
            "\"g\"",
            "drop this",
        ),
        ("enabled = \"no\"", "`enabled` is a switch", "\"no\"", "this is text"),
        ("enabled = false", "there are no flows", "[[flows]]", "a scenario has at least one that is enabled"),
    ] {
        points_at(&app(line), message, underlined, label);
    }
    let text = format!(
        "{}\n[[flows]]\nname = \"flow1.2\"\nfrom = \"src1\"\nto = \"dst1\"\n",
        app("app = { transfer = \"9 kB\" }\nconnections = 2")
    );
    points_at(&text, "two flows are called `flow1.2`", "\"flow1.2\"", "this name is taken");
}
