//! Unused windows: RFC 5681, section 4.1, and RFC 7661.

use crate::script::{Dialogue, plain};
use bentpipe_base::Size;
use bentpipe_tcp::{Config, Validation};

/// RFC 7661, section 4.3 (and RFC 5681's intent): a window that is not the limit does not grow.
#[test]
fn an_unused_window_does_not_grow() {
    for initial_ssthresh in [None, Some(Size(5000))] {
        let mut d = Dialogue::established(Config { initial_window: 10, initial_ssthresh, ..plain() });
        for i in 0..20 {
            d.write(2000);
            d.round(200 + 100 * i);
        }
        assert_eq!(d.cwnd(), 10_000);
    }
}

/// RFC 5681, section 4.1: after an idle time of an RTO the window is the initial window again.
#[test]
fn an_idle_sender_restarts() {
    for (validation, left) in [(Validation::Restart, 4000), (Validation::Keep, 0)] {
        let mut d = Dialogue::established(Config { validation, ..plain() });
        d.write(8000);
        d.round(200);
        d.round(300);
        let before = d.cwnd();
        d.at(1150).write(1000); // less than an RTO
        assert!(before >= 8000 && d.cwnd() == before);
        d.round(1250);
        let grown = d.cwnd();
        d.at(2400).write(1000);
        assert_eq!(d.cwnd(), if validation == Validation::Restart { left } else { grown });
    }
}

/// RFC 7661, section 4.2 and 4.4.3: with pipeACK below half the window it is not validated; after five
/// minutes of that it is halved.
#[test]
fn an_unvalidated_window_is_halved_after_five_minutes() {
    let mut d =
        Dialogue::established(Config { validation: Validation::Validate, initial_window: 10, ..plain() });
    d.write(60_000);
    for i in 0..5 {
        d.round(200 + 100 * i);
    }
    let grown = d.cwnd();
    assert!(grown >= 30_000, "{grown}");
    let halved = (1..1000).find(|i| {
        d.at(i * 20_000).write(1000);
        d.round(i * 20_000 + 100) < grown
    });
    assert!((16..=19).contains(&halved.unwrap()), "at {halved:?} times 20 s");
    assert_eq!(d.cwnd(), grown / 2);
}

/// RFC 7661, section 4.3: a window with pipeACK of at least half of it is validated and stays.
#[test]
fn a_validated_window_stays() {
    let mut d = Dialogue::established(Config {
        validation: Validation::Validate,
        initial_ssthresh: Some(Size(8000)),
        ..plain()
    });
    d.write(60_000);
    for i in 0..9 {
        d.round(200 + 100 * i);
    }
    let grown = d.cwnd();
    for i in 1..40 {
        d.at(i * 10_000).write(grown / 4000 * 3000);
        d.round(i * 10_000 + 100);
    }
    assert!(grown >= 9000 && d.cwnd() == grown, "{grown} {}", d.cwnd());
}
