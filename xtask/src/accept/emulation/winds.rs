//! The WINDS measurements of 2009 with the kernel's TCP: rows 2, 3 and 5 of table 1 in Lee, Yum and Wan,
//! TCP-SuperCharger.

use crate::Outcome;
use crate::accept::list::List;
use crate::accept::setup::Setup;
use lab::{Rig, Who};
use serde_json::Value;
use std::time::Duration;

/// Row, window, keep-alive, measured goodput in bit/s.
const ROWS: [(u32, &str, &str, f64); 3] =
    [(2, "64 KiB", "off", 0.12e6), (3, "512 KiB", "off", 0.8e6), (5, "64 KiB", "on", 0.5e6)];
/// Start of the measured interval, s; the goodput before it varies too much.
const FROM_S: u32 = 60;

pub(super) fn check(setup: &Setup, list: &mut List) -> Outcome {
    let goodputs = goodputs(&setup.rig(Who::Ourselves)?, setup.pick(600, 180))?;
    for ((number, _, _, measured_bps), goodput_bps) in ROWS.iter().zip(goodputs) {
        let cure = if *number == 5 { ", with the keep-alive" } else { "" };
        let what = format!("WINDS row {number}{cure}, within 30 %{}", setup.short());
        list.judge(what, Ok(goodput_bps / measured_bps - 1.0), |apart| {
            let [here, there] = [goodput_bps, *measured_bps].map(|bps| bps / 1e6);
            (format!("{here:.3} Mbit/s, measured {there:.2}: {:+.0} %", apart * 100.0), apart.abs() <= 0.3)
        });
    }
    Ok(())
}

/// Goodput of the kernel's TCP in the three rows, run concurrently for `seconds` after the start, bit/s.
fn goodputs(rig: &Rig, seconds: u32) -> Outcome<Vec<f64>> {
    let original = include_str!("../../../../scenarios/winds.toml");
    let end = format!("\"{} s\"", FROM_S + seconds);
    let text = original.replace("\"660 s\"", &end);
    let file = rig.file("winds-rows.toml", &text)?;
    let mut sessions = Vec::new();
    for (number, window, keepalive, _) in ROWS {
        let (window, keepalive) = (format!("window={window}"), format!("keepalive={keepalive}"));
        let name = format!("winds-{number}");
        let words = ["emulate", &file, "--name", &name, "--set", &window, "--set", &keepalive, "--json"];
        sessions.push(rig.start(&words)?);
    }
    let limit = Duration::from_secs(u64::from(FROM_S + seconds + 90));
    let mut rows = Vec::new();
    for (session, (number, ..)) in sessions.into_iter().zip(ROWS) {
        let done = session.wait(limit)?;
        let report: Value =
            serde_json::from_str(&done.out).map_err(|_| format!("row {number}: {}", done.story()))?;
        let flows = report["flows"].as_array().into_iter().flatten();
        let goodput = flows.filter(|f| f["name"] == "flow").find_map(|f| f["goodput_bps"].as_f64());
        rows.push(goodput.ok_or_else(|| format!("row {number}: no goodput of `flow` in {report}"))?);
    }
    Ok(rows)
}
