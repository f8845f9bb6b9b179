//! `report.html`: a single file without scripts and external resources.

use crate::pictures::{SweepPlot, unit};
use crate::rounding::mean_and_half_width;
use crate::table::Table;
use bentpipe_plot::{Mode, PAGE_STYLE, Plot, STYLE, TABLE_STYLE};
use core::fmt::Write as _;

/// Maximum number of rows of the table; the CSV file has all.
const MOST_ROWS: usize = 500;

pub(crate) const REST: &str = "\
.small{font-size:.875rem;color:var(--plot-grey)}
@media print{body{max-width:none;font-size:11pt}.plots{grid-template-columns:1fr 1fr}svg,tr{break-inside:avoid}}
";

/// Creates the page. `left_out` is the number of omitted plots.
pub(crate) fn page(table: &Table, pictures: &[SweepPlot], left_out: usize) -> String {
    let mut out = head(&table.title, "", &summary(table));
    if !pictures.is_empty() {
        out += "<section>\n<h2>Curves</h2>\n<div class=\"plots\">\n";
        for SweepPlot { plot, heading, .. } in pictures {
            out += &Plot { title: heading.clone(), ..plot.clone() }.to_svg(Mode::Inline);
        }
        out += "</div>\n</section>\n";
    }
    if left_out > 0 {
        let _ = writeln!(
            out,
            "<p class=\"small\">{left_out} more pictures are not drawn: sweep fewer axes at a time.</p>"
        );
    }
    cells(&mut out, table, "Combinations");
    out += &foot(
        "Every value is in <a href=\"cells.csv\">cells.csv</a>, every run in <a href=\"runs.csv\">runs.csv</a>.",
    );
    out
}

/// The beginning of a page: its title, and text below unless it is empty. `style` comes after the common one.
pub(crate) fn head(title: &str, style: &str, text: &str) -> String {
    let title = escape(title);
    let text = if text.is_empty() { String::new() } else { format!("<p>{}</p>\n", escape(text)) };
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<style>{STYLE}{PAGE_STYLE}{TABLE_STYLE}{REST}{style}</style>\n</head>\n\
         <body>\n<main>\n<h1>{title}</h1>\n{text}"
    )
}

/// The end of a page, with HTML that says where the values are.
pub(crate) fn foot(files: &str) -> String {
    format!(
        "<p class=\"small\">{files} bentpipe {}.</p>\n</main>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    )
}

/// Says how many runs there are, and how to read the values.
fn summary(table: &Table) -> String {
    let count = |n: usize, one: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") };
    let mut counts = vec![0_usize; table.cells.len()];
    for (cell, ..) in &table.runs {
        counts[*cell] += 1;
    }
    let (least, most) = (counts.iter().min().unwrap_or(&0), counts.iter().max().unwrap_or(&0));
    let seeds = if least == most { count(*most, "seed") } else { format!("{least} to {most} seeds") };
    format!(
        "{} of {} with {seeds} each. A figure is the mean and the half-width of its 95 % interval (Student's t).",
        count(table.runs.len(), "run"),
        count(table.cells.len(), "combination"),
    )
}

/// Adds the table of combinations.
pub(crate) fn cells(out: &mut String, table: &Table, heading: &str) {
    let _ = write!(out, "<section>\n<h2>{heading}</h2>\n");
    *out += "<div class=\"table\" tabindex=\"0\">\n<table>\n<thead><tr>";
    let units: Vec<(String, f64)> = table.metrics.iter().map(unit).collect();
    for name in table.axes.iter().chain(units.iter().map(|(label, _)| label)) {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(name));
    }
    *out += "</tr></thead>\n<tbody>\n";
    for (cell, figures) in table.cells.iter().zip(&table.figures).take(MOST_ROWS) {
        *out += "<tr>";
        for value in cell {
            let _ = write!(out, "<td>{}</td>", escape(value));
        }
        for (figure, (_, scale)) in figures.iter().zip(&units) {
            let _ = write!(out, "<td>{}</td>", mean_and_half_width(figure, *scale));
        }
        *out += "</tr>\n";
    }
    *out += "</tbody>\n</table>\n</div>\n";
    if table.cells.len() > MOST_ROWS {
        let _ = writeln!(out, "<p class=\"small\">and {} more</p>", table.cells.len() - MOST_ROWS);
    }
    *out += "</section>\n";
}

pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_text_is_text() {
        let page = page(&crate::table::tests::example(), &[], 3);
        for part in [
            "<h1>a &lt;b&gt; &amp; c</h1>",
            "3 runs of 2 combinations with 1 to 2 seeds each",
            "3 more pictures are not drawn",
            "<td>1e-3</td><td>reno, old</td><td>2 ± 13</td><td>2 ± 0</td>",
            "<td>no value</td>",
        ] {
            assert!(page.contains(part), "{part}\n{page}");
        }
    }
}
