//! Resolves the keys of explicit-rate signalling: `encoding`, `ask`, `take`, `trust_path`, `ask_fallback`.
//!
//! An end that asks for a rate with TIA-1039 runs explicit rate, whatever `tcp` says; `tcp` is the scheme
//! after a fallback. An end that only answers, or has another encoding, runs what `tcp` says.

use crate::diagnostic::{Fault, Result, bail, fault};
use crate::form::{At, OrTable};
use crate::keys::{AskKeys, TcpKeys};
use crate::scalars::Charge;
use crate::source::Span;
use bentpipe_advice::negotiation::Terms;
use bentpipe_advice::tia1039::RateType;
use bentpipe_base::{Duration, Rate};
use bentpipe_tcp::{AskConfig, Config, Encoding, GrantConfig, Scheme, Signalling, Stack};

/// Scheme of an end that asks for a rate.
const EXPLICIT_RATE: &str = "explicit-rate";
/// Default of `ask`: more than any hop of the built-in links gives, so every router lowers it, and the sender
/// can tell a path with routers that answer from one without.
const ASK: Rate = Rate::from_bps(10_000_000_000).expect("more than zero");
/// Burst time for exponent 0; each step halves it.
pub(crate) const LONGEST_BURST: Duration = Duration::from_millis(500);
/// Least rate that the rate field can hold: one unit.
const LEAST: Rate = Rate::from_bps(bentpipe_advice::RATE_UNIT_BPS).expect("more than zero");

/// What an end asks for: the rate that may be available to it, and all else.
pub(super) type Asked = Option<(Rate, Terms)>;

/// Returns what a sender asks for.
pub(super) fn sender_asks(keys: &TcpKeys) -> Result<Asked> {
    keys.ask.as_ref().map_or(Ok(Some((ASK, Terms::default()))), asked)
}

/// Returns what a receiver asks for: nothing, unless its own table says so.
pub(super) fn receiver_asks(own: Option<&TcpKeys>) -> Result<Asked> {
    own.and_then(|own| own.ask.as_ref()).map_or(Ok(None), asked)
}

fn asked(given: &At<OrTable<Option<Rate>, AskKeys>>) -> Result<Asked> {
    let keys = match &given.value {
        OrTable::Plain(ask) => {
            let ask = rate("ask", At { value: *ask, span: given.span })?;
            return Ok(ask.map(|ask| (ask, Terms::default())));
        }
        OrTable::Table(keys) => keys,
    };
    let of = |key: &str, given: Option<At<Rate>>| given.map(|given| least_unit(key, given)).transpose();
    let (available, guaranteed, maximum) =
        (of("available", keys.available)?, of("guaranteed", keys.guaranteed)?, of("maximum", keys.maximum)?);
    let (rate_type, ask, guaranteed) = match (available, guaranteed, maximum) {
        (Some(available), None, None) => (RateType::Available, available, None),
        (Some(available), Some(guaranteed), None) => (RateType::Composite, available, Some(guaranteed)),
        (None, Some(guaranteed), None) => (RateType::Guaranteed, guaranteed, Some(guaranteed)),
        (None, None, Some(maximum)) => (RateType::Maximum, maximum, Some(maximum)),
        (None, None, None) => {
            let label = "give `available`, `guaranteed`, both, or `maximum`";
            return Err(Fault::new(given.span, "`ask` has no rate", label));
        }
        (_, _, Some(_)) => {
            let span = keys.maximum.map_or(given.span, |maximum| maximum.span);
            return Err(Fault::new(span, "a `maximum` rate is asked for alone", "drop this, or the others"));
        }
    };
    let terms = Terms {
        rate_type,
        guaranteed,
        preemption: keys.preemption.map_or(0, |p| p.value.0 as u8),
        delay: keys.delay.map_or(0, |d| d.value.0 as u8),
        burst_exponent: keys.burst.map_or(Ok(0), burst)?,
        receiver_pays: keys.charge.is_some_and(|charge| matches!(charge.value, Charge::Receiver)),
    };
    Ok(Some((ask, terms)))
}

/// Returns the exponent for the longest burst time of the field that is not above the given one.
fn burst(given: At<Duration>) -> Result<u8> {
    given.at_most("burst", LONGEST_BURST)?;
    let fits = |exponent: &u8| LONGEST_BURST.0 >> exponent <= given.value.0;
    (0..=15).find(fits).ok_or_else(|| {
        let least = Duration(LONGEST_BURST.0 >> 15);
        fault!(given.span, "`burst` is too short", "at least {least}")
    })
}

/// Sets the signalling of one end, which asks for `asked`, and its scheme. `default`: the stack's scheme.
pub(super) fn apply(config: &mut Config, keys: &TcpKeys, asked: Asked, default: Scheme) -> Result<()> {
    let Some(encoding) = encoding(keys)? else { return Ok(()) };
    let named = config.scheme;
    let (ask, terms) = asked.map_or((None, Terms::default()), |(ask, terms)| (Some(ask), terms));
    let fallback_to = if named.name == EXPLICIT_RATE { default } else { named };
    let is_granted = encoding.value == Encoding::Tia1039;
    if ask.is_some() && named.name == EXPLICIT_RATE && !is_granted {
        let message = format!("`{EXPLICIT_RATE}` needs rates as `tia-1039` grants them");
        let label = "use \"tia-1039\", or another scheme in `tcp`";
        return Err(Fault::new(encoding.span, message, label));
    }
    if !is_granted && terms != Terms::default() {
        let message = "only `tia-1039` asks for reserved rates and priorities";
        let label = "use \"tia-1039\", or a plain rate in `ask`";
        return Err(Fault::new(encoding.span, message, label));
    }
    config.scheme = match ask.filter(|_| is_granted) {
        None => fallback_to,
        Some(_) if named.name == EXPLICIT_RATE => named,
        Some(_) => explicit_rate(config.stack, encoding.span)?,
    };
    config.signalling = Some(Signalling {
        ask: AskConfig {
            encoding: encoding.value,
            ask,
            terms,
            take: keys.take.map_or(Ok(None), |given| rate("take", given))?,
            trust_path: keys.trust_path.is_some_and(|given| given.value),
        },
        fallback: keys.ask_fallback.map_or(GrantConfig::FALLBACK, |given| given.value.get()),
        fallback_to,
    });
    Ok(())
}

/// Returns the encoding; `None` without signalling.
fn encoding(keys: &TcpKeys) -> Result<Option<At<Encoding>>> {
    let Some(given) = keys.encoding else {
        // Nothing could switch these on. With `encoding = "off"`, a parameter can.
        return lone_key(keys).map_or(Ok(None), Err);
    };
    let Some(encoding) = given.value else { return Ok(None) };
    if let Some(grant) = &keys.grant
        && !matches!(grant.value, OrTable::Plain(None))
    {
        let label = "routers say the rate: give `grant = \"none\"`, or `encoding = \"off\"`";
        return Err(Fault::new(grant.span, "`grant` and `encoding` exclude each other", label));
    }
    Ok(Some(given.map(|_| encoding)))
}

/// Returns the error for a key of signalling without an `encoding`.
fn lone_key(keys: &TcpKeys) -> Option<Fault> {
    let given = [
        ("ask", keys.ask.as_ref().map(|k| k.span)),
        ("take", keys.take.map(|k| k.span)),
        ("trust_path", keys.trust_path.map(|k| k.span)),
        ("ask_fallback", keys.ask_fallback.map(|k| k.span)),
    ];
    let (key, span) = given.into_iter().find_map(|(key, span)| Some((key, span?)))?;
    let label = "give `encoding = \"tia-1039\"`, or \"off\" to keep this for later";
    Some(Fault::new(span, format!("`{key}` has no effect without an `encoding`"), label))
}

/// Checks a rate, unless it is none.
fn rate(key: &str, given: At<Option<Rate>>) -> Result<Option<Rate>> {
    given.value.map(|rate| least_unit(key, given.map(|_| rate))).transpose()
}

/// Checks that the rate field can hold a rate.
pub(crate) fn least_unit(key: &str, given: At<Rate>) -> Result<Rate> {
    if given.value < LEAST {
        bail!(given.span, "`{key}` is too small", "at least {LEAST}");
    }
    Ok(given.value)
}

/// Returns the scheme of an end that asks.
fn explicit_rate(stack: Stack, span: Span) -> Result<Scheme> {
    let scheme = Scheme::named(EXPLICIT_RATE)
        .ok_or_else(|| Fault::new(span, format!("there is no scheme `{EXPLICIT_RATE}`"), ""))?;
    if stack == Stack::Linux && !scheme.on_linux() {
        let label = "give `stack = \"rfc\"`, or `ask = \"none\"` if it only answers";
        return Err(Fault::new(span, "a Linux host that asks for a rate is not modelled", label));
    }
    Ok(scheme.on(stack))
}
