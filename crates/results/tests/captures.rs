//! Captures: valid packets, counts that agree with the report, and checks by other programs.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![allow(clippy::print_stdout, reason = "a test that cannot run says so")]

mod reader;

use bentpipe_base::Duration;
use bentpipe_report::Report;
use bentpipe_scenario::{Scenario, Source};
use bentpipe_wire::Layout;
use reader::{File, read};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const SCENARIO: &str = r#"
schema = 1
title = "captured"
duration = "60 s"

[dumbbell]
pairs = 2
rtt = "300 ms"
rate = "2 Mbit/s"
buffer = "8 packets"
loss = 0.008
access = { rate = "10 Mbit/s", delay = "1 ms", buffer = "1000 packets" }

[host]
tcp = "sack"
segment = "1000 B"
window = "300 segments"
timestamps = true

[[flows]]
name = "tcp"
from = "src1"
to = "dst1"
app = { transfer = "3 MB" }

[[flows]]
name = "datagrams"
from = "src2"
to = "dst2"
app = { udp = { rate = "100 kbit/s", size = "200 B" } }
"#;

fn scenario(captures: &str) -> Scenario {
    let source =
        Source::from_bytes("test.toml".to_owned(), format!("{SCENARIO}{captures}").as_bytes()).unwrap();
    bentpipe_scenario::load(&source, &[], None).unwrap_or_else(|e| panic!("{e}"))
}

/// Creates an empty folder for a test.
fn folder(test: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&dir);
    dir
}

fn run(test: &str, captures: &str) -> (PathBuf, Report) {
    let dir = folder(test);
    let (report, _) = bentpipe_results::run(&dir, &scenario(captures)).unwrap();
    (dir, report)
}

fn file(dir: &Path, name: &str) -> File {
    read(&std::fs::read(dir.join(name)).unwrap())
}

/// Returns the output of a program, or prints why it cannot run and returns `None`.
fn output(test: &str, program: &str, arguments: &[&str], file: &Path) -> Option<Output> {
    match Command::new(program).args(arguments).arg(file).output() {
        Ok(output) => Some(output),
        Err(error) => {
            println!("SKIPPED {test}: cannot run {program}: {error}");
            None
        }
    }
}

#[test]
fn a_capture_holds_every_packet_and_the_cause_of_each_drop() {
    let (dir, report) = run("every_packet", "[[captures]]\nlink = \"bottleneck\"\n");
    let files = ["in", "out", "dropped"].map(|point| {
        let file = file(&dir, &format!("bottleneck.{point}.pcapng"));
        assert_eq!(file.interfaces, [format!("bottleneck {point}")]);
        assert_eq!(file.statistics, [(file.packets.len() as u64, 0, None)]);
        file
    });
    let [entered, left, ended] = &files;
    let link = report.links.iter().find(|l| *l.name == *"bottleneck").unwrap();
    for cause in ["queue_full", "packet_loss"] {
        let dropped = ended.packets.iter().filter(|p| p.comment.as_deref() == Some(cause)).count() as u64;
        assert_eq!(Some(dropped), link.drops.get(cause).copied(), "{cause}");
        assert!(dropped > 0, "the scenario has no {cause}");
    }
    assert!(ended.packets.iter().all(|p| p.comment.is_some()));
    assert!(entered.packets.iter().chain(&left.packets).all(|p| p.comment.is_none()));
    assert!(left.packets.len() + ended.packets.len() <= entered.packets.len());
    for p in files.iter().flat_map(|f| &f.packets) {
        assert_eq!(p.original, p.bytes.len());
        if p.bytes[9] == bentpipe_wire::TCP {
            let segment = bentpipe_wire::parse(&p.bytes).unwrap();
            assert!(segment.tcp.timestamps.is_some());
            // data starts after the SYN; the first payload byte gives its offset in the stream
            if let Some(first) = segment.payload.first() {
                let next = segment.payload.get(1).copied();
                assert_eq!(next, Some((first + 1) % 251));
            }
        }
    }
}

/// It is the end of the payload in IPv4, and a hop-by-hop header in IPv6.
#[test]
fn captures_have_the_signalling_of_both_ip_versions() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/rate-negotiation.toml");
    let text = std::fs::read_to_string(path).unwrap() + "\n[[captures]]\nlink = \"access\"\n";
    let source = Source::from_bytes("test.toml".to_owned(), text.as_bytes()).unwrap();
    for ip in ["4", "6"] {
        let sets = [("ip".to_owned(), ip.to_owned())];
        let mut scenario = bentpipe_scenario::load(&source, &sets, None).unwrap_or_else(|e| panic!("{e}"));
        scenario.duration = Duration::from_millis(500);
        let dir = folder(&format!("signalling_{ip}"));
        bentpipe_results::run(&dir, &scenario).unwrap();
        let file = file(&dir, "access.in.pcapng");
        for p in &file.packets {
            let layout = Layout::of(&p.bytes).unwrap();
            assert_eq!((layout.sum(&p.bytes).fold(), p.bytes.len()), (0xffff, p.original), "IPv{ip}");
        }
        let syn = &file.packets[0].bytes;
        let layout = Layout::of(syn).unwrap();
        assert_eq!(layout.network.traffic_class >> 2, 3, "IPv{ip}");
        let structure = if ip == "4" { &syn[layout.payload] } else { &syn[40..56] };
        // a request for 100 Mbit/s
        assert_eq!((structure.len(), &structure[4..6]), (16, &[0x61, 0x0d][..]), "IPv{ip}");
        assert_eq!(structure[10] >> 4, 1, "IPv{ip}");
    }
}

#[test]
fn a_capture_keeps_to_its_times_its_length_and_its_limit() {
    let table = "[[captures]]\nlink = \"bottleneck\"\nfrom = \"2 s\"\nto = \"50 s\"\nsnap = \"96 B\"\nlimit = \"20 KiB\"\n";
    let (dir, _) = run("limits", table);
    let bytes = std::fs::read(dir.join("bottleneck.in.pcapng")).unwrap();
    assert!(bytes.len() <= 20 * 1024 && bytes.len() > 19 * 1024 - 256, "{} bytes", bytes.len());
    let file = read(&bytes);
    assert!(file.packets.iter().all(|p| (2_000_000_000..50_000_000_000).contains(&p.time)));
    assert!(file.packets.iter().all(|p| p.bytes.len() == p.original.min(96)));
    assert!(file.packets.iter().any(|p| p.original > 1000));
    let missing: u64 = file.statistics.iter().map(|s| s.1).sum();
    assert!(missing > 100, "{missing}");
    for (_, _, comment) in &file.statistics {
        let comment = comment.as_deref().unwrap();
        assert!(
            comment.starts_with("recording ended ")
                && comment.ends_with("the limit of 20480 bytes was reached")
        );
    }
}

#[test]
fn tshark_finds_nothing_malformed_and_no_bad_checksum() {
    let test = "tshark_finds_nothing_malformed_and_no_bad_checksum";
    let (dir, _) =
        run("tshark", "[[captures]]\nlink = \"bottleneck\"\n[[captures]]\nlink = \"bottleneck-return\"\n");
    let checks =
        ["-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"];
    let bad =
        "_ws.malformed || ip.checksum.status == 0 || tcp.checksum.status == 0 || udp.checksum.status == 0";
    let good = "ip.checksum.status == 1 && (tcp.checksum.status == 1 || udp.checksum.status == 1)";
    for link in ["bottleneck", "bottleneck-return"] {
        let name = &format!("{link}.out.pcapng");
        let path = dir.join(name);
        let mut counts = Vec::new();
        for filter in [bad, good] {
            let mut arguments = checks.to_vec();
            arguments.extend(["-Y", filter, "-T", "fields", "-e", "frame.number", "-r"]);
            let Some(output) = output(test, "tshark", &arguments, &path) else { return };
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            counts.push(String::from_utf8_lossy(&output.stdout).lines().count());
        }
        assert_eq!(counts, [0, file(&dir, name).packets.len()], "{name}");
    }
}

/// Fields of the packets of a capture that match a filter, as tshark reads them; `None` without tshark.
fn fields(test: &str, path: &Path, filter: &str, names: &[&str]) -> Option<Vec<String>> {
    let mut arguments = vec!["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-Y", filter];
    arguments.extend(["-T", "fields"]);
    arguments.extend(names.iter().flat_map(|name| ["-e", *name]));
    arguments.push("-r");
    let output = output(test, "tshark", &arguments, path)?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

/// The request in the SYN, its answer in the SYN/ACK and the report in the next packet, over two routers.
#[test]
fn tshark_reads_quick_start_and_advice() {
    let test = "tshark_reads_quick_start_and_advice";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/rate-encodings.toml");
    let captures = "\n[[captures]]\nlink = \"lan\"\n[[captures]]\nlink = \"lan-return\"\n";
    let text = std::fs::read_to_string(path).unwrap() + captures;
    let source = Source::from_bytes("test.toml".to_owned(), text.as_bytes()).unwrap();
    for (ip, encoding) in [("4", "quick-start"), ("6", "quick-start"), ("4", "scone-tcp"), ("6", "scone-tcp")]
    {
        let sets = [("ip", ip), ("encoding", encoding)].map(|(key, word)| (key.to_owned(), word.to_owned()));
        let mut scenario = bentpipe_scenario::load(&source, &sets, None).unwrap_or_else(|e| panic!("{e}"));
        (scenario.duration, scenario.measure) = (Duration::from_secs(22), None);
        let dir = folder(&format!("encodings_{encoding}_{ip}"));
        bentpipe_results::run(&dir, &scenario).unwrap();
        let (there, back) = (dir.join("lan.out.pcapng"), dir.join("lan-return.in.pcapng"));
        let bad = "_ws.malformed || ip.checksum.status == 0 || tcp.checksum.status == 0";
        for file in [&there, &back] {
            let Some(found) = fields(test, file, bad, &["frame.number"]) else { return };
            assert!(found.is_empty(), "{encoding}, IPv{ip}: {found:?}");
        }
        let read = |file, filter: &str, names: &[&str]| fields(test, file, filter, names).unwrap();
        if encoding == "scone-tcp" {
            let exid = read(&back, "tcp.flags.syn == 1", &["tcp.options.experimental.exid"]);
            assert!(exid.len() > 2 && exid.iter().all(|id| id == "0x6f7d"), "IPv{ip}: {exid:?}");
            continue;
        }
        let of = |field: &str| format!("{}.opt.qs_{field}", if ip == "4" { "ip" } else { "ipv6" });
        let (function, rate) = (of("func"), of("rate"));
        let asked = read(&there, &format!("{function} == 0 && tcp.flags.syn == 1"), &[&rate]);
        // nothing is on the hop yet: 40.96 Mbit/s
        assert_eq!(asked.first().map(String::as_str), Some("10"), "IPv{ip}: {asked:?}");
        let answered = read(&back, "tcp.flags.syn == 1", &["tcp.options.qs.rate"]);
        let reported = read(&there, &format!("{function} == 8"), &[&rate]);
        assert_eq!(answered, asked, "IPv{ip}: as it came");
        // the last ones are still on their way
        assert!(!reported.is_empty() && asked.starts_with(&reported), "IPv{ip}: {asked:?}, {reported:?}");
    }
}

#[test]
fn tcptrace_counts_our_retransmissions() {
    let test = "tcptrace_counts_our_retransmissions";
    let (dir, report) = run("tcptrace", "[[captures]]\nlink = \"src1-access\"\n");
    // tcptrace needs the older pcap format
    let path = dir.join("in.pcap");
    let to = path.to_string_lossy().into_owned();
    let arguments = ["-F", "pcap", "-w", &to, "-r"];
    let Some(converted) = output(test, "tshark", &arguments, &dir.join("src1-access.in.pcapng")) else {
        return;
    };
    assert!(converted.status.success(), "{}", String::from_utf8_lossy(&converted.stderr));
    let Some(told) = output(test, "tcptrace", &["-l", "-n"], &path) else { return };
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    let line = told
        .lines()
        .find(|l| l.trim_start().starts_with("rexmt data pkts:"))
        .unwrap_or_else(|| panic!("{told}"));
    let counted: u64 = line.split_whitespace().nth(3).unwrap().parse().unwrap();
    assert!(report.flows[0].tcp().unwrap().retransmits > 10);
    assert_eq!(counted, report.flows[0].tcp().unwrap().retransmits, "{told}");
}

/// Each file is a single capture point, so no packet is seen twice. `tshark` reports some retransmissions
/// as out of order, if they come within 3 ms of new data.
#[test]
fn tshark_counts_our_retransmissions() {
    let test = "tshark_counts_our_retransmissions";
    let (dir, report) =
        run("tshark_again", "[[captures]]\nlink = \"src1-access\"\n[[captures]]\nlink = \"bottleneck\"\n");
    let again = report.flows[0].tcp().unwrap().retransmits;
    assert!(again > 10);
    let count = |name: &str, filter: &str| {
        let arguments = ["-Y", filter, "-T", "fields", "-e", "frame.number", "-r"];
        let output = output(test, "tshark", &arguments, &dir.join(name))?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(String::from_utf8_lossy(&output.stdout).lines().count() as u64)
    };
    let Some(counted) = count("src1-access.in.pcapng", "tcp.analysis.retransmission") else { return };
    assert_eq!(counted, again, "at the sender");
    let filter = "tcp.analysis.retransmission || tcp.analysis.out_of_order";
    assert_eq!(count("bottleneck.in.pcapng", filter), Some(again), "before the bottleneck");
}
