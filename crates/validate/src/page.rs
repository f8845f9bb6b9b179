//! Writes the page of the book and the summary for the terminal.

use crate::check::{CheckResult, CheckTable, Verdict};
use crate::format::{allowed, deviation, unit, value, with_half_width};
use crate::sources::SECTIONS;
use bentpipe_report::aligned;
use core::fmt::Write as _;

const INTRO: &str = "<!-- Written by `make validate`. Do not edit. -->

# Validation

bentpipe is compared with two other packet simulators, with what two papers, a study and RFC 3449 say, and with formulas, in
the scenario files of this repository.
`make validate` runs everything and writes this page; it fails when a number misses its tolerance.

- *Measured numbers* come from ns-2 2.35 and ns-3 3.44, with bentpipe's own programs for the same scenarios (for
  ns-2: `bench/ns2-sat.tcl`); they are in `crates/validate/data/reference.csv`. Runs are as long as theirs and at
  least as many, at least five where chance plays a part, with seeds 1, 2, 3, ... Means are compared; after ± stands the
  half-width of the 95 % confidence interval (Student's t).
- *Statements* of papers are turned into ranges of numbers, written down before the runs.
- *Formulas* are written out from the networks' parameters and call nothing of the simulator.

## Why tolerances differ

Where nothing is random and no queue overflows, simulators agree to the serialisation of a packet, and so must
bentpipe. Where losses are random, means over runs are compared, and differences in the details of loss recovery remain: ns-2's
SACK is older than RFC 6675, and it acknowledges segments, not bytes. Tolerances were set before the comparison and are
not adjusted to its results. A dash stands where no verdict is given.

Not robust between simulators, and not judged anywhere (they differ by a factor of two): the goodput of the best and worst of
many flows, Jain's index, counts of retransmissions, timeouts and drops, and Reno and NewReno after a slow-start overshoot.
";

/// The whole page.
pub fn markdown(judged: &[CheckResult]) -> String {
    let mut out = INTRO.to_owned();
    let _ = writeln!(out, "\n## Result\n\n{}.", summary(judged));
    misses(&mut out, judged);
    for section in SECTIONS {
        let _ = writeln!(out, "\n## {}", section.title);
        if !section.intro.is_empty() {
            let _ = writeln!(out, "\n{}", section.intro);
        }
        for (file, alt) in section.pictures {
            let _ = writeln!(out, "\n![{alt}](img/{file})");
        }
        for group in section.tables {
            table(&mut out, group, judged);
        }
    }
    out
}

/// The result in one line, without Markdown.
pub fn summary(judged: &[CheckResult]) -> String {
    let count = |v| judged.iter().filter(|j| j.verdict == v).count();
    let (agrees, misses) = (count(Verdict::Agrees), count(Verdict::Misses));
    let worst = judged
        .iter()
        .filter_map(|j| Some((j.tolerance_used()?, j)))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map_or(String::new(), |(used, j)| {
            format!(", worst uses {:.0} % of its tolerance ({})", used * 100.0, j.check.name())
        });
    let (checks, unjudged) = (agrees + misses, count(Verdict::Unjudged));
    format!(
        "{checks} checks, {agrees} passed, {misses} missed{worst}; {unjudged} more reported without verdict"
    )
}

fn misses(out: &mut String, judged: &[CheckResult]) {
    for j in judged.iter().filter(|j| j.verdict == Verdict::Misses) {
        let (name, got, unit) = (j.check.name(), value(j, j.mean), unit(j));
        let off = if j.check.expected.value.is_nan() {
            String::new()
        } else {
            format!(", {} from {}", deviation(j), value(j, j.check.expected.value))
        };
        let _ = writeln!(out, "\n**Missed:** {name}: {got} {unit}{off}; allowed {}.", allowed(j));
    }
}

fn table(out: &mut String, group: &CheckTable, judged: &[CheckResult]) {
    let rows: Vec<&CheckResult> = judged.iter().filter(|j| j.check.table == group).collect();
    let Some(first) = rows.first() else { return };
    let _ = write!(out, "\n### {}\n\n{}\n\n", group.title, group.intro);
    let with_other = rows.iter().any(|j| j.check.expected.other.is_some());
    let unit = unit(first);
    let mut heads: Vec<String> = group.columns.iter().map(|c| (*c).to_owned()).collect();
    let lead = heads.len();
    let in_unit = |name: &str| if unit.is_empty() { name.to_owned() } else { format!("{name}, {unit}") };
    let counts = first.packets.is_some();
    let runs = if counts { "packets" } else { "runs" };
    heads.extend([runs.to_owned(), in_unit("bentpipe"), in_unit(group.expected)]);
    heads.extend(with_other.then(|| "ns-3".to_owned()));
    heads.extend(["deviation", "tolerance", "verdict"].map(String::from));
    line(out, &heads);
    let rule = |i: usize| if i < lead || i + 1 == heads.len() { "---" } else { "--:" }.to_owned();
    line(out, &(0..heads.len()).map(rule).collect::<Vec<_>>());
    for j in rows {
        line(out, &cells(j, with_other));
    }
}

fn line(out: &mut String, cells: &[String]) {
    let _ = writeln!(out, "| {} |", cells.join(" | "));
}

fn cells(j: &CheckResult, with_other: bool) -> Vec<String> {
    let mut cells = j.check.labels.clone();
    let runs = j.check.jobs.len() / j.check.quantity.runs_per_value();
    let expected = j.check.expected;
    cells.push(j.packets.unwrap_or(runs as u64).to_string());
    cells.push(with_half_width(j, j.mean, j.half_width));
    cells.push(with_half_width(j, expected.value, expected.half_width));
    cells.extend(with_other.then(|| expected.other.map_or("–".to_owned(), |v| value(j, v))));
    let verdict = match j.verdict {
        Verdict::Agrees => "agrees",
        Verdict::Misses => "**misses**",
        Verdict::Unjudged => "–",
    };
    cells.extend([deviation(j), allowed(j), verdict.to_owned()]);
    cells
}

/// All checks, one per line, for the terminal.
pub fn terminal(judged: &[CheckResult]) -> String {
    let rows: Vec<[String; 5]> = judged
        .iter()
        .map(|j| {
            let unit = unit(j);
            let verdict = match j.verdict {
                Verdict::Agrees => "agrees",
                Verdict::Misses => "MISSES",
                Verdict::Unjudged => "-",
            };
            let expected = j.check.expected;
            let expected = format!("{} {unit}", with_half_width(j, expected.value, expected.half_width));
            let got = with_half_width(j, j.mean, j.half_width);
            [j.check.name(), got, expected, format!("{} ({})", deviation(j), allowed(j)), verdict.to_owned()]
        })
        .collect();
    aligned(&rows, &[0, 4])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Check, Expected, Tolerance};
    use crate::quantity::Quantity;
    use crate::reading::Reading;
    use crate::sources::simulators::JITTER;

    fn judged(mean: f64, verdict: Verdict) -> CheckResult {
        CheckResult {
            check: Check {
                table: &JITTER,
                labels: vec!["sack".into(), "0.01".into()],
                quantity: Quantity::Mean(Reading::Metric("goodput")),
                jobs: Vec::new(),
                expected: Expected { value: 420_460.0, half_width: Some(8140.0), other: None },
                tolerance: Tolerance::Relative(0.06),
            },
            mean,
            half_width: Some(1500.0),
            bounds: Some((395_232.4, 445_687.6)),
            packets: None,
            verdict,
        }
    }

    #[test]
    fn a_miss_is_hard_to_overlook() {
        let all = [judged(425_000.0, Verdict::Agrees), judged(380_000.0, Verdict::Misses)];
        let page = markdown(&all);
        assert!(
            page.contains("| sack | 0.01 | 0 | 425.00 ± 1.50 | 420.46 ± 8.14 | +1.08 % | ±6 % | agrees |"),
            "{page}"
        );
        assert!(
            page.contains(
                "**Missed:** Random loss, with sender jitter: sack, 0.01: 380.00 kB/s, -9.62 % from 420.46; allowed ±6 %."
            )
        );
        assert!(
            summary(&all)
                .starts_with("2 checks, 1 passed, 1 missed, worst uses 160 % of its tolerance (Random")
        );
        assert!(terminal(&all).contains("MISSES"));
    }
}
