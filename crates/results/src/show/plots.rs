//! Pictures of several runs.

use super::SavedRun;
use crate::figures::in_longer_intervals;
use crate::series::{column, maximum, quantile, rate_unit, time_axis, time_unit};
use bentpipe_plot::{Axis, Curve, Plot, Point, Style};
use bentpipe_report::{FlowReport, Quantiles, Report};
use bentpipe_sim::Record;

/// Number of points of a distribution.
const STEPS: usize = 200;
/// Maximum number of bars.
const MOST_BARS: usize = 12;

/// Goodput and round-trip time of each run over time.
pub(super) fn courses(runs: &[SavedRun]) -> Vec<Plot> {
    let end_s = maximum(runs.iter().filter_map(|run| run.record.time_s.last().copied()));
    if end_s <= 0.0 {
        return Vec::new();
    }
    let unit = rate_unit(maximum(runs.iter().flat_map(|run| goodputs(&run.record))));
    let curve = |run: &SavedRun, style, values: Vec<f64>, times: &[f64], scale: f64| {
        let time = time_unit(end_s).size;
        let points = times.iter().zip(values).map(|(t, v)| Point::new(t / time, v / scale));
        // the mean over an interval holds from its start
        let start = (style == Style::Steps).then(|| Point::new(0.0, f64::NAN));
        Curve::new(&*run.name, style, start.into_iter().chain(points).collect())
    };
    let coarse: Vec<Record> = runs.iter().map(|run| in_longer_intervals(&run.record)).collect();
    let of_goodput = |(run, record): (&SavedRun, &Record)| {
        curve(run, Style::Steps, goodputs(record), &record.time_s, unit.size)
    };
    let of_rtt = |run: &SavedRun| curve(run, Style::Line, round_trips(&run.record), &run.record.time_s, 1.0);
    let plot = |title: &str, description: &str, y: Axis, curves: Vec<Curve>| {
        Plot::new(title, description, time_axis(end_s), y, curves)
    };
    let mut plots = vec![plot(
        "Goodput",
        "Goodput of all flows of each run together, over time.",
        Axis::linear(format!("{}, means of intervals", unit.name)),
        runs.iter().zip(&coarse).map(of_goodput).collect(),
    )];
    let latency: Vec<Curve> =
        runs.iter().map(of_rtt).filter(|c| c.points.iter().any(|p| p.y.is_finite())).collect();
    if !latency.is_empty() {
        let description = "Mean round-trip time of the flows of each run, over time.";
        plots.push(plot("Round-trip time", description, Axis::linear("ms, mean of the flows"), latency));
    }
    plots
}

/// Distributions of goodput and round-trip time over the intervals: as curves, and as boxes.
pub(super) fn distributions(runs: &[SavedRun]) -> Vec<Plot> {
    let unit = rate_unit(maximum(runs.iter().flat_map(|run| goodputs(&run.record))));
    let goodput = |run: &SavedRun| -> Vec<f64> {
        goodputs(&in_longer_intervals(&run.record)).iter().map(|v| v / unit.size).collect()
    };
    let mut plots = Vec::new();
    for (title, label, of) in [
        ("Goodput", format!("goodput, {}", unit.name), &goodput as &dyn Fn(&SavedRun) -> Vec<f64>),
        ("Round-trip time", "round-trip time, ms".to_owned(), &|run| round_trips(&run.record)),
    ] {
        let all: Vec<(&str, Vec<f64>)> = (runs.iter().map(|run| (run.name.as_str(), of(run))))
            .filter(|(_, values)| values.iter().any(|v| v.is_finite()))
            .collect();
        if !all.is_empty() {
            plots.push(cumulative(title, &label, &all));
            plots.push(boxes(title, &label, &all));
        }
    }
    plots
}

fn cumulative(title: &str, label: &str, all: &[(&str, Vec<f64>)]) -> Plot {
    let curve = |(name, values): &(&str, Vec<f64>)| {
        let mut values = values.clone();
        let point = |i: usize| {
            let q = i as f64 / STEPS as f64;
            (quantile(&mut values, q), q)
        };
        Curve::through(*name, Style::Line, (0..=STEPS).map(point).collect::<Vec<_>>())
    };
    Plot::new(
        format!("{title}: distribution"),
        "Share of the intervals with at most this value.",
        Axis::linear(label),
        Axis::linear("share of the intervals").within(0.0, 1.0),
        all.iter().map(curve).collect(),
    )
}

fn boxes(title: &str, label: &str, all: &[(&str, Vec<f64>)]) -> Plot {
    let of = |low: f64, high: f64| -> Vec<Point> {
        let point = |(i, (_, values)): (usize, &(&str, Vec<f64>))| {
            let at = |q| quantile(&mut values.clone(), q);
            Point::with_range(i as f64 + 1.0, at(0.5), at(low), at(high))
        };
        all.iter().enumerate().map(point).collect()
    };
    let curves = vec![
        Curve::new("", Style::Ranges, of(0.05, 0.95)).colour(bentpipe_plot::Colour::Ink),
        Curve::new("", Style::Boxes, of(0.25, 0.75)).colour(bentpipe_plot::Colour::Blue),
    ];
    let names = all.iter().map(|(name, _)| (*name).to_owned()).collect();
    let x = Axis { names, ..Axis::default() };
    Plot::new(
        format!("{title}: boxes"),
        "Median, quartiles, and the middle 90 %.",
        x,
        Axis::linear(label),
        curves,
    )
    .note("Line: median of the intervals; box: middle half; bars: middle 90 %.")
}

/// A bar for each scheme of each run: the mean of its flows, with their range.
pub(super) fn bars(runs: &[SavedRun]) -> Vec<Plot> {
    let mut all: Vec<(String, Vec<&FlowReport>)> = Vec::new();
    for run in runs {
        for flow in &run.report.flows {
            let name = format!("{}, {}", flow.scheme(), run.name);
            match all.iter_mut().find(|(known, _)| *known == name) {
                Some((_, flows)) => flows.push(flow),
                None => all.push((name, vec![flow])),
            }
        }
    }
    let unit = rate_unit(maximum(runs.iter().flat_map(|r| r.report.flows.iter().map(|f| f.goodput_bps))));
    let goodput = |f: &FlowReport| Some(f.goodput_bps / unit.size);
    let rtt = |f: &FlowReport| f.tcp().and_then(|tcp| tcp.rtt_ms.p50);
    let left_out = all.len().saturating_sub(MOST_BARS);
    all.truncate(MOST_BARS);
    let bar = |title: &str, label: String, of: &dyn Fn(&FlowReport) -> Option<f64>| {
        let shown: Vec<(&String, Vec<f64>)> = (all.iter())
            .map(|(name, flows)| (name, flows.iter().filter_map(|f| of(f)).collect::<Vec<f64>>()))
            .filter(|(_, values)| !values.is_empty())
            .collect();
        let point = |(i, (_, values)): (usize, &(&String, Vec<f64>))| {
            let (x, mean) = (i as f64 + 1.0, values.iter().sum::<f64>() / values.len() as f64);
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            if values.len() > 1 {
                Point::with_range(x, mean, least, maximum(values.iter().copied()))
            } else {
                Point::new(x, mean)
            }
        };
        let curve = Curve::new("", Style::Bars, shown.iter().enumerate().map(point).collect());
        let x = Axis { names: shown.iter().map(|(name, _)| (*name).clone()).collect(), ..Axis::default() };
        let more = if left_out > 0 { format!(" {left_out} more are not drawn.") } else { String::new() };
        let plot =
            Plot::new(title, "A bar for each scheme of each run.", x, Axis::linear(label), vec![curve])
                .note(format!("Mean of the flows of a scheme, and their range.{more}"));
        (!shown.is_empty()).then_some(plot)
    };
    let goodput = bar("Goodput of a flow, by scheme", unit.name.to_owned(), &goodput);
    goodput.into_iter().chain(bar("Round-trip time, by scheme", "ms, median".to_owned(), &rtt)).collect()
}

/// Mean of a quantile of the RTT over the flows that have it.
pub(super) fn mean_of(report: &Report, of: fn(&Quantiles) -> Option<f64>) -> Option<f64> {
    let known: Vec<f64> = report.flows.iter().filter_map(|f| of(&f.tcp()?.rtt_ms)).collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}

/// Goodput of all flows together in each interval, bit/s.
fn goodputs(record: &Record) -> Vec<f64> {
    let sum = |i: usize| {
        let of = |f| column(f, "goodput_bps").get(i).copied().filter(|v| v.is_finite());
        record.flows.iter().filter_map(of).sum()
    };
    (0..record.time_s.len()).map(sum).collect()
}

/// Mean round-trip time of the flows in each interval; NaN where none has a sample.
fn round_trips(record: &Record) -> Vec<f64> {
    let mean = |i: usize| {
        let of = |f| column(f, "rtt_ms").get(i).copied().filter(|v| v.is_finite());
        let known: Vec<f64> = record.flows.iter().filter_map(of).collect();
        known.iter().sum::<f64>() / known.len() as f64
    };
    (0..record.time_s.len()).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_report::{FlowKind, TcpReport};
    use bentpipe_sim::record::Series;

    fn run(name: &str, scheme: &str, bps: &[f64]) -> SavedRun {
        let mut flow = Series::new("a", &["goodput_bps", "rtt_ms"]);
        for v in bps {
            flow.push(&[*v, v / 1e5]);
        }
        let time_s = (1..=bps.len()).map(|i| i as f64).collect();
        let record = Record { time_s, flows: vec![flow], ..Record::default() };
        let tcp = TcpReport { scheme: scheme.to_owned().into(), ..TcpReport::default() };
        let flow = |goodput_bps| FlowReport {
            goodput_bps,
            kind: FlowKind::from(tcp.clone()),
            ..FlowReport::default()
        };
        SavedRun { name: name.into(), report: Report::new("t", vec![flow(1e6), flow(3e6)]), record }
    }

    #[test]
    fn a_distribution_has_the_quantiles_of_its_intervals() {
        let runs = [run("A", "reno", &[4e6, 1e6, 3e6, 2e6, 5e6])];
        let plots = distributions(&runs);
        assert_eq!(plots.len(), 4);
        let curve = &plots[0].curves[0].points;
        assert_eq!((curve[0].x, curve[STEPS / 2].x, curve[STEPS].x), (1.0, 3.0, 5.0));
        assert_eq!((curve[0].y, curve[STEPS].y), (0.0, 1.0));
        let boxed = plots[1].curves[1].points[0];
        assert_eq!((boxed.y, boxed.range), (3.0, Some((2.0, 4.0))));
    }

    #[test]
    fn each_scheme_of_each_run_has_a_bar_with_the_range_of_its_flows() {
        let runs = [run("A", "reno", &[1e6]), run("B", "bbr", &[1e6])];
        let plot = &bars(&runs)[0];
        assert_eq!(plot.x.names, ["reno, A", "bbr, B"]);
        let bar = plot.curves[0].points[0];
        // half of the largest is in the same unit
        assert_eq!((bar.y, bar.range), (2.0, Some((1.0, 3.0))));
        assert_eq!(bars(&runs).len(), 1, "no flow has a round-trip time");
    }

    #[test]
    fn the_courses_of_runs_are_on_one_axis() {
        let runs = [run("A", "reno", &[1e6; 4]), run("B", "bbr", &[2e6; 9])];
        let plots = courses(&runs);
        let names: Vec<&str> = plots[0].curves.iter().map(|c| c.name.as_str()).collect();
        assert_eq!((names, plots[0].x.range), (vec!["A", "B"], Some((0.0, 9.0))));
        assert_eq!(plots[1].title, "Round-trip time");
        assert!(courses(&[SavedRun { record: Record::default(), ..run("A", "reno", &[]) }]).is_empty());
    }
}
