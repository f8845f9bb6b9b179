//! Copies that use idle granted capacity.

use super::*;
use bentpipe_base::Rate;
use bentpipe_tcp::GrantConfig;

/// Time from establishment until ten segments are acknowledged under a grant, and copies sent; the last two
/// segments are lost once.
fn granted(copies: bool) -> (Duration, u64) {
    let rate = Rate::from_bps(1_000_000).expect("not zero");
    let mut config = host(scheme("explicit-rate", &[("copies", Value::Switch(copies))]), false, 10);
    config.grant = Some(GrantConfig::constant(rate));
    let mut path = Path::new(config);
    let mut hits = 0;
    let mut lost = |p: &Packet| {
        let hit = is_data(p) && p.body.off >= 8 * MSS && hits < 2;
        hits += u32::from(hit);
        hit
    };
    assert!(path.run(&mut lost, &mut |c| c.stats().established_at.is_some()));
    path.with(|c| {
        c.write(10 * MSS);
        c.close();
    });
    assert!(path.run(&mut lost, &mut |c| c.stats().finished_at.is_some()));
    let stats = path.sender().stats();
    let took = stats.finished_at.expect("it ended").since(stats.established_at.expect("it began"));
    (took, path.sender().probes().map_or(0, Probes::sent))
}

/// The grant is idle once all data is sent: copies repair a loss at the end a round trip earlier than the
/// tail loss probe, and nothing is undone or counted as lost twice.
#[test]
fn what_a_grant_leaves_idle_repairs_the_end() {
    let (with, copies) = granted(true);
    let (without, none) = granted(false);
    assert_eq!((copies, none), (10, 0));
    assert!(with < RTT + Duration::from_millis(25), "{with}");
    assert!(without > RTT * 2, "{without}");
}
