//! Agent files: contents of valid ones, and the full text of the errors of invalid ones.

use bentpipe_base::{Duration, Rate, Size};
use bentpipe_scenario::Source;
use bentpipe_scenario::agent_file::{AgentFile, Method, Place, load, reference, schema};
use bentpipe_scenario::gateway_file::{Action, Side};
use bentpipe_tcp::{Encoding, ReceiveBuffer};

const LEAST: &str =
    "schema = 1\n[deploy]\nkind = \"inline\"\nhost = \"eth1\"\nnetwork = \"eth0\"\n[[rules]]\n";

fn read(text: &str) -> Result<AgentFile, String> {
    load(&Source::new("agent.toml", text)).map_err(|d| format!("error: {d}"))
}

fn loads(text: &str) -> AgentFile {
    read(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[track_caller]
fn refuses(text: &str, wanted: &str) {
    let error = read(text).expect_err("it must be refused");
    assert_eq!(error.trim(), wanted.trim_matches('\n'), "\n{error}");
}

#[test]
fn the_least_file_has_every_default() {
    let file = loads(LEAST);
    assert_eq!(
        (file.method, file.place, file.drain),
        (Method::Split, Place::Inline, Duration::from_secs(10))
    );
    assert_eq!((file.limits.flows, file.limits.memory), (10_000, Size(1 << 30)));
    assert_eq!(file.site.policy.otherwise, Action::Pass);
    assert_eq!((file.site.deploy.name.as_str(), file.site.deploy.mark), ("agent", 0x6280));
    let ask = file.asks[0].as_ref().expect("it signals");
    let signalling = ask.signalling.as_ref().expect("it signals");
    assert_eq!((signalling.ask.encoding, signalling.ask.take), (Encoding::Tia1039, None));
    assert_eq!(signalling.ask.ask, Rate::from_bps(10_000_000_000));
    assert_eq!((ask.scheme.name, signalling.fallback_to.name), ("explicit-rate", "cubic"));
    assert_eq!((ask.receive_buffer.max(), ask.send_buffer), (Size(64 << 20), Some(Size(64 << 20))));
}

#[test]
fn the_example_says_much_of_what_can_be_said() {
    let file = loads(include_str!("../../../../examples/agent.toml"));
    assert_eq!((file.place, file.site.deploy.satellite.as_str()), (Place::Host, "eth0"));
    assert_eq!(
        (file.site.deploy.tun_lan.as_str(), &file.site.deploy.lan[..]),
        ("bentahost", &["bentahost".to_owned()][..])
    );
    let actions: Vec<Action> = file.site.policy.rules.iter().map(|rule| rule.action).collect();
    assert_eq!(actions, [Action::Pass, Action::Accelerate, Action::Accelerate]);
    assert!(file.asks[0].is_none());
    let [bulk, answer] = [1, 2].map(|i| file.asks[i].as_ref().expect("it is taken"));
    assert_eq!(bulk.receive_buffer, ReceiveBuffer::Auto { initial: Size(64 << 10), max: Size(16 << 20) });
    let take = answer.signalling.as_ref().map(|s| (s.ask.ask, s.ask.take));
    assert_eq!(take, Some((None, Rate::from_bps(20_000_000))));
    assert_eq!((answer.scheme.name, file.site.policy.rules[2].opened_from), ("cubic", Some(Side::Satellite)));
}

const DATAGRAMS: &str = "protocol = \"udp\"\nto = \"192.0.2.7\"\nport = 5004\n";

#[test]
fn rules_for_datagrams_are_apart_from_those_for_connections() {
    let ask = "ask = { guaranteed = \"2 Mbit/s\", preemption = 20 }\n";
    let pass = "[[rules]]\naction = \"pass\"\nprotocol = \"udp\"\n";
    let limits = "[limits]\ndatagram_wait = \"200 ms\"\n";
    let file = loads(&format!("{LEAST}{DATAGRAMS}{ask}[[rules]]\nport = 80\n{pass}{limits}"));
    assert_eq!((file.site.policy.rules.len(), &file.numbers[..], file.asks.len()), (1, &[2][..], 1));
    let datagrams = file.datagrams.expect("there are rules");
    assert_eq!((datagrams.wait, datagrams.idle), (Duration::from_millis(200), Duration::from_secs(10)));
    let ask = datagrams.asks[0].as_ref().expect("it asks");
    assert_eq!((ask.asked(), ask.terms.preemption), (Rate::from_bps(2_000_000), 20));
    let actions: Vec<Action> = datagrams.policy.rules.iter().map(|rule| rule.action).collect();
    assert_eq!((actions, datagrams.asks[1].is_none()), (vec![Action::Accelerate, Action::Pass], true));
    // it only answers
    let file = loads(&format!("{LEAST}{DATAGRAMS}opened_from = \"network\"\ntake = \"1 Mbit/s\"\n"));
    let ask = file.datagrams.expect("a rule").asks.remove(0).expect("it answers");
    assert_eq!((ask.ask, ask.take), (None, Rate::from_bps(1_000_000)));
    assert_eq!(loads(LEAST).datagrams, None);
}

#[test]
fn rules_for_datagrams_name_the_peer_and_a_rate_that_is_reserved() {
    let refused = |text: String, what: &str, label: &str| {
        let error = read(&text).expect_err("it must be refused");
        assert!(error.contains(what) && error.contains(label), "{error}");
    };
    let udp = "protocol = \"udp\"\n";
    for ends in ["", "to = \"192.0.2.7\"\n", "port = 5004\n", "to = \"0.0.0.0/0\"\nport = 5004\n"] {
        refused(format!("{LEAST}{udp}{ends}"), "names no peer", "give `to` and `port`");
    }
    let with = |keys: &str| format!("{LEAST}{DATAGRAMS}{keys}\n");
    refused(with("ask = \"1 Mbit/s\""), "only for a rate that is reserved", "`guaranteed` or `maximum`");
    refused(with("encoding = \"off\""), "not for datagrams", "action = \"pass\"");
    for key in ["tcp = \"cubic\"", "window = \"1 MiB\"", "ask_fallback = 0.2"] {
        refused(with(key), "has no effect", "the rule is for datagrams");
    }
    refused(with("action = \"pass\"\ntake = \"1 Mbit/s\""), "`take` has no effect", "lets datagrams pass");
    let ask = "ask = { maximum = \"1 Mbit/s\" }\nopened_from = \"network\"";
    refused(with(ask), "`ask` has no effect", "their sender asks");
    refused(with("").replace("inline", "routed"), "does not get datagrams", "\"inline\"");
    refused(with("[limits]\ndatagram_wait = \"11 s\""), "`datagram_wait` is too large", "10 s");
    let short = "`datagram_idle` is too short";
    for (limits, wait) in [
        ("datagram_idle = \"1 s\"", "1 s"),
        ("datagram_wait = \"10 s\"", "10 s"),
        ("datagram_wait = \"3 s\"\ndatagram_idle = \"2 s\"", "3 s"),
    ] {
        let label = format!("give more than `datagram_wait`, {wait}");
        refused(with(&format!("[limits]\n{limits}")), short, &label);
    }
    loads(&with("[limits]\ndatagram_wait = \"2 s\"\ndatagram_idle = \"3 s\""));
}

#[test]
fn errors_say_where_and_what_to_write() {
    refuses(
        "schema = 1\n[deploy]\nkind = \"inline\"\nhost = \"a\"\nnetwork = \"b\"\n",
        "
error: the file has no `rules`
 --> agent.toml:1:1
  |
1 | schema = 1
  | ^ `rules` must be given",
    );
    refuses(
        &LEAST.replace("host = \"eth1\"\n", ""),
        "
error: [deploy] has no `host`
 --> agent.toml:2:1
  |
2 | [deploy]
  | ^^^^^^^^ `host` must be given",
    );
    refuses(
        &LEAST.replace("inline", "host"),
        "
error: `host` is not for this kind
 --> agent.toml:4:8
  |
4 | host = \"eth1\"
  |        ^^^^^^ the agent is on the host: it makes this interface itself",
    );
    refuses(
        &format!("{LEAST}action = \"pass\"\nask = \"1 Mbit/s\"\n"),
        "
error: `ask` has no effect
 --> agent.toml:8:7
  |
8 | ask = \"1 Mbit/s\"
  |       ^^^^^^^^^^ the rule lets connections pass
  = help: leave it out",
    );
    refuses(
        &format!("{LEAST}encoding = \"off\"\ntake = \"1 Mbit/s\"\n"),
        "
error: `take` has no effect
 --> agent.toml:8:8
  |
8 | take = \"1 Mbit/s\"
  |        ^^^^^^^^^^ `encoding` is \"off\"
  = help: leave it out",
    );
}

#[test]
fn the_method_split_speaks_all_encodings() {
    for (word, encoding) in [("scone-tcp", Encoding::SconeTcp), ("quick-start", Encoding::QuickStart)] {
        let file = loads(&format!("{LEAST}encoding = \"{word}\"\nask = \"1 Mbit/s\"\n"));
        let config = file.asks[0].as_ref().expect("it signals");
        let signalling = config.signalling.as_ref().expect("it signals");
        assert_eq!((signalling.ask.encoding, signalling.ask.ask), (encoding, Rate::from_bps(1_000_000)));
        assert_eq!(config.scheme.name, "cubic", "a rate is no grant");
    }
    loads(&format!("{LEAST}encoding = \"scone-tcp\"\n").replace("inline", "routed"));
}

const KERNEL: &str =
    "schema = 1\nmethod = \"kernel\"\n[deploy]\nkind = \"host\"\nnetwork = \"eth0\"\n[[rules]]\n";

#[test]
fn the_method_kernel_is_for_the_host_and_its_own_tcp() {
    let file = loads(&format!("{KERNEL}port = 1\n[[rules]]\nwindow = \"16 MiB\"\n"));
    assert_eq!((file.method.word(), file.windows), ("kernel", [Size(16 << 20); 2]));
    refuses(
        &LEAST.replace("schema = 1", "schema = 1\nmethod = \"kernel\""),
        "
error: the method \"kernel\" is not for this kind
 --> agent.toml:4:8
  |
4 | kind = \"inline\"
  |        ^^^^^^^^ the rates are for the TCP of the host: the agent must be there
  = help: use `kind = \"host\"`, or the method \"split\"",
    );
    for (key, says) in [
        ("tcp = \"bbr\"", "`tcp` has no effect"),
        ("encoding = \"off\"", "use `action = \"pass\"`"),
        ("encoding = \"scone-tcp\"", "the method \"kernel\" does not speak `scone-tcp`"),
        ("[limits]\nmemory = \"1 GiB\"", "the host's own TCP decides that"),
        ("[limits]\nidle = \"1 h\"", "`idle` has no effect"),
        ("[limits]\nflows = 100000", "the kernel has room for the rates of 65536"),
    ] {
        let error = read(&format!("{KERNEL}{key}\n")).expect_err(says);
        assert!(error.contains(says), "{says}: {error}");
    }
}

#[test]
fn other_errors_are_those_of_scenario_and_gateway_files() {
    for (text, says) in [
        (format!("{LEAST}ask = \"1 bit/s\"\n"), "`ask` is too small"),
        (format!("{LEAST}port = 0\n"), "`port` is not a port"),
        (format!("{LEAST}tcp = \"cubik\"\n"), "did you mean `cubic`?"),
        (format!("{LEAST}window = \"2 GB\"\n"), "more than TCP can announce"),
        (format!("{LEAST}[[rules]]\nport = 1\n"), "rule 2 is never asked"),
        (format!("{LEAST}encoding = \"scone-tcp\"\nask = {{ maximum = \"1 Mbit/s\" }}\n"), "reserved rates"),
        (format!("{LEAST}encoding = \"quick-start\"\ntcp = \"explicit-rate\"\n"), "another scheme in `tcp`"),
        (
            format!("{LEAST}encoding = \"quick-start\"\n").replace("inline", "routed"),
            "not for the kind \"routed\"",
        ),
        (LEAST.replace("host = \"eth1\"", "host = [\"eth1\", \"eth2\"]"), "inline is between two interfaces"),
        (LEAST.replace("eth1", "eth0"), "interface `eth0` is named twice"),
        (LEAST.replace("[[rules]]", "table = 7\n[[rules]]"), "inline needs no routes"),
        (LEAST.replace("inline", "outline"), "`kind`"),
        (LEAST.replace("schema = 1", "schema = 1\nmethod = \"kernal\""), "split"),
        (format!("{LEAST}[limits]\nflows = 100000\n"), "so many connections need more memory"),
        (format!("{LEAST}[status]\nsocket = \"a.sock\"\n"), "this path is relative"),
    ] {
        let error = read(&text).expect_err(says);
        assert!(error.contains(says), "{says}: {error}");
    }
}

#[test]
fn schema_and_reference_are_up_to_date() {
    let committed = include_str!("../../../../schema/agent.schema.json");
    assert!(schema() == committed, "run: bentpipe generate agent-schema > schema/agent.schema.json");
    let committed = include_str!("../../../../docs/src/rate/agent-file.md");
    assert!(reference() == committed, "run: bentpipe generate agent-reference > docs/src/rate/agent-file.md");
}
