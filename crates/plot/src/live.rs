//! Plots in which readers of a page can point at values, zoom, and hide curves.
//!
//! The picture is the SVG, with its values beside it as JSON. A script, once on the page, draws them with
//! uPlot (`vendor/uplot`) in place of the SVG; without scripts and in print the SVG is what is seen.

use crate::axis::FittedAxis;
use crate::layout::Layout;
use crate::svg::CurveStyle;
use crate::{Axis, Curve, Marker, Mode, Plot, Point, Scale, Style};
use serde_json::{Value, json};

/// Style of pages with such plots, beside `STYLE`.
pub const LIVE_STYLE: &str = concat!(
    include_str!("../vendor/uplot/uPlot.min.css"),
    "\n.live{margin:0;min-width:0}.live>script{display:none}
@media screen{.live.on>svg{display:none}}
@media print{.live>.chart{display:none}}
.chart{font-size:.8125rem}.chart-title{font-weight:600;font-size:.906rem}.chart .uplot{width:100%}
.chart .u-legend{text-align:left;font-size:.8125rem;border-collapse:collapse}.chart .u-legend td,.chart .u-legend th{border:0;padding:.1rem .3rem}
.chart .u-select{background:var(--plot-grey);opacity:.25}
.chart .u-series>*{padding:.1rem .2rem}.chart-help{color:var(--plot-grey);font-size:.75rem}
.chart-mark::before{content:\"\";display:inline-block;width:1.6rem;height:.6rem;margin:0 .35rem;background:var(--mark);opacity:.35}
"
);

const LIBRARY: &str = include_str!("../vendor/uplot/uPlot.iife.min.js");
const LICENCE: &str = include_str!("../vendor/uplot/LICENSE");
const OURS: &str = include_str!("live.js");

/// Returns the element that makes the plots of [`Plot::to_live`] react, for the end of a page.
pub fn live_script() -> String {
    format!("<script>\n/*\nuPlot:\n{LICENCE}\n*/\n{LIBRARY}\n{OURS}</script>\n")
}

impl Plot {
    /// Draws the plot for a page that has [`LIVE_STYLE`], and [`live_script`] at its end. Plots with names in
    /// place of numbers, bars, boxes or error bars are only SVG.
    pub fn to_live(&self) -> String {
        let svg = self.to_svg(Mode::Inline);
        let fits = |c: &Curve| match c.style {
            Style::Line | Style::Steps | Style::Band => true,
            Style::Points => c.points.iter().all(|p| p.range.is_none()),
            Style::LineAndPoints | Style::Bars | Style::Boxes | Style::Ranges => false,
        };
        let known = self.curves.iter().any(|c| c.points.len() > 1);
        if !known || !self.x.names.is_empty() || !self.curves.iter().all(fits) {
            return svg;
        }
        // what ends a script must not be in it
        let data = self.values().to_string().replace('<', "\\u003c");
        format!(
            "<figure class=\"live\">\n{svg}<script type=\"application/json\">{data}</script>\n</figure>\n"
        )
    }

    fn values(&self) -> Value {
        let layout = Layout::new(self);
        let mut before: Option<Vec<Value>> = None;
        let curve = |(place, curve): (usize, &Curve)| {
            let x: Vec<Value> = curve.points.iter().map(|p| number(p.x)).collect();
            let look = CurveStyle::of(curve, place);
            let (size, hollow) = look.marker.size();
            let mut out = json!({
                "name": curve.name,
                "style": style(curve.style),
                "colour": look.colour.0,
                "dash": look.dash.split_whitespace().filter_map(|n| n.parse::<f64>().ok()).collect::<Vec<_>>(),
                "size": size,
                "hollow": hollow,
            });
            // left out where it is that of the curve before
            if before.as_ref() != Some(&x) {
                out["x"] = Value::Array(x.clone());
                before = Some(x);
            }
            let column =
                |of: fn(&Point) -> f64| curve.points.iter().map(|p| number(of(p))).collect::<Value>();
            if curve.style == Style::Band {
                out["low"] = column(|p| p.range.map_or(f64::NAN, |r| r.0));
                out["high"] = column(|p| p.range.map_or(f64::NAN, |r| r.1));
            } else {
                out["y"] = column(|p| p.y);
            }
            out
        };
        let curves: Vec<Value> = self.curves.iter().enumerate().map(curve).collect();
        let marks = self.marks.iter().map(|m| {
            let colour = crate::style::COLOURS[m.colour as usize].0;
            json!({ "from": number(m.from), "to": number(m.to), "name": m.name, "colour": colour })
        });
        let range = |axis: &FittedAxis| axis.ends().map(number);
        let log = |axis: &Axis| axis.scale == Scale::Log;
        json!({
            "title": self.title,
            "x": self.x.label,
            "y": self.y.label,
            "xr": range(&layout.x),
            "yr": range(&layout.y),
            "log": [log(&self.x), log(&self.y)],
            "curves": curves,
            "marks": marks.collect::<Vec<_>>(),
            "note": self.note,
        })
    }
}

const fn style(style: Style) -> &'static str {
    match style {
        Style::Steps => "steps",
        Style::Band => "band",
        Style::Points => "points",
        _ => "line",
    }
}

/// Seven digits are far below a pixel, also when zoomed.
fn number(v: f64) -> Value {
    let short: f64 = format!("{v:.6e}").parse().unwrap_or(v);
    // whole numbers without a point
    if short.fract() == 0.0 && short.abs() < 1e15 { Value::from(short as i64) } else { Value::from(short) }
}

impl Marker {
    /// Size in pixels, and true for a ring.
    const fn size(self) -> (u32, bool) {
        match self {
            Self::Speck => (2, false),
            Self::Dot | Self::Square | Self::Triangle | Self::Diamond | Self::Cross => (6, false),
            Self::Ring | Self::HollowSquare => (9, true),
            Self::HollowTriangle | Self::HollowDiamond => (12, true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mark;

    fn plot(style: Style) -> Plot {
        let points = vec![Point::new(0.0, 1.0), Point::new(1.0, f64::NAN), Point::new(2.0, 1.0 / 3.0)];
        let curves = vec![Curve::new("a", style, points.clone()), Curve::new("</script>", style, points)];
        let mut plot = Plot::new("t", "d", Axis::linear("time, s"), Axis::linear("Mbit/s"), curves);
        plot.marks = vec![Mark { from: 1.0, to: 1.5, name: "fade".into(), colour: crate::Colour::Grey }];
        plot
    }

    #[test]
    fn the_values_are_beside_the_picture() {
        let live = plot(Style::Steps).to_live();
        assert!(live.starts_with("<figure class=\"live\">\n<svg ") && live.ends_with("</figure>\n"));
        let json = live.split("application/json\">").nth(1).unwrap().split("</script>").next().unwrap();
        let data: Value = serde_json::from_str(json).unwrap();
        assert_eq!(data["curves"][0]["x"], json!([0, 1, 2]));
        assert_eq!(data["curves"][0]["y"], json!([1, null, 0.333_333_3]));
        assert_eq!(data["curves"][1]["name"], "</script>");
        assert!(data["curves"][1].get("x").is_none(), "the same x is not written twice");
        assert_eq!((&data["xr"], &data["marks"][0]["from"]), (&json!([0, 2]), &json!(1)));
    }

    #[test]
    fn what_the_script_cannot_draw_is_svg_alone() {
        for style in [Style::Bars, Style::Boxes, Style::LineAndPoints, Style::Ranges] {
            assert!(plot(style).to_live().starts_with("<svg "));
        }
        let named = Plot { x: Axis { names: vec!["a".into()], ..Axis::default() }, ..plot(Style::Line) };
        assert!(named.to_live().starts_with("<svg ") && Plot::default().to_live().starts_with("<svg "));
    }

    #[test]
    fn the_licence_is_in_the_page_and_nothing_is_fetched() {
        let script = live_script();
        assert!(
            script.contains("Copyright (c) 2022 Leon Sorokin")
                && script.contains("Permission is hereby granted")
        );
        assert_eq!(script.matches("</script").count(), 1, "{}", script.len());
        for word in ["fetch(", "XMLHttpRequest", "import(", "url(", "src="] {
            assert!(!script.contains(word) && !LIVE_STYLE.contains(word), "{word}");
        }
    }
}
