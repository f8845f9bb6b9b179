//! Pictures of the ns-2 study of 2002.

use super::{NamedPlot, Results, measured, number, reference};
use crate::job::Job;
use crate::observed::RunResult;
use crate::reading::series;
use crate::sources::study;
use bentpipe_plot::{Axis, Curve, Marker, Plot, Style};
use bentpipe_stats::{Level, half_width, mean};

/// Payload rate of the link, kB/s.
const LINK: f64 = 1544.0 / 8.0 / 1.04;
/// Transfer sizes, packets.
const SIZES: [u32; 10] = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100];
/// Bit error rates and where they are drawn: no bit errors at 1e-9.
const ERRORS: [(&str, f64); 6] =
    [("0", 1e-9), ("1e-7", 1e-7), ("1e-6", 1e-6), ("1e-5", 1e-5), ("3e-5", 3e-5), ("1e-4", 1e-4)];
const SEGMENTS: [&str; 3] = ["576", "1152", "1728"];
/// Number of runs of a job with random results.
const RUNS: u32 = 10;

pub(super) fn jobs() -> Vec<Job> {
    let transfers = SIZES.into_iter().flat_map(|n| [1, 2, 4].map(|iw| study::transfer_job(n, iw)));
    let segments = SEGMENTS
        .into_iter()
        .flat_map(|segment| ERRORS.map(|(ber, _)| study::segments_job(segment, "128", ber).seeds(RUNS)));
    transfers.chain(segments.flatten()).collect()
}

pub(super) fn all(results: &Results<'_>) -> Vec<NamedPlot> {
    vec![
        ("validation-windows.svg", windows(results)),
        ("validation-connections.svg", connections(results)),
        ("validation-iw.svg", initial_windows(results)),
        ("validation-segments.svg", segments(results)),
        ("validation-flavours.svg", flavours(results)),
        ("validation-queue.svg", queue(results)),
        ("validation-peaks.svg", peaks(results)),
        ("validation-buffers.svg", buffers(results)),
    ]
}

/// Goodput with a window of this size, at most the link's, kB/s.
fn limit(kilobytes: f64) -> f64 {
    (kilobytes / study::RTT).min(LINK)
}

fn windows(results: &Results<'_>) -> Plot {
    let rows = results.of(&study::WINDOWS).filter(|j| j.check.labels[0].ends_with("packets"));
    let points = rows.map(|j| (number(&j.check.labels[0]), j.mean / 1e3));
    let formula = (8..=140).map(|w| (f64::from(w), limit(f64::from(w))));
    Plot::new(
        "Throughput over window",
        "Goodput of one connection with windows of 16 to 128 packets, and W / RTT up to the link.",
        Axis::linear("window, packets of 1000 B").within(0.0, 140.0),
        Axis::linear("goodput, kB/s").within(0.0, 200.0),
        vec![
            Curve::through("bentpipe", Style::Points, points),
            reference("W / RTT, at most the link", formula),
        ],
    )
}

fn connections(results: &Results<'_>) -> Plot {
    let points = results.of(&study::CONNECTIONS).map(|j| (number(&j.check.labels[0]), j.mean / 1e3));
    let formula = (0..=40).map(|i| (f64::from(i) / 10.0, limit(4.0 * f64::from(i))));
    Plot::new(
        "Connections with windows of 40 KB",
        "Sum of the goodputs of one to four connections.",
        Axis::linear("connections").within(0.0, 5.0),
        Axis::linear("sum of goodputs, kB/s").within(0.0, 200.0),
        vec![
            Curve::through("bentpipe", Style::Points, points),
            reference("n W / RTT, at most the link", formula),
        ],
    )
}

fn initial_windows(results: &Results<'_>) -> Plot {
    let curve = |iw: u32| {
        let time =
            |n: u32| results.seen.get(&study::transfer_job(n, iw)).map_or(f64::NAN, |o| o.metric("finished"));
        let points = SIZES.into_iter().map(|n| (f64::from(n), time(n)));
        Curve::through(format!("initial window {iw}"), Style::LineAndPoints, points)
    };
    Plot::new(
        "Initial window and transfer size",
        "Completion time of transfers of 10 to 100 packets for initial windows of 1, 2 and 4.",
        Axis::linear("size, packets of 1000 B").within(0.0, 105.0),
        Axis::linear("completion time, s").within(0.0, 6.0),
        [1, 2, 4].map(curve).into(),
    )
}

fn segments(results: &Results<'_>) -> Plot {
    let point = |segment: &str, (ber, x): (&str, f64)| {
        let jobs = study::segments_job(segment, "128", ber).seeds(RUNS);
        let seen = jobs.iter().filter_map(|job| results.seen.get(job));
        let goodputs: Vec<f64> = seen.map(|o| o.metric("goodput") / 1e3).collect();
        super::point(x, mean(&goodputs), half_width(&goodputs, Level::P95))
    };
    let curve = |segment: &str| {
        let points = ERRORS.map(|at| point(segment, at)).to_vec();
        Curve::new(format!("segments of {segment} B"), Style::LineAndPoints, points)
    };
    Plot::new(
        "Segment size, with and without bit errors",
        "Goodput over bit error rate for segments of 576, 1152 and 1728 B in a window of 128 packets, SACK.",
        Axis::log("bit error rate").within(5e-10, 2e-4),
        Axis::linear("goodput, kB/s").within(0.0, 200.0),
        SEGMENTS.map(curve).into(),
    )
    .note("Runs without bit errors are drawn at 1e-9. Bars: 95 % interval of ten runs.")
}

fn flavours(results: &Results<'_>) -> Plot {
    let curve = |(tcp, name): (&str, &str)| {
        let rows = results.of(&study::FLAVOURS).filter(|j| j.check.labels[0] == tcp);
        let points = rows.map(|j| measured(number(&j.check.labels[1]), j)).collect();
        Curve::new(name, Style::LineAndPoints, points)
    };
    Plot::new(
        "Vegas, SACK and Reno under loss",
        "Goodput over the probability of packet loss: Vegas ahead of SACK, SACK of Reno, where losses are frequent.",
        Axis::log("probability of packet loss").within(5e-8, 2e-2),
        Axis::linear("goodput, kB/s").within(0.0, 200.0),
        [("vegas", "Vegas"), ("sack", "SACK"), ("reno", "Reno")].map(curve).into(),
    )
    .note("Bars: 95 % interval of ten runs.")
}

/// Length of the queue plot, s.
const DRAWN_S: f64 = 20.0;

fn queue(results: &Results<'_>) -> Plot {
    let curve = |buffer: u32| {
        let run = results.seen.get(&study::burst_job("off", buffer).recorded());
        let points = run.into_iter().flat_map(|run| {
            let times = run.record.as_ref().map_or(&[][..], |r| &r.time_s);
            times.iter().copied().zip(series(run, "queue_peak_packets").iter().copied())
        });
        let drawn = points.filter(|(t, _)| *t <= DRAWN_S);
        Curve::through(format!("buffer of {buffer} packets"), Style::Line, drawn)
    };
    Plot::new(
        "Queue after the start",
        "Queue over time for four sizes of the buffer: slow start fills each of them, later it is shorter.",
        Axis::linear("time, s").within(0.0, DRAWN_S),
        Axis::linear("packets waiting").within(0.0, 60.0),
        [30, 34, 40, 50].map(curve).into(),
    )
}

/// Plots `value` over the buffer size for both ACK policies.
fn over_buffer(results: &Results<'_>, value: impl Fn(&RunResult) -> f64) -> Vec<Curve> {
    let policies = [("an ACK for each segment", "off", Marker::Dot), ("delayed ACKs", "on", Marker::Square)];
    let curve = |(name, delayed_ack, marker): (&str, &str, Marker)| {
        let at =
            |buffer: u32| results.seen.get(&study::burst_job(delayed_ack, buffer)).map_or(f64::NAN, &value);
        let points = study::SIZES.into_iter().map(|buffer| (f64::from(buffer), at(buffer)));
        Curve::through(name, Style::LineAndPoints, points).marker(marker)
    };
    policies.map(curve).into()
}

fn peaks(results: &Results<'_>) -> Plot {
    Plot::new(
        "Longest queue over the on-board buffer",
        "Longest queue for buffers of 24 to 120 packets: never more than 64, or 35 with delayed ACKs.",
        Axis::linear("buffer, packets").within(0.0, 130.0),
        Axis::linear("longest queue, packets").within(0.0, 80.0),
        over_buffer(results, |o| o.metric("queue_peak[bottleneck]")),
    )
}

fn buffers(results: &Results<'_>) -> Plot {
    Plot::new(
        "Throughput over the on-board buffer",
        "Goodput in 100 s for buffers of 24 to 120 packets: lower where slow start overflows them.",
        Axis::linear("buffer, packets").within(0.0, 130.0),
        Axis::linear("goodput, kB/s").within(0.0, 200.0),
        over_buffer(results, |o| o.metric("goodput") / 1e3),
    )
}
