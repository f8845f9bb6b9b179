//! Structures that the router puts into data packets of a flow.
//!
//! A reduction is CD 5 with the lower AR and the other fields as agreed (`telling.rs` says when). A flow
//! whose start was not seen gets CD 4, which the receiver returns, so that the sender asks again. In IPv4 the
//! structure is inserted, if the packet stays within the MTU: the sender of a negotiated flow leaves room. In
//! IPv6 a router must not insert a header (RFC 8200, section 4), so it changes a structure with CD 0, which
//! the sender carries for that purpose. Only data with the code point of agreed rates is altered. A flow of
//! datagrams is told in a datagram of its own with the flow's addresses and ports, ahead of the present one:
//! nothing below the application could tell a structure in a datagram from its data.

use super::{FlowRouter, MANAGED};
use crate::flows::FlowKey;
use crate::telling::Telling;
use bentpipe_advice::rounded;
use bentpipe_advice::tia1039::{Kind, QOS_FLOW, QOS_SIGNAL, Structure, replace, structures, write};
use bentpipe_base::{Cx, Duration, Instant, IpVersion, Packet, Proto, Rate, Size, TcpHeader};

/// Most questions to one flow for its rate.
pub(super) const MOST_TRIES: u8 = 8;
/// Time between them.
const TRY_EVERY: Duration = Duration::from_millis(200);

impl FlowRouter {
    /// Tells a flow in this data packet that it has less than it was granted, if it is time.
    pub(super) fn tell(&mut self, now: Instant, key: &FlowKey, packet: &mut Packet) {
        let Some(share) = self.share_of(key) else { return };
        let mtu = self.config.mtu;
        let Some(flow) = self.flows.get_mut(key) else { return };
        if !flow.must_be_told(share) {
            flow.telling = None;
            return;
        }
        if self.half_open.is_burst(now) {
            return; // it is not clear yet whether these requests count
        }
        let available = Rate::from_bps(share).and_then(rounded);
        if available.is_none() && flow.grant > 0 {
            return; // the format has no rate as low as that
        }
        let target = (available.map_or(0, Rate::bps), flow.reserved);
        let (interval, grace) = (flow.interval(), flow.grace());
        let mut telling = flow.telling.unwrap_or_else(|| Telling::begin(now, target, grace));
        let is_again = flow.is_sent_again(now, packet, interval);
        if is_again && flow.has_new_data(now) {
            flow.telling = Some(telling);
            return;
        }
        // a flow that repeats itself, or never answers, is limited all the same
        if is_again || flow.unheard.is_pause(now, interval) {
            telling.hold(now, target, grace);
            flow.telling = Some(telling);
            return;
        }
        let structure = flow.reduction(available);
        if telling.is_due(now, target, interval) && place(packet, structure, mtu, &mut self.notice) {
            self.counts.reductions += u64::from(telling.tell(now, target, grace));
            flow.offers.push(now, target, true);
            flow.unheard.note(now, interval);
            flow.note_told(packet);
        }
        flow.telling = Some(telling);
    }

    /// Sends the datagram that tells the flow of this packet, if there is something to tell. It is a copy
    /// without the data, since a node has no real packets of its own.
    pub(super) fn send_notice(&mut self, cx: &mut Cx<'_>, packet: &Packet) {
        let Some(structure) = self.notice.take() else { return };
        let mut notice = cx.duplicate(packet);
        (notice.body.len, notice.tcp, notice.segment) = (0, TcpHeader::default(), 0);
        write(&mut notice, &[structure]);
        self.usage.add(cx.now, notice.wire_len());
        cx.send(MANAGED, notice);
    }

    /// Asks a flow that behaves as if it had a rate, but has none here, to ask again. Real IPv4 data may be
    /// of a connection that never agreed: its receiver would take the structure for data. A real flow of
    /// datagrams gets none at all before it has asked and was answered.
    pub(super) fn tell_missed(&mut self, now: Instant, key: &FlowKey, packet: &mut Packet) {
        if self.config.is_live && (packet.ip == IpVersion::V4 || packet.proto == Proto::Udp) {
            return;
        }
        let mtu = self.config.mtu;
        let mut question = Structure::request(self.config.rate);
        question.set_available(None);
        question.set_kind(Kind::MissedStart);
        let Some(flow) = self.flows.get_mut(key) else { return };
        let missed = &mut flow.missed;
        let is_time = missed.at.is_none_or(|at| now.since(at) >= TRY_EVERY);
        if is_time && missed.tries < MOST_TRIES && place(packet, question, mtu, &mut self.notice) {
            missed.tries += 1;
            missed.at = Some(now);
        }
    }
}

/// Puts the fields of a structure into a data packet, or into the notice to a flow of datagrams; false if
/// there is no place for them.
fn place(packet: &mut Packet, fields: Structure, mtu: Size, notice: &mut Option<Structure>) -> bool {
    if packet.proto != Proto::Udp || packet.dscp != QOS_FLOW {
        return insert(packet, &fields, mtu);
    }
    *notice = Some(fields);
    true
}

/// Puts the fields of a structure into a data packet; false if the packet has no place for them.
fn insert(packet: &mut Packet, fields: &Structure, mtu: Size) -> bool {
    let is_tcp = packet.proto == Proto::Tcp;
    if !(is_tcp || packet.flow_label().is_some()) || packet.dscp != QOS_FLOW {
        return false;
    }
    match packet.ip {
        IpVersion::V4 => {
            let is_room = packet.wire_len() + Size(Structure::LEN as u64) <= mtu;
            let is_free = packet.signal.is_none() && is_room;
            if is_free {
                let before = packet.header_len;
                write(packet, &[with_fields(Structure::default(), fields)]);
                // a real packet may have more in its header than the fields say
                packet.header_len = before.saturating_add(Structure::LEN as u8);
            }
            is_free
        }
        IpVersion::V6 => {
            let all = structures(packet);
            let is_place = |s: &Structure| s.is_supported() && s.kind() == Some(Kind::Forward);
            let Some(index) = all.as_slice().iter().position(is_place) else { return false };
            let Some(place) = all.as_slice().get(index) else { return false };
            replace(packet, index, &with_fields(*place, fields));
            packet.dscp = QOS_SIGNAL;
            true
        }
    }
}

/// Copies what both IP versions have in common: the bytes from AR to M.
fn with_fields(place: Structure, fields: &Structure) -> Structure {
    let mut bytes = *place.bytes();
    bytes[4..14].copy_from_slice(&fields.bytes()[4..14]);
    Structure::from_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::{Body, Dscp};

    const MTU: Size = Size(1500);

    fn data(ip: IpVersion, len: u32) -> Packet {
        let mut packet = Packet { ip, dscp: QOS_FLOW, body: Body { off: 0, len }, ..Packet::default() };
        packet.seal();
        packet
    }

    fn fields() -> Structure {
        let mut fields = Structure::request(Rate::from_bps(64_000).unwrap());
        fields.set_source(0x0A00_0001, 4000);
        fields.set_kind(Kind::Renegotiate);
        fields.set_burst_exponent(3);
        fields
    }

    #[test]
    fn ipv4_data_gets_a_structure_if_it_fits() {
        let mut packet = data(IpVersion::V4, 1444);
        assert!(insert(&mut packet, &fields(), MTU));
        assert_eq!((packet.dscp, packet.wire_len(), packet.body.len), (QOS_SIGNAL, MTU, 1444));
        let mut expected = fields();
        expected.set_source(0, 0);
        assert_eq!(structures(&packet).as_slice(), [expected]);
        let mut full = data(IpVersion::V4, 1445);
        let before = full.clone();
        assert!(!insert(&mut full, &fields(), MTU) && full == before);
        packet.dscp = QOS_FLOW;
        assert!(!insert(&mut packet, &fields(), MTU), "it has one already");
    }

    #[test]
    fn ipv6_data_must_bring_a_place() {
        let mut packet = data(IpVersion::V6, 1000);
        let before = packet.clone();
        assert!(!insert(&mut packet, &fields(), MTU) && packet == before);
        let mut place = Structure::request(Rate::from_bps(1000).unwrap());
        place.set_kind(Kind::Forward);
        write(&mut packet, &[place]);
        packet.dscp = QOS_FLOW;
        let len = packet.wire_len();
        assert!(insert(&mut packet, &fields(), MTU));
        assert_eq!((packet.dscp, packet.wire_len()), (QOS_SIGNAL, len));
        let changed = structures(&packet).as_slice()[0];
        assert_eq!((changed.kind(), changed.available()), (Some(Kind::Renegotiate), fields().available()));
        assert_eq!(changed.bytes()[..4], [0, 0, 0x3E, 12]);
        packet.dscp = QOS_FLOW;
        assert!(!insert(&mut packet, &fields(), MTU), "the place is taken");
    }

    #[test]
    fn only_data_with_the_code_point_of_agreed_rates_is_altered() {
        for dscp in [Dscp::DEFAULT, QOS_SIGNAL, Dscp::LE] {
            let mut packet = Packet { dscp, ..data(IpVersion::V4, 100) };
            assert!(!insert(&mut packet, &fields(), MTU), "{dscp:?}");
        }
        let mut datagram = Packet { proto: Proto::Udp, ..data(IpVersion::V4, 100) };
        let (before, mut notice) = (datagram.clone(), None);
        assert!(!insert(&mut datagram, &fields(), MTU));
        assert!(place(&mut datagram, fields(), MTU, &mut notice) && datagram == before);
        assert_eq!(notice, Some(fields()));
        let mut plain = Packet { dscp: Dscp::DEFAULT, ..datagram };
        assert!(!place(&mut plain, fields(), MTU, &mut notice));
    }
}
