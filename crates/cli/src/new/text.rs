//! The text of a new scenario.

use super::New;
use bentpipe_base::{Duration, Rate};
use bentpipe_emulate::named::bandwidth_delay;
use bentpipe_scenario::{Dimension, parse_amount};
use core::fmt::Write as _;
use std::path::Path;

const SCHEME: &str = "cubic";
/// A link without a name has these unless they are given.
const RATE: &str = "10 Mbit/s";
const RTT: &str = "600 ms";

/// Returns the file; with `given`, the values of the options are in it, otherwise usual ones.
pub(super) fn text(new: &New, given: bool) -> String {
    let mut out = comment(new);
    let _ = writeln!(out, "schema = 1\ntitle = {}\nduration = \"$duration\"", quoted(&title(new)));
    if new.size.is_some() {
        out += "# the run ends when all files have arrived\nstop = \"finished\"\n";
    }
    out += "\n# Values that --set changes, as in --set duration='10 s', and that a sweep can have as axes.\n[parameters]\n";
    for (name, usual, doc) in parameters(new) {
        let own = new.values().into_iter().find(|(n, _)| given && *n == name).map(|(_, value)| value);
        let own = own.or_else(|| new.tcp.first().filter(|_| given && name == "tcp").map(String::as_str));
        let _ = writeln!(out, "{name} = {{ default = {}, doc = \"{doc}\" }}", value(own.unwrap_or(&usual)));
    }
    out += &network(new);
    if !new.is_mixed() {
        out += "\n# TCP options of both ends; the reference of scenario files lists all.\n[host]\ntcp = \"$tcp\"\n";
    }
    for scheme in new.schemes() {
        out += &flows(new, scheme);
    }
    out
}

impl New {
    fn schemes(&self) -> Vec<&str> {
        if self.tcp.is_empty() { vec![SCHEME] } else { self.tcp.iter().map(String::as_str).collect() }
    }

    /// True if several schemes share the link.
    fn is_mixed(&self) -> bool {
        self.tcp.len() > 1
    }
}

/// The path as a word for a shell.
pub(super) fn word(file: &Path) -> String {
    if file == Path::new("-") { "FILE".to_owned() } else { crate::progress::quoted(&file.to_string_lossy()) }
}

fn comment(new: &New) -> String {
    let file = word(&new.file);
    let axis = if new.is_mixed() { "flows=1,2,4" } else { "tcp=cubic,bbr,hybla" };
    let lines = [
        (format!("check {file}"), "every key with its default"),
        (format!("sim {file} --out results/"), "a page with pictures"),
        (format!("sweep {file} --axis {axis} --out sweep/"), "tables and curves"),
        (format!("emulate {file}"), "the same flows with real packets"),
        (format!("emulate {file} -- COMMAND"), "a program behind this network"),
    ];
    let width = lines.iter().map(|(line, _)| line.len()).max().unwrap_or(0);
    let mut out = format!("# {}\n#\n", title(new).replace(['\n', '\r'], " "));
    for (command, what) in lines {
        let _ = writeln!(out, "#   bentpipe {command:width$}  # {what}");
    }
    out
}

fn title(new: &New) -> String {
    let link = match new.named() {
        Some(name) => name.to_owned(),
        None => {
            format!("{}, {}", new.rate.as_deref().unwrap_or(RATE), new.rtt.as_deref().unwrap_or(RTT))
        }
    };
    let what = if new.size.is_some() { "files" } else { "downloads" };
    new.title.clone().unwrap_or_else(|| format!("{link}: {what} with {}", new.schemes().join(" beside ")))
}

/// Name, usual value and meaning of the parameters that the file has.
fn parameters(new: &New) -> Vec<(&'static str, String, &'static str)> {
    let own = new.named().is_none();
    let mut all = Vec::new();
    let mut add = |name, is_there: bool, usual: &str, doc| {
        if is_there {
            all.push((name, usual.to_owned(), doc));
        }
    };
    add("link", !own, "geo-10m", "a named link: bentpipe links lists them");
    add("rate", own || new.rate.is_some(), RATE, "rate of the hop in the direction of the data");
    add("return_rate", new.return_rate.is_some(), RATE, "rate of the way back");
    add("rtt", own || new.rtt.is_some(), RTT, "round trip without queues");
    add("loss", own || new.loss.is_some(), "0.0", "probability that the hop loses a packet of the data");
    let buffer = new.buffer.is_some() || own || new.rate.is_some() || new.rtt.is_some();
    let product = in_a_round_trip(new).unwrap_or_else(|| "100 packets".to_owned());
    add("buffer", buffer, &product, "queue before the hop, in packets or bytes");
    add("queue", new.queue.is_some(), "fifo", "discipline of that queue");
    add("tcp", !new.is_mixed(), SCHEME, "congestion control: cubic, bbr, hybla and others, see the manual");
    let each = if new.is_mixed() { "connections of each scheme" } else { "connections" };
    add("flows", true, "1", each);
    add("size", new.size.is_some(), "1 MB", "bytes that each connection transfers");
    let duration = if new.size.is_some() { "1000 s" } else { "60 s" };
    add("duration", true, duration, "length of the run, at most");
    all
}

/// What the rate carries in a round trip, as a queue.
fn in_a_round_trip(new: &New) -> Option<String> {
    let profile = new.profile();
    let amount = |text: &str, of| parse_amount(text).ok().filter(|a| a.dimension == of).map(|a| a.value);
    let rate = match (&new.rate, profile) {
        (None, Some(profile)) => profile.forward.rate,
        (rate, _) => Rate::from_bps(amount(rate.as_deref().unwrap_or(RATE), Dimension::Rate)? as u64)?,
    };
    let rtt = match (&new.rtt, profile) {
        (None, Some(profile)) => profile.forward.delay + profile.backward.delay,
        (rtt, _) => {
            let seconds = amount(rtt.as_deref().unwrap_or(RTT), Dimension::Time)?;
            Duration((seconds * 1e9) as u64)
        }
    };
    Some(bandwidth_delay(rate, rtt).to_string())
}

fn network(new: &New) -> String {
    let mut out = "\n# Hosts src1, src2, ... before a satellite hop called `bottleneck`, and dst1, dst2, ... behind it.\n[dumbbell]\npairs = \"$flows\"\n".to_owned();
    if let Some(profile) = new.profile() {
        let _ = writeln!(
            out,
            "# {}; round trip {}. Keys beside it replace its own.",
            profile.summary, profile.rtt
        );
    }
    let keys = [
        ("profile", "link"),
        ("rate", "rate"),
        ("rtt", "rtt"),
        ("buffer", "buffer"),
        ("discipline", "queue"),
        ("loss", "loss"),
    ];
    let there: Vec<&str> = parameters(new).iter().map(|p| p.0).collect();
    for (key, parameter) in keys.into_iter().filter(|(_, parameter)| there.contains(parameter)) {
        let _ = writeln!(out, "{key} = \"${parameter}\"");
    }
    if new.return_rate.is_some() {
        out += "return = { rate = \"$return_rate\" }\n";
    }
    out += "# the hosts' own links, which limit nothing\naccess = { rate = \"10 Gbit/s\", delay = \"100 us\", buffer = \"100000 packets\" }\n";
    out
}

fn flows(new: &New, scheme: &str) -> String {
    let name = if new.is_mixed() { scheme } else { "flow" };
    let mut out =
        format!("\n[[flows]]\nname = {}\ncount = \"$flows\"\nfrom = \"src\"\nto = \"dst\"\n", quoted(name));
    if new.is_mixed() {
        let _ = writeln!(out, "tcp = {}", quoted(scheme));
    }
    if new.size.is_some() {
        out += "app = { transfer = \"$size\" }\n";
    }
    out += "# not all in the same instant\nstart = { from = \"0 s\", to = \"100 ms\" }\n";
    out
}

/// A value in TOML: numbers are bare, with the digits that TOML wants.
fn value(text: &str) -> String {
    let text = text.trim();
    let is_number = text.chars().all(|c| c.is_ascii_digit() || "+-.eE".contains(c));
    match (text.parse::<i64>(), text.parse::<f64>()) {
        (Ok(whole), _) => whole.to_string(),
        (_, Ok(number)) if is_number && number.is_finite() => format!("{number:?}"),
        _ => quoted(text),
    }
}

/// A text in TOML, whose escapes are those of JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_toml() {
        for (text, toml) in [
            ("1e-3", "0.001"),
            ("1e-5", "1e-5"),
            ("4", "4"),
            (" 0.5 ", "0.5"),
            ("04", "4"),
            (".5", "0.5"),
            ("1.", "1.0"),
            ("10 Mbit/s", "\"10 Mbit/s\""),
            ("a\"b\n", "\"a\\\"b\""),
        ] {
            assert_eq!(value(text), toml);
        }
    }
}
