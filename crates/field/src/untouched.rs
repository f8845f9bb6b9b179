//! Checks what the gateway must not change: connections of several kinds between kernel hosts, captured in
//! front of the gateway and behind it, compared packet by packet.
//!
//! Two packets form a pair if their addresses, ports, sequence number, flags and payload are equal. As
//! documented for an accelerated connection, these may differ: the window, the acknowledgment number (the
//! newest is filled in), SACK blocks, and the TTL.

use crate::analyse::header::{Segment, options as tcp_options};
use crate::bed::{Receiver, TestBed, receiver};
use crate::gateway::{self, Gateway};
use crate::hop::direction::Settings;
use crate::hop::relay;
use crate::namespace::Namespace;
use crate::run::TemporaryFolder;
use bentpipe_os::Clock;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The kinds, each with kernel settings for both hosts.
pub const KINDS: [(&str, &[(&str, &str)]); 6] = [
    ("mptcp", &[]),
    ("ecn", &[("tcp_ecn", "1")]),
    ("fastopen", &[("tcp_fastopen", "3")]),
    ("scaled", &[]),
    ("keepalive", &[]),
    ("quic", &[]),
];
/// Longest packet that is compared, bytes.
const LONGEST: usize = 2048;

/// Result of a kind of connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Pairs compared.
    pub pairs: usize,
    /// Undocumented differences, and packets on one side only.
    pub faults: Vec<String>,
}

/// A process that is killed on drop.
struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs one kind through the gateway of `program`.
///
/// # Errors
/// If the bed cannot be created or a program fails.
pub fn run(program: &Path, kind: &str, settings: &[(&str, &str)]) -> Result<Comparison, String> {
    let kept = TemporaryFolder::new("untouched")?;
    let folder = &kept.0;
    let (bed, ports) = TestBed::new(&[Receiver::Modern], 4 << 20)?;
    let far = &bed.receivers[0];
    bed.sender.set(settings)?;
    far.set(settings)?;
    let gateway = Gateway::start(&bed, program, folder, &gateway::file(24e6, 60.0, ""))?;
    let script = folder.join("untouched.py");
    fs::write(&script, include_str!("untouched.py")).map_err(|e| e.to_string())?;
    let (clock, over) = (Clock::start(), AtomicBool::new(false));
    let hop = || Settings { rate: 24e6, delay: 30_000_000, queue: 1 << 20, ..Settings::default() };
    thread::scope(|scope| {
        let relay = scope.spawn(|| relay::run(ports, [hop(), hop()], 1, clock, &over));
        let talked = talk(&bed, far, kind, &script, folder);
        over.store(true, Ordering::Relaxed);
        relay.join().map_err(|_| "the hop panicked".to_owned())?.map_err(|e| format!("the hop: {e}"))?;
        talked
    })?;
    drop(gateway);
    let [before, after] = ["west", "tuna"].map(|name| packets(&folder.join(name)));
    let mut compared = compare(&before?, &after?);
    if !shows(kind, &packets(&folder.join("tuna"))?) {
        compared.faults.push(format!("nothing of {kind} was to be seen"));
    }
    Ok(compared)
}

/// True if a capture contains the feature of its kind; otherwise the comparison would prove nothing.
fn shows(kind: &str, all: &[Vec<u8>]) -> bool {
    let has = |ip: &[u8], mask: u8, wanted: u8| flags(ip).is_some_and(|flags| flags & mask == wanted);
    let has_option = |ip: &[u8], kind| options(ip).iter().any(|o| o[0] == kind);
    match kind {
        "mptcp" => all.iter().any(|ip| ip[9] == 6 && has_option(ip, 30)),
        "ecn" => all.iter().any(|ip| ip[9] == 6 && ip[1] & 3 == 2),
        "fastopen" => all.iter().any(|ip| has(ip, 0x12, 2) && header_offsets(ip).1 < ip.len()),
        "scaled" => all.iter().filter(|ip| has(ip, 2, 2) && has_option(ip, 3)).count() >= 2,
        "keepalive" => probes(all) > 0,
        _ => all.iter().any(|ip| ip[9] == 17 && ip[header_offsets(ip).1] & 0xc0 == 0xc0),
    }
}

/// Counts keepalive probes: no data, sequence number one below the next (RFC 9293, 3.8.4).
fn probes(all: &[Vec<u8>]) -> usize {
    let segments = all.iter().filter_map(|ip| Segment::parse(ip, ip.len() as u32));
    let (mut next, mut n) = (BTreeMap::new(), 0);
    for s in segments {
        let end = s.seq.wrapping_add(s.len + u32::from(s.is_syn));
        match next.get(&(s.from, s.to)) {
            Some(known) if s.len == 0 && s.seq.wrapping_add(1) == *known => n += 1,
            _ => drop(next.insert((s.from, s.to), end)),
        }
    }
    n
}

fn start(place: &Namespace, words: &[&str]) -> Result<KilledOnDrop, String> {
    place.within(|| {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().map(KilledOnDrop).map_err(|e| format!("{}: {e}", words[0]))
    })
}

/// Waits until a program prints `word`; fails if it ends without having done so.
fn await_word(from: Option<impl io::Read>, word: &str) -> Result<(), String> {
    let lines = from.map(|from| BufReader::new(from).lines());
    let is_said = lines.into_iter().flatten().map_while(Result::ok).any(|line| line.contains(word));
    is_said.then_some(()).ok_or_else(|| format!("a program ended without \"{word}\""))
}

/// Captures on both sides of the gateway while the two programs run.
fn talk(bed: &TestBed, far: &Namespace, kind: &str, script: &Path, folder: &Path) -> Result<(), String> {
    let mut captures = Vec::new();
    for name in ["west", "tuna"] {
        let file = folder.join(name).display().to_string();
        let mut capture =
            start(&bed.router, &["tcpdump", "-Ui", name, "-s", "0", "-w", &file, "tcp or udp"])?;
        await_word(capture.0.stderr.take(), "listening")?;
        captures.push(capture);
    }
    let (script, address) = (script.display().to_string(), receiver(0).to_string());
    let mut server = start(far, &["python3", &script, "serve", kind, &address])?;
    await_word(server.0.stdout.take(), "ready")
        .map_err(|_| format!("this kernel or python3 has no {kind}"))?;
    bed.sender.shell(&format!("timeout 30 python3 '{script}' call {kind} {address}"))?;
    thread::sleep(Duration::from_millis(500));
    drop(server);
    drop(captures);
    Ok(())
}

/// Reads the packets of a capture, from their IP headers on.
fn packets(path: &Path) -> Result<Vec<Vec<u8>>, String> {
    let bytes = fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    parse(&bytes).ok_or_else(|| format!("{}: not a capture, or one of another kind of link", path.display()))
}

fn parse(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    if !matches!(word(0)?, 0xa1b2_c3d4 | 0xa1b2_3c4d) {
        return None;
    }
    let skip = match word(20)? & 0xffff {
        1 => 14,
        12 | 101 => 0,
        _ => return None,
    };
    let (mut all, mut at) = (Vec::new(), 24);
    // a truncated capture ends with its last complete packet
    while let Some(packet) = word(at + 8).and_then(|len| bytes.get(at + 16..at + 16 + len as usize)) {
        at += 16 + packet.len();
        if let Some(ip) =
            packet.get(skip..).filter(|ip| ip.len() >= 28 && ip[0] >> 4 == 4 && ip.len() <= LONGEST)
        {
            all.push(ip.to_vec());
        }
    }
    Some(all)
}

/// Compares the packets of both sides.
fn compare(before: &[Vec<u8>], after: &[Vec<u8>]) -> Comparison {
    let (mut compared, mut left) = (Comparison::default(), after.to_vec());
    for packet in before {
        // the gateway may withhold acknowledgments, so equal ones are paired by their IP identification
        let alike =
            |other: &[u8]| key(other) == key(packet) && (!is_pure_ack(packet) || other[4..6] == packet[4..6]);
        let Some(i) = left.iter().position(|other| alike(other)) else {
            // the gateway may withhold a pure acknowledgment and send a newer one in its place
            if !is_pure_ack(packet) {
                compared.faults.push(format!("on one side only: {}", name(packet)));
            }
            continue;
        };
        let other = left.remove(i);
        compared.pairs += 1;
        let faults = differences(packet, &other);
        compared.faults.extend(faults.into_iter().map(|f| format!("{f}: {}", name(packet))));
    }
    let extra = left.iter().filter(|p| !is_pure_ack(p));
    compared.faults.extend(extra.map(|p| format!("behind the gateway only: {}", name(p))));
    compared
}

/// Offsets of the transport header and its payload.
fn header_offsets(ip: &[u8]) -> (usize, usize) {
    let header = usize::from(ip[0] & 15) * 4;
    let words = ip.get(header + 12).map_or(0, |b| usize::from(b >> 4) * 4);
    (header, (header + if ip[9] == 6 { words } else { 8 }).min(ip.len()))
}

/// TCP flags; `None` for other protocols.
fn flags(ip: &[u8]) -> Option<u8> {
    ip.get(header_offsets(ip).0 + 13).copied().filter(|_| ip[9] == 6)
}

/// What identifies a packet on both sides: addresses, ports, sequence number of TCP, flags, payload.
fn key(ip: &[u8]) -> (&[u8], &[u8], u8, &[u8]) {
    let (header, payload) = header_offsets(ip);
    let ports_and_seq = header..header + if ip[9] == 6 { 8 } else { 4 };
    (&ip[12..20], ip.get(ports_and_seq).unwrap_or_default(), flags(ip).unwrap_or(0), &ip[payload..])
}

fn is_pure_ack(ip: &[u8]) -> bool {
    // none of the flags CWR, ECE, RST, SYN and FIN
    header_offsets(ip).1 == ip.len() && flags(ip).is_some_and(|flags| flags & 0xc7 == 0)
}

fn name(ip: &[u8]) -> String {
    match Segment::parse(ip, ip.len() as u32) {
        Some(s) => format!("port {} to {}, seq {}, {} B", s.from.1, s.to.1, s.seq, s.len),
        None => format!("{} B of protocol {}", ip.len(), ip[9]),
    }
}

/// Undocumented differences between the two packets of a pair.
fn differences(one: &[u8], other: &[u8]) -> Vec<&'static str> {
    let mut all = vec![
        ("type of service or ECN", one[1] == other[1]),
        ("identification", one[4..6] == other[4..6]),
        ("fragment flags", one[6..8] == other[6..8]),
        ("hops left, by more than two", one[8].abs_diff(other[8]) <= 2),
    ];
    if one[9] == 6 {
        let reserved = |ip: &[u8]| ip.get(header_offsets(ip).0 + 12).map(|b| b & 15);
        let urgent =
            |ip: &[u8]| ip.get(header_offsets(ip).0 + 18..header_offsets(ip).0 + 20).map(<[u8]>::to_vec);
        all.push(("options", options(one) == options(other)));
        all.push(("reserved bits", reserved(one) == reserved(other)));
        all.push(("urgent pointer", urgent(one) == urgent(other)));
    }
    all.into_iter().filter(|(_, is_same)| !is_same).map(|(what, _)| what).collect()
}

/// TCP options except padding, SACK blocks and the echoed timestamp; the last two may differ, as the
/// acknowledgment number may.
fn options(ip: &[u8]) -> Vec<&[u8]> {
    let (header, payload) = header_offsets(ip);
    let all = tcp_options(ip.get(header + 20..payload).unwrap_or_default()).into_iter();
    let fixed = |option: &[u8]| if option[0] == 8 { option.len().min(6) } else { option.len() };
    all.filter(|option| option[0] != 5).map(|option| &option[..fixed(option)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::header::tests::packet;

    fn data(seq: u32, payload: u8) -> Vec<u8> {
        let (mut head, _) = packet(true, seq, 1, 4, &[]);
        head.extend([payload; 4]);
        head
    }

    #[test]
    fn what_is_changed_lost_or_added_is_told() {
        let (a, b) = (data(1, 7), data(5, 8));
        let ack = packet(false, 1, 9, 0, &[]).0;
        let same = compare(&[a.clone(), b.clone(), ack], &[a.clone(), b.clone()]);
        assert_eq!(same, Comparison { pairs: 2, faults: Vec::new() });
        let changed = |at: usize| {
            let mut other = b.clone();
            other[at] ^= 0x40;
            compare(&[a.clone(), b.clone()], &[a.clone(), other]).faults.len()
        };
        // type of service, identification, fragment flags, TTL; then reserved bits, ports, sequence number,
        // urgent pointer, payload: these give one difference or two
        assert_eq!([1, 4, 6, 8].map(changed), [1, 1, 1, 1]);
        assert_eq!([21, 27, 33, 43].map(changed), [2, 2, 2, 2], "another packet on each side");
        assert_eq!([38, 34, 31].map(changed), [1, 0, 0], "urgent pointer, window, acknowledgment");
        assert_eq!(compare(std::slice::from_ref(&a), &[a.clone(), b.clone()]).faults.len(), 1);
        assert_eq!(compare(&[], &[]).pairs, 0);
    }

    #[test]
    fn options_are_compared_but_for_those_that_may_change() {
        let with = |options: &[u8]| {
            let (mut head, _) = packet(true, 1, 1, 0, &[]);
            head[32] = ((5 + options.len() / 4) as u8) << 4;
            head.extend(options);
            head
        };
        let stamp = |echo: u8| with(&[1, 1, 8, 10, 1, 2, 3, 4, 0, 0, 0, echo]);
        assert!(differences(&stamp(1), &stamp(2)).is_empty());
        assert_eq!(differences(&with(&[3, 3, 7, 0]), &with(&[3, 3, 8, 0])), ["options"]);
        assert_eq!(differences(&with(&[30, 4, 1, 2]), &with(&[1, 1, 1, 1])), ["options"]);
        // wrong option lengths
        assert_eq!(options(&with(&[30, 0, 1, 2])).len(), 1);
        assert_eq!(options(&with(&[30, 99, 1, 2])).len(), 1);
    }

    #[test]
    fn a_kind_must_be_seen() {
        let keeps = [data(1, 7), packet(true, 4, 1, 0, &[]).0];
        assert!(shows("keepalive", &keeps) && !shows("keepalive", &keeps[..1]));
        for (kind, _) in KINDS {
            assert!(kind == "keepalive" || !shows(kind, &keeps), "{kind}");
        }
    }

    #[test]
    fn captures_are_read_and_others_refused() {
        let mut file = Vec::new();
        for word in [0xa1b2_c3d4_u32, 0, 0, 0, 0, 101, 0, 0, 28, 28] {
            file.extend(word.to_le_bytes());
        }
        file.extend([0x45; 28]);
        assert_eq!(parse(&file).unwrap().len(), 1);
        file.extend([1, 2, 3]);
        assert_eq!(parse(&file).unwrap().len(), 1);
        assert!(parse(&file[..30]).unwrap().is_empty());
        file[20] = 113;
        assert!(parse(&file).is_none() && parse(&[]).is_none());
    }
}
