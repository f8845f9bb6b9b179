//! Where the two streams of a flow are, seen from beside the host.
//!
//! Sources: RFC 9293, section 3.10.7.4 (which segments are acceptable), RFC 5961, section 5.2 (old
//! acknowledgments), RFC 6298 (smoothed round-trip time; a segment that was sent again gives no sample).
//! The host is the authority. This is a copy of what it has shown in its packets, which may be a little old:
//! it serves to leave out structures in packets that the host would not accept, and to measure.

use bentpipe_base::{Duration, Flags, Instant, Packet, Seq, TcpHeader};

/// An acknowledgment older than this by bytes is not believed: the largest window (RFC 7323).
const MOST_WINDOW: i32 = 1 << 30;
/// Weight of a new sample in the smoothed time: 1/8 (RFC 6298).
const GAIN: u64 = 8;
/// Shortest time without an acknowledgment that a host takes for a loss by timeout.
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(200);

/// Bytes from `b` to `a`; negative if `a` is before `b`.
const fn distance(a: Seq, b: Seq) -> i32 {
    a.0.wrapping_sub(b.0).cast_signed()
}

/// End of a packet in sequence space.
fn end(packet: &Packet) -> Seq {
    packet.tcp.seq.at(packet.seq_len())
}

/// Sequence numbers and times of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Track {
    /// First sequence number of the host.
    pub(crate) isn: Seq,
    /// First sequence number of the peer.
    pub(crate) peer_isn: Seq,
    /// End of what the host has sent.
    sent: Seq,
    /// What the peer has acknowledged, and since when.
    acked: Seq,
    acked_at: Instant,
    /// What the host expects next.
    expected: Seq,
    window: u32,
    /// Window scale of the host and of the peer; both must have one.
    scales: (Option<u8>, Option<u8>),
    /// A segment whose acknowledgment gives a sample.
    timed: Option<(Seq, Instant)>,
    /// Smoothed round-trip time; zero without a sample.
    pub(crate) srtt: Duration,
}

/// What a packet of the host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sending {
    /// It has nothing that was sent before.
    New,
    /// It was sent before.
    Again,
    /// It was sent before, and is sent again after a timeout.
    AfterTimeout,
}

impl Track {
    /// The host's SYN or SYN/ACK.
    pub(crate) fn host_syn(&mut self, now: Instant, syn: &Packet) {
        self.isn = syn.tcp.seq;
        (self.sent, self.acked, self.acked_at) = (end(syn), syn.tcp.seq, now);
        self.scales.0 = syn.tcp.window_scale;
        self.window = u32::from(syn.tcp.window);
        self.timed = Some((end(syn), now));
    }

    /// The host's SYN or SYN/ACK was sent again.
    pub(crate) const fn host_syn_again(&mut self) {
        self.timed = None;
    }

    /// The peer's SYN or SYN/ACK.
    pub(crate) const fn peer_syn(&mut self, syn: &TcpHeader) {
        (self.peer_isn, self.expected) = (syn.seq, syn.seq.at(1));
        self.scales.1 = syn.window_scale;
    }

    /// A packet of the host other than a SYN, with `more` bytes of data after its body.
    pub(crate) fn host_packet(&mut self, now: Instant, packet: &Packet, more: u64) -> Sending {
        if packet.tcp.flags.has(Flags::ACK) && distance(packet.tcp.ack, self.expected) >= 0 {
            self.expected = packet.tcp.ack;
        }
        let scale = self.scales.0.filter(|_| self.scales.1.is_some()).map_or(0, |scale| scale.min(14));
        self.window = u32::from(packet.tcp.window) << scale;
        let (end, len) = (end(packet).at(more), packet.seq_len() + more);
        if len == 0 || distance(end, self.sent) > 0 {
            if len > 0 {
                if self.sent == self.acked {
                    self.acked_at = now; // nothing was in flight: a timeout counts from here
                }
                self.timed.get_or_insert((end, now));
                self.sent = end;
            }
            return Sending::New;
        }
        self.timed = None;
        let patience = SHORTEST_TIMEOUT.max(self.srtt);
        let is_first = distance(packet.tcp.seq, self.acked) <= 0;
        let late = now.since(self.acked_at) >= patience;
        if is_first && late { Sending::AfterTimeout } else { Sending::Again }
    }

    /// Where the host's next new byte is.
    pub(crate) const fn next(&self) -> Seq {
        self.sent
    }

    /// What the host expects of the peer.
    pub(crate) const fn expected(&self) -> Seq {
        self.expected
    }

    /// True if the host would accept this packet of the peer, as far as it has shown.
    pub(crate) fn is_acceptable(&self, packet: &Packet) -> bool {
        let tcp = &packet.tcp;
        let acks = distance(tcp.ack, self.sent) <= 0 && distance(self.acked, tcp.ack) <= MOST_WINDOW;
        tcp.flags.has(Flags::ACK) && acks && self.is_in_window(packet)
    }

    /// True if a packet of the peer begins behind what the host expects.
    pub(crate) fn is_ahead(&self, packet: &Packet) -> bool {
        distance(packet.tcp.seq, self.expected) > 0
    }

    /// True if the sequence numbers of a packet of the peer are within the host's window.
    pub(crate) fn is_in_window(&self, packet: &Packet) -> bool {
        let ends_after = distance(end(packet), self.expected) >= 0;
        ends_after && i64::from(distance(packet.tcp.seq, self.expected)) <= i64::from(self.window)
    }

    /// The acknowledgment of a packet that is acceptable.
    pub(crate) fn peer_packet(&mut self, now: Instant, ack: Seq) {
        if distance(ack, self.acked) > 0 {
            (self.acked, self.acked_at) = (ack, now);
        }
        let sample = self.timed.filter(|(end, _)| distance(ack, *end) >= 0);
        let Some((_, sent)) = sample else { return };
        self.timed = None;
        let rtt = now.since(sent);
        let before = if self.srtt.is_zero() { rtt } else { self.srtt };
        self.srtt = Duration((before.0 * (GAIN - 1) + rtt.0) / GAIN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::Body;

    const MS: u64 = 1_000_000;

    fn packet(seq: u32, ack: u32, len: u32) -> Packet {
        let tcp =
            TcpHeader { seq: Seq(seq), ack: Seq(ack), flags: Flags::ACK, window: 10, ..TcpHeader::default() };
        Packet { tcp, body: Body { off: 0, len }, ..Packet::default() }
    }

    /// A flow just before sequence number 0: the host's SYN was -1, the peer's 99.
    fn open() -> Track {
        let mut track = Track::default();
        let mut syn = packet(u32::MAX, 0, 0);
        (syn.tcp.flags, syn.tcp.window_scale) = (Flags::SYN, Some(2));
        track.host_syn(Instant(0), &syn);
        (syn.tcp.seq, syn.tcp.window_scale) = (Seq(99), Some(7));
        track.peer_syn(&syn.tcp);
        track.peer_packet(Instant(80 * MS), Seq(0));
        track.host_packet(Instant(80 * MS), &packet(0, 100, 0), 0);
        track
    }

    #[test]
    fn the_round_trip_is_measured_by_segments_sent_once() {
        let mut track = open();
        assert_eq!((track.srtt, track.next()), (Duration(80 * MS), Seq(0)));
        assert_eq!(track.host_packet(Instant(100 * MS), &packet(0, 100, 50), 0), Sending::New);
        assert_eq!(track.host_packet(Instant(101 * MS), &packet(50, 100, 50), 0), Sending::New);
        track.peer_packet(Instant(260 * MS), Seq(100));
        assert_eq!(track.srtt, Duration(90 * MS));
        track.host_packet(Instant(300 * MS), &packet(100, 100, 50), 0);
        assert_eq!(track.host_packet(Instant(310 * MS), &packet(100, 100, 50), 0), Sending::Again);
        track.peer_packet(Instant(900 * MS), Seq(150));
        assert_eq!(track.srtt, Duration(90 * MS), "it was sent twice");
    }

    #[test]
    fn what_is_sent_again_late_is_a_timeout() {
        let mut track = open();
        track.host_packet(Instant(1000 * MS), &packet(0, 100, 50), 0);
        track.host_packet(Instant(1001 * MS), &packet(50, 100, 50), 0);
        assert_eq!(track.host_packet(Instant(1190 * MS), &packet(0, 100, 50), 0), Sending::Again);
        assert_eq!(track.host_packet(Instant(1200 * MS), &packet(0, 100, 50), 0), Sending::AfterTimeout);
        assert_eq!(track.host_packet(Instant(1200 * MS), &packet(50, 100, 50), 0), Sending::Again);
    }

    #[test]
    fn only_packets_within_the_window_count() {
        let mut track = open();
        track.host_packet(Instant(0), &packet(0, 100, 50), 0);
        let is = |seq, ack, len| track.is_acceptable(&packet(seq, ack, len));
        assert!(is(100, 50, 0) && is(100, 0, 500) && is(140, 0, 500) && is(100, u32::MAX, 0));
        assert!(!is(141, 0, 10) && !is(100, 51, 0) && !is(99, 0, 0) && is(90, 0, 10));
        assert!(!is(100, 1 << 31, 0));
    }
}
