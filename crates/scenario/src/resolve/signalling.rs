//! Resolves the keys of explicit-rate signalling: `encoding`, `ask`, `take`, `trust_path`, `ask_fallback`.
//!
//! An end that asks for a rate with TIA-1039 runs explicit rate, whatever `tcp` says; `tcp` is the scheme
//! after a fallback. An end that only answers, or has another encoding, runs what `tcp` says.

use crate::diagnostic::{Fault, Result, bail};
use crate::form::{At, OrTable};
use crate::keys::TcpKeys;
use crate::source::Span;
use bentpipe_base::Rate;
use bentpipe_tcp::{AskConfig, Config, Encoding, GrantConfig, Scheme, Signalling, Stack};

/// Scheme of an end that asks for a rate.
const EXPLICIT_RATE: &str = "explicit-rate";
/// Default of `ask`: more than any hop of the built-in links gives, so every router lowers it, and the sender
/// can tell a path with routers that answer from one without.
const ASK: Rate = Rate::from_bps(10_000_000_000).expect("more than zero");
/// Least rate that the rate field can hold: one unit.
const LEAST: Rate = Rate::from_bps(bentpipe_advice::RATE_UNIT_BPS).expect("more than zero");

/// Returns what a sender asks for.
pub(super) fn sender_asks(keys: &TcpKeys) -> Result<Option<Rate>> {
    keys.ask.map_or(Ok(Some(ASK)), |given| rate("ask", given))
}

/// Returns what a receiver asks for: nothing, unless its own table says so.
pub(super) fn receiver_asks(own: Option<&TcpKeys>) -> Result<Option<Rate>> {
    own.and_then(|own| own.ask).map_or(Ok(None), |given| rate("ask", given))
}

/// Sets the signalling of one end, which asks for `ask`, and its scheme. `default`: the stack's scheme.
pub(super) fn apply(config: &mut Config, keys: &TcpKeys, ask: Option<Rate>, default: Scheme) -> Result<()> {
    let Some(encoding) = encoding(keys)? else { return Ok(()) };
    let named = config.scheme;
    let fallback_to = if named.name == EXPLICIT_RATE { default } else { named };
    let is_granted = encoding.value == Encoding::Tia1039;
    if ask.is_some() && named.name == EXPLICIT_RATE && !is_granted {
        let message = format!("`{EXPLICIT_RATE}` needs rates as `tia-1039` grants them");
        let label = "use \"tia-1039\", or another scheme in `tcp`";
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
        ("ask", keys.ask.map(|k| k.span)),
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
pub(super) fn least_unit(key: &str, given: At<Rate>) -> Result<Rate> {
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
