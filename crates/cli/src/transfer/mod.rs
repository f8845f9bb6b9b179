//! `bentpipe send` and `bentpipe receive`: the engine as a real TCP, from this host to any peer and back.

mod progress;
mod receive;
mod send;

pub(crate) use receive::{EXAMPLES as RECEIVE_EXAMPLES, Receive, receive};
pub(crate) use send::{EXAMPLES as SEND_EXAMPLES, Send, send};

use crate::Failure;
use crate::args::name_and_value;
use crate::options::refused;
use bentpipe_base::Duration;
use bentpipe_live::transfer::{Choice, TransferError, choose};
use bentpipe_sim::Report;
use bentpipe_sim::report::FlowReport;
use clap::Args;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// How this end's TCP behaves, and what is said of it afterwards.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Congestion control: any scheme of scenario files (newreno, cubic, hybla, bbr, ...).
    #[arg(long, value_name = "SCHEME", default_value = "cubic")]
    tcp: String,
    /// A parameter of the scheme, or another option of a host in scenario files (iw, min_rto, window, ...); may be repeated.
    ///
    /// The value is written as in the file but without quotes: iw=4, beta=0.8, min_rto='300 ms'.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = name_and_value)]
    sets: Vec<(String, String)>,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
    /// Write the report as JSON into this file, besides.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

impl Common {
    fn choice(&self, title: &str) -> Result<Choice, Failure> {
        choose(title, &self.tcp, &self.sets).map_err(|d| refused(&d))
    }

    /// The report of a transfer as text or JSON, which also goes to a file if one is wanted.
    fn report(&self, choice: &Choice, flow: FlowReport, ran: Duration) -> Result<String, Failure> {
        let report = Report::assemble(&choice.scenario, ran, vec![flow], Vec::new(), Vec::new());
        if let Some(path) = &self.report {
            fs::write(path, report.to_json() + "\n")
                .map_err(|e| Failure::Run(format!("error: {}: {e}", path.display())))?;
        }
        Ok(if self.json { report.to_json() + "\n" } else { report.to_text() })
    }
}

/// What nobody outside can guess: sequence numbers come from it (RFC 6528).
fn seed() -> Result<u64, Failure> {
    let mut bytes = [0; 8];
    let read = File::open("/dev/urandom").and_then(|mut f| f.read_exact(&mut bytes));
    read.map_err(|e| Failure::Run(format!("error: /dev/urandom: {e}")))?;
    Ok(u64::from_le_bytes(bytes))
}

/// A standard stream as a file of its own.
fn own(stream: impl AsFd, name: &str) -> Result<File, Failure> {
    let copy = stream.as_fd().try_clone_to_owned();
    copy.map(File::from).map_err(|e| Failure::Run(format!("error: {name}: {e}")))
}

fn opened(path: &Path, file: io::Result<File>) -> Result<File, Failure> {
    file.map_err(|e| Failure::Input(format!("error: {}: {e}", path.display())))
}

fn failed(error: &TransferError) -> Failure {
    Failure::Run(format!("error: {error}"))
}

/// Talk goes to standard error. Nothing is left to tell a user who closed it.
fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
