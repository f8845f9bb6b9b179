//! Parses trace files. The caller reads the text; errors name the line.

pub(crate) mod series;

use crate::lists::millis;
use crate::quantity::{self, exact};
use crate::scalars::excerpt;
use bentpipe_base::{Duration, Instant, Rate};

/// Maximum number of sending opportunities of a mahimahi trace.
const MAX_OPPORTUNITIES: usize = 500_000;
/// Maximum number of points of a rate series.
const MAX_POINTS: usize = 100_000;
/// First line of a rate series.
const HEADER: &str = "time_s,rate_bps";
const LATER: &str = "each time is later than the one before";

/// Reads the files that a scenario refers to. This crate opens none itself.
pub trait Files {
    /// Returns the text of the file at `path`, which is as the scenario gives it.
    ///
    /// # Errors
    /// The reason, in a few words, why it cannot be read.
    fn read(&self, path: &str) -> Result<String, String>;
}

/// [`Files`] for callers that have no files.
#[derive(Clone, Copy, Debug)]
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &str) -> Result<String, String> {
        Err("files cannot be read here".to_owned())
    }
}

/// An error in a file, with its line and a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LineError {
    /// Line number, from 1.
    pub(crate) line: usize,
    pub(crate) message: String,
    pub(crate) label: String,
}

fn line_error(line: usize, message: impl Into<String>, label: impl Into<String>) -> LineError {
    LineError { line, message: message.into(), label: label.into() }
}

/// Returns an error that quotes the line. `what` says what is wrong and begins with a verb.
fn wrong_line(n: usize, line: &str, what: &str, label: impl Into<String>) -> LineError {
    line_error(n, format!("\"{}\" {what}", excerpt(line)), label)
}

/// Returns an error at line `n` if `what` already has as many entries as it may have.
fn check_length<T>(n: usize, what: &str, entries: &[T], most: usize) -> Result<(), LineError> {
    if entries.len() < most {
        return Ok(());
    }
    Err(line_error(n, format!("the {what} is too long"), format!("the limit is {most} lines")))
}

/// Parses a mahimahi trace: one whole number of milliseconds per line, increasing, the last not zero.
pub(crate) fn mahimahi(text: &str) -> Result<Vec<Duration>, LineError> {
    let mut all: Vec<Duration> = Vec::new();
    for (n, line) in lines(text) {
        check_length(n, "trace", &all, MAX_OPPORTUNITIES)?;
        let digits = line.bytes().all(|b| b.is_ascii_digit());
        let Some(number) = line.parse::<i128>().ok().filter(|_| digits) else {
            let label = "each line holds one whole number: the millisecond at which a packet may leave";
            return Err(wrong_line(n, line, "is not a time", label));
        };
        let time = millis(number).map_err(|why| line_error(n, format!("{line} ms is {why}"), ""))?;
        if all.last().is_some_and(|last| *last > time) {
            let label = "times are in order; several lines may say the same";
            return Err(line_error(n, "the trace goes back in time", label));
        }
        all.push(time);
    }
    match all.last() {
        None => Err(line_error(1, "the trace is empty", "it needs at least one line")),
        Some(last) if last.is_zero() => {
            let label = "the last time is its length, so it is more than zero";
            Err(line_error(all.len(), "the trace ends at 0 ms", label))
        }
        _ => Ok(all),
    }
}

/// Parses rates over time: a header, then a time in seconds and a rate in bit/s per line. 0: nothing is sent.
pub(crate) fn rates(text: &str) -> Result<Vec<(Instant, Option<Rate>)>, LineError> {
    let mut lines = lines(text);
    if lines.next().is_none_or(|(_, first)| first != HEADER) {
        return Err(line_error(1, "the header is missing", format!("the first line says {HEADER}")));
    }
    let mut all: Vec<(Instant, Option<Rate>)> = Vec::new();
    for (n, line) in lines {
        check_length(n, "list", &all, MAX_POINTS)?;
        let Some((time, rate)) = line.split_once(',') else {
            let label = "write them with a comma between, as in 60,1500000";
            return Err(wrong_line(n, line, "is not a time and a rate", label));
        };
        let time = amount(time, 1_000_000_000, quantity::YEAR).ok_or_else(|| {
            wrong_line(n, line, "does not begin with a time", "it is in seconds, at most a year")
        })?;
        let rate = amount(rate, 1, quantity::RATE.most.0).ok_or_else(|| {
            let label = "it is in bit/s, a whole number; 0 carries nothing";
            wrong_line(n, line, "does not end with a rate", label)
        })?;
        if all.last().is_some_and(|(last, _)| last.0 >= time) {
            return Err(line_error(n, "the list goes back in time", LATER));
        }
        all.push((Instant(time), Rate::from_bps(rate)));
    }
    if all.is_empty() {
        return Err(line_error(2, "the list is empty", "it needs at least one line"));
    }
    Ok(all)
}

/// Returns the lines with their numbers, from 1. A final newline is optional.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(n, line)| (n + 1, line.trim()))
}

/// Returns a decimal number times `scale` if the product is whole.
fn amount(text: &str, scale: u64, most: u64) -> Option<u64> {
    let (number, rest) = quantity::split_unit(text.trim());
    if number.is_empty() || !rest.is_empty() {
        return None;
    }
    exact(number, scale).ok().filter(|n| *n <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_are_read_exactly() {
        let ms = Duration::from_millis;
        assert_eq!(mahimahi("0\n5\r\n5\n12"), Ok(vec![ms(0), ms(5), ms(5), ms(12)]));
        let rate = |n| Rate::from_bps(n);
        let read = rates("time_s,rate_bps\n0,1000\n1.5, 0\n2e1,7\n");
        assert_eq!(
            read,
            Ok(vec![
                (Instant(0), rate(1000)),
                (Instant(1_500_000_000), None),
                (Instant(20_000_000_000), rate(7))
            ])
        );
    }

    #[test]
    fn a_wrong_line_is_named() {
        for (text, line) in [
            ("", 1),
            ("1\n\n2", 2),
            ("1\nx", 2),
            ("1\n-1", 2),
            ("3\n2", 2),
            ("0\n0\n", 2),
            ("1\n99999999999999999999999999999999999999999999", 2),
            ("1.5", 1),
        ] {
            assert_eq!(mahimahi(text).map_err(|w| w.line), Err(line), "{text:?}");
        }
        for (text, line) in [
            ("", 1),
            ("0,1", 1),
            ("time_s,rate_bps", 2),
            ("time_s,rate_bps\n0,1\n0,2", 3),
            ("time_s,rate_bps\n0;1", 2),
            ("time_s,rate_bps\n0,1\n1,1.5", 3),
            ("time_s,rate_bps\n-1,5", 2),
        ] {
            assert_eq!(rates(text).map_err(|w| w.line), Err(line), "{text:?}");
        }
    }
}
