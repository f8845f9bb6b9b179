//! Long transfers through the gateway over 24 Mbit/s and 1000 ms. Rates are goodput: at most 0.995 of the
//! hop's rate, and a packet of 1460 bytes payload counts as 1514 (1448 with timestamps).

use crate::flow_rig::{Hop, Plan, Rig, SENDER, WINDS, at, gateway, modern, old};
use bentpipe_base::Rate;
use bentpipe_gateway::{Config as GatewayConfig, Mode};
use bentpipe_nodes::Reader;
use bentpipe_tcp::{Config, Stats};

/// Largest possible goodput with an old and with a modern receiver.
const FULL_OLD: f64 = 0.995 * 24.0 * 1460.0 / 1514.0;
const FULL_MODERN: f64 = 0.995 * 24.0 * 1448.0 / 1514.0;

fn rig(seed: u64, loss: f64, receiver: Config, reader: Reader) -> Rig {
    let hop = Hop { loss, ..WINDS };
    let mut plan = Plan::bulk(receiver);
    plan.reads[1] = reader;
    Rig::new(seed, &hop, gateway(&hop), &plan)
}

fn sender(rig: &Rig) -> &Stats {
    rig.end(SENDER).expect("it is open").stats()
}

/// Mean goodput over seeds from 40 s to 100 s. The sender must not see any loss; its one timeout is that of
/// the SYN, retransmitted after a second (RFC 6298).
fn lossy(loss: f64, receiver: &Config, seeds: u64) -> f64 {
    let mut sum = 0.0;
    for seed in 1..=seeds {
        let mut rig = rig(seed, loss, receiver.clone(), Reader::Eager);
        sum += rig.goodput(40.0, 100.0);
        let report = rig.gateway.flows(0, 1).0[0];
        let stats = sender(&rig);
        assert_eq!(
            (stats.retransmits, stats.timeouts),
            (0, 1),
            "the sender has seen a loss of {}",
            report.losses
        );
        assert!(report.held_peak.0 <= 3 * 3_000_000, "{} held", report.held_peak);
        assert_eq!(rig.hop_drops(), 0, "the hop's queue never overflows");
    }
    sum / seeds as f64
}

/// Table 2 of the paper: without the gateway 64 KB give 0.53 Mbit/s, headers included; with the gateway the
/// link is full from the 12th second on.
#[test]
fn an_old_receiver_fills_the_link() {
    let mut rig1 = rig(1, 0.0, old(), Reader::Eager);
    let late = rig1.goodput(12.0, 25.0);
    assert!(late > 0.99 * FULL_OLD, "{late} from 12 s to 25 s");
    let steady = rig1.goodput(25.0, 40.0);
    assert!(steady > 0.999 * FULL_OLD, "{steady} from 25 s to 40 s");
    assert!(steady * 1514.0 / 1460.0 >= 0.986 * 24.0, "the paper's 98.63 %");
    assert!(rig1.queue_peak() <= 64 << 10, "{} B waited before the hop", rig1.queue_peak());
    let plan = Plan::bulk(old());
    let mut without = Rig::new(1, &WINDS, GatewayConfig { accelerate: false, ..gateway(&WINDS) }, &plan);
    let plain = without.goodput(25.0, 40.0);
    assert!((plain / 0.52 - 1.0).abs() < 0.03, "{plain} without");
}

/// With a receiver that discards data beyond its window, the bound is the largest of (1/k) / (1 + p^k N).
#[test]
fn an_old_receiver_bears_losses() {
    // N is the cost of a loss: a product of 1993 packets without the 44 of the window
    for (loss, k, floor) in
        [(1e-6, 1, 0.97), (1e-5, 1, 0.97), (1e-4, 1, 0.95), (1e-3, 2, 0.95), (1e-2, 2, 0.90)]
    {
        let bound = FULL_OLD / f64::from(k) / (1.0 + (0..k).fold(1.0, |q, _| q * loss) * 1949.0);
        let got = lossy(loss, &old(), 5);
        assert!(got > floor * bound, "{got} of {bound} at {loss}");
    }
}

/// A receiver that keeps data beyond a hole loses only the lost packet itself.
#[test]
fn a_modern_receiver_hardly_notices_losses() {
    for loss in [0.0, 1e-4, 1e-3, 1e-2] {
        let got = lossy(loss, &modern(), 3);
        let bound = FULL_MODERN * (1.0 - loss);
        assert!(got >= 0.95 * bound, "{got} of {bound} at {loss}");
    }
}

/// The same without SACK: duplicate ACKs are enough for repairs.
#[test]
fn losses_are_repaired_without_sack() {
    let mut receiver = old();
    receiver.options.sack = false;
    let got = lossy(1e-4, &receiver, 3);
    assert!(got > 0.9 * FULL_OLD / (1.0 + 1e-4 * 1949.0), "{got}");
}

/// The paper's equations: the window is the receiver's plus what it reads in an RTT.
#[test]
fn strict_mode_fills_the_link_too() {
    let plan = Plan::bulk(old());
    let mut rig = Rig::new(1, &WINDS, GatewayConfig { mode: Mode::Strict, ..gateway(&WINDS) }, &plan);
    let early = rig.goodput(10.0, 25.0);
    let steady = rig.goodput(60.0, 80.0);
    assert!(steady > 20.0 * 0.52 && steady > early, "{early}, then {steady}");
    assert_eq!(sender(&rig).retransmits, 0);
}

fn slow(bps: u64) -> Reader {
    Reader::Slow(Rate::from_bps(bps).expect("not zero"))
}

/// An application that reads steadily gets at least 95 % of its rate within 60 s, and at most 1 % is sent in
/// vain.
#[test]
fn a_slow_reader_is_found_and_fed() {
    for bps in [1_000_000, 8_000_000] {
        let mut rig = rig(1, 0.0, old(), slow(bps));
        rig.run_until(at(60.0));
        let before = rig.gateway.counters();
        let got = rig.goodput(60.0, 120.0);
        let after = rig.gateway.counters();
        assert!(got > 0.95e-6 * bps as f64, "{got} of {bps}");
        let again = after.resent + after.repairs - before.resent - before.repairs;
        assert!(again * 100 <= after.forwarded - before.forwarded, "{again} sent for nothing");
    }
}

/// A pause of 10 s costs at most the bandwidth-delay product in flight; a pause of 10 ms costs nothing.
#[test]
fn a_pause_costs_what_was_on_the_way() {
    let mut rig1 = rig(1, 0.0, old(), Reader::Pause { from: at(20.0), to: at(30.0), every: None });
    rig1.run_until(at(30.0));
    let (before, received) = (rig1.gateway.counters(), rig1.received());
    rig1.run_until(at(31.5));
    assert!(rig1.received() > received, "next bytes within 1.5 round trips");
    let later = rig1.goodput(40.0, 50.0);
    assert!(later > 0.99 * FULL_OLD, "{later} after it");
    let after = rig1.gateway.counters();
    let again = after.resent + after.repairs - before.resent - before.repairs;
    assert!(again <= 2020, "{again} packets again, one product is 1992");
    assert_eq!(sender(&rig1).undone, 1, "the timeout was spurious, and the sender knows");
    let mut rig2 = rig(1, 0.0, old(), Reader::Pause { from: at(20.0), to: at(20.01), every: None });
    let through = rig2.goodput(19.0, 23.0);
    assert!(through > 0.995 * FULL_OLD, "{through} with a rest of 10 ms");
}

/// For a reader that stops and never continues, no more than the advertised window is held, and probes
/// continue.
#[test]
fn a_reader_that_stops_is_probed() {
    let mut rig = rig(1, 0.0, old(), Reader::StopAt(at(20.0)));
    rig.run_until(at(60.0));
    let (probes, held) = (rig.gateway.counters().probes, rig.gateway.report().held.0);
    assert!((38..=41).contains(&probes), "{probes} in 40 s");
    assert!(held < 3_300_000, "{held} held");
}

/// Without a configured rate the window grows with the amount delivered.
#[test]
fn without_a_rate_the_window_follows_what_is_delivered() {
    let hop = Hop { queue: 4 << 20, ..WINDS };
    let mut rig = Rig::new(1, &hop, GatewayConfig { rate: None, ..gateway(&hop) }, &Plan::bulk(old()));
    let got = rig.goodput(40.0, 60.0);
    assert!(got > 0.95 * FULL_OLD, "{got}");
    assert!(rig.queue_peak() < 4 << 20, "{} B waited before the hop", rig.queue_peak());
}

/// If a flow's share shrinks, the advertised window shrinks as fast as held data drains, although window
/// fields are coarse.
#[test]
fn a_window_falls_back() {
    let hop = Hop {
        bps: 1_000_000_000,
        one_way: bentpipe_base::Duration::from_millis(275),
        queue: 8 << 20,
        ..WINDS
    };
    let mut rig = Rig::new(1, &hop, gateway(&hop), &Plan::bulk(old()));
    rig.run_until(at(12.0));
    let large = rig.gateway.report().held.0;
    let slower = GatewayConfig { rate: Rate::from_bps(50_000_000), ..gateway(&hop) };
    rig.reconfigure(slower);
    let got = rig.goodput(40.0, 60.0);
    let held = rig.gateway.report().held.0;
    let product = 50_000_000 / 8 * 550 / 1000;
    assert!(large > 10 * product, "{large} held at first");
    assert!(held < product * 3 / 2, "{held} held, the product is {product}");
    assert!(got > 0.98 * 0.995 * 50.0 * 1460.0 / 1514.0, "{got}");
}

/// After a planned stop the queue drains, withheld ACKs are sent, and the transfer continues unaccelerated.
#[test]
fn a_planned_stop_loses_nothing() {
    let mut rig = rig(1, 0.0, old(), Reader::Eager);
    rig.run_until(at(20.0));
    rig.release();
    assert_eq!(rig.gateway.report().held.0, 0);
    let received = rig.received();
    rig.run_until(at(40.0));
    assert!(rig.received() > received + 10 * 65_535, "{} in 20 s", rig.received() - received);
}
