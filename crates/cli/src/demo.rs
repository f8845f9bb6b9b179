//! `bentpipe demo`: the effect of a gateway on ordinary TCP hosts, side by side, with this machine's own TCP.
//!
//! Two identical hops run in real time in network namespaces, with kernel sockets at the ends; one hop has a
//! gateway. Where namespaces are not allowed, the same scenario is simulated, and a message says so.

use crate::input::name_and_value;
use crate::outcome::{Failure, by_signal, print_as, print_message};
use bentpipe_emulate::Error;
use bentpipe_emulate::measure::{self, Measured};
use bentpipe_emulate::plan::Plan;
use bentpipe_live::control::FlowState;
use bentpipe_report::Report;
use bentpipe_scenario::{Scenario, Source};
use core::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The scenario, which is also one of the example scenarios.
const SCENARIO: &str = include_str!("../scenarios/accelerate.toml");
/// Length of a bar that stands for the full rate of the hop, in characters.
const BAR: usize = 30;

/// Options of `bentpipe demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct Demo {
    /// Folder for the page, tables and captures.
    #[arg(long, value_name = "DIR", default_value = "bentpipe-demo")]
    out: PathBuf,
    /// Change a parameter: rate, delay or loss; may be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = name_and_value)]
    sets: Vec<(String, String)>,
    /// Simulate the comparison instead of using this machine's TCP.
    #[arg(long)]
    simulated: bool,
}

pub(crate) fn run(demo: &Demo) -> Result<u8, Failure> {
    let source = Source::new("accelerate.toml", SCENARIO);
    let scenario = bentpipe_scenario::load(&source, &demo.sets, None)?;
    print_message(&scenario.title);
    let emulated = (!demo.simulated).then(|| emulate(&scenario, &demo.out));
    let (report, interrupted) = match emulated {
        Some(Ok(measured)) => (measured.report, measured.interrupted),
        Some(Err(why)) if !why.is_refusal() => return Err(Failure::run(why)),
        refused => {
            if let Some(Err(why)) = refused {
                print_message(&format!(
                    "error: {why}\nnote: simulated instead, with bentpipe's own TCP at both ends"
                ));
            }
            (bentpipe_results::run(&demo.out, &scenario).map_err(Failure::run)?.0, None)
        }
    };
    print_as(&(summary(&report) + "\n" + &report.to_text()), false)?;
    print_message(&format!("the page with pictures: {}", demo.out.join("report.html").display()));
    Ok(by_signal(interrupted))
}

fn emulate(scenario: &Scenario, out: &Path) -> Result<Measured, Error> {
    let plan = Plan { out: Some(out.to_owned()), ..Plan::new(scenario.clone(), "demo") };
    let whole = scenario.links.first().map_or(1.0, |l| l.forward.rate.bps() as f64);
    let begun = &mut || print_message(&heading(scenario));
    measure::run(&plan, begun, &mut |line| print_message(line), &mut |now, flows| {
        print_message(&row(now, flows, whole));
    })
}

fn heading(scenario: &Scenario) -> String {
    let mut line = format!("this machine's own TCP at both ends, for {}\n\n      ", scenario.duration);
    for flow in &scenario.flows {
        let _ = write!(line, "{:<width$}", flow.name, width = BAR + 16);
    }
    line
}

/// Returns the line for one second: each flow's goodput as a bar and as a number.
fn row(now_s: f64, flows: &[FlowState], whole: f64) -> String {
    let mut line = format!("{now_s:3.0} s ");
    for flow in flows {
        let full = ((flow.goodput_bps / whole).clamp(0.0, 1.0) * BAR as f64).round() as usize;
        let bar = "\u{2588}".repeat(full) + &"\u{2591}".repeat(BAR - full);
        let _ = write!(line, "{bar} {:5.2} Mbit/s  ", flow.goodput_bps / 1e6);
    }
    line.trim_end().to_owned()
}

fn summary(report: &Report) -> String {
    match &report.flows[..] {
        [without, with] if without.goodput_bps > 0.0 => format!(
            "with the gateway {:.1} times as fast: {:.2} Mbit/s in place of {:.2} Mbit/s, the slow start included\n",
            with.goodput_bps / without.goodput_bps,
            with.goodput_bps / 1e6,
            without.goodput_bps / 1e6
        ),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_a_line_of_bars() {
        let flow = |bps| FlowState {
            name: "f".to_owned(),
            rtt_ms: None,
            cwnd: 10,
            goodput_bps: bps,
            retransmits: 0,
        };
        let line = row(7.0, &[flow(0.0), flow(12e6), flow(99e6)], 24e6);
        assert!(line.starts_with("  7 s ") && line.contains(" 12.00 Mbit/s"), "{line}");
        let count = |c| line.matches(c).count();
        assert_eq!((count('\u{2588}'), count('\u{2591}')), (15 + 30, 15 + 30), "{line}");
    }

    #[test]
    fn its_scenario_has_a_flow_without_and_one_with() {
        let source = Source::new("accelerate.toml", SCENARIO);
        let scenario = bentpipe_scenario::load(&source, &[], None).unwrap();
        let names: Vec<&str> = scenario.flows.iter().map(|f| &*f.name).collect();
        assert_eq!(names, ["without-gateway", "with-gateway"]);
        assert_eq!(scenario.gateways.len(), 1);
    }
}
