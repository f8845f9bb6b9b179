//! Recordings of delay and loss: one number per line, or IRTT data in the format of the LENS dataset.
//!
//! Source of the LENS format: Zhao and Pan, "LENS: a LEO satellite network measurement dataset", ACM MMSys
//! 2024. Columns `timestamp,rtt,uplink,downlink`: time in nanoseconds (in its `ping` files, in seconds),
//! the others in milliseconds. -1 is a lost packet; -1 in `rtt` means that the direction of the loss is not
//! known. The other columns of such a row are 0. Packets were sent every 10 ms.

use super::{LATER, LineError, amount, check_length, line_error, lines, wrong_line};
use crate::quantity;
use bentpipe_base::{Duration, Instant, Probability};
use bentpipe_link::SHORTEST_STEP;

const MAX_LINES: usize = 100_000;
/// Times with at least this many digits are in nanoseconds: in seconds they would be out of range.
const NANOSECOND_DIGITS: usize = 15;
const TOO_LONG: &str = "the recording is longer than a year";

/// Contents of a recording: samples with their times, and the total length.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Recording {
    pub(crate) samples: Vec<(Instant, Sample)>,
    pub(crate) length: Duration,
}

/// One line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Sample {
    Delay(Duration),
    /// Probability of loss.
    Loss(Probability),
    Lost,
    /// The packet was lost in the other direction, so nothing is known about this one.
    Unknown,
}

/// True if the first line is a table header.
pub(crate) fn is_table(text: &str) -> bool {
    text.lines()
        .next()
        .is_some_and(|first| first.contains(',') && first.contains(|c: char| c.is_alphabetic()))
}

/// Parses one delay in milliseconds per line, each lasting `every`; -1 is a lost packet.
pub(crate) fn delays(text: &str, every: Duration) -> Result<Recording, LineError> {
    let label = "each line holds a one-way delay in milliseconds, or -1 for a lost packet";
    plain(text, every, |line| sample(line, 1), "is not a delay", label)
}

/// Parses one probability of loss per line, each lasting `every`.
pub(crate) fn losses(text: &str, every: Duration) -> Result<Recording, LineError> {
    let read = |line: &str| line.parse().ok().and_then(Probability::new).map(Sample::Loss);
    plain(text, every, read, "is not a probability", "each line holds a probability of loss, from 0 to 1")
}

/// Parses one sample per line. `what` and `label` are for the error of a line that is not a sample.
fn plain(
    text: &str,
    every: Duration,
    read: impl Fn(&str) -> Option<Sample>,
    what: &str,
    label: &str,
) -> Result<Recording, LineError> {
    let mut samples: Vec<(Instant, Sample)> = Vec::new();
    for (n, line) in lines(text) {
        check_length(n, "recording", &samples, MAX_LINES)?;
        let at = Instant::ZERO + every * samples.len() as u64;
        if at.0 > quantity::YEAR {
            return Err(line_error(n, TOO_LONG, format!("a line is for {every}")));
        }
        samples.push((at, read(line).ok_or_else(|| wrong_line(n, line, what, label))?));
    }
    if samples.is_empty() {
        return Err(line_error(1, "the recording is empty", "it needs at least one line"));
    }
    let length = every * samples.len() as u64;
    Ok(Recording { samples, length })
}

/// Parses a column of a table with the header `timestamp,...`. Half of `rtt` is used as the one-way delay.
pub(crate) fn table(text: &str, column: &str) -> Result<Recording, LineError> {
    let mut lines = lines(text);
    let names: Vec<&str> = lines.next().map_or("", |first| first.1).split(',').map(str::trim).collect();
    let place = |name: &str| names.iter().position(|n| *n == name);
    let time = place("timestamp")
        .ok_or_else(|| line_error(1, "there is no column `timestamp`", "the first line names the columns"))?;
    let own = place(column).filter(|place| *place != time).ok_or_else(|| {
        let others: Vec<&str> = names.iter().copied().filter(|n| *n != "timestamp").collect();
        let label = format!("its columns are {}", others.join(", "));
        line_error(1, format!("there is no column `{column}`"), label)
    })?;
    let (rtt, divisor) = (place("rtt").filter(|rtt| *rtt != own), if column == "rtt" { 2 } else { 1 });
    let mut all: Vec<(u64, Sample)> = Vec::new();
    for (n, line) in lines {
        check_length(n, "recording", &all, MAX_LINES)?;
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        if cells.len() != names.len() {
            let label = format!("the header names {} columns, this line has {}", names.len(), cells.len());
            return Err(wrong_line(n, line, "is not a row of the table", label));
        }
        let at = timestamp(cells[time]).ok_or_else(|| {
            let label = "a time in nanoseconds, or in seconds with a point";
            wrong_line(n, cells[time], "is not a timestamp", label)
        })?;
        let value = |place: usize, divisor| {
            sample(cells[place], divisor).ok_or_else(|| {
                let label = format!("`{}` is in milliseconds, or -1 for a lost packet", names[place]);
                wrong_line(n, cells[place], "is not a delay", label)
            })
        };
        let mut sample = value(own, divisor)?;
        for (i, name) in names.iter().enumerate() {
            // a packet lost in the other direction has 0 here, unless the direction of the loss is not known
            let other = i != own && matches!(*name, "rtt" | "uplink" | "downlink");
            if other && value(i, 1)? == Sample::Lost && sample != Sample::Lost {
                sample = if Some(i) == rtt || divisor == 2 { Sample::Lost } else { Sample::Unknown };
            }
        }
        match all.last() {
            Some((last, _)) if at <= *last => {
                return Err(line_error(n, "the recording goes back in time", LATER));
            }
            Some((last, _)) if at - last < SHORTEST_STEP.0 => {}
            _ => all.push((at, sample)),
        }
    }
    relative_times(all)
}

/// Makes times relative to the first row. The last sample lasts as long as the others do on average.
fn relative_times(all: Vec<(u64, Sample)>) -> Result<Recording, LineError> {
    let (first, last) = match &all[..] {
        [] => return Err(line_error(2, "the recording is empty", "it needs at least two rows")),
        [_] => return Err(line_error(2, "the recording is too short", "it needs at least two rows")),
        [first, .., last] => (first.0, last.0),
    };
    let gap = (last - first) / (all.len() as u64 - 1);
    let length = Duration((last - first).saturating_add(gap));
    if length.0 > quantity::YEAR {
        return Err(line_error(all.len() + 1, TOO_LONG, ""));
    }
    let samples = all.into_iter().map(|(at, sample)| (Instant(at - first), sample)).collect();
    Ok(Recording { samples, length })
}

/// Parses a timestamp into nanoseconds.
fn timestamp(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if digits && text.len() >= NANOSECOND_DIGITS {
        return text.parse().ok();
    }
    amount(text, 1_000_000_000, u64::MAX)
}

/// Parses milliseconds or -1. The delay is divided by `divisor`: 2 for a round-trip time.
fn sample(text: &str, divisor: u64) -> Option<Sample> {
    let ms = text.parse::<f64>().ok()?;
    if ms.total_cmp(&-1.0).is_eq() {
        return Some(Sample::Lost);
    }
    let ns = ms * 1e6 / divisor as f64;
    (ns >= 0.0 && ns <= quantity::YEAR as f64).then_some(Sample::Delay(Duration((ns + 0.5) as u64)))
}

impl Recording {
    /// Returns the delays over time. A lost packet gets the delay of the packet before it; at the beginning,
    /// that of the next one. `None` if all packets were lost.
    pub(crate) fn delays(&self) -> Option<Vec<(Instant, Duration)>> {
        let known = |s: &(Instant, Sample)| match s.1 {
            Sample::Delay(delay) => Some(delay),
            Sample::Loss(_) | Sample::Lost | Sample::Unknown => None,
        };
        let mut last = self.samples.iter().find_map(known)?;
        let hold = |s: &(Instant, Sample)| {
            last = known(s).unwrap_or(last);
            (s.0, last)
        };
        Some(without_repeats(self.samples.iter().map(hold)))
    }

    /// Returns the loss probabilities over time. A single packet was lost with probability 1 or 0.
    pub(crate) fn losses(&self) -> Vec<(Instant, Probability)> {
        let p = |s: &(Instant, Sample)| match s.1 {
            Sample::Loss(p) => (s.0, p),
            Sample::Lost => (s.0, Probability::ONE),
            Sample::Delay(_) | Sample::Unknown => (s.0, Probability::ZERO),
        };
        without_repeats(self.samples.iter().map(p))
    }
}

/// Removes samples that repeat the value before.
fn without_repeats<T: Copy + PartialEq>(samples: impl Iterator<Item = (Instant, T)>) -> Vec<(Instant, T)> {
    let mut all: Vec<(Instant, T)> = Vec::new();
    for (at, value) in samples {
        if all.last().is_none_or(|last| last.1 != value) {
            all.push((at, value));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: Duration = Duration::from_millis(10);

    fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn a_delay_per_line_holds_for_an_interval_and_a_loss_keeps_the_delay() {
        let read = delays("-1\n20.5\r\n20.5\n-1\n31", TEN).unwrap();
        assert_eq!(read.length, TEN * 5);
        assert_eq!(read.delays(), Some(vec![(at(0), us(20_500)), (at(40), us(31_000))]));
        let (one, zero) = (Probability::ONE, Probability::ZERO);
        assert_eq!(read.losses(), [(at(0), one), (at(10), zero), (at(30), one), (at(40), zero)]);
        assert_eq!(delays("-1\n-1\n", TEN).unwrap().delays(), None);
    }

    /// The example of the dataset's description, evaluated for each column.
    #[test]
    fn a_table_of_irtt_says_which_way_a_packet_was_lost() {
        let text = "timestamp,rtt,uplink,downlink\n1705744800616897349,0,0,-1\n1705744800626565141,120.126123,72.439368,47.68675\n\
                    1705744800636737402,-1,0,0\n1705744800646307744,0,-1,0\n";
        let samples = |column| table(text, column).unwrap().samples.iter().map(|s| s.1).collect::<Vec<_>>();
        let (lost, unknown, delay) = (Sample::Lost, Sample::Unknown, |ns| Sample::Delay(Duration(ns)));
        assert_eq!(samples("uplink"), [unknown, delay(72_439_368), lost, lost]);
        assert_eq!(samples("downlink"), [lost, delay(47_686_750), lost, unknown]);
        assert_eq!(samples("rtt"), [lost, delay(60_063_062), lost, lost]);
        let read = table(text, "rtt").unwrap();
        assert_eq!(read.samples[1].0, Instant(9_667_792));
        assert_eq!(read.length, Duration(29_410_395 + 29_410_395 / 3));
        let ping = table("timestamp,rtt\n1705744800.533641,91.8\n1705744800.55492,96.5\n", "rtt").unwrap();
        assert_eq!(ping.samples, [(Instant(0), delay(45_900_000)), (Instant(21_279_000), delay(48_250_000))]);
    }

    #[test]
    fn a_wrong_line_is_named() {
        for (text, line) in [
            ("", 1),
            ("20\nx", 2),
            ("20\n\n20", 2),
            ("20\n-2", 2),
            ("nan", 1),
            ("20\ninf", 2),
            ("1e99", 1),
            ("20, 30", 1),
        ] {
            assert_eq!(delays(text, TEN).map_err(|w| w.line), Err(line), "{text:?}");
        }
        for (text, line) in [("", 1), ("0\n1.5", 2), ("0.5\n-1", 2), ("0\nnan", 2)] {
            assert_eq!(losses(text, TEN).map_err(|w| w.line), Err(line), "{text:?}");
        }
        for (text, line) in [
            ("rtt,uplink\n1,2", 1),
            ("timestamp,uplink\n1,2", 1),
            ("timestamp,rtt\n", 2),
            ("timestamp,rtt\n1,2\n", 2),
            ("timestamp,rtt\n1,2\n2", 3),
            ("timestamp,rtt\n1,2\n2,3,4", 3),
            ("timestamp,rtt\n1,2\n1,3", 3),
            ("timestamp,rtt\n1,2\n0.5,3", 3),
            ("timestamp,rtt\n1,2\nx,3", 3),
            ("timestamp,rtt\n1,2\n-5,3", 3),
            ("timestamp,rtt\n1,2\n2,-3", 3),
            ("timestamp,rtt\n1,2\n2,", 3),
            ("timestamp,rtt\n1,2\n99999999999999999999999,3", 3),
            ("timestamp,rtt\n1,2\n1705744800616897349,3", 3),
            ("timestamp,rtt,uplink\n1,2,3\n2,2,x", 3),
        ] {
            assert_eq!(table(text, "rtt").map_err(|w| w.line), Err(line), "{text:?}");
        }
    }

    #[test]
    fn rows_closer_than_any_step_are_left_out() {
        let read = table("timestamp,rtt\n1,2\n1.00001,4\n1.0002,6\n1.01,8\n", "rtt").unwrap();
        assert_eq!(read.samples.iter().map(|s| s.0.0).collect::<Vec<_>>(), [0, 200_000, 10_000_000]);
    }
}
