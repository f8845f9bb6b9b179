//! Fuzzes the encodings of rate signalling with random and damaged bytes until the time is up or something
//! is found.
//!
//! `cargo run --release --bin fuzz-advice -- --seconds 60 [--seed N] [--cases N]`; a finding prints the
//! number of its case, and `... -- --reproduce N` runs that alone. Exit status 1 means a finding.
//!
//! Nothing panics. What was written is read back. An element never raises a rate, changes nothing but its
//! fields, and reports exactly the bytes that it changed; what it does not understand stays as it came.

#[allow(dead_code, reason = "its mutations are of whole packets")]
#[path = "../../../crates/wire/tests/wire/mutate.rs"]
mod mutate;

use bentpipe_advice::quick_start::{self, Carrier, Fields, Function, Hop, RateCode};
use bentpipe_advice::scone::{self, Advice};
use bentpipe_advice::scone_tcp::{self, Advised};
use bentpipe_advice::tia1039::{self, Structure};
use bentpipe_advice::{Rewrite, decode_rate, encode_rate, header_options, rounded};
use bentpipe_base::{IpVersion, Packet, Proto, Rate, Signal, Size};
use fuzz::Fuzzer;
use mutate::Random;
use std::process::ExitCode;

/// What holds of a case, or what does not; if it holds, whether damaged bytes could be read.
type Outcome = Result<bool, String>;

const CHECKS: [fn(&mut Random) -> Outcome; 6] = [
    check_rate_field,
    check_structures,
    check_scone,
    check_scone_tcp,
    check_quick_start,
    check_header_options,
];

fn main() -> ExitCode {
    let fuzzer = Fuzzer {
        name: "fuzz-advice",
        of_a_seed: 1 << 40,
        batch: 256,
        case: |number, _| one(number).map(u64::from),
        add: |read, one| *read += one,
        summary: |cases, seconds, read| {
            format!("{cases} execs, {:.0}/s, {read} of them readable", cases as f64 / seconds)
        },
    };
    fuzzer.main()
}

fn one(number: u64) -> Outcome {
    let mut random = Random::new(number);
    CHECKS[random.below(CHECKS.len())](&mut random)
}

fn ensure(holds: bool, finding: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(finding.to_owned()) }
}

fn some_bytes(random: &mut Random, len: usize) -> Vec<u8> {
    (0..len).map(|_| random.byte()).collect()
}

/// A rate of any order of magnitude, or none.
fn some_rate(random: &mut Random) -> Option<Rate> {
    let bits = random.bits();
    Rate::from_bps(bits >> random.below(64))
}

fn some_advice(random: &mut Random) -> Advice {
    Advice::new(random.byte() & 127).unwrap_or(Advice::UNKNOWN)
}

/// The bytes, damaged at up to three places or replaced.
fn damaged(random: &mut Random, mut bytes: Vec<u8>) -> Vec<u8> {
    if random.below(8) == 0 {
        let len = random.below(40);
        return some_bytes(random, len);
    }
    for _ in 0..random.below(4) {
        let at = random.below(bytes.len());
        match (random.below(5), bytes.get_mut(at)) {
            (0 | 1, Some(byte)) => *byte ^= 1 << random.below(8),
            (2, Some(byte)) => *byte = [0, 1, 2, 6, 8, 12, 13, 127, 255][random.below(9)],
            (3, _) => bytes.insert(at, random.byte()),
            (4, _) => bytes.truncate(random.below(bytes.len() + 1)),
            _ => {}
        }
    }
    bytes
}

/// A list with an option among others.
fn among(random: &mut Random, others: &[&[u8]], option: &[u8]) -> Vec<u8> {
    let mut list = Vec::new();
    for _ in 0..random.below(4) {
        list.extend_from_slice(others[random.below(others.len())]);
    }
    list.extend_from_slice(option);
    list.extend_from_slice(others[random.below(others.len())]);
    list
}

/// Options of IPv4 or TCP headers.
static HEADER_OPTIONS: [&[u8]; 4] = [&[1], &[2, 4, 5, 0xB4], &[8, 6, 0, 0, 0, 1], &[254, 4, 1, 2]];
/// Options of a hop-by-hop header.
static HOP_OPTIONS: [&[u8]; 3] = [&[0], &[1, 1, 0], &[5, 2, 0, 0]];

/// The change from `before` to `after` must be what the rewrite says.
fn check_rewrite<const N: usize>(
    before: &[u8],
    after: &[u8],
    rewrite: Option<Rewrite<N>>,
) -> Result<(), String> {
    let mut expected = before.to_vec();
    if let Some(Rewrite { offset, old, new }) = rewrite {
        ensure(expected.get(offset..offset + N) == Some(&old[..]), "a rewrite has other old bytes")?;
        expected[offset..offset + N].copy_from_slice(&new);
    }
    ensure(expected == after, "a rewrite does not tell all that changed")
}

/// Outside of `mask`, which begins at `at`, nothing may have changed.
fn check_mask(before: &[u8], after: &[u8], at: usize, mask: &[u8]) -> Result<(), String> {
    let may = |i: usize| i.checked_sub(at).and_then(|i| mask.get(i)).copied().unwrap_or(0);
    let kept = before.iter().zip(after).enumerate().all(|(i, (old, new))| (old ^ new) & !may(i) == 0);
    ensure(before.len() == after.len() && kept, "bits outside of a field changed")
}

/// An element lowers advice to its limit and does nothing else.
fn check_lowered(before: Option<Advice>, after: Option<Advice>, limit: Advice) -> Outcome {
    ensure(after == before.map(|advice| advice.min(limit)), "advice was not lowered to the limit")?;
    Ok(before.is_some())
}

fn check_rate_field(random: &mut Random) -> Outcome {
    let field = random.bits() as u16;
    let written = if field & 0x4000 == 0 { 0 } else { field & 0x7FFF };
    ensure(encode_rate(decode_rate(field)) == written, "a field changed by reading and writing")?;
    if let Some(rate) = some_rate(random) {
        ensure(rounded(rate).is_none_or(|read| read <= rate), "a rate was rounded up")?;
    }
    Ok(field & 0x4000 != 0)
}

fn check_structures(random: &mut Random) -> Outcome {
    let ip = [IpVersion::V4, IpVersion::V6][random.below(2)];
    let proto = [Proto::Tcp, Proto::Udp][random.below(2)];
    let mut packet = Packet { ip, proto, ..Packet::default() };
    packet.seal();
    let plain = packet.wire_len();
    let count = random.below(3);
    let list: Vec<Structure> = (0..count).map(|_| some_structure(random)).collect();
    tia1039::write(&mut packet, &list);
    let read = tia1039::structures(&packet);
    let data = |list: &[Structure]| list.iter().map(|s| s.bytes()[4..].to_vec()).collect::<Vec<_>>();
    ensure(data(read.as_slice()) == data(&list), "structures changed by writing and reading")?;
    ensure(packet.wire_len() == plain + Size(16 * count as u64), "structures have another length")?;

    let bytes = packet.signal.as_deref().map(|signal| signal.bytes().to_vec()).unwrap_or_default();
    let mut bytes = damaged(random, bytes);
    bytes.truncate(Signal::MAX);
    packet.signal = Signal::new(&bytes).map(Box::new);
    packet.seal();
    let found = tia1039::structures(&packet);
    for (index, structure) in found.as_slice().iter().enumerate() {
        let mut expected = tia1039::structures(&packet).as_slice().to_vec();
        let lowered = pass_structure(random, *structure)?;
        expected[index] = lowered;
        tia1039::replace(&mut packet, index, &lowered);
        let read = tia1039::structures(&packet);
        ensure(read.as_slice() == expected, "a replaced structure is not the only change")?;
    }
    let before = packet.clone();
    tia1039::replace(&mut packet, found.as_slice().len(), &some_structure(random));
    ensure(packet == before, "a structure that is not there was replaced")?;
    Ok(!found.is_empty())
}

fn some_structure(random: &mut Random) -> Structure {
    let mut bytes = [0; Structure::LEN];
    bytes.fill_with(|| random.byte());
    if random.below(2) == 0 {
        bytes[12..14].copy_from_slice(&[0, 0x10]);
    }
    Structure::from_bytes(bytes)
}

/// What a router makes of a structure. It leaves what it does not understand.
fn pass_structure(random: &mut Random, before: Structure) -> Result<Structure, String> {
    let mut after = before;
    if before.is_supported() && before.kind().is_some_and(tia1039::Kind::is_request) {
        let share = some_rate(random);
        after.set_available(before.available().min(share));
        after.set_guaranteed(before.guaranteed().min(share));
        after.set_changed(true);
        ensure(after.available() <= before.available().min(share), "AR is more than there was")?;
        ensure(after.guaranteed() <= before.guaranteed().min(share), "GR is more than there was")?;
        ensure(after.is_supported(), "a structure is no longer understood")?;
    }
    let mask = [0x7F, 0xFF, 0x7F, 0xFF, 0, 0, 0, 0, 0, 0x0F];
    check_mask(before.bytes(), after.bytes(), 4, &mask)?;
    Ok(after)
}

fn check_scone(random: &mut Random) -> Outcome {
    let (signal, limit) = (some_advice(random), some_advice(random));
    let lengths = (random.below(21), random.below(21), 1 + random.below(30));
    let (to, from) = (some_bytes(random, lengths.0), some_bytes(random, lengths.1));
    let mut payload = scone::write(signal, &to, &from).ok_or("a packet cannot be written")?;
    payload.extend(some_bytes(random, lengths.2));
    let is_same = |p: scone::Packet<'_>| (p.advice, p.destination, p.source) == (signal, &to[..], &from[..]);
    ensure(scone::read(&payload).is_some_and(is_same), "a packet changed by writing and reading")?;

    let before = damaged(random, payload);
    let mut after = before.clone();
    let unknown = scone::lower(&mut after, Advice::UNKNOWN);
    ensure(unknown.is_none() && after == before, "advice became unknown")?;
    let rewrite = scone::lower(&mut after, limit);
    check_rewrite(&before, &after, rewrite)?;
    check_mask(&before, &after, 0, &[0x3F, 0x80])?;
    let advice = |payload: &[u8]| scone::read(payload).map(|packet| packet.advice);
    check_lowered(advice(&before), advice(&after), limit)
}

fn check_scone_tcp(random: &mut Random) -> Outcome {
    let (signal, echo, limit) = (some_advice(random), some_advice(random), some_advice(random));
    let kind = [scone_tcp::Kind::First, scone_tcp::Kind::Second][random.below(2)];
    let option = Advised::new(kind, signal).with_echo(echo);
    ensure(Advised::from_bytes(&option.bytes()) == Some(option), "an option changed by writing and reading")?;
    ensure((option.kind(), option.advice()) == (kind, signal), "an option has another signal")?;

    let list = among(random, &HEADER_OPTIONS, &option.bytes());
    ensure(scone_tcp::find(&list).is_some_and(|(_, found)| found == option), "an option was not found")?;
    let before = damaged(random, list);
    let mut after = before.clone();
    let rewrite = scone_tcp::lower(&mut after, limit);
    check_rewrite(&before, &after, rewrite)?;
    let at = scone_tcp::find(&before).map_or(0, |(at, _)| at + 5);
    check_mask(&before, &after, at, &[0x7F])?;
    let advice = |list: &[u8]| scone_tcp::find(list).map(|(_, found)| found.advice());
    check_lowered(advice(&before), advice(&after), limit)
}

fn check_quick_start(random: &mut Random) -> Outcome {
    let code = |random: &mut Random| RateCode::new(random.byte() & 15).unwrap_or_default();
    let mut fields = Fields::request(code(random), random.byte(), random.bits() as u32);
    if random.below(4) == 0 {
        fields = Fields::report(code(random), random.bits() as u32);
    }
    let (carrier, others, ip) = [
        (Carrier::Ipv4, &HEADER_OPTIONS[..], IpVersion::V4),
        (Carrier::Tcp, &HEADER_OPTIONS[..], IpVersion::V4),
        (Carrier::Ipv6, &HOP_OPTIONS[..], IpVersion::V6),
    ][random.below(3)];
    let list = among(random, others, &fields.option(carrier));
    let found = quick_start::find(carrier, &list);
    ensure(found.is_some_and(|(_, found)| found == fields), "an option changed by writing and reading")?;

    let hop = Hop { approved: code(random), hops: random.byte() & 3, random: random.bits() as u32 };
    let before = damaged(random, list);
    let mut after = before.clone();
    let rewrite = quick_start::pass(ip, &mut after, hop);
    check_rewrite(&before, &after, rewrite)?;
    let carrier = if ip == IpVersion::V4 { Carrier::Ipv4 } else { Carrier::Ipv6 };
    let (Some((at, old)), Some((_, new))) =
        (quick_start::find(carrier, &before), quick_start::find(carrier, &after))
    else {
        ensure(before == after, "other options changed")?;
        return Ok(false);
    };
    check_mask(&before, &after, at + 2, &[0x0F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFC])?;
    ensure(new.rate() <= old.rate(), "a router raised a rate")?;
    if old.function() == Some(Function::Request) {
        ensure(new.rate() <= hop.approved, "a router approved more than it wanted")?;
    } else {
        ensure(new == old, "a router changed what is no request")?;
    }
    Ok(true)
}

/// Options of real headers, as a router reads and lowers them.
fn check_header_options(random: &mut Random) -> Outcome {
    let code = |random: &mut Random| RateCode::new(random.byte() & 15).unwrap_or_default();
    let ip = [IpVersion::V4, IpVersion::V6][random.below(2)];
    let asked = Fields::request(code(random), random.byte(), random.bits() as u32);
    let advised = Advised::new(scone_tcp::Kind::First, some_advice(random)).with_echo(some_advice(random));
    let (list, start) = match ip {
        IpVersion::V4 => (among(random, &HEADER_OPTIONS, &asked.option(Carrier::Ipv4)), 0),
        IpVersion::V6 => (among(random, &HOP_OPTIONS, &asked.option(Carrier::Ipv6)), 2),
    };
    let options = among(random, &HEADER_OPTIONS, &asked.option(Carrier::Tcp));
    let before = among(random, &HEADER_OPTIONS, &advised.bytes());
    let transport = damaged(random, [options, before].concat());
    let network = damaged(random, [vec![6; start], list].concat());

    let signal = header_options::read(ip, &network, &transport).map(Box::new);
    let mut packet = Packet { ip, signal, ..Packet::default() };
    let (mut after, mut tcp_after) = (network.clone(), transport.clone());
    header_options::write(&packet, &mut after, &mut tcp_after);
    ensure(after == network && tcp_after == transport, "options changed by reading and writing")?;

    let came = packet.clone();
    let (limit, hop) = (some_advice(random), Hop { approved: code(random), hops: 1, random: 7 });
    scone_tcp::packet::lower_in(&mut packet, limit);
    quick_start::packet::pass_in(&mut packet, hop);
    header_options::write(&packet, &mut after, &mut tcp_after);
    ensure(
        header_options::read(ip, &after, &tcp_after).map(Box::new) == packet.signal,
        "options are not as written",
    )?;
    let advice = |packet: &Packet| scone_tcp::packet::of(packet).map(Advised::advice);
    check_lowered(advice(&came), advice(&packet), limit)?;
    let rate = |packet: &Packet| quick_start::packet::of_ip(packet).map(Fields::rate);
    ensure(rate(&packet) <= rate(&came), "a router raised a rate")?;
    let at = scone_tcp::find(&transport).map_or(0, |(at, _)| at + 5);
    check_mask(&transport, &tcp_after, at, &[0x7F])?;
    let carrier = if ip == IpVersion::V4 { Carrier::Ipv4 } else { Carrier::Ipv6 };
    let options = network.get(start..).unwrap_or_default();
    let at = quick_start::find(carrier, options).map_or(0, |(at, _)| start + at + 2);
    check_mask(&network, &after, at, &[0x0F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFC])?;
    Ok(came.signal.is_some())
}
