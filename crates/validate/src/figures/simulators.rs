//! Pictures of the comparison with ns-2 and with formulas.

use super::{NamedPlot, Results, expected, log_spaced, measured, number, reference};
use crate::check::{CheckResult, Tolerance};
use crate::sources::{formulas, simulators};
use bentpipe_plot::{Axis, Colour, Curve, Dash, Marker, Plot, Point, Shape, Style};

/// Payload rate of the 10 Mbit/s bottleneck, kB/s.
const MOST: f64 = 10e3 / 8.0 / 1.04;

pub(super) fn all(results: &Results<'_>) -> Vec<NamedPlot> {
    vec![
        ("validation-sharing.svg", sharing(results)),
        ("validation-faded.svg", faded(results)),
        ("validation-transfers.svg", transfers(results)),
    ]
}

/// Goodput of twenty connections over loss.
fn sharing(results: &Results<'_>) -> Plot {
    // table, first label, name, colour, and a factor that shifts x so that points do not hide each other
    let series = [
        (&simulators::JITTER, "newreno", "NewReno, jitter", Colour::Blue, 1.0),
        (&simulators::SHARING, "vegas", "Vegas", Colour::Green, 0.8),
        (&simulators::CUBIC, "beta 0.8, no HyStart", "CUBIC, beta 0.8", Colour::Vermilion, 1.0),
        (&simulators::CUBIC, "beta 0.7, HyStart++", "CUBIC, RFC 9438", Colour::Purple, 1.25),
    ];
    let mut curves = Vec::new();
    for (group, variant, name, tone, aside) in series {
        let rows: Vec<_> = results.of(group).filter(|j| j.check.labels[0] == variant).collect();
        let x = |label: &str| aside * number(label);
        let points = rows.iter().map(|j| measured(x(&j.check.labels[1]), j)).collect();
        curves.push(Curve::new(name, Style::Points, points).colour(tone).marker(Marker::Dot));
        let theirs = rows.iter().map(|j| match j.check.tolerance {
            Tolerance::Between(low, high) => {
                Point::with_range(x(&j.check.labels[1]), f64::NAN, low / 1e3, high / 1e3)
            }
            _ => expected(x(&j.check.labels[1]), j),
        });
        curves.push(Curve::new("", Style::Points, theirs.collect()).colour(tone).marker(Marker::Ring));
    }
    let sweep = || log_spaced(5e-6, 2e-2, 90);
    let ceiling = sweep().map(|p| (p, MOST * (1.0 - p)));
    curves.push(reference("C (1 − p)", ceiling));
    let mathis = |p: f64| 20.0 * 1.5_f64.sqrt() / (0.55 * p.sqrt());
    let law = sweep().map(|p| (p, mathis(p))).filter(|(_, rate)| *rate < MOST);
    curves.push(
        Curve::through("20 × 1.22 MSS / (RTT √p)", Style::Line, law).colour(Colour::Grey).dash(Dash::Solid),
    );
    let plot = Plot::new(
        "Twenty connections, 10 Mbit/s, RTT 550 ms",
        "Sum of the goodputs over loss, bentpipe beside ns-2.",
        Axis::log("probability of packet loss").within(5e-6, 2e-2),
        Axis::linear("sum of goodputs, kB/s").within(0.0, 1300.0),
        curves,
    );
    Plot { shape: Shape::Wide, ..plot.note("Dots: bentpipe. Rings: ns-2, and its 95 % interval.") }
}

/// Goodput over bit error rate for the windows of the Ka-band experiment.
fn faded(results: &Results<'_>) -> Plot {
    let mut curves = Vec::new();
    for (window, name, tone) in
        [("359", "SACK, 512 KB", Colour::Blue), ("11", "SACK, 16 KB", Colour::Vermilion)]
    {
        let fits = |j: &&CheckResult| j.check.labels[0] == "sack" && j.check.labels[1] == window;
        let rows: Vec<_> = results.of(&simulators::FADED).filter(fits).collect();
        let ours = rows.iter().map(|j| measured(number(&j.check.labels[2]), j)).collect();
        curves.push(Curve::new(name, Style::Points, ours).colour(tone).marker(Marker::Dot));
        let theirs = rows.iter().map(|j| expected(1.1 * number(&j.check.labels[2]), j)).collect();
        curves.push(Curve::new("", Style::Points, theirs).colour(tone).marker(Marker::Ring));
    }
    curves.push(super::kaband::law("1.22 MSS / (RTT √p)"));
    Plot::new(
        "One connection, 1.536 Mbit/s, RTT 560 ms",
        "Goodput over bit error rate for windows of 16 KB and 512 KB, bentpipe beside ns-2.",
        Axis::log("bit error rate").within(5e-9, 2e-6),
        Axis::linear("goodput, kB/s").within(0.0, 200.0),
        curves,
    )
    .note("Dots: bentpipe. Rings, moved aside: ns-2, and its 95 % interval.")
}

/// Completion time of transfers over size.
fn transfers(results: &Results<'_>) -> Plot {
    let mut curves = Vec::new();
    let tones = [("1", Colour::Blue), ("2", Colour::Vermilion), ("4", Colour::Green), ("10", Colour::Purple)];
    for (iw, tone) in tones {
        let window = number(iw);
        // a last segment that is not full takes nearly as long as a full one
        let step = |n: u32| (f64::from(n), formulas::slow_start_time(f64::from(n), window));
        curves.push(
            Curve::through(format!("formula, IW {iw}"), Style::Steps, (1..=200).map(step))
                .colour(tone)
                .dash(Dash::Solid),
        );
        let points = |group, value: fn(&CheckResult) -> f64| {
            let fits = results.of(group).filter(|j| j.check.labels[1] == iw);
            fits.map(|j| Point::new(number(&j.check.labels[0]), value(j))).collect()
        };
        let ours = points(&formulas::SLOW_START, |j| j.mean);
        curves.push(Curve::new("", Style::Points, ours).colour(tone).marker(Marker::Dot));
        let theirs = points(&simulators::TRANSFERS, |j| j.check.expected.value);
        curves.push(Curve::new("", Style::Points, theirs).colour(tone).marker(Marker::Ring));
    }
    let plot = Plot::new(
        "One transfer over GEO, 1.544 Mbit/s, RTT 585 ms",
        "Completion time over size for four initial windows: bentpipe, ns-2 and the formula.",
        Axis::log("size, kB").within(0.8, 250.0),
        Axis::linear("completion time, s").within(0.0, 6.0),
        curves,
    );
    Plot { shape: Shape::Wide, ..plot.note("Dots: bentpipe. Rings: ns-2.") }
}
