//! Plots of the measurements of instruments.

use crate::series::{MIN_BER, any_positive, maximum, rate_unit, time_axis, time_unit, varies};
use bentpipe_plot::{Axis, Colour, Curve, Dash, Marker, Plot, Point, Style};
use bentpipe_report::InstrumentReport;

/// Returns a column of an instrument; empty if there is none of that name.
fn column(i: &InstrumentReport, key: &str) -> Vec<f64> {
    let Some(place) = i.columns.iter().position(|c| *c == key) else { return Vec::new() };
    i.rows.iter().map(|r| r.get(place).copied().unwrap_or(f64::NAN)).collect()
}

pub(crate) fn plots(i: &InstrumentReport) -> Vec<Plot> {
    match i.kind.as_str() {
        "side-channel" => side_channel(i),
        "counters" => counters(i),
        "bins" => bins(i),
        _ => Vec::new(),
    }
}

fn curve(i: &InstrumentReport, key: &str, name: &str, unit: f64, style: Style) -> Curve {
    let time = column(i, "time_s");
    let end = maximum(time.iter().copied());
    let by = time_unit(end).size;
    let points = time.iter().zip(column(i, key)).map(|(t, v)| Point::new(t / by, v / unit));
    let curve = Curve::new(name, style, points.collect());
    let (tone, dash) =
        if style == Style::Steps { (Colour::Blue, Dash::Solid) } else { (Colour::Vermilion, Dash::Long) };
    curve.colour(tone).dash(dash).marker(Marker::Dot)
}

fn over_time(i: &InstrumentReport, title: &str, y: Axis, curves: Vec<Curve>) -> Plot {
    let x = time_axis(maximum(column(i, "time_s")));
    let description = format!("{title}, over time, as seen by the instrument {}.", i.name);
    Plot::new(title, description, x, y, curves)
}

fn side_channel(i: &InstrumentReport) -> Vec<Plot> {
    let mut plots = Vec::new();
    if any_positive(&column(i, "link_ber")) || any_positive(&column(i, "measured_ber")) {
        let mut link = curve(i, "link_ber", "of the link", 1.0, Style::Steps);
        link.points.iter_mut().filter(|p| p.y < MIN_BER).for_each(|p| p.y = f64::NAN);
        let measured = curve(i, "measured_ber", "measured", 1.0, Style::Points);
        let mut plot = over_time(i, "Bit error rate", Axis::log("bit error rate"), vec![link, measured]);
        if column(i, "measured_ber").contains(&0.0) {
            plot.note = Some("Not drawn: less than 10⁻¹², and intervals without a wrong bit.".into());
        }
        plots.push(plot);
    }
    if varies(&column(i, "fade_db")) {
        let fade = curve(i, "fade_db", "", 1.0, Style::Steps);
        plots.push(over_time(i, "Fade", Axis::linear("dB"), vec![fade]));
    }
    if any_positive(&column(i, "errored_seconds")) {
        let seconds = curve(i, "errored_seconds", "", 1.0, Style::Steps);
        plots.push(over_time(i, "Errored seconds", Axis::linear("seconds in each interval"), vec![seconds]));
    }
    plots
}

fn counters(i: &InstrumentReport) -> Vec<Plot> {
    let sent = vec![curve(i, "packets", "", 1.0, Style::Steps)];
    let mut plots = vec![over_time(i, "Packets carried", Axis::linear("packets in each interval"), sent)];
    let faults: Vec<Curve> = [
        ("packets_in_error", "in error", Colour::Ink, Marker::Cross),
        ("packets_dropped", "dropped", Colour::Vermilion, Marker::Square),
    ]
    .into_iter()
    .filter(|(key, ..)| any_positive(&column(i, key)))
    .map(|(key, name, tone, marker)| {
        let mut curve = curve(i, key, name, 1.0, Style::Points).colour(tone).marker(marker);
        curve.points.retain(|p| p.y > 0.0);
        curve
    })
    .collect();
    if !faults.is_empty() {
        let axis = Axis::linear("packets in each interval");
        plots.push(over_time(i, "Packets in error or dropped", axis, faults));
    }
    plots
}

fn bins(i: &InstrumentReport) -> Vec<Plot> {
    let goodput = column(i, "goodput_bytes_per_s");
    let unit = rate_unit(8.0 * maximum(goodput.iter().copied()));
    let curve_of = curve(i, "goodput_bytes_per_s", "", unit.size / 8.0, Style::Steps);
    let mut plots = vec![over_time(i, "Goodput", Axis::linear(unit.name), vec![curve_of])];
    if any_positive(&column(i, "packet_error_share")) {
        let share = curve(i, "packet_error_share", "", 1.0, Style::Steps);
        plots.push(over_time(i, "Packets in error", Axis::linear("share of the packets"), vec![share]));
    }
    plots
}

/// Plots the goodput of bins against the mean bit error rate of a side channel in the same intervals.
pub(crate) fn goodput_over_ber(bins: &InstrumentReport, channel: &InstrumentReport) -> Option<Plot> {
    let (ends, goodput) = (column(bins, "time_s"), column(bins, "goodput_bytes_per_s"));
    let (times, ber) = (column(channel, "time_s"), column(channel, "link_ber"));
    let unit = rate_unit(8.0 * maximum(goodput.iter().copied()));
    let mut from = 0.0;
    let mut points = Vec::new();
    for (end, goodput) in ends.iter().zip(&goodput) {
        let within =
            times.iter().zip(&ber).filter(|(t, b)| **t > from + 1e-9 && **t <= end + 1e-9 && b.is_finite());
        let (n, sum) = within.fold((0.0, 0.0), |(n, sum), (_, b)| (n + 1.0, sum + b));
        let mean = if n > 0.0 { sum / n } else { f64::NAN };
        points.push(Point::new(mean, 8.0 * goodput / unit.size));
        from = *end;
    }
    let left_out = points.iter().filter(|p| p.x < MIN_BER).count();
    points.retain(|p| p.x >= MIN_BER && p.y.is_finite());
    if points.len() < 2 {
        return None;
    }
    let mut plot = Plot::new(
        format!("Goodput against bit error rate: {} and {}", bins.name, channel.name),
        "One point for each bin: goodput over the mean bit error rate of the same time.",
        Axis::log("mean bit error rate in the bin"),
        Axis::linear(format!("goodput, {}", unit.name)),
        vec![Curve::new("", Style::Points, points).colour(Colour::Blue).marker(Marker::Dot)],
    );
    plot.note = (left_out > 0).then(|| format!("Not drawn: {left_out} bins with less than 10⁻¹²."));
    Some(plot)
}
