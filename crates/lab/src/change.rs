//! How soon a change of a running link takes effect, seen from outside: pings every 2 ms, and by the clock when the change was asked for.

use crate::Outcome;
use crate::capture::{self, Kind, Seen};
use crate::delay::CAPTURE;
use crate::rig::Rig;
use crate::scenario::OneLink;
use std::time::Duration;

/// Asks for a change and notes when, in nanoseconds since 1970: the time includes the start of the program that asks.
const ASK: &str =
    "set_loss() { date +%s%N >>\"$FILE.asked\"; \"$BENTPIPE\" link set loss=$1 >&2 || exit 8; sleep 0.1; }
";

/// Makes `count` changes of the loss of a link, to all and to nothing by turns; milliseconds from asking for each until the first packet that met it.
///
/// # Errors
/// When a program fails, or a change never shows.
pub fn delays(rig: &Rig, count: usize) -> Outcome<Vec<f64>> {
    let file = rig.path("change.pcap");
    let name = file.display();
    let link = OneLink { rate: "10 Mbit/s", delay: "1 ms", buffer: "100 kB", loss: 0.0, ber: 0.0, seed: 4 };
    let scenario = rig.file("change.toml", &link.toml())?;
    let changes = ["set_loss 1; ", "set_loss 0; "].into_iter().cycle().take(count).collect::<String>();
    let script = format!(
        "FILE='{name}'; FILTER='icmp'\n{CAPTURE}{ASK}ping -4 -n -q -i 0.002 far >&2 & p=$!; sleep 0.5; {changes}kill -INT $p; wait $p; finish"
    );
    let limit = Duration::from_secs(30) + Duration::from_millis(200 * count as u64);
    let out = rig.output(&["emulate", &scenario, "--", "sh", "-c", &script], limit);
    let asked = std::fs::read_to_string(rig.path("change.pcap.asked"));
    let seen = capture::read(&file);
    for left in [file, rig.path("change.pcap.asked")] {
        let _ = std::fs::remove_file(left);
    }
    out?;
    let asked = asked.map_err(|e| format!("the times of asking: {e}"))?;
    let asked: Vec<u64> = asked.lines().filter_map(|l| l.parse().ok()).collect();
    effects(&seen?, &asked)
}

/// By turns the first request after `asked` that has no answer, and the first that has one.
fn effects(seen: &[Seen], asked: &[u64]) -> Outcome<Vec<f64>> {
    let answered: std::collections::BTreeSet<(u16, u16)> = seen
        .iter()
        .filter_map(|s| match s.kind {
            Kind::Answer(id, n) => Some((id, n)),
            _ => None,
        })
        .collect();
    let effect = |(i, at): (usize, &u64)| {
        let next = asked.get(i + 1).copied().unwrap_or(u64::MAX);
        let met = seen.iter().filter(|s| (*at..next).contains(&s.at_ns)).find(|s| match s.kind {
            Kind::Ask(id, n) => answered.contains(&(id, n)) == (i % 2 == 1),
            _ => false,
        });
        met.map(|s| (s.at_ns - at) as f64 / 1e6).ok_or_else(|| format!("change {} never showed", i + 1))
    };
    asked.iter().enumerate().map(effect).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_shows_in_the_first_packet_that_met_it() {
        let packet = |ms: u64, kind| Seen { at_ns: ms * 1_000_000, ip_len: 84, kind };
        // all of number 4 to 6 are lost
        let seen: Vec<Seen> = (1..10)
            .flat_map(|n| {
                let back = (!(4..7).contains(&n)).then(|| packet(10 * u64::from(n) + 3, Kind::Answer(1, n)));
                [Some(packet(10 * u64::from(n), Kind::Ask(1, n))), back]
            })
            .flatten()
            .collect();
        assert_eq!(effects(&seen, &[35_000_000, 62_000_000]), Ok(vec![5.0, 8.0]));
        assert!(effects(&seen, &[75_000_000]).unwrap_err().contains("change 1"));
    }
}
