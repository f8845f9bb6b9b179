//! A table entry: the data tracked for every connection, accelerated or not. Fixed size, no heap data.
//!
//! The state here is coarse and derived from flags without further checks. It only selects timeouts and
//! appears in reports, and never stops packets that pass. An accelerated connection has its own, exact state.

use super::key::Key;
use super::slab::NONE;
use crate::census::{LargestWindow, class_of};
use crate::config::Timeouts;
use crate::counters::PassReason;
use crate::report::{EndReason, FlowReport, State};
use bentpipe_base::{Duration, Flags, Instant, Packet, Seq, Size};

/// The class an entry counts for. Each class has its own limit and cannot displace members of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Class {
    /// The handshake is not complete.
    Opening = 0,
    /// Accelerated, or was accelerated and still needs its windows translated.
    Accelerated = 1,
    /// Passes unaccelerated; may be forgotten at any time.
    Passing = 2,
}

/// True if the packet is a SYN that opens a connection.
pub(crate) const fn is_opening_syn(packet: &Packet) -> bool {
    packet.tcp.flags.has(Flags::SYN) && !packet.tcp.flags.has(Flags::ACK)
}

/// One connection. Pairs are in the order LAN, satellite.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    /// Number of its flow state; `NONE` if it passes or sleeps.
    pub(crate) flow: u32,
    /// Number of its compact state, if it sleeps or has slept.
    pub(crate) rest: u32,
    /// Its index in the member list of its class.
    pub(crate) place: u32,
    pub(crate) class: Class,
    pub(crate) state: State,
    pub(crate) pass_reason: Option<PassReason>,
    marks: u16,
    /// The window scales of both SYNs, `NO_SCALE` without one.
    scales: [u8; 2],
    /// Class of the largest window that the host behind the satellite announced; 0 before.
    window_class: u8,
    /// Sequence number of the SYN that opened it.
    isn: Seq,
    /// The latest acknowledgment from the host behind the satellite.
    last_ack: Seq,
    pub(crate) opened: Instant,
    pub(crate) last: Instant,
    packets: [u64; 2],
    bytes: [u64; 2],
    acked: u64,
    /// When the first payload towards the satellite came; `NEVER` before.
    data_from: Instant,
    progress: Instant,
}

impl Entry {
    const LAN_IS_LOW: u16 = 1;
    const SYN_FROM_LAN: u16 = 2;
    const SYN_FROM_SATELLITE: u16 = 4;
    const SYN_ACK: u16 = 8;
    const FIN_FROM_LAN: u16 = 16;
    const FIN_FROM_SATELLITE: u16 = 32;
    const ACKED_ONCE: u16 = 64;
    const TOLD: u16 = 128;
    /// Counted as accelerated in the census.
    const CENSUS_ACCELERATED: u16 = 256;
    const NO_SCALE: u8 = u8::MAX;
    /// The largest shift (RFC 7323, section 2.3).
    const LARGEST_SCALE: u8 = 14;

    /// Returns the entry for a first packet from `side` (0: LAN); `is_low`: it comes from the key's lower
    /// endpoint.
    pub(crate) fn new(key: Key, side: usize, is_low: bool, first: &Packet, now: Instant) -> Self {
        let opens = is_opening_syn(first);
        let opened_by = if side == 0 { Self::SYN_FROM_LAN } else { Self::SYN_FROM_SATELLITE };
        let lan = if is_low == (side == 0) { Self::LAN_IS_LOW } else { 0 };
        Self {
            key,
            flow: NONE,
            rest: NONE,
            place: NONE,
            class: if opens { Class::Opening } else { Class::Passing },
            state: if opens { State::Opening } else { State::Established },
            pass_reason: None,
            marks: lan | if opens { opened_by } else { 0 },
            scales: [Self::NO_SCALE; 2],
            window_class: 0,
            isn: first.tcp.seq,
            last_ack: Seq(0),
            opened: now,
            last: now,
            packets: [0; 2],
            bytes: [0; 2],
            acked: 0,
            data_from: Instant::NEVER,
            progress: Instant::ZERO,
        }
    }

    /// True if windows may have to be translated: it is accelerated, awake or asleep, or was.
    pub(crate) const fn needs_translation(&self) -> bool {
        self.flow != NONE || self.rest != NONE
    }

    const fn is(&self, mark: u16) -> bool {
        self.marks & mark != 0
    }

    /// The side that packets of the lower or higher endpoint must come from.
    pub(crate) const fn side_of(&self, is_low: bool) -> usize {
        (is_low != self.is(Self::LAN_IS_LOW)) as usize
    }

    /// The side that opened it, if its SYN was seen.
    pub(crate) const fn opener(&self) -> Option<usize> {
        match (self.is(Self::SYN_FROM_LAN), self.is(Self::SYN_FROM_SATELLITE)) {
            (true, _) => Some(0),
            (false, true) => Some(1),
            (false, false) => None,
        }
    }

    /// True for a SYN that cannot belong to this connection: the ports are reused.
    pub(crate) fn is_succeeded_by(&self, side: usize, packet: &Packet) -> bool {
        if !is_opening_syn(packet) {
            return false;
        }
        let is_another = packet.tcp.seq != self.isn || self.opener() != Some(side);
        match self.state {
            State::Closed => true,
            // a late copy of its own SYN may come behind a FIN
            State::Closing => is_another,
            // a new attempt by the same host; from the other side it is a simultaneous open (RFC 9293,
            // section 3.5)
            State::Opening => self.opener() == Some(side) && packet.tcp.seq != self.isn,
            // for an accelerated connection the SYN may be forged; the receiver's answer decides (RFC 9293,
            // section 3.10.7.4)
            State::Established => !self.needs_translation() && is_another,
        }
    }

    pub(crate) fn note(&mut self, side: usize, packet: &Packet, now: Instant) {
        let flags = packet.tcp.flags;
        self.last = now;
        self.packets[side] += u64::from(packet.pieces());
        self.bytes[side] += u64::from(packet.body.len);
        if side == 0 && packet.body.len > 0 {
            self.data_from = self.data_from.min(now);
        }
        if flags.has(Flags::SYN) {
            self.marks |= match (flags.has(Flags::ACK), side) {
                (true, _) => Self::SYN_ACK,
                (false, 0) => Self::SYN_FROM_LAN,
                (false, _) => Self::SYN_FROM_SATELLITE,
            };
        }
        if flags.has(Flags::FIN) {
            self.marks |= if side == 0 { Self::FIN_FROM_LAN } else { Self::FIN_FROM_SATELLITE };
        }
        if flags.has(Flags::ACK) && side == 1 {
            self.note_ack(packet.tcp.ack, now);
        }
        self.step(flags);
    }

    /// RTT of the hop, if this packet, not noted yet, ends it in a handshake without retransmissions: the
    /// SYN/ACK from the satellite, or the ACK of a SYN/ACK from the LAN.
    pub(crate) fn handshake_rtt(&self, side: usize, packet: &Packet, now: Instant) -> Option<Duration> {
        let is_syn = packet.tcp.flags.has(Flags::SYN);
        let answers = side == 1 && self.state == State::Opening && packet.tcp.flags.has(Flags::ACK);
        let ends = match self.opener() {
            Some(0) => is_syn && self.packets == [1, 0],
            Some(_) => !is_syn && self.packets == [1, 1],
            None => false,
        };
        (answers && ends).then(|| now.since(self.last))
    }

    /// Notes the window of a packet; returns it if it is the largest so far, and in another class than those
    /// before. Windows in SYNs are not scaled, and those of connections without SYNs are unknown.
    pub(crate) fn note_window(&mut self, side: usize, packet: &Packet) -> Option<LargestWindow> {
        let (tcp, flags) = (&packet.tcp, packet.tcp.flags);
        if flags.has(Flags::SYN) {
            self.scales[side] = tcp.window_scale.map_or(Self::NO_SCALE, |s| s.min(Self::LARGEST_SCALE));
            return None;
        }
        if side == 0 || flags.has(Flags::RST) || !self.is(Self::SYN_ACK) || self.opener().is_none() {
            return None;
        }
        let shift = if self.scales.contains(&Self::NO_SCALE) { 0 } else { self.scales[1] };
        let window = u32::from(tcp.window) << shift;
        let class = class_of(window).filter(|class| *class > self.window_class)?;
        let before = (self.window_class > 0).then(|| (self.window_class, self.is(Self::CENSUS_ACCELERATED)));
        let is_accelerated = self.pass_reason.is_none();
        self.window_class = class;
        self.marks &= !Self::CENSUS_ACCELERATED;
        self.marks |= if is_accelerated { Self::CENSUS_ACCELERATED } else { 0 };
        Some(LargestWindow { window, class, is_accelerated, before })
    }

    fn note_ack(&mut self, ack: Seq, now: Instant) {
        if !self.is(Self::ACKED_ONCE) {
            self.marks |= Self::ACKED_ONCE;
            self.last_ack = ack;
            return;
        }
        let news = ack.0.wrapping_sub(self.last_ack.0);
        if news > 0 && news < 1 << 31 {
            self.last_ack = ack;
            self.acked += u64::from(news);
            self.progress = now;
        }
    }

    fn step(&mut self, flags: Flags) {
        let is_over = self.is(Self::FIN_FROM_LAN) && self.is(Self::FIN_FROM_SATELLITE);
        if flags.has(Flags::RST) {
            self.state = State::Closed;
        } else if is_over {
            self.state = self.state.max(State::Closing);
        } else if self.state == State::Opening && !flags.has(Flags::SYN) {
            self.state = State::Established;
        }
    }

    /// True for the first packet from `side` after a SYN whose SYN/ACK was not seen here. A bare ACK from the
    /// side that must send the SYN/ACK does not count: it answers a retransmitted SYN (RFC 9293, section
    /// 3.10.7.4), and the SYN/ACK is lost or still to come.
    pub(crate) fn lacks_answer(&self, side: usize, packet: &Packet) -> bool {
        let flags = packet.tcp.flags;
        let is_bare = packet.seq_len() == 0 && self.opener().is_some_and(|opener| opener != side);
        self.state == State::Opening
            && !is_bare
            && !self.is(Self::SYN_ACK)
            && !flags.has(Flags::SYN)
            && !flags.has(Flags::RST)
    }

    /// After this many packets in one direction only, the other direction certainly takes another path.
    const ONE_SIDED: u64 = 8;

    /// True if enough packets were seen, all from one side.
    pub(crate) fn is_one_sided(&self) -> bool {
        let [lan, satellite] = self.packets;
        lan.min(satellite) == 0 && lan.max(satellite) >= Self::ONE_SIDED
    }

    /// True if the handshake was or may have been changed: a SYN from the satellite, or the SYN/ACK.
    pub(crate) fn is_delicate(&self) -> bool {
        self.needs_translation() && (self.opener() != Some(0) || self.is(Self::SYN_ACK))
    }

    /// True if no packet came from the side opposite to `side`.
    pub(crate) const fn is_only_from(&self, side: usize) -> bool {
        self.packets[1 - side] == 0
    }

    pub(crate) const fn is_from_both(&self) -> bool {
        self.packets[0] > 0 && self.packets[1] > 0
    }

    /// When it is forgotten unless a packet arrives.
    pub(crate) fn expires(&self, timeouts: &Timeouts) -> Instant {
        self.last
            + match self.state {
                State::Opening => timeouts.opening,
                State::Established => timeouts.established,
                State::Closing => timeouts.closing,
                State::Closed => timeouts.closed,
            }
    }

    /// Marks it as reported; returns false if it was already.
    pub(crate) const fn mark_reported(&mut self) -> bool {
        let is_news = !self.is(Self::TOLD);
        self.marks |= Self::TOLD;
        is_news
    }

    /// Adds the entry's data to the flow's report.
    pub(crate) fn report(&self, mut of: FlowReport, end: Option<EndReason>) -> FlowReport {
        let mut ends = self.key.ends();
        if !self.is(Self::LAN_IS_LOW) {
            ends.reverse();
        }
        of.addrs = ends.map(|e| e.0);
        of.ports = ends.map(|e| e.1);
        of.opened_by_lan = self.opener().map(|side| side == 0);
        of.state = self.state;
        of.pass_reason = self.pass_reason;
        of.end = end;
        of.opened = self.opened;
        of.last = self.last;
        of.packets = self.packets;
        of.bytes = self.bytes.map(Size);
        // the FIN takes a sequence number, but is no payload
        let fin = u64::from(self.is(Self::FIN_FROM_LAN) && self.state >= State::Closing);
        of.delivered = Size(self.acked.saturating_sub(fin));
        of.took = self.progress.since(self.data_from);
        of
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::{Addr, Body, Duration};

    const LAN: usize = 0;
    const SATELLITE: usize = 1;

    fn packet(flags: Flags, seq: u32, ack: u32, len: u32) -> Packet {
        let mut p = Packet { src: Addr(1), sport: 10, dst: Addr(2), dport: 20, ..Packet::default() };
        p.tcp.flags = flags;
        (p.tcp.seq, p.tcp.ack) = (Seq(seq), Seq(ack));
        p.body = Body { off: 0, len };
        p
    }

    fn opened() -> Entry {
        let syn = packet(Flags::SYN, 100, 0, 0);
        let (key, is_low) = Key::of(&syn);
        let mut entry = Entry::new(key, LAN, is_low, &syn, Instant(0));
        entry.note(LAN, &syn, Instant(0));
        entry
    }

    #[test]
    fn an_entry_is_small() {
        assert!(size_of::<Entry>() <= 128, "{}", size_of::<Entry>());
    }

    #[test]
    fn states_follow_the_flags() {
        let mut e = opened();
        let timeouts = Timeouts::default();
        assert_eq!((e.state, e.expires(&timeouts)), (State::Opening, Instant::ZERO + timeouts.opening));
        e.note(SATELLITE, &packet(Flags::SYN.with(Flags::ACK), 7, 101, 0), Instant(5));
        assert_eq!(e.state, State::Opening);
        e.note(LAN, &packet(Flags::ACK, 101, 8, 0), Instant(6));
        assert_eq!((e.state, e.expires(&timeouts)), (State::Established, Instant(6) + timeouts.established));
        e.note(LAN, &packet(Flags::ACK.with(Flags::FIN), 101, 8, 50), Instant(7));
        assert_eq!(e.state, State::Established, "the other half may go on for hours");
        e.note(SATELLITE, &packet(Flags::ACK.with(Flags::FIN), 8, 152, 0), Instant(9));
        assert_eq!((e.state, e.expires(&timeouts)), (State::Closing, Instant(9) + timeouts.closing));
        let report = e.report(FlowReport::default(), Some(EndReason::Closed));
        assert_eq!(
            (report.delivered, report.took, report.bytes),
            (Size(50), Duration(2), [Size(50), Size(0)])
        );
        assert_eq!(
            (report.addrs, report.ports, report.opened_by_lan),
            ([Addr(1), Addr(2)], [10, 20], Some(true))
        );
    }

    #[test]
    fn windows_count_with_the_scale_of_both_syns() {
        let syn_ack = Flags::SYN.with(Flags::ACK);
        for (scales, window) in
            [([Some(7), Some(2)], 8000 << 2), ([None, Some(2)], 8000), ([Some(7), None], 8000)]
        {
            let mut e = opened();
            let mut syn = packet(Flags::SYN, 100, 0, 0);
            syn.tcp.window_scale = scales[0];
            let mut answer = packet(syn_ack, 7, 101, 0);
            (answer.tcp.window_scale, answer.tcp.window) = (scales[1], u16::MAX);
            assert_eq!((e.note_window(LAN, &syn), e.note_window(SATELLITE, &answer)), (None, None));
            e.note(SATELLITE, &answer, Instant(5));
            let mut ack = packet(Flags::ACK, 8, 201, 0);
            for field in [8000, 8001, 7000] {
                ack.tcp.window = field;
                let news = e.note_window(SATELLITE, &ack);
                assert_eq!(news.map(|n| (n.window, n.before)), (field == 8000).then_some((window, None)));
                ack.tcp.window = 0;
                assert_eq!(e.note_window(SATELLITE, &ack), None);
            }
            ack.tcp.window = 32_000;
            let class = class_of(window).unwrap();
            assert_eq!(e.note_window(SATELLITE, &ack).unwrap().before, Some((class, true)), "tuned");
        }
    }

    #[test]
    fn the_rtt_of_the_hop_is_that_of_its_handshake() {
        let syn_ack = Flags::SYN.with(Flags::ACK);
        let mut e = opened();
        let answer = packet(syn_ack, 7, 101, 0);
        assert_eq!(e.handshake_rtt(SATELLITE, &answer, Instant(9)), Some(Duration(9)));
        e.note(LAN, &packet(Flags::SYN, 100, 0, 0), Instant(4));
        assert_eq!(e.handshake_rtt(SATELLITE, &answer, Instant(9)), None, "retransmitted");
        let syn = packet(Flags::SYN, 7, 0, 0);
        let mut e = Entry::new(Key::of(&syn).0, SATELLITE, Key::of(&syn).1, &syn, Instant(0));
        e.note(SATELLITE, &syn, Instant(0));
        e.note(LAN, &packet(syn_ack, 100, 8, 0), Instant(2));
        let ack = packet(Flags::ACK, 8, 101, 0);
        assert_eq!(e.handshake_rtt(SATELLITE, &ack, Instant(9)), Some(Duration(7)));
    }

    #[test]
    fn acknowledgments_count_across_the_wrap_and_never_back() {
        let mut e = opened();
        for (ack, at) in [(u32::MAX - 9, 1), (90, 2), (u32::MAX - 9, 3), (90, 4), (100, 5)] {
            e.note(SATELLITE, &packet(Flags::ACK, 0, ack, 0), Instant(at));
        }
        assert_eq!((e.acked, e.progress), (110, Instant(5)));
    }

    #[test]
    fn a_port_that_is_used_again_is_a_new_connection() {
        let mut e = opened();
        let again = packet(Flags::SYN, 100, 0, 0);
        let other = packet(Flags::SYN, 999, 0, 0);
        assert!(!e.is_succeeded_by(LAN, &again) && e.is_succeeded_by(LAN, &other));
        assert!(!e.is_succeeded_by(SATELLITE, &other), "a simultaneous open");
        e.note(SATELLITE, &packet(Flags::SYN.with(Flags::ACK), 7, 101, 0), Instant(5));
        e.note(LAN, &packet(Flags::ACK, 101, 8, 0), Instant(6));
        assert!(!e.is_succeeded_by(LAN, &again), "a late copy");
        assert!(e.is_succeeded_by(LAN, &other), "nothing is lost by believing it: it passes");
        e.flow = 3;
        assert!(!e.is_succeeded_by(LAN, &other), "a forged SYN must not end an acceleration");
        e.state = State::Closing;
        assert!(!e.is_succeeded_by(LAN, &again), "a late copy behind a FIN");
        assert!(e.is_succeeded_by(LAN, &other) && e.is_succeeded_by(SATELLITE, &again));
        e.note(SATELLITE, &packet(Flags::RST, 0, 0, 0), Instant(7));
        assert!(e.is_succeeded_by(LAN, &again) && e.is_succeeded_by(SATELLITE, &other));
    }
}
