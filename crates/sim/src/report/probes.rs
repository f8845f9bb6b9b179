//! Report of probe segments.

use bentpipe_base::Dscp;
use bentpipe_report::ProbesReport;
use bentpipe_scenario::{LinkSpec, Scenario};
use bentpipe_tcp::cc::ProbeSignal;
use bentpipe_tcp::cc::law::Value;
use bentpipe_tcp::cc::probing::{ASSUME_PRIORITY, PROBE_DSCP};
use bentpipe_tcp::{Config, Connection};

/// Note for networks in which no queue serves probes last.
const NOT_SERVED_LAST: &str =
    "no queue of this network serves probes last (`discipline`): they take the place of data";

/// Report of the probes of a flow with the configuration `sender`; `None` if its scheme sends none.
pub(super) fn probes(scenario: &Scenario, sender: &Config, connection: &Connection) -> Option<ProbesReport> {
    let report = of_connection(connection)?;
    let served_last = scenario.links.iter().any(LinkSpec::serves_low_priority_last);
    Some(ProbesReport { note: note(mark(sender), is_trusted(sender), served_last), ..report })
}

fn note(mark: Dscp, trusted: bool, served_last: bool) -> Option<String> {
    // queue disciplines recognise low priority by a single code point
    if mark != Dscp::LE {
        let (mark, le) = (mark.get(), Dscp::LE.get());
        return Some(format!("no queue serves code point {mark} last (`probe_dscp`): LE is {le}"));
    }
    (trusted && !served_last).then(|| NOT_SERVED_LAST.to_owned())
}

/// True if the scheme assumes that queues on the path serve probes last.
fn is_trusted(sender: &Config) -> bool {
    sender.scheme.growth.get(ASSUME_PRIORITY) != Some(Value::Switch(false))
}

/// Code point of the scheme's probes.
fn mark(sender: &Config) -> Dscp {
    match sender.scheme.growth.get(PROBE_DSCP) {
        Some(Value::Number(code_point)) => Dscp::new(code_point as u8).unwrap_or(Dscp::LE),
        _ => Dscp::LE,
    }
}

const fn fallback(signal: ProbeSignal, trusted: bool) -> Option<&'static str> {
    match signal {
        ProbeSignal::None => Some(
            "slow start and recovery without probes: the ends agreed on neither the probe option nor SACK nor timestamps, and nothing else tells of a probe that arrived",
        ),
        _ if !trusted => Some(
            "slow start, and a quarter of the probes, for repairs alone: `assume_priority` is off, as it is where no queue is known to serve them last",
        ),
        ProbeSignal::Timestamps => Some(
            "recovery without probes, and slow start if none is heard of: timestamps tell of copies of the newest segment only, and only with receivers that echo these (Linux)",
        ),
        _ => None,
    }
}

/// Report of the probes of a connection, without notes about the network; `None` if its scheme sends none.
pub(super) fn of_connection(connection: &Connection) -> Option<ProbesReport> {
    let probes = connection.probes().filter(|_| connection.config().scheme.probes())?;
    let known_by = match probes.signal() {
        ProbeSignal::Option => "option",
        ProbeSignal::Dsack => "dsack",
        ProbeSignal::Timestamps => "timestamps",
        ProbeSignal::None => "none",
    };
    Some(ProbesReport {
        known_by: known_by.to_owned(),
        sent: probes.sent(),
        acknowledged: probes.acknowledged(),
        lost: probes.lost(),
        fallback: fallback(probes.signal(), is_trusted(connection.config())).map(str::to_owned),
        note: None,
    })
}
