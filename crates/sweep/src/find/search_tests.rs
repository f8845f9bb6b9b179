//! The search on functions whose crossing is known.

use super::*;
use crate::find::Comparison;
use bentpipe_report::Metric;
use core::convert::Infallible;

fn until(comparison: Comparison, limit: f64) -> Condition {
    let metric = Metric::parse("timeouts").unwrap();
    Condition { metric, comparison, limit, written: limit.to_string() }
}

fn vary(low: f64, high: f64) -> Vary {
    Vary::new("x", (low, high), "").unwrap()
}

/// Searches a function of the value and the seed, with five seeds.
fn searched(
    vary: &Vary,
    until: &Condition,
    f: &dyn Fn(f64, u32) -> Option<f64>,
) -> (Vec<Point>, Option<Crossing>) {
    let mut evaluate = |values: &[f64]| {
        Ok::<_, Infallible>(values.iter().map(|x| (0..5).map(|seed| f(*x, seed)).collect()).collect())
    };
    let (points, crossing) = search(vary, until, &mut evaluate).unwrap();
    assert!(points.len() <= MAX_VALUES && points.is_sorted_by(|a, b| a.x < b.x));
    (points, crossing)
}

/// A number from -1 to 1 that looks random.
fn noise(n: u32) -> f64 {
    let mixed = (u64::from(n) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    ((mixed >> 11) as f64 / (1_u64 << 53) as f64) * 2.0 - 1.0
}

#[test]
fn a_crossing_is_found_to_a_thousandth() {
    for (low, high, limit, wanted) in [(0.0, 10.0, 9.0, 3.0), (1e-9, 1e-1, 1e-10, 1e-5), (2.9, 3.1, 9.0, 3.0)]
    {
        for (comparison, met_above) in [(Comparison::Above, true), (Comparison::AtMost, false)] {
            let (_, found) = searched(&vary(low, high), &until(comparison, limit), &|x, _| Some(x * x));
            let found = found.unwrap();
            assert!((found.value / wanted - 1.0).abs() < 1e-5, "{found:?}");
            assert!(
                found.low <= wanted && wanted <= found.high && found.high / found.low < 1.002,
                "{found:?}"
            );
            assert_eq!((found.met_above, found.uncertain, found.in_order), (met_above, false, true));
        }
    }
}

/// A crossing at zero has no relative width.
#[test]
fn a_step_at_zero_ends_the_search() {
    let (points, found) = searched(&vary(-10.0, 10.0), &until(Comparison::Above, 0.0), &|x, _| {
        Some(if x > 0.0 { 1.0 } else { -1.0 })
    });
    let found = found.unwrap();
    assert!(found.low <= 0.0 && found.high > 0.0 && found.high - found.low < 1e-7, "{found:?}");
    assert!(points.len() < 40, "{}", points.len());
}

#[test]
fn the_answer_of_integers_is_the_first_that_fits() {
    let whole = |low, high| {
        let mut vary = vary(low, high);
        vary.whole = true;
        vary
    };
    for (comparison, answer, edges) in [
        // the condition begins above 57.3 or, from above, below it
        (Comparison::AtLeast, 58.0, (57.0, 58.0)),
        (Comparison::Below, 57.0, (57.0, 58.0)),
    ] {
        let (_, found) = searched(&whole(1.0, 1000.0), &until(comparison, 57.3), &|x, _| Some(x));
        let found = found.unwrap();
        assert!((found.value - answer).abs() < 1e-9 && (found.low, found.high) == edges, "{found:?}");
    }
    // a range narrower than the digits of its values: nothing is tried outside of it
    let (points, found) =
        searched(&vary(1.000_000_1, 1.000_000_4), &until(Comparison::Above, 1.000_000_2), &|x, _| Some(x));
    assert!(points.len() == 2 && found.is_some_and(|f| f.low > 1.0 && f.high < 1.000_001));
    // a range of two, and a step function whose mean is the limit everywhere above
    let (points, found) = searched(&whole(1.0, 2.0), &until(Comparison::Above, 1.5), &|x, _| Some(x));
    assert!(points.len() == 2 && (found.unwrap().value - 2.0).abs() < 1e-9);
    let lost = |x: f64, _| Some((40.0 - x).max(0.0));
    let (_, found) = searched(&whole(1.0, 400.0), &until(Comparison::AtMost, 0.0), &lost);
    let found = found.unwrap();
    assert!((found.value - 40.0).abs() < 1e-9 && !found.uncertain, "{found:?}");
    assert_eq!((found.low, found.high), (39.0, 40.0), "runs that agree leave no doubt");
}

#[test]
fn without_a_crossing_there_is_no_answer() {
    for comparison in [Comparison::Above, Comparison::Below] {
        let (points, found) = searched(&vary(0.0, 10.0), &until(comparison, 200.0), &|x, _| Some(x * x));
        assert!(found.is_none() && points.len() == 5);
    }
}

/// The first crossing from the side where the condition is not met, with a warning.
#[test]
fn disorder_is_noticed() {
    // rises to 1 at 2, falls to -1 at 6, rises to 3 at 10
    let zigzag = |x: f64, _| {
        Some(if x < 2.0 {
            x - 1.0
        } else if x < 6.0 {
            3.0 - x
        } else {
            x - 7.0
        })
    };
    let (_, found) = searched(&vary(0.0, 10.0), &until(Comparison::Above, 0.0), &zigzag);
    let found = found.unwrap();
    assert!(!found.in_order && found.met_above, "{found:?}");
    assert!((found.value - 1.0).abs() < 0.002, "{found:?}");
    // from above, since smaller values do not meet the mirrored condition
    let (_, found) = searched(&vary(0.0, 10.0), &until(Comparison::Below, 0.0), &zigzag);
    let found = found.unwrap();
    assert!(!found.in_order && !found.met_above && (found.value - 7.0).abs() < 0.01, "{found:?}");
    // met at neither bound, but between them
    let hill = |x: f64, _| Some(25.0 - (x - 5.0) * (x - 5.0));
    let (_, found) = searched(&vary(0.0, 10.0), &until(Comparison::Above, 16.0), &hill);
    let found = found.unwrap();
    assert!(!found.in_order && (found.value - 2.0).abs() < 0.01, "{found:?}");
}

#[test]
fn noise_ends_the_search_early_and_widens_the_interval() {
    let noisy = |x: f64, seed: u32| Some(x + 0.5 * noise(seed));
    let (points, found) = searched(&vary(0.0, 10.0), &until(Comparison::Above, 3.0), &noisy);
    let found = found.unwrap();
    assert!(
        found.uncertain && found.in_order && !found.cut_off && points.len() < 14,
        "{found:?} {}",
        points.len()
    );
    assert!(found.low < 3.0 && 3.0 < found.high && found.high - found.low < 2.0, "{found:?}");
    let (_, found) = searched(&vary(2.9, 3.1), &until(Comparison::Above, 3.0), &noisy);
    assert!(found.is_none_or(|f| f.cut_off));
}

/// In 400 searches with common and own noise, the interval has the crossing about as often as it says.
#[test]
fn the_interval_has_the_crossing() {
    let inside = (0..400_u32).filter(|n| {
        // sums of uniform numbers are close to normal
        let normal = |k: u32| (0..6).map(|i| noise(k * 6 + i)).sum::<f64>();
        let noisy = |x: f64, seed: u32| {
            let own = normal((n * 5 + seed) * 1000 + 7 + (x * 97.0) as u32);
            Some(x + 0.4 * normal((n * 5 + seed) * 1000) + 0.1 * own)
        };
        let found = searched(&vary(0.0, 20.0), &until(Comparison::AtLeast, 7.0), &noisy).1.unwrap();
        found.low <= 7.0 && 7.0 <= found.high
    });
    let inside = inside.count();
    assert!((364..=396).contains(&inside), "{inside} of 400");
}

#[test]
fn a_run_without_a_value_does_not_meet_the_condition() {
    let finished = |x: f64, seed: u32| (x > 4.0 || seed == 0).then_some(20.0 - x);
    let (points, found) = searched(&vary(1.0, 10.0), &until(Comparison::Below, 30.0), &finished);
    let found = found.unwrap();
    assert!((found.value - 4.0).abs() < 0.01 && found.met_above, "{found:?}");
    let first = points[0].figure;
    assert_eq!((points[0].missing(), first.n, first.of), (4, 1, 5));
    assert_eq!((first.mean, first.half_width), (None, None), "no mean of the runs that have a value");
}
