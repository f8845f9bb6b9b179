//! Floods, limits, timeouts and memory, through the public interface.

use crate::table_rig::{ACK, FIN_ACK, RST, Rig, SYN, Talk, talk};
use bentpipe_base::{Addr, Duration, Purpose, Rng, Size};
use bentpipe_gateway::{Config, EndReason, LAN, Limits, PassReason, SATELLITE, State, Timeouts};

/// A SYN from a forged address.
fn forged(rng: &mut Rng) -> Talk {
    let bits = rng.bits();
    Talk {
        lan: (Addr(bits as u32 | 1 << 31), (bits >> 32) as u16),
        sat: (Addr(2), 80),
        isn: [(bits >> 40) as u32, 0],
    }
}

/// 200 000 forged SYNs in a second: established connections stay, memory does not grow, and a genuine new
/// connection at worst passes unaccelerated.
fn flood(side: bentpipe_base::Port) {
    let limits = Limits { opening: 4096, ..Limits::default() };
    let mut rig = Rig::new(Config { limits, ..Config::default() });
    for n in 0..1000 {
        rig.open(talk(n));
    }
    rig.wait(Duration::from_secs(1));
    let before = rig.gateway.report();
    assert_eq!(before.accelerated, 1000);
    let mut rng = Rng::new(1, "flood", Purpose::Start);
    rig.take();
    let mut sent = 0;
    for i in 0..200_000u32 {
        let t = forged(&mut rng);
        rig.put(
            side,
            if side == LAN {
                t.lan(SYN, 0, 0, 0)
            } else {
                Talk { lan: t.sat, sat: t.lan, ..t }.sat(SYN, 0, 0, 0)
            },
        );
        if i % 200 == 0 {
            rig.wait(Duration::from_millis(1));
        }
        if i % 20_000 == 10_000 {
            // a genuine connection
            let t = talk(2000 + i);
            rig.open(t);
            rig.put(LAN, t.lan(ACK, 1, 1, 100));
            rig.put(SATELLITE, t.sat(ACK, 1, 101, 0));
            sent += 5;
        }
    }
    let report = rig.gateway.report();
    assert_eq!(rig.missing(rig.out.len() as u64 + 3000), 0, "every packet passed");
    assert_eq!(rig.out.len() as u64, 200_000 + sent);
    assert!(report.states[State::Opening as usize] <= 4096);
    let established = rig
        .gateway
        .flows(0, 10_000)
        .0
        .iter()
        .filter(|f| f.pass_reason.is_none() && f.ports[0] < 1000 && f.state == State::Established)
        .count();
    assert_eq!(established, 1000, "the established connections are there");
    let grown = report.footprint.0 - before.footprint.0;
    assert!(grown < 4096 * 2 * 768, "{grown} bytes more");
    // after the flood everything is as before
    rig.wait(Duration::from_secs(31));
    assert_eq!(rig.gateway.report().states[State::Opening as usize], 0);
    rig.open(talk(9999));
    assert!(rig.gateway.report().accelerated > 1000);
    assert!(
        rig.gateway.counters().reports_lost == 0 && rig.gateway.take_closed().is_none(),
        "a flood writes no reports"
    );
}

#[test]
fn a_flood_of_syns_from_the_lan() {
    flood(LAN);
}

#[test]
fn a_flood_of_syns_from_the_satellite() {
    flood(SATELLITE);
}

#[test]
fn a_flood_of_other_packets_pushes_out_nothing_but_its_own_kind() {
    let limits = Limits { passing: 500, ..Limits::default() };
    let mut rig = Rig::new(Config { limits, ..Config::default() });
    for n in 0..100 {
        rig.open(talk(n));
    }
    rig.open(talk(200));
    let mut rng = Rng::new(2, "flood", Purpose::Start);
    for _ in 0..20_000 {
        rig.put(LAN, forged(&mut rng).lan(ACK, 5, 5, 10));
    }
    let report = rig.gateway.report();
    assert_eq!((report.accelerated, report.passing[PassReason::MidStream as usize]), (101, 500));
    assert_eq!(report.counters.passing_evicted, 19_500);
    assert_eq!(rig.missing(rig.out.len() as u64), 0);
}

#[test]
fn timeouts_follow_the_state() {
    let timeouts = Timeouts {
        opening: Duration::from_secs(10),
        established: Duration::from_secs(100),
        closing: Duration::from_secs(40),
        closed: Duration::from_secs(20),
    };
    let mut rig = Rig::new(Config { timeouts, accelerate: false, ..Config::default() });
    rig.put(LAN, talk(1).lan(SYN, 0, 0, 0));
    rig.open(talk(2));
    rig.open(talk(3));
    rig.put(SATELLITE, talk(3).sat(RST, 1, 1, 0));
    let left =
        |rig: &Rig| rig.gateway.flows(0, 10).0.iter().map(|f| u32::from(f.ports[0])).collect::<Vec<_>>();
    rig.wait(Duration::from_millis(9_999));
    assert_eq!(left(&rig), [1, 2, 3]);
    rig.wait(Duration::from_millis(1));
    assert_eq!(left(&rig), [2, 3]);
    rig.wait(Duration::from_secs(10));
    assert_eq!(left(&rig), [2]);
    rig.put(LAN, talk(2).lan(ACK, 1, 1, 5));
    rig.wait(Duration::from_millis(99_999));
    assert_eq!(left(&rig), [2], "from its last packet");
    rig.wait(Duration::from_millis(1));
    assert_eq!(left(&rig), [0u32; 0]);
    let ends: Vec<(u16, Option<EndReason>)> =
        core::iter::from_fn(|| rig.gateway.take_closed()).map(|f| (f.ports[0], f.end)).collect();
    assert_eq!(ends, [(3, Some(EndReason::Closed)), (2, Some(EndReason::Idle))]);
}

#[test]
fn an_idle_gateway_sleeps() {
    let mut rig = Rig::new(Config::default());
    for n in 0..100 {
        rig.open(talk(n));
    }
    assert_eq!(rig.gateway.report().awake, 100);
    let calls = rig.wait(Duration::from_secs(2 * 3600));
    assert_eq!(rig.gateway.report().awake, 0, "all sleep");
    assert!(calls < 100, "{calls} calls in two hours");
    assert_eq!(rig.gateway.report().states[State::Established as usize], 100);
    rig.wait(Duration::from_secs(5 * 60));
    assert_eq!(rig.gateway.report().states, [0; 4]);
    assert_eq!(rig.wait(Duration::from_secs(86_400)), 0, "nothing to do, nobody called");
}

#[test]
fn a_closed_connection_leaves_at_once_and_its_ports_can_be_used_again() {
    let mut rig = Rig::new(Config::default());
    let t = talk(1);
    for round in 0..3u32 {
        let t = Talk { isn: [round * 100_000, round * 50_000], ..t };
        rig.open(t);
        assert_eq!(rig.gateway.report().accelerated, 1, "round {round}");
        rig.put(LAN, t.lan(FIN_ACK, 1, 1, 1000));
        rig.put(SATELLITE, t.sat(ACK, 1, 1002, 0));
        rig.put(SATELLITE, t.sat(FIN_ACK, 1, 1002, 0));
        rig.put(LAN, t.lan(ACK, 1002, 2, 0));
        let report = rig.gateway.take_closed().unwrap();
        assert_eq!(
            (report.end, report.state, report.pass_reason),
            (Some(EndReason::Closed), State::Closed, None)
        );
        assert_eq!((report.delivered, report.opened_by_lan), (Size(1000), Some(true)));
        assert_eq!(rig.gateway.report().accelerated, 0);
        // a late duplicate is no new connection
        rig.put(SATELLITE, t.sat(FIN_ACK, 1, 1002, 0));
        assert_eq!(rig.gateway.counters().passed(PassReason::MidStream), 0);
    }
    assert_eq!((rig.gateway.take_closed(), rig.gateway.counters().begun), (None, 3));
    rig.wait(Duration::from_secs(61));
    assert_eq!((rig.gateway.report().states, rig.gateway.take_closed()), ([0; 4], None), "told once");
}

#[test]
fn reports_that_nobody_takes_are_bounded() {
    let limits = Limits { reports: 5, ..Limits::default() };
    let mut rig = Rig::new(Config { limits, ..Config::default() });
    for n in 0..9 {
        rig.open(talk(n));
        rig.put(LAN, talk(n).lan(RST, 1, 0, 0));
    }
    rig.wait(Duration::from_secs(61));
    let kept = core::iter::from_fn(|| rig.gateway.take_closed()).count();
    assert_eq!((kept, rig.gateway.counters().reports_lost), (5, 4));
}
