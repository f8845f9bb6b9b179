//! Renders the matrix as an HTML page: a picture of the gain of each cell, and a list of the worst cells.

use super::cell::{FLOWS, LOSSES, RATES, RECEIVERS, ROUND_TRIPS, SENDERS};
use super::{CellResult, LEAST_GOODPUT_RATIO};
use std::fmt::Write as _;

/// Size of a cell in the picture, pixels.
const SIDE: (usize, usize) = (13, 18);
const LEFT: usize = 130;
const TOP: usize = 66;
/// Number of worst cells listed.
const WORST_LISTED: usize = 40;

/// A self-contained HTML page. Rows: rates and round trips; columns: receivers, senders, losses, flows.
pub fn html(all: &[CellResult]) -> String {
    let mut worst: Vec<&CellResult> = all.iter().collect();
    worst.sort_by(|a, b| a.gain().total_cmp(&b.gain()));
    let worse = all.iter().filter(|r| !r.is_met()).count();
    let rows: String = worst.iter().take(WORST_LISTED).map(|ran| ran.line() + "\n").collect();
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>With a gateway and without</title>
<style>body{{font:15px/1.4 sans-serif;margin:2em;max-width:80em;color-scheme:light dark}}pre{{font-size:12px;overflow:auto}}svg{{max-width:100%;height:auto}}text{{font:11px sans-serif;fill:currentColor}}</style>
<h1>With a gateway and without</h1>
<p>{} cells, {worse} of them worse than without (the whole 99 % interval of the ratio below {LEAST_GOODPUT_RATIO}). A cell's colour is the ratio: red below {LEAST_GOODPUT_RATIO}, grey around 1, blue above, white where nothing was run. Over the columns: receiver, sender, loss, and one flow or eight.</p>
{}
<h2>The worst cells</h2>
<p>ratio [interval] pairs, with / without</p>
<pre>{rows}</pre></html>
",
        all.len(),
        picture(all, true)
    )
}

/// Returns a table for a document: for each receiver and sender the smallest, median and largest ratio, and
/// how many cells are worse than without the gateway.
pub fn summary(all: &[CellResult]) -> String {
    let mut text = String::from(
        "| receiver | sender | cells | worse | least gain | where | median | largest |\n|---|---|---|---|---|---|---|---|\n",
    );
    for receiver in RECEIVERS {
        for sender in SENDERS {
            let is = |r: &&CellResult| r.cell.receiver == receiver && r.cell.sender == sender;
            let mut some: Vec<&CellResult> = all.iter().filter(is).collect();
            some.sort_by(|a, b| a.gain().total_cmp(&b.gain()));
            let [first, .., last] = some[..] else { continue };
            let (middle, worse) = (some[some.len() / 2].gain(), some.iter().filter(|r| !r.is_met()).count());
            let c = first.cell;
            let _ = writeln!(
                text,
                "| {receiver} | {sender} | {} | {worse} | {:.3} | {} Mbit/s, {} ms, loss {}, x{} | {middle:.3} | {:.1} |",
                some.len(),
                first.gain(),
                c.rate,
                c.rtt,
                c.loss,
                c.flows,
                last.gain()
            );
        }
    }
    text
}

/// Returns the picture as SVG, for a document.
pub fn svg(all: &[CellResult]) -> String {
    let style = "<style>text{font:11px sans-serif;fill:#444}@media (prefers-color-scheme:dark){text{fill:#bbb}}</style>";
    picture(all, false).replacen('>', &format!(" xmlns=\"http://www.w3.org/2000/svg\">\n{style}"), 1) + "\n"
}

/// Draws the picture; if `told`, each cell has a tooltip with its figures.
fn picture(all: &[CellResult], told: bool) -> String {
    let columns = RECEIVERS.len() * SENDERS.len() * LOSSES.len() * FLOWS.len();
    let (width, height) = (LEFT + columns * SIDE.0 + 10, TOP + RATES.len() * ROUND_TRIPS.len() * SIDE.1 + 10);
    let mut svg =
        format!("<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"gain by cell\">\n");
    let mut text = |x: usize, y: usize, words: &str| {
        let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y}\">{words}</text>");
    };
    for (i, receiver) in RECEIVERS.iter().enumerate() {
        for (k, sender) in SENDERS.iter().enumerate() {
            let x = LEFT + (i * SENDERS.len() + k) * LOSSES.len() * FLOWS.len() * SIDE.0;
            text(x, 14, receiver);
            text(x, 30, sender);
            for (n, loss) in LOSSES.iter().enumerate() {
                text(x + n * FLOWS.len() * SIDE.0, 46, &format!("{loss:e}").replace("0e0", "0"));
                text(x + n * FLOWS.len() * SIDE.0, 60, "1 8");
            }
        }
    }
    for (i, rate) in RATES.iter().enumerate() {
        for (k, rtt) in ROUND_TRIPS.iter().enumerate() {
            let y = TOP + (i * ROUND_TRIPS.len() + k) * SIDE.1 + 13;
            text(2, y, &format!("{rate} Mbit/s, {rtt} ms"));
        }
    }
    for ran in all {
        let Some((x, y)) = place(ran) else { continue };
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" fill=\"{}\">{}</rect>",
            SIDE.0 - 1,
            SIDE.1 - 1,
            colour(ran.gain()),
            if told { format!("<title>{}</title>", ran.line()) } else { String::new() }
        );
    }
    svg + "</svg>"
}

fn place(ran: &CellResult) -> Option<(usize, usize)> {
    let c = &ran.cell;
    let row = RATES.iter().position(|r| *r == c.rate)? * ROUND_TRIPS.len()
        + ROUND_TRIPS.iter().position(|r| *r == c.rtt)?;
    let loss = LOSSES.iter().position(|l| (l - c.loss).abs() < 1e-12)?;
    let who = RECEIVERS.iter().position(|r| *r == c.receiver)? * SENDERS.len()
        + SENDERS.iter().position(|s| *s == c.sender)?;
    let column = (who * LOSSES.len() + loss) * FLOWS.len() + FLOWS.iter().position(|f| *f == c.flows)?;
    Some((LEFT + column * SIDE.0, TOP + row * SIDE.1))
}

/// Red below the limit, grey around 1, bluer for larger gains up to 30.
fn colour(gain: f64) -> String {
    if gain < LEAST_GOODPUT_RATIO {
        let depth = ((LEAST_GOODPUT_RATIO - gain) / 0.4).clamp(0.0, 1.0);
        return format!("rgb({},{},60)", 235 - (80.0 * depth) as u32, 120 - (110.0 * depth) as u32);
    }
    let depth = (libm::log(gain.max(1.0)) / libm::log(30.0)).clamp(0.0, 1.0);
    format!(
        "rgb({},{},{})",
        205 - (185.0 * depth) as u32,
        205 - (120.0 * depth) as u32,
        205 - (20.0 * depth) as u32
    )
}

#[cfg(test)]
mod tests {
    use super::super::cell::cells;
    use super::super::paired::Ratio;
    use super::*;

    #[test]
    fn each_cell_has_its_place_and_the_worst_are_named() {
        let cells = cells("", None).unwrap();
        let ran = |(i, cell): (usize, &crate::matrix::cell::Cell)| {
            let mean = if i == 700 { 0.5 } else { 1.0 + i as f64 / 100.0 };
            CellResult {
                cell: *cell,
                pairs: vec![(mean, 1.0)],
                ratio: Ok(Ratio { mean, low: mean, high: mean }),
            }
        };
        let all: Vec<CellResult> = cells.iter().enumerate().map(ran).collect();
        let mut places: Vec<_> = all.iter().filter_map(place).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), 1152);
        let page = html(&all);
        assert!(page.contains("1152 cells, 1 of them worse"));
        let list = page.split("<pre>").nth(1).unwrap();
        assert!(list.starts_with(&all[700].line()) && list.contains("WORSE"), "{list}");
        let table = summary(&all);
        assert_eq!(table.lines().count(), 2 + 9);
        assert!(table.lines().any(|l| l.contains("| 128 | 1 | 0.500 |")), "{table}");
        assert_ne!(colour(0.9), colour(1.0));
        let picture = svg(&all);
        assert!(picture.starts_with("<svg viewBox=") && picture.ends_with("</svg>\n"));
        assert_eq!(picture.matches("<rect").count(), 1152);
    }
}
