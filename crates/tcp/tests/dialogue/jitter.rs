//! Sender jitter as in ns-2 (`overhead_`): the send opportunity is delayed, not the packet.

use crate::script::{Dialogue, acks, plain};
use bentpipe_base::Duration;
use bentpipe_tcp::{Config, Jitter, JitterKind};

fn jittery() -> Dialogue {
    let jitter = Some(Jitter { max: Duration::from_millis(50), kind: JitterKind::Opportunity });
    Dialogue::established(Config { initial_window: 8, jitter, ..plain() })
}

/// ns-2, tcp.cc, `overhead_`: an event that allows sending takes effect after a random delay; then all
/// segments that fit are sent at once.
#[test]
fn an_opportunity_opens_later_and_lets_all_go() {
    let mut d = jittery();
    d.write(100_000).silent();
    d.at(151);
    let times: Vec<_> = (0..8).map(|_| d.take().0).collect();
    assert!(times[0] >= 100 && times[0] <= 150 && times.iter().all(|t| *t == times[0]), "{times:?}");
    d.silent();
    d.at(300).gets(acks(3)).silent().at(351);
    let times: Vec<_> = (0..4).map(|_| d.take().0).collect();
    assert!(times.iter().all(|t| *t == times[0]), "{times:?}");
    d.silent();
}

/// ns-2, tcp.cc: an ACK during that delay does not delay it again.
#[test]
fn a_waiting_opportunity_is_not_delayed_again() {
    let opens = |more: u64| {
        let mut d = jittery();
        d.write(1_000_000).at(200).drain();
        d.at(300);
        for k in 1..=1 + more {
            d.gets(acks(k));
        }
        d.at(400).take().0
    };
    assert_eq!(opens(0), opens(6));
    assert!(opens(0) > 300);
}

/// ns-2, tcp.cc: retransmissions are not delayed.
#[test]
fn retransmissions_bypass_the_jitter() {
    let mut d = jittery();
    d.write(1_000_000).at(200).drain();
    d.gets_times(3, acks(0)).sent(&[0]);
}
