//! `bentpipe send` and `bentpipe receive`: the TCP engine as a real TCP from this host to any peer.

mod progress;
pub(crate) mod receive;
pub(crate) mod send;

use crate::input::name_and_value;
use crate::outcome::{Failure, print_as, print_message};
use bentpipe_base::Duration;
use bentpipe_live::transfer::parse_options;
use bentpipe_report::FlowReport;
use bentpipe_scenario::Scenario;
use bentpipe_sim::report::assemble;
use bentpipe_tcp::Scheme;
use clap::Args;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Options of this end's TCP and of the report.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Congestion control: any scheme of scenario files (newreno, cubic, hybla, bbr, ...).
    #[arg(long, value_name = "SCHEME", default_value = "cubic")]
    tcp: String,
    /// A parameter of the scheme, or another option of a host in scenario files (iw, min_rto, window, ...);
    /// may be repeated.
    ///
    /// The value is written as in the file but without quotes: iw=4, beta=0.8, min_rto='300 ms'.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = name_and_value)]
    sets: Vec<(String, String)>,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
    /// Also write the report as JSON into this file.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

impl Common {
    /// Returns a scenario whose only flow has these options.
    fn scenario(&self, title: &str) -> Result<Scenario, Failure> {
        let choice = parse_options(title, &self.tcp, &self.sets)?;
        if self.tcp == Scheme::SWIFT {
            print_message(
                "note: `swift` is TCP-Swift for satellites (2004), also called `swift-sat`; not the data-centre protocol of 2020",
            );
        }
        Ok(choice)
    }

    /// Opens the outputs of the report before the transfer, to detect a file that cannot be written.
    fn reports(&self) -> Result<ReportOutputs<'_>, Failure> {
        let open = |path: &PathBuf| {
            // keep the old contents until a new report exists
            let file = File::options().write(true).create(true).truncate(false).open(path);
            opened(path, file).map(|file| (path.clone(), file))
        };
        let file = self.report.as_ref().map(open).transpose()?;
        Ok(ReportOutputs { common: self, file })
    }
}

struct ReportOutputs<'a> {
    common: &'a Common,
    file: Option<(PathBuf, File)>,
}

impl ReportOutputs<'_> {
    /// Writes the report to its file, if one was given, and prints it as text or JSON, on standard error
    /// unless `to_stdout`. It is printed even if the file could not be written.
    fn write_report(
        &mut self,
        choice: &Scenario,
        flow: FlowReport,
        ran: Duration,
        to_stdout: bool,
    ) -> Result<(), Failure> {
        let mut report = assemble(choice, ran, vec![flow], Vec::new(), Vec::new());
        // sequence numbers are random, and a real path has no seed
        report.seed = None;
        let json = report.to_json() + "\n";
        let written = self.file.as_mut().map_or(Ok(()), |(path, file)| {
            replace(file, &json).map_err(|e| Failure::run(format!("{}: {e}", path.display())))
        });
        let text = if self.common.json { json } else { report.to_text() };
        if to_stdout {
            print_as(&text, self.common.json)?;
        } else if self.common.json {
            // nobody to tell if it fails
            let _ = writeln!(io::stderr(), "{text}");
        } else {
            print_message(&text);
        }
        written
    }
}

/// Replaces the contents of a regular file; writes to pipes and devices as they are.
fn replace(file: &mut File, text: &str) -> io::Result<()> {
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    file.write_all(text.as_bytes())
}

/// Returns an unpredictable random number, from which sequence numbers are derived (RFC 6528).
fn seed() -> Result<u64, Failure> {
    bentpipe_os::random().map_err(|e| Failure::run(format!("/dev/urandom: {e}")))
}

/// Duplicates a standard stream as a file.
fn duplicate_stream(stream: impl AsFd, name: &str) -> Result<File, Failure> {
    let copy = stream.as_fd().try_clone_to_owned();
    copy.map(File::from).map_err(|e| Failure::run(format!("{name}: {e}")))
}

/// Adds the path to an error of opening a file.
fn opened(path: &Path, file: io::Result<File>) -> Result<File, Failure> {
    file.map_err(|e| Failure::input(format!("{}: {e}", path.display())))
}
