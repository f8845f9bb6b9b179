//! TIA-1039's structures in the packets of a connection.
//!
//! Sources: TIA-1039 (2006), L. G. Roberts' in-band QoS signalling; RFC 8200, section 4 (a router must not
//! insert an IPv6 extension header). `bentpipe_advice::negotiation` decides what is asked, returned and
//! believed.
//!   DSCP 3: SYNs of an end that signals, and packets with a structure
//!   DSCP 7: all other packets of a connection whose ends both signal, but not data of an end without a rate
//!   MSS: 16 bytes less on such a connection, the length of a structure. A router inserts one into an IPv4
//!     packet. An IPv6 data packet of a granted rate has one that says nothing, into which a router writes.
//! A response is sent at once, without waiting for data or for the delayed acknowledgment. Deviation: the
//! source puts the structure of IPv4 into the segment's data; here it is beside it, so that no stream
//! position depends on it.

use super::{End, carrier};
use crate::connection::Connection;
use bentpipe_advice::negotiation::{Carrier, Encoding, Negotiation, RateAnswer, RateState};
use bentpipe_advice::tia1039::{self, Structures};
use bentpipe_base::{Dscp, Duration, Flags, Instant, IpVersion, Packet, Rate};

/// Returns the structures of a SYN or SYN/ACK; `None` if it does not show that its sender signals.
pub(super) fn of_syn(syn: &Packet) -> Option<Structures> {
    (syn.dscp == tia1039::QOS_SIGNAL).then(|| tia1039::structures(syn))
}

/// Adds to our SYN or SYN/ACK what it says about rates. Resent, it only shows that this end signals: the path
/// may drop packets with structures; so does one of which that is known (`is_hidden`). A SYN/ACK
/// (`answers`) shows that only to a peer that signals.
pub(super) fn add_to_syn(
    end: &mut Negotiation,
    now: Instant,
    syn: &mut Packet,
    answers: bool,
    is_resent: bool,
    is_hidden: bool,
) {
    if answers && !end.is_agreed() {
        return;
    }
    syn.dscp = tia1039::QOS_SIGNAL;
    if !is_resent {
        let structures = end.syn(now);
        if !is_hidden {
            tia1039::write(syn, &structures);
        }
    }
}

/// Takes the structures of an acceptable segment. In IPv6 the option says what it is, in IPv4 the DSCP.
pub(super) fn take(
    end: &mut Negotiation,
    now: Instant,
    srtt: Duration,
    segment: &Packet,
) -> Option<RateAnswer> {
    if segment.dscp == tia1039::QOS_SIGNAL || segment.dscp == tia1039::QOS_FLOW {
        end.confirm(); // its sender knows that both ends signal
    }
    let marked = segment.dscp == tia1039::QOS_SIGNAL || segment.ip == IpVersion::V6;
    let structures = if marked { tia1039::structures(segment) } else { Structures::default() };
    end.incoming(now, srtt, carrier(segment), structures.as_slice())
}

impl Connection {
    /// True if real packets of this connection may have a structure at the end of their payload, in our view
    /// or in the peer's. Then no data may look like one.
    pub fn may_have_structures_in_payload(&self) -> bool {
        self.config.ip == IpVersion::V4 && matches!(self.signalling, Some(End::Tia1039(_)))
    }

    /// True for a packet of which it is not certain what is data and what is a structure: the path has
    /// rewritten its DSCP. SYNs have no data here.
    pub(crate) fn is_rewritten(&self, segment: &Packet) -> bool {
        let is_v6 = self.negotiated.ip == IpVersion::V6;
        let signals = self.negotiated.signalling == Some(Encoding::Tia1039);
        if !signals || is_v6 || segment.tcp.flags.has(Flags::SYN) {
            return false;
        }
        let is_signal = segment.dscp == tia1039::QOS_SIGNAL;
        if is_signal { segment.signal.is_none() && segment.body.len > 0 } else { segment.signal.is_some() }
    }

    /// Returns the round trip in which an answer is expected. If the SYN/ACK was lost, the first sample
    /// contains the timeout, since the peer echoes the timestamp of the first SYN (RFC 7323, section 4.3);
    /// the smoothed time is then too long for many round trips.
    pub(super) fn answer_time(&self) -> Duration {
        self.rtt.srtt().min(self.rtt.latest())
    }

    pub(super) fn add_structure(&mut self, now: Instant, packet: &mut Packet, wish: Option<Rate>) {
        let (srtt, carrier) = (self.answer_time(), carrier(packet));
        let is_fallen_back = self.cc.fallback().is_some();
        let Some(End::Tia1039(negotiation)) = &mut self.signalling else { return };
        // data without a rate must not look as if it had one: a router would hold it to what it offered, and
        // a path that maps code points of data to those of structures would never let it pass. Nor data for a
        // peer that may not know of the agreement: a router would put structures into it
        let has_none = is_fallen_back
            || !negotiation.may_carry()
            || matches!(negotiation.state(), RateState::Plain | RateState::Refused);
        if has_none && carrier == Carrier::Data && packet.dscp == tia1039::QOS_FLOW {
            packet.dscp = Dscp::DEFAULT;
        }
        // a scheme repeats a wish until a packet with data was sent
        let wish = wish.filter(|_| carrier == Carrier::Data);
        let structure = negotiation.outgoing(now, srtt, carrier, wish);
        if packet.tcp.flags.has(Flags::FIN) {
            negotiation.end();
        }
        if negotiation.is_due() {
            self.rcv.ack_now(); // a packet has room for one
        }
        match structure {
            Some(structure) => tia1039::write(packet, &[structure]),
            None => self.add_place(packet),
        }
    }

    /// IPv6: adds to a data packet the structure into which a router may write. The packet stays data. Only a
    /// sender that uses a granted rate needs it, and the answer shows that the path passes such packets.
    pub(crate) fn add_place(&self, packet: &mut Packet) {
        let signals = self.negotiated.signalling == Some(Encoding::Tia1039);
        if !signals || packet.ip != IpVersion::V6 || packet.body.len == 0 {
            return;
        }
        let Some(End::Tia1039(negotiation)) = &self.signalling else { return };
        let Some(place) = negotiation.placeholder().filter(|_| self.cc.fallback().is_none()) else { return };
        let dscp = packet.dscp;
        tia1039::write(packet, &[place]);
        packet.dscp = dscp;
    }
}
