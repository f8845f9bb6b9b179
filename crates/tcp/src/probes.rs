//! Probe segments: low-priority copies of data that is not yet acknowledged, and how their acknowledgments are recognised.
//!
//! Sources: TCP-Peach (dummy segments), TCP-Peach+ (NIL segments), TCP-Swift (outstanding segments); none of the papers says how an unmodified receiver
//! tells of a probe. RFC 9293, section 3.10.7.4: a segment that has arrived before is acknowledged at once. So a probe is known to have arrived by, in this order,
//!   1. the probe option (RFC 4727, RFC 6994), agreed on with the SYN: exact, also where the copy filled a hole;
//!   2. DSACK (RFC 2883): a block that is a range of which a copy is out. A copy that fills a hole draws none and counts as data.
//!
//! With neither the scheme is told before data flows, and does without probes.
//! Timestamps tell less than they seem to: by RFC 7323, section 5.3 a segment that has arrived before lies outside the window and its timestamp is not
//! recorded, so the echo never names a copy of what arrived; without SACK its acknowledgment is a duplicate ACK like any other. They are no signal of their own.
//!
//! A probe takes no sequence space, is in no estimate of what is in flight, arms no timer and gives no sample. This ledger knows what the scoreboard does not: the
//! copies out. And it is the one place that decides whether a DSACK is our own doing: such a one says nothing about reordering, spurious
//! retransmission or the tail probe.

use crate::board::Scoreboard;
use crate::cc::{ProbeCarry, ProbeClock, ProbeSignal};
use crate::pick::Pick;
use bentpipe_base::{Duration, Instant, ProbeOption, TcpHeader};
use std::collections::VecDeque;

/// Most copies that are remembered; older ones count as lost.
const MOST: usize = 1 << 14;
/// Numbers of probes: 15 bits on the wire.
const NUMBERS: u16 = 1 << 15;

/// The shortest time after which it is asked again what there is to copy.
const TICK: Duration = Duration::from_millis(1);

/// A copy that was sent.
#[derive(Clone, Copy, Debug)]
struct Copy {
    number: u16,
    start: u64,
    end: u64,
    sent_at: Instant,
    answered: bool,
}

/// What an acknowledgment said about probes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Probes newly known to have arrived.
    pub(crate) probes: u32,
    /// The acknowledgment answers a copy, so it must not be taken for a sign of anything else.
    pub(crate) own: bool,
    /// Its DSACK is our own doing.
    pub(crate) own_dsack: bool,
}

/// Probes of one connection.
#[derive(Clone, Debug)]
pub struct Probes {
    signal: ProbeSignal,
    out: VecDeque<Copy>,
    pick: Pick,
    number: u16,
    /// Acknowledgments that have not yet let anything go.
    pub(crate) acks: u32,
    /// Copies that the last of these still allows.
    pub(crate) allowed: u32,
    /// When the next paced copy is due.
    pub(crate) next_at: Option<Instant>,
    sent: u64,
    acknowledged: u64,
    lost: u64,
}

impl Probes {
    /// For a connection whose copies carry the probe option, or whose peer sends SACK; `seed` is the connection's own.
    pub(crate) const fn new(option: bool, sack: bool, seed: u64) -> Self {
        let signal = match (option, sack) {
            (true, _) => ProbeSignal::Option,
            (false, true) => ProbeSignal::Dsack,
            (false, false) => ProbeSignal::None,
        };
        Self {
            signal,
            out: VecDeque::new(),
            pick: Pick::new(seed),
            number: 0,
            acks: 0,
            allowed: 0,
            next_at: None,
            sent: 0,
            acknowledged: 0,
            lost: 0,
        }
    }

    /// How probes are known to have arrived.
    pub const fn signal(&self) -> ProbeSignal {
        self.signal
    }
    /// Probes sent.
    pub const fn sent(&self) -> u64 {
        self.sent
    }
    /// Probes known to have arrived.
    pub const fn acknowledged(&self) -> u64 {
        self.acknowledged
    }
    /// Probes that nothing was heard of in time.
    pub const fn lost(&self) -> u64 {
        self.lost
    }
    /// True while the answer to a copy may still come.
    pub(crate) fn waits(&self) -> bool {
        !self.out.is_empty()
    }

    /// Without an echo it cannot be told whether a segment or its copy arrived.
    pub(crate) fn doubtful(&self, header: &TcpHeader) -> bool {
        self.signal != ProbeSignal::Option || matches!(header.probe, ProbeOption::Echo(_))
    }

    /// The stream range to copy next: data not yet acknowledged, neither SYN nor FIN.
    pub(crate) fn choose(
        &mut self,
        board: &Scoreboard,
        carry: ProbeCarry,
        data_end: u64,
    ) -> Option<(u64, u64)> {
        self.pick.choose(board, carry, data_end)
    }

    /// Takes note of a copy of `[start, end)`; returns what its header carries.
    pub(crate) fn sent_copy(&mut self, now: Instant, start: u64, end: u64) -> ProbeOption {
        let number = self.number;
        self.number = (number + 1) % NUMBERS;
        self.sent += 1;
        if self.out.len() == MOST {
            self.forget();
        }
        self.out.push_back(Copy { number, start, end, sent_at: now, answered: false });
        if self.signal == ProbeSignal::Option { ProbeOption::Probe(number) } else { ProbeOption::None }
    }

    fn forget(&mut self) {
        if let Some(copy) = self.out.pop_front() {
            self.lost += u64::from(!copy.answered);
        }
    }

    /// Copies that were sent more than `patience` ago are lost, and what is acknowledged is not copied any more.
    pub(crate) fn tidy(&mut self, now: Instant, board: &Scoreboard, patience: Duration) {
        while self.out.front().is_some_and(|c| now.since(c.sent_at) > patience) {
            self.forget();
        }
        self.pick.tidy(board);
    }

    /// Nothing is wished for at present.
    pub(crate) const fn rest(&mut self) {
        self.acks = 0;
        self.allowed = 0;
        self.next_at = None;
    }

    /// May a copy go now? If not: when to ask again, unless the next acknowledgment tells. `waits`: data waits for its time. Data was sent last at `last_sent`.
    pub(crate) fn due(
        &mut self,
        now: Instant,
        clock: ProbeClock,
        waits: bool,
        last_sent: Instant,
    ) -> Result<(), Option<Instant>> {
        match clock {
            ProbeClock::Every(interval) => {
                let at = self.next_at.unwrap_or(last_sent + interval);
                self.next_at = Some(if at <= now { at + interval } else { at });
                if at <= now { Ok(()) } else { Err(Some(at)) }
            }
            ProbeClock::Spare(_) if waits => {
                self.next_at = None;
                Err(None)
            }
            ProbeClock::Spare(interval) => {
                let at = self.next_at.unwrap_or(now).max(last_sent + interval);
                self.next_at = Some(if at <= now { at + interval } else { at });
                if at <= now { Ok(()) } else { Err(Some(at)) }
            }
            ProbeClock::PerAck(_) if waits => Err(None),
            ProbeClock::PerAck(count) => {
                self.allowed += u32::from(count) * core::mem::take(&mut self.acks);
                self.allowed = self.allowed.checked_sub(1).ok_or(None)?;
                Ok(())
            }
        }
    }

    /// There was nothing to copy: what is due meanwhile is left out, and not caught up with. When to ask again, unless new data or the next acknowledgment tells.
    pub(crate) fn leave_out(&mut self, now: Instant, clock: ProbeClock) -> Option<Instant> {
        let ProbeClock::Every(_) = clock else { return None };
        self.next_at = self.next_at.map(|at| at.max(now + TICK));
        self.next_at
    }

    /// Asked before anything else is made of an acknowledgment.
    pub(crate) fn claim(&mut self, header: &TcpHeader, dsack: Option<(u64, u64)>) -> Claim {
        let mut claim = Claim::default();
        if let (ProbeOption::Echo(number), ProbeSignal::Option) = (header.probe, self.signal) {
            let known = self.out.iter_mut().rev().find(|c| c.number == number);
            claim.own = known.is_some();
            claim.probes = known.map_or(0, |c| u32::from(!core::mem::replace(&mut c.answered, true)));
        }
        if let Some((left, right)) = dsack {
            let same = |c: &&mut Copy| c.start <= left && right <= c.end;
            if let Some(copy) = self.out.iter_mut().filter(|c| !c.answered).find(same) {
                claim.own_dsack = true;
                if self.signal == ProbeSignal::Dsack {
                    copy.answered = true;
                    claim.probes = 1;
                }
            } else {
                // the copy came first, and now what it copied
                claim.own_dsack = self.out.iter_mut().any(|c| same(&c));
            }
            claim.own |= claim.own_dsack;
        }
        self.acknowledged += u64::from(claim.probes);
        claim
    }
}

#[cfg(test)]
#[path = "probes_tests.rs"]
mod tests;
