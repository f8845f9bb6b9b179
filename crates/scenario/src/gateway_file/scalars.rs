//! Reads the values that only gateway files have: prefixes, ports, percentages, interface names.

use super::types::{Copies, PortRange, Prefix};
use crate::diagnostic::{Fault, Result};
use crate::form::{At, Form, Read, Special, wrong};
use crate::lists::items;
use crate::quantity::split_unit;
use crate::scalars::excerpt;
use crate::value::{Kind, Value};
use core::net::{IpAddr, SocketAddr};

pub(crate) const MAX_ITEMS: usize = 10_000;
/// Maximum length of an interface name: IFNAMSIZ without the terminating zero.
const MAX_INTERFACE: usize = 15;

/// One value, or a list of them.
#[derive(Clone, Debug)]
pub(crate) struct OneOrList<T>(pub(crate) Vec<At<T>>);

/// A fraction of 1, written in percent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Percent(pub(crate) f64);

#[derive(Clone, Debug)]
pub(crate) struct Interface(pub(crate) String);

#[derive(Clone, Copy, Debug)]
pub(crate) struct DscpClass(pub(crate) u8);

/// `"auto"`, or a number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyCount(pub(crate) Copies);

const PREFIX: Special = Special {
    what: "an address or prefix",
    pattern: r"[0-9A-Fa-f:.]+(/[0-9]{1,3})?",
    example: "192.0.2.0/24",
};
const PORTS: Special =
    Special { what: "a range of ports", pattern: "[0-9]{1,5}(-[0-9]{1,5})?", example: "8000-8999" };
const PERCENT: Special = Special { what: "a percentage", pattern: r"[0-9]+(\.[0-9]+)? *%", example: "10 %" };
const INTERFACE: Special =
    Special { what: "the name of an interface", pattern: r"[!-.0-~]{1,15}", example: "eth0" };
const LISTEN: Special = Special {
    what: "an address with a port",
    pattern: r"([0-9.]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}",
    example: "127.0.0.1:9464",
};
const DSCP: Special =
    Special { what: "the name of a DSCP", pattern: "[a-z]{1,3}[0-9]{0,2}", example: "af41" };

impl<T: Read> Read for OneOrList<T> {
    const FORM: Form = Form::Many(&T::FORM);

    fn read(value: &Value, key: &str) -> Result<Self> {
        let one = |v: &Value| Ok(At { value: T::read(v, key)?, span: v.span });
        match &value.kind {
            Kind::Array(_) => {
                items(value, key, "a list", MAX_ITEMS)?.iter().map(one).collect::<Result<_>>().map(Self)
            }
            _ => Ok(Self(vec![one(value)?])),
        }
    }
}

/// Returns the error for text that is not a valid `special`.
fn refuse(special: &Special, value: &Value, key: &str, why: impl Into<String>) -> Fault {
    Fault::new(value.span, format!("`{key}` is not {}", special.what), why)
        .help(format!("help: write it as \"{}\"", special.example))
}

impl Read for Prefix {
    const FORM: Form = Form::Special(&PREFIX);

    fn read(value: &Value, key: &str) -> Result<Self> {
        let bad = |why: &str| refuse(&PREFIX, value, key, why);
        let text = value.text().ok_or_else(|| bad(&format!("this is {}", value.called())))?.trim();
        let (address, length) = text.split_once('/').map_or((text, None), |(a, l)| (a, Some(l)));
        let Ok(address) = address.parse::<IpAddr>() else {
            let name = address.chars().any(|c| c.is_ascii_alphabetic()) && !address.contains(':');
            return Err(bad(if name { "names are not looked up" } else { "no such address" }));
        };
        let most = if address.is_ipv4() { 32 } else { 128 };
        let length = match length {
            None => most,
            Some(digits) => match digits.parse::<u8>() {
                Ok(n) if n <= most && digits.bytes().all(|b| b.is_ascii_digit()) => n,
                _ => return Err(bad(&format!("a length from 0 to {most} follows the `/`"))),
            },
        };
        let prefix = Self::new(address, length).ok_or_else(|| bad(""))?;
        if prefix.address() == address {
            return Ok(prefix);
        }
        let label = format!("write \"{prefix}\", or \"{address}\" for this address alone");
        Err(Fault::new(value.span, format!("`{key}` has bits after its prefix"), label))
    }
}

impl Read for PortRange {
    const FORM: Form = Form::Either(&[Form::Whole(1, 65_535), Form::Special(&PORTS)]);

    fn read(value: &Value, key: &str) -> Result<Self> {
        let bad = |why: &str| {
            Fault::new(value.span, format!("`{key}` is not a port or a range of ports"), why)
                .help("help: write it as 443 or \"8000-8999\"")
        };
        let port = |text: &str| {
            let n: Option<u16> = text.trim().parse().ok().filter(|n| *n > 0);
            n.ok_or_else(|| bad("ports go from 1 to 65535"))
        };
        match &value.kind {
            Kind::Integer(n) => port(&n.to_string()).map(|p| Self { first: p, last: p }),
            Kind::Text(text) => {
                let (first, last) = text.split_once('-').unwrap_or((text, text));
                let range = Self { first: port(first)?, last: port(last)? };
                if range.first <= range.last { Ok(range) } else { Err(bad("it ends below its beginning")) }
            }
            _ => Err(bad(&format!("this is {}", value.called()))),
        }
    }
}

impl Read for Percent {
    const FORM: Form = Form::Special(&PERCENT);

    fn read(value: &Value, key: &str) -> Result<Self> {
        let bad = |why: String| refuse(&PERCENT, value, key, why);
        let number = match &value.kind {
            Kind::Integer(n) => return Err(bad(format!("write \"{n} %\" if that is meant"))),
            Kind::Number(n) => return Err(bad(format!("write \"{} %\" if that is meant", n * 100.0))),
            _ => value.text().ok_or_else(|| bad(format!("this is {}", value.called())))?,
        };
        let (digits, unit) = split_unit(number.trim());
        let share: Option<f64> = digits.parse().ok().filter(|_| unit == "%");
        match share {
            Some(n) if (0.0..=100.0).contains(&n) => Ok(Self(n / 100.0)),
            Some(_) => Err(Fault::new(value.span, format!("`{key}` is too large"), "at most 100 %")),
            None => Err(bad(String::new())),
        }
    }
}

impl Read for Interface {
    const FORM: Form = Form::Special(&INTERFACE);

    fn read(value: &Value, key: &str) -> Result<Self> {
        let name = value.text().ok_or_else(|| wrong(value, key, INTERFACE.what))?;
        // Names that the kernel accepts (dev_valid_name), without characters that have a special meaning in
        // rule files or terminals.
        let fine = |c: char| c.is_ascii_graphic() && !matches!(c, '/' | ':' | '"' | '\\' | '*');
        let label = match name {
            "" => "it has at least one character".to_owned(),
            "." | ".." | "all" | "default" => "the kernel means something else by this".to_owned(),
            "lo" => "nothing comes from outside over this one".to_owned(),
            _ if name.len() > MAX_INTERFACE => format!("the limit is {MAX_INTERFACE} characters"),
            _ => match name.chars().find(|c| !fine(*c)) {
                Some(c) => format!("`{}` is not allowed", c.escape_default()),
                None => return Ok(Self(name.to_owned())),
            },
        };
        Err(refuse(&INTERFACE, value, key, label))
    }
}

impl Read for SocketAddr {
    const FORM: Form = Form::Special(&LISTEN);

    fn read(value: &Value, key: &str) -> Result<Self> {
        let bad = |why: &str| refuse(&LISTEN, value, key, why);
        let text = match &value.kind {
            Kind::Integer(n) => return Err(bad(&format!("write \"127.0.0.1:{n}\" for this machine alone"))),
            _ => value.text().ok_or_else(|| bad(&format!("this is {}", value.called())))?,
        };
        match text.parse::<Self>() {
            Ok(at) if at.port() > 0 => Ok(at),
            Ok(_) => Err(bad("port 0 is any port")),
            Err(_) if text.parse::<IpAddr>().is_ok() => Err(bad("the port is missing")),
            Err(_) => Err(bad(&format!("`{}` is something else", excerpt(text)))),
        }
    }
}

impl Read for DscpClass {
    const FORM: Form = Form::Either(&[Form::Whole(0, 63), Form::Special(&DSCP)]);

    fn read(value: &Value, key: &str) -> Result<Self> {
        let found = match &value.kind {
            Kind::Integer(n) => u8::try_from(*n).ok().filter(|n| *n < 64),
            _ => value.text().and_then(dscp_code_point),
        };
        found.map(Self).ok_or_else(|| {
            Fault::new(value.span, format!("`{key}` is not a DSCP"), "")
                .help("help: write a number from 0 to 63, or cs0 to cs7, af11 to af43, ef, va, le")
        })
    }
}

/// Returns the code point of a DSCP class: RFC 2474 (cs), 2597 (af), 3246 (ef), 5865 (va), 8622 (le).
fn dscp_code_point(name: &str) -> Option<u8> {
    match name {
        "ef" => Some(46),
        "va" => Some(44),
        "le" => Some(1),
        _ => match name.as_bytes() {
            [b'c', b's', n @ b'0'..=b'7'] => Some((n - b'0') * 8),
            [b'a', b'f', class @ b'1'..=b'4', drop @ b'1'..=b'3'] => {
                Some((class - b'0') * 8 + (drop - b'0') * 2)
            }
            _ => None,
        },
    }
}

/// Maximum number of copies of a packet. Beyond that, forward error correction would be better.
const MAX_COPIES: u8 = 4;

impl Read for CopyCount {
    const FORM: Form = Form::Either(&[Form::Words(&["auto"]), Form::Whole(1, MAX_COPIES as u64)]);

    fn read(value: &Value, key: &str) -> Result<Self> {
        match Copies::read(value, key) {
            Ok(copies) if !matches!(copies, Copies::Fixed(n) if n > MAX_COPIES) => Ok(Self(copies)),
            _ => Err(Fault::new(value.span, format!("`{key}` is \"auto\" or a number"), "")
                .help(format!("help: from 1 to {MAX_COPIES}, without quotes"))),
        }
    }
}
