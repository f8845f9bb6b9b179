//! Checks that the gateway recognises BBR senders, which cannot gain, within 20 round trips, and that it
//! takes no other sender for one.
//!
//! The seed chooses the hop. The flows are simulated for 20 round trips; what counts is how the gateway
//! classifies them at the end.

use crate::hop::dice::RandomNumbers;
use crate::matrix::cell::{LOSSES, RATES, ROUND_TRIPS};
use crate::scenario::{Hop, simulate, text};
use serde_json::Value;
use std::path::Path;

/// Round trips within which a sender must be classified.
const TRIPS_ALLOWED: f64 = 20.0;

/// Rates (Mbit/s), round trips (ms) and queues (bandwidth-delay products) that are not in the matrix.
const OTHER_RATES: [u32; 5] = [3, 5, 17, 24, 50];
const OTHER_TRIPS: [u32; 5] = [40, 100, 250, 600, 800];
const OTHER_QUEUES: [f64; 5] = [0.3, 0.5, 1.0, 2.0, 4.0];

/// The senders by their names, made of these words: the congestion control; `linux` if its stack is Linux's;
/// `paced` if it paces as fq does; and what the application does. `bulk` always has data to send, `part`
/// writes at 0.2 to 0.8 of the hop's rate, `near` at 0.9 to 1.1 of it, and `answers` answers requests, with
/// think time between them. Linux BBR is not modelled.
pub const SENDERS: [&str; 17] = [
    "bbr bulk",
    "bbr3 bulk",
    "cubic part",
    "cubic paced bulk",
    "cubic linux bulk",
    "cubic linux part",
    "cubic linux near",
    "cubic linux paced bulk",
    "cubic linux paced part",
    "cubic linux paced near",
    "cubic linux paced answers",
    "sack part",
    "sack paced bulk",
    "sack linux bulk",
    "sack linux paced bulk",
    "sack linux paced near",
    "sack linux answers",
];

/// True if a sender is paced by a model (BBR), so that the gateway must recognise it.
pub fn is_model(sender: &str) -> bool {
    sender.starts_with("bbr")
}

/// The scenario keys of a sender; `pick(n)` returns a random index below n.
fn keys(sender: &str, (rate, rtt): (u32, u32), pick: &mut dyn FnMut(usize) -> usize) -> String {
    let words: Vec<&str> = sender.split(' ').collect();
    let stack = if words.contains(&"linux") { "stack = \"linux\"\n" } else { "" };
    let paced = if words.contains(&"paced") { "pacing = true\n" } else { "" };
    let bps = |share: f64| (share * f64::from(rate) * 1e6) as u64;
    let writes = |share| format!("app = {{ rate = \"{} bit/s\" }}\n", bps(share));
    let app = match words.last() {
        Some(&"part") => writes(0.2 + 0.2 * pick(4) as f64),
        Some(&"near") => writes(0.9 + 0.05 * pick(5) as f64),
        Some(&"answers") => {
            let product = f64::from(rate) * f64::from(rtt) * 125.0;
            let (answer, think) =
                ([0.3, 1.0, 3.0][pick(3)] * product, [0.1, 0.5, 2.0][pick(3)] * f64::from(rtt));
            format!("app = {{ requests = {{ response = \"{answer:.0} B\", think = \"{think} ms\" }} }}\n")
        }
        _ => String::new(),
    };
    format!("tcp = \"{}\"\n{stack}{paced}{app}", words[0])
}

/// Simulates `flows` concurrent flows over the hop that the seed chooses, if `is_wide` with a rate, a round
/// trip and a queue that are not in the matrix. Returns a description of the hop and how many of the flows
/// the gateway passes unaccelerated at the end.
///
/// # Errors
/// If the program fails.
pub fn simulate_seed(
    sender: &str,
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
    let keys = keys(sender, (rate, rtt), &mut pick);
    // the handshake's round trip carries no data
    let seconds = (TRIPS_ALLOWED + 1.0) * f64::from(rtt) / 1e3;
    let window = "window = { initial = \"65535 B\", max = \"48 MiB\" }";
    // the end that receives the data has the large window
    let (from, to, window) = if sender.ends_with("answers") {
        ("receiver", "sender", window.to_owned())
    } else {
        ("sender", "receiver", format!("receiver = {{ {window} }}"))
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
    fn every_sender_has_a_name_of_its_own_and_keys_by_its_words() {
        let mut names = SENDERS.to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SENDERS.len());
        for name in names {
            let words: Vec<&str> = name.split(' ').collect();
            let [_, stack_and_pacing @ .., application] = &words[..] else { panic!("{name}") };
            assert!(matches!(stack_and_pacing, [] | ["linux" | "paced"] | ["linux", "paced"]), "{name}");
            assert!(["bulk", "part", "near", "answers"].contains(application), "{name}");
        }
        let keys = keys("cubic linux paced near", (10, 100), &mut |_| 2);
        assert_eq!(
            keys,
            "tcp = \"cubic\"\nstack = \"linux\"\npacing = true\napp = { rate = \"10000000 bit/s\" }\n"
        );
    }
}
