//! Regression tests: the corpus, and a short fuzzing run with a fixed seed.

use crate::check;
use crate::corpus;
use crate::mutate::{Random, mutate};
use crate::oracle;
use bentpipe_wire::{Layout, Network, Options, Tcp, UDP, emit, parse, pseudo_header};

#[test]
fn every_packet_of_the_corpus_passes_every_check() {
    let packets = corpus::load();
    assert!(packets.len() >= 50, "only {} packets", packets.len());
    for (name, bytes) in &packets {
        check::all(bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

#[test]
fn the_corpus_covers_what_its_names_say() {
    let packets = corpus::load();
    let read = packets.iter().filter(|(_, b)| parse(b).is_ok()).count();
    assert!(read >= 35 && packets.len() - read >= 15, "{read} of {} can be read", packets.len());
    let get = |name: &str| packets.iter().find(|(n, _)| n == name).map(|(_, b)| b.as_slice()).unwrap();
    let syn = parse(get("syn-linux")).unwrap().tcp;
    assert_eq!((syn.mss, syn.window_scale, syn.sack_permitted), (Some(1460), Some(7), true));
    assert_eq!(parse(get("ack-sack3")).unwrap().tcp.sack.as_slice().len(), 3);
    assert_eq!(parse(get("options-twice")).unwrap().tcp.window_scale, Some(9));
    assert_eq!(parse(get("options-wrong-length")).unwrap().tcp.window_scale, None);
    assert!(parse(get("options-sack-bad")).unwrap().tcp.sack.is_empty());
    assert_eq!(parse(get("v6-extensions")).unwrap().payload, b"x");
    let udp = get("udp");
    let network = Network::of(udp).unwrap();
    let datagram = &udp[network.transport..network.end];
    assert_eq!(pseudo_header(&network.ends, UDP, datagram.len()).bytes(datagram).fold(), 0xffff);
}

#[test]
fn unknown_options_are_seen_whole() {
    let packets = corpus::load();
    let (_, bytes) = packets.iter().find(|(n, _)| n == "options-unknown").unwrap();
    let tcp = Tcp::new(&bytes[20..]).unwrap();
    let kinds: Vec<u8> = Options::new(tcp.options).map(|o| o.unwrap().kind().0).collect();
    assert_eq!(kinds, [253, 2, 77, 3, 254, 4]);
    assert_eq!(Options::new(tcp.options).nth(4).unwrap().unwrap().bytes, [254, 5, 1, 2, 3]);
}

#[test]
fn we_lay_options_out_as_common_stacks_do() {
    let packets = corpus::load();
    for name in [
        "syn-linux",
        "synack-linux",
        "syn-old-host",
        "ack-plain",
        "ack-sack1",
        "ack-sack3",
        "ack-sack4",
        "data-ce",
    ] {
        let (_, bytes) = packets.iter().find(|(n, _)| n == name).unwrap();
        let mut ours = Vec::new();
        emit(&parse(bytes).unwrap(), &mut ours).unwrap();
        assert_eq!(ours, *bytes, "{name}");
    }
}

#[test]
fn checksums_of_the_corpus_hold() {
    // the corpus was written by another program, so these sums are not our own
    for (name, bytes) in corpus::load() {
        let Ok(layout) = Layout::of(&bytes) else { continue };
        if name.starts_with("partial") || name.starts_with("data-offset") {
            continue;
        }
        assert_eq!(layout.sum(&bytes).fold(), 0xffff, "{name}");
        assert!(oracle::is_tcp(&bytes), "{name}");
    }
}

#[test]
fn ten_thousand_mutations_pass_every_check() {
    let mut seeds: Vec<Vec<u8>> = corpus::load().into_iter().map(|(_, bytes)| bytes).collect();
    seeds.sort();
    let mut random = Random::new(1);
    let mut read = 0;
    for i in 0..10_000 {
        let packet = mutate(&mut random, &seeds);
        check::all(&packet).unwrap_or_else(|e| panic!("mutation {i}: {e}\n{packet:02x?}"));
        read += usize::from(parse(&packet).is_ok());
    }
    // if nearly all mutations were refused, only the first check would be tested
    assert!(read > 2_000, "only {read} of 10000 mutated packets can be read");
}
