//! Pacing: window per SRTT, twice that in slow start (RFC 9002, section 7.7, suggests a factor).

use crate::script::{Dialogue, data, nth, plain};
use bentpipe_tcp::Config;

fn times(pacing: bool) -> Vec<u64> {
    let mut d = Dialogue::established(Config { initial_window: 10, pacing, ..plain() });
    d.write(10_000).at(190);
    (0..10)
        .map(|k| {
            let (at, packet) = d.take();
            crate::script::check(&packet, &data(nth(k), 1000));
            at
        })
        .collect()
}

/// RFC 9002, section 7.7: after a small burst segments are spread over the round trip: ten segments, 100 ms,
/// factor 2: 5 ms apart.
#[test]
fn pacing_spreads_segments() {
    assert_eq!(times(true), [100, 100, 100, 105, 110, 115, 120, 125, 130, 135]);
}

/// Without pacing they are sent at once.
#[test]
fn without_pacing_they_leave_at_once() {
    assert_eq!(times(false), [100; 10]);
}
