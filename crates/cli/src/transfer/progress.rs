//! Progress of a transfer, in one line that is redrawn. Nothing is drawn if standard error is no terminal or
//! this process is not in its foreground: of two ends that `bentpipe emulate` runs on one terminal, only the
//! near one is.

use crate::locale;
use bentpipe_live::transfer::TransferProgress;
use core::fmt::Write as _;
use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::process::getpgrp;
use rustix::termios::tcgetpgrp;
use std::io;

pub(super) struct Progress {
    bar: ProgressBar,
    /// Time and bytes of recent samples, for the rate.
    recent: Vec<(f64, u64)>,
}

/// Number of samples, about one second, over which the rate is averaged.
const LOOKS: usize = 10;

impl Progress {
    /// Creates the progress line of a transfer of `length` bytes, if known.
    pub(super) fn new(length: Option<u64>) -> Self {
        let (bar, form) = match length {
            Some(length) => (ProgressBar::new(length), "{wide_bar} {percent} %  {msg}"),
            None => (ProgressBar::new_spinner(), "{spinner} {msg}"),
        };
        if let Ok(style) = ProgressStyle::with_template(form) {
            let plain = !locale::is_utf8();
            bar.set_style(if plain { style.progress_chars("#>.").tick_chars("-\\|/ ") } else { style });
        }
        if tcgetpgrp(io::stderr()).is_ok_and(|foreground| foreground != getpgrp()) {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        Self { bar, recent: Vec::new() }
    }

    pub(super) fn update(&mut self, look: TransferProgress) {
        let now = look.elapsed.as_secs_f64();
        if self.recent.len() > LOOKS {
            self.recent.remove(0);
        }
        let (since, before) = self.recent.first().copied().unwrap_or((0.0, 0));
        self.recent.push((now, look.bytes));
        let rate = (look.bytes - before) as f64 * 8.0 / (now - since).max(1e-9);
        self.bar.set_position(look.bytes);
        self.bar.set_message(line(&look, rate));
    }

    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// Formats "12.0 MiB  24.1 Mbit/s  RTT 551 ms  12 of 8704 segments resent"
fn line(look: &TransferProgress, rate: f64) -> String {
    let mut line = format!("{}  {:.1} Mbit/s", HumanBytes(look.bytes), rate / 1e6);
    if !look.rtt.is_zero() {
        let _ = write!(line, "  RTT {:.0} ms", look.rtt.as_millis_f64());
    }
    if look.segments.0 > 0 {
        let _ = write!(line, "  {} of {} segments resent", look.segments.1, look.segments.0);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::Duration;

    #[test]
    fn the_line_says_rate_round_trip_and_losses() {
        let look = TransferProgress {
            elapsed: Duration::from_secs(2),
            bytes: 3 << 20,
            rtt: Duration::from_millis(551),
            segments: (2100, 7),
        };
        assert_eq!(line(&look, 24.06e6), "3.00 MiB  24.1 Mbit/s  RTT 551 ms  7 of 2100 segments resent");
        let opening =
            TransferProgress { elapsed: Duration::ZERO, bytes: 0, rtt: Duration::ZERO, segments: (0, 0) };
        assert_eq!(line(&opening, 0.0), "0 B  0.0 Mbit/s");
    }
}
