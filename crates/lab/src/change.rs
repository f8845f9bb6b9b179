//! Measures how soon a change to a running link takes effect, from outside: a datagram every 0.5 ms, and
//! the time at which the change was requested.

use crate::Outcome;
use crate::capture::{CapturedPacket, Kind};
use crate::delay::{FROM_FAR, capturing, read_and_remove};
use crate::rig::{Rig, wait_for};
use crate::scenario::OneLink;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Time between two changes.
const PAUSE: Duration = Duration::from_millis(100);

/// Changes the loss of a link `count` times over the session's control socket, alternately to 100 % and 0.
/// Returns for each change the ms from the request to the last datagram that arrived, or to the first.
pub fn delays(rig: &Rig, count: usize) -> Outcome<Vec<f64>> {
    let link = OneLink { rate: "10 Mbit/s", delay: "1 ms", buffer: "100 kB", seed: 4, ..OneLink::CLEAN };
    let scenario = rig.file("change.toml", &link.toml())?;
    let [file, begun] = ["change.pcap", "change.begun"].map(|name| rig.path(name));
    let seconds = 3 + (PAUSE.as_millis() as usize * count).div_ceil(1000);
    let mark = begun.display();
    let datagrams =
        format!("(sleep 1; touch '{mark}') & iperf3 -4 -c far -u -R -l 100 -b 1600000 -t {seconds} >&2");
    let script = capturing(&file, FROM_FAR, &datagrams);
    let running = rig.start(&["emulate", &scenario, "--far", "iperf3 -s -1", "--", "sh", "-c", &script])?;
    let asked =
        wait_for("the datagrams' start", || Ok(begun.exists())).and_then(|()| ask(&socket(rig)?, count));
    let done = running.wait(Duration::from_secs(30 + seconds as u64))?;
    let seen = read_and_remove(&file);
    let _ = std::fs::remove_file(begun);
    done.succeeded("datagrams")?;
    effects(&seen?, &asked?)
}

/// The control socket of the only session.
fn socket(rig: &Rig) -> Outcome<PathBuf> {
    let folder = rig.folder().join("run/bentpipe");
    let files = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut paths = files.flatten().map(|f| f.path());
    paths.find(|p| p.extension().is_some_and(|e| e == "sock")).ok_or("no session has a socket".to_owned())
}

/// Requests the changes and returns the time of each, ns since 1970.
fn ask(path: &PathBuf, count: usize) -> Outcome<Vec<u64>> {
    let failed = |e: std::io::Error| format!("{}: {e}", path.display());
    let mut stream = UnixStream::connect(path).map_err(failed)?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).map_err(failed)?;
    let mut answers = BufReader::new(stream.try_clone().map_err(failed)?);
    let mut asked = Vec::new();
    for loss in [1, 0].into_iter().cycle().take(count) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        asked.push(now.as_nanos() as u64);
        let line = format!("{{\"request\":\"set\",\"on\":{{}},\"values\":{{\"loss\":{loss}}}}}\n");
        stream.write_all(line.as_bytes()).map_err(failed)?;
        let mut answer = String::new();
        answers.read_line(&mut answer).map_err(failed)?;
        if answer.contains("\"error\"") || answer.is_empty() {
            return Err(format!("a change was refused: {answer}"));
        }
        std::thread::sleep(PAUSE);
    }
    Ok(asked)
}

/// Time from each request to the last datagram before the loss, or the first after it, ms.
fn effects(seen: &[CapturedPacket], asked: &[u64]) -> Outcome<Vec<f64>> {
    /// Longest time that a datagram was in transit.
    const WAY_NS: u64 = 1_100_000;
    let times: Vec<u64> = seen.iter().filter(|s| matches!(s.kind, Kind::Udp(_))).map(|s| s.at_ns).collect();
    let came = |from: u64, to: u64| times.iter().copied().filter(move |at| (from..to).contains(at));
    let effect = |(i, at): (usize, &u64)| {
        let next = asked.get(i + 1).copied().unwrap_or(*at + PAUSE.as_nanos() as u64);
        let middle = (at + next) / 2;
        let (was, is) = (came(at - (next - middle), *at).count(), came(middle, next).count());
        let stops = i % 2 == 0;
        let last = came(at - WAY_NS, middle).next_back().unwrap_or(*at);
        let first = came(*at, next).next().unwrap_or(next);
        if (was > 0) != stops || (is > 0) == stops {
            return Err(format!("change {} did not show: {was} datagrams before it, {is} after", i + 1));
        }
        let ns = if stops { last.saturating_sub(at + WAY_NS) } else { first - at };
        Ok(ns as f64 / 1e6)
    };
    asked.iter().enumerate().map(effect).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_shows_in_the_first_packet_that_met_it() {
        const MS: u64 = 1_000_000;
        // no datagrams from 110 to 215 ms
        let seen: Vec<CapturedPacket> = (0..320)
            .filter(|ms| !(110..215).contains(ms))
            .map(|ms| CapturedPacket { at_ns: ms * MS, ip_len: 100, kind: Kind::Udp(5201) })
            .collect();
        let found = effects(&seen, &[100 * MS, 200 * MS]).unwrap();
        assert!((found[0] - 7.9).abs() < 1e-9 && (found[1] - 15.0).abs() < 1e-9, "{found:?}");
        assert!(effects(&seen, &[50 * MS]).unwrap_err().contains("change 1"));
    }
}
