//! Runs the gateway under test, using only its command line.

use crate::bed::TestBed;
use bentpipe_os::process;
use rustix::process::Signal;
use serde_json::Value;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// A gateway that runs on the bed's router. Dropping it stops it.
#[derive(Debug)]
pub struct Gateway {
    child: Child,
    program: PathBuf,
    folder: PathBuf,
}

/// Returns a gateway configuration for a hop of `rate` bit/s and `rtt_ms`, with `more` lines at its end.
pub fn file(rate: f64, rtt_ms: f64, more: &str) -> String {
    format!(
        "schema = 1\n[satellite]\nrate = \"{rate:.0} bit/s\"\nrtt = \"{rtt_ms} ms\"\n[deploy]\nkind = \"routed\"\nlan = \"west\"\nsatellite = \"tuna\"\n[policy]\notherwise = \"accelerate\"\n{more}\n"
    )
}

impl Gateway {
    /// Starts the gateway with the configuration `text` and waits until it reports that it is running.
    ///
    /// # Errors
    /// If it exits or does not start in time.
    pub fn start(bed: &TestBed, program: &Path, folder: &Path, text: &str) -> Result<Self, String> {
        let path = folder.join("gateway.toml");
        fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
        let log = folder.join("gateway.log");
        let err = File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
        let child = bed.router.within(|| {
            let mut command = Command::new(program);
            command.arg("gateway").arg("run").arg(&path).arg("--run-dir").arg(folder.join("run"));
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(err);
            command.spawn().map_err(|e| format!("{}: {e}", program.display()))
        })?;
        let mut gateway = Self { child, program: program.to_owned(), folder: folder.to_owned() };
        for _ in 0..500 {
            let said = fs::read_to_string(&log).unwrap_or_default();
            if said.contains("event=\"started\"") {
                return Ok(gateway);
            }
            if gateway.child.try_wait().is_ok_and(|s| s.is_some()) {
                return Err(format!("the gateway has ended: {}", said.trim()));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Err("the gateway did not start within 10 s".to_owned())
    }

    /// Returns its JSON answer to `status` or `flows`.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn ask(&self, bed: &TestBed, word: &str) -> Result<Value, String> {
        let done = bed.router.within(|| {
            let mut command = Command::new(&self.program);
            command.args(["gateway", word, "--json"]).arg("--run-dir").arg(self.folder.join("run"));
            command.output().map_err(|e| e.to_string())
        })?;
        serde_json::from_slice(&done.stdout)
            .map_err(|_| format!("gateway {word}: {}", String::from_utf8_lossy(&done.stderr).trim()))
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        process::signal(self.child.id() as i32, Signal::TERM);
        for _ in 0..200 {
            if self.child.try_wait().is_ok_and(|s| s.is_some()) {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
