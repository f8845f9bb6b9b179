//! Waits for packets or a deadline, whichever comes first, and wakes up on time.
//!
//! A sleeping thread wakes some microseconds late because of timer slack, the scheduler and the processor's
//! sleep states. The longer the sleep, the later: in a virtual machine 25 us after 50 us, 50 us after 1 ms,
//! 200 to 400 us after 250 ms. So a deadline is approached in stages, each a shorter sleep that ends before
//! it, and the last part is spent busy-waiting; the caller chooses how much, since it costs CPU. With stages,
//! a packet that leaves after a sleep of 250 ms is 9 us late (median) instead of 360 us.

use crate::clock::Clock;
use crate::port::invalid;
use bentpipe_base::{Duration, Instant};
use core::num::NonZeroU64;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::BorrowedFd;

/// Maximum number of descriptors to wait for.
pub const MAX_FDS: usize = 256;
/// Up to this number a small array on the stack is used.
const FEW: usize = 8;

/// Descriptors that are readable or have an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready([u64; MAX_FDS / 64]);

impl Ready {
    /// True if the descriptor at this index of the list is ready.
    pub const fn has(&self, i: usize) -> bool {
        i < MAX_FDS && self.0[i / 64] >> (i % 64) & 1 != 0
    }

    /// Marks the first `n` descriptors of the list as ready.
    pub fn first(n: usize) -> Self {
        let mut ready = Self::default();
        (0..n).for_each(|i| ready.add(i));
        ready
    }

    /// Adds the descriptor at this index; ignored from [`MAX_FDS`] on.
    pub const fn add(&mut self, i: usize) {
        if i < MAX_FDS {
            self.0[i / 64] |= 1 << (i % 64);
        }
    }

    /// True if no descriptor is ready.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Waits until one of `fds` is readable or until `deadline`; without a deadline, as long as it takes.
/// Approaches the deadline in stages of sleep and busy-waits for the last `spin` before it; if `spin` is
/// zero, it sleeps once. Returns early and empty if a signal arrived.
///
/// # Errors
/// When there are more than [`MAX_FDS`] descriptors, or the kernel rejects them.
pub fn wait(
    fds: &[BorrowedFd<'_>],
    deadline: Option<Instant>,
    clock: &Clock,
    spin: Duration,
) -> io::Result<Ready> {
    let Some(first) = fds.first() else {
        if deadline.is_none() {
            return Err(invalid("nothing to wait for: no descriptor, no deadline"));
        }
        return look(&mut [], deadline, *clock, spin);
    };
    let entry = |i: usize| PollFd::from_borrowed_fd(*fds.get(i).unwrap_or(first), PollFlags::IN);
    if fds.len() <= FEW {
        let mut list: [PollFd<'_>; FEW] = core::array::from_fn(entry);
        return look(&mut list[..fds.len()], deadline, *clock, spin);
    }
    if fds.len() > MAX_FDS {
        return Err(invalid(format!("{} descriptors to wait for, at most {MAX_FDS} can be", fds.len())));
    }
    let mut list: [PollFd<'_>; MAX_FDS] = core::array::from_fn(entry);
    look(&mut list[..fds.len()], deadline, *clock, spin)
}

fn look(
    list: &mut [PollFd<'_>],
    deadline: Option<Instant>,
    clock: Clock,
    spin: Duration,
) -> io::Result<Ready> {
    loop {
        let left = deadline.map(|d| d.since(clock.now()));
        let timeout = left.map(|left| timespec(Duration(left.0.saturating_sub(lead(left, spin).0))));
        match poll(list, timeout.as_ref()) {
            Ok(0) if left.is_some_and(|left| left.0 == 0) => return Ok(Ready::default()),
            // a stage of sleep has ended, or the busy-wait goes on: look again
            Ok(0) => core::hint::spin_loop(),
            Ok(_) => return Ok(ready(list)),
            Err(Errno::INTR) => return Ok(Ready::default()),
            Err(e) => return Err(e.into()),
        }
    }
}

/// How long before a deadline that is `left` away a sleep should end: about twice the expected oversleep.
const fn lead(left: Duration, spin: Duration) -> Duration {
    match left.0 {
        0..500_000 => spin,
        500_000..5_000_000 => Duration(spin.0 * 3),
        _ => Duration(spin.0 * 15),
    }
}

fn ready(list: &[PollFd<'_>]) -> Ready {
    let mut ready = Ready::default();
    for (i, _) in list.iter().enumerate().filter(|(_, fd)| !fd.revents().is_empty()) {
        ready.add(i);
    }
    ready
}

fn timespec(d: Duration) -> Timespec {
    Timespec { tv_sec: (d.0 / 1_000_000_000) as i64, tv_nsec: (d.0 % 1_000_000_000) as _ }
}

/// Reduces the calling thread's timer slack from the usual 50 us to 1 ns. Needs no permission.
///
/// # Errors
/// When the kernel refuses.
pub fn set_timer_slack() -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_deadline_is_kept_and_never_early() {
        let (quiet, _other) = std::io::pipe().unwrap();
        let clock = Clock::start();
        set_timer_slack().unwrap();
        for spin in [0, 200_000, 50 * MS] {
            for fds in [&[quiet.as_fd()][..], &[]] {
                let deadline = Instant(clock.now().0 + 5 * MS);
                let ready = wait(fds, Some(deadline), &clock, Duration(spin)).unwrap();
                let now = clock.now();
                assert!(ready.is_empty() && now >= deadline && now.0 < deadline.0 + 1000 * MS);
            }
        }
        let past = wait(&[quiet.as_fd()], Some(Instant::ZERO), &clock, Duration::ZERO).unwrap();
        assert!(past.is_empty());
    }

    #[test]
    fn what_can_be_read_is_told_at_once_and_by_place() {
        let clock = Clock::start();
        let pipes: Vec<_> = (0..100).map(|_| std::io::pipe().unwrap()).collect();
        let fds: Vec<_> = pipes.iter().map(|(reader, _)| reader.as_fd()).collect();
        for i in [70, 3] {
            (&pipes[i].1).write_all(b"x").unwrap();
        }
        let ready = wait(&fds, None, &clock, Duration::ZERO).unwrap();
        let told: Vec<_> = (0..300).filter(|i| ready.has(*i)).collect();
        assert_eq!(told, [3, 70]);
        let ready = wait(&fds[3..5], Some(Instant(u64::MAX - 1)), &clock, Duration(MS)).unwrap();
        assert!(ready.has(0) && !ready.has(1));
        let many = vec![fds[0]; MAX_FDS + 1];
        assert!(wait(&many, None, &clock, Duration::ZERO).is_err());
        assert!(wait(&[], None, &clock, Duration::ZERO).is_err());
    }

    #[test]
    fn a_writer_that_is_gone_is_ready_too() {
        let clock = Clock::start();
        let (reader, writer) = std::io::pipe().unwrap();
        drop(writer);
        assert!(wait(&[reader.as_fd()], None, &clock, Duration::ZERO).unwrap().has(0));
    }
}
