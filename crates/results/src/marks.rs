//! Times at which a link carried nothing or faded, to be marked where goodput is drawn.

use crate::series::{column, maximum, time_unit};
use crate::tables::number;
use bentpipe_plot::{Colour, Mark};
use bentpipe_sim::record::{DARK, Record};

/// Shallower fades are not marked.
const LEAST_FADE_DB: f64 = 1.0;
/// What lasts longer, as a share of the run, explains nothing at a certain time.
const MOST_OF_RUN: f64 = 0.6;
/// Maximum number of marks of a kind; the longest are kept.
const MOST: usize = 40;

/// Returns the marks of a run, over the time axis of its pictures.
pub(crate) fn marks(record: &Record) -> Vec<Mark> {
    let n = record.time_s.len();
    let of = |key: &'static str, least: f64| -> Vec<bool> {
        let exceeds =
            |i: usize| record.links.iter().any(|l| column(l, key).get(i).is_some_and(|v| *v >= least));
        (0..n).map(exceeds).collect()
    };
    let fade = maximum(record.links.iter().flat_map(|l| column(l, "fade_db").iter().copied()));
    let mut marks = ranges(record, &of(DARK, 0.5), "outage", Colour::Vermilion);
    if fade >= LEAST_FADE_DB {
        let half = (fade / 2.0 * 10.0).round() / 10.0;
        let name = format!("fade of {} dB or more", number(half));
        marks.extend(ranges(record, &of("fade_db", half), &name, Colour::Grey));
    }
    marks
}

/// Ranges of intervals for which something is true; a gap of one interval does not end them.
fn ranges(record: &Record, is: &[bool], name: &str, colour: Colour) -> Vec<Mark> {
    let end = record.time_s.last().copied().unwrap_or(0.0);
    let unit = time_unit(end).size;
    let mut found: Vec<(usize, usize)> = Vec::new();
    for i in (0..is.len()).filter(|i| is[*i]) {
        match found.last_mut() {
            Some((_, last)) if i - *last <= 2 => *last = i,
            _ => found.push((i, i)),
        }
    }
    let mark = |(first, last): &(usize, usize)| {
        let from = first.checked_sub(1).map_or(0.0, |before| record.time_s[before]);
        Mark { from: from / unit, to: record.time_s[*last] / unit, name: name.to_owned(), colour }
    };
    let mut all: Vec<Mark> = found.iter().map(mark).collect();
    if all.iter().map(|m| m.to - m.from).sum::<f64>() > MOST_OF_RUN * end / unit {
        return Vec::new();
    }
    all.sort_by(|a, b| (b.to - b.from).total_cmp(&(a.to - a.from)));
    all.truncate(MOST);
    all.sort_by(|a, b| a.from.total_cmp(&b.from));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_sim::record::Series;

    fn record(key: &'static str, values: &[f64]) -> Record {
        let mut link = Series::new("hop", &[key]);
        for v in values {
            link.push(&[*v]);
        }
        Record {
            time_s: (1..=values.len()).map(|i| i as f64).collect(),
            links: vec![link],
            ..Record::default()
        }
    }

    fn times(record: &Record) -> Vec<(f64, f64)> {
        marks(record).iter().map(|m| (m.from, m.to)).collect()
    }

    #[test]
    fn an_outage_is_marked_from_its_beginning_to_its_end() {
        let dark = record(DARK, &[0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.6, 0.0, 0.0, 0.0]);
        assert_eq!(times(&dark), [(1.0, 3.0), (6.0, 7.0)]);
        assert!(marks(&dark).iter().all(|m| m.name == "outage"));
        assert!(times(&record(DARK, &[1.0; 10])).is_empty(), "a link that is always dark");
    }

    #[test]
    fn a_fade_is_marked_where_it_has_half_its_depth() {
        let fade = record("fade_db", &[0.0, 2.0, 6.0, 12.0, f64::NAN, 7.0, 1.0, 0.0, 0.0, 0.0]);
        assert_eq!(times(&fade), [(2.0, 6.0)]);
        assert_eq!(marks(&fade)[0].name, "fade of 6 dB or more");
        assert!(times(&record("fade_db", &[0.0, 0.4, 0.0])).is_empty());
    }
}
