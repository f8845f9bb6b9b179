//! Reads single values.

use crate::diagnostic::{Fault, Result, bail, did_you_mean, fault, shortened};
use crate::form::{Form, Keys, Read, read_words, required, words, wrong};
use crate::measure::Decibel;
use crate::quantity::{self, Dimension};
use crate::source::Span;
use crate::types::Stop;
use crate::value::{Kind, Table, Value};
use bentpipe_base::{Duration, Instant, IpVersion, Probability, Rate, Size};
use bentpipe_gateway::Copies;
use bentpipe_link::Capacity;
use bentpipe_nodes::WhenRefused;
use bentpipe_tcp::{
    Detection, EcnUse, Encoding, FallbackScheme, JitterKind, Reduction, Scheme, Stack, Validation,
};
use serde_json::json;

/// Version of the file format that this crate reads.
pub(crate) const SCHEMA: i128 = 1;
/// Maximum length of a name, in characters.
pub(crate) const MAX_NAME: usize = 64;
const MAX_TEXT: usize = 500;

/// `schema = 1`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version;

/// Free text on one line.
#[derive(Clone, Debug)]
pub(crate) struct Text(pub(crate) String);

#[derive(Clone, Debug)]
pub(crate) struct Name(pub(crate) String);

/// A whole number in `MIN..=MAX`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whole<const MIN: u64, const MAX: u64>(pub(crate) u64);

/// A size, or a number of segments.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SizeOrSegments {
    Bytes(Size),
    Segments(u64),
}

/// Initial ssthresh: a window, or a word.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ssthresh {
    Unlimited,
    ReceiveWindow,
    Window(SizeOrSegments),
}

/// Who pays for a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Charge {
    Sender,
    Receiver,
}

/// Maximum number of copies of a packet.
const MAX_COPIES: u64 = 8;

words!(Stop { "duration" => Duration, "finished" => Finished, });
words!(JitterKind { "opportunity" => Opportunity, "packet" => Packet, });
words!(Stack { "rfc" => Rfc, "linux" => Linux, });
read_words!(Encoding { "tia-1039" => Tia1039, "scone-tcp" => SconeTcp, "quick-start" => QuickStart, });
words!(Charge { "sender" => Sender, "receiver" => Receiver, });
words!(WhenRefused { "silent" => Silent, "send" => Send, });
words!(FallbackScheme { "cubic" => Cubic, "reno" => Reno, });
words!(Validation { "keep" => Keep, "restart" => Restart, "validate" => Validate, });
words!(Detection {
    "reno" => Reno,
    "newreno" => NewReno,
    "vegas" => Vegas,
    "sack" => Sack,
    "rack" => Rack,
});
words!(Reduction { "at-once" => AtOnce, "rate-halving" => RateHalving, "prr" => Prr, "speedy" => Speedy, });

/// Returns the error for a word that is not one of `known`.
pub(crate) fn wrong_word(value: &Value, key: &str, known: &[&str]) -> Fault {
    let allowed = format!("help: it can be {}", known.join(", "));
    match value.text() {
        Some(word) => {
            let hint = did_you_mean(word, known.iter().map(|k| k.trim_matches('"')));
            Fault::new(value.span, format!("`{key}` cannot be \"{}\"", excerpt(word)), hint).help(allowed)
        }
        None => wrong(value, key, "a word in quotes").help(allowed),
    }
}

/// Returns the error for a value that is not a number of type `T`.
fn wrong_number<T: core::str::FromStr>(value: &Value, key: &str, wanted: &str) -> Fault {
    let quoted = matches!(&value.kind, Kind::Text(t) if t.trim().parse::<T>().is_ok());
    let fault = wrong(value, key, wanted);
    if quoted { fault.help("help: write it without quotes") } else { fault }
}

/// Shortens text of the user for an error message.
pub(crate) fn excerpt(text: &str) -> String {
    shortened(text, MAX_NAME)
}

/// Reads a value, or `word` as `None`. `meaning` follows the word in the help and begins with a colon.
fn word_or<T: Read>(value: &Value, key: &str, word: &str, meaning: &str) -> Result<Option<T>> {
    if value.text() == Some(word) {
        return Ok(None);
    }
    T::read(value, key).map(Some).map_err(|fault| fault.help(format!("help: or \"{word}\"{meaning}")))
}

/// Checks the version, then the names of the keys: those of another version would give misleading errors.
pub(crate) fn check_file<T: Keys>(root: &Table, what: &str) -> Result<()> {
    required::<Version>(root, "schema", "the file", Span::file(0..0))
        .map_err(|fault| fault.help(format!("help: a {what} file begins with schema = 1")))?;
    T::REF.check(root, "the file", &[])
}

impl Read for Version {
    const FORM: Form = Form::Fixed("`1`", || json!({ "const": 1 }));

    fn read(value: &Value, key: &str) -> Result<Self> {
        match value.kind {
            Kind::Integer(SCHEMA) => Ok(Self),
            Kind::Integer(n) => {
                Err(fault!(value.span, "schema {n} is not known", "this program reads schema {SCHEMA}"))
            }
            _ => Err(wrong(value, key, "the version of the file format")
                .help(format!("help: write schema = {SCHEMA}"))),
        }
    }
}

impl Read for Text {
    const FORM: Form = Form::Fixed("text", || json!({ "type": "string", "maxLength": MAX_TEXT }));

    fn read(value: &Value, key: &str) -> Result<Self> {
        let text = value.text().ok_or_else(|| wrong(value, key, "text in quotes"))?;
        if text.len() > MAX_TEXT {
            bail!(value.span, "`{key}` is too long", "the limit is {MAX_TEXT} bytes");
        }
        if text.chars().any(char::is_control) {
            bail!(value.span, "`{key}` is one line of text", "it holds a control character");
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
            return Err(wrong_number::<i128>(value, key, "a whole number"));
        };
        match u64::try_from(number) {
            Ok(n) if (MIN..=MAX).contains(&n) => Ok(Self(n)),
            _ if number < i128::from(MIN) => {
                Err(fault!(value.span, "`{key}` is too small", "at least {MIN}"))
            }
            _ => Err(Fault::new(value.span, format!("`{key}` is too large"), format!("at most {MAX}"))),
        }
    }
}

impl Read for f64 {
    const FORM: Form = Form::Scalar("number", || vec![json!({ "type": "number" })]);

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
            None => Err(wrong_number::<Self>(value, key, "a number without a unit")),
        }
    }
}

impl Read for Probability {
    const FORM: Form =
        Form::Scalar("probability", || vec![json!({ "type": "number", "minimum": 0, "maximum": 1 })]);

    fn read(value: &Value, key: &str) -> Result<Self> {
        if let Some(percent) = value.text().and_then(|t| t.trim().strip_suffix('%')) {
            let hint = match percent.trim().parse::<f64>() {
                Ok(p) if (0.0..=100.0).contains(&p) => format!("write {}", p / 100.0),
                Ok(p) if p > 100.0 => "more than 100 %".to_owned(),
                _ => String::new(),
            };
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
    const FORM: Form =
        Form::Scalar("switch", || vec![json!({ "type": "boolean" }), json!({ "enum": ["on", "off"] })]);

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
        Self::from_bps(bps).ok_or_else(|| Fault::zero(value.span, key))
    }
}

/// Implements `Read` for types that hold an amount in its base unit.
macro_rules! quantities {
    ($($T:ident $QUANTITY:ident,)+) => {
        $(impl Read for $T {
            const FORM: Form = Form::Quantity(&quantity::$QUANTITY);

            fn read(value: &Value, key: &str) -> Result<Self> {
                quantity::$QUANTITY.read(value, key).map(|(amount, _)| Self(amount))
            }
        })+
    };
}

quantities! { Duration TIME, Instant TIME, Size SIZE, }

impl Read for SizeOrSegments {
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
                let label = format!("the limit is {} packets", u32::MAX);
                Fault::new(value.span, format!("`{key}` is too large"), label)
            }),
            (n, _) => Ok(Self::Bytes(Size(n))),
        }
    }
}

impl Read for Ssthresh {
    const FORM: Form = Form::Either(&[Form::Words(&["unlimited", "window"]), SizeOrSegments::FORM]);

    fn read(value: &Value, key: &str) -> Result<Self> {
        match value.text() {
            Some("unlimited") => Ok(Self::Unlimited),
            Some("window") => Ok(Self::ReceiveWindow),
            _ => SizeOrSegments::read(value, key).map(Self::Window).map_err(|fault| {
                fault.help("help: or \"unlimited\", or \"window\" for the receiver's window")
            }),
        }
    }
}

/// Implements `Read` for optional values: `None` is written as a word. Its meaning is for errors.
macro_rules! value_or_word {
    ($($T:ident $word:literal $meaning:literal,)+) => {
        $(impl Read for Option<$T> {
            const FORM: Form = Form::Either(&[Form::Words(&[$word]), $T::FORM]);

            fn read(value: &Value, key: &str) -> Result<Self> {
                word_or(value, key, $word, $meaning)
            }
        })+
    };
}

value_or_word! {
    Rate "none" ": nothing is sent",
    Duration "none" "",
    Decibel "auto" ": as much as the fade needs",
    Encoding "off" "",
    f64 "auto" "",
}

/// A limit of more than zero, or none.
impl Read for Option<Size> {
    const FORM: Form = Form::Either(&[Form::Words(&["unlimited"]), Size::FORM]);

    fn read(value: &Value, key: &str) -> Result<Self> {
        match word_or(value, key, "unlimited", "")? {
            Some(Size(0)) => Err(Fault::zero(value.span, key)),
            size => Ok(size),
        }
    }
}

impl Read for EcnUse {
    const FORM: Form = Form::Either(&[bool::FORM, Form::Words(&["answer"])]);

    fn read(value: &Value, key: &str) -> Result<Self> {
        Ok(match word_or(value, key, "answer", ": agreed to where the other end asks")? {
            None => Self::AcceptOnly,
            Some(true) => Self::Request,
            Some(false) => Self::Off,
        })
    }
}

impl Read for IpVersion {
    const FORM: Form = Form::Scalar("`4` or `6`", || vec![json!({ "enum": [4, 6] })]);

    fn read(value: &Value, key: &str) -> Result<Self> {
        match Whole::<4, 6>::read(value, key)? {
            Whole(4) => Ok(Self::V4),
            Whole(6) => Ok(Self::V6),
            Whole(n) => Err(fault!(value.span, "there is no IP version {n}", "4 or 6")),
        }
    }
}

impl Read for Copies {
    const FORM: Form = Form::Either(&[Form::Words(&["auto"]), Form::Whole(1, MAX_COPIES)]);

    fn read(value: &Value, key: &str) -> Result<Self> {
        let number = word_or::<Whole<1, MAX_COPIES>>(value, key, "auto", ": as many as pay")?;
        Ok(number.map_or(Self::Auto, |n| Self::Fixed(n.0 as u8)))
    }
}

impl Read for Scheme {
    const FORM: Form = Form::Words(&Self::NAMES);

    fn read(value: &Value, key: &str) -> Result<Self> {
        value.text().and_then(Self::named).ok_or_else(|| {
            let names: Vec<&str> = Self::all().map(|scheme| scheme.name).collect();
            wrong_word(value, key, &names)
        })
    }
}
