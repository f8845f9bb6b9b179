//! Resolves the TCP options of `[host]`, flows and receivers to the configurations of both ends.

use super::{scheme, signalling};
use crate::diagnostic::{Fault, Result, bail, fault};
use crate::form::{At, Keys as _, OrTable};
use crate::keys::{DelayedAckKeys, GrantKeys, KeepAliveKeys, TcpKeys};
use crate::scalars::{SizeOrSegments, Ssthresh};
use bentpipe_base::{Duration, Rate, Size};
use bentpipe_tcp::{
    Config, DelayedAck, GrantConfig, Jitter, JitterKind, KeepAlive, Options, ReceiveBuffer, RtoConfig, Stack,
};

/// Maximum window without window scaling, in bytes (RFC 9293, section 3.1).
const UNSCALED: u64 = 65_535;
/// Maximum window scale (RFC 7323, section 2.3).
const MAX_SCALE: u32 = 14;
/// Maximum payload of a segment: an IPv4 packet less 40 bytes of headers.
const MAX_SEGMENT: u64 = 65_495;
const MOST_FALLBACK: f64 = 0.5;
/// Minimum retransmission timeout; a smaller one is assumed to be a mistake.
const SHORTEST_RTO: Duration = Duration::from_millis(1);
const SHORTEST_KEEP_ALIVE: Duration = Duration::from_secs(1);
/// Delayed ACKs must be sent in less than this (RFC 9293, section 3.8.6.3).
const LONGEST_DELAYED_ACK: Duration = Duration::from_millis(500);

/// Returns the configurations of sender and receiver. `own`: keys of the receiver alone. `served_last`: a
/// queue serves low priority last.
pub(crate) fn configs(keys: &TcpKeys, own: Option<&TcpKeys>, served_last: bool) -> Result<(Config, Config)> {
    let common = config(keys, served_last)?;
    // Only the data sender has jitter: randomly delayed ACKs would be a different experiment.
    let mut sender = Config { jitter: jitter(keys), ..common.clone() };
    signalling::apply(&mut sender, keys, signalling::sender_asks(keys)?, stack_default(keys).scheme)?;
    // A sender whose scheme does not use SACK does not offer it.
    sender.options.sack &= sender.scheme.wants_sack();
    let merged = own.map(|own| own.clone().over(keys));
    let (mut receiver, keys) = match &merged {
        None => (common, keys),
        Some(merged) => (config(merged, served_last)?, merged),
    };
    if let Some(ip) = own.and_then(|own| own.ip).filter(|ip| ip.value != sender.ip) {
        bail!(ip.span, "both ends of a flow have the same IP version", "give `ip` to the flow");
    }
    signalling::apply(&mut receiver, keys, signalling::receiver_asks(own)?, stack_default(keys).scheme)?;
    Ok((sender, receiver))
}

/// Returns the configuration of a host of the given stack without other keys.
fn stack_default(keys: &TcpKeys) -> Config {
    match keys.stack.map_or(Stack::default(), |v| v.value) {
        Stack::Rfc => Config::default(),
        Stack::Linux => Config::linux(),
    }
}

/// Resolves what does not depend on whether the host sends or receives.
fn config(keys: &TcpKeys, served_last: bool) -> Result<Config> {
    let default = stack_default(keys);
    let stack = default.stack;
    let ip = keys.ip.map_or(default.ip, |v| v.value);
    // the same packets: an IPv6 header is 20 B longer
    let mss = segment(keys, default.mss - u16::from(ip.header() - default.ip.header()))?;
    let options = options(keys, default.options);
    let receive_buffer = window(keys, options, mss, default.receive_buffer)?;
    let scheme = keys.tcp.as_ref().map_or(Ok(default.scheme), |t| scheme::resolve(t, stack, served_last))?;
    let ssthresh = |given: At<Ssthresh>| match given.value {
        Ssthresh::Unlimited => None,
        Ssthresh::ReceiveWindow => Some(receive_buffer.max()),
        Ssthresh::Window(window) => Some(bytes(window, mss)),
    };
    Ok(Config {
        stack,
        scheme,
        mss,
        send_buffer: keys.send_buffer.map_or(default.send_buffer, |v| v.value),
        receive_buffer,
        reserve: reserve(keys, receive_buffer)?,
        delayed_ack: keys.delayed_ack.as_ref().map_or(Ok(default.delayed_ack), |d| delayed_ack(d, stack))?,
        nagle: keys.nagle.map_or(default.nagle, |v| v.value),
        options,
        initial_window: keys.iw.map_or(default.initial_window, |v| v.value.0 as u32),
        initial_ssthresh: keys.ssthresh.map_or(default.initial_ssthresh, ssthresh),
        rto: rto(keys, default.rto)?,
        limited_transmit: keys.limited_transmit.map_or(default.limited_transmit, |v| v.value),
        validation: keys.validation.map_or(default.validation, |v| v.value),
        pacing: keys.pacing.map_or(default.pacing, |v| v.value),
        ecn: keys.ecn.map_or(default.ecn, |v| v.value),
        probe_option: keys.probe_option.map_or(default.probe_option, |v| v.value),
        grant: keys.grant.as_ref().map_or(Ok(None), grant)?,
        signalling: None,
        ip,
        jitter: None,
        time_wait: keys.time_wait.map_or(default.time_wait, |v| v.value),
        max_timeouts: keys.max_timeouts.map_or(default.max_timeouts, |v| v.value.0 as u32),
        user_timeout: keys.user_timeout.map_or(Ok(default.user_timeout), user_timeout)?,
        keep_alive: keys.keep_alive.as_ref().map_or(Ok(default.keep_alive), |k| keep_alive(&k.value))?,
    })
}

/// Resolves `reserve`: bytes that a receiver with a fixed window accepts beyond the window it advertises.
fn reserve(keys: &TcpKeys, window: ReceiveBuffer) -> Result<Size> {
    let Some(reserve) = &keys.reserve else { return Ok(Size(0)) };
    if reserve.value.0 > 0 && matches!(window, ReceiveBuffer::Auto { .. }) {
        let label = "give a fixed `window`, such as \"65535 B\"";
        return Err(Fault::new(reserve.span, "a window that grows has no `reserve`", label));
    }
    Ok(reserve.value)
}

fn segment(keys: &TcpKeys, default: u16) -> Result<u16> {
    let Some(At { value: Size(bytes), span }) = keys.segment else { return Ok(default) };
    match u16::try_from(bytes) {
        Ok(mss) if (1..=MAX_SEGMENT).contains(&bytes) => Ok(mss),
        _ => Err(fault!(span, "a segment of that size does not exist", "from 1 B to {MAX_SEGMENT} B")),
    }
}

fn grant(given: &At<OrTable<Option<Rate>, GrantKeys>>) -> Result<Option<GrantConfig>> {
    let keys = match &given.value {
        OrTable::Plain(rate) => return Ok(rate.map(GrantConfig::constant)),
        OrTable::Table(keys) => keys,
    };
    let mut grant = GrantConfig::constant(keys.rate.value);
    if let Some(changes) = &keys.changes {
        for (at, rate) in &changes.value.0 {
            if grant.changes.last().is_some_and(|(last, _)| *last >= at.value) {
                bail!(at.span, "`changes` goes back in time", "each is later than the one before");
            }
            grant.changes.push((at.value, rate.value));
        }
    }
    if let Some(At { value, span }) = keys.fallback {
        if value.get() > MOST_FALLBACK {
            bail!(span, "a path that loses so much is no path", "from 0 to {MOST_FALLBACK}");
        }
        grant.fallback = value.get();
    }
    grant.fallback_to = keys.fallback_to.map_or(grant.fallback_to, |v| v.value);
    Ok(Some(grant))
}

fn options(keys: &TcpKeys, default: Options) -> Options {
    Options {
        mss: keys.mss_option.map_or(default.mss, |v| v.value),
        window_scale: keys.window_scale.map_or(default.window_scale, |v| v.value),
        sack: keys.sack.map_or(default.sack, |v| v.value),
        timestamps: keys.timestamps.map_or(default.timestamps, |v| v.value),
    }
}

fn bytes(window: SizeOrSegments, mss: u16) -> Size {
    match window {
        SizeOrSegments::Bytes(size) => size,
        SizeOrSegments::Segments(n) => Size(n.saturating_mul(u64::from(mss))),
    }
}

/// Resolves the receive window, which the window scale option must be able to express.
fn window(keys: &TcpKeys, options: Options, mss: u16, default: ReceiveBuffer) -> Result<ReceiveBuffer> {
    let buffer = match keys.window.as_ref().map(|w| &w.value) {
        None => default,
        Some(OrTable::Plain(window)) => ReceiveBuffer::Fixed(bytes(*window, mss)),
        Some(OrTable::Table(table)) => {
            let (initial, max) = (bytes(table.initial.value, mss), bytes(table.max.value, mss));
            if max < initial {
                bail!(table.max.span, "`max` is less than `initial`", "that is {initial}");
            }
            ReceiveBuffer::Auto { initial, max }
        }
    };
    let limit = if options.window_scale { UNSCALED << MAX_SCALE } else { UNSCALED };
    if buffer.max().0 <= limit {
        return Ok(buffer);
    }
    let asked = keys.window.as_ref().map(|w| match &w.value {
        OrTable::Plain(_) => w.span,
        OrTable::Table(table) => table.max.span,
    });
    let largest = buffer.max();
    match (asked, keys.window_scale) {
        (Some(span), None | Some(At { value: true, .. })) => {
            Err(fault!(span, "a window of {largest} is more than TCP can announce", "the limit is {limit} B"))
        }
        (Some(span), _) => {
            let label = format!("the limit is {limit} B with `window_scale = false`");
            Err(Fault::new(span, format!("a window of {largest} needs window scale"), label))
        }
        (None, Some(scale)) => {
            let message = format!("the default window of up to {largest} needs window scale");
            Err(Fault::new(scale.span, message, "give `window = \"65535 B\"` or less"))
        }
        (None, None) => Ok(buffer),
    }
}

fn delayed_ack(given: &At<OrTable<bool, DelayedAckKeys>>, stack: Stack) -> Result<Option<DelayedAck>> {
    let usual = if stack == Stack::Linux { 40 } else { 200 };
    let (mut count, mut timeout) = (2, Duration::from_millis(usual));
    match &given.value {
        OrTable::Plain(false) => return Ok(None),
        OrTable::Plain(true) => {}
        OrTable::Table(table) => {
            count = table.count.map_or(count, |c| c.value.0 as u32);
            timeout = table.timeout.map_or(timeout, |t| t.value);
            if let Some(given) = table.timeout.filter(|t| t.value >= LONGEST_DELAYED_ACK) {
                bail!(given.span, "an ACK cannot be delayed that long", "less than {LONGEST_DELAYED_ACK}");
            }
        }
    }
    Ok(Some(DelayedAck { count, timeout }))
}

fn user_timeout(given: At<Option<Duration>>) -> Result<Option<Duration>> {
    let Some(timeout) = given.value else { return Ok(None) };
    given.map(|_| timeout).at_least("user_timeout", SHORTEST_RTO, "short").map(Some)
}

fn keep_alive(given: &OrTable<bool, KeepAliveKeys>) -> Result<Option<KeepAlive>> {
    let default = KeepAlive::default();
    let table = match given {
        OrTable::Plain(on) => return Ok(on.then_some(default)),
        OrTable::Table(table) => table,
    };
    for (key, given) in [("idle", table.idle), ("interval", table.interval)] {
        given.map(|given| given.at_least(key, SHORTEST_KEEP_ALIVE, "short")).transpose()?;
    }
    Ok(Some(KeepAlive {
        idle: table.idle.map_or(default.idle, |v| v.value),
        interval: table.interval.map_or(default.interval, |v| v.value),
        count: table.count.map_or(default.count, |c| c.value.0 as u32),
    }))
}

fn rto(keys: &TcpKeys, default: RtoConfig) -> Result<RtoConfig> {
    for (key, given) in
        [("min_rto", keys.min_rto), ("initial_rto", keys.initial_rto), ("max_rto", keys.max_rto)]
    {
        given.map(|given| given.at_least(key, SHORTEST_RTO, "short")).transpose()?;
    }
    let rto = RtoConfig {
        min: keys.min_rto.map_or(default.min, |v| v.value),
        max: keys.max_rto.map_or(default.max, |v| v.value),
        initial: keys.initial_rto.map_or(default.initial, |v| v.value),
        granularity: keys.rto_granularity.map_or(default.granularity, |v| v.value),
    };
    for (key, value, given) in
        [("min_rto", rto.min, keys.min_rto), ("initial_rto", rto.initial, keys.initial_rto)]
    {
        if let Some(wrong) = given.or(keys.max_rto).filter(|_| value > rto.max) {
            let label = format!("`{key}` is {value}, `max_rto` is {}", rto.max);
            return Err(Fault::new(wrong.span, format!("`{key}` is more than `max_rto`"), label));
        }
    }
    Ok(rto)
}

fn jitter(keys: &TcpKeys) -> Option<Jitter> {
    let max = keys.jitter.map(|v| v.value).filter(|v| !v.is_zero())?;
    Some(Jitter { max, kind: keys.jitter_kind.map_or(JitterKind::Opportunity, |v| v.value) })
}
