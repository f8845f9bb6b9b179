//! Plots of a run. Quantities that are constant or zero have none.

use crate::marks::marks;
use crate::series::{
    MAX_FLOWS, MAX_LINKS, MIN_BER, Unit, any_positive, busiest_flows, byte_unit, column, links_to_plot,
    maximum, quantile, rate_unit, time_axis, time_unit, varies,
};
use crate::tables::number;
use bentpipe_plot::{Axis, Colour, Curve, Dash, Marker, Plot, Point, Style};
use bentpipe_report::Report;
use bentpipe_sim::record::{Column, Record, Sequence, SequenceKind, SequencePoint, Series};

/// Creates curves over the time axis of a record.
struct RecordPlotter<'a> {
    record: &'a Record,
    end_s: f64,
    every: String,
}

impl RecordPlotter<'_> {
    fn plot(&self, title: &str, description: &str, y: Axis, curves: Vec<Curve>) -> Plot {
        Plot::new(title, description, time_axis(self.end_s), y, curves)
    }

    fn points(&self, values: &[f64], unit: f64) -> Vec<Point> {
        let time = time_unit(self.end_s).size;
        let point = |(t, v): (&f64, &f64)| Point::new(t / time, v / unit);
        // the mean over an interval holds from its start
        let first = self.record.time_s.first().zip(values.first());
        let start =
            first.map(|(t, v)| Point::new((t - self.record.every.as_secs_f64()).max(0.0) / time, v / unit));
        start.into_iter().chain(self.record.time_s.iter().zip(values).map(point)).collect()
    }

    fn steps(&self, name: impl Into<String>, values: &[f64], unit: f64) -> Curve {
        Curve::new(name, Style::Steps, self.points(values, unit))
    }

    fn line(&self, name: impl Into<String>, values: &[f64], unit: f64) -> Curve {
        let points = self.points(values, unit).split_off(usize::from(!values.is_empty()));
        Curve::new(name, Style::Line, points)
    }
}

/// Heading of the group that is first.
pub(crate) const ALL_FLOWS: &str = "All flows";

/// Creates all plots of a run, in groups with a heading each.
pub(crate) fn all(report: &Report, record: &Record) -> Vec<(String, Vec<Plot>)> {
    let end_s = record.time_s.last().copied().unwrap_or(report.simulated_s);
    let canvas = RecordPlotter { record, end_s, every: interval(record) };
    let flows = busiest_flows(report, record, MAX_FLOWS);
    let coarse = in_longer_intervals(record);
    let coarse = RecordPlotter { every: interval(&coarse), record: &coarse, end_s };
    let mut plots = goodput(&coarse, &flows);
    // what explains the goodput
    let marks = marks(record);
    for plot in &mut plots {
        plot.marks.clone_from(&marks);
    }
    if exceeds_path_rate(report, record, coarse.record) {
        for plot in &mut plots {
            let crowd = plot.note.take().map_or_else(String::new, |note| format!("{note} "));
            plot.note = Some(crowd + EXCEEDS_PATH_RATE_NOTE);
        }
    }
    plots.extend(round_trips(&canvas, &flows));
    let mut groups = vec![(ALL_FLOWS.to_owned(), plots)];
    for i in busiest_flows(report, record, 3) {
        let mut plots: Vec<Plot> = windows(&canvas, &record.flows[i]).into_iter().collect();
        plots.extend(
            record
                .sequences
                .iter()
                .filter(|s| s.flow == i)
                .map(|s| time_sequence(&canvas, s, &record.flows[i])),
        );
        groups.push((format!("Flow: {}", record.flows[i].name), plots));
    }
    for i in links_to_plot(report, record, MAX_LINKS) {
        let series = &record.links[i];
        groups.push((format!("Link: {}", series.name), link(&canvas, series)));
    }
    groups.retain(|(_, plots)| !plots.is_empty());
    groups
}

/// Note for plots in which goodput exceeds the rate of the path, briefly after a retransmission.
const EXCEEDS_PATH_RATE_NOTE: &str = "When a loss is repaired, all that waited behind it is delivered at once: for that moment goodput exceeds the rate of the link.";

/// True if a flow with losses had more goodput in an interval than the rate of its path, or than the highest
/// rate of a link whose rate varies.
fn exceeds_path_rate(report: &Report, record: &Record, coarse: &Record) -> bool {
    let rates = record.links.iter().map(|l| column(l, "rate_bps")).filter(|rates| varies(rates));
    let changing = maximum(rates.flatten().copied());
    report.flows.iter().zip(&coarse.flows).any(|(f, series)| {
        let carries = changing.max(f.context.path_bps as f64);
        f.tcp_or_zeros().retransmits > 0
            && maximum(column(series, "goodput_bps").iter().copied()) > 1.02 * carries
    })
}

/// Formats the interval: "100 ms".
fn interval(record: &Record) -> String {
    let s = record.every.as_secs_f64();
    if s < 1.0 { format!("{} ms", number(s * 1e3)) } else { format!("{} s", number(s)) }
}

/// Summarises many curves: the range of the middle 80 %, and the median.
fn flow_spread(canvas: &RecordPlotter<'_>, key: &str, unit: f64) -> [Curve; 2] {
    let record = canvas.record;
    let time = time_unit(canvas.end_s).size;
    let at = |i: usize| {
        let mut all: Vec<f64> = record.flows.iter().filter_map(|f| column(f, key).get(i).copied()).collect();
        let median = quantile(&mut all, 0.5) / unit;
        let (low, high) = (quantile(&mut all, 0.1) / unit, quantile(&mut all, 0.9) / unit);
        Point::with_range(record.time_s[i] / time, median, low, high)
    };
    let points: Vec<Point> = (0..record.time_s.len()).map(at).collect();
    let band = Curve::new("middle 80 % of all flows", Style::Band, points.clone()).colour(Colour::Grey);
    [band, Curve::new("median of all flows", Style::Line, points).colour(Colour::Grey).dash(Dash::Solid)]
}

/// Returns the note that many flows are summarised.
fn flow_spread_note(canvas: &RecordPlotter<'_>) -> String {
    let all = canvas.record.flows.len();
    format!(
        "{all} flows, too many for a curve each: shaded is what the middle 80 % of them have at each moment."
    )
}

/// Maximum number of intervals of a goodput plot. A retransmission may deliver a whole window at once: with
/// short intervals, the plot would show only such peaks.
const MAX_BINS: usize = 150;

/// Merges goodput into longer intervals.
pub(crate) fn in_longer_intervals(record: &Record) -> Record {
    let together = record.time_s.len().div_ceil(MAX_BINS).max(1);
    let bins = |values: &[f64]| -> Vec<f64> {
        let mean = |bin: &[f64]| {
            let there = || bin.iter().filter(|v| v.is_finite());
            there().sum::<f64>() / there().count() as f64
        };
        values.chunks(together).map(mean).collect()
    };
    let flow = |f: &Series| Series {
        name: f.name.clone(),
        columns: vec![Column { key: "goodput_bps", values: bins(column(f, "goodput_bps")) }],
    };
    Record {
        every: record.every * together as u64,
        time_s: record.time_s.chunks(together).filter_map(|t| t.last().copied()).collect(),
        flows: record.flows.iter().map(flow).collect(),
        ..Record::default()
    }
}

/// Plots goodput: for few flows each flow and the sum, for many flows the sum and a summary.
fn goodput(canvas: &RecordPlotter<'_>, flows: &[usize]) -> Vec<Plot> {
    let record = canvas.record;
    let all =
        |i: usize| record.flows.iter().map(move |f| column(f, "goodput_bps").get(i).copied().unwrap_or(0.0));
    let sum: Vec<f64> = (0..record.time_s.len()).map(|i| all(i).filter(|v| v.is_finite()).sum()).collect();
    if !any_positive(&sum) {
        return Vec::new();
    }
    let total = rate_unit(maximum(sum.iter().copied()));
    let every = &canvas.every;
    let plot = |title: &str, unit: Unit, curves| {
        let description =
            format!("Bytes delivered to applications in each interval of {every}, as a rate over time.");
        let y = Axis::linear(format!("{}, mean of {every}", unit.name));
        canvas.plot(title, &description, y, curves)
    };
    let sum = canvas.steps("sum of all", &sum, total.size).colour(Colour::Ink).dash(Dash::Solid);
    if record.flows.len() > flows.len() {
        let highest = maximum((0..record.time_s.len()).flat_map(all));
        let unit = rate_unit(highest);
        let mut each =
            plot("Goodput of one flow", unit, flow_spread(canvas, "goodput_bps", unit.size).to_vec());
        each.note = Some(flow_spread_note(canvas));
        return vec![plot("Goodput of all flows together", total, vec![sum]), each];
    }
    let curve = |(place, i): (usize, &usize)| {
        let f = &record.flows[*i];
        canvas.steps(&*f.name, column(f, "goodput_bps"), total.size).colour(TONES[place % TONES.len()])
    };
    let mut curves: Vec<Curve> = flows.iter().enumerate().map(curve).collect();
    if flows.len() > 1 {
        curves.push(sum);
    }
    vec![plot("Goodput", total, curves)]
}

const TONES: [Colour; 5] = [Colour::Blue, Colour::Vermilion, Colour::Green, Colour::Purple, Colour::Orange];

fn round_trips(canvas: &RecordPlotter<'_>, flows: &[usize]) -> Option<Plot> {
    let record = canvas.record;
    let mut curves = Vec::new();
    let many = record.flows.len() > flows.len();
    if many && record.flows.iter().any(|f| any_positive(column(f, "rtt_ms"))) {
        curves.extend(flow_spread(canvas, "rtt_ms", 1.0));
    }
    for (key, what) in [("rtt_ms", ""), ("delay_ms", ", one way")].into_iter().filter(|_| !many) {
        for (place, &i) in
            flows.iter().enumerate().filter(|(_, i)| any_positive(column(&record.flows[**i], key)))
        {
            let f = &record.flows[i];
            let name = format!("{}{what}", f.name);
            curves.push(canvas.line(name, column(f, key), 1.0).colour(TONES[place % TONES.len()]));
        }
    }
    let one_way = |i: &usize| any_positive(column(&record.flows[*i], "delay_ms"));
    let title = match (flows.iter().all(one_way), flows.iter().any(one_way)) {
        _ if many => "Round-trip time",
        (true, _) => "One-way delay of datagrams",
        (false, true) => "Round-trip time, and one-way delay of datagrams",
        (false, false) => "Round-trip time",
    };
    let mut plot = canvas.plot(
        title,
        &format!("Mean of the samples of each interval of {}, over time.", canvas.every),
        Axis::linear(format!("ms, mean of {}", canvas.every)),
        curves,
    );
    plot.note = many.then(|| flow_spread_note(canvas));
    (!plot.curves.is_empty()).then_some(plot)
}

/// Plots the congestion window and its bounds.
fn windows(canvas: &RecordPlotter<'_>, f: &Series) -> Option<Plot> {
    let cwnd = column(f, "cwnd_bytes");
    let in_flight = column(f, "in_flight_bytes");
    if !any_positive(cwnd) {
        return None;
    }
    let highest = maximum(cwnd.iter().chain(in_flight).copied());
    let unit = byte_unit(highest);
    let mut curves = vec![
        // the curves often coincide: a dashed curve on top shows both
        canvas.line("in flight", in_flight, unit.size).colour(Colour::Vermilion).dash(Dash::Solid),
        canvas.line("congestion window", cwnd, unit.size).colour(Colour::Blue).dash(Dash::Long),
    ];
    let mut beyond = Vec::new();
    let bounds = [
        ("ssthresh_bytes", "slow-start threshold", Colour::Green, Dash::Dots),
        ("receive_window_bytes", "receive window", Colour::Purple, Dash::Mixed),
        ("announced_window_bytes", "receive window without the gateway", Colour::Orange, Dash::Short),
    ];
    let most = |key| maximum(column(f, key).iter().copied());
    // only a gateway shows a sender more than its receiver announces
    let is_changed = most("receive_window_bytes") > most("announced_window_bytes");
    let bounds = &bounds[..if is_changed { 3 } else { 2 }];
    for &(key, name, tone, dash) in bounds {
        let values = column(f, key);
        // a bound far above all other values would flatten them
        let shown: Vec<f64> =
            values.iter().map(|v| if *v <= 3.0 * highest { *v } else { f64::NAN }).collect();
        if any_positive(&shown) {
            curves.push(canvas.line(name, &shown, unit.size).colour(tone).dash(dash));
        } else if any_positive(values) {
            let from = values.iter().copied().filter(|v| *v > 0.0).fold(f64::INFINITY, f64::min);
            beyond.push(format!("{name} {:.1} {} or more, not drawn", from / unit.size, unit.name));
        }
    }
    let mut plot = canvas.plot(
        "Congestion window",
        "Congestion window, bytes in flight, slow-start threshold and the peer's receive window over time.",
        Axis::linear(unit.name),
        curves,
    );
    plot.note = (!beyond.is_empty()).then(|| format!("{}.", beyond.join("; ")));
    Some(plot)
}

/// Maximum number of points of a time-sequence plot: more would merge into a line.
const MAX_POINTS: usize = 3000;

/// Returns the part of a long plot to show, which starts shortly before the first loss.
fn plotted_part(points: &[SequencePoint]) -> &[SequencePoint] {
    if points.len() <= MAX_POINTS {
        return points;
    }
    let lost = |p: &SequencePoint| matches!(p.kind, SequenceKind::Dropped | SequenceKind::Resent);
    let from = points.iter().position(lost).unwrap_or(0).saturating_sub(MAX_POINTS / 4);
    let from = from.min(points.len() - MAX_POINTS);
    &points[from..from + MAX_POINTS]
}

fn time_sequence(canvas: &RecordPlotter<'_>, s: &Sequence, f: &Series) -> Plot {
    let part = plotted_part(&s.points);
    let whole = part.len() == s.points.len() && s.omitted == 0;
    let shown = || part.iter().filter(|p| p.kind != SequenceKind::WindowEdge).map(|p| p.offset as f64);
    let (low, high) = (if whole { 0.0 } else { shown().fold(f64::INFINITY, f64::min) }, maximum(shown()));
    let unit = byte_unit(high);
    let (from, to) = (part.first().map_or(0.0, |p| p.time_s), part.last().map_or(0.0, |p| p.time_s));
    let time = if whole { time_unit(canvas.end_s) } else { time_unit(to) };
    let places = |kind| {
        let of = part.iter().filter(move |p| p.kind == kind);
        of.map(move |p| (p.time_s / time.size, p.offset as f64 / unit.size))
    };
    let set = |name: &str, style, kind| Curve::through(name, style, places(kind));
    let mut curves = vec![
        set("acknowledged", Style::Line, SequenceKind::Acknowledged).colour(Colour::Green).dash(Dash::Solid),
        set("window's edge", Style::Line, SequenceKind::WindowEdge).colour(Colour::Purple).dash(Dash::Short),
        set("sent", Style::Points, SequenceKind::Sent).colour(Colour::Blue).marker(Marker::Speck),
        set("resent", Style::Points, SequenceKind::Resent).colour(Colour::Vermilion).marker(Marker::Ring),
        set("dropped", Style::Points, SequenceKind::Dropped).colour(Colour::Ink).marker(Marker::Cross),
    ];
    curves.retain(|c| !c.points.is_empty());
    let room = 0.05 * (high - low).max(1.0);
    let y = Axis::linear(format!("position in the stream, {}", unit.name));
    let y = y.within(((low - room) / unit.size).max(0.0), (high + room) / unit.size);
    let description =
        "Position in the stream of each segment sent, resent, dropped and acknowledged, over time.";
    let title = format!("Time and sequence of {}", f.name);
    let mut plot = canvas.plot(&title, description, y, curves);
    if !whole {
        plot.x = Axis::linear(format!("time, {}", time.name)).within(from / time.size, to / time.size);
        plot.note = Some("A part of the run: from shortly before the first loss, if there is one.".into());
    }
    plot
}

fn link(canvas: &RecordPlotter<'_>, l: &Series) -> Vec<Plot> {
    let of = |key| column(l, key);
    let mut plots = Vec::new();
    let mut add = |title: &str, description: &str, y: Axis, curves: Vec<Curve>| {
        plots.push(canvas.plot(title, &format!("{description}, over time."), y, curves));
    };
    let every = &canvas.every;
    let unit: Unit = rate_unit(maximum(of("rate_bps").iter().chain(of("throughput_bps")).copied()));
    add(
        "Throughput and rate",
        "What the link carried, and what it can carry",
        Axis::linear(format!("{}, mean of {every}", unit.name)),
        vec![
            canvas.steps("rate", of("rate_bps"), unit.size).colour(Colour::Grey).dash(Dash::Long),
            canvas
                .steps("throughput", of("throughput_bps"), unit.size)
                .colour(Colour::Blue)
                .dash(Dash::Solid),
        ],
    );
    if any_positive(of("queue_peak_packets")) {
        add(
            "Queue",
            "Packets waiting, mean and most in each interval",
            Axis::linear("packets waiting"),
            [
                ("most in", "queue_peak_packets", Colour::Vermilion),
                ("mean of", "queue_packets", Colour::Blue),
            ]
            .map(|(what, key, tone)| {
                canvas.steps(format!("{what} {every}"), of(key), 1.0).colour(tone).dash(Dash::Solid)
            })
            .to_vec(),
        );
    }
    let drops: Vec<Curve> = [
        ("dropped_at_queue", "queue full", Colour::Vermilion, Marker::Square),
        ("lost", "lost on the link", Colour::Ink, Marker::Cross),
    ]
    .into_iter()
    .filter(|(key, ..)| any_positive(of(key)))
    .map(|(key, name, tone, marker)| {
        let shown: Vec<f64> = of(key).iter().map(|v| if *v > 0.0 { *v } else { f64::NAN }).collect();
        let mut curve = canvas.line(name, &shown, 1.0).colour(tone).marker(marker);
        curve.style = Style::Points;
        curve
    })
    .collect();
    if !drops.is_empty() {
        add("Drops", "Packets dropped in each interval", Axis::linear(format!("packets in {every}")), drops);
    }
    plots.extend(changing_properties(canvas, l));
    plots
}

/// Plots the properties of a link that change.
fn changing_properties(canvas: &RecordPlotter<'_>, l: &Series) -> Vec<Plot> {
    let rows = [
        ("one_way_ms", "One-way delay", "ms", false),
        ("fade_db", "Fade", "dB", false),
        ("ber", "Bit error rate", "bit error rate", true),
        ("packet_error_share", "Packets lost on the link", "share of the packets", false),
    ];
    let mut plots = Vec::new();
    for (key, title, label, log) in rows {
        let values = column(l, key);
        let shown: Vec<f64> =
            values.iter().map(|v| if log && *v < MIN_BER { f64::NAN } else { *v }).collect();
        if !varies(values) || !any_positive(&shown) {
            continue;
        }
        let axis = if log { Axis::log(label) } else { Axis::linear(label) };
        let curve = canvas.steps("", &shown, 1.0).colour(Colour::Blue).dash(Dash::Solid);
        let description = format!("{title} of the link {}, over time.", l.name);
        let mut plot = canvas.plot(title, &description, axis, vec![curve]);
        if log && values.iter().any(|v| *v < MIN_BER) {
            plot.note = Some("Gaps: less than 10⁻¹².".into());
        }
        plots.push(plot);
    }
    plots
}
