//! CUBIC: RFC 9438, and HyStart++: RFC 9406.

use crate::script::{Dialogue, acks, plain_with, sacks};
use bentpipe_tcp::cc::cubic::{self, CubicParams};
use bentpipe_tcp::{Config, Detection, Growth, Reduction};

const C: f64 = 0.4;

fn cubic(params: CubicParams) -> Config {
    let mut config = plain_with("cubic");
    config.scheme.recovery.detection = Detection::Sack;
    config.scheme.recovery.reduction = Reduction::AtOnce;
    config.scheme.recovery.frto = false;
    config.scheme.growth = Growth::with(&cubic::ALGORITHM, params);
    config
}

/// `n` segments in flight, the first one is lost and repaired: the clock is at `ms`, plus an RTT of half a
/// second.
fn after_loss(params: CubicParams, n: u32, ms: u64) -> Dialogue {
    let mut d = Dialogue::flying(cubic(params), n);
    d.at(ms);
    lose_one(&mut d, ms);
    d
}

/// The oldest segment is lost, detected, and repaired half a second after `ms`.
fn lose_one(d: &mut Dialogue, ms: u64) {
    let first = (d.conn.scoreboard().una() - 1) / 1000;
    let next = (d.conn.scoreboard().next() - 1) / 1000;
    d.gets(sacks(first, &[(first + 1, next)])).at(ms + 500).gets(acks(next)).drain();
}

/// RFC 9438, section 4.2: W_cubic(t), in segments.
fn w_cubic(t: f64, w_max: f64, start: f64) -> f64 {
    let d = t - libm::cbrt((w_max - start) / C);
    C * d * d * d + w_max
}

/// The window after rounds of half a second, with the closed form at the end of each round.
fn rounds(d: &mut Dialogue, ms: u64, n: u64) -> Vec<f64> {
    (1..=n).map(|i| d.round(ms + 500 * i) as f64 / 1000.0).collect()
}

fn agree(got: &[f64], w_max: f64, start: f64, within: f64) {
    for (i, w) in got.iter().enumerate() {
        let want = w_cubic(0.5 * i as f64, w_max, start);
        assert!((w - want).abs() <= within, "round {i}: {w} against {want}: {got:?}");
    }
}

/// RFC 9438, section 4.6: a loss reduces the window to beta times the flight.
#[test]
fn a_loss_leaves_beta() {
    for (beta, left) in [(0.7, 14_000), (0.8, 16_000)] {
        let mut d = Dialogue::flying(cubic(CubicParams { beta, ..CubicParams::default() }), 20);
        d.gets(sacks(0, &[(1, 4)]));
        assert_eq!(d.cwnd(), left);
    }
}

/// RFC 9438, section 4.10: slow start runs while cwnd <= ssthresh: the first ACK after recovery adds a
/// segment.
#[test]
fn at_ssthresh_slow_start_runs() {
    let mut d = after_loss(CubicParams::default(), 20, 200);
    assert_eq!(d.cwnd(), 14_000);
    d.gets(acks(21));
    assert_eq!(d.cwnd(), 15_000);
    d.gets(acks(22));
    assert!(d.cwnd() < 15_500);
}

/// RFC 9438, sections 4.2, 4.4 and 4.5: the window follows W_cubic(t), with K and the plateau at W_max.
#[test]
fn the_window_follows_the_curve() {
    let mut d = after_loss(CubicParams::default(), 60, 600);
    let got = rounds(&mut d, 1100, 7);
    agree(&got, 60.0, 43.0, 1.5);
    assert!((got[6] - 60.0).abs() < 0.5, "K is 3.5 s: {got:?}");
}

/// RFC 9438, section 4.7: a loss below the last W_max lowers W_max further, unless this is switched off.
#[test]
fn fast_convergence_lowers_the_plateau() {
    for (fast_convergence, w_max) in [(true, 43.0 * 0.85), (false, 43.0)] {
        let params = CubicParams { fast_convergence, ..CubicParams::default() };
        let mut d = after_loss(params, 60, 600);
        d.at(1200);
        let first = (d.conn.scoreboard().una() - 1) / 1000;
        d.gets(acks(first + 1)).drain(); // the segment of slow start: 43
        assert_eq!(d.cwnd() / 1000, 43);
        lose_one(&mut d, 1200);
        let start = d.cwnd() as f64 / 1000.0 + 1.0;
        let got = rounds(&mut d, 1700, 6);
        agree(&got, w_max, start, 1.5);
    }
}

/// RFC 9438, section 4.3: in the Reno-friendly region the window is W_est: 0.53 segments more per round, one
/// once it reaches its old value.
#[test]
fn short_round_trips_follow_reno() {
    let mut d = Dialogue::flying(cubic(CubicParams::default()), 10);
    d.gets(sacks(0, &[(1, 10)])).at(300).gets(acks(10)).drain();
    let got: Vec<_> = (4..=10).map(|i| d.round(100 * i) as f64 / 1000.0).collect();
    // 7 + 1 of slow start, then 9/17 in each round; W_cubic is below 9.2 until 0.5 s
    let alpha = 9.0 / 17.0;
    for (i, w) in got.iter().take(4).enumerate() {
        let want = 8.0 + alpha * i as f64;
        assert!((w - want).abs() < 0.6, "round {i}: {w} against {want}: {got:?}");
    }
    assert!(got[4] > 9.6 && got[6] - got[5] > 0.75, "{got:?}");
}

/// RFC 9438, section 4.8: after a timeout K = 0 and the plateau is the window when avoidance begins.
#[test]
fn after_a_timeout_the_plateau_is_here() {
    let mut d = Dialogue::flying(cubic(CubicParams::default()), 60);
    d.at(1100).sent(&[0]).at(1600).gets(acks(60)).drain();
    let got = rounds(&mut d, 1600, 10);
    let begin = got.iter().position(|w| *w >= 42.0).expect("slow start reaches ssthresh");
    assert!(got[begin + 3] - got[begin] < 4.5, "{got:?}");
}

/// RFC 9438, section 4.2: the clock stops while the window is not the limit.
#[test]
fn the_clock_stops_while_the_window_is_not_the_limit() {
    let mut d = Dialogue::established(Config { initial_window: 60, ..cubic(CubicParams::default()) });
    d.write(60_000).drain();
    d.at(600);
    lose_one(&mut d, 600);
    d.write(200_000).drain();
    let mut full = rounds(&mut d, 1100, 2);
    // the rest is acknowledged; then ten seconds with one segment every half second
    let mut ms = 2100;
    while !d.conn.scoreboard().is_empty() {
        ms += 500;
        d.round(ms);
    }
    let before = d.cwnd();
    for _ in 0..20 {
        d.write(1000);
        ms += 500;
        d.round(ms);
    }
    assert_eq!(d.cwnd(), before, "{full:?}");
    d.write(200_000).drain();
    full.push(d.round(ms + 500) as f64);
    full.push(d.round(ms + 1000) as f64);
    assert!(d.cwnd() < before + 8000, "no jump: {before} {full:?}");
}

/// RFC 9406, section 4.2: a rise of the RTT reduces the growth in slow start to a quarter; after five such
/// rounds it ends.
#[test]
fn hystart_leaves_slow_start_by_css() {
    let mut d = Dialogue::flying(cubic(CubicParams::default()), 8);
    assert_eq!(d.round(200), 16_000);
    let cwnds: Vec<_> = (1..=7).map(|i| d.round(200 + 125 * i)).collect();
    assert!(cwnds[0] < 28_000, "the rise was seen after eight samples: {cwnds:?}");
    for pair in cwnds[..5].windows(2) {
        let growth = pair[1] as f64 / pair[0] as f64;
        assert!((1.18..=1.26).contains(&growth), "{cwnds:?}");
    }
    assert!(cwnds[6] < cwnds[5] + 3000, "five rounds, then avoidance: {cwnds:?}");
}

/// Without HyStart++ (RFC 9406, section 4.2) slow start continues to double.
#[test]
fn without_hystart_slow_start_doubles_on() {
    let mut d = Dialogue::flying(cubic(CubicParams { hystart: false, ..CubicParams::default() }), 8);
    assert_eq!((d.round(200), d.round(325), d.round(450)), (16_000, 32_000, 64_000));
}
