//! Figures 2 to 4 of the Ka-band paper.

use super::{NamedPlot, Results, log_spaced, reference};
use crate::fade::{Bin, bins, packet_error, side_channel};
use crate::job::Job;
use crate::sources::kaband::fade_job;
use bentpipe_plot::{Axis, Colour, Curve, Dash, Marker, Plot, Point, Style};

/// Drawn in place of a BER of zero, as in the paper.
const NONE: f64 = 1e-9;
/// Full utilisation according to the paper, kB/s.
const FULL: f64 = 185.0;

/// The run of figures 2 and 3: SACK, 512 KB, transparent satellite.
fn single_run() -> Job {
    fade_job("sack", "359 segments", "uncoded", "1 dB")
}

/// The runs of figure 4: four with SACK and 512 KB, three with Reno and 16 KB.
fn pooled() -> [Vec<Job>; 2] {
    let small = fade_job("reno", "11 segments", "uncoded", "1 dB");
    [single_run().seeds(4), small.seeds(3)]
}

pub(super) fn jobs() -> Vec<Job> {
    pooled().concat()
}

pub(super) fn all(results: &Results<'_>) -> Vec<NamedPlot> {
    vec![
        ("validation-fade.svg", fade(results)),
        ("validation-fade-errors.svg", errors(results)),
        ("validation-fade-goodput.svg", goodput(results)),
        ("validation-fade-ber.svg", over_errors(results)),
    ]
}

/// 1.22 MSS / (RTT sqrt(p)), limited by the link, over the BER, kB/s.
pub(super) fn law(name: &str) -> Curve {
    let rate = |ber| (ber, (1.46 / 0.56 * 1.5_f64.sqrt() / packet_error(ber).sqrt()).min(FULL));
    reference(name, log_spaced(NONE, 1e-5, 80).map(rate))
}

fn hours(seconds: f64) -> f64 {
    seconds / 3600.0
}

fn over_time(results: &Results<'_>, value: impl Fn(&Bin) -> f64) -> Vec<Point> {
    let run = results.seen.get(&single_run());
    run.map(bins).unwrap_or_default().iter().map(|b| Point::new(hours(b.end_s), value(b))).collect()
}

fn fade(results: &Results<'_>) -> Plot {
    let rows = results.seen.get(&single_run()).map(side_channel).unwrap_or_default();
    let curve = rows.iter().map(|row| (hours(row[0]), row[1]));
    Plot::new(
        "Fade of the terminal's signal",
        "Attenuation in dB over three hours: from 5 dB to 0 in two hours, then up to 1 dB.",
        Axis::linear("time, h").within(0.0, 3.0),
        Axis::linear("fade, dB").within(0.0, 6.0),
        vec![Curve::through("", Style::Line, curve)],
    )
}

fn errors(results: &Results<'_>) -> Plot {
    let rows = results.seen.get(&single_run()).map(side_channel).unwrap_or_default();
    let channel = rows.iter().map(|row| (hours(row[0]), row[3].max(NONE)));
    let segments = over_time(results, |b| b.errors / b.packets);
    Plot::new(
        "Bit errors and segment errors",
        "Bit error rate of the side channel and share of segments in error over time: four orders of magnitude apart.",
        Axis::linear("time, h").within(0.0, 3.0),
        Axis::log("error rate").within(NONE, 1.0),
        vec![
            Curve::new("segments in error, in two minutes", Style::Steps, segments)
                .colour(Colour::Vermilion)
                .dash(Dash::Solid),
            Curve::through("bits in error on the side channel, in 15 s", Style::Points, channel)
                .colour(Colour::Blue)
                .marker(Marker::Speck),
            Curve::new("bit error rate of the link", Style::Line, over_time(results, |b| b.link_ber))
                .colour(Colour::Grey)
                .dash(Dash::Long),
        ],
    )
    .note("No errors are drawn at 1e-9 for bits, and as a gap for segments.")
}

fn goodput(results: &Results<'_>) -> Plot {
    Plot::new(
        "Throughput, SACK, 512 KB",
        "Throughput of the same run in bins of two minutes: small at first, full from about one hour on.",
        Axis::linear("time, h").within(0.0, 3.0),
        Axis::linear("throughput, kB/s").within(0.0, 200.0),
        vec![Curve::new("", Style::Steps, over_time(results, |b| b.goodput / 1e3))],
    )
}

fn over_errors(results: &Results<'_>) -> Plot {
    let names = [
        ("512 KB, SACK, 4 runs", Colour::Blue, Marker::Dot),
        ("16 KB, Reno, 3 runs", Colour::Vermilion, Marker::Triangle),
    ];
    let mut curves: Vec<Curve> = pooled()
        .iter()
        .zip(names)
        .map(|(jobs, (name, tone, marker))| {
            let all = jobs.iter().filter_map(|job| results.seen.get(job)).flat_map(bins);
            let points = all.map(|b| (b.measured_ber.max(NONE), b.goodput / 1e3));
            Curve::through(name, Style::Points, points).colour(tone).marker(marker)
        })
        .collect();
    curves.push(law("1.22 MSS / (RTT √p), at most 185 kB/s"));
    Plot::new(
        "Throughput over bit error rate",
        "Throughput in bins of two minutes over the side channel's bit error rate in the same bins, seven runs.",
        Axis::log("bit error rate of the side channel").within(NONE, 2e-5),
        Axis::linear("throughput, kB/s").within(0.0, 200.0),
        curves,
    )
    .note("A bit error rate of zero is drawn at 1e-9.")
}
