//! The picture of an exchange, and that the one in the manual is what a run gives. After a change of the
//! exchange or of the picture: `BLESS=1 cargo test -p bentpipe-results --test exchange`, and look at it.

use bentpipe_scenario::{Source, load};
use std::fs;
use std::path::PathBuf;

/// Joins for a second, and shares the rate.
const SECOND: &str = "
[[flows]]
name = \"second\"
from = \"sender\"
to = \"receiver\"
start = \"1 s\"
app = { lasting = \"1 s\" }
";

fn project(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Runs `rate-negotiation` with `more` at its end; returns the picture.
fn picture(name: &str, more: &str) -> String {
    let text = fs::read_to_string(project("scenarios/rate-negotiation.toml")).expect("the scenario") + more;
    let scenario =
        load(&Source::new("rate-negotiation", text), &[], None).expect("a scenario with one more flow");
    let folder = std::env::temp_dir().join(format!("bentpipe-{name}-{}", std::process::id()));
    bentpipe_results::run(&folder, &scenario).expect("a folder for the results");
    let page = fs::read_to_string(folder.join("report.html")).expect("the page");
    let svg = fs::read_to_string(folder.join("exchange.svg")).expect("the picture");
    fs::remove_dir_all(&folder).expect("our own folder");
    assert!(page.contains("<h2>Rate signalling</h2>"));
    svg
}

fn labels(svg: &str) -> Vec<&str> {
    let texts = svg.lines().filter(|line| line.contains("rotate("));
    texts.filter_map(|line| line.split_once('>')?.1.split_once('<')).map(|(label, _)| label).collect()
}

#[test]
fn it_shows_the_handshake_the_reduction_and_the_raise_with_their_rates() {
    let svg = picture("exchange", SECOND);
    let expected = [
        "SYN: request 99.97",
        "request 34.94",
        "request 29.98",
        "SYN/ACK: response 29.98",
        "data, DSCP 7",
        "data: renegotiate 17.47",
        "renegotiate 14.99",
        "ACK: response 14.99",
        "data: renegotiate 29.98",
        "ACK: response 29.98",
    ];
    assert_eq!(labels(&svg), expected);
    let manual = project("docs/src/img/rate-exchange.svg");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&manual, &svg).unwrap();
    }
    assert!(
        fs::read_to_string(manual).unwrap() == svg,
        "the manual shows another run: see the head of this file"
    );
}

#[test]
fn requests_that_change_nothing_are_left_out() {
    let svg = picture("steady", "");
    assert_eq!(labels(&svg).len(), 5, "the handshake and the first data: {:?}", labels(&svg));
}
