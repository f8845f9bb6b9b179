//! Restart of a gateway from its records, a planned stop, a new configuration.

use crate::table_rig::{ACK, FIN_ACK, Rig, SYN, talk};
use bentpipe_base::Duration;
use bentpipe_gateway::{
    Config, Gateway, LAN, Limits, PassReason, RECORD, Record, Restored, SATELLITE, State,
};

#[test]
fn connections_are_taken_up_again() {
    let mut rig = Rig::new(Config::default());
    for n in 0..5 {
        rig.open(talk(n));
    }
    rig.put(LAN, talk(7).lan(SYN, 0, 0, 0)); // not saved: still in its handshake
    rig.put(LAN, talk(8).lan(ACK, 1, 1, 9)); // not saved: unaccelerated
    let saved = rig.gateway.save();
    assert_eq!(saved.len(), 5 * RECORD);
    rig.gateway = Gateway::default();
    let restored = rig.act(|g, cx| g.restore(cx, &saved));
    assert_eq!(restored, Restored { flows: 5, damaged: 0, refused: 0 });
    let report = rig.gateway.report();
    assert_eq!((report.accelerated, report.states[State::Established as usize]), (5, 5));
    assert_eq!(rig.gateway.save(), saved, "what was read is what is written");
    // they continue, and end as usual
    let t = talk(3);
    rig.put(LAN, t.lan(FIN_ACK, 1, 1, 10));
    rig.put(SATELLITE, t.sat(FIN_ACK, 1, 12, 0));
    rig.put(LAN, t.lan(ACK, 12, 2, 0));
    assert_eq!(
        (rig.gateway.report().accelerated, rig.gateway.counters().passed(PassReason::MidStream)),
        (4, 0)
    );
    rig.wait(Duration::from_secs(8000));
    assert_eq!(rig.gateway.report().states, [0; 4]);
}

#[test]
fn the_journal_keeps_a_file_up_to_date() {
    let mut rig = Rig::new(Config::default());
    rig.open(talk(0));
    rig.gateway.keep_journal();
    let mut file = vec![0; 100 * RECORD];
    let write = |rig: &mut Rig, file: &mut Vec<u8>| {
        let mut n = 0;
        while let Some((id, record)) = rig.gateway.take_changed() {
            file[id as usize * RECORD..][..RECORD].copy_from_slice(&record);
            n += 1;
        }
        n
    };
    for n in 1..10 {
        rig.open(talk(n));
    }
    assert_eq!(write(&mut rig, &mut file), 10);
    rig.put(LAN, talk(2).lan(ACK, 1, 1, 1000));
    assert_eq!(write(&mut rig, &mut file), 0, "not for each packet");
    for n in [4, 6] {
        rig.put(LAN, talk(n).lan(FIN_ACK, 1, 1, 0));
        rig.put(SATELLITE, talk(n).sat(FIN_ACK, 1, 2, 0));
        rig.put(LAN, talk(n).lan(ACK, 2, 2, 0));
    }
    assert_eq!(write(&mut rig, &mut file), 2);
    let mut ports: Vec<u16> =
        file.chunks(RECORD).filter_map(|r| Record::from_bytes(r).unwrap()).map(|r| r.ports[0]).collect();
    ports.sort_unstable();
    assert_eq!(ports, [0, 1, 2, 3, 5, 7, 8, 9]);
    // a torn record
    file[3] ^= 1;
    let mut again =
        Rig::new(Config { limits: Limits { flows: 6, ..Limits::default() }, ..Config::default() });
    let restored = again.act(|g, cx| g.restore(cx, &file));
    assert_eq!(restored, Restored { flows: 6, damaged: 1, refused: 1 });
    let twice = again.act(|g, cx| g.restore(cx, &file));
    assert_eq!((twice.flows, twice.refused), (0, 7), "known already");
}

#[test]
fn a_file_of_nonsense_is_counted_and_harmless() {
    let mut rig = Rig::new(Config::default());
    let nonsense: Vec<u8> = (0..1000u32).map(|i| (i * 7 + 1) as u8).collect();
    let restored = rig.act(|g, cx| g.restore(cx, &nonsense));
    assert_eq!(restored, Restored { flows: 0, damaged: 16, refused: 0 });
}

#[test]
fn a_planned_stop_passes_everything_on() {
    let mut rig = Rig::new(Config::default());
    for n in 0..10 {
        rig.open(talk(n));
        for i in 0..50 {
            rig.put(LAN, talk(n).lan(ACK, 1 + i * 1000, 1, 1000));
        }
    }
    rig.act(Gateway::release_all);
    let report = rig.gateway.report();
    assert_eq!((report.accelerated, report.passing[PassReason::Released as usize]), (0, 10));
    assert!(rig.gateway.is_drained());
    assert_eq!(rig.missing(rig.out.len() as u64), 0, "nothing is held");
    let data = rig.out.iter().filter(|(port, p)| *port == SATELLITE && p.body.len > 0).count();
    assert!(data >= 500, "{data}");
    // new connections pass, existing ones continue
    rig.open(talk(11));
    rig.put(LAN, talk(1).lan(ACK, 50_001, 1, 1000));
    assert_eq!(rig.gateway.report().passing[PassReason::Bypassed as usize], 1);
    assert_eq!(rig.missing(rig.out.len() as u64), 0);
}

#[test]
fn a_new_configuration_loses_no_connection() {
    let small = Config {
        limits: Limits { flows: 10, opening: 4, passing: 4, ..Limits::default() },
        ..Config::default()
    };
    let mut rig = Rig::new(small.clone());
    for n in 0..10 {
        rig.open(talk(n));
    }
    rig.open(talk(20));
    assert_eq!(rig.gateway.counters().passed(PassReason::Overload), 1);
    let large = Config { limits: Limits { flows: 50_000, ..Limits::default() }, ..small.clone() };
    rig.act(|g, cx| g.reconfigure(cx, large));
    for n in 100..5100 {
        rig.open(talk(n));
    }
    assert_eq!(rig.gateway.report().accelerated, 5010);
    // smaller again: existing connections stay
    rig.act(|g, cx| g.reconfigure(cx, small.clone()));
    rig.open(talk(6000));
    assert_eq!(
        (rig.gateway.report().accelerated, rig.gateway.counters().passed(PassReason::Overload)),
        (5010, 2)
    );
    rig.act(|g, cx| g.reconfigure(cx, Config { accelerate: false, ..small }));
    assert_eq!(rig.gateway.report().accelerated, 0);
    assert_eq!(rig.missing(rig.out.len() as u64), 0);
}
