//! Control requests: the change, its time, its description, and its entry in a journal.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use bentpipe_base::{Duration, Instant};
use bentpipe_driver::{Hosts, LiveNetwork};
use bentpipe_live::control::{
    ChangesMade, Directions, LinkValues, Reply, Request, RequestHandler, State, Target, replay_change,
};
use bentpipe_live::relay::network;
use bentpipe_scenario::{Scenario, Source, load};
use bentpipe_service::Refusal;

const TWO_HOSTS: &str = r#"
schema = 1
title = "a link"
duration = "1 h"
hosts = [{ name = "far" }, { name = "near" }]

[[links]]
name = "satellite"
from = "far"
to = "near"
forward = { rate = "10 Mbit/s", delay = "275 ms", buffer = "100 packets" }
backward = { rate = "2 Mbit/s", delay = "275 ms", buffer = "64 kB", loss = 0.01 }

[[flows]]
name = "data"
from = "far"
to = "near"
app = "bulk"
"#;

const DUMBBELL: &str = r#"
schema = 1
title = "a bottleneck"
duration = "1 h"

[dumbbell]
pairs = 2
rate = "10 Mbit/s"
rtt = "100 ms"
buffer = "50 packets"
access = { rate = "100 Mbit/s", delay = "1 ms", buffer = "500 packets" }

[[flows]]
name = "data"
from = "src1"
to = "dst1"
app = "bulk"
"#;

fn scenario(text: &str) -> Scenario {
    load(&Source::new("test", text), &[], None).unwrap_or_else(|d| panic!("{d}"))
}

fn bench(text: &str) -> (LiveNetwork, RequestHandler) {
    let scenario = scenario(text);
    let (net, names) = network(&scenario, Hosts::default());
    (net, RequestHandler::new(&scenario, names.links()))
}

fn seconds(s: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(s)
}

fn set(link: Option<&str>, way: Directions, values: LinkValues) -> Request {
    Request::Set { on: Target { link: link.map(str::to_owned), way }, values }
}

fn done(reply: Result<ChangesMade, Refusal>) -> ChangesMade {
    reply.unwrap()
}

fn refusal(reply: Result<ChangesMade, Refusal>) -> String {
    let refusal = reply.unwrap_err();
    [vec![refusal.message], refusal.help].concat().join("\n")
}

#[test]
fn a_change_says_when_it_took_effect_and_what_was_before() {
    let (mut net, handler) = bench(TWO_HOSTS);
    net.advance(seconds(12.5));
    let values = LinkValues { rate_bps: Some(5_000_000), loss: Some(1e-3), ..LinkValues::default() };
    let lines: Vec<String> =
        done(handler.change(&mut net, None, &set(None, Directions::Both, values))).lines().collect();
    assert_eq!(
        lines,
        [
            "at 12.500000 s  satellite: rate 5 Mbit/s (was 10 Mbit/s), loss 0.001 (was 0)",
            "at 12.500000 s  satellite-return: rate 5 Mbit/s (was 2 Mbit/s), loss 0.001 (was 0.01)",
        ]
    );
    let values = LinkValues { buffer_packets: Some(7), up: Some(false), ..LinkValues::default() };
    let lines: Vec<String> =
        done(handler.change(&mut net, None, &set(Some("satellite"), Directions::Backward, values)))
            .lines()
            .collect();
    assert_eq!(
        lines,
        ["at 12.500000 s  satellite-return: buffer 7 packets (was 64000 B), down; nothing gets through"]
    );
    net.advance(seconds(20.0));
    let reset =
        Request::Reset { on: Target { link: Some("satellite-return".to_owned()), way: Directions::Both } };
    let lines: Vec<String> = done(handler.change(&mut net, None, &reset)).lines().collect();
    assert_eq!(
        lines,
        [
            "at 20.000000 s  satellite-return: reset: rate 2 Mbit/s (was 5 Mbit/s), buffer 64000 B (was 7 packets), loss 0.01 (was 0.001), not down any more"
        ]
    );
}

#[test]
fn the_state_shows_what_was_set_and_how_long_an_outage_lasts() {
    let (mut net, mut handler) = bench(TWO_HOSTS);
    net.advance(seconds(1.0));
    let values = LinkValues { delay_ns: Some(20_000_000), ..LinkValues::default() };
    done(handler.change(&mut net, None, &set(None, Directions::Forward, values.clone())));
    let outage = Request::Outage { on: Target::default(), length_ns: 5_000_000_000 };
    let lines: Vec<String> = done(handler.change(&mut net, None, &outage)).lines().collect();
    assert_eq!(lines[0], "at 1.000000 s  satellite: nothing gets through for 5 s, until 6.000000 s");
    net.advance(seconds(2.0));
    let links = handler.links(&mut net);
    assert_eq!(links.len(), 2);
    let (forward, backward) = (&links[0], &links[1]);
    assert_eq!((forward.from.as_str(), forward.to.as_str(), forward.backward), ("far", "near", false));
    assert_eq!((backward.from.as_str(), backward.name.as_str()), ("near", "satellite-return"));
    assert_eq!((forward.one_way_ms, forward.set.clone(), forward.up), (20.0, values, false));
    assert_eq!((forward.outage_until_s, backward.outage_until_s), (Some(6.0), Some(6.0)));
    assert_eq!((backward.set.clone(), backward.limit_bytes), (LinkValues::default(), Some(64_000)));
    net.advance(seconds(6.0));
    let links = handler.links(&mut net);
    assert!(links.iter().all(|l| l.up && l.outage_until_s.is_none()), "{links:?}");
}

/// Description of a change to `satellite`, in one line.
fn said(net: &mut LiveNetwork, handler: &RequestHandler, request: &Request) -> String {
    let done = done(handler.change(net, None, request));
    let lines: Vec<String> = done.lines().collect();
    let [line] = &lines[..] else { panic!("{lines:?}") };
    line.split_once("satellite: ").unwrap().1.to_owned()
}

#[test]
fn an_outage_is_told_apart_from_losses() {
    let (mut net, mut handler) = bench(TWO_HOSTS);
    net.advance(seconds(1.0));
    let on = || Target { link: Some("satellite".to_owned()), way: Directions::Forward };
    let outage = |s: u64| Request::Outage { on: on(), length_ns: s * 1_000_000_000 };
    let values = |values| Request::Set { on: on(), values };
    let loss = |loss| values(LinkValues { loss: Some(loss), ..LinkValues::default() });
    let up = |up| values(LinkValues { up: Some(up), ..LinkValues::default() });
    said(&mut net, &handler, &outage(5));
    // the configured loss probability, not that of the outage
    let line = said(&mut net, &handler, &loss(1e-3));
    assert_eq!(line, "loss 0.001 (was 0); nothing gets through until 6.000000 s");
    let forward = &handler.links(&mut net)[0];
    assert_eq!((forward.up, forward.loss, forward.outage_until_s), (false, 1e-3, Some(6.0)));
    let line = said(&mut net, &handler, &outage(1));
    assert_eq!(line, "nothing gets through until 6.000000 s: an earlier outage lasts longer");
    // a change that ends an outage says so
    let line = said(&mut net, &handler, &Request::Reset { on: on() });
    assert_eq!(line, "reset: loss 0 (was 0.001), the outage until 6.000000 s is over");
    assert!(handler.links(&mut net)[0].up);
    said(&mut net, &handler, &outage(5));
    assert_eq!(said(&mut net, &handler, &up(true)), "up, the outage until 6.000000 s is over");
    // taken down in an outage: both are reported, and both end
    said(&mut net, &handler, &outage(5));
    let line = said(&mut net, &handler, &up(false));
    assert_eq!(line, "down; nothing gets through: it is down, and in an outage until 6.000000 s");
    let line = said(&mut net, &handler, &Request::Reset { on: on() });
    assert_eq!(line, "reset: not down any more, the outage until 6.000000 s is over");
    let line = said(&mut net, &handler, &Request::Reset { on: on() });
    assert_eq!(line, "reset: nothing had been changed");
}

/// An outage of the timeline is not a user's: `reset` keeps it, and says so.
#[test]
fn an_outage_of_the_links_own_outlasts_a_reset() {
    let text = format!("{TWO_HOSTS}\n[[timeline]]\nat = \"1 s\"\nlink = \"satellite\"\nup = false\n");
    let (mut net, handler) = bench(&text);
    net.advance(seconds(2.0));
    let on = || Target { link: Some("satellite".to_owned()), way: Directions::Forward };
    let values = LinkValues { loss: Some(0.5), ..LinkValues::default() };
    let own = "nothing gets through: an outage of the link itself";
    let line = said(&mut net, &handler, &Request::Set { on: on(), values });
    assert_eq!(line, format!("loss 0.5 (was 0); {own}"));
    let line = said(&mut net, &handler, &Request::Reset { on: on() });
    assert_eq!(line, format!("reset: loss 0 (was 0.5); {own}"));
}

#[test]
fn links_are_found_by_name_and_mistakes_are_answered() {
    let (mut net, handler) = bench(DUMBBELL);
    let values = || LinkValues { loss: Some(0.5), ..LinkValues::default() };
    let mut ask = |link, way, values| handler.change(&mut net, None, &set(link, way, values));
    // without a name, the bottleneck is changed
    let names = |d: ChangesMade| d.changes.into_iter().map(|c| c.name).collect::<Vec<_>>();
    assert_eq!(names(done(ask(None, Directions::Both, values()))), ["bottleneck", "bottleneck-return"]);
    assert_eq!(names(done(ask(Some("src2-access"), Directions::Forward, values()))), ["src2-access"]);
    assert_eq!(
        names(done(ask(Some("src2-access-return"), Directions::Both, values()))),
        ["src2-access-return"]
    );
    let said = refusal(ask(Some("src2-access-return"), Directions::Forward, values()));
    assert_eq!(said, "`src2-access-return` is a single direction, and not the one asked for");
    let said = refusal(ask(Some("botleneck"), Directions::Both, values()));
    assert_eq!(
        said,
        "there is no link `botleneck`\ndid you mean `bottleneck`?\nlinks: bottleneck, src1-access, src2-access, dst1-access, dst2-access"
    );
    assert!(refusal(ask(None, Directions::Both, LinkValues::default())).starts_with("nothing is set"));
    for wrong in [
        LinkValues { rate_bps: Some(0), ..LinkValues::default() },
        LinkValues { rate_bps: Some(u64::MAX), ..LinkValues::default() },
        LinkValues { delay_ns: Some(u64::MAX), ..LinkValues::default() },
        LinkValues { loss: Some(1.5), ..LinkValues::default() },
        LinkValues { ber: Some(f64::NAN), ..LinkValues::default() },
        LinkValues { buffer_packets: Some(1), buffer_bytes: Some(1), ..LinkValues::default() },
    ] {
        refusal(ask(None, Directions::Both, wrong));
    }
    refusal(handler.change(&mut net, None, &Request::Outage { on: Target::default(), length_ns: 0 }));
}

#[test]
fn without_a_bottleneck_one_of_several_links_must_be_named() {
    let star = "schema = 1\ntitle = \"two\"\nduration = \"1 h\"\nhosts = [{ name = \"a\" }, { name = \"b\" }]\n\
        routers = [{ name = \"r\" }]\n\
        [[links]]\nname = \"one\"\nfrom = \"a\"\nto = \"r\"\nprofile = \"geo-10m\"\n\
        [[links]]\nname = \"two\"\nfrom = \"r\"\nto = \"b\"\nprofile = \"terrestrial\"\n\
        [[flows]]\nname = \"data\"\nfrom = \"a\"\nto = \"b\"\napp = \"bulk\"\n";
    let (mut net, handler) = bench(star);
    let reset = Request::Reset { on: Target::default() };
    let said = refusal(handler.change(&mut net, None, &reset));
    assert_eq!(said, "there are 2 links: name one with --link\nlinks: one, two");
}

#[test]
fn a_journals_change_is_made_again_the_same_way() {
    let (mut net, mut handler) = bench(TWO_HOSTS);
    let desk_links = network(&scenario(TWO_HOSTS), Hosts::default()).1.links();
    net.advance(seconds(3.0));
    let json = r#"{"on":["satellite"],"act":{"set":{"rate_bps":1000000,"loss":0.25}}}"#;
    assert_eq!(replay_change(json, &mut net, &desk_links), Ok(()));
    assert_eq!(
        replay_change(r#"{"on":["satellite-return"],"act":{"outage_ns":1000}}"#, &mut net, &desk_links),
        Ok(())
    );
    let links = handler.links(&mut net);
    assert_eq!((links[0].rate_bps, links[0].loss), (Some(1_000_000), 0.25));
    assert_eq!(links[1].outage_until_s, Some(3.000_001));
    assert_eq!(replay_change(r#"{"on":["satellite"],"act":"reset"}"#, &mut net, &desk_links), Ok(()));
    assert_eq!(handler.links(&mut net)[0].rate_bps, Some(10_000_000));
    for wrong in [
        "",
        "{}",
        r#"{"on":["moon"],"act":"reset"}"#,
        r#"{"on":["satellite"],"act":"explode"}"#,
        r#"{"on":["satellite"],"act":{"set":{"loss":7}}}"#,
        r#"{"on":["satellite"],"act":{"set":{"colour":7}}}"#,
    ] {
        assert!(replay_change(wrong, &mut net, &desk_links).is_err(), "{wrong}");
    }
}

#[test]
fn lines_read_back_as_they_were_written() {
    let requests = [
        (Request::Show, r#"{"request":"show"}"#),
        (
            set(None, Directions::Both, LinkValues { loss: Some(1e-3), ..LinkValues::default() }),
            r#"{"request":"set","on":{"way":"both"},"values":{"loss":0.001}}"#,
        ),
        (
            Request::Outage {
                on: Target { link: Some("a".to_owned()), way: Directions::Backward },
                length_ns: 5,
            },
            r#"{"request":"outage","on":{"link":"a","way":"backward"},"length_ns":5}"#,
        ),
    ];
    for (request, line) in requests {
        assert_eq!(serde_json::to_string(&request).unwrap(), line);
        assert_eq!(serde_json::from_str::<Request>(line).unwrap(), request);
    }
    let (mut net, mut handler) = bench(TWO_HOSTS);
    let state = State { session: "a1".to_owned(), links: handler.links(&mut net), ..State::default() };
    for reply in [Reply::State(Box::new(state)), Reply::Done(ChangesMade { at_ns: 1, changes: vec![] })] {
        let line = serde_json::to_string(&reply).unwrap();
        assert!(!line.contains('\n'));
        assert_eq!(serde_json::from_str::<Reply>(&line).unwrap(), reply);
    }
    for wrong in [
        r#"{"request":"sing"}"#,
        r#"{"request":"set","on":{},"values":{"rate":1}}"#,
        "[]",
        "5",
        r#"{"request":"reset","on":{"way":"up"}}"#,
    ] {
        assert!(serde_json::from_str::<Request>(wrong).is_err(), "{wrong}");
    }
}
