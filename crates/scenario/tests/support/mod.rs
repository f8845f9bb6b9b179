//! Two small files that load, and ways to break them.

use bentpipe_scenario::{Scenario, Source, load};

/// A dumbbell with parameters.
pub(crate) const DUMBBELL: &str = r#"schema = 1
title = "a test"
duration = "100 s"

[parameters]
loss = 1e-4
window = "64 segments"

[dumbbell]
pairs = 2
rtt = "550 ms"
rate = "10 Mbit/s"
buffer = "50 packets"
loss = "$loss"
access = { rate = "100 Mbit/s", delay = "1 ms", buffer = "1 MB" }

[host]
segment = "1000 B"
window = "$window"

[[flows]]
name = "flow"
count = 2
from = "src"
to = "dst"
tcp = "newreno"
"#;

/// A ring of three routers with a host at two of them.
#[allow(dead_code, reason = "not every test file uses it")]
pub(crate) const GRAPH: &str = r#"schema = 1
title = "a test"
duration = "100 s"
hosts = [{ name = "a" }, { name = "b" }]

[[routers]]
name = "r1"

[[routers]]
name = "r2"
routes = [{ to = "a", via = "r23" }]

[[routers]]
name = "r3"

[[links]]
name = "a1"
from = "a"
to = "r1"
rate = "1 Gbit/s"
delay = "1 ms"
buffer = "1000 packets"

[[links]]
name = "r12"
from = "r1"
to = "r2"
rate = "10 Mbit/s"
delay = "270 ms"
buffer = "50 packets"
forward = { loss = 0.01 }
backward = { rate = "1 Mbit/s", framing = "8 B" }

[[links]]
name = "r23"
from = "r2"
to = "r3"
rate = "1 Gbit/s"
delay = "1 ms"
buffer = "1000 packets"

[[links]]
name = "r31"
from = "r3"
to = "r1"
rate = "1 Gbit/s"
delay = "1 ms"
buffer = "1000 packets"

[[links]]
name = "b2"
from = "r2"
to = "b"
rate = "1 Gbit/s"
delay = "1 ms"
buffer = "1000 packets"

[[flows]]
name = "up"
from = "a"
to = "b"
"#;

/// `text` with the first `from` replaced; it must be there.
pub(crate) fn edit(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from:?} is not in the file");
    text.replacen(from, to, 1)
}

/// Pairs for `--set`.
pub(crate) fn sets(sets: &[(&str, &str)]) -> Vec<(String, String)> {
    sets.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Loads a text that must be fine.
#[allow(dead_code, reason = "not every test file uses it")]
pub(crate) fn loads(text: &str, with: &[(&str, &str)]) -> Scenario {
    load(&Source::new("test.toml", text), &sets(with), None).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Loads a text that must be refused with exactly this picture.
#[allow(dead_code, reason = "not every test file uses it")]
#[track_caller]
pub(crate) fn refuses(text: &str, with: &[(&str, &str)], picture: &str) {
    match load(&Source::new("test.toml", text), &sets(with), None) {
        Ok(_) => panic!("this loads:\n{text}"),
        Err(error) => assert_eq!(error.to_string(), picture.trim_matches('\n'), "\n{error}"),
    }
}
