//! Trials at half of the rate.

use super::*;

/// Half of the rate of [`queued`].
const HALF: f64 = 5.0;
/// Longest time from the suspicion to the trial: ten round trips, and a step of the meter.
const DELAY: u64 = 1000 + 128;

/// A sender that signals, in a standing queue of 50 ms; a packet per millisecond is answered.
fn queued() -> Hand {
    let mut hand = Hand::with(&asking());
    hand.hear(response(10.4));
    (hand.path.rtt_min, hand.rtt) = (millis(50), Some(millis(100)));
    hand
}

fn is_halved(hand: &Hand) -> bool {
    hand.plan().pace == Some(mbps(HALF))
}

fn has_fallen(hand: &Hand, _: u64) -> bool {
    hand.cc.fallback().is_some()
}

/// 3 % lost where a TCP of 10 Mbit/s would have 0.01 %, in a standing queue: half of the rate. If that ends
/// queue and losses, the sender was the cause.
#[test]
fn a_sender_that_causes_the_losses_gives_up() {
    let mut hand = queued();
    let wait = hand.answer(33, |hand, _| is_halved(hand));
    assert!((4 * 128 + 1..=4 * 128 + DELAY).contains(&wait), "{wait}");
    hand.rtt = Some(millis(75));
    // two round trips do not count; in four more the queue must go, and 9 losses are due before they end
    let took = hand.answer(u64::MAX, has_fallen);
    assert!((600..650).contains(&took), "{took}");
    assert_eq!(hand.cc.fallback().map(|f| f.why), Some("its rate alone made a queue overflow"));
}

/// Each loss during the trial makes it longer, by two that are due.
#[test]
fn few_losses_do_not_acquit() {
    let mut hand = queued();
    hand.answer(33, |hand, _| is_halved(hand));
    hand.rtt = Some(millis(60));
    // at a sixth of the former share 13 are due after the second, 15 after the third
    let took = hand.answer(199, has_fallen);
    assert!((200 + 11 * 32..200 + 15 * 36).contains(&took), "{took}");
}

/// Losses that do not end are none of its own: the rate comes back, and the next trial is not soon.
#[test]
fn a_sender_that_does_not_cause_the_losses_goes_on() {
    let mut hand = queued();
    let mut waits = Vec::new();
    for _ in 0..4 {
        waits.push(hand.answer(33, |hand, _| is_halved(hand)));
        hand.answer(33, |hand, _| !is_halved(hand));
        assert_eq!((hand.plan().pace, hand.cc.fallback()), (Some(mbps(10.0)), None));
    }
    // 1, 2 and 4 s, to the next step of the meter, and the delay
    for (wait, least) in waits[1..].iter().zip([1000, 2000, 4000]) {
        assert!((least..least + 128 + DELAY).contains(wait), "{waits:?}");
    }
}

/// A queue that stays is not its own, although nothing is lost at half of the rate: others overflow a queue
/// in bursts. Six round trips are enough to see it.
#[test]
fn a_queue_that_stays_is_that_of_others() {
    for left in [80, 100, 140] {
        let mut hand = queued();
        hand.answer(33, |hand, _| is_halved(hand));
        hand.rtt = Some(millis(left));
        assert_eq!(hand.answer(u64::MAX, |hand, _| !is_halved(hand)), 600);
        assert_eq!((hand.plan().pace, hand.cc.fallback()), (Some(mbps(10.0)), None));
    }
}

/// A connection that began in a full queue does not know the path without it: 20 ms less than ever before may
/// be a small part of the queue. The next trial knows more.
#[test]
fn a_queue_of_unknown_length_proves_nothing() {
    let mut hand = queued();
    for (least, falls) in [(30, false), (25, true)] {
        hand.rtt = Some(millis(100));
        hand.answer(33, |hand, _| is_halved(hand));
        (hand.path.rtt_min, hand.rtt) = (millis(least), Some(millis(least)));
        hand.answer(u64::MAX, |hand, _| !is_halved(hand));
        assert_eq!(hand.cc.fallback().is_some(), falls, "{least} ms");
    }
}

/// Without a standing queue it is noise, however much of it; so is what a TCP of that rate would lose.
#[test]
fn without_a_queue_or_many_losses_nothing_is_tried() {
    let halved = |hand: &Hand, _: u64| hand.plan().pace != Some(mbps(10.0));
    let mut hand = queued();
    hand.rtt = Some(millis(50));
    assert_eq!(hand.answer(10, halved), MOST);
    hand = queued();
    assert_eq!(hand.answer(2000, halved), MOST);
}

/// A fifth of 256 packets in every 4096: more than a TCP of this rate would lose, but not all the time.
#[test]
fn bursts_of_losses_are_no_reason() {
    let mut hand = queued();
    for n in 1..40_000_u64 {
        hand.now += millis(1);
        let lost = u64::from(n % 4096 < 256 && n % 5 == 0);
        hand.ack(1 - lost, lost, None);
        assert_eq!(hand.plan().pace, Some(mbps(10.0)), "{n}");
    }
}

/// Senders that become suspicious at different times, even in the same step, do not begin together.
#[test]
fn trials_begin_at_random() {
    let begin = |late: u64| {
        let mut hand = queued();
        hand.now += Duration(late);
        hand.answer(33, |hand, _| is_halved(hand))
    };
    let mut all: Vec<u64> = (0..16).map(begin).collect();
    all.sort_unstable();
    all.dedup();
    assert!(all.len() >= 6 && all[all.len() - 1] - all[0] >= 500, "{all:?}");
}
