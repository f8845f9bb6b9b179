//! Table 2 of TCP-SuperCharger: the gain over time, live and simulated.

use super::hops::{RATE_BPS, RTT_S};
use super::runs::{Job, RunKind, RunResult, SENDER, SeriesOf};
use crate::accept::list::{List, Outcome, Setup};
use lab::chain::OLD_KERNEL;
use lab::{Rig, Who, with};

/// The paper's test bed, and its duration, s.
const FILE: &str = "scenarios/supercharger.toml";
const SECONDS: u64 = 45;
/// Interval of the paper's mean, s.
const MEAN_S: (f64, f64) = (25.0, 40.0);
/// A packet on the hop and its payload: 14 B of framing, 40 B of headers.
const PACKET: (f64, f64) = (1514.0, 1460.0);
/// Converts the rates of series, which exclude the hop's framing.
const FRAMED: f64 = 1514.0 / 1500.0;
/// Full rate, to be reached by the 12th second.
const FULL_BPS: f64 = 23.5e6;
const FULL_BY_S: u32 = 12;
/// Largest queue of the hop, bytes.
const QUEUE: f64 = 65_536.0;
/// Handshake and request take two round trips, s.
const OPEN_S: f64 = 2.0 * RTT_S;
/// The cases: flow name, and window without a gateway.
const CASES: [(&str, Option<f64>); 5] = [
    ("gateway", None),
    ("64k", Some(65_535.0)),
    ("1024k", Some(1024.0 * 1024.0)),
    ("2048k", Some(2048.0 * 1024.0)),
    ("4096k", Some(4096.0 * 1024.0)),
];

pub(super) fn check(setup: &Setup, list: &mut List) -> Outcome {
    let rig = setup.rig(Who::CurrentUser)?;
    let run =
        |how, sets: &[&str]| -> Outcome<RunResult> { Job::start(&rig, how, FILE, 1, sets)?.wait(SECONDS) };
    let live = run(RunKind::Live, &[]);
    let simulated = run(RunKind::Simulated, &[]);
    with_gateway(&live, list);
    for (case, window) in CASES {
        if let Some(window) = window {
            let what = format!("{case} without a gateway, 25-40 s: within 3 % of the model");
            list.judge(what, mean_rate(&live, case), |bps| beside_model(bps, window));
        }
    }
    for (case, _) in CASES {
        let both = mean_rate(&simulated, case).and_then(|s| Ok((s, mean_rate(&live, case)?)));
        list.judge(format!("{case}: simulated within 2 % of live"), both, |(simulated, live)| {
            let apart = simulated / live - 1.0;
            (format!("{} and {}: {:+.2} %", mbit(simulated), mbit(live), apart * 100.0), apart.abs() <= 0.02)
        });
    }
    let strict = mean_rate(&run(RunKind::Live, &["mode=strict"]), "gateway");
    list.judge("mode strict, 25-40 s (reported)", strict, |bps| (share(bps), true));
    let what = "IPv6, programs (iperf3), 25-40 s: >= 98.6 % of the link";
    list.judge(what, over_ipv6(&rig), |bps| (share(bps), bps >= 0.986 * RATE_BPS));
    Ok(())
}

fn with_gateway(live: &Outcome<RunResult>, list: &mut List) {
    let doubts = live.as_ref().map(RunResult::doubts).unwrap_or_default();
    let what = "64 KB with the gateway, 25-40 s: >= 98.6 % of the link";
    list.judge(what, mean_rate(live, "gateway"), |bps| (share(bps) + &doubts, bps >= 0.986 * RATE_BPS));
    let rates = with(live, |ran| full(ran, "hop-gateway"));
    list.judge("full rate (>= 23.5 Mbit/s) from the 12th second on", rates, |(second, mean, least)| {
        let [s, m, l] = [second, mean, least].map(mbit);
        let figure = format!("12th second {s}, from then on {m}, least second {l}");
        (figure, second >= FULL_BPS && mean >= FULL_BPS)
    });
    let queue = with(live, |ran| ran.peak(SeriesOf::Link("hop-gateway"), "queue_peak_packets", OPEN_S));
    list.judge("queue of the hop after the handshake: <= 64 KB", queue, |packets| {
        let bytes = packets * PACKET.0;
        (format!("{packets} packets, {:.1} KB", bytes / 1024.0), bytes <= QUEUE)
    });
    let heard =
        with(live, |ran| Ok((ran.flow("gateway", "retransmits")?, ran.gateway("gateway", "resent")?)));
    let what = "no loss: nothing sent again by sender or gateway (reported)";
    list.judge(what, heard, |(again, resent)| {
        (format!("{again} retransmissions, {resent} discarded by the receiver"), true)
    });
}

/// Compares with the model: window over RTT including headers, at most the rate of the hop.
fn beside_model(bps: f64, window: f64) -> (String, bool) {
    let model = RATE_BPS.min(window * 8.0 / RTT_S * PACKET.0 / PACKET.1);
    let apart = bps / model - 1.0;
    (format!("{}, model {}: {:+.2} %", mbit(bps), mbit(model), apart * 100.0), apart.abs() <= 0.03)
}

/// Mean rate on the hop of a case during the paper's interval.
fn mean_rate(ran: &Outcome<RunResult>, case: &str) -> Outcome<f64> {
    let link = format!("hop-{case}");
    let mean = with(ran, |ran| ran.mean(SeriesOf::Link(&link), "throughput_bps", MEAN_S.0, MEAN_S.1))?;
    Ok(mean * FRAMED)
}

/// Rate of a hop in the second that must be full, the mean from then on, and the lowest second from then
/// on. A late machine moves packets from one second to the next.
fn full(ran: &RunResult, hop: &str) -> Outcome<(f64, f64, f64)> {
    let bps = |from: u32, to: u32| -> Outcome<f64> {
        Ok(ran.mean(SeriesOf::Link(hop), "throughput_bps", f64::from(from), f64::from(to))? * FRAMED)
    };
    let end = MEAN_S.1 as u32;
    let seconds: Vec<f64> = (FULL_BY_S - 1..end).map(|s| bps(s, s + 1)).collect::<Outcome<_>>()?;
    let least = seconds.iter().copied().fold(f64::INFINITY, f64::min);
    Ok((seconds[0], bps(FULL_BY_S - 1, end)?, least))
}

/// The same hop over IPv6, with iperf3 and an old receiver by kernel settings. It opens the connection.
fn over_ipv6(rig: &Rig) -> Outcome<f64> {
    let near = format!("{SENDER}; exec iperf3 -s -1 >/dev/null");
    let far = format!("{OLD_KERNEL}; sleep 1; exec iperf3 -6 -c near -R -C cubic -t {SECONDS} >/dev/null");
    let ran = Job::programs(rig, FILE, 1, &near, &far)?.wait(SECONDS + 10)?;
    if ran.gateway("gateway", "flows/accelerated")? < 1.0 {
        return Err("no flow was accelerated".to_owned());
    }
    // it starts a second later, and iperf3 first opens a control connection
    let later = 4.0;
    Ok(ran.mean(SeriesOf::Link("hop-gateway"), "throughput_bps", MEAN_S.0 + later, MEAN_S.1 + later)?
        * FRAMED)
}

fn share(bps: f64) -> String {
    format!("{:.2} % ({})", bps / RATE_BPS * 100.0, mbit(bps))
}

fn mbit(bps: f64) -> String {
    format!("{:.3} Mbit/s", bps / 1e6)
}
