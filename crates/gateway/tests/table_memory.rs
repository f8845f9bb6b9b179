//! Memory of a million idle connections. A file of its own, since it measures the whole process.

mod table_rig;

use bentpipe_base::Duration;
use bentpipe_gateway::{Config, LAN, Limits, SATELLITE, State};
use std::fs;
use table_rig::{ACK, Rig, talk};

fn resident() -> u64 {
    let pages =
        fs::read_to_string("/proc/self/statm").ok().and_then(|s| s.split(' ').nth(1)?.parse::<u64>().ok());
    pages.map_or(0, |pages| pages * 4096)
}

#[test]
fn a_million_idle_connections_take_768_bytes_each_at_most() {
    const MILLION: u32 = 1_000_000;
    let limits = Limits { flows: MILLION, passing: 1000, ..Limits::default() };
    let mut rig = Rig::new(Config { limits, ..Config::default() });
    let before = resident();
    for n in 0..MILLION {
        rig.open(talk(n));
        rig.put(LAN, talk(n).lan(ACK, 1, 1, 100));
        rig.put(SATELLITE, talk(n).sat(ACK, 1, 101, 0));
        if n % 1000 == 999 {
            for (_, packet) in rig.take() {
                rig.world.return_to_pool(packet);
            }
            rig.wait(Duration::from_millis(100));
        }
    }
    // nothing is in flight any more
    rig.wait(Duration::from_secs(30));
    let report = rig.gateway.report();
    assert_eq!((report.accelerated, report.states[State::Established as usize]), (MILLION, MILLION));
    let (counted, seen) =
        (report.footprint.0 / u64::from(MILLION), (resident() - before) / u64::from(MILLION));
    println!("per connection: {counted} bytes counted, {seen} bytes resident");
    assert!(counted <= 768, "{counted}");
    assert!(seen <= 768, "{seen}");
    // the pages contain each connection once
    let (mut from, mut seen) = (0, 0);
    loop {
        let (page, next) = rig.gateway.flows(from, 10_000);
        seen += page.len();
        let Some(next) = next else { break };
        from = next;
    }
    assert_eq!(seen, MILLION as usize);
}
