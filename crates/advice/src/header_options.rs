//! Options of SCONE and Quick-Start in the headers of real packets.
//!
//! Sources: RFC 4782, draft-eddy-tcpm-scone (2025); see [`crate::quick_start`] and [`crate::scone_tcp`].
//! In a real header an option stands anywhere among others. [`read`] puts what it says into the form in which
//! our own ends write it, the only one that nodes know ([`Packet::signal`]), and [`write()`] puts the
//! fields of a packet back to where the options stand:
//!   IP: the option of Quick-Start; in IPv6 in a hop-by-hop header of its own, whatever else stood there
//!   TCP: Quick-Start's answer, then two NOPs and SCONE's option
//! A header with two options of a kind, or with an impossible length, has none here, and stays as it is.

use crate::quick_start::packet::{before, carrier, in_header, of_ip, of_tcp};
use crate::quick_start::{self, Carrier, Fields};
use crate::scone_tcp::packet::padded;
use crate::scone_tcp::{self, Advised};
use bentpipe_base::{IpVersion, Packet, Signal};

/// Bytes of an option before the fields of Quick-Start.
const HEAD: usize = 2;

/// The signalling in the options of a TCP packet's headers. `network`: the options of its IPv4 header, or its
/// hop-by-hop header, perhaps empty; `transport`: the options of its TCP header.
pub fn read(ip: IpVersion, network: &[u8], transport: &[u8]) -> Option<Signal> {
    let asked = network.get(before(ip)..).and_then(|options| quick_start::find(carrier(ip), options));
    let answered = quick_start::find(Carrier::Tcp, transport);
    let advised = scone_tcp::find(transport);
    let (header, len) = asked.map_or(([0; 16], 0), |(_, fields)| in_header(ip, fields));
    let mut tcp = [0; 16];
    let mut end = 0;
    let answer = answered.map(|(_, fields)| fields.option(Carrier::Tcp));
    for option in [answer, advised.map(|(_, option)| padded(option))].into_iter().flatten() {
        tcp[end..end + option.len()].copy_from_slice(&option);
        end += option.len();
    }
    Signal::options(&header[..len], &tcp[..end])
}

/// Writes what the options of `packet` say into those of real headers, given as to [`read`]. An option that
/// is not in them is not added, and one that is not in the packet stays.
pub fn write(packet: &Packet, network: &mut [u8], transport: &mut [u8]) {
    let ip = packet.ip;
    if let Some(options) = network.get_mut(before(ip)..) {
        replace(carrier(ip), options, of_ip(packet));
    }
    replace(Carrier::Tcp, transport, of_tcp(packet));
    let place = scone_tcp::find(transport).map(|(at, _)| at);
    if let (Some(at), Some(option)) = (place, scone_tcp::packet::of(packet))
        && let Some(bytes) = transport.get_mut(at..at + Advised::LEN)
    {
        bytes.copy_from_slice(&option.bytes());
    }
}

fn replace(carrier: Carrier, options: &mut [u8], fields: Option<Fields>) {
    let place = quick_start::find(carrier, options).map(|(at, _)| at + HEAD);
    if let (Some(at), Some(fields)) = (place, fields)
        && let Some(bytes) = options.get_mut(at..at + Fields::LEN)
    {
        bytes.copy_from_slice(&fields.bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quick_start::packet::pass_in;
    use crate::quick_start::{Hop, RateCode};
    use crate::scone::Advice;
    use crate::scone_tcp::Kind;
    use crate::scone_tcp::packet::lower_in;

    fn request() -> Fields {
        Fields::request(RateCode::new(9).unwrap(), 200, 77)
    }

    fn packet(ip: IpVersion, network: &[u8], transport: &[u8]) -> Packet {
        Packet { ip, signal: read(ip, network, transport).map(Box::new), ..Packet::default() }
    }

    /// Options among others: what a router writes changes their fields only.
    #[test]
    fn a_routers_change_is_written_to_where_the_option_stands() {
        let advised = Advised::new(Kind::First, Advice::UNKNOWN).with_echo(Advice::new(3).unwrap());
        let answer = request().answer(60).option(Carrier::Tcp);
        let transport = [&[2, 4, 5, 0xB4][..], &advised.bytes(), &[4, 2], &answer, &[1, 3, 3, 7]].concat();
        let alert = [&[148, 4, 0, 0][..], &request().option(Carrier::Ipv4)].concat();
        let header = [&[6, 2, 5, 2, 0, 0][..], &request().option(Carrier::Ipv6), &[1, 8], &[0; 8]].concat();
        for (ip, network, at) in [(IpVersion::V4, &alert, 6), (IpVersion::V6, &header, 8)] {
            let mut packet = packet(ip, network, &transport);
            assert_eq!((of_ip(&packet), of_tcp(&packet)), (Some(request()), Some(request().answer(60))));
            assert_eq!(scone_tcp::packet::of(&packet), Some(advised));
            let (mut ip_bytes, mut tcp_bytes) = (network.clone(), transport.clone());
            write(&packet, &mut ip_bytes, &mut tcp_bytes);
            assert_eq!((&ip_bytes, &tcp_bytes), (network, &transport), "nothing was changed");
            let (hop, limit) = (Hop { approved: RateCode::new(3).unwrap(), hops: 1, random: 5 }, 40);
            assert!(pass_in(&mut packet, hop) && lower_in(&mut packet, Advice::new(limit).unwrap()));
            write(&packet, &mut ip_bytes, &mut tcp_bytes);
            let (mut ip_expected, mut tcp_expected) = (network.clone(), transport.clone());
            ip_expected[at..at + 6].copy_from_slice(&request().after(hop).bytes());
            tcp_expected[8..10].copy_from_slice(&[1, 0x80 | limit]);
            assert_eq!((ip_bytes, tcp_bytes), (ip_expected, tcp_expected));
        }
    }

    #[test]
    fn doubled_and_malformed_options_are_not_there() {
        let one = Advised::new(Kind::Second, Advice::UNKNOWN).bytes();
        let asked = request().option(Carrier::Ipv4);
        for (network, transport) in [
            (&[&asked[..], &asked].concat()[..], &[&one[..], &one].concat()[..]),
            (&[&asked[..], &[7, 9]].concat(), &[&one[..], &[3, 1]].concat()),
            (&asked[..7], &one[..5]),
            (&[], &[]),
        ] {
            assert_eq!(read(IpVersion::V4, network, transport), None);
        }
        let in_ipv6 = [&[6, 1][..], &request().option(Carrier::Ipv6), &[1, 5, 0, 0, 0, 0]].concat();
        assert_eq!(read(IpVersion::V6, &in_ipv6, &[]), None, "padding reaches past the end");
        assert_eq!(read(IpVersion::V6, &[6], &[]), None);
        let mut none = [1, 1, 1, 0];
        write(&packet(IpVersion::V4, &asked, &one), &mut [], &mut none);
        assert_eq!(none, [1, 1, 1, 0], "no option is added");
    }
}
