//! What commands that make many runs say meanwhile, on standard error: how far they are, how long the rest
//! takes, and what is kept when a signal ends them.

use crate::locale;
use crate::outcome::print_message;
use bentpipe_base::{Duration, Instant};
use bentpipe_os::Clock;
use bentpipe_service::Signals;
use bentpipe_sweep::{LiveProgress, Progress, Summary, Tell};
use core::fmt::Write as _;
use indicatif::{ProgressBar, ProgressStyle};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use rustix::time::{ClockId, clock_gettime};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// How often the line of a terminal is drawn.
const DRAWN_EVERY: Duration = Duration::from_millis(250);
/// How often a line is written where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(30);
/// From this time on a command says beforehand how long it takes.
const LONG: f64 = 60.0;
/// After this time the estimate may be made from a part of the combinations.
const TRIAL: Duration = Duration::from_secs(10);

/// What is said of runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'a> {
    /// The folder where finished runs are kept.
    pub(crate) out: Option<&'a Path>,
    /// What has several runs: combinations, points, values.
    pub(crate) cells: &'static str,
}

/// Calls `work`, and says how far it is. If a signal ends the process, says what is kept, and how to go on.
pub(crate) fn with_progress<T>(words: Words<'_>, work: impl FnOnce(Tell<'_>) -> T) -> T {
    let caught: Vec<Signal> = [Signal::INT, Signal::TERM, Signal::HUP]
        .into_iter()
        .filter(|signal| !Signals::is_ignored(*signal))
        .collect();
    let (Ok(signals), Ok((end, ended))) = (Signals::listen(&caught), UnixStream::pair()) else {
        return work(&|_| ());
    };
    let clock = Clock::start();
    let latest = Mutex::new((Progress::default(), Instant::ZERO));
    let tell = |progress: &Progress| {
        *latest.lock().unwrap_or_else(PoisonError::into_inner) = (*progress, clock.now());
    };
    thread::scope(|scope| {
        let watcher = Watcher { words, clock, latest: &latest, signals };
        scope.spawn(move || watcher.watch(&ended));
        let done = work(&tell);
        // the watcher sees this, also when `work` panics
        drop(end);
        done
    })
}

/// Says how many runs were made, in which time, and where the page is.
pub(crate) fn print_summary(done: Summary, out: &Path, page: Option<&str>, clock: Clock) {
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    print_message(&format!(
        "{} runs made, {} kept, in {}; {:.2} s of CPU, {:.2} s",
        done.executed,
        done.already_stored,
        out.display(),
        cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9,
        clock.now().as_secs_f64(),
    ));
    print_page(out, page);
}

/// Says how many live runs were made, if any were wanted.
pub(crate) fn print_live(done: Option<Summary>) {
    if let Some(Summary { executed, already_stored }) = done {
        print_message(&format!("{executed} live runs made, {already_stored} kept"));
    }
}

/// Says where the page is.
pub(crate) fn print_page(out: &Path, page: Option<&str>) {
    if let Some(page) = page {
        print_message(&format!("page: {}", out.join(page).display()));
    }
}

/// The thread that speaks.
struct Watcher<'a> {
    words: Words<'a>,
    clock: Clock,
    /// The latest progress, and when it was told.
    latest: &'a Mutex<(Progress, Instant)>,
    signals: Signals,
}

impl Watcher<'_> {
    /// Speaks until the other end of `ended` is closed.
    fn watch(mut self, ended: &UnixStream) {
        // a line on a terminal; hidden if standard error is none
        let style =
            ProgressStyle::with_template("{wide_msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::new_spinner().with_style(style);
        let mut speaker = Speaker::default();
        let wait = Timespec { tv_sec: 0, tv_nsec: DRAWN_EVERY.0.cast_signed() };
        loop {
            let mut polled = [
                PollFd::new(ended, PollFlags::IN),
                PollFd::from_borrowed_fd(self.signals.fd(), PollFlags::IN),
            ];
            let _ = poll(&mut polled, Some(&wait));
            let has_ended = !polled[0].revents().is_empty();
            let signal = self.signals.take().first().copied();
            if has_ended || signal.is_some() {
                bar.finish_and_clear();
            }
            let (progress, at) = *self.latest.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(signal) = signal {
                print_message(&interrupted(&progress, self.words.out, &command()));
                bentpipe_service::end_by(signal);
            }
            if has_ended {
                return;
            }
            let now = self.clock.now();
            let (said, line) = speaker.next(&progress, (at, now), self.words.cells, !bar.is_hidden());
            if let Some(said) = said {
                bar.suspend(|| print_message(&said));
            }
            bar.set_message(locale::shown(&line).into_owned());
        }
    }
}

/// Decides what is said when.
#[derive(Debug, Default)]
struct Speaker {
    has_estimated: bool,
    has_announced_live: bool,
    latest_line: Instant,
}

impl Speaker {
    /// Returns a line to be written and the one to be drawn, `now`, for a progress told at `at`.
    fn next(
        &mut self,
        progress: &Progress,
        (at, now): (Instant, Instant),
        cells: &str,
        terminal: bool,
    ) -> (Option<String>, String) {
        let since = now.since(at).as_secs_f64();
        let left = progress.left.map(|left| (left.as_secs_f64() - since).max(0.0));
        let mut said = None;
        if !self.has_estimated && is_known(progress, now.since(Instant::ZERO)) {
            self.has_estimated = true;
            let all = at.as_secs_f64() + progress.left.map_or(0.0, |left| left.as_secs_f64());
            said = (all >= LONG).then(|| estimate(progress, all));
        }
        let line = match progress.live {
            Some(live) => live_line(live, left),
            None => line(progress, left, cells),
        };
        if let Some(live) = progress.live.filter(|_| !self.has_announced_live) {
            self.has_announced_live = true;
            let time = about(progress.left.map_or(0.0, |left| left.as_secs_f64()));
            said =
                Some(format!("{} live runs in real time, one after the other: {time}", live.of - live.done));
        }
        if said.is_some() {
            self.latest_line = now;
        } else if !terminal && now.since(self.latest_line) >= LINE_EVERY && progress.of > 0 {
            self.latest_line = now;
            said = Some(line.clone());
        }
        (said, line)
    }
}

/// True if enough runs are finished to say how long all take.
fn is_known(progress: &Progress, spent: Duration) -> bool {
    let enough = progress.made >= progress.threads;
    progress.left.is_some() && enough && (progress.cells_known == progress.cells || spent >= TRIAL)
}

/// `about 12 min for 4800 runs on 2 threads, by the times of the first 40`.
fn estimate(progress: &Progress, seconds: f64) -> String {
    let runs = progress.of - (progress.done - progress.made);
    let first = if progress.more { "the first " } else { "" };
    let threads = if progress.threads == 1 { "thread" } else { "threads" };
    format!(
        "{} for {first}{runs} runs on {} {threads}, by the times of {}",
        about(seconds),
        progress.threads,
        progress.made
    )
}

/// `37 of 200 runs, 3 of 40 combinations, about 12 min left`.
fn line(progress: &Progress, left: Option<f64>, cells: &str) -> String {
    let Progress { done, of, cells_done, cells: all, more, .. } = progress;
    let mut out = format!("{done} of {of} runs");
    if *more {
        out += " known so far";
    }
    if *all > 1 {
        let _ = write!(out, ", {cells_done} of {all} {cells}");
    }
    match left {
        Some(left) if done < of => {
            let _ = write!(out, ", {} left", about(left));
        }
        None if done < of => out += ", time left unknown until a run is finished",
        _ => {}
    }
    out
}

/// `live run 2 of 7, about 9 min left`.
fn live_line(live: LiveProgress, left: Option<f64>) -> String {
    let left = left.map_or_else(String::new, |left| format!(", {} left", about(left)));
    format!("live run {} of {}{left}", (live.done + 1).min(live.of), live.of)
}

/// A time with the precision of an estimate.
fn about(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("about {:.0} s", s.max(1.0)),
        s if s < 60.0 => format!("about {:.0} s", (s / 5.0).round() * 5.0),
        s if s < 600.0 => format!("about {} min", (s / 30.0).round() / 2.0),
        s if s < 5400.0 => format!("about {:.0} min", s / 60.0),
        s => format!("about {} h", (s / 360.0).round() / 10.0),
    }
}

/// What is kept, and the command that goes on.
fn interrupted(progress: &Progress, out: Option<&Path>, command: &str) -> String {
    let Progress { done, of, .. } = progress;
    match out {
        _ if *of == 0 => "interrupted before the first run".to_owned(),
        Some(out) => format!(
            "interrupted: {done} of {of} runs are kept in {}; to go on from there: {command}",
            out.display()
        ),
        None => "interrupted: no run is kept; with --out DIR finished runs are".to_owned(),
    }
}

/// The command of this process, for a shell.
fn command() -> String {
    let words: Vec<String> = std::env::args_os().map(|word| quoted(&word.to_string_lossy())).collect();
    words.join(" ")
}

/// Quotes a word for a shell where it needs it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration as Time;

    fn progress(done: usize, made: usize, left: Option<u64>) -> Progress {
        Progress {
            done,
            of: 4800,
            made,
            cells_done: 3,
            cells: 40,
            cells_known: 40,
            threads: 2,
            more: false,
            left: left.map(Time::from_secs),
            live: None,
        }
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_long_command_says_once_how_long_it_takes() {
        let mut speaker = Speaker::default();
        let mut next = |p: Progress, now| speaker.next(&p, (at(2), at(now)), "combinations", true);
        let unknown = "0 of 4800 runs, 3 of 40 combinations, time left unknown until a run is finished";
        assert_eq!(next(progress(0, 0, None), 2), (None, unknown.to_owned()));
        // one run on two threads tells little, and so do some of the combinations at first
        let line = |left: &str| format!("41 of 4800 runs, 3 of 40 combinations, {left} left");
        assert_eq!(next(progress(41, 1, Some(718)), 3).0, None);
        let some = Progress { cells_known: 39, ..progress(41, 41, Some(718)) };
        assert_eq!(next(some, 4), (None, line("about 12 min")));
        let said = "about 12 min for 4799 runs on 2 threads, by the times of 40";
        assert_eq!(next(progress(41, 40, Some(718)), 5).0.as_deref(), Some(said));
        // the time since the latest run is gone
        assert_eq!(next(progress(41, 40, Some(718)), 702), (None, line("about 20 s")));
        let finished = "4800 of 4800 runs, 3 of 40 combinations";
        assert_eq!(next(progress(4800, 40, Some(0)), 800), (None, finished.to_owned()));
    }

    #[test]
    fn estimates_come_late_rather_than_never_and_not_for_short_commands() {
        let mut speaker = Speaker::default();
        let some = Progress { cells_known: 2, more: true, ..progress(2, 2, Some(7200)) };
        let said = "about 2 h for the first 4800 runs on 2 threads, by the times of 2";
        let next = speaker.next(&some, (at(9), at(10)), "values", true);
        assert_eq!(next.0.as_deref(), Some(said));
        assert_eq!(next.1, "2 of 4800 runs known so far, 3 of 40 values, about 2 h left");
        let mut speaker = Speaker::default();
        for now in 1..100 {
            assert_eq!(speaker.next(&progress(41, 40, Some(50)), (at(2), at(now)), "values", true).0, None);
        }
    }

    #[test]
    fn live_runs_come_last_and_their_time_is_known() {
        let mut speaker = Speaker::default();
        let live = |done| Progress {
            live: Some(LiveProgress { done, of: 7 }),
            left: Some(Time::from_secs(600)),
            ..progress(4800, 40, None)
        };
        let first = speaker.next(&live(0), (at(100), at(100)), "points", true);
        assert_eq!(first.0.as_deref(), Some("7 live runs in real time, one after the other: about 10 min"));
        assert_eq!(first.1, "live run 1 of 7, about 10 min left");
        let second = speaker.next(&live(1), (at(100), at(400)), "points", true);
        assert_eq!(second, (None, "live run 2 of 7, about 5 min left".to_owned()));
    }

    #[test]
    fn without_a_terminal_there_is_a_line_every_half_minute() {
        let mut speaker = Speaker::default();
        let mut lines = Vec::new();
        for now in 0..100 {
            let said = speaker.next(&progress(41, 0, None), (at(0), at(now)), "points", false).0;
            lines.extend(said.map(|line| (now, line)));
        }
        assert_eq!(lines.iter().map(|(now, _)| *now).collect::<Vec<_>>(), [30, 60, 90]);
        assert_eq!(lines[0].1, "41 of 4800 runs, 3 of 40 points, time left unknown until a run is finished");
    }

    #[test]
    fn times_are_as_precise_as_an_estimate() {
        for (seconds, text) in [
            (0.2, "about 1 s"),
            (7.4, "about 7 s"),
            (43.0, "about 45 s"),
            (80.0, "about 1.5 min"),
            (412.0, "about 7 min"),
            (754.0, "about 13 min"),
            (9000.0, "about 2.5 h"),
        ] {
            assert_eq!(about(seconds), text);
        }
    }

    #[test]
    fn an_interrupted_command_says_what_is_kept() {
        let of =
            |progress: &Progress, out: Option<&str>| interrupted(progress, out.map(Path::new), "COMMAND");
        let kept = "interrupted: 41 of 4800 runs are kept in DIR; to go on from there: COMMAND";
        assert_eq!(of(&progress(41, 1, None), Some("DIR")), kept);
        let lost = "interrupted: no run is kept; with --out DIR finished runs are";
        assert_eq!(of(&progress(41, 41, None), None), lost);
        assert_eq!(of(&Progress::default(), Some("DIR")), "interrupted before the first run");
    }

    #[test]
    fn words_for_a_shell_are_quoted() {
        let words = ["bentpipe", "--precision", "goodput 5 %", "", "it's", "a=1e-4,1e-3"].map(quoted);
        assert_eq!(words.join(" "), r"bentpipe --precision 'goodput 5 %' '' 'it'\''s' a=1e-4,1e-3");
    }
}
