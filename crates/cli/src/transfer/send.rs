//! `bentpipe send HOST:PORT [FILE]`.

use super::progress::Progress;
use super::{Common, ReportOutputs, duplicate_stream, opened, seed};
use crate::outcome::{Failure, print_message};
use bentpipe_base::Instant;
use bentpipe_live::endpoint::HostEndpoint;
use bentpipe_live::transfer::{self, Source};
use bentpipe_scenario::Scenario;
use clap::Args;
use std::fs::File;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;

pub(crate) const EXAMPLES: &str = "Examples:
  bentpipe emulate geo-10m --far 'bentpipe receive 5000 copy' -- bentpipe send far:5000 FILE
  bentpipe emulate winds-24m --far 'nc -l -p 5000 > copy' -- bentpipe send far:5000 FILE --tcp bbr
  tar c folder | sudo bentpipe send example.org:5000 --tcp hybla --set iw=10

Exit status: 0 when the peer's TCP has everything, 1 when not, 2 when the command line is at fault.";

/// Options of `bentpipe send`.
#[derive(Debug, Args)]
pub(crate) struct Send {
    /// Host and port, as in `far:5000`, `10.55.0.2:5000` or `[fd55::2]:5000`.
    #[arg(value_name = "HOST:PORT")]
    to: String,
    /// The file; without it standard input.
    file: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

/// Sends a file and prints the report.
pub(crate) fn send(args: &Send) -> Result<(), Failure> {
    let choice = args.common.scenario(&format!("send to {}", args.to))?;
    let file = match &args.file {
        Some(path) => opened(path, File::open(path))?,
        None => duplicate_stream(io::stdin(), "standard input")?,
    };
    let name = args.file.as_ref().map_or_else(|| "standard input".to_owned(), |p| p.display().to_string());
    let mut source = Source::new(file).map_err(|e| Failure::input(format!("{name} cannot be sent: {e}")))?;
    let to = resolve(&args.to)?;
    let mut reports = args.common.reports()?;
    let all = to.len();
    let mut progress = Progress::new(source.length());
    let mut failure = Failure::run(format!("{} has no address", args.to));
    for (i, to) in to.iter().enumerate() {
        let mut host = match HostEndpoint::towards(to.ip(), seed()?) {
            Ok(host) => host,
            Err(error) => {
                failure = Failure::run(error);
                continue;
            }
        };
        let config = &choice.flows[0].sender;
        let sent = transfer::send(&mut host, *to, config, &mut source, &mut |look| progress.update(look));
        match sent {
            Ok(sent) => {
                progress.end();
                return report_success(&mut reports, &choice, *to, sent);
            }
            Err(why) if why.may_try_another() && i + 1 < all => failure = Failure::run(why.why),
            Err(why) => {
                progress.end();
                return Err(report_failure(&mut reports, &choice, &host, why));
            }
        }
    }
    progress.end();
    Err(failure)
}

/// Prints the report of a transfer that failed; returns the failure.
fn report_failure(
    reports: &mut ReportOutputs<'_>,
    choice: &Scenario,
    host: &HostEndpoint,
    failed: transfer::Failed,
) -> Failure {
    // the report up to the failure may show its cause
    if let Some(report) = failed.report {
        let end = host.driver.clock.now().since(Instant::ZERO);
        if let Err(fault) = reports.write_report(choice, *report, end, false) {
            fault.report();
        }
    }
    Failure::run(failed.why)
}

/// Prints the report of a complete transfer.
fn report_success(
    reports: &mut ReportOutputs<'_>,
    choice: &Scenario,
    to: SocketAddr,
    sent: transfer::Sent,
) -> Result<(), Failure> {
    if sent.open {
        print_message(&format!("note: {to} has everything, but has not closed the connection"));
    }
    if sent.ignored > 0 {
        print_message(&format!("note: {to} sent {} bytes, which were discarded", sent.ignored));
    }
    reports.write_report(choice, sent.report, sent.end.since(Instant::ZERO), true)
}

/// Resolves a name to addresses, in the order of the system's resolver.
fn resolve(to: &str) -> Result<Vec<SocketAddr>, Failure> {
    let wrong = |why: &str| {
        Failure::input(format!(
            "{to}: {why}\nhelp: write a host and a port, as in far:5000, 10.55.0.2:5000 or [fd55::2]:5000"
        ))
    };
    let Some((_, port)) = to.rsplit_once(':') else { return Err(wrong("there is no port")) };
    if !port.parse::<u16>().is_ok_and(|p| p > 0) {
        return Err(wrong("a port is a number from 1 to 65535"));
    }
    let all: Vec<_> = to.to_socket_addrs().map_err(|e| wrong(&e.to_string()))?.collect();
    if all.is_empty() { Err(wrong("no host has this name")) } else { Ok(all) }
}
