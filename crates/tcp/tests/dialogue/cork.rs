//! Cork: Linux's `TCP_CORK`.

use crate::script::{ACK, Dialogue, Seg, Want, data, plain};
use bentpipe_base::Flags;
use bentpipe_tcp::{Config, Stack};

fn corked(stack: Stack) -> Dialogue {
    let mut d = Dialogue::established(plain().on(stack));
    d.with(|c, _| c.cork(true));
    d
}

/// With a cork a partial segment waits for more data, full segments do not.
#[test]
fn a_partial_segment_waits_for_more() {
    for stack in [Stack::Rfc, Stack::Linux] {
        let mut d = corked(stack);
        d.write(300).silent().at(200).write(900).sends_at(200, data(1, 1000)).silent();
        d.at(250).write(2000).sends_at(250, data(1001, 1000)).sends(data(2001, 1000)).silent();
    }
}

/// A partial segment waits at most 200 ms.
#[test]
fn a_cork_gives_way_after_200_ms() {
    for stack in [Stack::Rfc, Stack::Linux] {
        let mut d = corked(stack);
        d.at(1000)
            .write(300)
            .at(1100)
            .write(300)
            .at(1199)
            .silent()
            .at(1200)
            .sends_at(1200, data(1, 600))
            .silent();
        d.at(1300).gets(Seg { ack: Some(601), ..ACK }).write(100).at(1499).silent();
        d.at(1500).sends_at(1500, data(601, 100)).silent();
    }
}

/// Removing the cork sends everything, even with Nagle; data written later is subject to Nagle again.
#[test]
fn pulling_the_cork_lets_all_go() {
    let mut d = Dialogue::established(Config { nagle: true, ..plain() });
    d.with(|c, _| c.cork(true));
    d.write(1300).sends(data(1, 1000)).silent();
    d.with(|c, _| c.cork(false));
    d.sends(data(1001, 300)).write(100).silent().gets(Seg { ack: Some(1301), ..ACK }).sends(data(1301, 100));
    assert_eq!(d.conn.next_timer().map(|t| t.1), Some(bentpipe_tcp::timers::Timer::Retransmit));
}

/// A FIN does not wait, and takes the partial segment along.
#[test]
fn a_fin_takes_the_rest_along() {
    let mut d = corked(Stack::Rfc);
    d.write(300).silent().close().sends(Want { flags: Some(Flags::FIN), ..data(1, 300) }).silent();
}
