//! Changes of a running link, as given to `bentpipe link set`. Values are read like the keys of a timeline.

use crate::diagnostic::{Diagnostic, Fault, Result, did_you_mean, listed};
use crate::form::{At, Read};
use crate::scalars::excerpt;
use crate::source::{Source, Sources, Span};
use crate::value::{Kind, Value};
use bentpipe_base::Duration;
use bentpipe_link::Change;

/// Properties that can be changed.
const KEYS: [&str; 6] = ["rate", "delay", "buffer", "loss", "ber", "up"];
const MAX_WORD: usize = 4096;

/// Reads `KEY=VALUE` words: `rate=5Mbit/s`, `delay=300ms`, `buffer=50packets`, `loss=1e-3`, `ber=1e-7`,
/// `up=off`.
///
/// # Errors
/// The first invalid word, with the wrong part underlined.
pub fn parse_change(words: &[String]) -> core::result::Result<Change, Box<Diagnostic>> {
    let file = Source::new("command line", "");
    read(words).map_err(|fault| fault.into_diagnostic(&Sources::of_words(&file, words)))
}

/// Reads a duration greater than zero, for `bentpipe link outage`.
///
/// # Errors
/// The reason why the word is invalid.
pub fn parse_outage_length(word: &str) -> core::result::Result<Duration, Box<Diagnostic>> {
    let file = Source::new("command line", "");
    let words = [word.to_owned()];
    let value = Value { span: Span::word(0, 0..word.len()), kind: Kind::Raw(word.trim().to_owned()) };
    let read = match word.trim().parse::<f64>() {
        _ if word.len() > MAX_WORD => Err(too_long(0)),
        // both are usual lengths of outages
        Ok(number) if number >= 0.0 => {
            let label = format!("write {number}s or {number}ms");
            Err(Fault::new(value.span, "`outage` needs a unit", label))
        }
        _ => Duration::read(&value, "outage"),
    };
    read.and_then(|length| At { value: length, span: value.span }.positive("outage"))
        .map_err(|fault| fault.into_diagnostic(&Sources::of_words(&file, &words)))
}

fn too_long(word: usize) -> Fault {
    Fault::new(Span::word(word, 0..1), "this is too long", format!("the limit is {MAX_WORD} bytes"))
}

fn read(words: &[String]) -> Result<Change> {
    let mut change = Change::default();
    let mut given: Vec<&str> = Vec::new();
    for (n, word) in words.iter().enumerate() {
        if word.len() > MAX_WORD {
            return Err(too_long(n));
        }
        let Some((key, text)) = word.split_once('=') else {
            let label = "write it as KEY=VALUE, loss=1e-3 for instance";
            return Err(Fault::new(Span::word(n, 0..word.len()), "this is no change", label).help(allowed()));
        };
        let at = Span::word(n, 0..key.len());
        if given.contains(&key) {
            return Err(Fault::new(at, format!("`{}` is given twice", excerpt(key)), ""));
        }
        given.push(key);
        let kind = Kind::Raw(text.trim().to_owned());
        let value = Value { span: Span::word(n, key.len() + 1..word.len()), kind };
        set_property(&mut change, key, &value, at)?;
    }
    Ok(change)
}

fn set_property(change: &mut Change, key: &str, value: &Value, at: Span) -> Result<()> {
    match key {
        "rate" => change.rate = Some(Read::read(value, key)?),
        "delay" => change.delay = Some(Read::read(value, key)?),
        "buffer" => change.buffer = Some(Read::read(value, key)?),
        "loss" => change.loss = Some(Read::read(value, key)?),
        "ber" => change.ber = Some(Read::read(value, key)?),
        "up" => change.up = Some(Read::read(value, key)?),
        _ => {
            let hint = match key {
                "rtt" => "a direction has a one-way `delay`; the round trip is the sum of both".to_owned(),
                "outage" => "an outage is `bentpipe link outage 5s`".to_owned(),
                _ => did_you_mean(key, KEYS),
            };
            return Err(Fault::new(at, format!("unknown key `{}`", excerpt(key)), hint).help(allowed()));
        }
    }
    Ok(())
}

fn allowed() -> String {
    format!("help: keys: {}", listed(KEYS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::{Probability, Rate, Size};
    use bentpipe_link::Capacity;

    fn read(words: &[&str]) -> core::result::Result<Change, String> {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        parse_change(&words).map_err(|d| d.to_string())
    }

    #[test]
    fn values_have_the_units_of_scenario_files() {
        let all = ["rate=5Mbit/s", "delay=300 ms", "buffer=50packets", "loss=1e-3", "ber=0", "up=off"];
        let wanted = Change {
            rate: Rate::from_bps(5_000_000),
            delay: Some(Duration::from_millis(300)),
            buffer: Some(Capacity::Packets(50)),
            loss: Probability::new(1e-3),
            ber: Some(Probability::ZERO),
            up: Some(false),
        };
        assert_eq!(read(&all), Ok(wanted));
        let buffer = Some(Capacity::Bytes(Size(64_000)));
        assert_eq!(read(&["buffer=64 kB"]), Ok(Change { buffer, ..Change::default() }));
        assert_eq!(parse_outage_length("5s"), Ok(Duration::from_secs(5)));
    }

    #[test]
    fn what_is_wrong_is_underlined() {
        for (words, wanted) in [
            (
                &["delay=5ms", "lost=1e-3"][..],
                "unknown key `lost`\n --> command line:1:1\n  |\n1 | lost=1e-3\n  | ^^^^ did you mean `loss`?\n  = help: keys: rate, delay, buffer, loss, ber, up",
            ),
            (
                &["rate=5MB"],
                "`rate` has an unknown unit, `MB`\n --> command line:1:6\n  |\n1 | rate=5MB\n  |      ^^^ it could be megabits or megabytes: write \"5 Mbit/s\" for 10^6 bit/s\n  = help: units: bit/s, kbit/s, Mbit/s, Gbit/s",
            ),
            (
                &["loss=1 %"],
                "`loss` is a bare number between 0 and 1\n --> command line:1:6\n  |\n1 | loss=1 %\n  |      ^^^ write 0.01",
            ),
            (
                &["loss=0.1", "loss=0.2"],
                "`loss` is given twice\n --> command line:1:1\n  |\n1 | loss=0.2\n  | ^^^^",
            ),
            (
                &["down"],
                "this is no change\n --> command line:1:1\n  |\n1 | down\n  | ^^^^ write it as KEY=VALUE, loss=1e-3 for instance\n  = help: keys: rate, delay, buffer, loss, ber, up",
            ),
        ] {
            assert_eq!(read(words), Err(wanted.to_owned()));
        }
        assert!(read(&["rtt=1 s"]).unwrap_err().contains("one-way `delay`"));
        assert!(read(&["rate=0 bit/s"]).unwrap_err().contains("more than zero"));
        let said = |word: &str| parse_outage_length(word).unwrap_err().to_string();
        assert!(said("0s").contains("more than zero") && said("5").contains("needs a unit"));
        assert!(said(" 2").contains("write 2s or 2ms") && said("0.5").contains("write 0.5s or 0.5ms"));
        assert!(said("-5s").contains("negative") && said(&"9".repeat(5000)).contains("too long"));
    }
}
