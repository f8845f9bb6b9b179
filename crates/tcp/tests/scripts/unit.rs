//! Tests the notation: what is accepted and rejected, and that a script with a false statement fails at that
//! line.

use crate::parse::Script;
use crate::play::play;
use crate::segment::{Text, written};
use crate::settings::Profile;

const HEADER: &str = "title: t\nholds: RFC 9293, section 3.6\nprofiles: rfc, linux\nnegative: no\nguards: input.rs\nmutant: m\n";

fn fault(text: &str) -> String {
    match Script::parse(text) {
        Err(fault) => fault.at("x.tcp"),
        Ok(script) => play(&script, Profile::Rfc).expect_err("it holds").at("x.tcp"),
    }
}

fn body(lines: &str) -> String {
    fault(&format!("{HEADER}\n{lines}\n"))
}

#[test]
fn what_is_false_fails_on_its_line() {
    let cases = [
        (
            "100 write 500\n> 1..500",
            "x.tcp:9: the range is another: expected at 100 ms: 1..500 as written; at 100 ms left: PSH 1..501 ack 1 win 65000",
        ),
        (
            "100 write 500\n200 < ack 1",
            "x.tcp:9: nothing more was expected before this, but at 100 ms left: PSH 1..501 ack 1 win 65000",
        ),
        (
            "100 < 1..101 ack 1",
            "x.tcp:8: nothing more was expected before this, but at 100 ms left: 1 ack 101 win 64900",
        ),
        ("150 > ack 1", "x.tcp:8: expected at 150 ms: an empty segment; nothing left"),
        (
            "100 close\n+1 > FIN 1",
            "x.tcp:9: the time is another: expected at 101 ms: 1 as written; at 100 ms left: FIN 1 ack 1 win 65000",
        ),
        ("100 = state CLOSED", "x.tcp:8: state is ESTABLISHED, expected CLOSED"),
        ("100 = event none, mood good", "x.tcp:8: `= mood`: nothing is known by that name"),
        ("100 read 1", "x.tcp:8: only 0 bytes are readable"),
    ];
    for (lines, message) in cases {
        assert_eq!(body(lines), message, "{lines}");
    }
}

#[test]
fn what_must_not_change_and_does_is_named() {
    let text = HEADER.replace("negative: no", "negative: yes") + "\n100 < 1..101 ack 1 unmoved";
    assert_eq!(fault(&text), "x.tcp:8: nothing may change, but expected was 1 and is 101");
    assert_eq!(body("100 < 1..101 ack 1 unmoved"), "x.tcp:0: `negative` is no, but a line says `unmoved`");
}

#[test]
fn what_cannot_be_read_is_refused_with_its_line() {
    let cases = [
        ("100 < 1..x", "x.tcp:8: `x` is no number"),
        ("100 < 5..1 ack 1", "x.tcp:8: the range `5..1` ends before it begins"),
        ("100 < HELLO", "x.tcp:8: `HELLO` is no word of a segment"),
        ("100 < ack", "x.tcp:8: `ack` wants a number after it"),
        ("100 < win 70000", "x.tcp:8: 70000 is too large for `win`"),
        ("100 < ack 1 sack", "x.tcp:8: `sack` wants one to four ranges `from..to` after it"),
        ("100 < ack 1 by 5", "x.tcp:8: `by` wants a range `from..to` before it"),
        (
            "100 shout",
            "x.tcp:8: `shout`: a line is <, >, =, connect, listen, wait, write, read, close or abort",
        ),
        (
            "100 < icmp 1 too-big",
            "x.tcp:8: `icmp 1 too-big`: it is POSITION too-big BYTES, unreachable or unreachable-hard",
        ),
        ("100 < icmp 1 too-big 70000", "x.tcp:8: `icmp 1 too-big 70000`: no segment is that long"),
        ("99 < ack 1", "x.tcp:8: 99 ms is before a line above: dialogues go forward"),
        ("100 = cwnd", "x.tcp:8: `cwnd`: `=` wants pairs like `cwnd 5000`"),
        ("[bsd] 100 < ack 1", "x.tcp:8: `bsd` is no profile: they are rfc and linux"),
        ("", "x.tcp:0: nothing happens in it: the dialogue is missing"),
    ];
    for (lines, message) in cases {
        assert_eq!(body(lines), message, "{lines}");
    }
}

#[test]
fn headers_are_checked() {
    let cases = [
        (
            "title: t",
            "mood: t",
            "x.tcp:1: `mood: t` is no line of a header; its keys are title, holds, profiles, negative, guards, mutant, set, start",
        ),
        (
            "holds: RFC 9293, section 3.6",
            "holds: hope",
            "x.tcp:2: `holds: hope` names no RFC and no habit of Linux",
        ),
        ("guards: input.rs", "guards: nothing.rs", "x.tcp:5: there is no file src/nothing.rs"),
        ("mutant: m\n", "", "x.tcp:6: the header has no `mutant`"),
        ("negative: no", "negative: perhaps", "x.tcp:4: `negative: perhaps`: it is yes or no"),
        ("mutant: m", "mutant: m\nset: mood 3", "x.tcp:7: `set: mood` is not known"),
        ("mutant: m", "mutant: m\nset: iw x", "x.tcp:7: `set: iw` wants 1 whole numbers"),
        ("mutant: m", "mutant: m\nstart: late", "x.tcp:7: `start: late`: it is nothing, open, or flying N"),
        ("mutant: m", "mutant: m\ntitle: u", "x.tcp:7: `title` is there twice"),
    ];
    for (was, is, message) in cases {
        assert_eq!(fault(&format!("{}\n100 < ack 1\n", HEADER.replace(was, is))), message, "{is}");
    }
}

/// A segment that is written and read again is unchanged.
#[test]
fn segments_are_written_as_they_are_read() {
    for line in [
        "FIN 5..105 ack 7 win 100",
        "SYN 0 win 9 ts 5 0 mss 536 scale 3 sackok",
        "ECE CWR 1..2 ack 1 win 0 ect0",
        "7 ack 9 win 1 sack 11..12 20..30",
    ] {
        let text = Text::parse(line).unwrap();
        let packet = text.sample();
        assert_eq!(written(&packet), line);
        assert_eq!(text.differs(text.range, &packet), None);
        let other = Text::parse(&line.replace("win", "ack 77 win")).unwrap();
        assert_eq!(other.differs(text.range, &packet).as_deref(), Some("ack"), "{line}");
    }
}
