//! Real programs over live links, measured from outside, as root and as an ordinary user: short versions of
//! the acceptance tests.
//!
//! Tests here run in parallel and share the processors: limits on time are generous, limits on counts are
//! exact.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "helpers of tests say why one cannot run")]

use lab::cycles::{kill_sessions, start_and_stop};
use lab::scenario::OneLink;
use lab::speed::send;
use lab::{Rig, Who, delay, features, refused, rig, soak};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// Probability that a statistical test fails by chance.
const CHANCE: f64 = 1e-4;
/// RTT of `geo-10m` in ms, including the serialisation of 84 bytes each way.
const GEO_MS: f64 = 550.134;
/// A link without errors.
const CLEAN: OneLink<'static> =
    OneLink { rate: "10 Mbit/s", delay: "20 ms", buffer: "100 kB", seed: 4, ..OneLink::CLEAN };

/// Sets up a test environment, or prints why it is not possible.
fn place(test: &str, who: Who) -> Option<Rig> {
    let missing =
        ["iperf3", "ping", "tcpdump", "ip", "unshare", "nsenter", "setpriv"].iter().find(|p| !rig::has(p));
    if let Some(program) = missing {
        println!("SKIPPED {test}: {program} is not installed");
        return None;
    }
    match Rig::new(Path::new(env!("CARGO_BIN_EXE_bentpipe")), who) {
        Ok(rig) => Some(rig),
        Err(why) => {
            println!("SKIPPED {test}: {why}");
            None
        }
    }
}

#[track_caller]
fn pings_take(rig: &Rig, far: &str, expected_ms: f64) {
    let pings = delay::pings(rig, &["geo-10m"], far, 100, 50).unwrap();
    assert_eq!(pings.received, 100, "{pings:?}");
    assert!((pings.median_ms - expected_ms).abs() < 1.0, "{pings:?}");
}

#[test]
fn pings_take_the_round_trip_and_serialisation() {
    let Some(rig) = place("pings_take_the_round_trip_and_serialisation", Who::CurrentUser) else { return };
    pings_take(&rig, "-4 far", GEO_MS);
}

#[test]
fn pings_take_the_round_trip_for_an_ordinary_user_and_ipv6() {
    let name = "pings_take_the_round_trip_for_an_ordinary_user_and_ipv6";
    let Some(rig) = place(name, Who::Unprivileged) else { return };
    pings_take(&rig, "-6 far", GEO_MS + 0.032);
}

#[test]
fn the_rate_is_the_links() {
    let Some(rig) = place("the_rate_is_the_links", Who::CurrentUser) else { return };
    let bps = delay::rate(&rig, &["geo-10m"], 13e6, 10).unwrap();
    assert!((bps / 10e6 - 1.0).abs() < 2e-3, "{bps}");
}

#[test]
fn packets_are_lost_as_the_model_says() {
    let Some(rig) = place("packets_are_lost_as_the_model_says", Who::Unprivileged) else { return };
    let scenario = rig.file("loss.toml", &OneLink { loss: 0.01, ..CLEAN }.toml()).unwrap();
    let tally = send(&rig, &[&scenario], 200, 5e6, 8).unwrap();
    assert!(tally.sent > 20_000 && tally.within(0.01, CHANCE).2 && tally.out_of_order == 0, "{tally:?}");
}

#[test]
fn long_packets_meet_more_bit_errors_than_short_ones() {
    const BER: f64 = 1e-5;
    let Some(rig) = place("long_packets_meet_more_bit_errors_than_short_ones", Who::CurrentUser) else {
        return;
    };
    let link = OneLink { rate: "50 Mbit/s", buffer: "1 MB", ber: BER, ..CLEAN };
    let scenario = rig.file("ber.toml", &link.toml()).unwrap();
    for ip_len in [1500, 100] {
        let rate_bps = 2000.0 * 8.0 * f64::from(ip_len);
        let tally = send(&rig, &[&scenario], ip_len, rate_bps, 6).unwrap();
        let all_right = (0..ip_len * 8).fold(1.0, |p, _| p * (1.0 - BER));
        assert!(tally.sent > 10_000 && tally.within(1.0 - all_right, CHANCE).2, "{ip_len}: {tally:?}");
    }
}

#[test]
fn an_ordinary_user_can_do_everything() {
    let Some(rig) = place("an_ordinary_user_can_do_everything", Who::Unprivileged) else { return };
    let failed: Vec<_> = features::run_all(&rig).into_iter().filter(|s| s.1.is_err()).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Three connections with a scheme that no kernel has, under one report beside the simulated one.
#[test]
fn schemes_of_ours_run_live_as_they_are_simulated() {
    let Some(rig) = place("schemes_of_ours_run_live_as_they_are_simulated", Who::Unprivileged) else {
        return;
    };
    let words = ["compare", "scenarios/swift-goodput.toml", "--set", "flows=3", "--set", "loss=0", "--json"];
    let text =
        rig.output(&[&words[..], &["--set", "duration=6 s"]].concat(), Duration::from_secs(60)).unwrap();
    let both: Value = serde_json::from_str(&text).unwrap();
    let goodput = ["simulated", "emulated"].map(|run| both[run]["total"]["goodput_bps"].as_f64().unwrap());
    assert!((goodput[1] / goodput[0] - 1.0).abs() < 0.1, "{goodput:?}");
    for flow in both["emulated"]["flows"].as_array().unwrap() {
        assert_eq!((&flow["tcp"], &flow["probes"]["known_by"]), (&"swift-faithful".into(), &"dsack".into()));
        assert!(
            flow["segments_sent"].as_u64() > Some(100) && flow["rtt_ms"]["min"].as_f64() > Some(550.0),
            "{flow}"
        );
    }
    let own = "swift-faithful runs in bentpipe's own TCP at both ends, not in the kernel's";
    assert_eq!(both["emulated"]["live"]["differs"], Value::from(vec![own]));
}

#[test]
fn wrong_input_is_refused_and_leaves_nothing() {
    for who in [Who::CurrentUser, Who::Unprivileged] {
        let Some(rig) = place("wrong_input_is_refused_and_leaves_nothing", who) else { return };
        let all = refused::all(&rig).unwrap();
        let failed: Vec<_> = all.into_iter().filter(|r| r.1.is_err()).collect();
        assert!(failed.is_empty(), "{who:?} {failed:#?}");
    }
}

#[test]
fn starts_and_stops_leave_nothing() {
    for (who, n) in [(Who::CurrentUser, 150), (Who::Unprivileged, 50)] {
        let Some(rig) = place("starts_and_stops_leave_nothing", who) else { return };
        let cycles = start_and_stop(&rig, n).unwrap();
        assert_eq!(cycles.leaks, Vec::<String>::new(), "{who:?}");
    }
}

#[test]
fn what_a_killed_session_leaves_is_removed() {
    for (who, n) in [(Who::CurrentUser, 10), (Who::Unprivileged, 10)] {
        let Some(rig) = place("what_a_killed_session_leaves_is_removed", who) else { return };
        let uplink = !rig.is_unprivileged() && rig::has("nft");
        assert_eq!(kill_sessions(&rig, n, 4, uplink).unwrap().leaks, Vec::<String>::new(), "{who:?}");
    }
}

#[test]
fn packets_keep_their_order_and_every_loss_has_a_cause() {
    let Some(rig) = place("packets_keep_their_order_and_every_loss_has_a_cause", Who::Unprivileged) else {
        return;
    };
    // as long as a test may take; the acceptance test runs for an hour
    let soak = soak::run(&rig, 40, 4).unwrap();
    assert_eq!(soak.tally.out_of_order, 0, "{soak:?}");
    // a busy machine may lose packets at the ports, but then it counts them
    assert_eq!(soak.unexplained(), i64::try_from(soak.timing.port_drops).unwrap(), "{soak:?}");
    assert!(soak.growth_kb() < 1024, "{soak:?}");
    assert!(soak.tally.sent > 130_000 && soak.on_the_link().within(0.01, CHANCE).2, "{soak:?}");
}

const LIVE_FIGURE: &str = r#"schema = 1
title = "two transfers"
scenario = '''
schema = 1
title = "a transfer"
duration = "20 s"
stop = "finished"

[parameters]
tcp = { default = "newreno", doc = "a scheme" }

[dumbbell]
rtt = "200 ms"
rate = "10 Mbit/s"
buffer = "100 packets"
access = { rate = "100 Mbit/s", delay = "1 ms", buffer = "1000 packets" }

[host]
tcp = "$tcp"
window = "64 KiB"
timestamps = false

[[flows]]
name = "flow"
from = "src1"
to = "dst1"
app = { transfer = "100 kB" }
'''
measure = "finished"
seeds = 1

[live]
tolerance = "40 %"

[[curves]]
name = "kernel"

[[curves]]
name = "ours"
set = { tcp = "peach-plus" }
"#;

/// The kernel's TCP and ours, as root and as an ordinary user. Runs that can be trusted are kept.
#[test]
fn a_figure_is_run_with_real_packets() {
    for who in [Who::CurrentUser, Who::Unprivileged] {
        let Some(rig) = place("a_figure_is_run_with_real_packets", who) else { return };
        let (file, out) = (rig.file("live.toml", LIVE_FIGURE).unwrap(), rig.path("figure"));
        let words = ["figure", &file, "--live", "--out", out.to_str().unwrap()];
        let text = rig.output(&words, Duration::from_secs(60)).unwrap();
        assert!(text.contains("two transfers: ours"), "{text}");
        let table = std::fs::read_to_string(out.join("live.csv")).unwrap();
        let verdict = |line: &str| line.split(',').nth(10).map(str::to_owned);
        let verdicts: Vec<_> = table.lines().skip(1).filter_map(verdict).collect();
        // the machine may be too slow beside other tests
        let right = verdicts.iter().all(|v| v == "agrees" || v == "untrusted");
        assert!(verdicts.len() == 2 && right, "{table}");
        let kept = verdicts.iter().filter(|v| *v == "agrees").count();
        let again = rig.run(&words, Duration::from_secs(60)).unwrap();
        let said = format!("{} live runs made, {kept} kept", 2 - kept);
        assert!(again.code == Some(0) && again.err.contains(&said), "{said}: {}", again.describe());
    }
}
