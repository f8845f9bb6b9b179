//! Gateway files: contents of valid ones, and the full text of the errors of invalid ones.

use bentpipe_base::{Duration, Rate, Size};
use bentpipe_scenario::Source;
use bentpipe_scenario::gateway_file::{
    Action, Copies, GatewayFile, Kind, Mode, Prefix, RecordFormat, Side, load, reference, schema,
};

const LEAST: &str =
    "schema = 1\n[satellite]\n[deploy]\nkind = \"routed\"\nlan = \"eth1\"\nsatellite = \"eth0\"\n";

fn read(text: &str) -> Result<GatewayFile, String> {
    load(&Source::new("gw.toml", text)).map_err(|d| format!("error: {d}"))
}

fn loads(text: &str) -> GatewayFile {
    read(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Compares the parts of an error: message, `line:column`, underlined text, label, help.
#[track_caller]
fn refuses(text: &str, wanted: &str) {
    let error = read(text).expect_err("it must be refused");
    assert_eq!(error.trim(), wanted.trim_matches('\n'), "\n{error}");
}

#[test]
fn the_least_file_has_every_default() {
    let file = loads(LEAST);
    assert_eq!((file.config.rate, file.config.framing, file.config.rtt), (None, Size(0), None));
    assert_eq!((file.config.mode, file.config.copies), (Mode::Open, Copies::Auto));
    assert!((file.config.share - 0.995).abs() < 1e-12);
    assert_eq!(file.deploy.lan, ["eth1"]);
    assert_eq!((file.deploy.mark, file.deploy.table, file.deploy.priority), (0x6270, 6270, 6270));
    assert_eq!(
        (file.policy.otherwise, file.config.sample, file.bypass_when_slower),
        (Action::Accelerate, 0.0, false)
    );
    assert_eq!((file.config.limits.flows, file.config.limits.memory), (1_000_000, Size(512 << 20)));
    let fast = loads(&LEAST.replace("[satellite]", "[satellite]\nrate = \"155 Mbit/s\""));
    let per_flow = [&file, &fast].map(|file| file.config.limits.per_flow);
    assert_eq!(per_flow, [Size(32 << 20), Size(116_250_000)], "or what the hop carries in 6 s");
    assert_eq!(file.status.prometheus, None);
}

#[test]
fn everything_that_can_be_said() {
    let file = loads(
        r#"schema = 1
[satellite]
rate = "24 Mbit/s"
framing = "14 B"
rtt = "1 s"
mode = "strict"
alpha = 0.9
k = 16
share = "99 %"
copies = 2
keep_alive = "0.15 s"
[deploy]
kind = "inline"
lan = ["eth1"]
satellite = "eth0.100"
name = "ground-2"
[[rules]]
action = "pass"
from = ["10.1.0.0/16", "2001:db8::/32"]
to = "192.0.2.7"
port = [22, "8000-8999"]
from_port = "1024"
dscp = ["ef", 1, "af41", "cs7"]
opened_from = "satellite"
[policy]
otherwise = "pass"
sample = "12.5 %"
bypass_when_slower = true
subscriber_prefix = { v4 = 24, v6 = 56 }
[limits]
flows = 1000
memory = "64 MiB"
per_flow = "8 MiB"
idle = "10 min"
[status]
socket = "/run/x.sock"
prometheus = "[::1]:9464"
records = "/var/log/flows.CSV"
"#,
    );
    assert_eq!(file.config.rate, Rate::from_bps(24_000_000));
    assert_eq!((file.config.rtt, file.config.mode), (Some(Duration::from_secs(1)), Mode::Strict));
    assert_eq!((file.deploy.kind, file.config.copies), (Kind::Inline, Copies::Fixed(2)));
    assert_eq!((file.config.alpha, file.config.k), (Some(0.9), 16));
    assert_eq!(file.config.keep_alive, Some(Duration::from_millis(150)));
    let rule = &file.policy.rules[0];
    assert_eq!((rule.action, rule.opened_from), (Action::Pass, Some(Side::Satellite)));
    assert_eq!(rule.dscp, [46, 1, 34, 56]);
    assert_eq!(rule.ports.iter().map(ToString::to_string).collect::<Vec<_>>(), ["22", "8000-8999"]);
    assert_eq!(
        rule.from.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["10.1.0.0/16", "2001:db8::/32"]
    );
    assert_eq!((file.config.sample, file.bypass_when_slower), (0.125, true));
    assert_eq!(file.subscriber_prefix, (24, 56));
    assert_eq!(file.status.records, Some(("/var/log/flows.CSV".to_owned(), RecordFormat::Csv)));
}

#[test]
fn prefixes_hold_what_they_hold() {
    let prefix = |text: &str, length| Prefix::new(text.parse().unwrap(), length).unwrap();
    let holds = |p: Prefix, text: &str| p.contains(text.parse().unwrap());
    assert!(holds(prefix("10.1.2.3", 8), "10.255.0.1") && !holds(prefix("10.1.2.3", 8), "11.0.0.1"));
    assert!(holds(prefix("0.0.0.0", 0), "255.1.2.3") && !holds(prefix("0.0.0.0", 0), "::1"));
    assert!(holds(prefix("::", 0), "2001:db8::1") && !holds(prefix("::", 0), "10.0.0.1"));
    assert!(holds(prefix("2001:db8::", 33), "2001:db8:7fff::1"));
    assert!(!holds(prefix("2001:db8::", 33), "2001:db8:8000::1"));
    assert!(Prefix::new("10.0.0.0".parse().unwrap(), 33).is_none());
}

#[test]
fn an_unknown_key_is_named_with_what_was_meant() {
    refuses(
        &LEAST.replace("[satellite]\n", "[satellite]\nrat = \"1 Mbit/s\"\n"),
        r#"
error: unknown key `rat` in [satellite]
 --> gw.toml:3:1
  |
3 | rat = "1 Mbit/s"
  | ^^^ did you mean `rate`?
  = help: keys of [satellite]: rate, framing, rtt, mode, alpha, k, share, copies, keep_alive
"#,
    );
}

#[test]
fn a_rate_without_a_unit() {
    refuses(
        &LEAST.replace("[satellite]\n", "[satellite]\nrate = 24\n"),
        r#"
error: `rate` needs a unit
 --> gw.toml:3:8
  |
3 | rate = 24
  |        ^^ write "24 Mbit/s" if that is meant
  = help: units: bit/s, kbit/s, Mbit/s, Gbit/s
"#,
    );
}

#[test]
fn inline_has_two_ends_and_no_routes() {
    let inline = LEAST.replace("routed", "inline");
    refuses(
        &inline.replace("\"eth1\"", "[\"eth1\", \"eth2\"]"),
        r#"
error: inline is between two interfaces
 --> gw.toml:5:16
  |
5 | lan = ["eth1", "eth2"]
  |                ^^^^^^ one interface on each side; routed can have more
"#,
    );
    refuses(
        &format!("{inline}mark = 7\n"),
        r#"
error: inline needs no routes, marks or TUN interfaces
 --> gw.toml:7:8
  |
7 | mark = 7
  |        ^ it belongs to kind = "routed"
"#,
    );
}

#[test]
fn one_interface_has_one_part() {
    refuses(
        &LEAST.replace("eth0", "eth1"),
        r#"
error: interface `eth1` is named twice
 --> gw.toml:6:13
  |
6 | satellite = "eth1"
  |             ^^^^^^ this name has a part already
"#,
    );
}

#[test]
fn an_address_with_bits_after_its_prefix() {
    refuses(
        &format!("{LEAST}[[rules]]\naction = \"pass\"\nfrom = \"10.1.2.3/8\"\n"),
        r#"
error: `from` has bits after its prefix
 --> gw.toml:9:8
  |
9 | from = "10.1.2.3/8"
  |        ^^^^^^^^^^^^ write "10.0.0.0/8", or "10.1.2.3" for this address alone
"#,
    );
}

/// Checks the message and label for an invalid line of a rule or table.
#[track_caller]
fn line(table: &str, line: &str, message: &str, label: &str) {
    let error = read(&format!("{LEAST}{table}\n{line}\n")).expect_err(line);
    assert!(error.starts_with(&format!("error: {message}\n")), "{line}:\n{error}");
    let number = LEAST.lines().count() + table.lines().count() + 1;
    assert!(error.contains(&format!("gw.toml:{number}:")), "{line}:\n{error}");
    assert!(error.contains(&format!("^ {label}")), "{line}:\n{error}");
}

#[test]
fn rules_that_cannot_be() {
    let rule = "[[rules]]\naction = \"pass\"";
    line(rule, "from = \"example.org\"", "`from` is not an address or prefix", "names are not looked up");
    line(rule, "to = \"10.0.0.0/33\"", "`to` is not an address or prefix", "a length from 0 to 32");
    line(rule, "to = \"fe80::/+9\"", "`to` is not an address or prefix", "a length from 0 to 128");
    line(rule, "port = 0", "`port` is not a port or a range of ports", "ports go from 1 to 65535");
    line(rule, "port = \"90-80\"", "`port` is not a port or a range of ports", "it ends below its beginning");
    line(rule, "port = []", "`port` is empty", "it has at least one item");
    line(rule, "opened_from = \"lab\"", "`opened_from` cannot be \"lab\"", "did you mean `lan`?");
    line(
        "[[rules]]",
        "action = \"accelerat\"",
        "`action` cannot be \"accelerat\"",
        "did you mean `accelerate`?",
    );
    let error = read(&format!("{LEAST}{rule}\ndscp = \"af44\"\n")).unwrap_err();
    assert!(error.starts_with("error: `dscp` is not a DSCP\n --> gw.toml:9:8\n"), "{error}");
    line(
        &format!("{rule}\nfrom = \"10.0.0.0/8\""),
        "to = \"2001:db8::/32\"",
        "this rule never matches: its ends are of different families",
        "write a rule for IPv4 and one for IPv6",
    );
    let error = read(&format!("{LEAST}{rule}\n{rule}\nport = 1\n")).unwrap_err();
    assert!(error.starts_with("error: rule 2 is never asked\n --> gw.toml:9:1\n"), "{error}");
}

#[test]
fn shares_names_and_limits_that_cannot_be() {
    line("[policy]", "sample = 0.1", "`sample` is not a percentage", "write \"10 %\" if that is meant");
    line("[policy]", "sample = \"101 %\"", "`sample` is too large", "at most 100 %");
    line("[policy]", "sample = \"100 %\"", "`sample` is everything", "nothing would be accelerated");
    line("[policy]", "subscriber_prefix = { v4 = 33 }", "`v4` is too large", "at most 32");
    line("[limits]", "per_flow = \"1 GiB\"", "`per_flow` is more than `memory`", "all together have");
    line("[limits]", "memory = \"10 kB\"", "`memory` is too small", "at least 1 MiB");
    line("[limits]", "idle = \"10 ms\"", "`idle` is too short", "at least 1 s");
    line(
        "[status]",
        "prometheus = 9464",
        "`prometheus` is not an address with a port",
        "write \"127.0.0.1:9464\"",
    );
    line(
        "[status]",
        "prometheus = \"127.0.0.1\"",
        "`prometheus` is not an address with a port",
        "the port is",
    );
    line("[status]", "records = \"flows.csv\"", "this path is relative", "write it from the root");
    line("[status]", "record_format = \"csv\"", "there are no records to write", "give `records`, the file");
    let error = read(&format!("{LEAST}[policy]\nbypass_when_slower = true\n")).unwrap_err();
    assert!(error.contains("has nothing to compare with") && error.contains("help: add sample"), "{error}");
    for (key, wrong, message) in [
        ("name", "\".x\"", "`name` cannot be the name of a file"),
        ("nft_table", "\"a-b\"", "`nft_table` cannot be the name of a table"),
        ("tun_lan", "\"a/b\"", "`tun_lan` is not the name of an interface"),
        ("tun_lan", "\"sixteen-letters-\"", "`tun_lan` is not the name of an interface"),
        ("tun_satellite", "\"eth0\"", "interface `eth0` is named twice"),
        ("table", "254", "`table` is taken"),
        ("mark", "0", "`mark` is too small"),
        ("priority", "32766", "`priority` is too large"),
    ] {
        let error = read(&format!("{LEAST}{key} = {wrong}\n")).unwrap_err();
        assert!(error.starts_with(&format!("error: {message}\n --> gw.toml:7:")), "{key}:\n{error}");
    }
    for (key, wrong, message) in [
        ("rtt", "\"61 s\"", "`rtt` is too large"),
        ("rtt", "\"0 s\"", "`rtt` must be more than zero"),
        ("framing", "\"2 kB\"", "`framing` is too large"),
        ("share", "\"99 %\"", "`share` is of a rate"),
        ("copies", "\"3\"", "`copies` is \"auto\" or a number"),
        ("copies", "9", "`copies` is \"auto\" or a number"),
        ("alpha", "1", "`alpha` is the weight of the old value"),
        ("k", "0", "`k` is too small"),
        ("keep_alive", "\"5 ms\"", "`keep_alive` is too short"),
        ("mode", "\"opne\"", "`mode` cannot be \"opne\""),
    ] {
        let text = LEAST.replace("[satellite]\n", &format!("[satellite]\n{key} = {wrong}\n"));
        let error = read(&text).unwrap_err();
        assert!(error.starts_with(&format!("error: {message}\n --> gw.toml:3:")), "{key}:\n{error}");
    }
}

#[test]
fn what_is_missing_is_named() {
    for (without, message) in [
        ("schema = 1\n", "the file has no `schema`"),
        ("[satellite]\n", "the file has no `satellite`"),
        ("lan = \"eth1\"\n", "[deploy] has no `lan`"),
        ("kind = \"routed\"\n", "[deploy] has no `kind`"),
    ] {
        let error = read(&LEAST.replace(without, "")).unwrap_err();
        assert!(error.starts_with(&format!("error: {message}\n")), "{error}");
    }
    let error = read("schema = 2").unwrap_err();
    assert!(
        error.contains("schema 2 is not known") && error.contains("a gateway file begins with"),
        "{error}"
    );
    let error = read(&format!("{LEAST}[rules]\naction = \"pass\"\n")).unwrap_err();
    assert!(error.contains("write [[rules]], in double brackets"), "{error}");
}

#[test]
fn the_example_loads() {
    let file = loads(include_str!("../../../../examples/gateway.toml"));
    assert_eq!(file.deploy.kind, Kind::Routed);
}

#[test]
fn schema_and_reference_are_up_to_date() {
    let committed = include_str!("../../../../schema/gateway.schema.json");
    assert!(schema() == committed, "run: bentpipe generate gateway-schema > schema/gateway.schema.json");
    let committed = include_str!("../../../../docs/src/gateway-file.md");
    assert!(reference() == committed, "run: bentpipe generate gateway-reference > docs/src/gateway-file.md");
    assert!(!schema().contains("parameter"), "gateway files have none");
}

#[test]
fn no_text_is_dangerous() {
    let text = include_str!("../../../../examples/gateway.toml");
    for end in 0..text.len() {
        if text.is_char_boundary(end) {
            let _ = read(&text[..end]);
            let _ = read(&format!("{}\u{0}{}", &text[..end], &text[end..]));
            let _ = read(&format!("{}[{}", &text[..end], &text[end..]));
        }
    }
}
