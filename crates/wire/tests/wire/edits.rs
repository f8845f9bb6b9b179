//! Edits against what a fresh packet would be.

use crate::corpus;
use crate::round_trip::segment;
use bentpipe_base::{SackList, Seq, TcpHeader};
use bentpipe_wire::{Checksum, Edit, Fault, Layout, OptionKind, Segment, emit, parse};
use proptest::prelude::*;

fn emitted(segment: &Segment<'_>) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    emit(segment, &mut bytes).ok().map(|()| bytes)
}

fn edited(bytes: &[u8], change: impl FnOnce(&mut Edit<'_>)) -> Vec<u8> {
    let mut copy = bytes.to_vec();
    change(&mut Edit::new(&mut copy, Checksum::Full).expect("a TCP packet"));
    copy
}

fn named(name: &str) -> Vec<u8> {
    corpus::load()
        .into_iter()
        .find(|(n, _)| n == name)
        .map(|(_, bytes)| bytes)
        .expect("a packet of the corpus")
}

/// The same packet with only the pseudo-header in its checksum field.
fn partial(mut bytes: Vec<u8>) -> Vec<u8> {
    let layout = Layout::of(&bytes).expect("a TCP packet");
    let (start, end) = (layout.network.transport, layout.network.end);
    let sum = bentpipe_wire::pseudo_header(&layout.network.ends, 6, end - start).fold();
    bytes[start + 16..start + 18].copy_from_slice(&sum.to_be_bytes());
    bytes
}

proptest! {
    #[test]
    fn a_changed_field_equals_a_fresh_packet(s in segment(b"odd"), seq: u32, ack: u32, window: u16, shift: u8) {
        let Some(bytes) = emitted(&s) else { return Ok(()) };
        let fresh = |tcp| emitted(&Segment { tcp, ..s }).unwrap();
        prop_assert_eq!(edited(&bytes, |e| e.set_seq(Seq(seq))), fresh(TcpHeader { seq: Seq(seq), ..s.tcp }));
        prop_assert_eq!(edited(&bytes, |e| e.set_ack(Seq(ack))), fresh(TcpHeader { ack: Seq(ack), ..s.tcp }));
        prop_assert_eq!(edited(&bytes, |e| e.set_window(window)), fresh(TcpHeader { window, ..s.tcp }));
        let scaled = edited(&bytes, |e| assert_eq!(e.set_window_scale(shift), s.tcp.window_scale.is_some()));
        let window_scale = s.tcp.window_scale.map(|_| shift);
        prop_assert_eq!(scaled, fresh(TcpHeader { window_scale, ..s.tcp }));
    }

    #[test]
    fn an_edit_and_completing_the_checksum_may_change_places(s in segment(b"odd"), window: u16, value: [u8; 6]) {
        let Some(bytes) = emitted(&s) else { return Ok(()) };
        let change = |e: &mut Edit<'_>| {
            e.set_window(window);
            let _ = e.insert_option(OptionKind(253), &value);
        };
        let full = edited(&bytes, change);
        let mut later = partial(bytes);
        change(&mut Edit::new(&mut later, Checksum::Partial).unwrap());
        prop_assert_eq!(later, partial(full));
    }

    #[test]
    fn removed_options_are_gone_and_nothing_else(s in segment(b"odd")) {
        let Some(bytes) = emitted(&s) else { return Ok(()) };
        let without = edited(&bytes, |e| { e.remove_option(OptionKind::SACK); });
        prop_assert_eq!(without.len(), bytes.len());
        let tcp = TcpHeader { sack: SackList::default(), ..s.tcp };
        prop_assert_eq!(parse(&without), Ok(Segment { tcp, ..s }));
        prop_assert_eq!(Layout::of(&without).unwrap().sum(&without).fold(), 0xffff);
    }

    #[test]
    fn an_inserted_option_is_read(s in segment(b"odd"), shift: u8) {
        let s = Segment { tcp: TcpHeader { window_scale: None, ..s.tcp }, ..s };
        let Some(bytes) = emitted(&s) else { return Ok(()) };
        let mut copy = bytes.clone();
        let outcome = Edit::new(&mut copy, Checksum::Full).unwrap().insert_option(OptionKind::WINDOW_SCALE, &[shift]);
        if outcome.is_err() {
            prop_assert_eq!(copy, bytes);
            prop_assert!(s.tcp.wire_len() > 56);
        } else {
            let window_scale = s.tcp.flags.has(bentpipe_base::Flags::SYN).then_some(shift);
            prop_assert_eq!(parse(&copy), Ok(Segment { tcp: TcpHeader { window_scale, ..s.tcp }, ..s }));
            prop_assert_eq!(Layout::of(&copy).unwrap().sum(&copy).fold(), 0xffff);
        }
    }
}

#[test]
fn padding_is_used_before_the_header_grows() {
    let syn = named("syn-linux");
    let without = edited(&syn, |e| assert!(e.remove_option(OptionKind::WINDOW_SCALE)));
    let again = edited(&without, |e| e.insert_option(OptionKind::WINDOW_SCALE, &[7]).unwrap());
    assert_eq!(again, syn);
    // two leading no-operations before the timestamps are long enough for SACK-permitted
    let ack = named("data-odd");
    let with = edited(&ack, |e| e.insert_option(OptionKind::SACK_PERMITTED, &[]).unwrap());
    assert_eq!(with.len(), ack.len());
}

#[test]
fn the_header_grows_in_words_and_its_end_is_the_end() {
    let old = named("syn-old-host");
    let new = edited(&old, |e| e.insert_option(OptionKind::WINDOW_SCALE, &[7]).unwrap());
    assert_eq!(new.len(), old.len() + 4);
    assert_eq!(new[40..], [2, 4, 5, 0xb4, 1, 3, 3, 7]);
    assert_eq!((new[3], new[32]), (old[3] + 4, 0x70));
    assert!(bentpipe_wire::Ipv4::new(&new[..]).unwrap().checksum_holds());
    // what stood behind the end of the list must not come to life
    let dead = named("options-after-end");
    let with = edited(&dead, |e| e.insert_option(OptionKind(253), &[1, 2, 3]).unwrap());
    let kinds: Vec<u8> =
        bentpipe_wire::Tcp::new(&with[20..]).unwrap().options().map(|o| o.unwrap().kind().0).collect();
    assert_eq!(kinds, [2, 253]);
}

#[test]
fn forty_bytes_of_options_are_the_limit() {
    let full = named("syn-full");
    let mut copy = full.clone();
    let mut edit = Edit::new(&mut copy, Checksum::Full).unwrap();
    assert_eq!(edit.insert_option(OptionKind(99), &[1]).unwrap_err().fault, Fault::OptionSpaceFull);
    assert_eq!(edit.insert_option(OptionKind(99), &[0; 300]).unwrap_err().fault, Fault::OptionSpaceFull);
    assert_eq!(edit.insert_option(OptionKind::NOP, &[]).unwrap_err().fault, Fault::OptionLength);
    assert_eq!(copy, full);
}

#[test]
fn every_option_of_a_kind_is_changed() {
    let twice = named("options-twice");
    let set = edited(&twice, |e| assert!(e.set_window_scale(5)));
    assert_eq!(parse(&set).unwrap().tcp.window_scale, Some(5));
    let removed = edited(&twice, |e| assert!(e.remove_option(OptionKind::WINDOW_SCALE)));
    assert_eq!(parse(&removed).unwrap().tcp.window_scale, None);
    let other = edited(&twice, |e| assert!(!e.set_option(OptionKind::MSS, &[1])));
    assert_eq!(other, twice);
    edited(&twice, |e| assert_eq!(e.find(OptionKind::MSS).unwrap().value(), [5, 0xb4]));
}
