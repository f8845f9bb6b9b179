//! Results of a live run, from a network fed by hand: captures for other programs, tables and a page.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![allow(clippy::print_stdout, reason = "a test that cannot run says so")]

mod feed;

use bentpipe_base::{Duration, Instant};
use bentpipe_driver::LiveNetwork;
use bentpipe_emulate::flows::FlowResults;
use bentpipe_emulate::report::{Place, Recording, capture};
use bentpipe_live::relay::Names;
use bentpipe_live::{Outcome, Timing};
use bentpipe_os::Clock;
use bentpipe_scenario::Scenario;
use bentpipe_sim::report::link_reports;
use feed::{Kind, MSS, give, net, scenario};
use std::path::{Path, PathBuf};
use std::process::Command;

const LINK: &str = "rate = \"12 Mbit/s\"\ndelay = \"10 ms\"\nbuffer = \"4 packets\"\nloss = 0.05";

/// A separate folder for each test, not created yet.
fn folder(test: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&dir);
    dir
}

fn drain(net: &mut LiveNetwork) -> u64 {
    let mut pieces = 0;
    while let Some(arrival) = net.take_arrival() {
        pieces += u64::from(arrival.pieces);
        net.done(arrival);
    }
    pieces
}

fn outcome(net: &mut LiveNetwork, names: &Names) -> Outcome {
    Outcome {
        links: names.with(net, link_reports),
        gateways: Vec::new(),
        flow_routers: Vec::new(),
        nodes: Vec::new(),
        record: None,
        instruments: Vec::new(),
        timing: Timing { packets: 3, trusted: true, ..Timing::default() },
        until: net.now(),
        priority: "ordinary priority".into(),
    }
}

/// Runs packets of every kind through `scenario` and records them in `dir`.
fn recorded(dir: &Path, scenario: &Scenario) -> (bentpipe_report::Report, u64) {
    let (recording, install) = Recording::begin(dir, scenario, Clock::start()).unwrap();
    let (mut net, names) = net(scenario);
    install.unwrap()(&mut net, &names);
    let mut delivered = 0;
    for turn in 0..40_u64 {
        for (i, kind) in Kind::ALL.into_iter().enumerate() {
            let at = Instant(turn * 40_000_000 + i as u64 * 5_000_000);
            give(&mut net, at, kind, if turn % 2 == 0 { 5 * MSS + 77 } else { 300 });
            delivered += drain(&mut net);
        }
    }
    net.advance(net.now() + Duration::from_secs(1));
    delivered += drain(&mut net);
    let outcome = outcome(&mut net, &names);
    drop(net);
    let (report, _, files) = recording.finish(&outcome, FlowResults::default()).unwrap();
    assert!(files.iter().all(|f| f.is_file()), "{files:?}");
    (report, delivered)
}

/// Returns fields of every packet of a capture; if tshark is missing, says so and returns `None`.
fn tshark(test: &str, file: &Path, fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let mut command = Command::new("tshark");
    command.args([
        "-n",
        "-o",
        "ip.check_checksum:TRUE",
        "-o",
        "tcp.check_checksum:TRUE",
        "-o",
        "udp.check_checksum:TRUE",
    ]);
    command.args(["-o", "tcp.desegment_tcp_streams:FALSE", "-T", "fields"]).arg("-r").arg(file);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            println!("SKIPPED {test}: cannot run tshark: {error}");
            return None;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rows = String::from_utf8(output.stdout).unwrap();
    Some(rows.lines().map(|l| l.split('\t').map(str::to_owned).collect()).collect())
}

#[test]
fn tshark_finds_every_packet_whole_with_right_checksums_and_the_cause_of_each_drop() {
    let dir = folder("hand_fed");
    let mut scenario = scenario(LINK);
    capture(&mut scenario, Place::All);
    let (report, delivered) = recorded(&dir, &scenario);
    let link = &report.links[0];
    let fields = [
        "frame.comment",
        "frame.time_epoch",
        "_ws.malformed",
        "ip.checksum.status",
        "tcp.checksum.status",
        "udp.checksum.status",
        "frame.len",
    ];
    let rows = |point: &str| tshark("hand_fed", &dir.join(format!("{point}.pcapng")), &fields);
    let (Some(entered), Some(left), Some(ended)) = (rows("link.in"), rows("link.out"), rows("link.dropped"))
    else {
        return;
    };
    for row in entered.iter().chain(&left).chain(&ended) {
        assert!(row[2].is_empty(), "malformed: {row:?}");
        let good = |cell: &String| cell.is_empty() || cell == "1";
        assert!(good(&row[3]) && good(&row[4]) && good(&row[5]), "bad checksum: {row:?}");
        assert!(row[4] == "1" || row[5] == "1", "neither TCP nor UDP: {row:?}");
        assert!(row[6].parse::<usize>().unwrap() <= 1500, "{row:?}");
    }
    let by_cause = |cause: &str| ended.iter().filter(|r| r[0] == cause).count() as u64;
    let dropped: u64 = link.drops.values().sum();
    let lengths = [&entered, &left, &ended].map(|rows| rows.len() as u64);
    assert_eq!(lengths, [delivered + dropped, delivered, dropped]);
    for (cause, n) in &link.drops {
        assert_eq!(by_cause(cause), *n, "{cause}");
    }
    assert!(by_cause("queue_full") > 0 && by_cause("packet_loss") > 0, "{:?}", link.drops);
    // its wall-clock time: not 1970, and at most minutes ago
    let first: f64 = entered[0][1].parse().unwrap();
    let now = bentpipe_os::clock::realtime() as f64 / 1e9;
    assert!(first > 1e9 && (now - first).abs() < 600.0, "{first} of {now}");
    assert!(rows("link-return.in").is_none_or(|rows| rows.is_empty()), "nothing goes back");
}

#[test]
fn a_super_packet_that_passes_whole_is_recorded_as_the_packets_it_would_be_cut_into() {
    let dir = folder("hand_fed_whole");
    let mut scenario = scenario("rate = \"100 Gbit/s\"\ndelay = \"0 ms\"\nbuffer = \"100 packets\"");
    capture(&mut scenario, Place::All);
    let (report, arrivals) = recorded(&dir, &scenario);
    assert_eq!((report.links[0].packets, arrivals), (200, 200), "super-packets");
    let fields = ["frame.len", "tcp.checksum.status", "udp.checksum.status"];
    for point in ["in", "out"] {
        let file = dir.join(format!("link.{point}.pcapng"));
        let Some(rows) = tshark("hand_fed_whole", &file, &fields) else { return };
        // in half of the rounds, four of the five packets are cut into six
        assert_eq!(rows.len(), 20 * 5 + 20 * (4 * 6 + 1));
        assert!(rows.iter().all(|r| r[0].parse::<usize>().unwrap() <= 1500 && (r[1] == "1" || r[2] == "1")));
    }
}

#[test]
fn the_folder_is_that_of_a_simulated_run_and_says_what_a_live_one_has_to_say() {
    let dir = folder("hand_fed_folder");
    let mut scenario = scenario(LINK);
    capture(&mut scenario, Place::All);
    let (report, _) = recorded(&dir, &scenario);
    for name in [
        "report.html",
        "report.json",
        "series.csv",
        "flows.csv",
        "links.csv",
        "link.in.pcapng",
        "manifest.json",
    ] {
        assert!(dir.join(name).is_file(), "{name}");
    }
    let json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(dir.join("report.json")).unwrap()).unwrap();
    assert_eq!(json["live"]["trusted"], true);
    assert_eq!(json["live"]["priority"], "ordinary priority");
    assert_eq!(json["live"]["captures_lack"], 0);
    assert!(report.to_text().contains("\nlive on Linux "), "{}", report.to_text());
    let page = std::fs::read_to_string(dir.join("report.html")).unwrap();
    assert!(page.contains("live on Linux ") && !page.contains("class=\"mark\""));
    assert!(
        std::fs::read_dir(&dir).unwrap().all(|e| !e.unwrap().file_name().to_string_lossy().starts_with('.'))
    );
}

#[test]
fn a_run_that_cannot_be_trusted_is_marked_at_the_top() {
    let dir = folder("marked");
    let scenario = scenario(LINK);
    let (recording, _) = Recording::begin(&dir, &scenario, Clock::start()).unwrap();
    let (mut net, names) = net(&scenario);
    let mut outcome = outcome(&mut net, &names);
    outcome.timing.trusted = false;
    outcome.timing.doubts = vec!["3.2 % of the packets left more than 1 ms late".into()];
    let flows = FlowResults {
        faults: vec!["flow f: connection refused".into()],
        differs: vec!["host near: <the> window".into()],
        ..FlowResults::default()
    };
    let (report, ..) = recording.finish(&outcome, flows).unwrap();
    let text = report.to_text();
    assert_eq!(text.lines().next().unwrap(), report.live.as_ref().unwrap().warning().unwrap());
    assert!(
        text.contains("differs from the scenario: host near: <the> window\nflow f: connection refused"),
        "{text}"
    );
    let page = std::fs::read_to_string(dir.join("report.html")).unwrap();
    let mark = "<p class=\"mark\" role=\"alert\">This machine was too slow: 3.2 % of the packets left more than 1 ms late.";
    assert_eq!(page.matches("This machine was too slow").count(), 1, "{page}");
    assert!(page.contains(mark) && page.contains("&lt;the&gt; window"));
}

#[test]
fn a_folder_that_cannot_be_made_is_known_before_the_run() {
    let begun = Recording::begin(Path::new("/proc/none/here"), &scenario(LINK), Clock::start());
    let error = begun.err().unwrap();
    assert!(error.to_string().contains("/proc/none/here: cannot create the folder"), "{error}");
}
