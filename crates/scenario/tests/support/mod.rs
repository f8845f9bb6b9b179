//! Small valid files, and functions to modify them.

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

/// Returns `text` with the first `from` replaced, which must be present.
#[allow(dead_code, reason = "not every test file uses it")]
pub(crate) fn edit(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from:?} is not in the file");
    text.replacen(from, to, 1)
}

/// Converts pairs to the form of `--set` options.
pub(crate) fn sets(sets: &[(&str, &str)]) -> Vec<(String, String)> {
    sets.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Loads a valid text.
#[allow(dead_code, reason = "not every test file uses it")]
pub(crate) fn loads(text: &str, with: &[(&str, &str)]) -> Scenario {
    load(&Source::new("test.toml", text), &sets(with), None).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Checks that a text is refused with exactly this error.
#[allow(dead_code, reason = "not every test file uses it")]
#[track_caller]
pub(crate) fn refuses(text: &str, with: &[(&str, &str)], picture: &str) {
    match load(&Source::new("test.toml", text), &sets(with), None) {
        Ok(_) => panic!("this loads:\n{text}"),
        Err(error) => assert_eq!(format!("error: {error}"), picture.trim_matches('\n'), "\n{error}"),
    }
}

/// A file with all dynamics, applications and instruments.
#[allow(dead_code, reason = "not every test file uses it")]
pub(crate) const RICH: &str = r#"schema = 1
title = "everything"
duration = "100 s"

[parameters]
k = 2.0
keepalive = "on"

[[hosts]]
name = "a"

[[hosts]]
name = "b"

[[routers]]
name = "r1"

[[routers]]
name = "r2"

[[links]]
name = "a1"
from = "a"
to = "r1"
profile = "terrestrial"
backward = { rate = { k = "$k", data = "1040 B", ack = "40 B" } }

[[links]]
name = "sky"
from = "r1"
to = "r2"
profile = "leo"
framing = "4 B"

[links.forward]
rate = "10 Mbit/s"
capacity = { steps = [["0 s", "5 Mbit/s"], ["10 s", "none"], ["11.5 s", "1 Mbit/s"]], repeat = "60 s" }
fade = { rain = { scintillation = "0.2 dB", m = -3, scale = 1.9 }, acm = { clear = "16 dB" }, every = "2 s" }
bursts = { loss = 0.01, burst = "100 ms" }
loss = 0.001
loss_draw = "gap"
outages = { every = "60 s", length = ["1 s", "2 s"] }
idle_release = { idle = "0.3 s", setup = "4.75 s" }

[links.backward]
orbit = { pass = { altitude = "8062 km" } }
delay = "30 ms"
fade = { profile = [["0 s", "5 dB"], ["7200 s", "0 dB"]], coding = "uncoded", anchor = { fade = "5 dB", ber = 1e-5 }, every = "15 s" }
bursts = { good = "10 s", bad = "0.5 s", loss_good = 0.001, loss_bad = 0.5 }
dama = { free = "100 kbit/s" }

[[links]]
name = "b2"
from = "r2"
to = "b"
rate = "1 Gbit/s"
delay = { satellite = "-100 deg", stations = [["39.3 deg", "-82.1 deg"], ["41.4 deg", "-81.9 deg"]] }
buffer = "1000 packets"
forward = { capacity = { opportunities_ms = [0, 0, 3, 7] } }
backward = { fade = { profile = [["0 s", "1 dB"]], coding = { threshold = "3 dB" }, clear = "7.25 dB" } }

[[flows]]
name = "parted"
from = "a"
to = "b"
app = { transfer = "1001 B" }
connections = 3

[[flows]]
name = "web"
from = "b"
to = "a"
app = { requests = { response = "50 kB", think = "2 s", count = 9 } }

[[flows]]
name = "typing"
from = "a"
to = "b"
app = { telnet = {} }

[[flows]]
name = "voice"
from = "a"
to = "b"
app = { udp = { rate = "64 kbit/s", size = "160 B" } }

[[flows]]
name = "noise"
from = "a"
to = "b"
app = { udp = { rate = "1 Mbit/s", pattern = "poisson" } }
enabled = "$keepalive"

[[flows]]
name = "spells"
from = "a"
to = "b"
app = { udp = { rate = "1 Mbit/s", pattern = { on = "1 s", off = "3 s" } } }

[[timeline]]
at = "20 s"
link = "sky-return"
outage = "5 s"
loss = 0.1

[[timeline]]
at = "10 s"
link = "sky-return"
rate = "1 Mbit/s"
delay = "40 ms"
buffer = "9 packets"
ber = 1e-7

[[timeline]]
at = "98 s"
link = "a1"
outage = "5 s"

[[instruments]]
name = "side"
kind = "side-channel"
link = "sky"
every = "15 s"

[[instruments]]
name = "snmp"
kind = "counters"
link = "sky-return"
every = "10 s"

[[instruments]]
name = "bins"
kind = "bins"
link = "sky"
flow = "web"
every = "2 min"

[[captures]]
link = "sky"

[[captures]]
link = "sky-return"
from = "10 s"
to = "20 s"
snap = "96 B"
limit = "1 MB"
"#;

/// Stations of a satellite that forwards on board.
#[allow(dead_code, reason = "not every test file uses it")]
pub(crate) const SATELLITE: &str = r#"schema = 1
title = "a mesh"
duration = "100 s"

[parameters]
topology = "mesh"

[satellite]
topology = "$topology"
stations = 3
rtt = "550 ms"
uplink = { rate = "2 Mbit/s", buffer = "1000 packets" }
downlink = { rate = "1.544 Mbit/s", buffer = "400 packets", loss = 0.001 }
onboard_buffer = "30 packets"
access = { rate = "10 Mbit/s", delay = "1 ms", buffer = "1000 packets" }

[[flows]]
name = "flow"
count = 2
from = "user"
to = "user3"
"#;

/// A dumbbell with additional keys of its bottleneck.
#[allow(dead_code, reason = "not every test file uses it")]
pub(crate) fn bottleneck(lines: &str) -> String {
    edit(DUMBBELL, "loss = \"$loss\"\n", &format!("loss = \"$loss\"\n{lines}\n"))
}

/// Checks for each line of a bottleneck the message, underlined text and label of its error.
#[allow(dead_code, reason = "not every test file uses it")]
#[track_caller]
pub(crate) fn refused(cases: &[(&str, &str, &str, &str)]) {
    for (line, message, underlined, label) in cases {
        points_at(&bottleneck(line), message, underlined, label);
    }
}

/// Checks the message, underlined text and label with which a text is refused.
#[allow(dead_code, reason = "not every test file uses it")]
#[track_caller]
pub(crate) fn points_at(text: &str, message: &str, underlined: &str, label: &str) {
    let Err(error) = load(&Source::new("test.toml", text), &[], None) else { panic!("this loads:\n{text}") };
    let place = &error.place;
    let there: String = place.text.chars().skip(place.offset).take(place.width).collect();
    assert_eq!(
        (error.message.as_str(), there.as_str(), error.label.as_str()),
        (message, underlined, label),
        "{error}"
    );
    assert!(text.lines().nth(place.line - 1).is_some_and(|line| line.contains(underlined)), "{error}");
}
