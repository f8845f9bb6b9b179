//! Programs and kernels as they are, behind two host agents with a flow router between them.

use super::bed::{L, agents, agents_of, chain, port, states, transfer, words};
use super::{MBIT_S, SECONDS, SHARE};
use crate::accept::list::{Bound, List, Outcome, Setup, lacks_for_bpf};
use crate::program;
use lab::agents::{Method, PLAIN_PORT, scenario};
use lab::chain::{Chain, OLD_KERNEL, SENDER};
use lab::passage::Host;
use lab::scenario::OneLink;
use lab::stats::median;
use lab::streams::TransferRecord;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
const RUNS: u16 = 5;
/// Case L: bytes, loss towards the receiver, share of the link that is given away.
pub(super) const L_BYTES: u64 = 8 << 20;
pub(super) const L_LOSS: f64 = 0.02;
pub(super) const L_SHARE: f64 = 0.99;
/// The satellite hop: its rate, loss, share, and bytes for 50 s. At the end repairs alone take a round trip
/// or two, which is no part of the goodput that a transfer of any length has.
const GEO: OneLink<'static> =
    OneLink { rate: "24 Mbit/s", delay: "500 ms", buffer: "3 MB", loss: 0.01, ..OneLink::CLEAN };
const GEO_BPS: f64 = 24e6;
pub(super) const GEO_BYTES: u64 = 120_000_000;
/// Part of the rate that the flow router gives, less what is lost, that must arrive.
const USED: f64 = 0.95;
/// Payload of a packet of 1500 B: with timestamps, and with room for a structure.
const PAYLOAD: f64 = 1432.0 / 1500.0;

pub(super) fn check(setup: &Setup, list: &mut List) -> Outcome {
    let times = chain(setup, &OneLink { loss: L_LOSS, ..L }, L_SHARE, "true").and_then(|chain| turns(&chain));
    let what = format!("8 MiB, 100 Mbit/s, 40 ms, loss {L_LOSS}: between agents");
    judge_turns(list, &what, &times);
    let what = format!("{what} of method kernel");
    match lacks_for_bpf() {
        Some(why) => list.skip(&what, &why),
        None => judge_turns(list, &what, &kernel_turns(setup)),
    }
    programs(setup, list)
}

/// A receiver with an old window behind a satellite hop.
pub(super) fn satellite(setup: &Setup, list: &mut List) -> Outcome {
    let what = format!(
        "24 Mbit/s, 1000 ms, loss {}, receiver with 65 535 B: between agents, lowest of {RUNS}",
        GEO.loss
    );
    let rates: Outcome<Vec<f64>> = (1..=RUNS).map(|seed| geo(setup, seed)).collect();
    let lowest = rates.map(|all| all.into_iter().fold(f64::INFINITY, f64::min));
    list.figure(&what, lowest, Bound::Least(geo_bps()), MBIT_S);
    Ok(())
}

/// What must arrive of the satellite hop, bit/s.
pub(super) fn geo_bps() -> f64 {
    USED * SHARE * (1.0 - GEO.loss) * PAYLOAD * GEO_BPS
}

/// The same with agents of the method `kernel`.
fn kernel_turns(setup: &Setup) -> Outcome<(Vec<f64>, Vec<f64>)> {
    let link = OneLink { loss: L_LOSS, ..L };
    let chain = Chain::new(setup.with_bpf()?, &scenario(&link, L_SHARE), "true")?;
    turns_of(&chain, Method::Kernel)
}

/// Times of case L between agents, and with the kernel's BBR, by turns.
pub(super) fn turns(chain: &Chain) -> Outcome<(Vec<f64>, Vec<f64>)> {
    turns_of(chain, Method::Split)
}

fn turns_of(chain: &Chain, method: Method) -> Outcome<(Vec<f64>, Vec<f64>)> {
    let _agents = agents_of(chain, method)?;
    let (mut signalled, mut bbr) = (Vec::new(), Vec::new());
    for i in 0..RUNS {
        signalled.push(transfer(chain, port(i), "cubic", i.into(), L_BYTES)?.seconds);
        bbr.push(transfer(chain, PLAIN_PORT + i, "bbr", i.into(), L_BYTES)?.seconds);
    }
    Ok((signalled, bbr))
}

pub(super) fn judge_turns(list: &mut List, what: &str, times: &Outcome<(Vec<f64>, Vec<f64>)>) {
    let time = times.as_ref().map(|(agents, _)| median(agents)).map_err(Clone::clone);
    list.figure(&format!("{what}, median of {RUNS}"), time, Bound::Most(1.0), SECONDS);
    let both = times.as_ref().map(|(agents, bbr)| (median(agents), median(bbr))).map_err(Clone::clone);
    list.judge("the same relative to the kernel's BBR, by turns: <= 0.95", both, |(agents, bbr)| {
        (format!("{:.2} ({bbr:.3} s)", agents / bbr), agents <= 0.95 * bbr)
    });
}

/// curl and iperf3, unchanged.
fn programs(setup: &Setup, list: &mut List) -> Outcome {
    program::find(&["curl"], "curl")?;
    let chain = chain(setup, &OneLink { loss: L_LOSS, ..L }, L_SHARE, "true")?;
    let [sender, _receiver] = agents(&chain)?;
    let folder = chain.rig().path("www").display().to_string();
    let run = |host, line: &str| chain.shell(host, line, LIMIT);
    run(Host::Sender, &format!("mkdir -p '{folder}'; head -c {L_BYTES} /dev/urandom >'{folder}/file'"))?;
    let serve = format!("cd '{folder}' && exec python3 -m http.server {} --bind {}", port(90), SENDER[0]);
    let _server = chain.start(Host::Sender, &["sh", "-c", &serve])?;
    let fetch = format!(
        "curl -s --retry 20 --retry-connrefused --retry-delay 1 -o '{folder}/copy' -w '%{{time_total}}' http://{}:{}/file; cmp '{folder}/file' '{folder}/copy'",
        SENDER[0],
        port(90)
    );
    let seconds = run(Host::Receiver, &fetch).and_then(|text| text.parse().map_err(|_| text));
    list.figure("curl fetches these 8 MiB, every byte", seconds, Bound::Most(1.0 + SYN_TIMEOUT_S), SECONDS);
    let _iperf = chain.start(Host::Sender, &["iperf3", "-s", "-p", &port(91).to_string()])?;
    let line = format!("sleep 1; iperf3 -c {} -p {} -R -t 5 -J", SENDER[0], port(91));
    let bps = run(Host::Receiver, &line).and_then(|text| {
        let report = serde_json::from_str(&text).map_err(|e| format!("iperf3: {e}"))?;
        lab::speed::received_bps(&report)
    });
    list.figure("iperf3 -R, with a control connection that is granted half", bps, Bound::Least(30e6), MBIT_S);
    list.judge("their connections were granted rates", states(&sender), |all| {
        (
            words(&all),
            !all.is_empty() && all.keys().all(|state| ["granted", "reduced"].contains(&state.as_str())),
        )
    });
    Ok(())
}

/// A lost SYN costs a second.
const SYN_TIMEOUT_S: f64 = 1.0;

/// Goodput of a stream over the satellite hop from its first byte on, bit/s.
fn geo(setup: &Setup, seed: u16) -> Outcome<f64> {
    let link = OneLink { seed: seed.into(), ..GEO };
    let chain: Chain = chain(setup, &link, SHARE, OLD_KERNEL)?;
    let _agents = agents(&chain)?;
    transfer(&chain, port(seed), "cubic", seed.into(), GEO_BYTES).map(|record| since_first_byte(&record))
}

/// Goodput from the first byte on, bit/s.
pub(super) fn since_first_byte(record: &TransferRecord) -> f64 {
    record.bytes as f64 * 8.0 / (record.seconds - record.first)
}
