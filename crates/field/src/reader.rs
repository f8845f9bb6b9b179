//! Receiving programs: they read as fast as possible, at one rate, at alternating rates, or with pauses.

use bentpipe_os::Clock;
use std::fmt;
use std::io::{self, ErrorKind, Read};
use std::net::TcpStream;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// How a program reads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Reader {
    /// Reads everything at once.
    #[default]
    Eager,
    /// One rate, bit/s.
    Rate(f64),
    /// Two rates alternately, bit/s, and the time for each, s.
    Turns([f64; 2], f64),
    /// Reads everything, with pauses: their length, and the time from one to the next, s.
    Stops(f64, f64),
}

impl FromStr for Reader {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "reader \"{text}\": write eager, RATE (bit/s), RATE/RATE@SECONDS for two in turn, or stop:SECONDS@EVERY"
            )
        };
        let number =
            |text: &str| text.parse::<f64>().ok().filter(|n| *n > 0.0 && n.is_finite()).ok_or_else(wrong);
        if text == "eager" {
            return Ok(Self::Eager);
        }
        if let Some((length, every)) = text.strip_prefix("stop:").and_then(|rest| rest.split_once('@')) {
            return Ok(Self::Stops(number(length)?, number(every)?));
        }
        match text.split_once('@') {
            None => number(text).map(Self::Rate),
            Some((rates, seconds)) => {
                let (one, other) = rates.split_once('/').ok_or_else(wrong)?;
                Ok(Self::Turns([number(one)?, number(other)?], number(seconds)?))
            }
        }
    }
}

impl fmt::Display for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Eager => f.write_str("eager"),
            Self::Rate(rate) => write!(f, "{} Mbit/s", rate / 1e6),
            Self::Turns([one, other], each) => {
                write!(f, "{}/{} Mbit/s every {each} s", one / 1e6, other / 1e6)
            }
            Self::Stops(length, _) => write!(f, "stops of {length} s"),
        }
    }
}

impl Reader {
    /// Bytes it may have read by `t` seconds if data is always available; `None`: no limit.
    fn allowed(self, t: f64) -> Option<f64> {
        match self {
            Self::Rate(rate) => Some(rate * t / 8.0),
            Self::Turns([one, other], seconds) => {
                let turns = (t / seconds).floor();
                let whole = (turns / 2.0).floor();
                let (first, second) = (turns - whole, whole);
                let now = if turns % 2.0 < 1.0 { one } else { other };
                Some((first * one * seconds + second * other * seconds + (t - turns * seconds) * now) / 8.0)
            }
            Self::Eager | Self::Stops(..) => None,
        }
    }

    /// True if it pauses at `t` seconds.
    fn is_paused(self, t: f64) -> bool {
        match self {
            Self::Stops(length, every) => t >= every && t % every < length,
            _ => false,
        }
    }
}

/// Polling interval of a rate-limited reader: short compared with the 22 ms in which 24 Mbit/s fill 64 KB.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Reads until the stream ends or `end` is set; adds the bytes to `total`. `clock` gives the time since the
/// start of the run.
pub fn read(stream: &mut TcpStream, how: Reader, clock: Clock, total: &AtomicU64, end: &AtomicBool) {
    let mut buffer = vec![0; 256 << 10];
    let _ = stream.set_read_timeout(Some(Duration::from_millis(100)));
    let mut granted = 0.0;
    let mut before = clock.now().0 as f64 / 1e9;
    while !end.load(Ordering::Relaxed) {
        let now = clock.now().0 as f64 / 1e9;
        if how.is_paused(now) {
            thread::sleep(POLL_INTERVAL);
            continue;
        }
        let mut most = buffer.len();
        if let (Some(to), Some(from)) = (how.allowed(now), how.allowed(before)) {
            // the unused allowance is limited, so that a reader does not catch up in a burst
            granted = f64::min(granted + to - from, 16_384.0);
            before = now;
            most = most.min(granted as usize);
            if most == 0 {
                thread::sleep(POLL_INTERVAL);
                continue;
            }
        }
        match stream.read(&mut buffer[..most]) {
            Ok(0) => return,
            Ok(n) => {
                total.fetch_add(n as u64, Ordering::Relaxed);
                if how.allowed(now).is_some() {
                    granted -= n as f64;
                    thread::sleep(POLL_INTERVAL);
                }
            }
            Err(e) if is_temporary(&e) => {}
            Err(_) => return,
        }
    }
}

/// True for an error after which the call may be repeated.
pub(crate) fn is_temporary(e: &io::Error) -> bool {
    matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_are_read_from_text() {
        assert_eq!("eager".parse(), Ok(Reader::Eager));
        assert_eq!("8e6".parse(), Ok(Reader::Rate(8e6)));
        assert_eq!("24e6/2e6@5".parse(), Ok(Reader::Turns([24e6, 2e6], 5.0)));
        assert_eq!("stop:0.5@30".parse(), Ok(Reader::Stops(0.5, 30.0)));
        for wrong in ["", "x", "-1", "0", "1/2", "1@2", "stop:1", "stop:x@3", "inf"] {
            assert!(wrong.parse::<Reader>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn rates_alternate_and_stops_come_one_in_each_span() {
        let turns = Reader::Turns([24e6, 8e6], 5.0);
        let mb = |t| turns.allowed(t).unwrap() / 1e6;
        for (t, expected) in [(1.0, 3.0), (5.0, 15.0), (6.0, 16.0), (10.0, 20.0), (12.0, 26.0)] {
            assert!((mb(t) - expected).abs() < 1e-9, "{t}: {}", mb(t));
        }
        let stops = Reader::Stops(0.5, 30.0);
        assert!(
            !stops.is_paused(0.1) && stops.is_paused(30.1) && !stops.is_paused(30.6) && stops.is_paused(60.4)
        );
    }
}
