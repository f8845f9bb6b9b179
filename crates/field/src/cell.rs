//! The configuration of one run, as given on the command line.

use crate::bed::Receiver;
use crate::hop::direction::{Disturbance, DisturbanceKind, MS, SECOND, Settings};
use crate::reader::Reader;
use std::path::PathBuf;

/// One connection.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The sender's congestion control.
    pub scheme: String,
    /// The receiving host.
    pub receiver: Receiver,
    /// How its program reads.
    pub reader: Reader,
    /// Bytes to send; `None`: no limit.
    pub bytes: Option<u64>,
    /// Rate of the sending application, bit/s; 0: no limit.
    pub app_rate: f64,
}

/// The configuration of one run.
#[derive(Clone, Debug)]
pub struct RunConfig {
    /// Rate, bit/s.
    pub rate: f64,
    /// One-way delay, ms.
    pub delay: f64,
    /// Loss probability towards the receiver, and back.
    pub loss: [f64; 2],
    /// Queue, bytes.
    pub queue: u64,
    /// Packets are delivered at multiples of this, ms, towards the receiver and back; 0: at once.
    pub frame: [f64; 2],
    /// Probability of reordering and the maximum extra delay, ms.
    pub reorder: (f64, f64),
    /// Probability of duplication.
    pub duplicate: f64,
    /// Scheduled disturbances of the hop.
    pub events: Vec<Disturbance>,
    /// Seed of the hop's random numbers.
    pub seed: u64,
    /// Connections.
    pub flows: Vec<Flow>,
    /// Rate of UDP datagrams to the first receiver, bit/s.
    pub udp: f64,
    /// Duration, s.
    pub seconds: f64,
    /// Start of the measured interval, s.
    pub measured_from: f64,
    /// Maximum send buffer of a socket, bytes.
    pub wmem: u64,
    /// The gateway program; `None`: no gateway.
    pub gateway: Option<PathBuf>,
    /// Extra lines for the gateway's configuration file.
    pub gateway_lines: String,
    /// Directory for captures and the gateway's output.
    pub out: Option<PathBuf>,
    /// Print the result as JSON.
    pub json: bool,
}

/// Usage text.
pub const USAGE: &str = "usage: field [OPTION VALUE]...      one run of the bed: kernel hosts, a hop of our own, the gateway before it (needs root)
  --rate 24e6        bit/s               --delay 500        ms one way
  --loss 0           towards the receiver --loss-back 0     of acknowledgments
  --queue 3000000    bytes               --seed 1
  --frame 0          ms, both ways       --bunch 0          ms, acknowledgments only
  --reorder P:MS     share, by up to     --duplicate P      share that arrives twice
  --at S:KIND:MS     hold, stop or half, at second S for so many ms; may be repeated
  --flows 1          connections alike   --cc cubic         or bbr, reno
  --old | --plain    receiver of 65535 B without scaling and timestamps; without SACK as well
  --reader HOW       eager, RATE, RATE/RATE@S (in turn), stop:S@EVERY
  --bytes N          each sends so much and ends   --app RATE   the sender's program writes so much, bit/s
  --flow SPEC        one more connection: words like cc=bbr,old,reader=8e6,bytes=1e6 by commas; in place of --flows
  --udp RATE         datagrams of 1000 B beside them, bit/s
  --wmem 67108864    most of a sending socket
  --seconds 100      --from 40           figures from this second on
  --no-gateway       --bin FILE (bentpipe beside this program)     --more 'LINES'  of the gateway's file
  --out DIR          captures of both ends, the gateway's log and status   --json";

impl Default for RunConfig {
    /// The default hop without flows.
    fn default() -> Self {
        let beside = std::env::current_exe().ok().map(|p| p.with_file_name("bentpipe"));
        Self {
            rate: 24e6,
            delay: 500.0,
            loss: [0.0; 2],
            queue: 3_000_000,
            frame: [0.0; 2],
            reorder: (0.0, 0.0),
            duplicate: 0.0,
            events: Vec::new(),
            seed: 1,
            flows: Vec::new(),
            udp: 0.0,
            seconds: 100.0,
            measured_from: 40.0,
            wmem: 67_108_864,
            gateway: beside,
            gateway_lines: String::new(),
            out: None,
            json: false,
        }
    }
}

impl RunConfig {
    /// Parses a command line.
    ///
    /// # Errors
    /// Names the wrong word.
    pub fn parse(words: &[String]) -> Result<Self, String> {
        let (mut cell, mut one, mut many) = (Self::default(), Flow::default(), 1);
        for (name, value) in options(words, &["--old", "--plain", "--no-gateway", "--json"], USAGE)? {
            match name {
                "--old" => one.receiver = Receiver::Old,
                "--plain" => one.receiver = Receiver::Plain,
                "--no-gateway" => cell.gateway = None,
                "--json" => cell.json = true,
                "--flows" => many = number(name, value)? as usize,
                "--cc" | "--reader" | "--bytes" | "--app" => one.set_option(&name[2..], value)?,
                _ => cell.set_option(name, value)?,
            }
        }
        if cell.flows.is_empty() {
            cell.flows = vec![one; many];
        }
        if cell.flows.is_empty() || cell.flows.len() > 64 || cell.seconds > 3600.0 {
            return Err("1 to 64 connections, at most 3600 s".to_owned());
        }
        cell.measured_from = cell.measured_from.min(cell.seconds * 0.4);
        Ok(cell)
    }

    fn set_option(&mut self, name: &str, value: &str) -> Result<(), String> {
        let n = || number(name, value);
        match name {
            "--rate" => self.rate = n()?.max(1.0),
            "--delay" => self.delay = n()?,
            "--loss" => self.loss[0] = n()?,
            "--loss-back" => self.loss[1] = n()?,
            "--queue" => self.queue = n()? as u64,
            "--frame" => self.frame = [n()?; 2],
            "--bunch" => self.frame[1] = n()?,
            "--duplicate" => self.duplicate = n()?,
            "--reorder" => {
                let (p, ms) = value.split_once(':').ok_or("--reorder 0.01:20")?;
                self.reorder = (number(name, p)?, number(name, ms)?);
            }
            "--at" => self.events.push(event(value)?),
            "--seed" => self.seed = n()? as u64,
            "--udp" => self.udp = n()?,
            "--seconds" => self.seconds = n()?,
            "--from" => self.measured_from = n()?,
            "--wmem" => self.wmem = n()? as u64,
            "--bin" => self.gateway = Some(value.into()),
            "--more" => self.gateway_lines = value.replace("\\n", "\n"),
            "--out" => self.out = Some(value.into()),
            "--flow" => self.flows.push(Flow::parse(value)?),
            _ => return Err(format!("unknown option {name}\n{USAGE}")),
        }
        Ok(())
    }

    /// Returns the settings of both directions of the hop.
    pub fn settings(&self) -> [Settings; 2] {
        let ns = |ms: f64| (ms * MS as f64) as u64;
        let one = |i: usize| Settings {
            rate: self.rate,
            delay: ns(self.delay),
            queue: self.queue,
            loss: self.loss[i],
            frame: ns(self.frame[i]),
            ..Settings::default()
        };
        let reorder = (self.reorder.0, ns(self.reorder.1));
        let there = Settings { reorder, duplicate: self.duplicate, events: self.events.clone(), ..one(0) };
        [there, one(1)]
    }
}

impl Default for Flow {
    fn default() -> Self {
        let (receiver, reader) = (Receiver::Modern, Reader::Eager);
        Self { scheme: "cubic".to_owned(), receiver, reader, bytes: None, app_rate: 0.0 }
    }
}

impl Flow {
    fn parse(text: &str) -> Result<Self, String> {
        let mut flow = Self::default();
        for word in text.split(',').filter(|w| !w.is_empty()) {
            match word.split_once('=') {
                None if word == "old" => flow.receiver = Receiver::Old,
                None if word == "plain" => flow.receiver = Receiver::Plain,
                None if word == "modern" => flow.receiver = Receiver::Modern,
                Some((name, value)) => flow.set_option(name, value)?,
                None => {
                    let words = "old, plain, modern, cc=, reader=, bytes=, app=";
                    return Err(format!("--flow {text}: {word}? There are {words}"));
                }
            }
        }
        Ok(flow)
    }

    fn set_option(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "cc" => value.clone_into(&mut self.scheme),
            "reader" => self.reader = value.parse()?,
            "bytes" => self.bytes = Some(number(name, value)? as u64),
            "app" => self.app_rate = number(name, value)?,
            _ => return Err(format!("{name}={value}: unknown")),
        }
        Ok(())
    }
}

/// Parses options: those in `switches` have no value, all others have one.
///
/// # Errors
/// If an option is unknown or has no value; shows `usage`.
pub fn options<'a>(
    words: &'a [String],
    switches: &[&str],
    usage: &str,
) -> Result<Vec<(&'a str, &'a str)>, String> {
    let (mut all, mut words) = (Vec::new(), words.iter());
    while let Some(name) = words.next() {
        let is_switch = switches.contains(&name.as_str());
        let value = if is_switch { Some("") } else { words.next().map(String::as_str) };
        let value = value.filter(|_| name.starts_with("--"));
        all.push((name.as_str(), value.ok_or_else(|| format!("{name}: what? or unknown\n{usage}"))?));
    }
    Ok(all)
}

fn number(name: &str, text: &str) -> Result<f64, String> {
    let n = text.parse::<f64>().ok().filter(|n| *n >= 0.0 && n.is_finite());
    n.ok_or_else(|| format!("{name} {text}: a number is needed, as 24e6 or 0.001"))
}

fn event(text: &str) -> Result<Disturbance, String> {
    let wrong = || format!("--at {text}: write SECOND:hold|stop|half:MS, as 50:hold:100");
    let parts: Vec<&str> = text.split(':').collect();
    let [at, kind, length] = parts[..] else { return Err(wrong()) };
    let kind = match kind {
        "hold" => DisturbanceKind::Hold,
        "stop" => DisturbanceKind::Stop,
        "half" => DisturbanceKind::Half,
        _ => return Err(wrong()),
    };
    let at = (number("--at", at)? * SECOND as f64) as u64;
    Ok(Disturbance { at, length: (number("--at", length)? * MS as f64) as u64, kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<RunConfig, String> {
        RunConfig::parse(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn a_command_line_is_a_cell() {
        let cell =
            parse("--loss 1e-3 --old --seconds 100 --seed 3 --at 50:hold:100 --bunch 50 --flows 2 --cc bbr")
                .unwrap();
        assert_eq!((cell.flows.len(), cell.flows[1].receiver, cell.seed), (2, Receiver::Old, 3));
        assert_eq!(cell.flows[0].scheme, "bbr");
        let [there, back] = cell.settings();
        assert_eq!((there.frame, back.frame, there.events.len(), back.events.len()), (0, 50 * MS, 1, 0));
        assert_eq!(
            there.events[0],
            Disturbance { at: 50 * SECOND, length: 100 * MS, kind: DisturbanceKind::Hold }
        );
        let cell = parse("--flow old,cc=reno,reader=8e6 --flow bytes=1e6 --seconds 10").unwrap();
        assert_eq!((cell.flows.len(), cell.flows[1].bytes), (2, Some(1_000_000)));
        assert!(cell.measured_from <= 4.0);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, why) in [
            ("--los 1", "unknown option --los"),
            ("--loss", "--loss: what?"),
            ("--loss x", "--loss x: a number"),
            ("--at 5:rain:1", "SECOND:hold|stop|half:MS"),
            ("--flow green", "green?"),
            ("--reader 1/2", "reader \"1/2\""),
            ("--flows 0", "1 to 64"),
        ] {
            let said = parse(text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
