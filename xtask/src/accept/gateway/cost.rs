//! Cost of the gateway compared with kernel forwarding and with a loop that only copies packets. To measure
//! delays, sender and receiver are threads of this process, so they share a clock.

use crate::accept::list::{List, Outcome, Setup, run_cargo};
use crate::metadata;
use lab::passage::{Forwarding, GatewayKind, Host, RouterTestbed};
use lab::stats::{median, quantile};
use lab::{Rig, Who, join};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

/// Rounds, and seconds of each run: in full, and short.
const ROUNDS: ((u32, u32), (u32, u32)) = ((7, 10), (5, 3));
/// Throughput of PEPsal, a user-space proxy, over that of kernel forwarding; and the required multiple.
const PEPSAL: f64 = 0.31;
const TIMES_PEPSAL: f64 = 1.5;
/// Required share of the throughput of a loop that only copies packets.
const OF_BARE: f64 = 0.92;
/// Connections, and the required share of kernel forwarding for passed and for accelerated ones.
const SHARES: [(u32, f64, f64); 2] = [(1, 0.60, 0.50), (8, 0.80, 0.70)];
/// Probes in a run, the load during it, and rounds if time is short.
const PROBES: u32 = 2000;
const LOAD_BPS: u64 = 1_000_000_000;
const LAG_ROUNDS: u32 = 3;
/// Required fairness with very many connections.
const FAIR: f64 = 0.95;
/// Payload of a probe, small enough for one packet.
const PROBE: usize = 100;
/// Time between two probes.
const GAP: Duration = Duration::from_millis(1);
const PATIENCE: Duration = Duration::from_secs(10);
/// Seconds of load before and after probing.
const MARGIN: u32 = 1;

type Figures = Outcome<Vec<f64>>;

pub(super) fn check(setup: &Setup, list: &mut List) -> Outcome {
    let passage = RouterTestbed::new(setup.rig(Who::CurrentUser)?)?;
    let kinds = [(GatewayKind::Routed, "routed"), (GatewayKind::Inline, "inline")];
    for (kind, name) in kinds {
        for asked in SHARES {
            throughput(setup, list, &passage, (kind, name), asked);
        }
    }
    for (kind, name) in kinds {
        let one_way = added_delay(setup, kind, &[0.5, 0.99], |c| one_way(&passage, c, PROBES, LOAD_BPS));
        let what = format!("added at 1 Gbit/s, {name}: p50 at most 60 us, p99 at most 300 us");
        list.judge(what, one_way, |both| {
            let met = both.iter().all(|us| us[0] <= 60.0 && us[1] <= 300.0);
            let [p, a] = both.map(|us| format!("{:.0} and {:.0}", us[0], us[1]));
            (format!("p50 and p99: passing {p} us, accelerated {a}"), met)
        });
        let echoes = added_delay(setup, kind, &[0.5], |c| echoes(&passage, c, PROBES, 1000));
        list.judge(format!("echoes of 1 KB, {name}: less than 150 us more"), echoes, |[passing, fast]| {
            let figure = format!("median passing {:+.0} us, accelerated {:+.0} us", passing[0], fast[0]);
            (figure, passing[0] < 150.0 && fast[0] < 150.0)
        });
    }
    idle(list);
    let what = "10 000 connections, 1 Gbit/s, RTT 550 ms, 60 s, simulated: Jain's index";
    list.judge(what, many(&setup.rig(Who::CurrentUser)?), |(jain, bps)| {
        (format!("{jain:.4}, {:.0} Mbit/s", bps / 1e6), jain >= FAIR)
    });
    Ok(())
}

/// Figures of several ways of forwarding, measured alternately so that changes of the machine affect all.
struct Rounds(Vec<(Forwarding, Vec<Vec<f64>>)>);

impl Rounds {
    fn measure(carriers: &[Forwarding], rounds: u32, run: impl Fn(Forwarding) -> Figures) -> Outcome<Self> {
        let mut all: Vec<_> = carriers.iter().map(|c| (*c, Vec::new())).collect();
        for _ in 0..rounds {
            for (carrier, figures) in &mut all {
                figures.push(run(*carrier)?);
            }
        }
        Ok(Self(all))
    }

    /// Median over the rounds of `of`, applied to figure `i` of two ways of forwarding.
    fn compare(&self, one: Forwarding, other: Forwarding, i: usize, of: fn(f64, f64) -> f64) -> f64 {
        let figures = |carrier| self.0.iter().find(|(c, _)| *c == carrier).map_or(&[][..], |(_, f)| f);
        median(&figures(one).iter().zip(figures(other)).map(|(a, b)| of(a[i], b[i])).collect::<Vec<_>>())
    }
}

/// Delay that passing and accelerating add to kernel forwarding, at these quantiles.
fn added_delay(
    setup: &Setup,
    kind: GatewayKind,
    shares: &[f64],
    times: impl Fn(Forwarding) -> Figures,
) -> Outcome<[Vec<f64>; 2]> {
    let ways = [Forwarding::Passing(kind), Forwarding::Accelerated(kind)];
    let carriers = [Forwarding::Kernel, ways[0], ways[1]];
    let rounds = Rounds::measure(&carriers, setup.pick(ROUNDS.0.0, LAG_ROUNDS), |carrier| {
        let times = times(carrier)?;
        Ok(shares.iter().map(|share| quantile(&times, *share)).collect())
    })?;
    let more = |way, i| rounds.compare(way, Forwarding::Kernel, i, |a, b| a - b);
    Ok(ways.map(|way| (0..shares.len()).map(|i| more(way, i)).collect()))
}

fn throughput(
    setup: &Setup,
    list: &mut List,
    passage: &RouterTestbed,
    (kind, name): (GatewayKind, &str),
    (streams, of_passing, of_accelerated): (u32, f64, f64),
) {
    let (kernel, bare) = (Forwarding::Kernel, Forwarding::Bare(kind));
    let (passing, fast) = (Forwarding::Passing(kind), Forwarding::Accelerated(kind));
    let (times, seconds) = setup.pick(ROUNDS.0, ROUNDS.1);
    let goodput = |carrier| Ok(vec![passage.goodput(carrier, streams, seconds)?]);
    let rounds = Rounds::measure(&[kernel, bare, passing, fast], times, goodput);
    let limits = [of_passing, of_accelerated, OF_BARE].map(|share| format!("{:.0} %", share * 100.0));
    let [passed, accelerated, of_bare] = limits;
    let proxy = PEPSAL * TIMES_PEPSAL;
    for (what, one, other, least) in [
        (format!("passing: at least {passed} of the kernel"), passing, kernel, of_passing),
        (format!("passing: at least {of_bare} of a bare loop"), passing, bare, OF_BARE),
        (format!("accelerated: at least {accelerated} of the kernel"), fast, kernel, of_accelerated),
        (format!("accelerated: never below {:.1} %", proxy * 100.0), fast, kernel, proxy),
        ("a bare loop, for comparison".to_owned(), bare, kernel, 0.0),
    ] {
        let shares = lab::with(&rounds, |r| {
            let gbps = |carrier| r.compare(carrier, carrier, 0, |a, _| a) / 1e9;
            Ok((r.compare(one, other, 0, |a, b| a / b), gbps(one), gbps(other)))
        });
        list.judge(format!("{what}, {name}, {streams} streams{}", setup.short()), shares, |(share, a, b)| {
            (format!("{:.1} %: {a:.2} of {b:.2} Gbit/s", share * 100.0), share >= least)
        });
    }
}

/// Memory of a million idle connections, by the test of their table.
fn idle(list: &mut List) {
    let test = ["test", "--package", "bentpipe-gateway", "--test", "table_memory", "--", "--nocapture"];
    let (text, ok) = run_cargo(&test, &[]);
    // the figure may follow the test's name
    let figure = text.lines().find_map(|line| Some(line.split_once("per connection: ")?.1));
    let what = "at most 768 B per idle connection, 1 000 000 of them";
    list.line(what, figure.unwrap_or("no test ran"), ok && figure.is_some());
}

/// Jain's index of very many connections, and their total goodput, bit/s.
fn many(rig: &Rig) -> Outcome<(f64, f64)> {
    let scenario = metadata::root().join("bench/gateway-many.toml").display().to_string();
    let text = rig.output(&["sim", &scenario, "--json"], Duration::from_secs(600))?;
    let report: serde_json::Value = serde_json::from_str(&text).map_err(|e| format!("{scenario}: {e}"))?;
    let total = |name: &str| report["total"][name].as_f64().ok_or_else(|| format!("no {name} in the report"));
    Ok((total("jain")?, total("goodput_bps")?))
}

/// A connection opened by the receiver: the sender's end, the receiver's.
fn connection(passage: &RouterTestbed, carrier: Forwarding) -> Outcome<[TcpStream; 2]> {
    let text = |e: std::io::Error| format!("a connection over {carrier:?}: {e}");
    let listener =
        passage.within(Host::Sender, || TcpListener::bind((carrier.ends()[0], 0)).map_err(text))?;
    let to = listener.local_addr().map_err(text)?;
    let far = passage.within(Host::Receiver, || TcpStream::connect_timeout(&to, PATIENCE).map_err(text))?;
    let near = listener.accept().map_err(text)?.0;
    for end in [&near, &far] {
        end.set_nodelay(true).and_then(|()| end.set_read_timeout(Some(PATIENCE))).map_err(text)?;
    }
    Ok([near, far])
}

/// One-way delays of `n` probes, from write to read, during a load of `load_bps`; us.
fn one_way(passage: &RouterTestbed, carrier: Forwarding, n: u32, load_bps: u64) -> Figures {
    let gateway = passage.start_forwarding(carrier, "")?;
    let [near, far] = connection(passage, carrier)?;
    let probing = GAP.as_secs_f64() * f64::from(n) * 1.2;
    let seconds = probing.ceil() as u32 + 2 * MARGIN;
    let lags = scope(|scope| {
        let words = format!("-b {load_bps} -l 16K --pacing-timer 100 -t {seconds}");
        let load = scope.spawn(move || passage.iperf(carrier, &words, seconds));
        sleep(Duration::from_secs(u64::from(2 * MARGIN)));
        let lags = probes(near, far, n);
        let carried = join(load)?;
        let asked = load_bps as f64;
        if (carried / asked - 1.0).abs() > 0.2 {
            return Err(format!("the load was {:.0}, not {:.0} Mbit/s", carried / 1e6, asked / 1e6));
        }
        lags
    });
    gateway.end()?;
    lags
}

fn probes(mut near: TcpStream, mut far: TcpStream, n: u32) -> Figures {
    let text = |e: std::io::Error| format!("a probe: {e}");
    let (sent, came) = scope(|scope| {
        let came = scope.spawn(move || -> Outcome<Vec<Instant>> {
            let mut probe = [0; PROBE];
            (0..n).map(|_| far.read_exact(&mut probe).map(|()| Instant::now()).map_err(text)).collect()
        });
        let sent = (0..n).map(|_| {
            sleep(GAP);
            let at = Instant::now();
            near.write_all(&[7; PROBE]).map(|()| at).map_err(text)
        });
        (sent.collect::<Outcome<Vec<_>>>(), join(came))
    });
    let (sent, came) = (sent?, came?);
    Ok(sent.iter().zip(came).map(|(sent, came)| came.duration_since(*sent).as_secs_f64() * 1e6).collect())
}

/// Round-trip times of `n` messages of `bytes`, us.
fn echoes(passage: &RouterTestbed, carrier: Forwarding, n: u32, bytes: usize) -> Figures {
    let gateway = passage.start_forwarding(carrier, "")?;
    let [mut near, mut far] = connection(passage, carrier)?;
    let lags = scope(|scope| {
        scope.spawn(move || {
            let mut message = vec![0; bytes];
            // ends when the other end closes
            while near.read_exact(&mut message).and_then(|()| near.write_all(&message)).is_ok() {}
        });
        let mut message = vec![7; bytes];
        let times = (0..n).map(|_| {
            let since = Instant::now();
            far.write_all(&message)?;
            far.read_exact(&mut message)?;
            Ok(since.elapsed().as_secs_f64() * 1e6)
        });
        let times: std::io::Result<Vec<f64>> = times.collect();
        drop(far);
        times
    });
    gateway.end()?;
    lags.map_err(|e| format!("an echo over {carrier:?}: {e}"))
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn rounds_are_compared_round_by_round() {
        let passing = Forwarding::Passing(GatewayKind::Routed);
        // the machine gets slower from round to round
        let all = |figures: [f64; 3]| figures.map(|f| vec![f]).to_vec();
        let rounds =
            Rounds(vec![(Forwarding::Kernel, all([10.0, 5.0, 1.0])), (passing, all([6.0, 3.5, 0.5]))]);
        assert!((rounds.compare(passing, Forwarding::Kernel, 0, |a, b| a / b) - 0.6).abs() < 1e-12);
        assert!((rounds.compare(passing, passing, 0, |a, _| a) - 3.5).abs() < 1e-12);
        assert!(
            rounds.compare(Forwarding::Bare(GatewayKind::Inline), Forwarding::Kernel, 0, |a, _| a).is_nan()
        );
    }
}
