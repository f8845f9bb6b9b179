//! Explicit rate in real packets: the engine as a real TCP at both ends, over an emulated link with flow
//! routers.

use super::simulator::{Simulator, granted_bps};
use super::{COUNT, GRANTED_BPS, SECONDS};
use crate::accept::list::{Bound, List, Outcome, Setup};
use crate::metadata;
use lab::once::output;
use lab::stats::median;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Figures 1 and 2: bytes of the transfer.
const BYTES: usize = 8_000_000;
const RUNS: u64 = 5;
/// Addresses of the receiving host, in IPv4 and IPv6.
const RECEIVER: [&str; 2] = ["10.55.0.2", "[fd55::2]"];

pub(super) fn check(_: &Setup, list: &mut List) -> Outcome {
    let bed = Bed::new()?;
    for (ip, receiver) in ["4", "6"].into_iter().zip(RECEIVER) {
        let run = bed.transfer("rate-negotiation", "100 Mbit/s", receiver, 1);
        let policed = run.as_ref().map(Run::policed).map_err(Clone::clone);
        let granted = run.and_then(|run| granted_bps(&run.sender));
        let what = format!("figure 1 live, IPv{ip}: asks for 100, gets {GRANTED_BPS} bit/s");
        list.judge(what, granted, |bps| (format!("{bps} bit/s"), bps == GRANTED_BPS));
        list.figure("packets dropped by its routers", policed, Bound::Most(0.0), COUNT);
    }
    let time = |seed: u64| -> Outcome<f64> {
        let run = bed.transfer("rate-transfer", "10 Gbit/s", RECEIVER[0], seed)?;
        run.sender["flows"][0]["finished_s"].as_f64().ok_or_else(|| "the transfer did not finish".to_owned())
    };
    let times: Outcome<Vec<f64>> = (1..=RUNS).map(time).collect();
    let what = format!("figure 2 live, 8 MB, 40 ms, loss 0.02, median of {RUNS}");
    list.figure(&what, times.map(|all| median(&all)), Bound::Most(1.0), SECONDS);
    Ok(())
}

/// A folder, and the program.
struct Bed {
    bentpipe: PathBuf,
    folder: PathBuf,
}

/// Reports of a transfer whose bytes have all arrived.
struct Run {
    sender: Value,
    session: Value,
}

impl Run {
    /// Packets that flow routers dropped.
    fn policed(&self) -> f64 {
        let routers = self.session["flow_routers"].as_array().into_iter().flatten();
        routers.filter_map(|router| router["policed"].as_f64()).sum()
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        // what is left in the folder for temporary files does no harm
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Bed {
    fn new() -> Outcome<Self> {
        let folder = std::env::temp_dir().join(format!("bentpipe-accept-rate-{}", std::process::id()));
        let bed = Self { bentpipe: Simulator::build()?.path().to_owned(), folder };
        let bytes: Vec<u8> = (0..BYTES).map(|i| (i % 251) as u8).collect();
        fs::create_dir_all(&bed.folder)
            .and_then(|()| fs::write(bed.file("source"), bytes))
            .map_err(|e| format!("{}: {e}", bed.folder.display()))?;
        Ok(bed)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn json(&self, name: &Path) -> Outcome<Value> {
        let text =
            fs::read_to_string(self.folder.join(name)).map_err(|e| format!("{}: {e}", name.display()))?;
        serde_json::from_str(&text).map_err(|e| format!("{}: {e}", name.display()))
    }

    /// Transfers the file over the scenario's links, from the far end to the near one.
    fn transfer(&self, scenario: &str, ask: &str, receiver: &str, seed: u64) -> Outcome<Run> {
        let (program, folder) = (self.bentpipe.display(), self.folder.display());
        let common = "--set encoding=tia-1039 --set window='64 MiB'";
        let send = format!(
            "sleep 1; {program} send {receiver}:5000 {folder}/source {common} --set ask='{ask}' \
             --report {folder}/sender.json"
        );
        let receive = format!("{program} receive 5000 {folder}/copy {common}; sleep 1");
        let mut command = Command::new(&self.bentpipe);
        command.current_dir(metadata::root()).arg("emulate").arg(format!("scenarios/{scenario}.toml"));
        command.arg("--seed").arg(seed.to_string()).arg("--out").arg(self.file("session"));
        command.args(["--far", &send, "--far-ready", "off", "--", "sh", "-c", &receive]);
        output(&format!("emulate {scenario}, seed {seed}"), &mut command)?;
        let read = |name| fs::read(self.file(name)).map_err(|e| format!("{name}: {e}"));
        if read("source")? != read("copy")? {
            return Err("other bytes arrived than were sent".to_owned());
        }
        let [sender, session] = ["sender.json", "session/report.json"].map(|name| self.json(Path::new(name)));
        Ok(Run { sender: sender?, session: session? })
    }
}
