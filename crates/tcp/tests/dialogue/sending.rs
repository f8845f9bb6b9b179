//! The sender: segmentation, Nagle, send buffer, initial window.

use crate::script::{ACK, Dialogue, Seg, Want, data, plain};
use bentpipe_base::{Flags, Size};
use bentpipe_tcp::Config;

/// RFC 9293, section 3.7.1: data is sent in segments of the MSS; PSH marks the last byte written (section
/// 3.9.1.2).
#[test]
fn data_is_cut_at_the_mss() {
    let mut d = Dialogue::established(plain());
    d.write(2500).sends(data(1, 1000)).sends(data(1001, 1000));
    let (_, last) = d.take();
    crate::script::check(&last, &data(2001, 500));
    assert!(last.tcp.flags.has(Flags::PSH));
    assert_eq!((last.body.off, last.body.len), (2000, 500));
    d.silent();
}

/// RFC 9293, section 3.7.4: with Nagle a partial segment waits while data is unacknowledged; otherwise it is
/// sent at once.
#[test]
fn nagle_holds_a_partial_segment() {
    let mut d = Dialogue::established(Config { nagle: true, ..plain() });
    d.write(300).sends(data(1, 300));
    d.write(300).silent().write(300).silent();
    d.at(200).gets(Seg { ack: Some(301), ..ACK }).sends_at(200, data(301, 600)).silent();
    d.write(900).silent().write(100).sends(data(901, 1000)).silent();
}

/// RFC 9293, section 3.7.4: Nagle can be turned off.
#[test]
fn without_nagle_a_partial_segment_goes() {
    let mut d = Dialogue::established(plain());
    d.write(300).sends(data(1, 300)).write(200).sends(data(301, 200)).silent();
}

/// A FIN does not wait for Nagle: no more data can join the last segment.
#[test]
fn nagle_does_not_hold_the_last_segment() {
    let mut d = Dialogue::established(Config { nagle: true, ..plain() });
    d.write(300).sends(data(1, 300)).write(300).silent();
    d.close().sends(Want { flags: Some(Flags::FIN), ..data(301, 300) });
}

/// RFC 9293, section 3.10.2 (SEND): a bounded send buffer accepts what fits; acknowledgments free space.
#[test]
fn the_send_buffer_takes_what_fits() {
    let mut d = Dialogue::established(Config { send_buffer: Some(Size(3000)), ..plain() });
    assert_eq!(d.with(|c, _| (c.write(5000), c.write(1))), (3000, 0));
    d.at(200).gets(Seg { ack: Some(1001), ..ACK });
    assert_eq!((d.conn.send_room(), d.conn.write(5000), d.conn.unacknowledged()), (1000, 1000, 3000));
}

/// RFC 5681, section 3.1, RFC 3390 and RFC 6928: the initial window.
#[test]
fn the_initial_window_is_so_many_segments() {
    for initial_window in [1, 2, 4, 10] {
        let mut d = Dialogue::established(Config { initial_window, ..plain() });
        d.write(20_000);
        for i in 0..u64::from(initial_window) {
            d.sends_at(100, data(1 + i * 1000, 1000));
        }
        d.at(1000).silent();
    }
}

/// RFC 9293, section 3.7.1: SACK blocks shorten a data segment, so that no segment exceeds the MSS.
#[test]
fn sack_blocks_take_room_from_data() {
    let mut config = plain();
    config.options.sack = true;
    let mut d = Dialogue::established(config);
    d.gets(Seg { seq: 1001, len: 1000, ..ACK }).take();
    d.gets(Seg { seq: 3001, len: 1000, ..ACK }).take();
    d.write(2940);
    for at in [100, 100, 100, 1100] {
        let (sent_at, p) = d.at(at).take();
        if at == 1100 {
            crate::script::check(&p, &Want { sack: Some(&[(3001, 4001), (1001, 2001)]), ..data(1, 980) });
        }
        assert_eq!(sent_at, at);
        assert_eq!((p.tcp.sack.as_slice().len(), p.body.len), (2, 1000 - 4 - 2 * 8));
    }
}
