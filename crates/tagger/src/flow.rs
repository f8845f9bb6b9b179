//! One flow of the host whose peer may signal.

use crate::room::Room;
use crate::track::{Sending, Track};
use crate::usage::{Usage, Wish};
use bentpipe_advice::negotiation::{AskConfig, Carrier, Negotiation, RateAnswer, RateState};
use bentpipe_advice::tia1039::{self, QOS_FLOW, QOS_SIGNAL, Structure};
use bentpipe_base::{
    Body, Cx, Dscp, Duration, Flags, Instant, IpVersion, Packet, Pkt, Rate, Seq, Signal, Size,
};

/// How long a flow that has ended is remembered: late packets follow, and the peer may signal in them.
const LINGER: Duration = Duration::from_secs(60);
/// Bytes by which the MSS option is lowered: a structure then fits into a full segment.
const ROOM: u16 = Structure::LEN as u16;
/// A flow whose packets have no room for a place is given one in this time.
const PLACE_EVERY: Duration = Duration::from_millis(100);
/// How often in a row data may be withheld that comes again as it was, before the flow is reset.
const MOST_WITHHELD: u8 = 6;
/// An MSS option below this is wrong, and stays as it is.
const LEAST_MSS: u16 = 64;

/// How far a flow is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The handshake is under way.
    Opening,
    /// Both ends signal.
    Open,
    /// It has ended.
    Closing,
}

/// One flow.
#[derive(Debug)]
pub(crate) struct Flow {
    /// Changed by the table, which counts phases.
    pub(crate) phase: Phase,
    /// The host sent the first SYN.
    pub(crate) is_ours: bool,
    pub(crate) ip: IpVersion,
    pub(crate) negotiation: Negotiation,
    pub(crate) track: Track,
    room: Room,
    /// When data last left with a structure.
    placed: Instant,
    usage: Usage,
    /// A rate to ask for in the next packet that has room.
    wish: Option<Rate>,
    /// How often the host sent its SYN or SYN/ACK.
    pub(crate) syns: u32,
    /// The first of them carried a structure.
    pub(crate) has_asked: bool,
    /// The peer took the structure for data: the sequence number that it expects.
    pub(crate) taken_as_data: Option<Seq>,
    /// Data that was withheld: where it begins, what the host expected then, and how often it came.
    withheld: (Seq, Seq, u8),
    /// The rate must be confirmed: the host was silent.
    unconfirmed: bool,
    /// FINs of the host and of the peer.
    pub(crate) fins: (bool, bool),
    /// What the driver was told.
    pub(crate) told: Option<Rate>,
    /// Since when it is in its phase.
    pub(crate) since: Instant,
    /// Its last packet.
    pub(crate) last: Instant,
    /// When the table looks at it next; never if it is not in the table's queue.
    pub(crate) check_at: Instant,
}

/// Lowers the MSS of a SYN, so that the segments of its receiver leave room for a structure.
pub(crate) fn leave_room(syn: &mut Packet) {
    syn.tcp.mss = syn.tcp.mss.map(|mss| if mss < LEAST_MSS { mss } else { mss - ROOM });
}

/// Removes all structures of a packet, and the code points of signalling; true if there were structures.
/// An IPv6 header with other options only stays.
pub(crate) fn clean(packet: &mut Packet) -> bool {
    let has =
        packet.ip == IpVersion::V4 && packet.signal.is_some() || !tia1039::structures(packet).is_empty();
    if has {
        tia1039::write(packet, &[]);
    }
    if [QOS_SIGNAL, QOS_FLOW].contains(&packet.dscp) {
        packet.dscp = Dscp::DEFAULT;
    }
    has
}

/// What a packet other than a SYN is for a negotiation.
pub(crate) const fn carrier(packet: &Packet) -> Carrier {
    if packet.body.len > 0 || packet.tcp.flags.has(Flags::FIN) { Carrier::Data } else { Carrier::Ack }
}

/// Bytes of data of a host's IPv4 packet that are not in its body, since they look like a structure.
fn hidden(packet: &Packet) -> u64 {
    let v4 = packet.signal.as_deref().filter(|_| packet.ip == IpVersion::V4);
    v4.map_or(0, |signal| u64::from(signal.len()))
}

/// Cuts the last byte off data of the host that ends like a structure, and returns it: neither part does so.
pub(crate) fn cut_end(cx: &mut Cx<'_>, packet: &mut Packet) -> Option<Pkt> {
    let signal = packet.signal.as_deref().filter(|_| packet.ip == IpVersion::V4)?;
    let (last, head) = signal.bytes().split_last()?;
    let (last, head) = (Signal::new(&[*last]), Signal::new(head));
    let mut rest = cx.duplicate(packet);
    let before = u64::from(packet.body.len) + head.as_ref().map_or(0, |head| u64::from(head.len()));
    (rest.body.len, rest.signal) = (0, last.map(Box::new));
    packet.signal = head.map(Box::new);
    part(packet, &mut rest, before);
    Some(rest)
}

/// Makes two packets of one; `rest` begins `before` bytes later.
fn part(packet: &mut Packet, rest: &mut Packet, before: u64) {
    rest.tcp.seq = rest.tcp.seq.at(before);
    rest.tcp.flags = Flags(rest.tcp.flags.0 & !Flags::CWR.0);
    rest.seal();
    packet.tcp.flags = Flags(packet.tcp.flags.0 & !(Flags::FIN.0 | Flags::PSH.0));
    packet.seal();
}

impl Flow {
    pub(crate) fn new(now: Instant, ask: &AskConfig, ip: IpVersion, is_ours: bool) -> Self {
        let mut negotiation = Negotiation::new(ask.clone(), ip);
        negotiation.keep_changes(0);
        Self {
            phase: Phase::Opening,
            is_ours,
            ip,
            negotiation,
            track: Track::default(),
            room: Room::default(),
            placed: now,
            usage: Usage::default(),
            wish: None,
            syns: 0,
            has_asked: false,
            taken_as_data: None,
            withheld: (Seq(0), Seq(0), 0),
            unconfirmed: false,
            fins: (false, false),
            told: None,
            since: now,
            last: now,
            check_at: Instant::NEVER,
        }
    }

    /// When it is forgotten.
    pub(crate) fn expires(&self, half_open: Duration, idle: Duration) -> Instant {
        match self.phase {
            Phase::Opening => self.since + half_open,
            Phase::Open => self.last + idle,
            Phase::Closing => self.last + LINGER,
        }
    }

    /// Adds to the host's SYN or SYN/ACK what it says. The path may drop packets with structures: a SYN that
    /// is sent again has none and shows only that this end signals, and the third one shows nothing. A
    /// SYN/ACK goes to a peer that signals, so it always shows it.
    pub(crate) fn tag_syn(&mut self, now: Instant, syn: &mut Packet) {
        self.syns = self.syns.saturating_add(1);
        leave_room(syn);
        syn.seal();
        if self.syns == 1 {
            self.track.host_syn(now, syn);
            let structures = self.negotiation.syn(now);
            self.has_asked = !structures.is_empty();
            tia1039::write(syn, &structures);
        } else if self.track.isn == syn.tcp.seq {
            self.track.host_syn_again();
        } else {
            self.track.host_syn(now, syn); // a SYN cookie that has changed
        }
        if self.syns <= 2 || !self.is_ours {
            syn.dscp = QOS_SIGNAL;
        }
    }

    /// Cuts a packet without room for a place, if none of the flow had one for some time; returns its end.
    pub(crate) fn cut_for_place(&self, cx: &mut Cx<'_>, packet: &mut Packet) -> Option<Pkt> {
        const END: u32 = Structure::LEN as u32;
        let is_time = cx.now.since(self.placed) >= PLACE_EVERY && self.negotiation.placeholder().is_some();
        let is_new = packet.tcp.seq == self.track.next();
        let is_plain = packet.signal.is_none() && packet.segment == 0 && packet.body.len > END;
        if !(is_time && is_new && is_plain && self.room.has_without_end(packet)) {
            return None;
        }
        let mut rest = cx.duplicate(packet);
        packet.body.len -= END;
        rest.body = Body { off: packet.body.off + u64::from(packet.body.len), len: END };
        part(packet, &mut rest, u64::from(packet.body.len));
        Some(rest)
    }

    /// Adds to another packet of the host what it says. Returns a packet without data that goes before it if
    /// there is no room, or if the data must not be lost should the path drop the structure.
    pub(crate) fn tag(&mut self, cx: &mut Cx<'_>, packet: &mut Packet, mtu: Size) -> Option<Pkt> {
        let (now, next) = (cx.now, self.track.next());
        let sending = self.track.host_packet(now, packet, hidden(packet));
        if sending == Sending::AfterTimeout {
            self.negotiation.timeout();
        }
        let has_data = packet.body.len > 0 || hidden(packet) > 0;
        let carrier = if has_data { Carrier::Data } else { carrier(packet) };
        if has_data {
            self.count(now, packet.wire_len());
        }
        let bare = packet.other_options.kinds == 0 && packet.signal.is_none();
        self.mark(packet, carrier);
        let may_grow = !has_data || self.room.has(packet, sending != Sending::New);
        let fits = packet.wire_len().0 + Structure::LEN as u64 <= mtu.0;
        if packet.signal.is_none() && fits && may_grow {
            self.add_structure(now, packet, carrier);
            if has_data && packet.signal.is_some() {
                self.placed = now;
            }
        }
        let is_owed = bare && carrier == Carrier::Data && self.negotiation.is_due();
        if !is_owed || !packet.tcp.flags.has(Flags::ACK) {
            return None;
        }
        let structure = self.negotiation.outgoing(now, self.track.srtt, Carrier::Ack, None)?;
        let mut ack = cx.duplicate(packet);
        ack.body.len = 0;
        (ack.tcp.flags, ack.tcp.seq) = (Flags::ACK, next);
        tia1039::write(&mut ack, &[structure]);
        Some(ack)
    }

    fn count(&mut self, now: Instant, size: Size) {
        match self.usage.add(now, size, self.negotiation.granted()) {
            Some(Wish::More(rate)) => self.wish = Some(rate),
            Some(Wish::Same(rate)) => (self.wish, self.unconfirmed) = (Some(rate), true),
            None => {}
        }
    }

    /// Sets the DSCP. Data without a rate must not look as if it had one: a router would hold it to what it
    /// offered. Nor data for a peer that has not shown that it knows of the agreement, since its agent may
    /// be gone: a router would put structures into it.
    fn mark(&self, packet: &mut Packet, carrier: Carrier) {
        let has_none = matches!(self.negotiation.state(), RateState::Plain | RateState::Refused)
            || !self.negotiation.may_carry();
        if carrier == Carrier::Ack || !has_none {
            packet.dscp = QOS_FLOW;
        }
    }

    fn add_structure(&mut self, now: Instant, packet: &mut Packet, carrier: Carrier) {
        let wish = if carrier == Carrier::Data { self.wish.take() } else { None };
        let structure = self.negotiation.outgoing(now, self.track.srtt, carrier, wish);
        if let Some(structure) = structure {
            tia1039::write(packet, &[structure]);
            return;
        }
        if packet.ip == IpVersion::V6
            && packet.body.len > 0
            && let Some(place) = self.negotiation.placeholder()
        {
            let dscp = packet.dscp;
            tia1039::write(packet, &[place]);
            packet.dscp = dscp;
        }
    }

    /// Takes what the peer's SYN or SYN/ACK says; `None` for one that does not signal.
    pub(crate) fn hear_syn(&mut self, now: Instant, syn: &Packet) -> Option<RateAnswer> {
        self.track.peer_syn(&syn.tcp);
        self.room.hear_syn(syn.tcp.mss);
        let structures = (syn.dscp == QOS_SIGNAL).then(|| tia1039::structures(syn));
        let answer = self.negotiation.peer_syn(now, structures.as_ref().map(tia1039::Structures::as_slice));
        if self.is_ours {
            self.negotiation.confirm();
        }
        answer
    }

    /// Takes what another packet of the peer says, if the host would accept the packet.
    pub(crate) fn hear(&mut self, now: Instant, packet: &Packet) -> Option<RateAnswer> {
        if !self.track.is_acceptable(packet) {
            return None;
        }
        self.track.peer_packet(now, packet.tcp.ack);
        if [QOS_SIGNAL, QOS_FLOW].contains(&packet.dscp) {
            self.negotiation.confirm();
        }
        // in IPv6 the option says what it is, in IPv4 the DSCP
        let is_marked = packet.dscp == QOS_SIGNAL || packet.ip == IpVersion::V6;
        let structures = if is_marked { tia1039::structures(packet) } else { tia1039::Structures::default() };
        self.negotiation.incoming(now, self.track.srtt, carrier(packet), structures.as_slice())
    }

    /// True if it is not certain which bytes of a packet of the peer are data: in IPv4 nothing but the code
    /// point tells. Something that looks like a structure without its code point, or the code point without a
    /// structure, was made on the way. What the peer sends again has no structure.
    pub(crate) fn may_hide_structure(packet: &Packet) -> bool {
        if packet.ip == IpVersion::V6 {
            return false;
        }
        let has_one = packet.signal.is_some();
        if packet.dscp == QOS_SIGNAL { !has_one && packet.body.len > 0 } else { has_one }
    }

    /// Notes a packet that is withheld; true if the flow must be reset. A peer that signals cuts its data,
    /// and sends it again without a structure. What comes again and again as it was is data of a peer whose
    /// agent is gone: it would be withheld for ever, and delivered it might be no data. A structure alone,
    /// which a peer repeats, is in a packet without PSH and FIN. A forger must know what the host expects
    /// and has sent: such a peer begins at its first byte without acknowledgment.
    pub(crate) fn is_stuck(&mut self, packet: &Packet) -> bool {
        let has_data = packet.body.len > 0 || packet.tcp.flags.0 & (Flags::PSH.0 | Flags::FIN.0) != 0;
        if !has_data || !self.track.is_acceptable(packet) || self.track.is_ahead(packet) {
            return false;
        }
        let (at, expected, count) = self.withheld;
        let is_again = (at, expected) == (packet.tcp.seq, self.track.expected());
        self.withheld =
            (packet.tcp.seq, self.track.expected(), if is_again { count.saturating_add(1) } else { 1 });
        self.withheld.2 == MOST_WITHHELD
    }

    /// True if the driver has to be told of the rate, which is then in `told`.
    pub(crate) fn has_news(&mut self, answer: Option<RateAnswer>) -> bool {
        let granted = self.negotiation.granted();
        let confirmed = self.unconfirmed && matches!(answer, Some(RateAnswer::Granted(_)));
        self.unconfirmed &= !confirmed;
        let is_new = core::mem::replace(&mut self.told, granted) != granted;
        is_new || confirmed
    }
}
