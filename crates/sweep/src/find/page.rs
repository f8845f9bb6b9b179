//! The folder of a search: `report.html`, `crossing.svg` and `points.csv`.

use super::{Find, Found};
use crate::error::Error;
use crate::page;
use crate::pictures::unit;
use crate::store::write_file;
use crate::table::Table;
use crate::write::PAGE;
use bentpipe_plot::{Axis, Colour, Curve, Dash, Mode, Plot, Point, Style};
use bentpipe_report::csv;
use std::path::Path;

pub(super) fn write(found: &Found, find: &Find<'_>, out: &Path) -> Result<(), Error> {
    let plot = picture(found, find);
    write_file(&out.join("points.csv"), points(found, find).as_bytes())?;
    write_file(&out.join("crossing.svg"), plot.to_svg(Mode::Standalone).as_bytes())?;
    write_file(&out.join(PAGE), html(found, find, plot).as_bytes())
}

fn html(found: &Found, find: &Find<'_>, plot: Plot) -> String {
    let mut text = vec![found.sentence(find)];
    text.extend(found.notes(find));
    let mut out = page::head(&found.title, "", &text.join(" "));
    out += "<section>\n<h2>Picture</h2>\n<div class=\"plots\">\n";
    out += &Plot { title: find.until.metric.text().to_owned(), ..plot }.to_svg(Mode::Inline);
    out += "</div>\n</section>\n";
    let table = Table {
        title: String::new(),
        axes: vec![find.vary.name.clone()],
        metrics: vec![find.until.metric.clone()],
        cells: found.points.iter().map(|p| vec![find.vary.shown(p.x)]).collect(),
        runs: Vec::new(),
        figures: found.points.iter().map(|p| vec![p.figure.into()]).collect(),
    };
    page::cells(&mut out, &table, "Values tried");
    out + &page::foot("Every value is in <a href=\"points.csv\">points.csv</a>.")
}

/// A row for each value tried, in their order.
fn points(found: &Found, find: &Find<'_>) -> String {
    let column = find.until.metric.column();
    let head = [&find.vary.name, &format!("{column}_mean"), &format!("{column}_half_width_95")];
    let head = head.into_iter().cloned().chain([format!("{column}_n"), "met".to_owned()]).collect();
    let number = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
    let rows = found.points.iter().map(|p| {
        let met = if p.meets(&find.until) { "yes" } else { "no" }.to_owned();
        let figure = p.figure;
        let (mean, half) = (number(figure.mean), number(figure.half_width));
        vec![find.vary.shown(p.x), mean, half, figure.n.to_string(), met]
    });
    csv(head, rows)
}

/// The means with their intervals, the threshold, and the value found.
fn picture(found: &Found, find: &Find<'_>) -> Plot {
    let (vary, until) = (&find.vary, &find.until);
    let (label, scale) = unit(&until.metric);
    let of = |p: &super::Point| {
        let half = p.figure.half_width.unwrap_or(0.0) * scale;
        Point::with_error(p.x, p.figure.mean.map_or(f64::NAN, |m| m * scale), half)
    };
    let means: Vec<Point> = found.points.iter().map(of).collect();
    let limit = until.limit * scale;
    let threshold = [(vary.low, limit), (vary.high, limit)];
    let mut curves = vec![
        Curve::new("mean", Style::LineAndPoints, means.clone()),
        Curve::through(until.written.trim(), Style::Line, threshold).colour(Colour::Grey).dash(Dash::Long),
    ];
    if let Some(crossing) = &found.crossing {
        let ends = means.iter().filter_map(|p| p.range).filter(|(low, _)| low.is_finite());
        let (low, high) =
            ends.fold((limit, limit), |(low, high), range| (low.min(range.0), high.max(range.1)));
        for (name, x, dash) in [
            ("value", crossing.value, Dash::Solid),
            ("interval", crossing.low, Dash::Dots),
            ("", crossing.high, Dash::Dots),
        ] {
            let line = [(x, low), (x, high)];
            curves.push(Curve::through(name, Style::Line, line).colour(Colour::Vermilion).dash(dash));
        }
    }
    let name = if vary.unit.is_empty() { vary.name.clone() } else { format!("{}, {}", vary.name, vary.unit) };
    let axis = if vary.is_log() { Axis::log } else { Axis::linear };
    let description = format!("{label} over {name}, mean and 95 % interval, and the threshold");
    Plot::new(found.title.clone(), description, axis(name), Axis::linear(label), curves)
        .note("bars: 95 % interval of each mean; dots: interval in which the value lies")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find::{Comparison, Condition, Vary};
    use crate::plan::Job;
    use crate::{Summary, find::search};
    use bentpipe_scenario::{Files, Source, SweepSpec};

    struct NoFiles;

    impl Files for NoFiles {
        fn read(&self, path: &str) -> Result<String, String> {
            Err(path.to_owned())
        }
    }

    /// One of two runs at 10 has no value: the mean of the other one is shown nowhere.
    #[test]
    fn a_mean_over_a_part_of_the_runs_is_left_out() {
        let source = Source::new("s.toml", "");
        let spec = SweepSpec { axes: Vec::new(), seeds: 2, measure: Vec::new(), precision: None };
        let (sets, seed, shard) = (Vec::new(), None, None);
        let job = Job { source: &source, files: &NoFiles, sets, seed, spec, shard, threads: 1 };
        let metric = bentpipe_report::Metric::parse("finished").unwrap();
        let until =
            Condition { metric, comparison: Comparison::Below, limit: 5.0, written: "5 s".to_owned() };
        let vary = Vary::new("size", (1.0, 10.0), "kB").unwrap();
        let find = Find { job, vary, until, go_on: None };
        let values = [(1.0, Some(2.5)), (10.0, None)];
        let found = Found {
            crossing: None,
            whole: false,
            seeds: 2,
            runs: 4,
            summary: Summary { executed: 4, already_stored: 0 },
            title: "t".to_owned(),
            points: values.map(|(x, second)| search::Point::new(x, &[Some(1.5), second])).to_vec(),
        };
        let table = points(&found, &find);
        assert!(table.ends_with(",2,yes\n10 kB,,,1,no\n"), "{table}");
        let drawn = &picture(&found, &find).curves[0].points;
        assert!((drawn[0].y - 2.0).abs() < 1e-9 && drawn[1].y.is_nan(), "{drawn:?}");
        let page = html(&found, &find, picture(&found, &find));
        assert!(page.contains("<td>10 kB</td><td>no value</td>") && !page.contains("<td>1.5"), "{page}");
    }
}
