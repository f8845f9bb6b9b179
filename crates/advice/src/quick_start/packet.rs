//! The options in a [`Packet`]: a request or report in its IP header, an answer in its TCP header.
//!
//! In IPv6 the option is in a hop-by-hop header of its own, padded to 16 bytes (RFC 8200, section 4.2).

use super::{Carrier, Fields, Hop, find, pass};
use bentpipe_base::{IpVersion, Packet, Proto, Signal};

/// Next header of TCP, and length of the hop-by-hop header in units of eight bytes without the first.
const BEFORE: [u8; 2] = [6, 1];
/// `PadN` of six bytes.
const PADDING: [u8; 6] = [1, 4, 0, 0, 0, 0];
/// Longest TCP header.
const LONGEST_HEADER: u8 = 60;

pub(crate) const fn carrier(ip: IpVersion) -> Carrier {
    match ip {
        IpVersion::V4 => Carrier::Ipv4,
        IpVersion::V6 => Carrier::Ipv6,
    }
}

/// Bytes of the hop-by-hop header before its options.
pub(crate) const fn before(ip: IpVersion) -> usize {
    match ip {
        IpVersion::V4 => 0,
        IpVersion::V6 => BEFORE.len(),
    }
}

/// Returns what the IP option of a packet says.
pub fn of_ip(packet: &Packet) -> Option<Fields> {
    let options = packet.signal.as_deref()?.ip_options().get(before(packet.ip)..)?;
    find(carrier(packet.ip), options).map(|(_, fields)| fields)
}

/// Returns what the TCP option of a segment answers.
pub fn of_tcp(packet: &Packet) -> Option<Fields> {
    let signal = packet.signal.as_deref().filter(|_| packet.proto == Proto::Tcp)?;
    find(Carrier::Tcp, signal.tcp_options()).map(|(_, fields)| fields)
}

/// Adds options to a segment without signalling; an answer only if its TCP header has room.
pub fn put(packet: &mut Packet, ip: Option<Fields>, tcp: Option<Fields>) {
    if packet.proto != Proto::Tcp || packet.signal.is_some() {
        return;
    }
    let is_room = packet.tcp.wire_len() + packet.other_options.len + 8 <= LONGEST_HEADER;
    let answer = tcp.filter(|_| is_room).map(|fields| fields.option(Carrier::Tcp));
    let (header, len) = ip.map_or(([0; 16], 0), |fields| in_header(packet.ip, fields));
    let second = answer.as_ref().map_or(&[][..], |answer| &answer[..]);
    packet.signal = Signal::options(&header[..len], second).map(Box::new);
    packet.seal();
}

/// An option as the IP header carries it, and the number of these bytes: in IPv6 a hop-by-hop header.
pub(crate) fn in_header(ip: IpVersion, fields: Fields) -> ([u8; 16], usize) {
    let option = fields.option(carrier(ip));
    let mut header = [0; 16];
    if ip == IpVersion::V4 {
        header[..8].copy_from_slice(&option);
        return (header, 8);
    }
    header[..2].copy_from_slice(&BEFORE);
    header[2..10].copy_from_slice(&option);
    header[10..].copy_from_slice(&PADDING);
    (header, 16)
}

/// What a router does with the request of a packet that passes; false if it stays as it came.
pub fn pass_in(packet: &mut Packet, hop: Hop) -> bool {
    let (ip, before) = (packet.ip, before(packet.ip));
    let options = packet.signal.as_deref_mut().and_then(|signal| signal.ip_options_mut().get_mut(before..));
    options.and_then(|options| pass(ip, options, hop)).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quick_start::RateCode;
    use bentpipe_base::{OtherOptions, Size};

    fn request() -> Fields {
        Fields::request(RateCode::new(9).unwrap(), 200, 77)
    }

    #[test]
    fn each_option_is_in_its_header() {
        for (ip, len) in [(IpVersion::V4, 8), (IpVersion::V6, 16)] {
            let mut packet = Packet { ip, ..Packet::default() };
            put(&mut packet, Some(request()), Some(request().answer(60)));
            assert_eq!((of_ip(&packet), of_tcp(&packet)), (Some(request()), Some(request().answer(60))));
            assert_eq!(packet.wire_len(), Size(u64::from(ip.header()) + 20 + len + 8));
            let hop = Hop { approved: RateCode::new(3).unwrap(), hops: 1, random: 5 };
            assert!(pass_in(&mut packet, hop));
            assert_eq!(of_ip(&packet), Some(request().after(hop)));
            assert_eq!(of_tcp(&packet), Some(request().answer(60)), "a router leaves answers alone");
            let once = packet.clone();
            put(&mut packet, None, Some(request()));
            assert_eq!(packet, once, "a packet is written once");
        }
    }

    #[test]
    fn an_ipv6_option_is_in_a_whole_hop_by_hop_header() {
        let mut packet = Packet { ip: IpVersion::V6, ..Packet::default() };
        put(&mut packet, Some(request()), None);
        let bytes = packet.signal.as_deref().map_or(&[][..], Signal::ip_options).to_vec();
        assert_eq!((&bytes[..4], &bytes[10..]), (&[6, 1, 0x26, 6][..], &[1, 4, 0, 0, 0, 0][..]));
    }

    #[test]
    fn nothing_is_added_to_other_packets_or_to_a_full_header() {
        let mut datagram = Packet { proto: Proto::Udp, ..Packet::default() };
        put(&mut datagram, Some(request()), None);
        assert!(datagram.signal.is_none() && !pass_in(&mut datagram, Hop::NONE));
        let other_options = OtherOptions { kinds: OtherOptions::UNKNOWN, len: 36 };
        let mut full = Packet { other_options, ..Packet::default() };
        put(&mut full, None, Some(request()));
        assert!(full.signal.is_none());
    }
}
