//! Requirements on a gateway in the paper's test bed, simulated: rates, queues, losses hidden from senders,
//! readers of different rates.
//!
//! Bounds, with N packets per RTT at full rate: an old receiver loses nearly one RTT per loss, so 1/(1 +
//! pN) of the hop's rate is left, or (1/k)/(1 + p^k N) with k copies. A modern one loses only the packet,
//! so 1 - p.

#![allow(clippy::unwrap_used, reason = "a test may say what it takes for granted")]

use bentpipe_base::Size;
use bentpipe_report::{Metric, Report};
use bentpipe_scenario::{Scenario, Source, load};
use bentpipe_sim::{RecordOptions, run, run_recorded};
use std::path::Path;
use std::sync::Arc;

/// Goodput of an old receiver at 99.5 % of 24 Mbit/s, in Mbit/s: 1460 of 1500 B.
const FULL: f64 = 24.0 * 0.995 * 1460.0 / 1500.0;
/// The same with timestamps.
const FULL_MODERN: f64 = 24.0 * 0.995 * 1448.0 / 1500.0;
/// Packets per RTT at full rate.
const N: f64 = 24e6 / 8.0 / 1500.0;
/// Bandwidth-delay product in bytes.
const BDP: u64 = 3_000_000;

fn text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../scenarios/{name}.toml"));
    std::fs::read_to_string(path).unwrap()
}

fn loaded(text: &str, sets: &[(&str, &str)], seed: u64) -> Scenario {
    let sets: Vec<_> = sets.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    load(&Source::new("test.toml", text), &sets, Some(seed)).unwrap_or_else(|e| panic!("{e}"))
}

fn metric(report: &Report, name: &str) -> f64 {
    Metric::parse(name).unwrap().of(report).unwrap().unwrap_or_else(|| panic!("{name} has no value"))
}

/// Goodput of a flow in Mbit/s.
fn goodput(report: &Report, flow: &str) -> f64 {
    metric(report, &format!("goodput[{flow}]")) / 1e6
}

/// The first receiver of the test bed with another reader, alone, for `seconds`, measured from second
/// `from` on.
fn alone(reader: &str, seconds: u32, from: u32) -> Scenario {
    alone_over("loss = \"$loss\"", reader, seconds, from)
}

/// The same with other keys of the hop towards the receiver.
fn alone_over(hop: &str, reader: &str, seconds: u32, from: u32) -> Scenario {
    let file = text("supercharger");
    let mode = "mode = \"$mode\"";
    let file =
        file.replacen("loss = \"$loss\"", hop, 1).replacen(mode, &format!("rate = \"$rate\"\n{mode}"), 1);
    let from_to = format!("from = \"{from} s\", to = \"{seconds} s\"");
    let file = file
        .replace("from = \"25 s\", to = \"40 s\"", &from_to)
        .replace("\"45 s\"", &format!("\"{seconds} s\""));
    let old = "receiver = { window = \"65535 B\", window_scale = false }";
    assert!(file.contains(old) && file.contains(&from_to));
    let mut scenario = loaded(&file.replacen(old, &format!("{old}\nreader = {reader}"), 1), &[], 1);
    scenario.flows.truncate(1);
    scenario.references.clear();
    scenario
}

#[test]
fn table_2_is_reached() {
    let report = run(&loaded(&text("supercharger"), &[], 1));
    let carried = metric(&report, "carried[hop-gateway]") / 24e6;
    assert!(carried >= 0.986, "{carried}");
    // at most 64 KB are queued at the hop, and the sender retransmits nothing
    assert!(metric(&report, "queue_peak[hop-gateway]") * 1514.0 <= 65_536.0);
    assert!(metric(&report, "retransmits[gateway]").abs() < 0.5);
    assert!(metric(&report, "accelerated") > 0.5);
}

#[test]
fn the_hop_is_full_from_the_12th_second_on() {
    let report = run(&alone("\"eager\"", 40, 12));
    let carried = metric(&report, "carried[hop-gateway]");
    assert!(carried >= 23.5e6, "{carried}");
}

/// The mean over seeds is close to the bound; the number of losses is random.
#[test]
fn an_old_receiver_under_loss_comes_close_to_the_bound() {
    for loss in ["1e-6", "1e-5", "1e-4", "1e-3", "1e-2"] {
        let p: f64 = loss.parse().unwrap();
        let bound = FULL * f64::max(1.0 / (1.0 + p * N), 0.5 / (1.0 + p * p * N));
        let runs = 1..=5_u64;
        let mean = runs
            .map(|seed| {
                goodput(&run(&loaded(&text("supercharger-loss"), &[("loss", loss)], seed)), "old-gateway")
            })
            .sum::<f64>()
            / 5.0;
        // the bound assumes that a loss costs N packets; the receiver keeps 44 of them, and losses close
        // together cost less
        assert!((0.97 * bound..1.15 * bound).contains(&mean), "{loss}: {mean} of {bound}");
    }
}

#[test]
fn a_modern_receiver_loses_what_is_lost_and_its_sender_never_hears_of_it() {
    for loss in ["1e-4", "1e-3", "1e-2"] {
        let p: f64 = loss.parse().unwrap();
        for seed in 1..=3 {
            let report = run(&loaded(&text("supercharger-loss"), &[("loss", loss)], seed));
            let got = goodput(&report, "modern-gateway");
            assert!(got >= 0.95 * (1.0 - p) * FULL_MODERN, "{loss}: {got}");
            let (lost, heard) =
                (metric(&report, "losses[modern]"), metric(&report, "retransmits[modern-gateway]"));
            assert!(lost > 0.0 && heard <= 0.01 * lost, "{loss}: {heard} of {lost}");
            assert!(metric(&report, "held_peak") <= 3.0 * BDP as f64, "{loss}");
            // without a gateway, the goodput over the same hop is lower
            assert!(got > goodput(&report, "modern"), "{loss}");
        }
    }
}

/// Once the rate of a slow reader is known, at most 1 % of the packets are sent in vain.
#[test]
fn a_slow_reader_is_not_overrun() {
    for mbps in [1.0, 8.0] {
        let reader = format!("{{ rate = \"{mbps} Mbit/s\" }}");
        let (early, late) = (run(&alone(&reader, 60, 30)), run(&alone(&reader, 160, 60)));
        assert!(goodput(&late, "gateway") >= 0.95 * mbps, "{mbps}: {}", goodput(&late, "gateway"));
        let since = |name: &str| metric(&late, name) - metric(&early, name);
        let (sent, vain) = (since("gateway_packets"), since("resent"));
        assert!(sent > 0.0 && vain <= 0.01 * sent, "{mbps}: {vain} of {sent}");
    }
}

/// A receiver that keeps more than its window shows, as Linux without window scaling does, looks idle while
/// that fills. Without an overflow too many it gets what one without a reserve gets.
#[test]
fn a_reader_with_a_hidden_reserve_is_followed() {
    for reserve in [20_000, 35_000, 50_000].map(Size) {
        let of = |reader: &str| {
            let mut scenario = alone(reader, 120, 20);
            Arc::make_mut(&mut scenario.flows[0].receiver).reserve = reserve;
            goodput(&run(&scenario), "gateway")
        };
        let steady = of("{ rate = \"16 Mbit/s\" }");
        assert!(steady >= 0.9 * 16.0, "{reserve:?}: {steady}");
        // The bound for turns of 24 and 2 Mbit/s, one round trip late, is 10.3 Mbit/s. Linux tells of a
        // window that opens only when it has doubled, so the gateway learns the new rate later still.
        let turns = of("{ turns = { rate = \"24 Mbit/s\", then = \"2 Mbit/s\", each = \"5 s\" } }");
        assert!(turns >= 0.93 * 10.3, "{reserve:?}: {turns}");
    }
}

/// Acknowledgments of a real host arrive some tenths of a millisecond early or late, so the rate at which a
/// buffer of 64 KB is emptied is known to some per cent only. The bounds for a gateway that knows the
/// rate a round trip late are 10.05 and 10.45 Mbit/s.
#[test]
fn a_reader_is_followed_although_acknowledgments_jitter() {
    for (fast, slow, bound) in [(20, 4, 10.05), (16, 8, 10.45)] {
        for reserve in [0, 20_000] {
            let text = format!(
                r#"schema = 1
title = "a reader"
duration = "200 s"
measure = {{ from = "20 s", to = "200 s" }}
host.stack = "linux"
hosts = [{{ name = "sender" }}, {{ name = "receiver" }}]
gateways = [{{ name = "gateway", link = "hop" }}]
[[links]]
name = "hop"
from = "sender"
to = "receiver"
rate = "24 Mbit/s"
buffer = "3 MB"
orbit = {{ slots = {{ delay = "500 ms", jitter = "0.3 ms", jitter_step = "3 ms" }} }}
[[flows]]
name = "gateway"
from = "sender"
to = "receiver"
tcp = "cubic"
receiver = {{ window = "65535 B", window_scale = false, timestamps = false, reserve = "{reserve} B" }}
reader = {{ turns = {{ rate = "{fast} Mbit/s", then = "{slow} Mbit/s", each = "5 s" }} }}
"#
            );
            let got = goodput(&run(&loaded(&text, &[], 1)), "gateway");
            assert!(got >= 0.95 * bound, "{fast}/{slow}, {reserve} B: {got}");
        }
    }
}

#[test]
fn a_pause_costs_at_most_what_was_under_way() {
    let scenario = alone("{ pause = { from = \"40 s\", to = \"50 s\" } }", 80, 60);
    let (report, record) = run_recorded(&scenario, &RecordOptions::default(), |_| None);
    // all packets that crossed the hop more than once
    let again = ["resent", "repairs", "copies"].map(|name| metric(&report, name)).iter().sum::<f64>();
    assert!(again <= BDP as f64 / 1460.0, "{again}");
    let rates = record.flows[0].column("goodput_bps").unwrap();
    let first = record.time_s.iter().zip(rates).find(|(t, rate)| **t > 50.1 && **rate > 0.0).unwrap().0;
    // data in the receiver's buffer is read at once; the first byte after it arrives later
    assert!(*first <= 51.6, "{first}");
    assert!(goodput(&report, "gateway") > 0.95 * FULL * 1500.0 / 1514.0, "{}", goodput(&report, "gateway"));
}

#[test]
fn a_reader_that_stops_for_good_binds_no_memory() {
    let report = run(&alone("{ stop_at = \"30 s\" }", 120, 30));
    assert!(metric(&report, "held_peak") <= 3.0 * BDP as f64);
    assert!(metric(&report, "losses").abs() < 0.5);
}

/// Ten old receivers share one hop: no queue overflows, and all get the same goodput.
#[test]
fn flows_share_a_hop_fairly() {
    let file = "schema = 1\ntitle = \"ten old receivers\"\nduration = \"90 s\"\nmeasure = { from = \"40 s\", to = \"90 s\", links = true }\n\
        [dumbbell]\npairs = 10\nrtt = \"1 s\"\nrate = \"24 Mbit/s\"\nbuffer = \"64 KiB\"\n\
        access = { rate = \"1 Gbit/s\", delay = \"1 ms\", buffer = \"1000 packets\" }\n\
        [host]\nstack = \"linux\"\n[[gateways]]\nname = \"gw\"\nlink = \"bottleneck\"\n\
        [[flows]]\nname = \"f\"\ncount = 10\nfrom = \"src\"\nto = \"dst\"\nstart = { from = \"0 s\", to = \"5 s\" }\n\
        receiver = { window = \"65535 B\", window_scale = false }\n";
    let report = run(&loaded(file, &[], 1));
    assert!(report.total.jain.unwrap() >= 0.95, "{:?}", report.total);
    assert!(
        metric(&report, "carried[bottleneck]") >= 0.98 * 24e6,
        "{}",
        metric(&report, "carried[bottleneck]")
    );
    assert!(metric(&report, "drops[bottleneck]").abs() < 0.5);
}

/// Goodput of a reader with a 64 KB buffer in Mbit/s, and repeated packets per new packet.
fn read(reader: &str, seconds: u32) -> (f64, f64) {
    let report = run(&alone(reader, seconds, 20));
    let gateway = &report.gateways[0];
    (goodput(&report, "gateway"), gateway.resent as f64 / gateway.forwarded as f64)
}

/// Each costs one or two RTTs at the start, until its rate is known.
#[test]
fn slow_readers_get_their_rate() {
    for mbps in [3.0, 11.0, 13.0, 17.0, 21.0] {
        let (got, again) = read(&format!("{{ rate = \"{mbps} Mbit/s\" }}"), 100);
        assert!(got >= 0.95 * mbps && again <= 0.1, "{mbps}: {got} Mbit/s, {again} sent again");
    }
}

/// A reader that becomes slower costs one bandwidth-delay product, one that becomes faster one RTT of
/// waiting. With 24 and 2 Mbit/s alternating every 5 s, no gateway exceeds 10.3 Mbit/s, with 18 and 9 not
/// 11.8.
#[test]
fn readers_that_change_are_followed() {
    for (fast, slow, least) in [(24, 2, 9.3), (18, 9, 10.6)] {
        let turns =
            format!("{{ turns = {{ rate = \"{fast} Mbit/s\", then = \"{slow} Mbit/s\", each = \"5 s\" }} }}");
        let (got, again) = read(&turns, 120);
        assert!(got >= least && again <= 0.4, "{fast}/{slow}: {got} Mbit/s, {again} sent again");
    }
}

/// A hop with frames delivers bursts. Those of 20 ms frames fit into the buffer of 64 KB, and the hop is
/// full. Those of 40 ms do not: at most one buffer per frame gets through, 13.1 Mbit/s. Packets dropped at
/// a full buffer are not losses of the hop, so no copies are sent.
#[test]
fn bursts_of_a_hop_with_frames_fit_the_receivers_buffer() {
    for (frame_ms, least) in [(20_usize, 22.0), (40, 0.85 * 13.1)] {
        // times at which packets may leave, two per millisecond
        let leave = vec![frame_ms.to_string(); 2 * frame_ms].join(",");
        let hop = format!("capacity = {{ opportunities_ms = [{leave}] }}");
        let report = run(&alone_over(&hop, "{ rate = \"2 Gbit/s\" }", 100, 40));
        let gateway = &report.gateways[0];
        let got = goodput(&report, "gateway");
        assert!(got >= least, "{frame_ms} ms: {got} Mbit/s");
        assert_eq!((gateway.losses, gateway.copies), (0, 0), "{frame_ms} ms");
    }
}
