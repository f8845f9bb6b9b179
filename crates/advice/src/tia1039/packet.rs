//! The structures of a packet, for both IP versions.
//!
//! Sources: `mod.rs`; RFC 8200, sections 4.2 and 4.3 (hop-by-hop header); RFC 4727 (experimental types).
//! IPv4: the structure is after the transport header, 16 bytes, or 32 for two.
//! IPv6: [`Packet::signal`] is a whole hop-by-hop header. Each structure is an option of type 0x3E (0x20 in
//! the source) whose data, always 12 bytes, is the structure without its first four bytes. Other options may
//! be beside it. One structure needs no padding; two need PadN:
//!   next header, 1, 0x3E, 12, data
//!   next header, 3, 0x3E, 12, data, 0x3E, 12, data, PadN of 2 bytes
//! If a length is impossible, there is no structure in the packet.
//! In real packets the IPv4 structures are the end of the TCP payload ([`at_end`]): all of it in a SYN or
//! SYN/ACK, the last 16 bytes in other packets. Nothing marks them but the DSCP and their bytes.

use super::{QOS_SIGNAL, Structure};
use crate::options::{List, Options};
use bentpipe_base::{Flags, IpVersion, Packet, Proto, Signal};

/// Type of the IPv6 option: skipped by a node that does not know it, may change on the way; for experiments
/// (RFC 4727).
pub const OPTION_TYPE: u8 = 0x3E;
/// The type that the source uses; accepted too, and kept in answers to it.
pub const OPTION_TYPE_TIA: u8 = 0x20;

/// Length of the IPv6 option's data; no other is legal.
const OPTION_LEN: u8 = 12;
/// Bytes of an IPv6 structure that are before its option and not part of it.
const BEFORE: usize = 2;
/// Those, and type and length of the option.
const REPLACED: usize = 4;
/// Most structures of a packet.
const MOST: usize = 2;
const PAD_N: u8 = 1;

/// The structures of one packet: at most two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Structures {
    list: [Structure; MOST],
    len: usize,
}

impl Structures {
    /// The structures in the order of the packet.
    pub fn as_slice(&self) -> &[Structure] {
        &self.list[..self.len]
    }

    /// True if there are none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends a structure; returns false if there are two already.
    pub fn push(&mut self, structure: Structure) -> bool {
        let Some(free) = self.list.get_mut(self.len) else { return false };
        *free = structure;
        self.len += 1;
        true
    }
}

/// Returns the structures of a packet; none if there are none, or if their layout is wrong.
pub fn structures(packet: &Packet) -> Structures {
    packet.signal.as_deref().map_or_else(Structures::default, |signal| read(packet.ip, signal.bytes()))
}

fn read(ip: IpVersion, signal: &[u8]) -> Structures {
    let mut found = Structures::default();
    for place in places(ip, signal).into_iter().flatten() {
        if let Some(structure) = read_at(ip, signal, place) {
            found.push(structure);
        }
    }
    found
}

/// Number of bytes at the end of the TCP payload of an IPv4 packet that may be structures; 0 if none are. In
/// a packet whose sender and DSCP say that it has a structure these are it. Else they are data, or the DSCP
/// was changed on the way.
pub fn at_end(flags: Flags, payload: &[u8]) -> usize {
    let is_structure = |bytes: &[u8; Structure::LEN]| Structure::from_bytes(*bytes).is_well_formed();
    if flags.has(Flags::SYN) {
        let (all, rest) = payload.as_chunks();
        let are = rest.is_empty() && (1..=MOST).contains(&all.len()) && all.iter().all(is_structure);
        return if are { payload.len() } else { 0 };
    }
    if payload.last_chunk().is_some_and(is_structure) { Structure::LEN } else { 0 }
}

/// True for an IPv6 hop-by-hop header, from its first byte on, that [`Packet::signal`] holds: one with a
/// structure, and not longer than that can hold.
pub fn is_signal_header(header: &[u8]) -> bool {
    header.len() <= Signal::MAX && !read(IpVersion::V6, header).is_empty()
}

/// Makes these the structures of a packet, in place of all signalling that it carries; the third and later
/// ones are left out. The DSCP becomes [`QOS_SIGNAL`]. Without structures the signalling is removed, and the
/// DSCP stays. A packet that only its driver can read stays as it is.
pub fn write(packet: &mut Packet, structures: &[Structure]) {
    let next_header = match packet.proto {
        Proto::Tcp => 6,
        Proto::Udp => 17,
        Proto::Opaque | Proto::Icmp => return,
    };
    packet.signal = encode(packet.ip, next_header, structures).map(Box::new);
    if packet.signal.is_some() {
        packet.dscp = QOS_SIGNAL;
    }
    packet.seal();
}

/// Replaces the structure at `index` of [`structures`] in place; all else of the packet stays, the DSCP and
/// the type of an option too. Does nothing if there is no such structure.
pub fn replace(packet: &mut Packet, index: usize, structure: &Structure) {
    let kept = match packet.ip {
        IpVersion::V4 => 0,
        IpVersion::V6 => REPLACED,
    };
    let Some(signal) = packet.signal.as_deref_mut() else { return };
    let place = places(packet.ip, signal.bytes()).get(index).copied().flatten();
    let range = place.map(|at| at + kept..at + Structure::LEN);
    if let Some(bytes) = range.and_then(|range| signal.bytes_mut().get_mut(range)) {
        bytes.copy_from_slice(&structure.bytes()[kept..]);
    }
}

fn encode(ip: IpVersion, next_header: u8, structures: &[Structure]) -> Option<Signal> {
    let listed = structures.get(..MOST).unwrap_or(structures);
    let mut bytes = [0u8; Signal::MAX];
    match ip {
        IpVersion::V4 => {
            for (place, structure) in bytes.chunks_exact_mut(Structure::LEN).zip(listed) {
                place.copy_from_slice(structure.bytes());
            }
        }
        IpVersion::V6 => {
            let [header, more, options @ ..] = &mut bytes;
            // in units of 8 bytes, without the first
            (*header, *more) = (next_header, (2 * listed.len()).saturating_sub(1) as u8);
            let (places, padding) = options.as_chunks_mut::<{ Structure::LEN - BEFORE }>();
            for (place, structure) in places.iter_mut().zip(listed) {
                place.copy_from_slice(&structure.bytes()[BEFORE..]);
                place[..2].copy_from_slice(&[option_type(structure), OPTION_LEN]);
            }
            padding.copy_from_slice(&[PAD_N, 0]); // beyond the end if there is one structure
        }
    }
    Signal::new(&bytes[..listed.len() * Structure::LEN])
}

/// The type for a structure: that with which it came.
fn option_type(structure: &Structure) -> u8 {
    let came_with_it = structure.bytes().starts_with(&[0, 0, OPTION_TYPE_TIA, OPTION_LEN]);
    if came_with_it { OPTION_TYPE_TIA } else { OPTION_TYPE }
}

/// Where the structures begin. In IPv6 their first four bytes are the end of what is before the option, and
/// its type and length.
fn places(ip: IpVersion, signal: &[u8]) -> [Option<usize>; MOST] {
    match (ip, signal.len()) {
        (IpVersion::V4, Structure::LEN) => [Some(0), None],
        (IpVersion::V4, Signal::MAX) => [Some(0), Some(Structure::LEN)],
        (IpVersion::V4, _) => [None; MOST],
        (IpVersion::V6, _) => places_in_options(signal).unwrap_or_default(),
    }
}

/// `None` if a length is wrong, or if there are more structures than a packet may have.
fn places_in_options(header: &[u8]) -> Option<[Option<usize>; MOST]> {
    let [_next_header, more, options @ ..] = header else { return None };
    if header.len() != 8 * (usize::from(*more) + 1) {
        return None;
    }
    let mut places = [None; MOST];
    let mut free = places.iter_mut();
    for option in Options::new(List::HopByHop, options) {
        let option = option.ok()?;
        if [OPTION_TYPE, OPTION_TYPE_TIA].contains(&option.kind) {
            if option.data_len() != usize::from(OPTION_LEN) {
                return None;
            }
            // the place in the header is `at + 2`, less the bytes before the option
            *free.next()? = Some(option.at + 2 - BEFORE);
        }
    }
    Some(places)
}

fn read_at(ip: IpVersion, signal: &[u8], place: usize) -> Option<Structure> {
    let mut bytes = *signal.get(place..)?.first_chunk::<{ Structure::LEN }>()?;
    if ip == IpVersion::V6 {
        bytes[..BEFORE].fill(0);
    }
    Some(Structure::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tia1039::{Kind, QOS_FLOW};
    use bentpipe_base::{Body, Dscp, Ecn, Rate, Size};
    use proptest::prelude::*;

    fn request(mbps: u64) -> Structure {
        Structure::request(Rate::from_bps(mbps * 1_000_000).unwrap())
    }

    fn packet(ip: IpVersion, signal: &[u8]) -> Packet {
        let signal = Signal::new(signal).map(Box::new);
        let mut packet = Packet { ip, signal, dscp: QOS_FLOW, ecn: Ecn::Ect0, ..Packet::default() };
        packet.seal();
        packet
    }

    fn bytes(packet: &Packet) -> &[u8] {
        packet.signal.as_deref().map_or(&[], Signal::bytes)
    }

    fn joined(parts: &[&[u8]]) -> Vec<u8> {
        parts.concat()
    }

    #[test]
    fn structures_follow_an_ipv4_header_one_after_the_other() {
        let (one, mut two) = (request(100), request(30));
        two.set_kind(Kind::Response);
        two.set_source(7, 8);
        let mut p = packet(IpVersion::V4, &[]);
        write(&mut p, &[one]);
        assert_eq!((bytes(&p), structures(&p).as_slice()), (&one.bytes()[..], &[one][..]));
        write(&mut p, &[two, one, one]);
        assert_eq!(bytes(&p), joined(&[two.bytes(), one.bytes()]));
        assert_eq!(structures(&p).as_slice(), [two, one]);
        assert_eq!((p.dscp, p.ecn, p.wire_len()), (QOS_SIGNAL, Ecn::Ect0, Size(40 + 32)));
    }

    #[test]
    fn structures_are_options_of_a_whole_ipv6_header() {
        let data = [0x61, 0x0D, 0, 0, 0, 0, 0x10, 0, 0, 0x10, 0, 0];
        let option = joined(&[&[0x3E, 12], &data]);
        let mut p = packet(IpVersion::V6, &[]);
        write(&mut p, &[request(100)]);
        assert_eq!(bytes(&p), joined(&[&[6, 1], &option]));
        assert_eq!(p.wire_len(), Size(60 + 16));
        write(&mut p, &[request(100), request(100)]);
        assert_eq!(bytes(&p), joined(&[&[6, 3], &option, &option, &[1, 0]]));
        let read = joined(&[&[0, 0], &option]);
        assert!(structures(&p).as_slice().iter().all(|s| s.bytes()[..] == read) && p.dscp == QOS_SIGNAL);
        assert_eq!(structures(&p).as_slice().len(), 2);
        p.proto = Proto::Udp;
        write(&mut p, &[request(1)]);
        assert_eq!(bytes(&p)[..4], [17, 1, 0x3E, 12]);
    }

    #[test]
    fn an_answer_keeps_the_type_of_its_question() {
        let mut p = packet(IpVersion::V6, &joined(&[&[6, 1, 0x20, 12], &request(5).bytes()[4..]]));
        let question = structures(&p);
        assert_eq!(question.as_slice()[0].available(), request(5).available());
        write(&mut p, question.as_slice());
        assert_eq!(bytes(&p)[..4], [6, 1, 0x20, 12]);
    }

    #[test]
    fn without_structures_the_signalling_goes_and_the_code_point_stays() {
        for ip in [IpVersion::V4, IpVersion::V6] {
            let mut p = packet(ip, &[]);
            write(&mut p, &[request(1)]);
            p.dscp = Dscp::LE;
            write(&mut p, &[]);
            assert_eq!((p.signal.is_none(), p.dscp), (true, Dscp::LE));
            assert_eq!(p.wire_len(), Size(u64::from(ip.header()) + 20));
        }
        let mut opaque = Packet::default();
        opaque.set_opaque(60, Body::default(), 0);
        write(&mut opaque, &[request(1)]);
        assert_eq!((opaque.signal.is_none(), opaque.header_len), (true, 60));
    }

    #[test]
    fn other_options_beside_a_structure_are_passed_over_and_kept() {
        // Pad1, router alert, the structure, PadN
        let option = joined(&[&[0x3E, 12], &request(9).bytes()[4..]]);
        let header = joined(&[&[6, 2, 0, 5, 2, 0, 0], &option, &[1, 1, 0]]);
        let mut p = packet(IpVersion::V6, &header);
        assert_eq!(structures(&p).as_slice()[0].available(), request(9).available());
        let mut lower = structures(&p).as_slice()[0];
        lower.set_available(request(2).available());
        lower.set_changed(true);
        replace(&mut p, 1, &Structure::default()); // there is no second
        replace(&mut p, 0, &lower);
        assert_eq!((structures(&p).as_slice(), p.dscp), (&[lower][..], QOS_FLOW));
        assert_eq!((&bytes(&p)[..9], &bytes(&p)[21..]), (&header[..9], &header[21..]));
    }

    #[test]
    fn a_replaced_structure_leaves_its_neighbour() {
        for ip in [IpVersion::V4, IpVersion::V6] {
            let mut p = packet(ip, &[]);
            write(&mut p, &[request(1), request(2)]);
            let first = structures(&p).as_slice()[0];
            replace(&mut p, 1, &request(3));
            let after = structures(&p);
            assert_eq!(after.as_slice()[0], first);
            assert_eq!(after.as_slice()[1].available(), request(3).available());
        }
    }

    #[test]
    fn a_wrong_layout_has_no_structures() {
        for len in [1, 15, 17, 31] {
            assert!(structures(&packet(IpVersion::V4, &vec![0; len])).is_empty(), "{len}");
        }
        let asked = request(1);
        let data = &asked.bytes()[4..];
        // another option; a header that would be longer, or shorter; an option that is not 12 bytes, one that
        // reaches past the end, and a second one that is not 12 bytes
        let headers: [&[&[u8]]; 6] = [
            &[&[6, 1, 0x3F, 12], data],
            &[&[6, 2, 0x3E, 12], data],
            &[&[6, 0, 0x3E, 12], data],
            &[&[6, 1, 0x3E, 11], data],
            &[&[6, 1, 0x3E, 13], data],
            &[&[6, 3, 0x3E, 12], data, &[0x3E, 10], &data[..10], &[1, 2, 0, 0]],
        ];
        for header in headers {
            assert!(structures(&packet(IpVersion::V6, &joined(header))).is_empty(), "{header:?}");
        }
        assert!(structures(&packet(IpVersion::V6, &[6])).is_empty());
    }

    #[test]
    fn the_end_of_a_payload_is_recognised() {
        let one = *request(100).bytes();
        let data = joined(&[b"0123456789abcdef0", &one]);
        let (syn, ack) = (Flags::SYN, Flags::ACK);
        assert_eq!((at_end(ack, &one), at_end(ack, &data), at_end(ack, &data[..32])), (16, 16, 0));
        assert_eq!((at_end(syn, &one), at_end(syn, &joined(&[&one, &one])), at_end(syn, &data)), (16, 32, 0));
        assert_eq!(
            (at_end(syn, &joined(&[&one, &one, &one])), at_end(syn, &[]), at_end(ack, &[])),
            (0, 0, 0)
        );
        // a byte further on or back there is none, so a sender can always cut data that look like one
        assert_eq!((at_end(ack, &data[..32]), at_end(ack, &joined(&[&data, b"x"]))), (0, 0));
        // reserved bits of the priorities, an unknown payer, a mark that no router sets
        for (at, value) in [(8, 1), (9, 2), (11, 0x20), (13, 0x12)] {
            let mut other = one;
            other[at] = value;
            assert!(Structure::from_bytes(other).is_supported() && at_end(ack, &other) == 0, "{at}");
        }
    }

    #[test]
    fn a_header_without_a_structure_is_no_signalling() {
        let asked = request(1);
        let data = &asked.bytes()[4..];
        assert!(is_signal_header(&joined(&[&[6, 1, 0x20, 12], data])));
        assert!(!is_signal_header(&[6, 0, 5, 2, 0, 0, 1, 0]));
        assert!(!is_signal_header(&joined(&[&[6, 4, 0x3E, 12], data, &[1, 22], &[0; 22]])));
        assert!(!is_signal_header(&[]));
    }

    proptest! {
        /// A sender cuts the last byte off data that would be taken for a structure.
        #[test]
        fn of_two_neighbouring_ends_at_most_one_is_a_structure(
            mut payload in proptest::collection::vec(any::<u8>(), 17..40), fields: [u8; 16], shift in 0usize..2,
        ) {
            let mut whole = Structure::request(Rate::from_bps(1000).unwrap());
            whole.set_source(u32::from_be_bytes([fields[0], fields[1], fields[2], fields[3]]), 9);
            let at = payload.len() - Structure::LEN - shift;
            payload[at..at + Structure::LEN].copy_from_slice(whole.bytes());
            let ends = [at_end(Flags::ACK, &payload), at_end(Flags::ACK, &payload[..payload.len() - 1])];
            prop_assert!(ends.contains(&0) && ends.contains(&Structure::LEN));
        }

        #[test]
        fn any_bytes_are_read_without_harm(
            signal in proptest::collection::vec(any::<u8>(), 1..=32), v6: bool, framed: bool,
        ) {
            let mut signal = signal;
            if framed {
                signal.resize(signal.len().next_multiple_of(8), 0);
                let more = (signal.len() / 8 - 1) as u8;
                signal[1] = more;
                signal[2] = OPTION_TYPE;
            }
            let mut p = packet(if v6 { IpVersion::V6 } else { IpVersion::V4 }, &signal);
            let before = p.clone();
            for (index, structure) in structures(&before).as_slice().iter().enumerate() {
                replace(&mut p, index, structure);
            }
            prop_assert_eq!(p, before);
        }
    }
}
