//! Parses a script: a header of `key: value` lines, an empty line, and then the dialogue, one event or
//! expectation per line.

use crate::segment::{Text, place};
use crate::settings::{Profile, Setting};
use bentpipe_tcp::Icmp;

/// An error in a script, or a difference between script and engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    line: usize,
    what: String,
}

impl Fault {
    /// An error without a line number yet.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { line: 0, what: what.into() }
    }

    pub(crate) fn on(self, line: usize) -> Self {
        Self { line, ..self }
    }

    /// The message with the name of the script.
    pub(crate) fn at(&self, name: &str) -> String {
        format!("{name}:{}: {}", self.line, self.what)
    }
}

/// State at the start of the dialogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// No connection: the script opens it.
    Nothing,
    /// Open at 100 ms after a handshake of 100 ms.
    Open,
    /// The same, with this many segments sent at 100 ms, much more data written, and the clock at 200 ms.
    Flying(u32),
}

/// The action of a line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Act {
    /// Opens actively.
    Connect,
    /// The peer's SYN arrives at a listener.
    Listen(Text),
    /// Segments arrive.
    Arrives(Text),
    /// An ICMP message arrives that quotes our segment at a position.
    Hears { quoted: u64, said: Icmp, unmoved: bool },
    /// Segments leave.
    Leaves(Text),
    /// Segments sent so far are not checked.
    Anything,
    /// Time passes; if `true`, nothing may change.
    Wait(bool),
    /// A call of the application, with its number of bytes.
    Verb(&'static str, u64),
    /// Expected values now.
    Is(Vec<(String, String)>),
}

/// One line of the dialogue.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) number: usize,
    /// The profile to which it is limited, if any.
    pub(crate) only: Option<Profile>,
    /// Microseconds since the start, per profile.
    at: [u64; 2],
    pub(crate) act: Act,
}

/// A script.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) title: String,
    pub(crate) profiles: Vec<Profile>,
    pub(crate) negative: bool,
    pub(crate) settings: Vec<Setting>,
    pub(crate) start: Start,
    pub(crate) lines: Vec<Line>,
}

/// Calls of the application, and whether a number of bytes follows.
const VERBS: [(&str, bool); 4] = [("write", true), ("read", true), ("close", false), ("abort", false)];

impl Script {
    pub(crate) fn parse(text: &str) -> Result<Self, Fault> {
        let mut lines = text.lines().enumerate().map(|(i, line)| (i + 1, line));
        let header = Header::parse(&mut lines)?;
        let mut clock = [header.begins(); 2];
        let mut script = header.script()?;
        for (number, line) in lines {
            let line = line.split_once('#').map_or(line, |(before, _)| before).trim();
            if !line.is_empty() {
                let line = Line::parse(number, line, &mut clock).map_err(|f| f.on(number))?;
                script.lines.push(line);
            }
        }
        if script.lines.is_empty() {
            return Err(Fault::new("nothing happens in it: the dialogue is missing"));
        }
        let unmoved = |line: &Line| match &line.act {
            Act::Arrives(text) => text.unmoved,
            Act::Hears { unmoved, .. } | Act::Wait(unmoved) => *unmoved,
            _ => false,
        };
        if script.negative != script.lines.iter().any(unmoved) {
            let says = if script.negative { "yes, but no line says" } else { "no, but a line says" };
            return Err(Fault::new(format!("`negative` is {says} `unmoved`")));
        }
        Ok(script)
    }
}

/// Header values by key, with their lines.
struct Header<'a> {
    values: Vec<(usize, &'a str, &'a str)>,
    end: usize,
}

const KEYS: [&str; 8] = ["title", "holds", "profiles", "negative", "guards", "mutant", "set", "start"];

impl<'a> Header<'a> {
    fn parse(lines: &mut impl Iterator<Item = (usize, &'a str)>) -> Result<Self, Fault> {
        let mut header = Self { values: Vec::new(), end: 0 };
        for (number, line) in lines {
            header.end = number;
            let line = line.trim();
            if line.is_empty() {
                break;
            }
            let Some((key, value)) = line.split_once(':').filter(|(key, _)| KEYS.contains(key)) else {
                let known = KEYS.join(", ");
                return Err(
                    Fault::new(format!("`{line}` is no line of a header; its keys are {known}")).on(number)
                );
            };
            if header.values.iter().any(|v| v.1 == key) {
                return Err(Fault::new(format!("`{key}` is there twice")).on(number));
            }
            header.values.push((number, key, value.trim()));
        }
        Ok(header)
    }

    /// The value of a key, and its line.
    fn find(&self, key: &str) -> Option<(usize, &'a str)> {
        self.values.iter().find(|v| v.1 == key).map(|v| (v.0, v.2))
    }

    fn need(&self, key: &str) -> Result<(usize, &'a str), Fault> {
        let value = self.find(key).filter(|(_, value)| !value.is_empty());
        value.ok_or_else(|| Fault::new(format!("the header has no `{key}`")).on(self.end))
    }

    fn start(&self) -> Result<Start, Fault> {
        let (line, value) = self.find("start").unwrap_or((self.end, "open"));
        match value.split_once(' ') {
            None if value == "nothing" => Ok(Start::Nothing),
            None if value == "open" => Ok(Start::Open),
            Some(("flying", n)) if n.parse::<u32>().is_ok_and(|n| n > 0) => {
                Ok(Start::Flying(n.parse().unwrap_or(1)))
            }
            _ => Err(Fault::new(format!("`start: {value}`: it is nothing, open, or flying N")).on(line)),
        }
    }

    /// Start of the dialogue in microseconds.
    fn begins(&self) -> u64 {
        match self.start() {
            Ok(Start::Open) => 100_000,
            Ok(Start::Flying(_)) => 200_000,
            _ => 0,
        }
    }

    fn script(&self) -> Result<Script, Fault> {
        let (line, holds) = self.need("holds")?;
        if !holds.starts_with("RFC ") && !holds.starts_with("Linux ") {
            return Err(Fault::new(format!("`holds: {holds}` names no RFC and no habit of Linux")).on(line));
        }
        let (line, guards) = self.need("guards")?;
        let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(guards);
        if !source.is_file() {
            return Err(Fault::new(format!("there is no file src/{guards}")).on(line));
        }
        self.need("mutant")?;
        let (line, negative) = self.need("negative")?;
        let negative = match negative {
            "yes" => true,
            "no" => false,
            other => return Err(Fault::new(format!("`negative: {other}`: it is yes or no")).on(line)),
        };
        let (line, profiles) = self.need("profiles")?;
        let profiles = profiles.split(", ").map(Profile::named).collect::<Result<_, _>>();
        let (at, settings) = self.find("set").unwrap_or((0, ""));
        let settings = settings.split(", ").filter(|s| !s.is_empty()).map(Setting::parse);
        Ok(Script {
            title: self.need("title")?.1.to_owned(),
            profiles: profiles.map_err(|f| f.on(line))?,
            negative,
            settings: settings.collect::<Result<_, _>>().map_err(|f| f.on(at))?,
            start: self.start()?,
            lines: Vec::new(),
        })
    }
}

impl Line {
    /// Microseconds since the start.
    pub(crate) const fn at(&self, profile: Profile) -> u64 {
        self.at[profile as usize]
    }

    pub(crate) fn is_for(&self, profile: Profile) -> bool {
        self.only.is_none_or(|only| only == profile)
    }

    /// Parses a line. `clock` is the present time of each profile, used if the line has no time.
    fn parse(number: usize, line: &str, clock: &mut [u64; 2]) -> Result<Self, Fault> {
        let (only, line) = match line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((profile, rest)) => (Some(Profile::named(profile)?), rest.trim_start()),
            None => (None, line),
        };
        let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let (later, at, act) = match first.strip_prefix('+') {
            Some(later) => (micros(later)?, None, rest),
            None if first.starts_with(|c: char| c.is_ascii_digit()) => (0, Some(micros(first)?), rest),
            None => (0, None, line),
        };
        for profile in Profile::ALL.into_iter().filter(|p| only.is_none_or(|only| only == *p)) {
            let now = &mut clock[profile as usize];
            if at.is_some_and(|at| at < *now) {
                return Err(Fault::new(format!("{first} ms is before a line above: dialogues go forward")));
            }
            *now = at.unwrap_or(*now + later);
        }
        Ok(Self { number, only, at: *clock, act: Act::parse(act.trim_start())? })
    }
}

/// Converts milliseconds with up to three decimals to microseconds.
fn micros(text: &str) -> Result<u64, Fault> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let bad = || Fault::new(format!("`{text}` is no time in milliseconds"));
    if part.len() > 3 {
        return Err(bad());
    }
    let (whole, part): (u64, u64) =
        (whole.parse().map_err(|_| bad())?, format!("{part:0<3}").parse().map_err(|_| bad())?);
    Ok(whole * 1000 + part)
}

impl Act {
    fn parse(text: &str) -> Result<Self, Fault> {
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim();
        match word {
            "<" if rest.starts_with("icmp ") => hears(&rest["icmp ".len()..]),
            "<" => Ok(Self::Arrives(Text::parse(rest)?)),
            ">" if rest == "..." => Ok(Self::Anything),
            ">" => {
                let text = Text::parse(rest)?;
                if text.unmoved {
                    return Err(Fault::new("`unmoved` is said of what arrives"));
                }
                Ok(Self::Leaves(text))
            }
            "=" => Ok(Self::Is(rest.split(", ").map(is).collect::<Result<_, _>>()?)),
            "connect" if rest.is_empty() => Ok(Self::Connect),
            "listen" => Ok(Self::Listen(Text::parse(rest)?)),
            "wait" if rest.is_empty() || rest == "unmoved" => Ok(Self::Wait(rest == "unmoved")),
            _ => match VERBS.iter().find(|v| v.0 == word) {
                Some((verb, true)) => Ok(Self::Verb(verb, place(rest)?)),
                Some((verb, false)) if rest.is_empty() => Ok(Self::Verb(verb, 0)),
                _ => Err(Fault::new(format!(
                    "`{text}`: a line is <, >, =, connect, listen, wait, write, read, close or abort"
                ))),
            },
        }
    }
}

/// Parses the text after `< icmp`.
fn hears(text: &str) -> Result<Act, Fault> {
    let words: Vec<_> = text.split_whitespace().collect();
    let (words, unmoved) = match words.as_slice() {
        [words @ .., "unmoved"] => (words, true),
        words => (words, false),
    };
    let (quoted, said) = match words {
        [at, "unreachable"] => (place(at)?, Icmp::Unreachable { hard: false }),
        [at, "unreachable-hard"] => (place(at)?, Icmp::Unreachable { hard: true }),
        [at, "too-big", segment] => {
            let segment = place(segment)?.try_into();
            let segment =
                segment.map_err(|_| Fault::new(format!("`icmp {text}`: no segment is that long")))?;
            (place(at)?, Icmp::TooBig { segment })
        }
        _ => {
            return Err(Fault::new(format!(
                "`icmp {text}`: it is POSITION too-big BYTES, unreachable or unreachable-hard"
            )));
        }
    };
    Ok(Act::Hears { quoted, said, unmoved })
}

fn is(text: &str) -> Result<(String, String), Fault> {
    let (key, value) = text
        .trim()
        .split_once(' ')
        .ok_or_else(|| Fault::new(format!("`{text}`: `=` wants pairs like `cwnd 5000`")))?;
    Ok((key.to_owned(), value.trim().to_owned()))
}
