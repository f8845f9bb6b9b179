//! The pictures of the page.

use crate::check::{Judged, Tolerance};
use crate::group::Group;
use crate::svg::{Axis, Mark, Plot};

/// Rate of payload on the 10 Mbit/s bottleneck, kB/s.
const MOST: f64 = 10e3 / 8.0 / 1.04;

/// Colours that can be told apart without telling red from green.
const BLUE: &str = "#0072b2";
const ORANGE: &str = "#d55e00";
const GREEN: &str = "#009e73";
const PURPLE: &str = "#8c4a78";
const GREY: &str = "#777777";

/// Name and text of every picture.
pub fn all(judged: &[Judged]) -> Vec<(&'static str, String)> {
    vec![("validation-sharing.svg", sharing(judged)), ("validation-transfers.svg", transfers(judged))]
}

fn ticks(values: &[f64], text: impl Fn(f64) -> String) -> Vec<(f64, String)> {
    values.iter().map(|v| (*v, text(*v))).collect()
}

/// Goodput of twenty connections over loss.
fn sharing(judged: &[Judged]) -> String {
    let losses = [(1e-5, "1e-5"), (1e-4, "1e-4"), (1e-3, "1e-3"), (1e-2, "1e-2")];
    let x = Axis {
        label: "probability of packet loss",
        range: (5e-6, 2e-2),
        log: true,
        ticks: losses.iter().map(|(v, t)| (*v, (*t).to_owned())).collect(),
    };
    let y = Axis {
        label: "sum of goodputs, kB/s",
        range: (0.0, 1300.0),
        log: false,
        ticks: ticks(&[0.0, 200.0, 400.0, 600.0, 800.0, 1000.0, 1200.0], |v| format!("{v:.0}")),
    };
    let mut plot = Plot::new("Twenty connections, 10 Mbit/s, RTT 550 ms: bentpipe and ns-2", x, y);
    let sweep: Vec<f64> =
        (0..=90).map(|i| 5e-6 * libm::exp2(f64::from(i) / 90.0 * libm::log2(4000.0))).collect();
    plot.curve(Mark::Dashes, GREY, &sweep.iter().map(|p| (*p, MOST * (1.0 - p))).collect::<Vec<_>>());
    let mathis = |p: f64| 20.0 * 1.5_f64.sqrt() / (0.55 * p.sqrt());
    let law: Vec<(f64, f64)> =
        sweep.iter().filter(|p| mathis(**p) < MOST).map(|p| (*p, mathis(*p))).collect();
    plot.curve(Mark::Line, GREY, &law);
    plot.explain(Mark::Dot, GREY, "bentpipe");
    plot.explain(Mark::Ring, GREY, "ns-2, and its 95 %");
    plot.explain(Mark::Bar, GREY, "range allowed");
    for series in &SERIES {
        draw(&mut plot, series, judged);
    }
    plot.explain(Mark::Dashes, GREY, "C (1 − p)");
    plot.explain(Mark::Line, GREY, "20 × 1.22 MSS / (RTT √p)");
    plot.finish()
}

/// One set of points of the first picture.
struct Series {
    group: Group,
    /// The first label of its checks.
    variant: &'static str,
    name: &'static str,
    colour: &'static str,
    /// Moves points aside by this factor, so that they do not hide each other.
    aside: f64,
}

const SERIES: [Series; 4] = [
    Series { group: Group::Jitter, variant: "newreno", name: "NewReno, jitter", colour: BLUE, aside: 1.0 },
    Series { group: Group::Sharing, variant: "vegas", name: "Vegas", colour: GREEN, aside: 0.8 },
    Series {
        group: Group::Cubic,
        variant: "beta 0.8, no HyStart",
        name: "CUBIC, beta 0.8",
        colour: ORANGE,
        aside: 1.0,
    },
    Series {
        group: Group::Cubic,
        variant: "beta 0.7, HyStart++",
        name: "CUBIC, RFC 9438",
        colour: PURPLE,
        aside: 1.25,
    },
];

fn draw(plot: &mut Plot, series: &Series, judged: &[Judged]) {
    let colour = series.colour;
    plot.explain(Mark::Dot, colour, series.name);
    for j in judged.iter().filter(|j| j.check.group == series.group && j.check.labels[0] == series.variant) {
        let loss = series.aside * j.check.labels[1].parse().unwrap_or(f64::NAN);
        let expected = j.check.expected;
        if let Tolerance::Between(low, high) = j.check.tolerance {
            plot.bar(colour, loss, low / 1e3, high / 1e3);
        } else if let Some(h) = expected.half_width {
            plot.point(Mark::Ring, colour, (loss, expected.value / 1e3));
            plot.bar(colour, loss, (expected.value - h) / 1e3, (expected.value + h) / 1e3);
        }
        plot.point(Mark::Dot, colour, (loss, j.mean / 1e3));
    }
}

/// Completion time of transfers over size.
fn transfers(judged: &[Judged]) -> String {
    let x = Axis {
        label: "size, kB",
        range: (0.8, 250.0),
        log: true,
        ticks: ticks(&[1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0], |v| format!("{v:.0}")),
    };
    let y = Axis {
        label: "completion time, s",
        range: (0.0, 6.0),
        log: false,
        ticks: ticks(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0], |v| format!("{v:.0}")),
    };
    let mut plot = Plot::new("One transfer over GEO, 1.544 Mbit/s, RTT 585 ms", x, y);
    plot.explain(Mark::Dot, GREY, "bentpipe");
    plot.explain(Mark::Ring, GREY, "ns-2");
    for (iw, colour) in [("1", BLUE), ("2", ORANGE), ("4", GREEN), ("10", PURPLE)] {
        plot.explain(Mark::Line, colour, &format!("formula, IW {iw}"));
        let window = iw.parse().unwrap_or(f64::NAN);
        // a last segment that is not full takes nearly the time of a full one
        let step = |n: u32| {
            let seconds = crate::closed::slow_start_time(f64::from(n), window);
            [(f64::from(n - 1).max(0.8), seconds), (f64::from(n), seconds)]
        };
        let line: Vec<(f64, f64)> = (1..=200).flat_map(step).collect();
        plot.curve(Mark::Line, colour, &line);
        for j in judged.iter().filter(|j| j.check.labels.get(1).is_some_and(|l| l == iw)) {
            let size = |text: &str| text.trim_end_matches(" kB").parse().unwrap_or(f64::NAN);
            match j.check.group {
                Group::SlowStart => {
                    plot.point(Mark::Dot, colour, (size(&j.check.labels[0]), j.mean));
                }
                Group::Transfers => {
                    plot.point(Mark::Ring, colour, (size(&j.check.labels[0]), j.check.expected.value));
                }
                _ => {}
            }
        }
    }
    plot.finish()
}
