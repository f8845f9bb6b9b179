//! Resolves the rules of an agent file for datagrams.
//!
//! A datagram is added to a flow only where a rule names the end that receives it, by address and port: that
//! the rule says so is all that the agent knows of a peer before it asks.

use super::keys::{AgentLimitKeys, AgentRuleKeys, OpenedFrom};
use super::resolve::condition;
use super::types::{DatagramRules, Place, Transport, Treatment};
use crate::diagnostic::{Fault, Result};
use crate::form::{At, Keys as _, OrTable};
use crate::gateway_file::{Action, OneOrList, Policy, Prefix, rules};
use crate::keys::TcpKeys;
use crate::resolve::tcp_configs;
use crate::source::Span;
use crate::value::Table;
use bentpipe_advice::negotiation::AskConfig;
use bentpipe_advice::tia1039::RateType;
use bentpipe_base::Duration;
use bentpipe_tcp::Encoding;

const WAIT: Duration = Duration::from_secs(1);
const LEAST_WAIT: Duration = Duration::from_millis(1);
const MOST_WAIT: Duration = Duration::from_secs(10);
const IDLE: Duration = Duration::from_secs(10);
const LEAST_IDLE: Duration = Duration::from_secs(1);
const MOST_IDLE: Duration = Duration::from_secs(3600);

/// A rule with its number in the file.
type Numbered = (usize, At<AgentRuleKeys>);

/// Divides the rules into those for connections and those for datagrams.
pub(super) fn divide(given: Vec<At<AgentRuleKeys>>) -> (Vec<Numbered>, Vec<Numbered>) {
    let is_stream = |rule: &Numbered| rule.1.value.protocol.is_none_or(|p| p.value == Transport::Tcp);
    given.into_iter().enumerate().map(|(i, rule)| (i + 1, rule)).partition(is_stream)
}

/// Resolves the rules for datagrams.
pub(super) fn resolve(
    given: Vec<Numbered>,
    place: Place,
    limits: Option<&AgentLimitKeys>,
) -> Result<Option<DatagramRules>> {
    let (mut wait, mut idle) = (WAIT, IDLE);
    if let Some(given) = limits.and_then(|limits| limits.datagram_wait) {
        given.at_least("datagram_wait", LEAST_WAIT, "short")?;
        wait = given.at_most("datagram_wait", MOST_WAIT)?;
    }
    if let Some(given) = limits.and_then(|limits| limits.datagram_idle) {
        given.at_least("datagram_idle", LEAST_IDLE, "short")?;
        idle = given.at_most("datagram_idle", MOST_IDLE)?;
    }
    let given_time = limits.and_then(|limits| limits.datagram_idle.or(limits.datagram_wait));
    if let Some(At { span, .. }) = given_time.filter(|_| idle <= wait) {
        let label = format!("give more than `datagram_wait`, {wait}");
        let help = "help: a flow must not end while its datagrams wait";
        return Err(Fault::new(span, format!("`datagram_idle` is too short, {idle}"), label).help(help));
    }
    let Some((_, first)) = given.first() else { return Ok(None) };
    if place == Place::Routed {
        let span = first.value.protocol.map_or(first.span, |protocol| protocol.span);
        let label = "use the kind \"inline\", or \"host\" on the host itself";
        return Err(Fault::new(span, "a routed agent does not get datagrams", label));
    }
    let asks = given.iter().map(|(_, rule)| ask(rule)).collect::<Result<Vec<_>>>()?;
    let rules = rules(given.into_iter().map(|(_, rule)| rule.map(condition)).collect())?;
    let policy = Policy { rules, otherwise: Action::Pass };
    Ok(Some(DatagramRules { policy, asks, wait, idle }))
}

/// Returns what a rule asks for and takes; `None` if it lets datagrams pass.
fn ask(rule: &At<AgentRuleKeys>) -> Result<Option<AskConfig>> {
    let keys = &rule.value;
    let passes = keys.action.is_some_and(|action| action.value == Treatment::Pass);
    refuse_unused(keys, passes)?;
    if passes {
        return Ok(None);
    }
    let named = |to: &At<OneOrList<Prefix>>| to.value.0.iter().all(|p| p.value.length() > 0);
    if !keys.to.as_ref().is_some_and(named) || keys.port.is_none() {
        let label = "give `to` and `port` of the end that receives the datagrams";
        let help = "help: to this end the agent sends datagrams of its own";
        return Err(Fault::new(rule.span, "a rule for datagrams names no peer", label).help(help));
    }
    let only_answers = keys.opened_from.is_some_and(|side| side.value == OpenedFrom::Network);
    if let Some(ask) = keys.ask.as_ref().filter(|_| only_answers) {
        let label = "the datagrams come from the network: their sender asks";
        return Err(Fault::new(ask.span, "`ask` has no effect", label).help("help: leave it out"));
    }
    let none = Span::file(0..0);
    let mut tcp = TcpKeys::pick(&Table::default(), none, "")?;
    tcp.encoding = Some(keys.encoding.unwrap_or(At { value: Some(Encoding::Tia1039), span: none }));
    tcp.ask = Some(keys.ask.clone().unwrap_or(At { value: OrTable::Plain(None), span: none }));
    (tcp.take, tcp.trust_path) = (keys.take, keys.trust_path);
    let config = tcp_configs(&tcp, None, false)?.0.signalling.map(|signalling| signalling.ask);
    if let (Some(config), Some(given)) = (&config, &keys.ask)
        && config.ask.is_some()
        && config.terms.rate_type == RateType::Available
    {
        let label = "give a table with `guaranteed` or `maximum`";
        return Err(Fault::new(given.span, "datagrams ask only for a rate that is reserved", label));
    }
    Ok(config)
}

/// Refuses keys that mean nothing for datagrams.
fn refuse_unused(keys: &AgentRuleKeys, passes: bool) -> Result<()> {
    if let Some(At { value, span }) = keys.encoding
        && value != Some(Encoding::Tia1039)
    {
        let label = "datagrams signal with \"tia-1039\"; to let them pass, give `action = \"pass\"`";
        return Err(Fault::new(span, "this encoding is not for datagrams", label));
    }
    let of_streams = [
        ("tcp", keys.tcp.as_ref().map(|k| k.span)),
        ("window", keys.window.as_ref().map(|k| k.span)),
        ("ask_fallback", keys.ask_fallback.map(|k| k.span)),
    ];
    let of_signals = [
        ("encoding", keys.encoding.map(|k| k.span)),
        ("ask", keys.ask.as_ref().map(|k| k.span)),
        ("take", keys.take.map(|k| k.span)),
        ("trust_path", keys.trust_path.map(|k| k.span)),
    ];
    let unused = of_signals.into_iter().filter(|_| passes).chain(of_streams);
    let Some((key, span)) = unused.into_iter().find_map(|(key, span)| Some((key, span?))) else {
        return Ok(());
    };
    let label = if passes { "the rule lets datagrams pass" } else { "the rule is for datagrams" };
    Err(Fault::new(span, format!("`{key}` has no effect"), label).help("help: leave it out"))
}
