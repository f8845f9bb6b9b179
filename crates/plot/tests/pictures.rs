//! SVG of plots: positions, gaps, names, and no NaN.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use bentpipe_plot::{Axis, Colour, Curve, Mark, Mode, Plot, Point, STYLE, Style};
use proptest::prelude::*;

fn plot(x: Axis, y: Axis, curves: Vec<Curve>) -> Plot {
    Plot { title: "a title".into(), x, y, curves, ..Plot::default() }
}

/// Checks that tags are closed in the right order and all attributes are terminated.
fn well_formed(svg: &str) {
    let mut open: Vec<&str> = Vec::new();
    for tag in svg.split('<').skip(1).map(|t| t.split_once('>').unwrap().0) {
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name)),
            None if tag.ends_with('/') => {}
            None => open.push(tag.split(' ').next().unwrap()),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn a_line_goes_from_corner_to_corner_and_breaks_at_gaps() {
    let points = [(0.0, 0.0), (1.0, 10.0), (2.0, f64::NAN), (3.0, 10.0), (4.0, 0.0)];
    let axes = (Axis::linear("time, s").within(0.0, 4.0), Axis::linear("rate").within(0.0, 10.0));
    let svg = plot(axes.0, axes.1, vec![Curve::through("rate", Style::Line, points)]).to_svg(Mode::Inline);
    well_formed(&svg);
    let path = svg.split("<path d=\"").find(|p| p.contains("stroke-width=\"1.7\"")).unwrap();
    let pieces: Vec<&str> = path.split('"').next().unwrap().split('M').skip(1).collect();
    assert_eq!(pieces.len(), 2, "{path}");
    let y = |piece: &str, i: usize| piece.split('L').nth(i).unwrap().split(' ').nth(1).unwrap().to_owned();
    assert_eq!(y(pieces[0], 1), y(pieces[1], 0), "both peaks are equally high");
    assert_eq!(y(pieces[0], 0), y(pieces[1], 1), "both ends lie on the axis");
}

#[test]
fn an_error_bar_does_not_pull_an_axis_below_zero_that_no_value_reaches() {
    let drawn = |y: f64| {
        let points = vec![Point::with_error(0.0, y, 2.0), Point::with_error(1.0, 4.0, 1.0)];
        plot(
            Axis::linear("loss"),
            Axis::linear("goodput, Mbit/s"),
            vec![Curve::new("a", Style::Points, points)],
        )
        .to_svg(Mode::Inline)
    };
    assert!(!drawn(0.5).contains(">−1</text>"), "{}", drawn(0.5));
    assert!(drawn(-0.5).contains("−"), "{}", drawn(-0.5));
}

#[test]
fn bars_stand_on_zero_over_their_names() {
    let names = ["with a name of several words", "two", "three"].map(str::to_owned).to_vec();
    let bars = Curve::through("ours", Style::Bars, [(1.0, 20.0), (2.0, 19.0), (3.0, 20.0)]);
    let x = Axis { names, ..Axis::default() };
    let svg = plot(x, Axis::linear("Mbit/s"), vec![bars]).to_svg(Mode::Inline);
    well_formed(&svg);
    let attribute = |bar: &str, name: &str| -> f64 {
        bar.split(&format!("{name}=\"")).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
    };
    let drawn: Vec<&str> =
        svg.lines().filter(|l| l.contains("<rect") && !l.contains("height=\"10\"")).collect();
    let feet: Vec<i64> =
        drawn.iter().map(|b| (attribute(b, " y") + attribute(b, "height")).round() as i64).collect();
    assert_eq!(feet.len(), 3, "{svg}");
    assert!(feet.iter().all(|f| *f == feet[0]), "{feet:?}");
    assert!(attribute(drawn[1], "height") > 0.9 * attribute(drawn[0], "height"), "from zero: {drawn:?}");
    assert!(svg.contains(">two</text>") && svg.contains(">several words</text>"), "{svg}");
}

#[test]
fn a_logarithmic_axis_leaves_out_what_it_cannot_show() {
    let curve = Curve::new(
        "ber",
        Style::Points,
        vec![Point::new(1.0, 0.0), Point::new(2.0, 1e-6), Point::new(3.0, 1e-3)],
    );
    let svg = plot(Axis::linear("Eb/N0, dB"), Axis::log("BER"), vec![curve]).to_svg(Mode::Inline);
    let markers = svg.lines().find(|l| l.contains("a3 3 0 1 0")).unwrap();
    assert_eq!(markers.matches('M').count(), 2, "{markers}");
    assert!(svg.contains(">10⁻⁴</text>"), "{svg}");
}

#[test]
fn names_are_text_and_not_markup() {
    let mut p = plot(
        Axis::linear("<x>"),
        Axis::linear("&y <!--"),
        vec![Curve::through("\"<b>", Style::Line, [(0.0, 1.0), (1.0, 2.0)])],
    );
    p.note = Some("<script>".into());
    for mode in [Mode::Standalone, Mode::Inline] {
        let svg = p.to_svg(mode);
        well_formed(&svg);
        assert!(!svg.contains("<script") && !svg.contains("<b>") && !svg.contains("<!--"), "{svg}");
        assert_eq!(svg.contains(STYLE), mode == Mode::Standalone);
    }
}

#[test]
fn without_data_it_says_so() {
    let svg = plot(
        Axis::linear("x"),
        Axis::log("y"),
        vec![Curve::through("none", Style::Steps, [(1.0, f64::NAN)])],
    )
    .to_svg(Mode::Inline);
    well_formed(&svg);
    assert!(svg.contains(">no data</text>"), "{svg}");
}

#[test]
fn a_hundred_thousand_points_stay_small_and_keep_the_peak() {
    let spike = |i: u32| if i == 54_321 { 1000.0 } else { f64::from(i % 7) };
    let curve = Curve::through("queue", Style::Line, (0..100_000).map(|i| (f64::from(i), spike(i))));
    let svg = plot(Axis::linear("time, s"), Axis::linear("packets").within(0.0, 1000.0), vec![curve])
        .to_svg(Mode::Inline);
    assert!(svg.len() < 60_000, "{} bytes", svg.len());
    let top =
        svg.split("<g class=\"c1\"").nth(1).unwrap().split('"').nth(5).unwrap().parse::<f64>().unwrap() + 1.0;
    let path = svg.split("<path d=\"").find(|p| p.contains("stroke-width=\"1.7\"")).unwrap();
    assert!(path.contains(&format!(" {top}L")), "the peak at {top} is missing");
}

#[test]
fn each_value_of_steps_holds_from_the_one_before() {
    let curve = Curve::through("", Style::Steps, [(0.0, 0.0), (1.0, 4.0), (2.0, 2.0)]).colour(Colour::Ink);
    let svg = plot(Axis::linear("x"), Axis::linear("y"), vec![curve]).to_svg(Mode::Inline);
    let path = svg.split("<path d=\"").find(|p| p.contains("stroke-width=\"1.7\"")).unwrap();
    let corners: Vec<&str> = path.split('"').next().unwrap().split(['M', 'L']).skip(1).collect();
    assert_eq!(corners.len(), 6);
    let y = |i: usize| corners[i].split(' ').nth(1).unwrap();
    assert_eq!((y(2), y(4)), (y(3), y(5)), "flat pieces");
    assert_eq!(corners[1].split(' ').next(), corners[2].split(' ').next(), "upright between them");
}

proptest! {
    /// Any values give well-formed SVG without NaN, the same bytes each time.
    #[test]
    fn any_values_can_be_drawn(
        values in prop::collection::vec((any::<f64>(), any::<f64>(), prop::option::of((any::<f64>(), any::<f64>()))), 0..40),
        log in any::<(bool, bool)>(),
        range in prop::option::of(any::<(f64, f64)>()),
        style in prop::sample::select(vec![Style::Line, Style::Steps, Style::Points, Style::LineAndPoints, Style::Band, Style::Bars]),
    ) {
        let axis = |log| if log { Axis::log("a") } else { Axis::linear("a") };
        let points = values.iter().map(|&(x, y, range)| Point { x, y, range }).collect();
        let mut p = plot(axis(log.0), axis(log.1), vec![Curve::new("c", style, points)]);
        p.y.range = range;
        let svg = p.to_svg(Mode::Standalone);
        well_formed(&svg);
        prop_assert!(!svg.contains("NaN") && !svg.contains("inf"), "{}", svg);
        prop_assert_eq!(svg, p.to_svg(Mode::Standalone));
    }
}

#[test]
fn marks_of_one_name_shade_each_range_and_have_one_entry() {
    let mut plot = plot(
        Axis::linear("time, s").within(0.0, 10.0),
        Axis::linear("rate"),
        vec![Curve::through("rate", Style::Line, [(0.0, 1.0), (10.0, 2.0)])],
    );
    let mark = |from, to| Mark { from, to, name: "outage <1>".into(), colour: Colour::Vermilion };
    plot.marks = vec![mark(2.0, 3.0), mark(5.0, 5.0), mark(20.0, 30.0)];
    let svg = plot.to_svg(Mode::Inline);
    well_formed(&svg);
    assert_eq!(svg.matches("fill-opacity=\".22\"").count(), 3, "two ranges within the axis, and the sample");
    assert_eq!(svg.matches("outage &lt;1&gt;").count(), 1);
}

#[test]
fn a_box_has_the_quartiles_the_median_and_whiskers() {
    let x = Axis { names: vec!["a".into()], ..Axis::default() };
    let boxed = |low, high, style| Curve::new("", style, vec![Point::with_range(1.0, 5.0, low, high)]);
    let curves = vec![boxed(1.0, 9.0, Style::Ranges), boxed(4.0, 6.0, Style::Boxes)];
    let svg = plot(x, Axis::linear("ms").within(0.0, 10.0), curves).to_svg(Mode::Inline);
    well_formed(&svg);
    // the plot is 230 units high
    let high = svg.split("height=\"").filter_map(|h| h.split('"').next()?.parse::<f64>().ok());
    assert!(high.into_iter().any(|h| (h - 46.0).abs() < 0.2), "{svg}");
    assert!(svg.contains("stroke-width=\"1.3\"") && svg.contains("stroke-width=\"2.2\""), "{svg}");
}
