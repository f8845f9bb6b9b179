//! Reduces points: of each column of pixels it keeps the first, lowest, highest and last, so peaks remain.

use std::collections::BTreeSet;

/// Width of a column in user units: at most half a pixel on most screens.
const COLUMN: f64 = 0.5;

/// Points of an uninterrupted line.
pub(crate) type Polyline = Vec<(f64, f64)>;

/// Splits positions at gaps and reduces each piece.
pub(crate) fn polylines(places: impl Iterator<Item = Option<(f64, f64)>>) -> Vec<Polyline> {
    let places: Vec<Option<(f64, f64)>> = places.collect();
    let pieces = places.split(Option::is_none).filter(|piece| !piece.is_empty());
    pieces.map(|piece| decimate(&piece.iter().copied().flatten().collect::<Polyline>())).collect()
}

fn column(x: f64) -> i64 {
    libm::floor(x / COLUMN) as i64
}

/// Returns the piece with at most four points per column.
pub(crate) fn decimate(piece: &[(f64, f64)]) -> Polyline {
    let mut out = Polyline::with_capacity(piece.len().min(4096));
    for run in piece.chunk_by(|a, b| column(a.0) == column(b.0)) {
        if run.len() <= 4 {
            out.extend_from_slice(run);
            continue;
        }
        let by_height = |a: &usize, b: &usize| run[*a].1.total_cmp(&run[*b].1);
        let lowest = (0..run.len()).min_by(by_height).unwrap_or(0);
        let highest = (0..run.len()).max_by(by_height).unwrap_or(0);
        let kept = BTreeSet::from([0, lowest, highest, run.len() - 1]);
        out.extend(kept.into_iter().map(|k| run[k]));
    }
    out
}

/// Positions of markers, at most one in each square of `COLUMN` by `COLUMN` user units.
pub(crate) fn marker_positions(places: impl Iterator<Item = (f64, f64)>) -> Polyline {
    let mut seen = BTreeSet::new();
    places.filter(|(x, y)| seen.insert((column(*x), column(*y)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_peak_is_lost(heights in prop::collection::vec(-50.0..50.0_f64, 1..2000)) {
            let all: Polyline = heights.iter().enumerate().map(|(i, y)| (i as f64 * 0.01, *y)).collect();
            let thinned = decimate(&all);
            let extremes = |p: &[(f64, f64)], c: i64| {
                let inside = p.iter().filter(|q| column(q.0) == c);
                inside.fold((f64::INFINITY, f64::NEG_INFINITY), |r, q| (r.0.min(q.1), r.1.max(q.1)))
            };
            for c in 0..=column(all[all.len() - 1].0) {
                prop_assert_eq!(extremes(&all, c), extremes(&thinned, c));
                prop_assert!(thinned.iter().filter(|q| column(q.0) == c).count() <= 4);
            }
            prop_assert!(thinned.windows(2).all(|w| w[0].0 <= w[1].0));
        }
    }

    #[test]
    fn gaps_break_the_line() {
        let at = |x: f64| Some((x, x));
        let broken = polylines([None, at(1.0), at(2.0), None, None, at(4.0)].into_iter());
        assert_eq!(broken, [vec![(1.0, 1.0), (2.0, 2.0)], vec![(4.0, 4.0)]]);
    }

    #[test]
    fn markers_on_one_spot_are_one() {
        assert_eq!(marker_positions([(1.0, 1.0), (1.1, 1.1), (9.0, 1.0)].into_iter()).len(), 2);
    }
}
