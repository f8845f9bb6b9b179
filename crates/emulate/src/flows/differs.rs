//! Collects the differences between the kernel's behaviour and the scenario. Each is reported once.

use super::{KERNEL_LONGEST, UNSCALED, is_sender, is_tcp};
use bentpipe_base::Duration;
use bentpipe_scenario::{FlowSpec, Scenario};
use bentpipe_tcp::{Config, Detection, ReceiveBuffer, Reduction, Scheme, Stack, Validation};
use std::collections::BTreeMap;

/// The kernel's RTO before the first RTT sample (`TCP_TIMEOUT_INIT`).
const KERNEL_INITIAL_RTO: Duration = Duration::from_secs(1);
/// `TCP_TIMEWAIT_LEN`.
const KERNEL_TIME_WAIT: Duration = Duration::from_secs(60);
/// Up to this many flows are listed by name.
const MOST_NAMED: usize = 4;

pub(super) struct Differences {
    all: usize,
    found: Vec<(String, Vec<String>)>,
}

impl Differences {
    pub(super) fn new(scenario: &Scenario) -> Self {
        Self { all: scenario.flows.iter().filter(|f| is_tcp(f)).count(), found: Vec::new() }
    }

    pub(super) fn flow(&mut self, flow: &FlowSpec) {
        if !is_tcp(flow) {
            return;
        }
        let mut texts = scheme(&flow.sender);
        texts.extend(sending(&flow.sender));
        texts.extend(receiving(&flow.receiver));
        for text in texts {
            self.say(text, &flow.name);
        }
    }

    /// A flow with the engine at both ends.
    pub(super) fn engine_flow(&mut self, flow: &FlowSpec) {
        let name = flow.sender.scheme.name;
        self.say(format!("{name} runs in bentpipe's own TCP at both ends, not in the kernel's"), &flow.name);
        if flow.sender.jitter.is_some() {
            self.say("real packets have no random delay at the sender".to_owned(), &flow.name);
        }
    }

    pub(super) fn say(&mut self, text: String, flow: &str) {
        match self.found.iter_mut().find(|(t, _)| *t == text) {
            Some((_, flows)) => flows.push(flow.to_owned()),
            None => self.found.push((text, vec![flow.to_owned()])),
        }
    }

    /// A line for each difference.
    pub(super) fn lines(self) -> Vec<String> {
        let line = |(text, flows): (String, Vec<String>)| {
            let named = flows.iter().take(MOST_NAMED).cloned().collect::<Vec<_>>().join(", ");
            match flows.len() {
                n if n == self.all => text,
                1 => format!("{text} (flow {named})"),
                n if n <= MOST_NAMED => format!("{text} (flows {named})"),
                n => format!("{text} (flows {named} and {} more)", n - MOST_NAMED),
            }
        };
        self.found.into_iter().map(line).collect()
    }

    /// Returns the kernel settings that all senders of `host` share. The others are reported and stay.
    pub(super) fn of_senders(&mut self, scenario: &Scenario, host: usize) -> Vec<(&'static str, String)> {
        let mut values: BTreeMap<&'static str, (&'static str, Vec<String>)> = BTreeMap::new();
        for flow in scenario.flows.iter().filter(|f| is_sender(f, host)) {
            for (name, path, value) in sender_settings(&flow.sender) {
                let (_, known) = values.entry(path).or_insert((name, Vec::new()));
                if !known.contains(&value) {
                    known.push(value);
                }
            }
        }
        let mut settings = Vec::new();
        for (path, (name, mut known)) in values {
            if let (1, Some(value)) = (known.len(), known.pop()) {
                settings.push((path, value));
                continue;
            }
            let text = format!(
                "host {} has one setting of {name} for all its flows, and that is the kernel's",
                scenario.nodes[host].name
            );
            for flow in scenario.flows.iter().filter(|f| is_sender(f, host)) {
                self.say(text.clone(), &flow.name);
            }
        }
        settings
    }
}

/// Settings of senders, with their names for people.
fn sender_settings(config: &Config) -> Vec<(&'static str, &'static str, String)> {
    let recovery = &config.scheme.recovery;
    let linux = config.stack == Stack::Linux;
    let rack = linux || recovery.detection == Detection::Rack;
    let restarts = config.validation != Validation::Keep;
    let on = |on: bool, value: &str| if on { value.to_owned() } else { "0".to_owned() };
    vec![
        ("idle restart", "net/ipv4/tcp_slow_start_after_idle", on(restarts, "1")),
        ("F-RTO", "net/ipv4/tcp_frto", on(linux || recovery.frto, "2")),
        ("the tail loss probe", "net/ipv4/tcp_early_retrans", on(rack, "3")),
        ("RACK", "net/ipv4/tcp_recovery", on(rack, "1")),
        ("the number of timeouts", "net/ipv4/tcp_retries2", config.max_timeouts.to_string()),
    ]
}

fn scheme(config: &Config) -> Vec<String> {
    let scheme = &config.scheme;
    let rfc = config.stack == Stack::Rfc;
    let detection = match scheme.recovery.detection {
        _ if !rfc => None,
        Detection::Reno => Some("the kernel's reno recovers as NewReno does (RFC 6582)"),
        Detection::Sack => Some("with SACK the kernel finds losses by time too (RACK, RFC 8985)"),
        Detection::Vegas => Some("the kernel's vegas has no fine-grained retransmission timer"),
        Detection::NewReno | Detection::Rack => None,
    };
    let mut texts: Vec<String> = detection.into_iter().map(str::to_owned).collect();
    if rfc && scheme.recovery.reduction != Reduction::Prr {
        texts.push("the kernel reduces its window by PRR (RFC 9937)".to_owned());
    }
    let own = Scheme::named(scheme.name).map(|plain| plain.growth);
    let changed = own != Some(scheme.growth) || scheme.growth.algorithm().linux.is_none();
    if changed && !scheme.growth.algorithm().params.is_empty() {
        texts.push(format!("parameters of {} are the kernel's own", scheme.name));
    }
    texts
}

fn sending(config: &Config) -> Vec<String> {
    let (rto, time_wait) = (config.rto.initial, config.time_wait);
    let ssthresh = config.initial_ssthresh.map(|s| s.to_string()).unwrap_or_default();
    let least = config.rto.min;
    let validates = config.validation == Validation::Validate && config.stack == Stack::Rfc;
    let texts = [
        (!ssthresh.is_empty(), format!("slow start has no first threshold in the kernel, here {ssthresh}")),
        (
            rto != KERNEL_INITIAL_RTO,
            format!("before the first round trip the kernel waits {KERNEL_INITIAL_RTO}, here {rto}"),
        ),
        (
            least > KERNEL_LONGEST,
            format!(
                "the kernel's shortest timeout is a round trip and at most {KERNEL_LONGEST}, here {least}"
            ),
        ),
        (!config.limited_transmit, "the kernel always does limited transmit (RFC 3042)".to_owned()),
        (config.jitter.is_some(), "the kernel has no random delay at the sender".to_owned()),
        (!config.options.mss, "the kernel always sends the MSS option".to_owned()),
        (validates, "the kernel validates its window as RFC 2861 says, not RFC 7661".to_owned()),
        (
            time_wait != KERNEL_TIME_WAIT,
            format!("TIME-WAIT takes {KERNEL_TIME_WAIT} in the kernel, here {time_wait}"),
        ),
    ];
    texts.into_iter().filter(|(differs, _)| *differs).map(|(_, text)| text).collect()
}

fn receiving(config: &Config) -> Vec<String> {
    let mut texts = Vec::new();
    if let Some(delayed) = config.delayed_ack.filter(|d| d.count != 2) {
        texts.push(format!("the kernel acknowledges every second segment, here every {}", delayed.count));
    }
    if let Some(delayed) = config.delayed_ack.filter(|d| d.timeout > KERNEL_LONGEST) {
        let here = delayed.timeout;
        texts.push(format!("the kernel delays an acknowledgment by at most {KERNEL_LONGEST}, here {here}"));
    }
    if config.reserve.0 > 0 {
        texts.push("the kernel decides what it keeps beyond the window it shows".to_owned());
    }
    if let ReceiveBuffer::Fixed(window) = config.receive_buffer {
        let whole = window.0 - window.0 % u64::from(config.mss);
        if !config.options.window_scale && window.0 != UNSCALED && whole != window.0 {
            texts.push(format!(
                "without window scale the kernel announces whole segments: {whole} B, not {}",
                window.0
            ));
        }
    }
    texts
}
