//! Transfers through boxes that rewrite code points or ports: all bytes arrive.

use super::simulator::Simulator;
use crate::accept::list::{List, Outcome, Setup};
use serde_json::Value;
use std::collections::BTreeMap;

const HOPS: [&str; 10] = [
    "access",
    "first",
    "middle",
    "last",
    "delivery",
    "access-back",
    "first-back",
    "middle-back",
    "last-back",
    "delivery-back",
];
const BOXES: [(&str, &str); 3] =
    [("zero", "DSCP cleared"), ("map", "DSCPs of signalling mapped"), ("nat", "source ports translated")];
/// Transfers of a run, and bytes of a short and of a long one.
const TRANSFERS: u64 = 50;
const BYTES: (f64, f64) = (100e3, 5e6);

/// Ends of transfers by what became of their rates, and the first that is not exact.
#[derive(Default)]
struct Found {
    states: BTreeMap<String, u64>,
    wrong: Option<String>,
}

impl Found {
    fn count(&mut self, hop: &str, report: &Value) -> Outcome {
        let run_s = report["simulated_s"].as_f64().ok_or("no simulated_s in the report")?;
        for flow in report["flows"].as_array().ok_or("no flows in the report")? {
            let name = flow["name"].as_str().unwrap_or_default();
            let size = if name.starts_with("short") { BYTES.0 } else { BYTES.1 };
            let state = flow["rate"]["state"].as_str().unwrap_or("none");
            *self.states.entry(state.to_owned()).or_default() += 1;
            let delivered = flow["goodput_bps"].as_f64().unwrap_or(0.0) * run_s / 8.0;
            let acked = flow["bytes_acked"].as_f64().unwrap_or(0.0);
            let is_exact = (acked - size).abs() < 0.5 && (delivered - size).abs() < 0.5;
            let is_settled = matches!(state, "granted" | "reduced" | "plain" | "fallen-back");
            if !(is_exact && is_settled && flow["finished_s"].is_f64()) {
                self.wrong.get_or_insert(format!("{hop}, {name}: {acked} of {size} bytes, {state}"));
            }
        }
        Ok(())
    }

    fn number(&self) -> u64 {
        self.states.values().sum()
    }

    fn text(&self) -> String {
        let states: Vec<String> = self.states.iter().map(|(state, n)| format!("{n} {state}")).collect();
        self.wrong.clone().unwrap_or_else(|| states.join(", "))
    }
}

pub(super) fn middleboxes(_: &Setup, list: &mut List) -> Outcome {
    let sim = Simulator::build()?;
    for ip in ["4", "6"] {
        for (key, what) in BOXES {
            for from in ["0 s", "5 s"] {
                let found = over_all_hops(&sim, &[("ip", ip), (key, "true"), ("from", from)]);
                let transfers = TRANSFERS * HOPS.len() as u64;
                let what = format!("{what} from {from}, IPv{ip}, on each hop: {transfers} transfers exact");
                list.judge(what, found, |found| {
                    (found.text(), found.wrong.is_none() && found.number() == transfers)
                });
            }
        }
    }
    Ok(())
}

fn over_all_hops(sim: &Simulator, sets: &[(&str, &str)]) -> Outcome<Found> {
    let mut found = Found::default();
    for hop in HOPS {
        found.count(hop, &sim.run("rate-middleboxes", &[sets, &[("hop", hop)]].concat(), 1)?)?;
    }
    Ok(found)
}

#[cfg(test)]
mod unit {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_missing_byte_is_found() {
        let flow = |bytes: f64| {
            json!({"name": "short1", "bytes_acked": bytes, "goodput_bps": 80e3, "finished_s": 3.0,
                   "rate": {"state": "plain"}})
        };
        let mut found = Found::default();
        found.count("first", &json!({"simulated_s": 10.0, "flows": [flow(100e3)]})).unwrap();
        assert_eq!((found.text().as_str(), found.number()), ("1 plain", 1));
        found.count("last", &json!({"simulated_s": 10.0, "flows": [flow(99_999.0)]})).unwrap();
        assert!(found.text().starts_with("last, short1"), "{}", found.text());
    }
}
