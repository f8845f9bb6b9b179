//! Sampling: the record agrees with the report, and sampling does not change the run.

#![allow(clippy::unwrap_used, reason = "a test may say what it takes for granted")]

use bentpipe_base::{Duration, Instant};
use bentpipe_report::Report;
use bentpipe_scenario::{App, Direction, InstrumentKind, InstrumentSpec, Scenario, Source, load};
use bentpipe_sim::record::SequenceKind;
use bentpipe_sim::{Record, RecordOptions, run, run_recorded, run_while};

fn scenario(text: &str, sets: &[(&str, &str)]) -> Scenario {
    let sets: Vec<_> = sets.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    load(&Source::new("test.toml", text), &sets, None).map_err(|e| e.to_string()).unwrap()
}

fn sharing() -> Scenario {
    let sets = [("duration", "60 s"), ("flows", "3"), ("loss", "1e-3"), ("tcp", "sack")];
    scenario(include_str!("../../../scenarios/sharing.toml"), &sets)
}

fn watched(scenario: &Scenario) -> (Report, Record) {
    run_recorded(scenario, &RecordOptions { sequences: 2, ..RecordOptions::default() }, |_| None)
}

#[test]
fn looking_changes_nothing() {
    for scenario in [
        sharing(),
        scenario(include_str!("../../../scenarios/transfer.toml"), &[]),
        scenario(include_str!("../../../scenarios/burst.toml"), &[]),
    ] {
        assert_eq!(run(&scenario).to_json(), watched(&scenario).0.to_json());
    }
}

#[test]
fn asking_whether_to_go_on_changes_nothing() {
    let scenario = sharing();
    let mut asked = 0;
    let mut go_on = || {
        asked += 1;
        true
    };
    let (report, record) = run_while(&scenario, None, &mut go_on).unwrap();
    assert_eq!((report.to_json(), record.is_none()), (run(&scenario).to_json(), true));
    assert_eq!(asked, 600, "every 100 ms");
    let watch = RecordOptions { sequences: 2, ..RecordOptions::default() };
    let (report, record) = run_while(&scenario, Some(&watch), &mut || true).unwrap();
    let (watched_report, watched_record) = watched(&scenario);
    assert_eq!(report.to_json(), watched_report.to_json());
    assert_eq!(format!("{record:?}"), format!("{:?}", Some(watched_record)));
}

#[test]
fn a_run_that_is_told_to_stop_asks_no_more_and_has_no_report() {
    let mut asked = 0;
    let mut go_on = || {
        asked += 1;
        asked < 20
    };
    assert!(run_while(&sharing(), None, &mut go_on).is_none());
    assert_eq!(asked, 20);
}

/// A loss has the time at which it happened, not the time of the sample.
#[test]
fn times_of_losses_do_not_depend_on_the_samples() {
    let scenario = sharing();
    let dropped = |every| {
        let (_, record) =
            run_recorded(&scenario, &RecordOptions { every, ..RecordOptions::default() }, |_| None);
        let points = record.sequences[0].points.iter();
        points.filter(|p| p.kind == SequenceKind::Dropped).copied().collect::<Vec<_>>()
    };
    let seldom = dropped(Duration::from_secs(20));
    assert!(seldom.len() > 1);
    assert_eq!(seldom, dropped(Duration::from_millis(1)));
}

#[test]
fn series_add_up_to_the_report() {
    let (report, record) = watched(&sharing());
    let (n, every) = (record.time_s.len(), record.every.as_secs_f64());
    assert!((1024..=2048).contains(&n), "{n} intervals");
    assert!((record.time_s[n - 1] - 60.0).abs() < 1e-9);
    for (flow, series) in report.flows.iter().zip(&record.flows) {
        assert_eq!(series.name, *flow.name);
        let goodput = series.column("goodput_bps").unwrap();
        assert_eq!(goodput.len(), n);
        let mean =
            goodput[..n - 1].iter().sum::<f64>() * every + goodput[n - 1] * (60.0 - record.time_s[n - 2]);
        assert!((mean / 60.0 / flow.goodput_bps - 1.0).abs() < 1e-9, "{mean} {}", flow.goodput_bps);
        let resent: f64 = series.column("retransmits").unwrap().iter().filter(|v| !v.is_nan()).sum();
        assert!((resent - flow.tcp().unwrap().retransmits as f64).abs() < 0.5);
        let rtt: Vec<f64> =
            series.column("rtt_ms").unwrap().iter().copied().filter(|v| !v.is_nan()).collect();
        assert!(rtt.iter().all(|r| *r >= flow.tcp().unwrap().rtt_ms.min.unwrap() - 0.1), "{rtt:?}");
    }
    for (link, series) in report.links.iter().zip(&record.links) {
        assert_eq!(series.name, *link.name);
        let peak = series.column("queue_peak_packets").unwrap().iter().copied().fold(0.0, f64::max);
        assert!((peak - f64::from(link.queue_packets.peak)).abs() < 0.5, "{}", link.name);
        let lost: f64 = series.column("lost").unwrap().iter().sum();
        let drops: u64 = link.drops.iter().filter(|(k, _)| *k != "queue_full").map(|(_, v)| v).sum();
        assert!((lost - drops as f64).abs() < 0.5);
    }
}

#[test]
fn a_time_sequence_plot_tells_new_from_resent() {
    let (report, record) = watched(&sharing());
    assert_eq!(record.sequences.len(), 2);
    for sequence in &record.sequences {
        assert_eq!(sequence.omitted, 0);
        let count = |kind| sequence.points.iter().filter(|p| p.kind == kind).count() as u64;
        let flow = report.flows[sequence.flow].tcp().unwrap();
        // all segments that the sender's host gave to its link
        assert_eq!(count(SequenceKind::Sent) + count(SequenceKind::Resent), flow.segments_sent);
        assert_eq!(count(SequenceKind::Resent), flow.retransmits);
        assert!(count(SequenceKind::Dropped) > 0 && count(SequenceKind::WindowEdge) > 100);
        let acked =
            sequence.points.iter().filter(|p| p.kind == SequenceKind::Acknowledged).map(|p| p.offset).max();
        assert_eq!(acked, Some(flow.bytes_acked));
        assert!(sequence.points.windows(2).all(|w| w[0].time_s <= w[1].time_s));
    }
}

/// Responses flow against the direction of the SYN: their sender is recorded.
#[test]
fn the_sender_of_answers_is_followed() {
    let mut scenario = scenario(include_str!("../../../scenarios/transfer.toml"), &[]);
    let (request, response) = (bentpipe_base::Size(300), bentpipe_base::Size(200_000));
    scenario.flows[0].app = App::Requests { request, response, think: Duration::ZERO, count: Some(2) };
    let (report, record) = watched(&scenario);
    let points = &record.sequences[0].points;
    let sent =
        points.iter().filter(|p| matches!(p.kind, SequenceKind::Sent | SequenceKind::Resent)).count() as u64;
    assert_eq!(sent, report.flows[0].tcp().unwrap().segments_sent);
    let acked = points.iter().filter(|p| p.kind == SequenceKind::Acknowledged).map(|p| p.offset).max();
    // the run ends when the last response is complete, with its last ACKs in flight
    assert_eq!(acked, Some(report.flows[0].tcp().unwrap().bytes_acked));
    assert!(acked > Some(300_000));
}

#[test]
fn instruments_write_a_row_for_each_interval() {
    let mut scenario =
        scenario(include_str!("../../../scenarios/window.toml"), &[("ber", "1e-6"), ("duration", "100 s")]);
    let link = Direction { link: 0, backward: false };
    let rate = bentpipe_base::Rate::from_bps(256_000).unwrap();
    for (name, kind, every) in [
        ("bert", InstrumentKind::SideChannel { rate }, 15),
        ("router", InstrumentKind::Counters, 10),
        ("bins", InstrumentKind::Bins { flow: 0 }, 40),
    ] {
        scenario.instruments.push(InstrumentSpec {
            name: name.into(),
            kind,
            link,
            every: Duration::from_secs(every),
        });
    }
    let report = run(&scenario);
    let [bert, router, bins] = &report.instruments[..] else { panic!("three instruments") };
    // the end of the run cuts the last interval short
    assert_eq!((bert.rows.len(), router.rows.len(), bins.rows.len()), (7, 10, 3));
    // 256 kbit/s x 1e-6 = 0.256 bit errors per second: 25.6 in all, 4 sigma = 20; 1 - exp(-0.256) of 100 s
    // = 22.6 errored seconds, 4 sigma = 17
    let seconds: f64 = bert.rows.iter().map(|r| r[4]).sum();
    assert!((6.0..=40.0).contains(&seconds), "{seconds} errored seconds");
    let bits: f64 =
        bert.rows.iter().zip([15.0, 15.0, 15.0, 15.0, 15.0, 15.0, 10.0]).map(|(r, s)| r[3] * s * 256e3).sum();
    assert!((6.0..=46.0).contains(&bits), "{bits} wrong bits");
    assert!(bert.rows.iter().all(|r| r[1].is_nan() && (r[2] - 1e-6).abs() < 1e-15));
    let link = &report.links[0];
    let packets: f64 = router.rows.iter().map(|r| r[1]).sum();
    assert!((packets - link.packets as f64).abs() < 0.5);
    let errors: f64 = bins.rows.iter().map(|r| r[3]).sum();
    assert!((errors - link.drops["bit_error"] as f64).abs() < 0.5 && errors > 0.0);
    let goodput: f64 = bins.rows.iter().zip([40.0, 40.0, 20.0]).map(|(r, s)| r[1] * s / 100.0).sum();
    assert!((goodput * 8.0 / report.total.goodput_bps - 1.0).abs() < 1e-9);
    let resent: Vec<f64> = bins.rows.iter().map(|r| r[5]).collect();
    assert!((resent.iter().sum::<f64>() - report.flows[0].tcp().unwrap().retransmits as f64).abs() < 0.5);
    assert!(resent.iter().filter(|n| **n > 0.0).count() > 1, "{resent:?}");
}

/// What waited behind a gap is delivered at once when it is filled, but arrived before. No interval has more
/// new bytes than the link carries in it, and one packet more that was being sent at its start.
#[test]
fn goodput_can_exceed_the_link_and_arrivals_cannot() {
    let sets = [("ber", "1e-6"), ("tcp", "sack")];
    let mut scenario = scenario(include_str!("../../../scenarios/window.toml"), &sets);
    let link = scenario.links[0].forward.rate.bps() as f64;
    let every = Duration::from_millis(250);
    let (mut most, mut delivered, mut arrived) = (0.0_f64, 0.0, 0.0);
    for n in 0..40 {
        let from = Instant::ZERO + every * n;
        (scenario.duration, scenario.measure) = (every * (n + 1), Some((from, from + every)));
        let report = run(&scenario);
        let flow = &report.flows[0];
        let new = flow.arrived_bps.unwrap();
        assert!(new <= link + 8.0 * 1500.0 / every.as_secs_f64(), "{new} bit/s arrived in interval {n}");
        most = most.max(flow.goodput_bps);
        delivered += flow.goodput_bps / 8.0 * every.as_secs_f64();
        arrived += new / 8.0 * every.as_secs_f64();
    }
    assert!(most > 1.5 * link, "{most} bit/s delivered");
    // in the end the same bytes, but for those that wait
    assert!(arrived >= delivered && arrived - delivered <= 128_000.0, "{arrived} {delivered}");
}

/// A run that ends with its flows lasts until the measured interval starts if all finish before, sampled or
/// not.
#[test]
fn flows_that_finish_before_the_measure_begins_end_the_run_there() {
    let text = include_str!("../../../scenarios/transfer.toml");
    let mut scenario = scenario(text, &[("size", "10 kB")]);
    scenario.measure = Some((Instant(20_000_000_000), Instant(900_000_000_000)));
    let report = run(&scenario);
    assert!(report.flows[0].tcp().unwrap().finished_s < Some(20.0));
    assert!((report.simulated_s - 20.0).abs() < 1e-9, "{} s", report.simulated_s);
    assert_eq!(report.to_json(), watched(&scenario).0.to_json());
}

/// With slots that differ by seconds and packet reordering, a retransmitted SYN may arrive after the end of
/// the connection. It opens a new connection, which must not hide the figures of the first.
#[test]
fn a_syn_that_comes_late_changes_no_figures() {
    let text = "schema = 1\ntitle = \"late\"\nduration = \"60 s\"\n\
                [[hosts]]\nname = \"a\"\n[[hosts]]\nname = \"b\"\n\
                [[links]]\nname = \"path\"\nfrom = \"a\"\nto = \"b\"\nrate = \"8 Mbit/s\"\nbuffer = \"99 packets\"\n\
                orbit = { slots = { period = \"500 ms\", delay = [\"1 ms\", \"4 s\"], reorder = true } }\n\
                [[flows]]\nname = \"x\"\nfrom = \"a\"\nto = \"b\"\napp = { transfer = \"1 kB\" }\n";
    let mut scenario = scenario(text, &[]);
    // one run in 13 has such a SYN
    for seed in 1..=80 {
        scenario.seed = seed;
        let (report, record) = watched(&scenario);
        let delivered = report.total.goodput_bps * 60.0 / 8.0;
        assert!((delivered - 1000.0).abs() < 1e-6, "seed {seed}: {delivered} B");
        assert!(record.flows[0].column("goodput_bps").unwrap().iter().all(|g| *g >= 0.0));
    }
}

/// A side channel samples once per second. If its interval is not a multiple of a second, its rows are
/// means over the sampled seconds.
#[test]
fn a_side_channel_with_broken_seconds_sees_the_rate_of_the_link() {
    let mut scenario =
        scenario(include_str!("../../../scenarios/window.toml"), &[("ber", "1e-6"), ("duration", "10 s")]);
    let link = Direction { link: 0, backward: false };
    let rate = bentpipe_base::Rate::from_bps(256_000).unwrap();
    for (name, every) in [("long", 1500), ("short", 500)] {
        let kind = InstrumentKind::SideChannel { rate };
        scenario.instruments.push(InstrumentSpec {
            name: name.into(),
            kind,
            link,
            every: Duration::from_millis(every),
        });
    }
    let report = run(&scenario);
    let [long, short] = &report.instruments[..] else { panic!("two instruments") };
    let right = |row: &Vec<f64>| (row[2] - 1e-6).abs() < 1e-15;
    assert!(long.rows.len() == 7 && long.rows.iter().all(right), "{:?}", long.rows);
    // every second row contains no sample
    assert_eq!(short.rows.len(), 20);
    for two in short.rows.chunks(2) {
        assert!(two[0][2].is_nan() && two[0][3].is_nan() && right(&two[1]), "{two:?}");
    }
}

/// Merged rows, the last of which may cover a short interval, add up to the values of the report.
#[test]
fn a_short_last_interval_and_shares_add_up() {
    // 2047 whole intervals and half of one, on a link that sends a packet in 5.4 ms
    let text = include_str!("../../../scenarios/window.toml");
    let (report, record) = watched(&scenario(text, &[("duration", "20475 ms"), ("window", "128 segments")]));
    let goodput = record.flows[0].column("goodput_bps").unwrap();
    let begins = core::iter::once(&0.0).chain(&record.time_s);
    let bits: f64 =
        goodput.iter().zip(record.time_s.iter().zip(begins)).map(|(g, (to, from))| g * (to - from)).sum();
    assert!((bits / 20.475 / report.flows[0].goodput_bps - 1.0).abs() < 1e-9, "{bits} bits");
    // a longer run with merged intervals: fractions are weighted by packets
    let (_, record) = watched(&sharing());
    let mut lossy = 0;
    // data direction of the satellite link: segments of 1000 B and 40 B of headers
    for link in record.links.iter().filter(|l| l.column("lost").unwrap().iter().sum::<f64>() > 0.0) {
        let [share, lost, bps] =
            ["packet_error_share", "lost", "throughput_bps"].map(|c| link.column(c).unwrap());
        for i in (0..share.len() - 1).filter(|&i| lost[i] > 0.0) {
            let packets = bps[i] * record.every.as_secs_f64() / 8.0 / 1040.0;
            assert!((lost[i] / share[i] - packets).abs() < 0.5, "{}: {} of {packets}", link.name, lost[i]);
            lossy += 1;
        }
    }
    assert!(lossy > 10, "{lossy} intervals with losses");
}

/// A trace of opportunities replaces the link's rate, also in the comparison of the report: 1504 B per
/// millisecond are 12.032 Mbit/s.
#[test]
fn goodput_over_a_trace_is_compared_with_the_trace() {
    let text = "schema = 1\ntitle = \"trace\"\nduration = \"10 s\"\n\
                [[hosts]]\nname = \"a\"\n[[hosts]]\nname = \"b\"\n\
                [[links]]\nname = \"path\"\nfrom = \"a\"\nto = \"b\"\nrate = \"8 Mbit/s\"\ndelay = \"9 ms\"\n\
                buffer = \"99 packets\"\ncapacity = { opportunities_ms = [1, 2] }\n\
                [[flows]]\nname = \"x\"\nfrom = \"a\"\nto = \"b\"\n";
    let words = run(&scenario(text, &[])).to_text();
    assert!(words.contains(" of 12.032 Mbit/s"), "{words}");
}
