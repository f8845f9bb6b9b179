//! Checks that the gateway classifies senders that cannot gain within 20 round trips, and never those that
//! can.
//!
//! The seed chooses the hop. The flows are simulated for 20 round trips, and the gateway's classification
//! at the end counts.

use crate::hop::dice::RandomNumbers;
use crate::matrix::cell::{LOSSES, RATES, ROUND_TRIPS};
use crate::scenario::{Hop, simulate, text};
use serde_json::Value;
use std::fmt;
use std::path::Path;

/// Round trips within which a sender must be classified.
const TRIPS_ALLOWED: f64 = 20.0;

/// Rates (Mbit/s), round trips (ms) and queues (bandwidth-delay products) that are not in the matrix.
const OTHER_RATES: [u32; 5] = [3, 5, 17, 24, 50];
const OTHER_TRIPS: [u32; 5] = [40, 100, 250, 600, 800];
const OTHER_QUEUES: [f64; 5] = [0.3, 0.5, 1.0, 2.0, 4.0];

/// What the sending application does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Application {
    /// Always has data to send.
    Bulk,
    /// Writes at 0.2 to 0.8 of the hop's rate.
    Part,
    /// Writes at 0.9 to 1.1 of the hop's rate.
    Near,
    /// Answers requests, with think time between them.
    Answers,
}

/// A kind of sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender {
    tcp: &'static str,
    is_linux: bool,
    is_paced: bool,
    application: Application,
}

/// A sender as in scenario files: `stack = "linux"` or not, paced as by fq or not.
const fn sender(tcp: &'static str, is_linux: bool, is_paced: bool, application: Application) -> Sender {
    Sender { tcp, is_linux, is_paced, application }
}

impl fmt::Display for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stack = if self.is_linux { " linux" } else { "" };
        let paced = if self.is_paced { " paced" } else { "" };
        write!(f, "{}{stack}{paced} {}", self.tcp, format!("{:?}", self.application).to_lowercase())
    }
}

impl Sender {
    /// All senders. Linux BBR is not modelled.
    pub const ALL: [Self; 17] = [
        sender("bbr", false, false, Application::Bulk),
        sender("bbr3", false, false, Application::Bulk),
        sender("cubic", false, false, Application::Part),
        sender("cubic", false, true, Application::Bulk),
        sender("cubic", true, false, Application::Bulk),
        sender("cubic", true, false, Application::Part),
        sender("cubic", true, false, Application::Near),
        sender("cubic", true, true, Application::Bulk),
        sender("cubic", true, true, Application::Part),
        sender("cubic", true, true, Application::Near),
        sender("cubic", true, true, Application::Answers),
        sender("sack", false, false, Application::Part),
        sender("sack", false, true, Application::Bulk),
        sender("sack", true, false, Application::Bulk),
        sender("sack", true, true, Application::Bulk),
        sender("sack", true, true, Application::Near),
        sender("sack", true, false, Application::Answers),
    ];

    /// True if a model paces it (BBR), so that the gateway must recognise it.
    pub fn is_model(&self) -> bool {
        self.tcp.starts_with("bbr")
    }

    /// Its scenario keys; `pick(n)` returns a random index below n.
    fn keys(&self, (rate, rtt): (u32, u32), pick: &mut dyn FnMut(usize) -> usize) -> String {
        let stack = if self.is_linux { "stack = \"linux\"\n" } else { "" };
        let paced = if self.is_paced { "pacing = true\n" } else { "" };
        let bps = |share: f64| (share * f64::from(rate) * 1e6) as u64;
        let writes = |share| format!("app = {{ rate = \"{} bit/s\" }}\n", bps(share));
        let app = match self.application {
            Application::Bulk => String::new(),
            Application::Part => writes(0.2 + 0.2 * pick(4) as f64),
            Application::Near => writes(0.9 + 0.05 * pick(5) as f64),
            Application::Answers => {
                let product = f64::from(rate) * f64::from(rtt) * 125.0;
                let (answer, think) =
                    ([0.3, 1.0, 3.0][pick(3)] * product, [0.1, 0.5, 2.0][pick(3)] * f64::from(rtt));
                format!("app = {{ requests = {{ response = \"{answer:.0} B\", think = \"{think} ms\" }} }}\n")
            }
        };
        format!("tcp = \"{}\"\n{stack}{paced}{app}", self.tcp)
    }
}

/// Simulates `flows` concurrent flows over the hop that the seed chooses, if `is_wide` with a rate, a round
/// trip and a queue that are not in the matrix. Returns a description of the hop and how many of the flows
/// the gateway passes unaccelerated at the end.
///
/// # Errors
/// If the program fails.
pub fn simulate_seed(
    sender: &Sender,
    seed: u64,
    is_wide: bool,
    flows: u32,
    program: &Path,
) -> Result<(String, u64), String> {
    let mut dice = RandomNumbers::new(seed, 77);
    let mut pick = |n: usize| ((dice.uniform() * n as f64) as usize).min(n - 1);
    let (rate, rtt, loss) = if is_wide {
        (OTHER_RATES[pick(5)], OTHER_TRIPS[pick(5)], LOSSES[pick(LOSSES.len())])
    } else {
        (RATES[pick(RATES.len())], ROUND_TRIPS[pick(ROUND_TRIPS.len())], LOSSES[pick(LOSSES.len())])
    };
    let product = f64::from(rate) * f64::from(rtt) * 125.0;
    let queue = if is_wide { (product * OTHER_QUEUES[pick(5)]).max(6000.0) } else { product.max(45_000.0) };
    let keys = sender.keys((rate, rtt), &mut pick);
    // the handshake's round trip carries no data
    let seconds = (TRIPS_ALLOWED + 1.0) * f64::from(rtt) / 1e3;
    let window = "window = { initial = \"65535 B\", max = \"48 MiB\" }";
    // the end that is sent to has the large window
    let (from, to, window) = match sender.application {
        Application::Answers => ("receiver", "sender", window.to_owned()),
        _ => ("sender", "receiver", format!("receiver = {{ {window} }}")),
    };
    let count = match flows {
        1 => String::new(),
        n => format!("count = {n}\nstart = {{ from = \"0 s\", to = \"{} ms\" }}\n", 3 * rtt),
    };
    let flow = format!("from = \"{from}\"\nto = \"{to}\"\n{keys}{window}\n{count}");
    let hop = Hop { rate: f64::from(rate) * 1e6, rtt: f64::from(rtt) / 1e3, queue, loss };
    let text = text("a sender to be recognised", seconds, "", hop, true, &flow);
    let passed = passed(&simulate(program, seed, &text)?)?;
    Ok((format!("{rate} Mbit/s, {rtt} ms, queue {queue:.0} B, loss {loss}"), passed))
}

/// How many flows the gateway passes unaccelerated, from a report.
fn passed(report: &Value) -> Result<u64, String> {
    let flows = &report["gateways"][0]["flows"];
    let passed = flows["passed"].as_object().ok_or("a report without flows of a gateway")?;
    Ok(passed.values().filter_map(Value::as_u64).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_report_says_who_passes() {
        let report =
            |passed: Value| json!({ "gateways": [{ "flows": { "accelerated": 1, "passed": passed } }] });
        assert_eq!(super::passed(&report(json!({}))), Ok(0));
        assert_eq!(super::passed(&report(json!({ "model_based": 1, "signed": 2 }))), Ok(3));
        assert!(super::passed(&json!({})).is_err());
    }

    #[test]
    fn every_sender_has_a_name_of_its_own() {
        let mut names: Vec<_> = Sender::ALL.iter().map(Sender::to_string).collect();
        assert!(names.iter().any(|name| name == "cubic linux paced near"));
        names.sort();
        names.dedup();
        assert_eq!(names.len(), Sender::ALL.len());
    }
}
