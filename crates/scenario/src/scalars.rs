//! Reading of single values.

use crate::diagnostic::{Fault, Result, did_you_mean};
use crate::form::{Form, Read, words, wrong};
use crate::measure::Decibel;
use crate::quantity::{self, Dimension};
use crate::types::Stop;
use crate::value::{Kind, Value};
use bentpipe_base::{Duration, Instant, Probability, Rate, Size};
use bentpipe_gateway::Copies;
use bentpipe_link::Capacity;
use bentpipe_tcp::{Detection, EcnUse, JitterKind, Reduction, Scheme, Stack, Standard, Validation};

/// Version of the file format that this crate reads.
pub(crate) const SCHEMA: i128 = 1;
/// Maximum length of a name, in characters.
pub(crate) const MAX_NAME: usize = 64;
/// Maximum length of a text.
const MAX_TEXT: usize = 500;

/// `schema = 1`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version;

/// Free text on one line.
#[derive(Clone, Debug)]
pub(crate) struct Text(pub(crate) String);

/// A name.
#[derive(Clone, Debug)]
pub(crate) struct Name(pub(crate) String);

/// A whole number in `MIN..=MAX`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whole<const MIN: u64, const MAX: u64>(pub(crate) u64);

/// A size, or a number of segments.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Window {
    Bytes(Size),
    Segments(u64),
}

/// A window, or a word in its place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ssthresh {
    Unlimited,
    ReceiveWindow,
    Window(Window),
}

/// A size, or no limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendBuffer(pub(crate) Option<Size>);

/// A switch, or `"answer"`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EcnForm(pub(crate) EcnUse);

/// A number of copies, or `"auto"`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopiesForm(pub(crate) Copies);

/// A margin in decibels; `None` is `"auto"`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MarginForm(pub(crate) Option<Decibel>);

/// Maximum number of copies of a packet.
const MAX_COPIES: u64 = 8;

/// The name of a scheme.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SchemeName(pub(crate) Scheme);

words!(Stop { "duration" => Duration, "finished" => Finished, });
words!(JitterKind { "opportunity" => Opportunity, "packet" => Packet, });
words!(Stack { "rfc" => Rfc, "linux" => Linux, });
words!(Standard { "cubic" => Cubic, "reno" => Reno, });
words!(Validation { "keep" => Keep, "restart" => Restart, "validate" => Validate, });
words!(Detection {
    "reno" => Reno,
    "newreno" => NewReno,
    "vegas" => Vegas,
    "sack" => Sack,
    "rack" => Rack,
});
words!(Reduction { "at-once" => AtOnce, "rate-halving" => RateHalving, "prr" => Prr, "speedy" => Speedy, });

/// Error for a word that is not one of `known`.
pub(crate) fn wrong_word(value: &Value, key: &str, known: &[&str]) -> Fault {
    let allowed = format!("help: it can be {}", known.join(", "));
    match value.text() {
        Some(word) => {
            let hint = did_you_mean(word, known.iter().map(|k| k.trim_matches('"')));
            Fault::new(value.span, format!("`{key}` cannot be \"{}\"", shown(word)), hint).help(allowed)
        }
        None => wrong(value, key, "a word in quotes").help(allowed),
    }
}

/// User text for an error message, truncated if it is long.
pub(crate) fn shown(text: &str) -> String {
    let cut: String = text.chars().take(MAX_NAME).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if cut.len() < text.len() { cut + "..." } else { cut }
}

impl Read for Version {
    const FORM: Form = Form::Version;

    fn read(value: &Value, key: &str) -> Result<Self> {
        match value.kind {
            Kind::Integer(SCHEMA) => Ok(Self),
            Kind::Integer(n) => Err(Fault::new(
                value.span,
                format!("schema {n} is not known"),
                format!("this program reads schema {SCHEMA}"),
            )),
            _ => Err(wrong(value, key, "the version of the file format")
                .help(format!("help: write schema = {SCHEMA}"))),
        }
    }
}

impl Read for Text {
    const FORM: Form = Form::Text;

    fn read(value: &Value, key: &str) -> Result<Self> {
        let text = value.text().ok_or_else(|| wrong(value, key, "text in quotes"))?;
        if text.len() > MAX_TEXT {
            let label = format!("the limit is {MAX_TEXT} bytes");
            return Err(Fault::new(value.span, format!("`{key}` is too long"), label));
        }
        if text.chars().any(char::is_control) {
            return Err(Fault::new(
                value.span,
                format!("`{key}` is one line of text"),
                "it holds a control character",
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

impl Read for Name {
    const FORM: Form = Form::Name;

    fn read(value: &Value, key: &str) -> Result<Self> {
        let name = value.text().ok_or_else(|| wrong(value, key, "a name in quotes"))?;
        let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let label = match name {
            "" => "a name has at least one character".to_owned(),
            _ if name.len() > MAX_NAME => format!("the limit is {MAX_NAME} characters"),
            _ => match name.chars().find(|c| !fine(*c)) {
                Some(' ') => "a space is not allowed".to_owned(),
                Some(c) => format!("`{}` is not allowed", c.escape_default()),
                None => return Ok(Self(name.to_owned())),
            },
        };
        Err(Fault::new(value.span, format!("`{key}` is not a name"), label)
            .help("help: names are made of letters a-z and A-Z, digits, `-`, `_` and `.`"))
    }
}

impl<const MIN: u64, const MAX: u64> Read for Whole<MIN, MAX> {
    const FORM: Form = Form::Whole(MIN, MAX);

    fn read(value: &Value, key: &str) -> Result<Self> {
        let number = match &value.kind {
            Kind::Integer(n) => Some(*n),
            Kind::Raw(text) => text.trim().parse().ok(),
            _ => None,
        };
        let Some(number) = number else {
            let quoted = matches!(&value.kind, Kind::Text(t) if t.trim().parse::<i128>().is_ok());
            let hint = quoted.then(|| "help: write it without quotes".to_owned());
            return Err(wrong(value, key, "a whole number").maybe(hint));
        };
        match u64::try_from(number) {
            Ok(n) if (MIN..=MAX).contains(&n) => Ok(Self(n)),
            _ if number < i128::from(MIN) => {
                Err(Fault::new(value.span, format!("`{key}` is too small"), format!("at least {MIN}")))
            }
            _ => Err(Fault::new(value.span, format!("`{key}` is too large"), format!("at most {MAX}"))),
        }
    }
}

impl Read for f64 {
    const FORM: Form = Form::Number;

    fn read(value: &Value, key: &str) -> Result<Self> {
        let number = match &value.kind {
            Kind::Integer(n) => Some(*n as Self),
            Kind::Number(n) => Some(*n),
            Kind::Raw(text) => text.trim().parse().ok(),
            _ => None,
        };
        match number {
            Some(n) if n.is_finite() => Ok(n),
            Some(_) => Err(Fault::new(value.span, format!("`{key}` must be finite"), "")),
            None => {
                let quoted = matches!(&value.kind, Kind::Text(t) if t.trim().parse::<Self>().is_ok());
                let hint = quoted.then(|| "help: write it without quotes".to_owned());
                Err(wrong(value, key, "a number without a unit").maybe(hint))
            }
        }
    }
}

impl Read for Probability {
    const FORM: Form = Form::Probability;

    fn read(value: &Value, key: &str) -> Result<Self> {
        if let Some(percent) = value.text().and_then(|t| t.trim().strip_suffix('%')) {
            let hint =
                percent.trim().parse::<f64>().map_or(String::new(), |p| format!("write {}", p / 100.0));
            return Err(Fault::new(value.span, format!("`{key}` is a bare number between 0 and 1"), hint));
        }
        let number = f64::read(value, key)?;
        Self::new(number).ok_or_else(|| {
            let label = if number < 0.0 { "less than 0" } else { "greater than 1" };
            Fault::new(value.span, format!("`{key}` is a probability between 0 and 1"), label)
        })
    }
}

impl Read for bool {
    const FORM: Form = Form::Switch;

    fn read(value: &Value, key: &str) -> Result<Self> {
        match (&value.kind, value.text()) {
            (Kind::Switch(on), _) => Ok(*on),
            (_, Some("on" | "true")) => Ok(true),
            (_, Some("off" | "false")) => Ok(false),
            _ => Err(wrong(value, key, "a switch").help("help: write true or false, \"on\" or \"off\"")),
        }
    }
}

impl Read for Rate {
    const FORM: Form = Form::Quantity(&quantity::RATE);

    fn read(value: &Value, key: &str) -> Result<Self> {
        let (bps, _) = quantity::RATE.read(value, key)?;
        Self::from_bps(bps)
            .ok_or_else(|| Fault::new(value.span, format!("`{key}` must be more than zero"), ""))
    }
}

impl Read for Duration {
    const FORM: Form = Form::Quantity(&quantity::TIME);

    fn read(value: &Value, key: &str) -> Result<Self> {
        quantity::TIME.read(value, key).map(|(ns, _)| Self(ns))
    }
}

impl Read for Instant {
    const FORM: Form = Form::Quantity(&quantity::TIME);

    fn read(value: &Value, key: &str) -> Result<Self> {
        quantity::TIME.read(value, key).map(|(ns, _)| Self(ns))
    }
}

impl Read for Size {
    const FORM: Form = Form::Quantity(&quantity::SIZE);

    fn read(value: &Value, key: &str) -> Result<Self> {
        quantity::SIZE.read(value, key).map(|(bytes, _)| Self(bytes))
    }
}

impl Read for Window {
    const FORM: Form = Form::Quantity(&quantity::WINDOW);

    fn read(value: &Value, key: &str) -> Result<Self> {
        match quantity::WINDOW.read(value, key)? {
            (n, Dimension::Pieces) => Ok(Self::Segments(n)),
            (n, _) => Ok(Self::Bytes(Size(n))),
        }
    }
}

impl Read for Capacity {
    const FORM: Form = Form::Quantity(&quantity::BUFFER);

    fn read(value: &Value, key: &str) -> Result<Self> {
        match quantity::BUFFER.read(value, key)? {
            (n, Dimension::Pieces) => u32::try_from(n).map(Self::Packets).map_err(|_| {
                Fault::new(
                    value.span,
                    format!("`{key}` is too large"),
                    format!("the limit is {} packets", u32::MAX),
                )
            }),
            (n, _) => Ok(Self::Bytes(Size(n))),
        }
    }
}

impl Read for Ssthresh {
    const FORM: Form = Form::Either(&[Form::Words(&["unlimited", "window"]), Window::FORM]);

    fn read(value: &Value, key: &str) -> Result<Self> {
        match value.text() {
            Some("unlimited") => Ok(Self::Unlimited),
            Some("window") => Ok(Self::ReceiveWindow),
            _ => Window::read(value, key).map(Self::Window).map_err(|fault| {
                fault.help("help: or \"unlimited\", or \"window\" for the receiver's window")
            }),
        }
    }
}

impl Read for SendBuffer {
    const FORM: Form = Form::Either(&[Form::Words(&["unlimited"]), Size::FORM]);

    fn read(value: &Value, key: &str) -> Result<Self> {
        match value.text() {
            Some("unlimited") => Ok(Self(None)),
            _ => match Size::read(value, key).map_err(|fault| fault.help("help: or \"unlimited\""))? {
                Size(0) => Err(Fault::new(value.span, format!("`{key}` must be more than zero"), "")),
                size => Ok(Self(Some(size))),
            },
        }
    }
}

impl Read for EcnForm {
    const FORM: Form = Form::Either(&[bool::FORM, Form::Words(&["answer"])]);

    fn read(value: &Value, key: &str) -> Result<Self> {
        if value.text() == Some("answer") {
            return Ok(Self(EcnUse::Answer));
        }
        bool::read(value, key)
            .map(|on| Self(if on { EcnUse::Ask } else { EcnUse::Off }))
            .map_err(|fault| fault.help("help: or \"answer\": agreed to where the other end asks"))
    }
}

impl Read for CopiesForm {
    const FORM: Form = Form::Either(&[Form::Words(&["auto"]), Form::Whole(1, MAX_COPIES)]);

    fn read(value: &Value, key: &str) -> Result<Self> {
        if value.text() == Some("auto") {
            return Ok(Self(Copies::Auto));
        }
        Whole::<1, MAX_COPIES>::read(value, key)
            .map(|n| Self(Copies::Fixed(n.0 as u8)))
            .map_err(|fault| fault.help("help: or \"auto\": as many as pay"))
    }
}

impl Read for MarginForm {
    const FORM: Form = Form::Either(&[Form::Words(&["auto"]), Decibel::FORM]);

    fn read(value: &Value, key: &str) -> Result<Self> {
        if value.text() == Some("auto") {
            return Ok(Self(None));
        }
        Decibel::read(value, key)
            .map(|db| Self(Some(db)))
            .map_err(|fault| fault.help("help: or \"auto\": as much as the fade needs"))
    }
}

impl Read for SchemeName {
    const FORM: Form = Form::Words(&Scheme::NAMES);

    fn read(value: &Value, key: &str) -> Result<Self> {
        value.text().and_then(Scheme::named).map(Self).ok_or_else(|| {
            let names: Vec<&str> = Scheme::all().map(|scheme| scheme.name).collect();
            wrong_word(value, key, &names)
        })
    }
}
