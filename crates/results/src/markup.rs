//! HTML fragments.

use core::fmt::Write as _;

/// Maximum number of rows of a table; the CSV file has all.
const MOST_ROWS: usize = 50;

/// Writes a table with its heading. `rest` is the file with all rows.
pub(crate) fn table(
    out: &mut String,
    heading: &str,
    head: &[impl AsRef<str>],
    rows: &[Vec<String>],
    rest: &str,
) {
    let _ = write!(
        out,
        "<section>\n<h2>{heading}</h2>\n<div class=\"table\" tabindex=\"0\" role=\"region\" aria-label=\"{heading}\">\n<table>\n<thead><tr>"
    );
    for cell in head {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(cell.as_ref()));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in rows.iter().take(MOST_ROWS) {
        out.push_str("<tr>");
        for cell in row {
            let _ = write!(out, "<td>{}</td>", escape(cell));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
    if rows.len() > MOST_ROWS {
        let _ = writeln!(
            out,
            "<p class=\"small\">The first {MOST_ROWS} of {}; all are in <a href=\"{rest}\">{rest}</a>.</p>",
            rows.len()
        );
    }
    out.push_str("</section>\n");
}

/// Escapes text for the content of an element or attribute.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}
