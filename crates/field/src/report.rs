//! The results of a run, as JSON.

use crate::analyse::bound::old_receiver_bound;
use crate::analyse::flows::{Flow, flows};
use crate::analyse::repairs::{Repairs, repairs};
use crate::bed::receiver;
use crate::cell::RunConfig;
use crate::datagrams;
use crate::hop::direction::{Fate, SECOND};
use crate::hop::record::Record;
use crate::run::RunResult;
use crate::sender::retransmission_counts;
use crate::watch::SHORTEST_STALL;
use serde_json::{Value, json};

/// Start of the steady state, ns.
const STEADY: u64 = 10 * SECOND;
/// Length of the intervals for goodput, ns.
const GOODPUT_INTERVAL: u64 = 10 * SECOND;

/// Counts data packets that entered the hop from `from` to `to` (ns): all, those lost at random, and those
/// that found the queue full.
fn counts(records: &[Record], from: u64, to: u64) -> [usize; 3] {
    // smaller packets are pure acknowledgments
    let is_counted = |r: &Record| r.forward && r.size > 120 && (from..to).contains(&r.at);
    let count = |is: fn(&Record) -> bool| records.iter().filter(|r| is_counted(r) && is(r)).count();
    [count(|_| true), count(|r| r.fate == Fate::Lost), count(|r| r.fate == Fate::QueueFull)]
}

fn seconds(t: f64) -> u64 {
    (t * SECOND as f64) as u64
}

fn quantile(values: &[f64], share: f64) -> Value {
    if values.is_empty() { Value::Null } else { round(bentpipe_stats::quantile(values, share), 4) }
}

fn round(v: f64, digits: i32) -> Value {
    let scale = (0..digits).fold(1.0, |s, _| s * 10.0);
    json!((v * scale).round() / scale)
}

/// Returns all results of a run.
pub fn figures(cell: &RunConfig, ran: &RunResult) -> Value {
    let records = &ran.hop.records;
    let flows = flows(records);
    let bound = |packets: usize, lost: usize| {
        old_receiver_bound(cell.rate, cell.delay / 500.0, lost as f64 / packets.max(1) as f64) / 1e6
    };
    let intervals: Vec<Value> = (0..ran.length / GOODPUT_INTERVAL)
        .map(|i| {
            let [packets, lost, full] = counts(records, i * GOODPUT_INTERVAL, (i + 1) * GOODPUT_INTERVAL);
            json!({ "packets": packets, "lost": lost, "full": full, "old_bound_mbps": round(bound(packets, lost), 2) })
        })
        .collect();
    let [packets, lost, _] = counts(records, seconds(cell.measured_from), ran.length);
    let worst = ran.stalls.iter().map(|g| g.1).max().unwrap_or(0);
    let long = ran.stalls.iter().filter(|g| g.1 > SHORTEST_STALL).map(|g| round(g.0 as f64 / 1e9, 2));
    let all: Vec<Value> = (0..cell.flows.len()).map(|i| flow_figures(cell, ran, i, &flows)).collect();
    json!({
        "seconds": round(ran.length as f64 / 1e9, 2), "from": cell.measured_from, "seed": cell.seed,
        "flows": all,
        "intervals": intervals,
        "old_bound_mbps": round(bound(packets, lost), 3),
        "udp": udp(cell, ran),
        "hop": hop(ran),
        "watchdog": { "worst_ms": round(worst as f64 / 1e6, 1), "over_15_ms_at": long.collect::<Vec<_>>() },
        "gateway": ran.gateway.as_ref().map(|[status, flows]| json!({
            "status": told(status), "flows": told(flows) })),
    })
}

fn udp(cell: &RunConfig, ran: &RunResult) -> Value {
    let [sent, arrived] = ran.udp.map(|n| n as f64);
    let mbps = |n: f64| round(n * datagrams::SIZE as f64 * 8e3 / (ran.length as f64).max(1.0), 4);
    json!({ "asked_mbps": cell.udp / 1e6, "sent_mbps": mbps(sent), "received_mbps": mbps(arrived) })
}

fn told(answer: &Result<Value, String>) -> Value {
    answer.clone().unwrap_or_else(|why| json!({ "failed": why }))
}

fn hop(ran: &RunResult) -> Value {
    let count = |forward, is: fn(&Record) -> bool| {
        ran.hop.records.iter().filter(|r| r.forward == forward && is(r)).count()
    };
    let way = |forward| {
        json!({
            "packets": count(forward, |_| true), "lost": count(forward, |r| r.fate == Fate::Lost),
            "full": count(forward, |r| r.fate == Fate::QueueFull), "twice": count(forward, |r| r.duplicate_at.is_some()),
        })
    };
    // how long after the due time packets were delivered, us
    let out = ran.hop.records.iter().filter_map(|r| Some((r.fate.delivered_at()?, r.due)));
    let late: Vec<f64> = out.map(|(out, due)| out.saturating_sub(due) as f64 / 1e3).collect();
    json!({
        "towards": way(true), "back": way(false), "refused": ran.hop.refused, "priority": ran.hop.priority,
        "late_us": { "median": quantile(&late, 0.5), "p999": quantile(&late, 0.999), "max": quantile(&late, 1.0) },
    })
}

/// Results of connection `i`.
fn flow_figures(cell: &RunConfig, ran: &RunResult, i: usize, flows: &[Flow]) -> Value {
    let (spec, sent, read) = (&cell.flows[i], &ran.sent[i], &ran.bytes_read[i]);
    let to = u32::from(receiver(i));
    let Some(flow) = flows.iter().filter(|f| f.to == to).max_by_key(|f| f.sent.len()) else {
        return json!({ "failed": sent.failed.clone().unwrap_or_else(|| "no data crossed the hop".to_owned()) });
    };
    let (from, end) = (seconds(cell.measured_from), ran.length);
    let each = |length: u64| -> Vec<Value> {
        (0..end / length).map(|k| round(flow.goodput(k * length, (k + 1) * length) / 1e6, 2)).collect()
    };
    let (resent_all, spell_all) = retransmission_counts(&sent.samples, 0);
    let (resent, spell) = retransmission_counts(&sent.samples, STEADY);
    let firsts = flow.sent.iter().filter(|s| s.is_first).count();
    let measured: Vec<_> = flow.sent.iter().filter(|s| s.at >= from).collect();
    let again = measured.iter().filter(|s| !s.is_first).count();
    json!({
        "scheme": spec.scheme, "receiver": format!("{:?}", spec.receiver).to_lowercase(),
        "goodput_mbps": round(flow.goodput(from, end) / 1e6, 3), "goodput_10s_mbps": each(GOODPUT_INTERVAL),
        "goodput_1s_mbps": each(SECOND),
        "read_100ms": read,
        "read_mbps": round(read_between(read, cell.measured_from, end as f64 / 1e9) / 1e6, 3),
        "took_s": spec.bytes.and_then(|b| flow.time_for(b)).map(|t| round(t, 3)),
        "first_transmissions": firsts, "out_of_order": flow.sent.iter().filter(|s| s.is_late).count(),
        "sent_again": flow.sent.len() - firsts,
        "sent_again_share": round(again as f64 / (measured.len() - again).max(1) as f64, 4),
        "lost": flow.sent.iter().filter(|s| s.is_lost()).count(),
        "lost_steady": flow.sent.iter().filter(|s| s.is_lost() && s.at >= STEADY).count(),
        "repairs": waits(&repairs(flow, STEADY, (cell.rate, 2.0 * cell.delay / 1e3), end)),
        "sender": { "retransmits": resent_all, "longest_spell": spell_all, "retransmits_from_10s": resent,
            "longest_spell_from_10s": spell, "timeouts": sent.samples.last().map_or(0, |s| s.timeouts) },
        "failed": sent.failed,
    })
}

/// Mean read rate, bit/s, between two times, s.
fn read_between(read: &[u64], from: f64, to: f64) -> f64 {
    let at =
        |t: f64| ((t * 10.0) as usize).checked_sub(1).and_then(|k| read.get(k.min(read.len().max(1) - 1)));
    (at(to).unwrap_or(&0) - at(from).unwrap_or(&0)) as f64 * 8.0 / (to - from).max(0.1)
}

fn waits(r: &Repairs) -> Value {
    let with = |waits: &[f64]| {
        let within = waits.iter().filter(|w| **w <= 0.05).count();
        json!({ "n": waits.len(), "within_50_ms": within, "median_s": quantile(waits, 0.5), "p999_s": quantile(waits, 0.999), "max_s": quantile(waits, 1.0) })
    };
    json!({
        "lost_first_transmissions": r.losses, "never": r.never, "worst_shown_at_s": round(r.worst_at, 3),
        "first": with(&r.first), "later": with(&r.later), "from_loss": with(&r.from_loss),
        "from_loss_late": r.late.iter().map(|late| late.map(|s| round(s, 3))).collect::<Vec<_>>(),
    })
}
