//! Converts values to bytes and back, and compares with etherparse.

use crate::oracle;
use bentpipe_base::{Dscp, Ecn, Flags, Phases, ProbeOption, SackList, Seq, TcpHeader, Timestamps};
use bentpipe_wire::{AddressPair, Fault, Layout, Segment, emit, parse};
use etherparse::{PacketBuilder, TcpOptionElement};
use proptest::prelude::*;

fn ends() -> impl Strategy<Value = AddressPair> {
    prop_oneof![
        any::<([u8; 4], [u8; 4])>()
            .prop_map(|(src, dst)| AddressPair::V4 { src: src.into(), dst: dst.into() }),
        any::<([u8; 16], [u8; 16])>()
            .prop_map(|(src, dst)| AddressPair::V6 { src: src.into(), dst: dst.into() }),
    ]
}

fn ecn() -> impl Strategy<Value = Ecn> {
    prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ect1), Just(Ecn::Ect0), Just(Ecn::Ce)]
}

fn sack() -> impl Strategy<Value = SackList> {
    proptest::collection::vec(any::<(u32, u32)>(), 0..5).prop_map(|blocks| {
        let mut list = SackList::default();
        for (left, right) in blocks {
            list.push(Seq(left), Seq(right));
        }
        list
    })
}

/// A header as an engine may send it: SYN-only options on a SYN only, and not more options than fit.
pub(crate) fn tcp() -> impl Strategy<Value = TcpHeader> {
    let numbers = any::<(u32, u32, u16, u8)>();
    let syn_only = any::<(Option<u16>, Option<u8>, bool)>();
    let probe = proptest::option::of((any::<bool>(), 0u16..1 << 15));
    (numbers, syn_only, any::<Option<(u32, u32)>>(), sack(), probe).prop_map(
        |(n, on_syn, stamps, sack, probe)| {
            let (mss, window_scale, sack_permitted) = if n.3 & 2 == 2 { on_syn } else { (None, None, false) };
            let timestamps = stamps.map(|(value, echo)| Timestamps { value, echo });
            let (seq, ack, window, flags) = (Seq(n.0), Seq(n.1), n.2, Flags(n.3));
            let probe = match probe {
                None => ProbeOption::None,
                Some(_) if n.3 & 2 == 2 => ProbeOption::Permitted,
                Some((true, number)) => ProbeOption::Echo(number),
                Some((false, number)) => ProbeOption::Probe(number),
            };
            TcpHeader {
                seq,
                ack,
                window,
                flags,
                mss,
                window_scale,
                sack_permitted,
                timestamps,
                sack,
                probe,
                phases: Phases::default(),
            }
        },
    )
}

pub(crate) fn segment(payload: &[u8]) -> impl Strategy<Value = Segment<'_>> + use<'_> {
    (ends(), any::<(u16, u16, u8)>(), 0u8..64, ecn(), tcp()).prop_map(
        move |(ends, (sport, dport, hops), dscp, ecn, tcp)| Segment {
            ends,
            sport,
            dport,
            hops,
            dscp: Dscp::new(dscp).unwrap_or_default(),
            ecn,
            tcp,
            payload,
        },
    )
}

const PAYLOAD: &[u8] = b"seventeen bytes..";

proptest! {
    #[test]
    fn what_is_emitted_is_read_back(segment in segment(PAYLOAD), len in 0usize..18) {
        let segment = Segment { payload: &PAYLOAD[..len.min(PAYLOAD.len())], ..segment };
        let mut bytes = Vec::new();
        match emit(&segment, &mut bytes) {
            Ok(()) => {
                prop_assert_eq!(parse(&bytes), Ok(segment.clone()));
                let layout = Layout::of(&bytes).unwrap();
                prop_assert_eq!(layout.sum(&bytes).fold(), 0xffff);
                let header_len = layout.payload.start - layout.network.transport;
                prop_assert_eq!(header_len, usize::from(segment.tcp.wire_len()));
                prop_assert_eq!(oracle::agrees(&bytes, &segment), Ok(()));
                let theirs = etherparse::SlicedPacket::from_ip(&bytes).unwrap();
                let Some(etherparse::TransportSlice::Tcp(tcp)) = theirs.transport else { panic!("no TCP") };
                let expected = match segment.ends {
                    AddressPair::V4 { src, dst } => tcp.calc_checksum_ipv4(src.octets(), dst.octets()).unwrap(),
                    AddressPair::V6 { src, dst } => tcp.calc_checksum_ipv6(src.octets(), dst.octets()).unwrap(),
                };
                prop_assert_eq!(tcp.checksum(), expected);
            }
            Err(e) => {
                prop_assert_eq!(e.fault, Fault::OptionSpaceFull);
                prop_assert!(segment.tcp.wire_len() > 60);
                prop_assert!(bytes.is_empty());
            }
        }
    }

    #[test]
    fn what_etherparse_writes_is_read(
        numbers: (u16, u16, u32, u32, u16), mss: u16, shift: u8, stamps: (u32, u32), sack: (u32, u32),
    ) {
        let (sport, dport, seq, ack, window) = numbers;
        let builder = PacketBuilder::ipv6([1; 16], [2; 16], 9).tcp(sport, dport, seq, window).syn().ack(ack);
        let builder = builder
            .options(&[
                TcpOptionElement::Noop,
                TcpOptionElement::MaximumSegmentSize(mss),
                TcpOptionElement::WindowScale(shift),
                TcpOptionElement::Timestamp(stamps.0, stamps.1),
                TcpOptionElement::SelectiveAcknowledgementPermitted,
                TcpOptionElement::SelectiveAcknowledgement(sack, [None; 3]),
            ])
            .unwrap();
        let mut bytes = Vec::new();
        builder.write(&mut bytes, PAYLOAD).unwrap();
        let segment = parse(&bytes).unwrap();
        prop_assert_eq!((segment.sport, segment.dport, segment.hops), (sport, dport, 9));
        prop_assert_eq!((segment.tcp.seq.0, segment.tcp.ack.0, segment.tcp.window), (seq, ack, window));
        prop_assert_eq!((segment.tcp.mss, segment.tcp.window_scale), (Some(mss), Some(shift)));
        prop_assert!(segment.tcp.sack_permitted);
        prop_assert_eq!(segment.tcp.timestamps, Some(Timestamps { value: stamps.0, echo: stamps.1 }));
        prop_assert_eq!(segment.tcp.sack.as_slice(), &[(Seq(sack.0), Seq(sack.1))]);
        prop_assert_eq!(segment.payload, PAYLOAD);
        prop_assert_eq!(Layout::of(&bytes).unwrap().sum(&bytes).fold(), 0xffff);
    }

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
        prop_assert_eq!(crate::check::all(&bytes), Ok(()));
    }
}

#[test]
fn syn_only_options_count_on_a_syn_only() {
    let mut bytes = Vec::new();
    let tcp = TcpHeader {
        flags: Flags::SYN,
        mss: Some(9),
        window_scale: Some(1),
        sack_permitted: true,
        ..TcpHeader::default()
    };
    let ends = AddressPair::V4 { src: [192, 0, 2, 1].into(), dst: [198, 51, 100, 2].into() };
    let segment = Segment {
        ends,
        sport: 1,
        dport: 2,
        hops: 64,
        dscp: Dscp::DEFAULT,
        ecn: Ecn::NotEct,
        tcp,
        payload: b"",
    };
    emit(&segment, &mut bytes).unwrap();
    bytes[33] = Flags::ACK.0;
    let tcp = parse(&bytes).unwrap().tcp;
    assert_eq!((tcp.mss, tcp.window_scale, tcp.sack_permitted), (None, None, false));
}

#[test]
fn a_packet_that_no_ip_header_can_describe_is_refused() {
    let ends = AddressPair::V6 { src: [1; 16].into(), dst: [2; 16].into() };
    let payload = vec![0; 65_536 - 20];
    let tcp = TcpHeader::default();
    let mut segment = Segment {
        ends,
        sport: 1,
        dport: 2,
        hops: 64,
        dscp: Dscp::DEFAULT,
        ecn: Ecn::NotEct,
        tcp,
        payload: &payload,
    };
    let mut bytes = Vec::new();
    assert_eq!(emit(&segment, &mut bytes).unwrap_err().fault, Fault::TooLong);
    segment.payload = &payload[1..];
    emit(&segment, &mut bytes).unwrap();
    assert_eq!(parse(&bytes).unwrap().payload.len(), 65_515);
}
