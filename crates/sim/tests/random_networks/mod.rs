//! Random networks with everything that may end, forbid or disturb a skip.

#![allow(clippy::format_push_string, reason = "a text for each network")]

use bentpipe_base::{Duration, Rng};

/// In ns.
const SECOND: u64 = 1_000_000_000;

/// A network, and what it has of the features that are counted.
pub(crate) struct RandomNetwork {
    pub text: String,
    pub features: Vec<&'static str>,
    /// Interval of the series, if there are any.
    pub series: Option<Duration>,
}

impl RandomNetwork {
    pub(crate) fn has(&self, feature: &str) -> bool {
        self.features.contains(&feature)
    }
}

/// What all parts of a network depend on.
struct Scale {
    /// Pairs of hosts.
    pairs: u64,
    /// Bit rate of the hop, its delay in ns, and the length of the run in ns.
    rate: u64,
    delay: u64,
    length: u64,
    segment: u64,
    window: u64,
    /// Round numbers, so that equal times are the rule.
    is_even: bool,
    /// Nothing that forbids every skip, and little that ends one.
    is_calm: bool,
}

struct Draw<'a> {
    rng: &'a mut Rng,
    /// The run ends with its flows.
    stops: bool,
    features: Vec<&'static str>,
}

pub(crate) fn random_network(rng: &mut Rng) -> RandomNetwork {
    let mut draw = Draw { rng, stops: false, features: Vec::new() };
    let scale = draw.scale();
    let parts = [draw.host(&scale), draw.links(&scale), draw.flows(&scale), draw.changes(&scale)];
    let text = draw.top(&scale) + &parts.concat() + &draw.watched(&scale);
    let series = draw.feature("series", 0.3).then(|| Duration(scale.length / draw.whole(3, 60)));
    RandomNetwork { text, features: draw.features, series }
}

impl Draw<'_> {
    fn number(&mut self, from: f64, to: f64) -> f64 {
        self.rng.between(from, to)
    }

    /// A whole number of these, both included.
    fn whole(&mut self, from: u64, to: u64) -> u64 {
        self.number(from as f64, to as f64 + 1.0) as u64
    }

    fn chance(&mut self, p: f64) -> bool {
        self.rng.unit() < p
    }

    fn one<'b>(&mut self, of: &[&'b str]) -> &'b str {
        of[self.whole(0, of.len() as u64 - 1) as usize]
    }

    /// Notes a feature that is there with probability `p`.
    fn feature(&mut self, name: &'static str, p: f64) -> bool {
        let is_there = self.chance(p);
        if is_there && !self.features.contains(&name) {
            self.features.push(name);
        }
        is_there
    }

    /// A time within the run, in ns.
    fn time(&mut self, scale: &Scale) -> u64 {
        self.whole(scale.length / 20, scale.length - scale.length / 10)
    }

    fn scale(&mut self) -> Scale {
        let (is_even, is_calm) = (self.chance(0.8), self.chance(0.7));
        let pairs = if self.feature("several flows", 0.3) { self.whole(2, 3) } else { 1 };
        let (rate, delay, segment) = if is_even {
            let kbit = self.one(&["250", "500", "1000", "2000", "4000"]).parse::<u64>().unwrap_or(1000);
            let segment = self.one(&["460", "960", "1210"]).parse().unwrap_or(960);
            (kbit * 1000, self.whole(1, 30) * 10_000_000, segment)
        } else {
            (self.whole(200_000, 5_000_000), self.whole(1_000_000, 300_000_000), self.whole(400, 1460))
        };
        let window = if self.feature("small window", 0.25) { self.whole(1, 4) } else { self.whole(5, 50) };
        // so many packets that rounds repeat, in a time that the test has
        let packets = self.number(500.0, 3500.0);
        let bits = segment as f64 * 8.0;
        let per_window = (pairs * window) as f64 * bits / (2e-9 * delay as f64);
        let seconds = (packets * bits / per_window.min(rate as f64)).clamp(4.0, 900.0);
        let length = (seconds * 1e9) as u64;
        // flows begin together, over equal links
        if is_even && pairs > 1 {
            self.features.push("ties");
        }
        Scale { pairs, rate, delay, length, segment, window, is_even, is_calm }
    }

    fn top(&mut self, scale: &Scale) -> String {
        let stop = if self.stops { "stop = \"finished\"\n" } else { "" };
        let mut text = format!("schema = 1\ntitle = \"random\"\nduration = \"{} ns\"\n{stop}", scale.length);
        if self.feature("measure window", 0.3) {
            let (a, b) = (self.time(scale), self.time(scale));
            let links = self.one(&["true", "false"]);
            let (from, to) = (a.min(b), a.max(b) + 1);
            text += &format!("[measure]\nfrom = \"{from} ns\"\nto = \"{to} ns\"\nlinks = {links}\n");
        }
        text
    }

    fn host(&mut self, scale: &Scale) -> String {
        let harsh = if scale.is_calm { 0.0 } else { 1.0 };
        let stack = if self.feature("Linux", 0.2) { "linux" } else { "rfc" };
        let (window, segment) = (scale.window, scale.segment);
        let sizes = format!(
            "[host]\nstack = \"{stack}\"\nwindow = \"{window} segments\"\nsegment = \"{segment} B\"\n"
        );
        if self.feature("defaults", 0.2) {
            self.features.extend(["delayed ACKs", "timestamps"]);
            if stack == "rfc" {
                self.features.push("validation of the window");
            }
            return sizes;
        }
        // not all schemes are modelled as in Linux
        let others = if stack == "rfc" && !scale.is_calm { "vegas" } else { "sack" };
        let tcp = self.one(&["newreno", "sack", "reno", "cubic", "newreno", others]);
        let acks = if self.feature("delayed ACKs", 0.4) {
            self.one(&["true", "{ count = 2, timeout = \"40 ms\" }", "{ count = 3, timeout = \"120 ms\" }"])
        } else {
            "false"
        };
        let stamps = self.feature("timestamps", 0.15);
        let validation = self.one(&["keep", "keep", "restart", "restart", "validate", "validate"]);
        if validation == "validate" {
            self.features.push("validation of the window");
        }
        let ecn = self.feature("ECN", 0.25);
        let more = [
            self.one(&["", "", "", "send_buffer = \"20 kB\"\n"]),
            self.one(&["", "ssthresh = \"window\"\n"]),
            if self.chance(0.2 * harsh) { "pacing = true\n" } else { "" },
            if self.chance(0.1 * harsh) { "jitter = \"1 ms\"\n" } else { "" },
        ];
        format!(
            "{sizes}tcp = \"{tcp}\"\ndelayed_ack = {acks}\ntimestamps = {stamps}\n\
             validation = \"{validation}\"\necn = {ecn}\n{}",
            more.concat()
        )
    }

    /// Each pair has links of its own to two routers; between them is the hop.
    fn links(&mut self, scale: &Scale) -> String {
        let (access, delay) = if scale.is_even {
            (scale.rate * self.whole(1, 8), 1_000_000)
        } else {
            (self.whole(5_000_000, 100_000_000), self.whole(10_000, 3_000_000))
        };
        let mut text = "[[routers]]\nname = \"l\"\n[[routers]]\nname = \"r\"\n".to_owned();
        let mut link = |name: &str, from: &str, to: &str| {
            text += &format!(
                "[[links]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"{access} bit/s\"\n\
                 delay = \"{delay} ns\"\nbuffer = \"1000 packets\"\n"
            );
        };
        for n in 1..=scale.pairs {
            link(&format!("near{n}"), &format!("a{n}"), "l");
            link(&format!("far{n}"), "r", &format!("b{n}"));
        }
        for n in 1..=scale.pairs {
            text += &format!("[[hosts]]\nname = \"a{n}\"\n[[hosts]]\nname = \"b{n}\"\n");
        }
        let all = 2 * scale.pairs * scale.window;
        let buffer = if scale.is_calm { self.whole(all, 2 * all) } else { self.whole(3, all) };
        let forward = self.direction(scale);
        let backward = if self.chance(0.2) { self.direction(scale) } else { String::new() };
        format!(
            "{text}[[links]]\nname = \"hop\"\nfrom = \"l\"\nto = \"r\"\nrate = \"{} bit/s\"\n\
             delay = \"{} ns\"\nbuffer = \"{buffer} packets\"\n[links.forward]\n{forward}[links.backward]\n{backward}",
            scale.rate, scale.delay
        )
    }

    /// What is special about one direction of the hop.
    fn direction(&mut self, scale: &Scale) -> String {
        let mut text = String::new();
        let harsh = if scale.is_calm { 0.0 } else { 1.0 };
        if self.feature("AQM", 0.4 * harsh) {
            let kind = self.one(&["codel", "codel", "fq_codel", "codel", "wred", "threshold", "pushout"]);
            text += &format!("discipline = \"{kind}\"\n");
        } else if self.feature("drop-head", 0.15) {
            text += "discipline = \"drop-head\"\n";
        }
        if self.feature("losses as gaps", 0.25) {
            let loss = self.one(&["3e-4", "1e-3", "3e-3", "1e-2"]);
            text += &format!("loss = {loss}\nloss_draw = \"gap\"\n");
        } else if self.feature("a draw for each packet", 0.3 * harsh) {
            text += self.one(&["loss = 0.002\n", "ber = 1e-7\n"]);
        }
        if self.feature("outages", 0.12) {
            let every = self.whole(scale.length / 8, scale.length / 2);
            let random = self.one(&["true", "false"]);
            text += &format!(
                "outages = {{ every = \"{every} ns\", length = [\"0.2 s\", \"2 s\"], random = {random} }}\n"
            );
        }
        if self.feature("attenuation", 0.12) {
            let step = self.whole(900, 20_000);
            let peak = self.whole(4, 9);
            let (at, end) = (scale.length / 4, scale.length / 2);
            text += &match self.whole(0, 2) {
                0 => format!(
                    "fade = {{ rain = {{ m = 1.0, p0 = 0.6, step = \"{step} ms\", station = \"s\" }}, \
                     acm = {{ clear = \"11.5 dB\" }}, every = \"{step} ms\" }}\n"
                ),
                1 => format!(
                    "fade = {{ profile = [[\"{at} ns\", \"0 dB\"], [\"{end} ns\", \"{peak} dB\"]], \
                     acm = {{ clear = \"11.5 dB\" }}, every = \"{step} ms\" }}\n"
                ),
                _ => format!(
                    "fade = {{ profile = [[\"{at} ns\", \"1 dB\"], [\"{end} ns\", \"{peak} dB\"]], \
                     coding = {{ threshold = \"3 dB\" }}, clear = \"9 dB\", every = \"{step} ms\" }}\n"
                ),
            };
        }
        if self.feature("bursts", 0.05) {
            text += "bursts = { loss = 0.01, burst = \"300 ms\" }\n";
        }
        if self.feature("capacity", 0.06) {
            let (at, rate) = (self.time(scale), scale.rate / self.whole(2, 4));
            text += &format!("capacity = {{ steps = [[\"{at} ns\", \"{rate} bit/s\"]] }}\n");
        }
        if self.feature("moving satellite", 0.05) {
            text += "orbit = { pass = { altitude = \"8062 km\", every = \"2 s\" } }\n";
        }
        match self.whole(0, 9) {
            _ if scale.is_calm => {}
            0 => text += "dama = { free = \"100 kbit/s\" }\n",
            1 => text += "idle_release = { idle = \"0.3 s\", setup = \"0.5 s\" }\n",
            2 => text += "mtu = { size = \"700 B\", longer = \"fragment\" }\n",
            _ => {}
        }
        text
    }

    fn flows(&mut self, scale: &Scale) -> String {
        let mut text = String::new();
        let together = self.time(scale) / 16;
        let mut ends = false;
        let harsh = if scale.is_calm { 0.0 } else { 1.0 };
        let mut flow = |it: &mut Self, name: &str, from: &str, to: &str| {
            let start = if scale.is_even { together } else { it.time(scale) / 8 };
            let app = match it.whole(0, 39) {
                0..=9 => {
                    ends = true;
                    format!("app = {{ transfer = \"{} kB\" }}\n", it.whole(200, 2500))
                }
                10..=13 if scale.is_calm => String::new(),
                10 => "app = { requests = { response = \"20 kB\", think = \"1 s\" } }\n".to_owned(),
                11 => "app = { rate = \"100 kbit/s\" }\n".to_owned(),
                12 => "reader = { rate = \"200 kbit/s\" }\n".to_owned(),
                13 => "app = { udp = { rate = \"50 kbit/s\" } }\n".to_owned(),
                _ => String::new(),
            };
            text += &format!(
                "[[flows]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\nstart = \"{start} ns\"\n{app}"
            );
        };
        for n in 1..=scale.pairs {
            flow(self, &format!("f{n}"), &format!("a{n}"), &format!("b{n}"));
        }
        if self.feature("reverse traffic", 0.25) {
            flow(self, "back", "b1", "a1");
        }
        if ends {
            self.stops = self.chance(0.5);
        } else {
            self.features.push("packets in links at the end");
        }
        if self.feature("gateway", 0.15 * harsh) {
            text += &format!("[[gateways]]\nname = \"g\"\nlink = \"hop\"\nrate = \"{} bit/s\"\n", scale.rate);
        }
        text
    }

    fn changes(&mut self, scale: &Scale) -> String {
        let mut text = String::new();
        if self.features.contains(&"capacity") || !self.feature("timeline", 0.45) {
            return text;
        }
        for n in 0..self.whole(1, 2) {
            // not within an outage of the one before
            let at = self.time(scale) / 2 + n * scale.length / 2;
            let link = self.one(&["hop", "hop", "hop-return"]);
            let (name, change) = match self.whole(0, 5) {
                0 | 1 => {
                    ("change of the rate", format!("rate = \"{} bit/s\"\n", self.whole(150_000, 5_000_000)))
                }
                2 => ("change of the delay", format!("delay = \"{} us\"\n", self.whole(1000, 300_000))),
                3 => ("change of the loss", format!("loss = {}\n", self.one(&["0", "0.01", "0"]))),
                4 => ("change of the buffer", format!("buffer = \"{} packets\"\n", self.whole(2, 60))),
                _ => (
                    "outage at a time",
                    format!("outage = \"{} ms\"\n", self.whole(50, scale.length / 25_000_000)),
                ),
            };
            if !self.features.contains(&name) {
                self.features.push(name);
            }
            text += &format!("[[timeline]]\nat = \"{at} ns\"\nlink = \"{link}\"\n{change}");
        }
        text
    }

    fn watched(&mut self, scale: &Scale) -> String {
        let mut text = String::new();
        if self.feature("instrument", 0.35) {
            let kind = self.one(&["counters", "bins", "side-channel"]);
            let every = scale.length / self.whole(4, 40);
            // a side channel counts whole seconds
            let every = if kind == "side-channel" { every.div_ceil(SECOND) * SECOND } else { every };
            let flow = if kind == "bins" { "flow = \"f1\"\n" } else { "" };
            text += &format!(
                "[[instruments]]\nname = \"i\"\nkind = \"{kind}\"\nlink = \"hop\"\nevery = \"{every} ns\"\n{flow}"
            );
        }
        if self.feature("capture", 0.2 * if scale.is_calm { 0.0 } else { 1.0 }) {
            text += "[[captures]]\nlink = \"hop\"\n";
        }
        text
    }
}
