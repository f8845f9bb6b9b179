//! Keep-alives of a hop that releases idle channels.

use crate::table_rig::{ACK, FIN_ACK, Rig, Talk, talk};
use bentpipe_base::{Duration, Seq};
use bentpipe_gateway::{Config, LAN, SATELLITE};

const EVERY: Duration = Duration::from_millis(150);

/// A connection whose 1000 bytes have arrived; returns the number of packets sent so far.
fn arrived(config: Config) -> (Rig, Talk, u64) {
    let (mut rig, t) = (Rig::new(config), talk(1));
    rig.open(t);
    rig.put(LAN, t.lan(ACK, 1, 1, 1000));
    rig.wait(Duration::from_millis(10));
    rig.put(SATELLITE, t.sat(ACK, 1, 1001, 0));
    let sent = rig.take().len() as u64;
    (rig, t, sent)
}

#[test]
fn a_byte_that_has_arrived_is_sent_again_until_30_s_after_the_last_data() {
    let (mut rig, t, mut sent) = arrived(Config { keep_alive: Some(EVERY), ..Config::default() });
    let mut kept = 0;
    for _ in 0..1000 {
        rig.wait(Duration::from_millis(50));
        for (port, packet) in rig.take() {
            sent += 1;
            if port == SATELLITE {
                assert_eq!((packet.body.len, packet.tcp.seq), (1, Seq(1000 + 1000)));
                kept += 1;
                rig.put(SATELLITE, t.sat(ACK, 1, 1001, 0));
            }
            rig.world.return_to_pool(packet);
        }
    }
    assert_eq!((kept, rig.gateway.counters().keep_alives), (199, 199), "one each 150 ms, for 30 s");
    rig.act(|gateway, cx| gateway.release_all(cx));
    assert_eq!(rig.missing(sent + rig.out.len() as u64), 0);
}

#[test]
fn a_receiver_that_is_silent_or_closes_gets_no_more() {
    let config = Config { keep_alive: Some(EVERY), ..Config::default() };
    let (mut rig, ..) = arrived(config.clone());
    rig.wait(Duration::from_secs(60));
    assert_eq!(rig.take().len(), 66, "for the 10 s after which a silent connection sleeps");
    let (mut rig, t, _) = arrived(config);
    rig.put(LAN, t.lan(FIN_ACK, 1001, 1, 0));
    rig.put(SATELLITE, t.sat(FIN_ACK, 1, 1002, 0));
    rig.put(LAN, t.lan(ACK, 1002, 2, 0));
    rig.take();
    rig.wait(Duration::from_secs(60));
    assert_eq!(rig.take().len(), 0);
    let (mut rig, ..) = arrived(Config::default());
    rig.wait(Duration::from_secs(60));
    assert_eq!(rig.take().len(), 0, "off unless configured");
}
