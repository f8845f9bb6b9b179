//! The shortest dialogues; they show how dialogues are written.

use crate::script::{ACK, Dialogue, Seg, ack, data, plain};
use bentpipe_tcp::Config;

/// RFC 5681, section 3.2: the third duplicate ACK retransmits the first segment; the window is half the
/// flight.
#[test]
fn the_third_duplicate_ack_resends_the_hole() {
    let mut d = Dialogue::established(Config { initial_window: 8, ..plain() });
    d.write(20_000);
    for i in 0..8 {
        d.sends(data(1 + i * 1000, 1000));
    }
    d.at(200).gets_times(2, ACK).silent();
    d.gets(ACK).sends_at(200, data(1, 1000)).silent();
    // ssthresh is 4 segments and three duplicates arrived: 8 <= 4 + 3 + 1 allows no new data before the fifth
    d.gets(ACK).silent();
    d.gets(ACK).sends(data(8001, 1000)).silent();
    // the hole is filled: 4 segments are allowed in flight, one is
    d.gets(Seg { ack: Some(8001), ..ACK }).sends(data(9001, 1000)).sends(data(10_001, 1000));
    d.sends(data(11_001, 1000)).silent();
}

/// RFC 9293, section 3.10.7.4: in-order data is acknowledged and becomes readable.
#[test]
fn in_order_data_is_acknowledged() {
    let mut d = Dialogue::established(plain());
    d.gets(Seg { len: 500, ..ACK }).sends(ack(501)).silent();
    assert_eq!(d.conn.readable(), 500);
}
