//! A run under the real clock between in-memory ports, recorded and replayed.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use bentpipe_base::Instant;
use bentpipe_driver::{Entry, Reader};
use bentpipe_live::control::{Command, Request};
use bentpipe_live::replay::replay;
use bentpipe_live::{HostPort, Running, Setup};
use bentpipe_os::Clock;
use bentpipe_os::clock::monotonic;
use bentpipe_os::port::{PacketPort, PortDrops, Received};
use bentpipe_scenario::{Source, load};
use bentpipe_wire::offload::VnetHeader;
use std::collections::VecDeque;
use std::io::{self, IoSlice, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use support::super_packet;

type Frames = Arc<Mutex<VecDeque<(VnetHeader, Vec<u8>)>>>;

/// A port whose other end is the test: one byte in the pipe for each packet.
#[derive(Debug)]
struct Memory {
    waiting: Frames,
    bell: PipeReader,
    sent: Frames,
}

impl PacketPort for Memory {
    fn fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        let Some((vnet, bytes)) = self.waiting.lock().unwrap().pop_front() else { return Ok(None) };
        self.bell.read_exact(&mut [0])?;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(Some(Received { vnet, len: bytes.len(), at: monotonic() }))
    }

    fn send(&mut self, vnet: &VnetHeader, parts: &[IoSlice<'_>]) -> io::Result<bool> {
        self.sent.lock().unwrap().push_back((*vnet, parts.iter().flat_map(|p| p.iter().copied()).collect()));
        Ok(true)
    }

    fn drops(&mut self) -> io::Result<PortDrops> {
        Ok(PortDrops::default())
    }
}

struct Wire {
    waiting: Frames,
    bell: PipeWriter,
    sent: Frames,
}

fn memory() -> (Memory, Wire) {
    let (bell, ringer) = io::pipe().unwrap();
    let (waiting, sent) = (Frames::default(), Frames::default());
    let port = Memory { waiting: Arc::clone(&waiting), bell, sent: Arc::clone(&sent) };
    (port, Wire { waiting, bell: ringer, sent })
}

impl Wire {
    fn give(&mut self, seq: u32, payload: usize, forward: bool) {
        let (packet, vnet) = super_packet(1000, seq, payload, forward);
        self.waiting.lock().unwrap().push_back((vnet, packet));
        self.bell.write_all(&[1]).unwrap();
    }
}

fn folder(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("bentpipe-journal-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// Half a second of traffic in both directions over a lossy link whose loss a user changes meanwhile.
fn record(path: &Path) -> usize {
    let text = "schema = 1\ntitle = \"t\"\nseed = 5\nduration = \"100 s\"\n\
                [[hosts]]\nname = \"a\"\n[[hosts]]\nname = \"b\"\n[[links]]\nname = \"link\"\nfrom = \"a\"\nto = \"b\"\n\
 rate = \"20 Mbit/s\"\ndelay = \"3 ms\"\nbuffer = \"50 packets\"\nloss = 0.1\n\
                [[flows]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\n";
    let scenario = load(&Source::new("test", text), &[], None).unwrap_or_else(|d| panic!("{d}"));
    let ((port_a, mut a), (port_b, mut b)) = (memory(), memory());
    let ip = |n| vec![[10, 55, 0, n].into()];
    let clock = Clock::start();
    let setup = Setup {
        scenario,
        speed: 1.0,
        ports: vec![
            HostPort { host: 0, port: Box::new(port_a), addresses: ip(1) },
            HostPort { host: 1, port: Box::new(port_b), addresses: ip(2) },
        ],
        default_route_host: None,
        clock,
        journal: Some(path.to_owned()),
        record: false,
        realtime: false,
    };
    let running = Running::start(setup, None).unwrap();
    let (_idle, never) = io::pipe().unwrap();
    for i in 0..100_u32 {
        a.give(i * 9000, 500 + (i as usize * 997) % 8000, true);
        b.give(i * 700, (i as usize * 131) % 700, false);
        if i == 50 {
            let (reply, answer) = sync_channel(1);
            let request: Request = serde_json::from_str(SET).unwrap();
            running.command(Command { request, reply });
            let said = serde_json::to_string(&answer.recv().unwrap()).unwrap();
            assert!(said.contains("loss"), "{said}");
        }
        let until = Instant(clock.now().0 + 5_000_000);
        bentpipe_os::wait::wait(&[never.as_fd()], Some(until), &clock, bentpipe_base::Duration::ZERO)
            .unwrap();
    }
    let outcome = running.stop().unwrap();
    assert!(outcome.timing.packets > 300, "{:?}", outcome.timing);
    let out = a.sent.lock().unwrap().len() + b.sent.lock().unwrap().len();
    assert!(out > 100, "{out}");
    out
}

const SET: &str = r#"{"request":"set","on":{"link":"link","way":"both"},"values":{"loss":0.5}}"#;

#[test]
fn a_recorded_run_gives_the_same_bytes_again() {
    let dir = folder("same");
    let path = dir.join("run.journal");
    record(&path);
    let replayed = replay(&path).unwrap();
    assert_eq!((replayed.packets, replayed.changes), (200, 1));
    assert_eq!(replayed.same(), Some(true), "{replayed:?}");
    // and again
    assert_eq!(replay(&path).unwrap(), replayed);
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_bit_more_or_less_is_noticed() {
    let dir = folder("other");
    let path = dir.join("run.journal");
    record(&path);
    let bytes = std::fs::read(&path).unwrap();
    // with another seed, other packets are lost
    let place = bytes.windows(8).position(|w| w == b"seed = 5").unwrap();
    let mut other = bytes.clone();
    other[place + 7] = b'6';
    std::fs::write(&path, &other).unwrap();
    assert_eq!(replay(&path).unwrap().same(), Some(false));
    // a killed run: the journal is truncated
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    assert_eq!(replay(&path).unwrap().same(), None);
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn what_is_no_journal_is_refused_with_its_place() {
    let dir = folder("none");
    let path = dir.join("x");
    for (content, expected) in [
        (&b""[..], "not a journal"),
        (b"{}\n", "not a journal"),
        (b"\xff\xfe\n", "not a journal"),
        (
            br#"{"journal":9,"version":"0","scenario":"","speed":1.0,"addresses":[],"gate":null}
"#,
            "journal format 9, this version reads 1",
        ),
        (
            br#"{"journal":1,"version":"0","scenario":"x","speed":1.0,"addresses":[],"gate":null}
"#,
            "the journal's scenario is not understood",
        ),
    ] {
        std::fs::write(&path, content).unwrap();
        let said = replay(&path).unwrap_err().to_string();
        assert!(said.contains(expected), "{said}");
    }
    assert!(replay(&dir.join("nothing")).unwrap_err().to_string().contains("nothing"));
    record(&dir.join("good"));
    let mut bytes = std::fs::read(dir.join("good")).unwrap();
    let first = bytes.iter().position(|b| *b == b'\n').unwrap() + 1;
    bytes[first] = 77;
    std::fs::write(&path, &bytes).unwrap();
    let (mut reader, _) = Reader::open(&path).unwrap();
    let said = reader.next_entry().unwrap_err().to_string();
    assert!(said.contains("unknown kind 77") && said.contains("at byte"), "{said}");
    let (mut reader, _) = Reader::open(&dir.join("good")).unwrap();
    assert!(matches!(reader.next_entry(), Ok(Some((_, Entry::Packet { .. })))));
    std::fs::remove_dir_all(dir).unwrap();
}
