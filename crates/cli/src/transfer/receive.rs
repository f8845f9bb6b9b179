//! `bentpipe receive [ADDR:]PORT [FILE]`.

use super::progress::Progress;
use super::{Common, duplicate_stream, opened, seed};
use crate::outcome::{Failure, print_message};
use bentpipe_base::Instant;
use bentpipe_live::endpoint::HostEndpoint;
use bentpipe_live::transfer::{self, Sink};
use clap::Args;
use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

pub(crate) const EXAMPLES: &str = "Examples:
  bentpipe emulate geo-10m --far 'bentpipe receive 5000 copy' -- bentpipe send far:5000 FILE
  bentpipe emulate winds-24m --far 'bentpipe receive 5000 copy --set window=\"65535 B\"' -- nc -N far 5000 < FILE

Exit status: 0 when everything up to the sender's end has been written, 1 when not, 2 when the command line is at fault.";

/// Options of `bentpipe receive`.
#[derive(Debug, Args)]
pub(crate) struct Receive {
    /// The port to listen at, optionally at only one address of this host: `5000`, `10.55.0.2:5000`,
    /// `[fd55::2]:5000`.
    #[arg(value_name = "[ADDR:]PORT")]
    at: String,
    /// File for the received data; without it standard output, and the report goes to standard error.
    file: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

/// Receives a file and prints the report.
pub(crate) fn receive(args: &Receive) -> Result<(), Failure> {
    let choice = args.common.scenario(&format!("receive at {}", args.at))?;
    let (address, port) = parse_listen_address(&args.at)?;
    let mut reports = args.common.reports()?;
    let mut host = HostEndpoint::at(address, port, seed()?).map_err(Failure::run)?;
    let file = match &args.file {
        Some(path) => opened(path, File::create(path))?,
        None => duplicate_stream(io::stdout(), "standard output")?,
    };
    let mut sink = Sink::new(file).map_err(Failure::run)?;
    let at: Vec<_> = host.addresses.iter().map(|a| SocketAddr::new(*a, port).to_string()).collect();
    print_message(&format!("waiting at {}", at.join(" and ")));
    let mut progress = Progress::new(None);
    let config = &choice.flows[0].receiver;
    let received = transfer::receive(&mut host, config, &mut sink, &mut |look| progress.update(look));
    progress.end();
    let received = received.map_err(Failure::run)?;
    let ran = received.end.since(Instant::ZERO);
    reports.write_report(&choice, received.report, ran, args.file.is_some())
}

/// Parses `[ADDR:]PORT`. An unspecified address, such as `0.0.0.0`, is the same as none.
fn parse_listen_address(text: &str) -> Result<(Option<IpAddr>, u16), Failure> {
    let wrong = |why: String| {
        Failure::input(format!(
            "{text}: {why}\nhelp: write a port, or an address and a port: 5000, 10.55.0.2:5000, [fd55::2]:5000"
        ))
    };
    let (address, port) = text.rsplit_once(':').map_or((None, text), |(address, port)| (Some(address), port));
    let port = port.parse().ok().filter(|p| *p > 0);
    let port = port.ok_or_else(|| wrong("a port is a number from 1 to 65535".to_owned()))?;
    let bare = address.map(|a| a.strip_prefix('[').and_then(|a| a.strip_suffix(']')).unwrap_or(a));
    let address = bare.map(|a| a.parse::<IpAddr>().map_err(|_| wrong(format!("\"{a}\" is not an address"))));
    let address = address.transpose()?.filter(|a| !a.is_unspecified());
    Ok((address, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_port_and_perhaps_an_address() {
        let at = |text| parse_listen_address(text).ok();
        assert_eq!(at("5000"), Some((None, 5000)));
        assert_eq!(at("0.0.0.0:80"), Some((None, 80)));
        assert_eq!(at("10.55.0.2:5000"), Some((Some(IpAddr::from([10, 55, 0, 2])), 5000)));
        assert_eq!(at("[::1]:1"), Some((Some("::1".parse().unwrap()), 1)));
        for wrong in ["", "0", "65536", "x", "far:5000", "1.2.3.4:", ":5000x"] {
            assert_eq!(at(wrong), None, "{wrong}");
        }
    }
}
