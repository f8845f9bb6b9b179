//! Resolves the applications of a flow: `app` and `reader`.

use super::{check_order, exactly_one};
use crate::diagnostic::{Result, bail};
use crate::form::{At, OrTable};
use crate::keys::{AppKeys, Bulk, Eager, PlainPattern, ReaderKeys, RequestKeys, TelnetKeys, UdpKeys};
use crate::types::{App, DatagramSpec, Pattern, Reader, WhenRefused};
use bentpipe_base::{Duration, Size};

/// Maximum payload of a datagram: an IPv4 packet less 28 bytes of headers.
const MAX_DATAGRAM: u64 = 65_507;
/// Maximum size of a request, response or write.
const MAX_MESSAGE: Size = Size(1 << 40);

pub(super) fn app(given: &At<OrTable<Bulk, AppKeys>>) -> Result<App> {
    let OrTable::Table(keys) = &given.value else { return Ok(App::Bulk) };
    match (keys.transfer, keys.rate, keys.lasting, &keys.requests, &keys.telnet, &keys.udp) {
        (Some(size), None, None, None, None, None) => size.positive("transfer").map(App::Transfer),
        (None, Some(rate), None, None, None, None) => Ok(App::Rate(rate.value)),
        (None, None, Some(time), None, None, None) => time.positive("lasting").map(App::Lasting),
        (None, None, None, Some(keys), None, None) => requests(&keys.value),
        (None, None, None, None, Some(keys), None) => telnet(&keys.value),
        (None, None, None, None, None, Some(keys)) => udp(&keys.value),
        _ => Err(exactly_one(given.span, "app", "transfer, rate, lasting, requests, telnet, udp")),
    }
}

/// Checks the size of a write or message.
fn message(key: &str, given: At<Size>) -> Result<Size> {
    given.at_most(key, MAX_MESSAGE)?;
    given.positive(key)
}

fn requests(keys: &RequestKeys) -> Result<App> {
    Ok(App::Requests {
        request: keys.request.map_or(Ok(Size(300)), |s| message("request", s))?,
        response: message("response", keys.response)?,
        think: keys.think.map_or(Duration::ZERO, |t| t.value),
        count: keys.count.map(|c| c.value.0),
    })
}

fn telnet(keys: &TelnetKeys) -> Result<App> {
    let size = keys.size.map_or(Ok(Size(1)), |s| message("size", s))?;
    let gap = keys.gap.map_or(Ok(Duration::from_secs(1)), |g| super::dynamics::interval("gap", g))?;
    Ok(App::Telnet { size, gap })
}

fn udp(keys: &UdpKeys) -> Result<App> {
    let size = keys.size.map_or(Ok(Size(1000)), |s| s.positive("size"))?;
    if let Some(wrong) = keys.size.filter(|s| s.value.0 > MAX_DATAGRAM) {
        bail!(wrong.span, "a datagram of that size does not exist", "from 1 B to {MAX_DATAGRAM} B");
    }
    let rate = keys.rate.value;
    let pattern = match keys.pattern.as_ref().map(|p| &p.value) {
        None | Some(OrTable::Plain(PlainPattern::Constant)) => Pattern::Constant(rate),
        Some(OrTable::Plain(PlainPattern::Poisson)) => Pattern::Poisson(rate),
        Some(OrTable::Table(spells)) => Pattern::OnOff {
            rate,
            on: super::dynamics::interval("on", spells.on)?,
            off: super::dynamics::interval("off", spells.off)?,
        },
    };
    Ok(App::Udp { size, pattern })
}

/// Resolves what only flows of datagrams have.
pub(super) fn datagrams(given: Option<&At<OrTable<Bulk, AppKeys>>>) -> Result<DatagramSpec> {
    let Some(OrTable::Table(keys)) = given.map(|given| &given.value) else {
        return Ok(DatagramSpec::default());
    };
    let Some(udp) = &keys.udp else { return Ok(DatagramSpec::default()) };
    Ok(DatagramSpec {
        lasting: udp.value.lasting.map(|lasting| lasting.positive("lasting")).transpose()?,
        when_refused: udp.value.refused.map_or_else(WhenRefused::default, |refused| refused.value),
    })
}

pub(super) fn reader(given: &At<OrTable<Eager, ReaderKeys>>) -> Result<Reader> {
    let OrTable::Table(keys) = &given.value else { return Ok(Reader::Eager) };
    match (keys.rate, &keys.turns, &keys.pause, keys.stop_at) {
        (Some(rate), None, None, None) => Ok(Reader::Slow(rate.value)),
        (None, Some(turns), None, None) => Ok(Reader::Turns {
            rates: [turns.value.rate.value, turns.value.then.value],
            each: super::dynamics::interval("each", turns.value.each)?,
        }),
        (None, None, None, Some(at)) => Ok(Reader::StopAt(at.value)),
        (None, None, Some(pause), None) => {
            let pause = &pause.value;
            check_order("pause", pause.from, pause.to)?;
            let (from, to) = (pause.from.value, pause.to.value);
            if let Some(every) = pause.every.filter(|e| e.value <= to.since(from)) {
                bail!(every.span, "`every` must be longer than the pause");
            }
            Ok(Reader::Pause { from, to, every: pause.every.map(|e| e.value) })
        }
        _ => Err(exactly_one(given.span, "reader", "rate, turns, pause, stop_at")),
    }
}
