//! Writes the options of `[host]`.

use super::direction::points;
use super::{quoted, rate, size, time};
use crate::form::Word as _;
use crate::resolve::LONGEST_BURST;
use crate::types::FlowSpec;
use bentpipe_advice::negotiation::Terms;
use bentpipe_advice::tia1039::RateType;
use bentpipe_base::{Duration, IpVersion, Rate, Size};
use bentpipe_tcp::cc::law::Value;
use bentpipe_tcp::{
    AskConfig, Config, EcnUse, GrantConfig, Jitter, JitterKind, Options, ReceiveBuffer, RecoveryParams,
    Scheme, Signalling,
};
use core::fmt::Write as _;

/// Returns the options of a flow, and a table of those in which its receiver differs.
pub(super) fn flow_options(flow: &FlowSpec) -> (Vec<(&'static str, String)>, Option<String>) {
    let (sender, receiver) = (&flow.sender, &flow.receiver);
    // the configuration of a receiver with the sender's keys; a sender's scheme may not use SACK
    let same = Config {
        jitter: None,
        options: Options { sack: receiver.options.sack || sender.options.sack, ..sender.options },
        scheme: sender.signalling.as_ref().map_or(sender.scheme, |s| s.fallback_to),
        signalling: sender.signalling.as_ref().map(only_answering),
        ..Config::clone(sender)
    };
    if **receiver == same {
        return (options(sender, receiver), None);
    }
    let base = options(sender, sender);
    let own = options(receiver, receiver);
    let differs = |n: &usize| match base[*n].0 {
        // only the sender has jitter
        "jitter" | "jitter_kind" => false,
        // a receiver does not ask for what its sender asks for
        "ask" => receiver.signalling.as_ref().is_some_and(|s| s.ask.ask.is_some()),
        _ => base[*n].1 != own[*n].1,
    };
    let own: Vec<String> =
        (0..own.len()).filter(differs).map(|n| format!("{} = {}", own[n].0, own[n].1)).collect();
    (base, Some(format!("{{ {} }}", own.join(", "))))
}

/// Returns every option of `[host]`, in the order of the table of keys.
fn options(sender: &Config, receiver: &Config) -> Vec<(&'static str, String)> {
    let switch = |on: bool| on.to_string();
    let limit = |limit: Option<Size>| limit.map_or_else(|| quoted("unlimited"), size);
    let jitter = sender.jitter.unwrap_or(Jitter { max: Duration::ZERO, kind: JitterKind::Opportunity });
    let [encoding, ask, take, trust_path, ask_fallback] = signalling(sender);
    vec![
        ("stack", quoted(sender.stack.word())),
        ("tcp", scheme(&named_scheme(sender))),
        ("segment", size(Size(u64::from(sender.mss)))),
        ("window", window(receiver.receive_buffer)),
        ("reserve", size(receiver.reserve)),
        ("iw", sender.initial_window.to_string()),
        ("ssthresh", limit(sender.initial_ssthresh)),
        ("delayed_ack", delayed_ack(receiver)),
        ("send_buffer", limit(sender.send_buffer)),
        ("nagle", switch(sender.nagle)),
        ("jitter", time(jitter.max)),
        ("jitter_kind", quoted(jitter.kind.word())),
        ("min_rto", time(sender.rto.min)),
        ("max_rto", time(sender.rto.max)),
        ("initial_rto", time(sender.rto.initial)),
        ("rto_granularity", time(sender.rto.granularity)),
        ("max_timeouts", sender.max_timeouts.to_string()),
        ("user_timeout", sender.user_timeout.map_or_else(|| quoted("none"), time)),
        ("keep_alive", keep_alive(sender)),
        ("limited_transmit", switch(sender.limited_transmit)),
        ("validation", quoted(sender.validation.word())),
        ("pacing", switch(sender.pacing)),
        ("ecn", ecn(sender.ecn)),
        ("probe_option", switch(sender.probe_option)),
        ("grant", grant(sender)),
        ("encoding", encoding),
        ("ask", ask),
        ("take", take),
        ("trust_path", trust_path),
        ("ask_fallback", ask_fallback),
        ("ip", if sender.ip == IpVersion::V4 { "4".into() } else { "6".into() }),
        ("timestamps", switch(sender.options.timestamps)),
        // The sender's value depends on its scheme; the receiver's is that of the key.
        ("sack", switch(receiver.options.sack)),
        ("window_scale", switch(sender.options.window_scale)),
        ("mss_option", switch(sender.options.mss)),
        ("time_wait", time(sender.time_wait)),
    ]
}

/// Returns the signalling of a receiver that has the sender's keys.
fn only_answering(signalling: &Signalling) -> Signalling {
    let ask = AskConfig { ask: None, terms: Terms::default(), ..signalling.ask.clone() };
    Signalling { ask, ..signalling.clone() }
}

/// Returns the scheme that `tcp` names. An end that asks for a rate runs explicit rate, and `tcp` is the
/// scheme after a fallback, unless explicit rate has parameters of its own.
fn named_scheme(config: &Config) -> Scheme {
    let usual = Scheme::named("explicit-rate").map(|scheme| scheme.on(config.stack));
    match &config.signalling {
        Some(signalling) if usual == Some(config.scheme) => signalling.fallback_to,
        _ => config.scheme,
    }
}

/// Returns `encoding`, `ask`, `take`, `trust_path` and `ask_fallback`.
fn signalling(config: &Config) -> [String; 5] {
    let rate = |rate: Option<Rate>| rate.map_or_else(|| quoted("none"), self::rate);
    let Some(Signalling { ask, fallback, .. }) = &config.signalling else {
        let fallback = format!("{:?}", GrantConfig::FALLBACK);
        return [quoted("off"), rate(None), rate(None), false.to_string(), fallback];
    };
    let encoding = quoted(ask.encoding.word());
    [encoding, self::ask(ask), rate(ask.take), ask.trust_path.to_string(), format!("{fallback:?}")]
}

/// Returns `ask`: a rate, or a table with what is asked for besides.
fn ask(config: &AskConfig) -> String {
    let Some(asked) = config.ask.map(rate) else { return quoted("none") };
    let Terms { rate_type, guaranteed, preemption, delay, burst_exponent, receiver_pays } = config.terms;
    if config.terms == Terms::default() {
        return asked;
    }
    let reserved = guaranteed.map_or_else(String::new, rate);
    let rates = match rate_type {
        RateType::Available => format!("available = {asked}"),
        RateType::Composite => format!("available = {asked}, guaranteed = {reserved}"),
        RateType::Maximum => format!("maximum = {reserved}"),
        RateType::Guaranteed => format!("guaranteed = {reserved}"),
    };
    let burst = time(Duration(LONGEST_BURST.0 >> burst_exponent));
    let charge = quoted(if receiver_pays { "receiver" } else { "sender" });
    format!("{{ {rates}, preemption = {preemption}, delay = {delay}, burst = {burst}, charge = {charge} }}")
}

fn scheme(scheme: &Scheme) -> String {
    let mut out = format!("{{ scheme = {}, recovery = {}", quoted(scheme.name), recovery(scheme.recovery));
    for (param, value) in scheme.growth.params() {
        let _ = match value {
            Value::Number(v) => write!(out, ", {} = {v:?}", param.name),
            Value::Switch(v) => write!(out, ", {} = {v}", param.name),
            Value::Time(v) => write!(out, ", {} = {}", param.name, time(v)),
        };
    }
    out + " }"
}

fn recovery(recovery: RecoveryParams) -> String {
    let (detection, reduction) = (recovery.detection.word(), recovery.reduction.word());
    format!("{{ detection = \"{detection}\", reduction = \"{reduction}\", frto = {} }}", recovery.frto)
}

fn grant(config: &Config) -> String {
    let Some(GrantConfig { rate, changes, fallback, fallback_to }) = &config.grant else {
        return quoted("none");
    };
    let mut out = format!("{{ rate = {}", self::rate(*rate));
    if !changes.is_empty() {
        let _ = write!(out, ", changes = {}", points(changes, self::rate));
    }
    out + &format!(", fallback = {fallback:?}, fallback_to = {} }}", quoted(fallback_to.word()))
}

fn window(buffer: ReceiveBuffer) -> String {
    match buffer {
        ReceiveBuffer::Fixed(bytes) => size(bytes),
        ReceiveBuffer::Auto { initial, max } => {
            format!("{{ initial = {}, max = {} }}", size(initial), size(max))
        }
    }
}

fn ecn(mode: EcnUse) -> String {
    match mode {
        EcnUse::Off => "false".into(),
        EcnUse::Request => "true".into(),
        EcnUse::AcceptOnly => quoted("answer"),
    }
}

fn keep_alive(config: &Config) -> String {
    config.keep_alive.map_or_else(
        || "false".into(),
        |k| format!("{{ idle = {}, interval = {}, count = {} }}", time(k.idle), time(k.interval), k.count),
    )
}

fn delayed_ack(config: &Config) -> String {
    match config.delayed_ack {
        None => "false".into(),
        Some(d) => format!("{{ count = {}, timeout = {} }}", d.count, time(d.timeout)),
    }
}
