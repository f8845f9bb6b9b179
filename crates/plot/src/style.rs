//! Colours, dash patterns and style sheets.

use crate::Marker;

/// Style of all plots, for one `<style>` element of a page. It also defines `--plot-paper`, `--plot-ink`,
/// `--plot-grid`, `--plot-grey` and `--plot-1` to `--plot-5` for use by the page.
pub const STYLE: &str = "\
:root{color-scheme:light dark;--plot-paper:#fff;--plot-ink:#1c1c1c;--plot-grid:#dcdcdc;--plot-grey:#6e6e6e;\
--plot-1:#0072b2;--plot-2:#d55e00;--plot-3:#00805e;--plot-4:#a0497d;--plot-5:#a87000}
@media (prefers-color-scheme:dark){:root{--plot-paper:#16181b;--plot-ink:#e6e6e6;--plot-grid:#3a3d42;--plot-grey:#a2a2a2;\
--plot-1:#56b4e9;--plot-2:#ff8d4d;--plot-3:#2ecc9b;--plot-4:#e79fca;--plot-5:#f0c649}}
@media print{:root{color-scheme:light;--plot-paper:#fff;--plot-ink:#1c1c1c;--plot-grid:#dcdcdc;--plot-grey:#6e6e6e;\
--plot-1:#0072b2;--plot-2:#d55e00;--plot-3:#00805e;--plot-4:#a0497d;--plot-5:#a87000}}
.plot{color:var(--plot-ink);font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;font-size:13px;\
max-width:100%;height:auto}
.plot .paper{fill:var(--plot-paper)}.plot .grid{color:var(--plot-grid)}
.plot .c1{color:var(--plot-1)}.plot .c2{color:var(--plot-2)}.plot .c3{color:var(--plot-3)}.plot .c4{color:var(--plot-4)}
.plot .c5{color:var(--plot-5)}.plot .ink{color:var(--plot-ink)}.plot .grey{color:var(--plot-grey)}
";

/// Style of a page with plots: body, headings and links.
pub const PAGE_STYLE: &str = "\
*{box-sizing:border-box}
body{margin:0 auto;padding:1rem;max-width:1280px;background:var(--plot-paper);color:var(--plot-ink);\
font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}
h1{font-size:1.5rem;line-height:1.25;margin:.5rem 0}h2{font-size:1.15rem;margin:2rem 0 .5rem;border-bottom:1px solid var(--plot-grid)}
a{color:var(--plot-1)}
";

/// Style of sections of such a page: plots side by side, and tables.
pub const TABLE_STYLE: &str = "\
.plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,440px),1fr));gap:1.25rem;align-items:start}
.plots svg{display:block}
.table{overflow-x:auto}
table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .6rem;text-align:right;border-bottom:1px solid var(--plot-grid);white-space:nowrap}
th{vertical-align:bottom;font-weight:600;white-space:normal}
@media print{.table{overflow:visible}table{font-size:8pt}th,td{padding:.15rem .35rem;white-space:normal}}
";

/// CSS class and, for viewers without custom properties, colour of each `Colour`. Curves use them in this
/// order.
pub(crate) const COLOURS: [(&str, &str); 7] = [
    ("c1", "#0072b2"),
    ("c2", "#d55e00"),
    ("c3", "#00805e"),
    ("c4", "#a0497d"),
    ("c5", "#a87000"),
    ("ink", "#1c1c1c"),
    ("grey", "#6e6e6e"),
];

/// Value of `stroke-dasharray` for each `Dash`; empty for a solid line. Curves use them in this order.
pub(crate) const DASHES: [&str; 5] = ["", "8 4", "1.5 3", "8 3 1.5 3", "4 3"];

impl Marker {
    /// Order in which curves use them.
    pub(crate) const ORDER: [Self; 6] =
        [Self::Dot, Self::Square, Self::Triangle, Self::Diamond, Self::Ring, Self::Cross];

    /// SVG path around the origin, and whether it is filled.
    pub(crate) const fn path(self) -> (&'static str, bool) {
        match self {
            Self::Dot => ("m-3 0a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z", true),
            Self::Square => ("m-2.8-2.8h5.6v5.6h-5.6z", true),
            Self::Triangle => ("m0-3.8l3.6 6.4h-7.2z", true),
            Self::Diamond => ("m0-4l3.6 4l-3.6 4l-3.6-4z", true),
            Self::Ring => ("m-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0z", false),
            Self::HollowSquare => ("m-4.5-4.5h9v9h-9z", false),
            Self::HollowTriangle => ("m0-6.5l5.8 10.2h-11.6z", false),
            Self::HollowDiamond => ("m0-6.5l5.8 6.5l-5.8 6.5l-5.8-6.5z", false),
            Self::Cross => ("m-3-3l6 6m0-6l-6 6", false),
            Self::Speck => ("m-.8-.8h1.6v1.6h-1.6z", true),
        }
    }
}
