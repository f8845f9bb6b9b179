//! Long transfers over 24 Mbit/s and 1000 ms: what the gateway makes of them.

mod flow_rig;

use bentpipe_tcp::Config;
use flow_rig::{Hop, Plan, Rig, SENDER, WINDS, gateway, modern, old};

fn show(rig: &mut Rig, what: &str) {
    let c = *rig.gateway.counters();
    let s = rig.end(SENDER).map(|c| (c.cwnd(), c.stats().retransmits, c.stats().timeouts, c.stats().undone));
    eprintln!("{what}: {s:?} {c:?} {:?} queue {}", rig.gateway.flows(0, usize::MAX).0, rig.queue_peak());
}

fn seed() -> u64 {
    std::env::var("SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1)
}

fn lossy(loss: f64, receiver: Config, from: f64, to: f64) -> f64 {
    let hop = Hop { loss, ..WINDS };
    let mut rig = Rig::new(seed(), &hop, gateway(&hop), &Plan::bulk(receiver));
    let mut line = String::new();
    let mut t = 0.0;
    while t < from {
        line += &format!(" {:.1}", rig.goodput(t, t + 2.0));
        t += 2.0;
    }
    let g = rig.goodput(from, to);
    show(&mut rig, &format!("{loss} {g:.2} [{line}]"));
    g
}

#[test]
fn old_no_loss() {
    let g = lossy(0.0, old(), 24.0, 40.0);
    assert!(g > 23.0, "{g}");
}
#[test]
fn old_losses() {
    for loss in [1e-6, 1e-5, 1e-4, 1e-3, 1e-2] {
        lossy(loss, old(), 40.0, 100.0);
    }
}
#[test]
fn modern_losses() {
    for loss in [0.0, 1e-4, 1e-3, 1e-2] {
        lossy(loss, modern(), 40.0, 100.0);
    }
}
