//! Invalid dynamics of links: the message, position and label of each error.

use crate::support::{DUMBBELL, GRAPH, SATELLITE, bottleneck, edit, points_at, refused, refuses};
use bentpipe_scenario::{Files, Source, load, load_with};

#[test]
fn steps_out_of_order() {
    refuses(
        &bottleneck(
            "capacity = { steps = [[\"0 s\", \"1 Mbit/s\"], [\"9 s\", \"none\"], [\"9 s\", \"1 Mbit/s\"]] }",
        ),
        &[],
        "
error: `steps` goes back in time
  --> test.toml:15:62
   |
15 | capacity = { steps = [[\"0 s\", \"1 Mbit/s\"], [\"9 s\", \"none\"], [\"9 s\", \"1 Mbit/s\"]] }
   |                                                              ^^^^^ the one before is at 9 s
",
    );
}

#[test]
fn capacity() {
    refused(&[
        (
            "capacity = {}",
            "`capacity` takes exactly one of steps, file, mahimahi, opportunities_ms",
            "{}",
            "",
        ),
        ("capacity = { steps = [] }", "`steps` is empty", "[]", "it has at least one item"),
        (
            "capacity = { steps = [\"0 s\"] }",
            "`steps` is a list of pairs [time, none, or rate]",
            "\"0 s\"",
            "this is not a pair",
        ),
        (
            "capacity = { steps = \"x\" }",
            "`steps` is a list of pairs [time, none, or rate]",
            "\"x\"",
            "this is text",
        ),
        (
            "capacity = { steps = [[\"0 s\", 5]] }",
            "`steps` needs a unit",
            "5",
            "write \"5 Mbit/s\" if that is meant",
        ),
        (
            "capacity = { steps = [[\"5 s\", \"1 Mbit/s\"]], repeat = \"5 s\" }",
            "`repeat` is not later than the last step",
            "\"5 s\"",
            "the last step is at 5 s",
        ),
        (
            "capacity = { opportunities_ms = [3, 2] }",
            "`opportunities_ms` goes back in time",
            "2",
            "this is earlier",
        ),
        (
            "capacity = { opportunities_ms = [0] }",
            "`opportunities_ms` ends at 0",
            "[0]",
            "the last instant is its length",
        ),
        (
            "capacity = { opportunities_ms = [1.5] }",
            "`opportunities_ms` is a list of whole milliseconds",
            "1.5",
            "this is a bare number",
        ),
        ("capacity = { opportunities_ms = [-1] }", "`opportunities_ms` is negative", "-1", ""),
        (
            "capacity = { opportunities_ms = [1], repeat = \"1 s\" }",
            "`repeat` goes with `steps` and `file`",
            "\"1 s\"",
            "a mahimahi trace starts over at its last instant",
        ),
        ("capacity = { file = \"\" }", "`file` is not a path", "\"\"", "it is one line of 1 to 4096 bytes"),
        ("capacity = { file = \"x.csv\" }", "x.csv cannot be read", "\"x.csv\"", "files cannot be read here"),
    ]);
}

/// Provides two files.
struct Two;

impl Files for Two {
    fn read(&self, path: &str) -> Result<String, String> {
        match path {
            "good.csv" => Ok("time_s,rate_bps\n0,1000000\n2.5,0\n".to_owned()),
            "bad.csv" => Ok("time_s,rate_bps\n0,1000000\n2.5,fast\n".to_owned()),
            "good.trace" => Ok("1\n1\n4\n".to_owned()),
            "bad.trace" => Ok("1\nx\n".to_owned()),
            _ => Err("No such file".to_owned()),
        }
    }
}

#[test]
fn trace_files_are_read_and_a_wrong_line_is_named() {
    let with = |line: &str| load_with(&Source::new("test.toml", bottleneck(line)), &[], None, &Two);
    let inline = |line: &str| load(&Source::new("test.toml", bottleneck(line)), &[], None);
    assert_eq!(
        with("capacity = { mahimahi = \"good.trace\" }"),
        inline("capacity = { opportunities_ms = [1, 1, 4] }")
    );
    assert_eq!(
        with("capacity = { file = \"good.csv\", repeat = \"9 s\" }"),
        inline("capacity = { steps = [[\"0 s\", \"1 Mbit/s\"], [\"2.5 s\", \"none\"]], repeat = \"9 s\" }")
    );
    assert!(with("capacity = { file = \"good.csv\" }").is_ok());
    let error = with("capacity = { mahimahi = \"bad.trace\" }").expect_err("line 2 is wrong");
    let picture = "\
error: bad.trace:2: \"x\" is not a time
  --> test.toml:15:25
   |
15 | capacity = { mahimahi = \"bad.trace\" }
   |                         ^^^^^^^^^^^ each line holds one whole number: the millisecond at which a packet may leave";
    assert_eq!(format!("error: {error}"), picture);
    let error = with("capacity = { file = \"bad.csv\" }").expect_err("line 3 is wrong");
    assert_eq!(error.message, "bad.csv:3: \"2.5,fast\" does not end with a rate");
    let error = with("capacity = { file = \"none.csv\" }").expect_err("there is none");
    assert_eq!((error.message.as_str(), error.label.as_str()), ("none.csv cannot be read", "No such file"));
}

#[test]
fn orbits() {
    refused(&[
        ("orbit = {}", "`orbit` takes exactly one of pass, slots", "{}", ""),
        (
            "orbit = { pass = { altitude = 8062 } }",
            "`altitude` needs a unit",
            "8062",
            "write \"8062 km\" if that is meant",
        ),
        (
            "orbit = { pass = { altitude = \"8062 miles\" } }",
            "`altitude` has an unknown unit, `miles`",
            "\"8062 miles\"",
            "",
        ),
        (
            "orbit = { pass = { altitude = \"10 km\" } }",
            "`altitude` is out of range",
            "\"10 km\"",
            "from 160 to 100000 km",
        ),
        (
            "orbit = { pass = { altitude = \"550 km\", min_elevation = \"90 deg\" } }",
            "`min_elevation` is out of range",
            "\"90 deg\"",
            "from 0 to 85 deg",
        ),
        (
            "orbit = { pass = { altitude = \"550 km\", every = \"1 us\" } }",
            "`every` is too short",
            "\"1 us\"",
            "at least 0.1 ms",
        ),
        ("orbit = { slots = {} }", "`slots` has no `delay`", "{}", "`delay` must be given"),
        (
            "orbit = { slots = { delay = [\"2 ms\", \"1 ms\"] } }",
            "`delay` ends below its beginning",
            "\"1 ms\"",
            "write [lowest, highest]",
        ),
        (
            "orbit = { slots = { delay = [\"2 ms\"] } }",
            "`delay` is one time, or a list of two",
            "[\"2 ms\"]",
            "write [lowest, highest]",
        ),
        (
            "orbit = { slots = { delay = \"2 ms\", offset = \"15 s\" } }",
            "`offset` is too long",
            "\"15 s\"",
            "it is less than the period of 15 s",
        ),
        (
            "orbit = { slots = { delay = \"2 ms\", handover = \"smooth\" } }",
            "`handover` cannot be \"smooth\"",
            "\"smooth\"",
            "",
        ),
        (
            "orbit = { slots = { delay = \"2 ms\", handover = { loss = 0.1 } } }",
            "this is not a handover",
            "{ loss = 0.1 }",
            "write either `outage`, or `loss` and `time`",
        ),
        (
            "orbit = { slots = { delay = \"2 ms\", handover = { outage = \"15 s\" } } }",
            "the handover lasts a whole slot",
            "\"15 s\"",
            "a slot lasts 15 s",
        ),
    ]);
}

#[test]
fn bursts_outages_and_access() {
    refused(&[
        (
            "bursts = { good = \"1 s\" }",
            "these are not bursts",
            "{ good = \"1 s\" }",
            "write either `good` and `bad`, or `loss` and `burst`",
        ),
        ("bursts = { good = \"1 s\", bad = \"0 s\" }", "`bad` is too short", "\"0 s\"", "at least 0.1 ms"),
        (
            "bursts = { loss = 1, burst = \"1 s\" }",
            "`loss` is out of range",
            "1",
            "more than 0 and less than 1",
        ),
        (
            "bursts = { loss = 1e-12, burst = \"1 s\" }",
            "`loss` and `burst` do not fit together",
            "1e-12",
            "good spells of 1.000e12 s are not between 0.1 ms and a year",
        ),
        (
            "bursts = { loss = 0.1, burst = \"1 s\", loss_bad = 1 }",
            "this goes with `good` and `bad`",
            "1",
            "with `loss` and `burst` all loss is in bad spells",
        ),
        (
            "outages = { every = \"1 min\" }",
            "`outages` has no `length`",
            "{ every = \"1 min\" }",
            "`length` must be given",
        ),
        (
            "outages = { every = \"1 min\", length = \"0 s\" }",
            "`length` is too short",
            "\"0 s\"",
            "at least 0.1 ms",
        ),
        ("dama = { frame = \"1 ns\" }", "`frame` is too short", "\"1 ns\"", "at least 0.1 ms"),
        (
            "loss_draw = \"gap\"\nber = 1e-7",
            "`ber` and `loss_draw = \"gap\"` exclude each other",
            "1e-7",
            "bit errors are drawn for each packet: give `loss` in place of `ber`, or `loss_draw = \"packet\"`",
        ),
        ("loss_draw = \"gaps\"", "`loss_draw` cannot be \"gaps\"", "\"gaps\"", "did you mean `gap`?"),
        (
            "dama = {}\nidle_release = { idle = \"1 s\", setup = \"1 s\" }",
            "`dama` and `idle_release` exclude each other",
            "{ idle = \"1 s\", setup = \"1 s\" }",
            "a direction has one kind of access",
        ),
        (
            "dama = {}\ncapacity = { opportunities_ms = [1] }",
            "`dama` and a mahimahi trace exclude each other",
            "{}",
            "the trace already says when a packet may begin",
        ),
        (
            "idle_release = { idle = \"1 s\" }",
            "`idle_release` has no `setup`",
            "{ idle = \"1 s\" }",
            "`setup` must be given",
        ),
    ]);
}

#[test]
fn rates_that_follow_from_the_other_direction() {
    refused(&[
        (
            "return = { rate = { k = 0, data = \"1 kB\", ack = \"40 B\" } }",
            "`k` gives no rate",
            "0",
            "with these sizes, k leads from 10 Mbit/s to inf bit/s",
        ),
        (
            "return = { rate = { k = -1, data = \"1 kB\", ack = \"40 B\" } }",
            "`k` gives no rate",
            "-1",
            "with these sizes, k leads from 10 Mbit/s to -400000.000 bit/s",
        ),
        (
            "return = { rate = { k = 1e9, data = \"1 kB\", ack = \"40 B\" } }",
            "`k` gives no rate",
            "1e9",
            "with these sizes, k leads from 10 Mbit/s to 0.000 bit/s",
        ),
        (
            "return = { rate = { k = 1, data = \"0 B\", ack = \"40 B\" } }",
            "`data` must be more than zero",
            "\"0 B\"",
            "",
        ),
    ]);
    let text = edit(DUMBBELL, "rate = \"10 Mbit/s\"", "rate = { k = 1, data = \"1 kB\", ack = \"40 B\" }");
    points_at(
        &text,
        "this rate has nothing to follow from",
        "{ k = 1, data = \"1 kB\", ack = \"40 B\" }",
        "only `backward` and `return` have a forward rate to follow from",
    );
}

#[test]
fn places_of_a_geostationary_hop() {
    let geo = |delay: &str| edit(GRAPH, "delay = \"270 ms\"", &format!("delay = {delay}"));
    for (delay, message, underlined, label) in [
        (
            "{ satellite = \"0 deg\", stations = [[\"0 deg\", \"0 deg\"]] }",
            "`stations` are two",
            "[[\"0 deg\", \"0 deg\"]]",
            "a hop leads from one to another: [[latitude, longitude], [latitude, longitude]]",
        ),
        (
            "{ satellite = \"0 deg\", stations = [[\"0 deg\", \"1 deg\"], [\"99 deg\", \"2 deg\"]] }",
            "this is not a latitude",
            "\"99 deg\"",
            "from -90 to 90 deg",
        ),
        (
            "{ satellite = \"-181 deg\", stations = [[\"0 deg\", \"1 deg\"], [\"9 deg\", \"2 deg\"]] }",
            "this is not a longitude",
            "\"-181 deg\"",
            "from -180 to 360 deg",
        ),
        (
            "{ satellite = \"180 deg\", stations = [[\"8 deg\", \"170 deg\"], [\"9 deg\", \"2 deg\"]] }",
            "this station does not see the satellite",
            "\"9 deg\"",
            "its elevation there is -82.0 deg",
        ),
        (
            "{ satellite = \"180\", stations = [] }",
            "`satellite` needs a unit",
            "\"180\"",
            "write \"180 deg\" if that is meant",
        ),
    ] {
        points_at(&geo(delay), message, underlined, label);
    }
}

#[test]
fn an_unknown_profile() {
    refuses(
        &bottleneck("profile = \"geo-10\""),
        &[],
        "
error: there is no profile `geo-10`
  --> test.toml:15:11
   |
15 | profile = \"geo-10\"
   |           ^^^^^^^^ did you mean `geo-10m`?
   = help: profiles: geo-10m, geo-t1, ka-band-t1, winds-24m, geo-hts, meo, leo, starlink, terrestrial
",
    );
}

#[test]
fn a_dumbbell_without_rtt_and_profile() {
    refuses(
        &edit(DUMBBELL, "rtt = \"550 ms\"\n", ""),
        &[],
        "
error: [dumbbell] has no `rtt`
 --> test.toml:9:1
  |
9 | [dumbbell]
  | ^^^^^^^^^^ `rtt` must be given
",
    );
}

#[test]
fn satellites() {
    let plain = edit(&edit(SATELLITE, "[parameters]\ntopology = \"mesh\"\n", ""), "$topology", "mesh");
    for (from, to, message, underlined, label) in [
        ("topology = \"mesh\"", "topology = \"ring\"", "`topology` cannot be \"ring\"", "\"ring\"", ""),
        (
            "rtt = \"550 ms\"",
            "rtt = \"3 ms\"",
            "`rtt` is too short for the access links",
            "\"3 ms\"",
            "two access links of 1 ms each way take 4 ms of it",
        ),
        ("stations = 3", "stations = 1", "`stations` is too small", "1", "at least 2"),
        ("stations = 3", "stations = 100001", "`stations` is too large", "100001", "at most 100000"),
        (
            "uplink = { rate = \"2 Mbit/s\", ",
            "uplink = { ",
            "the uplink has no `rate`",
            "{ buffer = \"1000 packets\" }",
            "`rate` must be given",
        ),
        (
            "[[flows]]",
            "[[hosts]]\nname = \"x\"\n\n[[flows]]",
            "[[hosts]] and [satellite] exclude each other",
            "[[hosts]]",
            "the file has a [satellite]",
        ),
    ] {
        points_at(&edit(&plain, from, to), message, underlined, label);
    }
}

#[test]
fn traces_of_all_directions_together_have_a_limit() {
    let points: Vec<String> = (0..1000).map(|n| format!("[\"{n} s\", \"1 Mbit/s\"]")).collect();
    let capacity = format!("access = {{ capacity = {{ steps = [{}] }}, ", points.join(", "));
    let text = edit(DUMBBELL, "access = { ", &capacity);
    assert!(load(&Source::new("test.toml", text.as_str()), &[], None).is_ok());
    let error = load(&Source::new("test.toml", edit(&text, "pairs = 2", "pairs = 60")), &[], None);
    let error = error.expect_err("240 directions with 1000 points each");
    assert_eq!(error.message, "there are too many points of rates, delays, losses and fades");
    assert_eq!(error.label, "all directions together have 240000, the limit is 200000");
    let long: Vec<String> = (1..=500_001).map(|n| n.to_string()).collect();
    let text = bottleneck(&format!("capacity = {{ opportunities_ms = [{}] }}", long.join(",")));
    let error = load(&Source::new("test.toml", text), &[], None).expect_err("one too many");
    assert_eq!(
        (error.message.as_str(), error.label.as_str()),
        ("`opportunities_ms` is too long", "the limit is 500000 items")
    );
}

#[test]
fn disciplines() {
    refused(&[
        (
            "discipline = \"codell\"",
            "`discipline` cannot be \"codell\"",
            "\"codell\"",
            "did you mean `codel`?",
        ),
        ("discipline = {}", "`discipline` takes exactly one of codel, fq_codel", "{}", ""),
        (
            "discipline = { codel = {}, fq_codel = {} }",
            "`discipline` takes exactly one of codel, fq_codel",
            "{ codel = {}, fq_codel = {} }",
            "",
        ),
        ("discipline = { codel = { target = \"0 s\" } }", "`target` must be more than zero", "\"0 s\"", ""),
        (
            "discipline = { codel = { interval = \"0 s\" } }",
            "`interval` must be more than zero",
            "\"0 s\"",
            "",
        ),
        (
            "discipline = { codel = { target = \"101 ms\" } }",
            "`target` is longer than `interval`",
            "\"101 ms\"",
            "`target` is 101 ms and `interval` 100 ms",
        ),
        (
            "discipline = { fq_codel = { interval = \"1 ms\" } }",
            "`target` is longer than `interval`",
            "\"1 ms\"",
            "`target` is 5 ms and `interval` 1 ms",
        ),
        (
            "discipline = { fq_codel = { quantum = \"255 B\" } }",
            "`quantum` is too small",
            "\"255 B\"",
            "at least 256 B",
        ),
        ("discipline = { fq_codel = { flows = 0 } }", "`flows` is too small", "0", "at least 1"),
        ("discipline = { fq_codel = { flows = 65537 } }", "`flows` is too large", "65537", "at most 65536"),
    ]);
}

#[test]
fn lengths_of_packets() {
    refused(&[
        ("mtu = \"67 B\"", "`mtu` is too small", "\"67 B\"", "at least 68 B"),
        ("mtu = { size = \"66 kB\" }", "`mtu` is too large", "\"66 kB\"", "the limit is 65535 B"),
        ("mtu = { size = \"1500 B\", longer = \"cut\" }", "`longer` cannot be \"cut\"", "\"cut\"", ""),
        (
            "mtu = { longer = \"fragment\" }",
            "`mtu` has no `size`",
            "{ longer = \"fragment\" }",
            "`size` must be given",
        ),
    ]);
}
