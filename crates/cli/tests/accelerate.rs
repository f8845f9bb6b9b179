//! A gateway before an emulated hop, with kernel TCP at both ends, as root and as an ordinary user.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test may say what it takes for granted, and why it cannot run"
)]

use lab::{Rig, Who};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

/// Long enough for slow start to reach the rate, which it does in the 11th second.
#[test]
fn a_gateway_fills_the_hop_of_a_receiver_with_a_small_window() {
    for who in [Who::CurrentUser, Who::Unprivileged] {
        let rig = match Rig::new(Path::new(env!("CARGO_BIN_EXE_bentpipe")), who) {
            Ok(rig) => rig,
            Err(why) => {
                println!("SKIPPED a_gateway_fills_the_hop_of_a_receiver_with_a_small_window: {why}");
                continue;
            }
        };
        let words = ["emulate", "scenarios/accelerate.toml", "--set", "duration=14 s", "--json"];
        let report: Value = serde_json::from_str(&rig.output(&words, LIMIT).unwrap()).unwrap();
        let goodput = |n: usize| report["flows"][n]["goodput_bps"].as_f64().unwrap();
        let gateway = &report["gateways"][0];
        assert_eq!(gateway["flows"]["accelerated"], 1, "{gateway}");
        // 64 KB per second, less the handshake; with the gateway at least what slow start alone reaches
        assert!((0.3e6..0.55e6).contains(&goodput(0)), "{who:?}: {}", goodput(0));
        assert!(goodput(1) > 8.0 * goodput(0), "{who:?}: {} and {}", goodput(1), goodput(0));
        // no loss occurs, but if the machine stalls for a moment the kernel may send a tail loss probe
        let resent = report["flows"][1]["retransmits"].as_u64().unwrap();
        assert!(resent <= 2, "{who:?}: the sender hears of a loss: {resent} segments sent again");
    }
}
