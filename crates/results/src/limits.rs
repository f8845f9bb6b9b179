//! What limited flows over the time of a run, as a line of characters and as a picture.

use crate::series::{MAX_FLOWS, column, maximum, time_axis, time_unit};
use bentpipe_base::Duration;
use bentpipe_plot::{Colour, Strip, StripBand, StripKind, StripRow};
use bentpipe_report::decimals;
use bentpipe_scenario::{Scenario, Stop};
use bentpipe_sim::RecordOptions;
use bentpipe_sim::record::{LIMIT_COLUMNS, Record, Series};
use core::fmt::Write as _;

/// A limit of the sender in the order of reports.
struct Limit {
    name: &'static str,
    letter: char,
    sign: char,
    colour: Colour,
}

const fn limit(name: &'static str, letter: char, sign: char, colour: Colour) -> Limit {
    Limit { name, letter, sign, colour }
}

const LIMITS: [Limit; LIMIT_COLUMNS.len()] = [
    limit("opening the connection", 'o', '·', Colour::Ink),
    limit("application", 'a', '░', Colour::Grey),
    limit("send buffer", 'b', '▄', Colour::Orange),
    limit("receiver's window", 'r', '▒', Colour::Purple),
    limit("congestion window", 'c', '█', Colour::Blue),
    limit("pacing", 'p', '≈', Colour::Green),
    limit("repairing losses", 'x', '×', Colour::Vermilion),
];

/// Number of characters of a line.
const CHARACTERS: usize = 60;
/// Intervals of a run of which only lines are made: eight for each character.
const INTERVALS: u64 = 8 * CHARACTERS as u64;
/// Maximum number of bands of a row.
const BANDS: usize = 160;
/// Maximum number of rows of a picture, unless it has more runs.
const ROWS: usize = 12;
/// Maximum length of a name before a line.
const NAME: usize = 18;

/// The main limit in equal parts of the run; `None` where no flow was running.
struct Course {
    name: String,
    parts: Vec<Option<usize>>,
}

/// Returns what must be recorded for the lines below the headline: as little as they need, so that a run
/// takes no longer.
pub fn record_for_lines(scenario: &Scenario) -> RecordOptions {
    let fine = RecordOptions { sequences: 0, round_trips: false, ..RecordOptions::default() };
    // a run that ends with its flows may be much shorter than its scenario allows
    match scenario.stop {
        Stop::Finished => fine,
        Stop::Duration => {
            RecordOptions { every: fine.every.max(Duration(scenario.duration.0 / INTERVALS)), ..fine }
        }
    }
}

/// Returns the lines below the headline: one for each flow, or one for all if they are many, and what the
/// characters mean. Empty if nothing is known. `ascii` is for terminals that show nothing else.
pub fn limits_in_lines(record: &Record, ascii: bool) -> String {
    let courses = courses(record, CHARACTERS, MAX_FLOWS);
    let sign = |limit: usize| if ascii { LIMITS[limit].letter } else { LIMITS[limit].sign };
    let short = |name: &str| name.chars().take(NAME).collect::<String>();
    let wide = courses.iter().map(|c| short(&c.name).chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for course in &courses {
        let line: String = course.parts.iter().map(|part| part.map_or(' ', sign)).collect();
        let name = short(&course.name);
        let _ =
            if wide == 0 { writeln!(out, "  |{line}|") } else { writeln!(out, "  {name:wide$} |{line}|") };
    }
    let occurs = |limit: &usize| courses.iter().any(|c| c.parts.contains(&Some(*limit)));
    let key = |limit: usize| format!("{} {}", sign(limit), LIMITS[limit].name);
    let keys: Vec<String> = (0..LIMITS.len()).filter(occurs).map(key).collect();
    if !keys.is_empty() {
        let end = record.time_s.last().copied().unwrap_or(0.0);
        let _ = writeln!(out, "  limits from 0 to {} s: {}", decimals(end, 3), keys.join(", "));
    }
    out
}

/// Returns the picture of one run or of several, each with its name; `None` if nothing is known.
pub(crate) fn strip(runs: &[(&str, &Record)]) -> Option<Strip> {
    let end_of = |record: &Record| record.time_s.last().copied().unwrap_or(0.0);
    let end_s = maximum(runs.iter().map(|(_, record)| end_of(record)));
    let unit = time_unit(end_s).size;
    let row = |course: Course, end_s: f64| {
        let length = end_s / unit / course.parts.len() as f64;
        let mut bands: Vec<StripBand> = Vec::new();
        for (i, part) in course.parts.iter().enumerate() {
            let (from, to) = (i as f64 * length, (i + 1) as f64 * length);
            match (bands.last_mut(), part) {
                (Some(last), Some(kind)) if last.kind == *kind && last.to >= from - 1e-9 * end_s => {
                    last.to = to;
                }
                (_, Some(kind)) => bands.push(StripBand { from, to, kind: *kind }),
                (_, None) => {}
            }
        }
        StripRow { name: course.name, bands }
    };
    let most = MAX_FLOWS.min(ROWS / runs.len().max(1)).max(1);
    let rows_of = |(name, record): &(&str, &Record)| -> Vec<StripRow> {
        let courses = courses(record, BANDS.min(record.time_s.len()), most);
        let named = |course: Course| Course { name: together(name, &course.name), ..course };
        courses.into_iter().map(|course| row(named(course), end_of(record))).collect()
    };
    let rows: Vec<StripRow> = runs.iter().flat_map(rows_of).collect();
    let kind = |l: &Limit| StripKind { name: l.name.to_owned(), letter: l.letter, colour: l.colour };
    (!rows.is_empty()).then(|| Strip {
        title: "What limited the flows over time".to_owned(),
        description: "Bands with what kept the sender from sending more, for most of each part of the run."
            .to_owned(),
        x: time_axis(end_s),
        kinds: LIMITS.iter().map(kind).collect(),
        rows,
    })
}

/// The names of a run and of a flow in it, either of which may be empty.
fn together(run: &str, flow: &str) -> String {
    if run.is_empty() || flow.is_empty() { format!("{run}{flow}") } else { format!("{run}: {flow}") }
}

/// Courses of the flows of which limits are known: each one, or all together if they are more than `most`.
fn courses(record: &Record, parts: usize, most: usize) -> Vec<Course> {
    let known = |f: &&Series| LIMIT_COLUMNS.iter().any(|key| column(f, key).iter().any(|v| *v > 0.0));
    let flows: Vec<&Series> = record.flows.iter().filter(known).collect();
    match flows.as_slice() {
        [] => Vec::new(),
        [one] => vec![Course { name: String::new(), parts: main_limits(record, &[one], parts) }],
        few if few.len() <= most => few
            .iter()
            .map(|f| Course { name: f.name.clone(), parts: main_limits(record, &[f], parts) })
            .collect(),
        many => {
            let name = format!("all {} flows", many.len());
            vec![Course { name, parts: main_limits(record, many, parts) }]
        }
    }
}

/// The limit under which `flows` spent most time, in each of `parts` equal parts of the run.
fn main_limits(record: &Record, flows: &[&Series], parts: usize) -> Vec<Option<usize>> {
    let end = record.time_s.last().copied().unwrap_or(0.0);
    let mut spent = vec![[0.0; LIMITS.len()]; parts];
    let mut begin = 0.0;
    for (i, until) in record.time_s.iter().enumerate() {
        let times = LIMIT_COLUMNS.map(|key| {
            let of = |f: &&Series| column(f, key).get(i).copied().filter(|v| v.is_finite()).unwrap_or(0.0);
            flows.iter().map(of).sum::<f64>()
        });
        // an interval may lie in several parts
        let (from, to) = (begin / end * parts as f64, until / end * parts as f64);
        for (part, spent) in spent.iter_mut().enumerate().take(to.ceil() as usize).skip(from as usize) {
            let share =
                (to.min(part as f64 + 1.0) - from.max(part as f64)) / (to - from).max(f64::MIN_POSITIVE);
            spent.iter_mut().zip(times).for_each(|(sum, time)| *sum += time * share.max(0.0));
        }
        begin = *until;
    }
    let main = |spent: [f64; LIMITS.len()]| {
        let largest = (0..LIMITS.len()).rev().max_by(|a, b| spent[*a].total_cmp(&spent[*b]))?;
        (spent[largest] > 0.0).then_some(largest)
    };
    spent.into_iter().map(main).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_sim::observe::flow_series;

    /// A record of intervals of 1 s, in which a flow has these limits.
    fn record(flows: &[(&str, &[Option<usize>])]) -> Record {
        let series = |(name, course): &(&str, &[Option<usize>])| {
            let mut series = flow_series(name);
            let known = series.columns.len() - LIMITS.len();
            for limit in *course {
                let of = |i: usize| if i >= known && Some(i - known) == *limit { 1.0 } else { 0.0 };
                series.push(&(0..series.columns.len()).map(of).collect::<Vec<f64>>());
            }
            series
        };
        let n = flows.first().map_or(0, |(_, course)| course.len());
        Record {
            time_s: (1..=n).map(|i| i as f64).collect(),
            flows: flows.iter().map(series).collect(),
            ..Record::default()
        }
    }

    #[test]
    fn a_line_shows_each_limit_for_its_time() {
        let course = [Some(0), Some(4), Some(4), Some(6), None, None];
        let lines = limits_in_lines(&record(&[("a", &course)]), true);
        let line = format!("{}{}{}{}", "o".repeat(10), "c".repeat(20), "x".repeat(10), " ".repeat(20));
        let key = "o opening the connection, c congestion window, x repairing losses";
        assert_eq!(lines, format!("  |{line}|\n  limits from 0 to 6 s: {key}\n"));
        let lines = limits_in_lines(&record(&[("a", &course)]), false);
        assert!(lines.contains("██×") && lines.contains("█ congestion window"), "{lines}");
        assert_eq!(limits_in_lines(&Record::default(), true), "");
        assert_eq!(limits_in_lines(&record(&[("a", &[None, None])]), true), "");
    }

    #[test]
    fn few_flows_have_a_line_each_and_many_one_together() {
        let (c, x) = ([Some(4); 60], [Some(6); 60]);
        let two = limits_in_lines(&record(&[("a", &c), ("a longer name", &x)]), true);
        assert!(
            two.starts_with(&format!(
                "  a             |{}|\n  a longer name |{}|\n",
                "c".repeat(60),
                "x".repeat(60)
            )),
            "{two}"
        );
        let many: Vec<(&str, &[Option<usize>])> =
            (0..7).map(|i| ("f", if i < 3 { &c[..] } else { &x[..] })).collect();
        let one = limits_in_lines(&record(&many), true);
        assert!(one.starts_with(&format!("  all 7 flows |{}|\n", "x".repeat(60))), "{one}");
    }

    #[test]
    fn the_bands_of_the_picture_cover_the_same_times() {
        let record = record(&[("a", &[Some(0), Some(4), Some(4), None, Some(4), Some(6)])]);
        let strip = strip(&[("", &record)]).unwrap();
        let bands: Vec<(f64, f64, usize)> =
            strip.rows[0].bands.iter().map(|b| (b.from, b.to, b.kind)).collect();
        assert_eq!(bands, [(0.0, 1.0, 0), (1.0, 3.0, 4), (4.0, 5.0, 4), (5.0, 6.0, 6)]);
        assert!(super::strip(&[("", &Record::default())]).is_none());
    }

    #[test]
    fn several_runs_have_rows_in_one_picture_over_the_same_time() {
        let (c, x) = ([Some(4); 10], [Some(6); 5]);
        let (one, two) = (record(&[("a", &c)]), record(&[("a", &x), ("b", &x)]));
        let rows = |runs: &[(&str, &Record)]| -> Vec<(String, f64)> {
            let rows = strip(runs).unwrap().rows.into_iter();
            rows.map(|row| (row.name, row.bands.last().unwrap().to)).collect()
        };
        let row = |name: &str, to| (name.to_owned(), to);
        assert_eq!(rows(&[("A", &one), ("B", &two)]), [row("A", 10.0), row("B: a", 5.0), row("B: b", 5.0)]);
        // many runs have a row each, and those of which nothing is known none
        let many: Vec<(&str, &Record)> = vec![("B", &two); 11];
        assert_eq!(rows(&many), vec![row("B: all 2 flows", 5.0); 11]);
        assert_eq!(rows(&[("A", &one), ("old", &Record::default())]), [row("A", 10.0)]);
    }

    #[test]
    fn an_interval_in_several_parts_counts_in_each() {
        // two intervals in 60 parts: no part stays empty
        let lines = limits_in_lines(&record(&[("a", &[Some(4), Some(6)])]), true);
        assert!(lines.contains(&format!("|{}{}|", "c".repeat(30), "x".repeat(30))), "{lines}");
    }
}
