//! One end of a conversation: a plain, strict TCP by RFC 9293. Reports errors of the other in a clean run.

use crate::oracle::{Seg, before, flag, stream};
use crate::packet::build;
use crate::stage::Wire;
use std::collections::BTreeMap;

const MS: u64 = 1_000_000;
const LEAST_RTO: u64 = 1000 * MS;
/// Delayed ACK timeout.
const DELAYED: u64 = 40 * MS;

/// Properties of a host.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kind {
    pub(crate) v6: bool,
    pub(crate) stamps: bool,
    pub(crate) sack: bool,
    pub(crate) scale: Option<u8>,
    /// Receive buffer, bytes; its window fits into the field with any scale.
    pub(crate) room: u32,
    /// Bytes that it sends.
    pub(crate) says: u32,
    /// Most segments per unit, and whether checksums are left to offload.
    pub(crate) burst: u32,
    pub(crate) partial: bool,
    /// Delayed ACKs: acknowledges every second segment.
    pub(crate) delays: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Listen,
    Sent,
    Received,
    Open,
}

/// One end of a conversation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Host {
    pub(crate) kind: Kind,
    /// Last byte of the address, and port: own, and the other's.
    pub(crate) own: (u8, u16),
    pub(crate) other: (u8, u16),
    state: State,
    isn: u32,
    una: u32,
    nxt: u32,
    /// Highest sequence number sent, plus one.
    snd_max: u32,
    /// Right edge of the send window.
    snd_edge: u32,
    /// Sequence and acknowledgment number of the segment that set the window last.
    told: Option<(u32, u32)>,
    mss: u32,
    cwnd: u32,
    dups: u32,
    /// True if both ends offered window scaling.
    scales: bool,
    other_scale: u8,
    stamps: bool,
    sack: bool,
    /// TS.Recent (RFC 7323).
    recent: u32,
    /// RCV.NXT.
    rcv_nxt: u32,
    /// Ranges received out of order: start and end.
    out_of_order: BTreeMap<u32, u32>,
    /// Sequence number of the FIN received.
    fin: Option<u32>,
    /// Segments received and not yet acknowledged.
    unacked_segments: u32,
    ack_at: Option<u64>,
    rto_at: Option<u64>,
    backoff: u32,
    /// Highest acknowledgment number it has sent.
    pub(crate) acked: u32,
    /// True without hostile packets: then errors of the other end are reported.
    clean: bool,
}

/// Units to send.
pub(crate) type Out = Vec<Wire>;

impl Host {
    pub(crate) fn new(kind: Kind, own: (u8, u16), other: (u8, u16), isn: u32, clean: bool) -> Self {
        Self {
            kind,
            own,
            other,
            isn,
            una: isn,
            nxt: isn,
            snd_max: isn,
            snd_edge: isn,
            mss: 1400,
            cwnd: 14_000,
            stamps: kind.stamps,
            sack: kind.sack,
            clean,
            ..Self::default()
        }
    }

    /// True when all data was sent, received and acknowledged.
    pub(crate) const fn is_done(&self) -> bool {
        self.fin.is_some() && self.una == self.end().wrapping_add(1)
    }

    /// Sequence number after its data, which is that of its FIN.
    const fn end(&self) -> u32 {
        self.isn.wrapping_add(1).wrapping_add(self.kind.says)
    }

    pub(crate) fn deadline(&self) -> Option<u64> {
        [self.ack_at, self.rto_at].into_iter().flatten().min()
    }

    /// Opens the conversation.
    pub(crate) fn open(&mut self, now: u64) -> Out {
        self.state = State::Sent;
        self.syn(now, flag::SYN)
    }

    fn syn(&mut self, now: u64, flags: u8) -> Out {
        let offers = self.state == State::Sent || self.scales;
        let mut seg = self.segment(now, self.isn, flags);
        seg.mss = Some(if self.kind.v6 { 1440 } else { 1460 });
        seg.scale = self.kind.scale.filter(|_| offers);
        seg.sack_ok = self.sack;
        seg.window = self.kind.room.min(65_535) as u16;
        seg.sack.clear();
        (self.nxt, self.snd_max) = (self.isn.wrapping_add(1), self.isn.wrapping_add(1));
        self.rto_at = Some(now + (LEAST_RTO << self.backoff.min(5)));
        vec![build(&seg, 0, false)]
    }

    fn segment(&mut self, now: u64, seq: u32, flags: u8) -> Seg {
        let own = self.kind.scale.filter(|_| self.scales).unwrap_or(0);
        let acks = flags & flag::ACK > 0;
        self.acked = self.rcv_nxt;
        let sack: Vec<(u32, u32)> = self.out_of_order.iter().map(|(l, r)| (*l, *r)).take(3).collect();
        Seg {
            v6: self.kind.v6,
            from: self.own.0,
            to: self.other.0,
            sport: self.own.1,
            dport: self.other.1,
            seq,
            ack: if acks { self.rcv_nxt } else { 0 },
            flags,
            window: (self.kind.room >> own).min(65_535) as u16,
            stamps: self.stamps.then_some(((now / MS) as u32, self.recent)),
            sack: if acks && self.sack { sack } else { Vec::new() },
            ..Seg::default()
        }
    }

    fn ack(&mut self, now: u64) -> Out {
        (self.unacked_segments, self.ack_at) = (0, None);
        vec![build(&self.segment(now, self.snd_max, flag::ACK), 0, self.kind.partial)]
    }

    /// Scale of the windows it receives after a SYN that offers `scale`.
    pub(crate) fn scale_of(&self, scale: Option<u8>) -> u8 {
        scale.filter(|_| self.kind.scale.is_some()).unwrap_or(0)
    }

    /// True if `ack` acknowledges all that it sends; then no window matters.
    pub(crate) const fn is_all(&self, ack: u32) -> bool {
        ack == self.end().wrapping_add(1)
    }

    /// Sends what is allowed now.
    pub(crate) fn pump(&mut self, now: u64) -> Out {
        let mut out = Vec::new();
        while self.state == State::Open {
            let allowed = self.una.wrapping_add(self.cwnd);
            let limit = if before(self.snd_edge, allowed) { self.snd_edge } else { allowed };
            let room = if before(self.nxt, limit) { limit.wrapping_sub(self.nxt) } else { 0 };
            let left = if before(self.nxt, self.end()) { self.end().wrapping_sub(self.nxt) } else { 0 };
            let n = left.min(room).min(self.mss * self.kind.burst);
            let fin = n == left && !before(self.end(), self.nxt);
            if (n == 0 && !fin) || (n < left && n < self.mss && self.nxt != self.una) {
                break;
            }
            out.push(self.data(now, n, fin));
        }
        if self.nxt != self.una || before(self.nxt, self.end()) {
            self.rto_at.get_or_insert(now + (LEAST_RTO << self.backoff.min(5)));
        }
        out
    }

    /// A unit of `n` bytes, or of as many as fit with its options.
    fn data(&mut self, now: u64, n: u32, fin: bool) -> Wire {
        let mut seg = self.segment(now, self.nxt, flag::ACK);
        let largest = self.largest(&seg);
        let fits = if self.kind.burst == 1 { n.min(largest) } else { n };
        let (n, fin) = (fits, fin && fits == n);
        if fin {
            seg.flags |= flag::FIN | flag::PSH;
        }
        seg.payload = stream(self.own.1, self.other.1, self.nxt, n as usize);
        self.nxt = self.nxt.wrapping_add(n + u32::from(fin));
        if before(self.snd_max, self.nxt) {
            self.snd_max = self.nxt;
        }
        (self.unacked_segments, self.ack_at) = (0, None);
        build(&seg, largest as u16, self.kind.partial)
    }

    /// Largest payload of a packet with the options of `seg`.
    fn largest(&self, seg: &Seg) -> u32 {
        self.mss - if seg.sack.is_empty() { 0 } else { 4 + 8 * seg.sack.len() as u32 }
    }

    /// Handles its expired timer.
    pub(crate) fn timer(&mut self, now: u64) -> Out {
        let mut out = Vec::new();
        if self.ack_at.is_some_and(|at| at <= now) {
            out = self.ack(now);
        }
        if self.rto_at.is_none_or(|at| at > now) {
            return out;
        }
        self.rto_at = None;
        self.backoff += 1;
        match self.state {
            State::Sent => out.extend(self.syn(now, flag::SYN)),
            State::Received => out.extend(self.syn(now, flag::SYN | flag::ACK)),
            State::Open if self.una != self.end().wrapping_add(1) => {
                (self.nxt, self.cwnd, self.dups) = (self.una, 2 * self.mss, 0);
                out.extend(self.pump(now));
                if self.nxt == self.una && before(self.nxt, self.end()) {
                    // a zero window: probe with one byte (RFC 9293, section 3.8.6.1)
                    out.push(self.data(now, 1, false));
                }
            }
            State::Open | State::Listen => {}
        }
        out
    }

    fn wrong<T>(&self, what: &str, seg: &Seg) -> Result<T, String> {
        Err(format!("{what}: {seg:?}\nat {self:?}"))
    }

    /// Handles a segment. `acked` is how far the other end has acknowledged.
    pub(crate) fn receive(&mut self, now: u64, seg: &Seg, acked: u32) -> Result<Out, String> {
        match self.state {
            State::Listen if seg.flags & 0x17 == flag::SYN => {
                self.take_syn(seg);
                self.state = State::Received;
                Ok(self.syn(now, flag::SYN | flag::ACK))
            }
            State::Sent if seg.flags & 0x17 == flag::SYN | flag::ACK && seg.ack == self.nxt => {
                self.take_syn(seg);
                (self.una, self.state, self.backoff, self.rto_at) = (self.nxt, State::Open, 0, None);
                let mut out = self.ack(now);
                out.extend(self.pump(now));
                Ok(out)
            }
            State::Listen | State::Sent => Ok(Vec::new()),
            State::Received | State::Open => self.segment_arrives(now, seg, acked),
        }
    }

    fn take_syn(&mut self, seg: &Seg) {
        self.rcv_nxt = seg.seq.wrapping_add(1);
        self.acked = self.rcv_nxt;
        self.scales = self.kind.scale.is_some() && seg.scale.is_some();
        self.other_scale = self.scale_of(seg.scale);
        self.stamps &= seg.stamps.is_some();
        self.sack &= seg.sack_ok;
        self.recent = seg.stamps.map_or(0, |s| s.0);
        self.mss = u32::from(seg.mss.unwrap_or(536)).clamp(200, 1460) - if self.stamps { 12 } else { 0 };
        self.snd_edge = self.isn.wrapping_add(1).wrapping_add(u32::from(seg.window));
        self.told = Some((seg.seq, self.isn));
    }

    /// RFC 9293, section 3.10.7.4, in its order; PAWS first (RFC 7323, section 5).
    fn segment_arrives(&mut self, now: u64, seg: &Seg, acked: u32) -> Result<Out, String> {
        if let (true, Some((value, _)), false) = (self.stamps, seg.stamps, seg.has(flag::RST)) {
            if before(value, self.recent) {
                return Ok(self.ack(now));
            }
            if !before(self.rcv_nxt, seg.seq) {
                self.recent = value;
            }
        }
        let (start, end, limit) =
            (seg.seq, seg.seq.wrapping_add(seg.len()), self.rcv_nxt.wrapping_add(self.kind.room));
        let is_in = |at: u32| !before(at, self.rcv_nxt) && before(at, limit);
        if !(is_in(start) || (end != start && is_in(end.wrapping_sub(1)))) {
            return Ok(if seg.has(flag::RST) { Vec::new() } else { self.ack(now) });
        }
        if seg.flags & (flag::RST | flag::SYN) > 0 {
            let is_wrong = self.clean && seg.has(flag::RST);
            return if is_wrong { self.wrong("a reset", seg) } else { Ok(self.ack(now)) };
        }
        if !seg.has(flag::ACK) {
            return Ok(Vec::new());
        }
        if before(self.snd_max, seg.ack) {
            let what = "acknowledges what was not sent";
            return if self.clean { self.wrong(what, seg) } else { Ok(self.ack(now)) };
        }
        self.state = State::Open;
        let mut out = self.acknowledged(now, seg, acked)?;
        self.text(seg, limit)?;
        let has_data = seg.len() > 0;
        self.unacked_segments += u32::from(has_data);
        let waits = self.kind.delays
            && self.unacked_segments < 2
            && self.out_of_order.is_empty()
            && self.fin.is_none();
        if has_data && waits {
            self.ack_at.get_or_insert(now + DELAYED);
        }
        out.extend(self.pump(now));
        if has_data && !waits && self.unacked_segments > 0 {
            out.extend(self.ack(now));
        }
        Ok(out)
    }

    fn acknowledged(&mut self, now: u64, seg: &Seg, acked: u32) -> Result<Out, String> {
        if self.clean && before(acked, seg.ack) {
            return self.wrong("acknowledges what the other end has not", seg);
        }
        if before(seg.ack, self.una) {
            return Ok(Vec::new());
        }
        if self.clean && seg.sack.iter().any(|(l, r)| !before(*l, *r) || before(self.snd_max, *r)) {
            return self.wrong("blocks that cannot be", seg);
        }
        let mut out = Vec::new();
        if seg.ack != self.una {
            self.cwnd = (self.cwnd + seg.ack.wrapping_sub(self.una)).min(400_000);
            (self.una, self.backoff, self.rto_at, self.dups) = (seg.ack, 0, None, 0);
            if before(self.nxt, self.una) {
                self.nxt = self.una;
            }
        } else if seg.len() == 0 && self.nxt != self.una {
            self.dups += 1;
            if self.dups == 3 && before(self.una, self.end()) {
                let mut again = self.segment(now, self.una, flag::ACK);
                let sent = if before(self.end(), self.nxt) { self.end() } else { self.nxt };
                let n = self.largest(&again).min(sent.wrapping_sub(self.una));
                again.payload = stream(self.own.1, self.other.1, self.una, n as usize);
                out.push(build(&again, 0, false));
            }
        }
        let is_newer =
            |(seq, ack): (u32, u32)| before(seq, seg.seq) || (seq == seg.seq && !before(seg.ack, ack));
        if self.told.is_none_or(is_newer) {
            self.told = Some((seg.seq, seg.ack));
            self.snd_edge = seg.ack.wrapping_add(u32::from(seg.window) << self.other_scale);
        }
        Ok(out)
    }

    /// Accepts what lies in the window and discards the rest, as old stacks do.
    fn text(&mut self, seg: &Seg, limit: u32) -> Result<(), String> {
        let start = seg.seq;
        let whole = start.wrapping_add(seg.payload.len() as u32);
        if seg.payload != stream(seg.sport, seg.dport, start, seg.payload.len()) {
            return self.wrong("bytes that nobody sent", seg);
        }
        let end = if before(limit, whole) { limit } else { whole };
        if seg.has(flag::FIN) && end == whole {
            self.fin.get_or_insert(whole);
        }
        if start != end && before(self.rcv_nxt, end) {
            let left = if before(start, self.rcv_nxt) { self.rcv_nxt } else { start };
            let right = self.out_of_order.entry(left).or_insert(end);
            if before(*right, end) {
                *right = end;
            }
        }
        // sequence numbers wrap, so the order of the map is not that of the stream
        while let Some((left, right)) =
            self.out_of_order.iter().map(|(l, r)| (*l, *r)).find(|(l, _)| !before(self.rcv_nxt, *l))
        {
            self.out_of_order.remove(&left);
            if before(self.rcv_nxt, right) {
                self.rcv_nxt = right;
            }
        }
        if self.fin == Some(self.rcv_nxt) {
            self.rcv_nxt = self.rcv_nxt.wrapping_add(1);
        }
        Ok(())
    }
}
