//! Applications over whole paths, compared with closed forms: requests, typing, datagrams in a queue,
//! parallel connections.

#![allow(clippy::unwrap_used, reason = "a test may say what it takes for granted")]

use bentpipe_base::{Duration, Instant, Rate, Size};
use bentpipe_report::Report;
use bentpipe_scenario::{App, FlowSpec, Pattern, Reader, Scenario, Source, load};
use bentpipe_sim::{RecordOptions, run, run_recorded};
use bentpipe_tcp::Validation;
use std::sync::Arc;

/// Two hosts on one link of `rate` and `delay`; segments of 1000 B, every one acknowledged.
fn scenario(rate: &str, delay: &str, app: App) -> Scenario {
    let text = format!(
        "schema = 1\ntitle = \"applications\"\nduration = \"100 s\"\n\
         [[hosts]]\nname = \"a\"\n[[hosts]]\nname = \"b\"\n\
         [[links]]\nname = \"path\"\nfrom = \"a\"\nto = \"b\"\nrate = \"{rate}\"\ndelay = \"{delay}\"\n\
         buffer = \"1000000 packets\"\n\
         [host]\ntcp = \"sack\"\nsegment = \"1000 B\"\niw = 2\nwindow = \"1 MiB\"\ndelayed_ack = false\n\
         timestamps = false\nvalidation = \"keep\"\n\
         [[flows]]\nname = \"x\"\nfrom = \"a\"\nto = \"b\"\n"
    );
    let mut s = load(&Source::new("applications.toml", text), &[], None).unwrap_or_else(|e| panic!("{e}"));
    s.flows[0].app = app;
    s
}

const fn seconds(s: u64) -> Duration {
    Duration::from_secs(s)
}

fn bps(n: u64) -> Rate {
    Rate::from_bps(n).unwrap()
}

/// An RTT of 600 ms; at 1 Gbit/s the serialisation time is negligible.
fn web(request: u64, response: u64, think: Duration, count: u64) -> Scenario {
    let app = App::Requests { request: Size(request), response: Size(response), think, count: Some(count) };
    let mut s = scenario("1 Gbit/s", "300 ms", app);
    s.stop = bentpipe_scenario::Stop::Finished;
    s.duration = seconds(10_000);
    s
}

/// 30 segments with an initial window of 2 leave in flights of 2, 4, 8 and 16: 4 RTTs, request included.
/// Afterwards the window holds all of them: 1 RTT.
#[test]
fn an_answer_takes_the_round_trips_of_slow_start() {
    let one = run(&web(300, 30_000, Duration::ZERO, 1));
    let r = one.flows[0].tcp().unwrap().requests.clone().unwrap();
    let first = r.response_ms.min.unwrap();
    assert!((2400.0..2401.0).contains(&first), "4 round trips: {first} ms");
    let three = run(&web(300, 30_000, Duration::ZERO, 3));
    let flow = &three.flows[0];
    let tcp = flow.tcp().unwrap();
    let r = tcp.requests.clone().unwrap();
    let later = r.response_ms.min.unwrap();
    assert_eq!(r.completed, 3);
    assert!((600.0..601.0).contains(&later), "1 round trip: {later} ms");
    // the handshake and 4 + 1 + 1 RTTs
    let finished = tcp.finished_s.unwrap();
    assert!((7.0 * 0.6..7.0 * 0.6 + 0.003).contains(&finished), "{finished} s");
    assert!((three.simulated_s - finished).abs() < 1e-9, "stop = finished ends the run with the last answer");
    // goodput counts responses, and the sender of the data is the host that answers
    let delivered = flow.goodput_bps * three.simulated_s / 8.0;
    assert!((delivered - 90_000.0).abs() < 1e-3, "{delivered} B");
    assert_eq!(
        (tcp.segments_sent, tcp.bytes_acked),
        (90, 90_000 - 30_000),
        "the last answer's ACKs are under way"
    );
    assert!(three.to_text().contains("3 answers complete after 60"), "{}", three.to_text());
}

/// 10 segments of a request with the same initial window: 2, 4 and the rest in three RTTs, the last of
/// which includes a small response.
#[test]
fn a_request_larger_than_the_window_takes_its_round_trips_too() {
    let r = run(&web(10_000, 500, Duration::ZERO, 1)).flows[0].tcp().unwrap().requests.clone().unwrap();
    let first = r.response_ms.min.unwrap();
    assert!((1800.0..1801.0).contains(&first), "{first} ms");
}

/// RFC 5681, section 4.1: after an idle period longer than the RTO the server restarts from its initial
/// window.
#[test]
fn thinking_long_costs_the_window_where_idle_windows_restart() {
    let mut s = web(300, 30_000, seconds(1000), 5);
    Arc::make_mut(&mut s.flows[0].sender).validation = Validation::Restart;
    let restarted = run(&s).flows[0].tcp().unwrap().requests.clone().unwrap().response_ms.min.unwrap();
    assert!((2400.0..2401.0).contains(&restarted), "{restarted} ms");
    Arc::make_mut(&mut s.flows[0].sender).validation = Validation::Keep;
    let kept = run(&s).flows[0].tcp().unwrap().requests.clone().unwrap().response_ms.min.unwrap();
    assert!((600.0..601.0).contains(&kept), "{kept} ms");
}

/// The reader is the receiver of the responses.
#[test]
fn a_slow_reader_of_answers_holds_the_server() {
    let mut s = web(300, 3_000_000, Duration::ZERO, 1);
    s.flows[0].reader = Reader::Slow(bps(400_000));
    Arc::make_mut(&mut s.flows[0].receiver).receive_buffer = bentpipe_tcp::ReceiveBuffer::Fixed(Size(64_000));
    let report = run(&s);
    let flow = &report.flows[0];
    let took = flow.tcp().unwrap().requests.clone().unwrap().response_ms.min.unwrap() / 1e3;
    // 60 s of reading and one RTT; flights of slow start below 30 kB, which is what is read in an RTT, cost
    // another (28 + 26 + 22 + 14) / 30 RTTs
    assert!((62.3..62.5).contains(&took), "3 MB at 400 kbit/s are 60 s: {took}");
    assert!(flow.tcp().unwrap().limited_by.receiver_window > 0.8, "{flow:?}");
}

fn typing(nagle: bool) -> Report {
    let mut s =
        scenario("1 Gbit/s", "300 ms", App::Telnet { size: Size(1), gap: Duration::from_millis(200) });
    s.duration = seconds(4000);
    Arc::make_mut(&mut s.flows[0].sender).nagle = nagle;
    run(&s)
}

/// Without Nagle's algorithm every write is sent at once: one RTT.
#[test]
fn without_nagle_a_key_takes_a_round_trip() {
    let t = typing(false).flows[0].tcp().unwrap().telnet.clone().unwrap();
    // 4000 s / 200 ms, 4 standard deviations of a Poisson variable; writes of the last RTT are not
    // acknowledged yet
    assert!((20_000 - 566..20_000 + 566).contains(&t.writes), "{}", t.writes);
    assert!(t.acknowledged <= t.writes && t.acknowledged + 30 > t.writes);
    assert!((600.0..600.1).contains(&t.ack_ms.min.unwrap()));
    assert!((t.ack_ms.p99.unwrap() - 600.0).abs() < 600.0 * 0.004, "{:?}", t.ack_ms);
}

/// With it, writes during an RTT R wait for its end and are sent as one segment. A fraction a = p / (k + p)
/// of all writes finds nothing in flight and takes R, where k = R / gap is the mean number of writes in an
/// RTT and p = exp(-k) the probability of none. The others take R plus a wait that is uniform in [0, R). So
/// the quantile q is R (1 + (q - a) / (1 - a)).
#[test]
fn with_nagle_a_key_waits_for_the_one_before() {
    let report = typing(true);
    let t = report.flows[0].tcp().unwrap().telnet.clone().unwrap();
    let (round_trip, typed) = (600.0, 3.0);
    let none_typed = 0.049_787_068; // exp(-3)
    let alone = none_typed / (typed + none_typed);
    // the histogram is accurate to 0.4 %; 4 standard errors of a quantile of 20 000 writes are 9 ms at the
    // median, and less at the tail
    for (q, got) in [(0.5, t.ack_ms.p50.unwrap()), (0.99, t.ack_ms.p99.unwrap())] {
        let expected = round_trip * (1.0 + (q - alone) / (1.0 - alone));
        assert!((got - expected).abs() < 9.0 + 0.004 * expected, "{q}: {got} ms, expected {expected}");
    }
    // far fewer segments than writes
    assert!(report.flows[0].tcp().unwrap().segments_sent < t.writes / 2);
    assert!(report.to_text().contains("writes acknowledged: after "), "{}", report.to_text());
}

/// Poisson arrivals at a link that serves each in 1 ms: M/D/1. The mean wait is rho / (2 (1 - rho)) service
/// times, and by Little's law the mean queue length is rho^2 / (2 (1 - rho)).
fn md1(rho: f64, seed: u64) -> (f64, f64) {
    // 972 B and 28 B of headers take 1 ms at 8 Mbit/s
    let pattern = Pattern::Poisson(bps((rho * 7_776_000.0) as u64));
    let mut s = scenario("8 Mbit/s", "250 ms", App::Udp { size: Size(972), pattern });
    s.seed = seed;
    let report = run(&s);
    let u = report.flows[0].udp().unwrap();
    assert_eq!((u.lost, u.duplicates, u.reordered), (0, 0, 0));
    assert!((u.delay_ms.quantiles.min.unwrap() - 251.0).abs() < 1e-9);
    (u.delay_ms.mean.unwrap() - 251.0, report.links[0].queue_packets.mean)
}

#[test]
fn poisson_datagrams_wait_as_in_an_md1_queue() {
    const RUNS: u64 = 10;
    for rho in [0.5, 0.8] {
        let runs: Vec<(f64, f64)> = (1..=RUNS).map(|seed| md1(rho, seed)).collect();
        let wait = rho / (2.0 * (1.0 - rho));
        let check = |what: &str, got: &[f64], expected: f64| {
            let n = RUNS as f64;
            let mean = got.iter().sum::<f64>() / n;
            let variance = got.iter().map(|g| (g - mean) * (g - mean)).sum::<f64>() / (n - 1.0);
            let error = (variance / n).sqrt();
            // Student's t with 9 degrees of freedom exceeds 6.6 with probability 1e-4; the runs must also
            // be long enough for a meaningful test
            assert!((mean - expected).abs() < 6.6 * error, "{what} at {rho}: {mean} +- {error}, {expected}");
            assert!(error < 0.015 * expected, "{what} at {rho}: {mean} +- {error}");
        };
        check("wait", &runs.iter().map(|r| r.0).collect::<Vec<_>>(), wait);
        check("number", &runs.iter().map(|r| r.1).collect::<Vec<_>>(), rho * wait);
    }
}

/// Twice the rate of the link: half of the datagrams are dropped at its queue and reported as lost.
#[test]
fn datagrams_lost_in_a_queue_are_reported() {
    let pattern = Pattern::Constant(bps(15_552_000));
    let mut s = scenario("8 Mbit/s", "250 ms", App::Udp { size: Size(972), pattern });
    std::sync::Arc::make_mut(&mut s.links[0].forward).buffer = bentpipe_link::Capacity::Packets(10);
    let report = run(&s);
    let flow = &report.flows[0];
    let u = flow.udp().unwrap();
    assert_eq!(u.sent, 200_001, "one every 500 us, at 0 s and at 100 s too");
    let dropped = report.links[0].drops["queue_full"];
    // drops of the last 261 ms, the time through queue and link, are not known yet
    assert!(u.lost <= dropped && u.lost + 265 > dropped, "{} of {dropped} are known to be lost", u.lost);
    assert!((flow.goodput_bps - u.received as f64 * 972.0 * 8.0 / 100.0).abs() < 1e-6);
    assert_eq!(u.delay_ms.quantiles.p99.map(|d| d > 255.0 && d < 265.0), Some(true), "a full queue of 10 ms");
    let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
    let flow = &json["flows"][0];
    for key in ["tcp", "established_s", "finished_s"] {
        assert!(flow[key].is_null(), "{key}: {flow}");
    }
    assert!(flow["rtt_ms"]["p50"].is_null() && flow["udp"]["delay_ms"]["p50"].is_f64());
    assert!(report.to_text().contains("x (UDP): ") && report.to_text().contains("datagrams lost ("));
}

/// Series of UDP flows agree with the report: payload, and the mean delay of each interval.
#[test]
fn series_of_datagrams_hold_payload_and_delay() {
    let mut s = scenario(
        "8 Mbit/s",
        "250 ms",
        App::Udp { size: Size(972), pattern: Pattern::Constant(bps(777_600)) },
    );
    s.duration = seconds(10);
    let (report, record) = run_recorded(&s, &RecordOptions::default(), |_| None);
    let column = |key| record.flows[0].column(key).unwrap();
    let delays: Vec<f64> = column("delay_ms").iter().copied().filter(|d| !d.is_nan()).collect();
    assert!(delays.len() > 90 && delays.iter().all(|d| (d - 251.0).abs() < 1e-9), "{delays:?}");
    let n = record.time_s.len() as f64;
    let mean = column("goodput_bps").iter().sum::<f64>() / n;
    assert!((mean - report.flows[0].goodput_bps).abs() < 1e-6 * mean, "{mean}");
}

/// Many flows are summarised, UDP flows separately from connections.
#[test]
fn many_flows_of_datagrams_are_summed_up_in_words() {
    let mut s =
        scenario("8 Mbit/s", "250 ms", App::Udp { size: Size(972), pattern: Pattern::Constant(bps(77_760)) });
    s.duration = seconds(10);
    let first = s.flows[0].clone();
    s.flows = (1..=12).map(|n| FlowSpec { name: format!("x{n}").into(), ..first.clone() }).collect();
    s.flows[11].app = App::Bulk;
    let text = run(&s).to_text();
    assert!(
        text.contains("11 UDP flows (x1 to x11): ") && text.contains("0 of 1001 datagrams lost (0 %)"),
        "{text}"
    );
    assert!(text.contains("1 sack flows (x12 to x12): "), "{text}");
}

/// Four connections for one transfer of 1 MB on a path of 8 Mbit/s and an RTT of 200 ms.
fn parallel() -> Scenario {
    let mut s = scenario("8 Mbit/s", "100 ms", App::Transfer(Size(250_000)));
    s.stop = bentpipe_scenario::Stop::Finished;
    let one = FlowSpec { group: Some("file".into()), ..s.flows[0].clone() };
    s.flows = (1..=4).map(|n| FlowSpec { name: format!("file{n}").into(), ..one.clone() }).collect();
    for flow in &mut s.flows {
        Arc::make_mut(&mut flow.receiver).receive_buffer = bentpipe_tcp::ReceiveBuffer::Fixed(Size(50_000));
    }
    s
}

fn last_finish(report: &Report) -> f64 {
    report.flows.iter().map(|f| f.tcp().unwrap().finished_s.unwrap()).fold(0.0, f64::max)
}

#[test]
fn a_transfer_over_four_connections_is_complete_with_the_last() {
    let report = run(&parallel());
    let t = &report.transfers[0];
    assert_eq!((report.transfers.len(), t.name.as_str(), t.connections, t.bytes), (1, "file", 4, 1_000_000));
    assert_eq!(t.finished_s, Some(last_finish(&report)));
    assert!((report.simulated_s - last_finish(&report)).abs() < 1e-9);
    assert!((t.goodput_bps - report.total.goodput_bps).abs() < 1e-6);
    assert!(
        report.to_text().contains("transfer file over 4 connections: 1000000 B acknowledged, complete at")
    );
}

/// One reads at 200 kbit/s: 250 kB take 10 s, less the window that may be unread when the last byte is
/// acknowledged (2 s). One pauses from 1 s to 20 s and reads the rest afterwards.
#[test]
fn slow_and_pausing_readers_hold_only_their_connection() {
    let mut s = parallel();
    s.flows[1].reader = Reader::Slow(bps(200_000));
    s.flows[2].reader =
        Reader::Pause { from: Instant(1_000_000_000), to: Instant(20_000_000_000), every: None };
    let report = run(&s);
    let done: Vec<f64> = report.flows.iter().map(|f| f.tcp().unwrap().finished_s.unwrap()).collect();
    assert!(done[0] < 3.0 && done[3] < 3.0, "{done:?}");
    assert!((8.0..11.5).contains(&done[1]), "{done:?}");
    assert!((20.0..25.0).contains(&done[2]), "{done:?}");
    let t = &report.transfers[0];
    assert_eq!((t.bytes, t.finished_s), (1_000_000, Some(done[2])));
    let reads_never = |f: &mut FlowSpec| f.reader = Reader::StopAt(Instant(500_000_000));
    reads_never(&mut s.flows[3]);
    let report = run(&s);
    assert_eq!((report.flows[3].tcp().unwrap().finished_s, report.transfers[0].finished_s), (None, None));
    assert!((report.simulated_s - 100.0).abs() < 1e-9 && report.to_text().contains("not complete"));
}

/// All applications in one run: the same bytes again, different bytes with another seed, and an additional
/// flow does not change the random numbers of the others.
#[test]
fn a_mixed_run_repeats_byte_for_byte() {
    let mixed = |seed, more: bool| {
        let think = Duration::from_millis(500);
        let web = App::Requests { request: Size(300), response: Size(20_000), think, count: None };
        let mut s = scenario("8 Mbit/s", "100 ms", web);
        s.seed = seed;
        s.duration = seconds(30);
        let first = s.flows[0].clone();
        let spell = Duration::from_millis(400);
        let apps = [
            App::Telnet { size: Size(3), gap: Duration::from_millis(100) },
            App::Udp { size: Size(200), pattern: Pattern::Poisson(bps(300_000)) },
            App::Udp {
                size: Size(160),
                pattern: Pattern::OnOff { rate: bps(64_000), on: spell, off: spell },
            },
            App::Udp { size: Size(500), pattern: Pattern::Constant(bps(100_000)) },
            App::Bulk,
        ];
        for (i, app) in apps.into_iter().take(if more { 5 } else { 4 }).enumerate() {
            s.flows.push(FlowSpec { name: format!("y{i}").into(), app, ..first.clone() });
        }
        run(&s)
    };
    let (a, b) = (mixed(1, false), mixed(1, false));
    assert_eq!((a.to_json(), a.to_text()), (b.to_json(), b.to_text()));
    assert_ne!(a.to_json(), mixed(2, false).to_json());
    let sent = |r: &Report| r.flows[2..5].iter().map(|f| f.udp().unwrap().sent).collect::<Vec<_>>();
    assert_eq!(sent(&a), sent(&mixed(1, true)));
}
