//! Probe segments: low-priority copies of data that is not yet acknowledged, and how their acknowledgments
//! are recognised.
//!
//! Sources: TCP-Peach (dummy segments), TCP-Peach+ (NIL segments), TCP-Swift (outstanding segments). None of
//! the papers says how an unmodified receiver reports a probe. RFC 9293, section 3.10.7.4: a segment that
//! has arrived before is acknowledged at once. So the arrival of a probe is recognised by, in this order,
//!   1. the probe option (RFC 4727, RFC 6994), agreed on with the SYN: exact, also if the copy filled a
//!      hole;
//!   2. DSACK (RFC 2883): a block that is a range of which a copy was sent. A copy that fills a hole causes
//!      no DSACK and counts as data;
//!   3. timestamps (RFC 7323): a duplicate ACK whose TSecr only one copy carried as TSval.
//!
//! Without any of them the scheme sends no probes; it is told so before the first data segment. Timestamps do
//! not work with every receiver. Linux records the timestamp of a segment that ends where its last
//! acknowledgment did, so its echo identifies a copy of the newest segment that arrived in order. With
//! timestamps, therefore, the last segment sent is copied, whatever the scheme asks for. While data is
//! missing, Linux echoes no new timestamp, so no probes are sent while a loss is repaired. A receiver that
//! follows RFC 7323, section 5.3, identifies no copy: data that arrived before lies outside its window. Each
//! of its duplicate ACKs is attributed to one copy that it may answer, and is no sign of loss; the scheme
//! learns of no probe. The timestamp clock ticks once per millisecond: a copy waits for a tick of its own,
//! and if data is sent in the same tick, nothing identifies it.
//!
//! A probe takes no sequence space, does not count as in flight, starts no retransmission timer and gives no
//! RTT sample. This module tracks the copies, which the scoreboard does not. It alone decides whether our own
//! copy caused a DSACK: such a DSACK says nothing about reordering, spurious retransmission or the tail
//! probe.

use crate::board::Scoreboard;
use crate::cc::{Episode, ProbeCarry, ProbeClock, ProbeSignal};
use crate::copy_selector::CopySelector;
use crate::options::NegotiatedOptions;
use bentpipe_base::{Duration, Instant, ProbeOption, TcpHeader};
use std::collections::{BTreeSet, VecDeque};

/// Most copies remembered; older ones count as lost.
const MOST: usize = 1 << 14;
/// Count of probe numbers: 15 bits on the wire.
const NUMBERS: u16 = 1 << 15;

/// Period of the timestamp clock.
pub(crate) const TICK: Duration = Duration::from_millis(1);

/// A copy that was sent.
#[derive(Clone, Copy, Debug)]
struct SentCopy {
    number: u16,
    start: u64,
    end: u64,
    sent_at: Instant,
    /// Its timestamp, if nothing else carried the same.
    stamp: Option<u32>,
    answered: bool,
    /// A duplicate ACK that identifies no copy was attributed to it, or a later copy was answered.
    passed: bool,
}

/// A duplicate ACK: nothing new, no text, the same window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DuplicateAck {
    pub(crate) now: Instant,
    /// Least age of the segment that it may answer.
    pub(crate) min_age: Duration,
    /// Greatest age of the segment that it may answer.
    pub(crate) max_age: Duration,
}

/// What an acknowledgment said about probes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProbeAnswer {
    /// Probes newly known to have arrived.
    pub(crate) probes: u32,
    /// The acknowledgment answers a copy, so it is no sign of anything else.
    pub(crate) own: bool,
    /// Our own copy caused its DSACK.
    pub(crate) own_dsack: bool,
}

/// State of a connection's probes.
#[derive(Clone, Debug, Default)]
pub struct Probes {
    signal: ProbeSignal,
    copies: VecDeque<SentCopy>,
    pub(crate) selector: CopySelector,
    number: u16,
    /// Timestamp of the newest data or copy.
    stamp: Option<u32>,
    /// Number of acknowledged segments (and of ACKs that acknowledge none) that have allowed neither a data
    /// segment nor a copy yet.
    pub(crate) acks: u32,
    /// Copies that may still be sent for those counted before.
    pub(crate) allowed: u32,
    /// When the next paced copy is due.
    pub(crate) next_at: Option<Instant>,
    sent: u64,
    acknowledged: u64,
    lost: u64,
}

impl Probes {
    /// Returns the signal that the SYNs allow. The option and timestamps serve only `probes`, not copies that
    /// just repair.
    pub(crate) const fn signal_of(agreed: &NegotiatedOptions, probes: bool) -> ProbeSignal {
        if agreed.probe_option && probes {
            ProbeSignal::Option
        } else if agreed.sack {
            ProbeSignal::Dsack
        } else if agreed.timestamps && probes {
            ProbeSignal::Timestamps
        } else {
            ProbeSignal::None
        }
    }

    /// Creates the state of a connection with this signal; `seed` starts its random generator.
    pub(crate) fn new(signal: ProbeSignal, seed: u64) -> Self {
        Self { signal, selector: CopySelector::new(seed), ..Self::default() }
    }

    /// Returns how the arrival of probes is recognised.
    pub const fn signal(&self) -> ProbeSignal {
        self.signal
    }
    /// Returns the same while recovery is in `episode`.
    pub(crate) fn signal_during(&self, episode: Episode) -> ProbeSignal {
        let beyond_a_hole = self.signal == ProbeSignal::Timestamps && episode != Episode::Open;
        if beyond_a_hole { ProbeSignal::None } else { self.signal }
    }
    /// Returns the number of probes sent.
    pub const fn sent(&self) -> u64 {
        self.sent
    }
    /// Returns the number of probes known to have arrived.
    pub const fn acknowledged(&self) -> u64 {
        self.acknowledged
    }
    /// Returns the number of probes without an answer in time.
    pub const fn lost(&self) -> u64 {
        self.lost
    }
    /// True while a copy may still be answered.
    pub(crate) fn waits(&self) -> bool {
        !self.copies.is_empty()
    }

    /// True if a segment that this ACK acknowledges may have arrived as its copy: the ACK echoes a probe, or
    /// there is no probe option.
    pub(crate) fn doubtful(&self, header: &TcpHeader) -> bool {
        self.signal != ProbeSignal::Option || matches!(header.probe, ProbeOption::Echo(_))
    }

    /// Returns what a copy carries if the scheme wants it to carry `carry`.
    pub(crate) fn carry(&self, carry: ProbeCarry) -> ProbeCarry {
        if self.signal == ProbeSignal::Timestamps { ProbeCarry::LastSent } else { carry }
    }

    /// True if the timestamp was used already, so that it could not identify a copy.
    pub(crate) fn is_taken(&self, stamp: u32) -> bool {
        self.signal == ProbeSignal::Timestamps && self.stamp == Some(stamp)
    }

    /// Records that data carries this timestamp, so it identifies no copy.
    pub(crate) fn data_timestamp_sent(&mut self, stamp: u32) {
        if let Some(copy) = self.copies.back_mut().filter(|c| c.stamp == Some(stamp)) {
            copy.stamp = None;
        }
        self.stamp = Some(stamp);
    }

    /// Records a copy of `[start, end)` with timestamp `stamp`; returns the option for its header.
    pub(crate) fn sent_copy(&mut self, now: Instant, start: u64, end: u64, stamp: u32) -> ProbeOption {
        let number = self.number;
        self.number = (number + 1) % NUMBERS;
        self.sent += 1;
        if self.copies.len() == MOST {
            self.forget();
        }
        self.copies.push_back(SentCopy {
            number,
            start,
            end,
            sent_at: now,
            stamp: Some(stamp),
            answered: false,
            passed: false,
        });
        self.stamp = Some(stamp);
        if self.signal == ProbeSignal::Option { ProbeOption::Probe(number) } else { ProbeOption::None }
    }

    fn forget(&mut self) {
        if let Some(copy) = self.copies.pop_front() {
            self.lost += u64::from(!copy.answered);
        }
    }

    /// Copies sent more than `patience` ago count as lost; acknowledged data is not copied any more.
    pub(crate) fn expire(&mut self, now: Instant, board: &Scoreboard, patience: Duration) {
        while self.copies.front().is_some_and(|c| now.since(c.sent_at) > patience) {
            self.forget();
        }
        self.selector.prune(board);
    }

    /// Forgets what is due: no probes are wanted at present.
    pub(crate) const fn pause(&mut self) {
        self.acks = 0;
        self.allowed = 0;
        self.next_at = None;
    }

    /// Returns `Ok` if a copy may be sent now. Otherwise the time at which to ask again; `None` means after
    /// the next acknowledgment. `waits` is true if data waits for the pacer; data was last sent at
    /// `last_sent`.
    pub(crate) fn due(
        &mut self,
        now: Instant,
        clock: ProbeClock,
        waits: bool,
        last_sent: Instant,
    ) -> Result<(), Option<Instant>> {
        match clock {
            ProbeClock::Spare(_) if waits => {
                self.next_at = None;
                Err(None)
            }
            ProbeClock::Every(interval) | ProbeClock::Spare(interval) => {
                let after_data = last_sent + interval;
                let at = match (clock, self.next_at) {
                    (ProbeClock::Every(_), known) => known.unwrap_or(after_data),
                    (_, known) => known.unwrap_or(now).max(after_data),
                };
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

    /// Skips the copies due now, as there is nothing to copy. Returns when to ask again; `None` means after
    /// new data or the next acknowledgment.
    pub(crate) fn leave_out(&mut self, now: Instant, clock: ProbeClock) -> Option<Instant> {
        let ProbeClock::Every(_) = clock else { return None };
        self.next_at = self.next_at.map(|at| at.max(now + TICK));
        self.next_at
    }

    /// Recognises answers to copies, before anything else uses the acknowledgment.
    pub(crate) fn claim(
        &mut self,
        header: &TcpHeader,
        dsack: Option<(u64, u64)>,
        bare: Option<DuplicateAck>,
    ) -> ProbeAnswer {
        let mut claim = ProbeAnswer::default();
        if let (ProbeSignal::Timestamps, Some(bare)) = (self.signal, bare) {
            claim = self.claim_echo(header.timestamps.map(|t| t.echo), bare);
        }
        if let (ProbeOption::Echo(number), ProbeSignal::Option) = (header.probe, self.signal) {
            let known = self.copies.iter_mut().rev().find(|c| c.number == number);
            claim.own = known.is_some();
            claim.probes = known.map_or(0, |c| u32::from(!core::mem::replace(&mut c.answered, true)));
        }
        if let Some(block) = dsack {
            let (probes, own) = self.claim_dsack(block);
            claim.own_dsack = own;
            if self.signal == ProbeSignal::Dsack {
                claim.probes = probes;
            }
            claim.own |= claim.own_dsack;
        }
        self.acknowledged += u64::from(claim.probes);
        claim
    }

    /// Counts the copies that a DSACK reports, one per segment: a receiver that merges neighbours reports
    /// several at once. Also returns whether the block covers any copy of ours.
    fn claim_dsack(&mut self, (left, right): (u64, u64)) -> (u32, bool) {
        let (mut own, mut probes) = (false, 0);
        let mut answered = BTreeSet::new();
        let counts = self.signal == ProbeSignal::Dsack;
        for copy in &mut self.copies {
            let inside = copy.start <= left && right <= copy.end;
            let around = left <= copy.start && copy.end <= right;
            if !inside && !around {
                continue;
            }
            // also if the copy arrived first, and this DSACK reports the original
            own = true;
            if counts && !copy.answered && answered.insert(copy.start) {
                copy.answered = true;
                probes += 1;
            }
        }
        (probes, own)
    }

    /// A duplicate ACK answers the copy whose timestamp it echoes; if there is none, the oldest copy of an
    /// age at which it may be answered. A duplicate ACK that answers no copy is a sign of loss: a receiver
    /// with missing data echoes the timestamp of the last copy in every further duplicate ACK.
    fn claim_echo(&mut self, echo: Option<u32>, bare: DuplicateAck) -> ProbeAnswer {
        let named = |c: &SentCopy| !c.answered && c.stamp.is_some() && c.stamp == echo;
        if let Some(i) = self.copies.iter().position(named) {
            self.copies[i].answered = true;
            self.copies.range_mut(..i).for_each(|c| c.passed = true); // copies arrive in order
            return ProbeAnswer { probes: 1, own: true, own_dsack: false };
        }
        let may = |c: &&mut SentCopy| {
            let age = bare.now.since(c.sent_at);
            !c.answered && !c.passed && bare.min_age <= age && age <= bare.max_age
        };
        let copy = self.copies.iter_mut().find(may);
        ProbeAnswer { probes: 0, own: copy.map(|c| c.passed = true).is_some(), own_dsack: false }
    }
}

#[cfg(test)]
#[path = "probes_tests.rs"]
mod tests;
