//! `send` and `receive` over live links: transfers are intact and errors are reported.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "helpers of tests say why one cannot run")]

mod support;

use lab::scenario::OneLink;
use lab::transfers::{Link, random_transfers, run};
use lab::{Outcome, ProgramResult, Rig, Who, rig};
use std::path::Path;
use std::time::Duration;
use support::{bentpipe, err};

const LIMIT: Duration = Duration::from_secs(240);
/// Short delay and no losses.
const FAIR: OneLink<'static> = OneLink { loss: 0.0, loss_back: 0.0, ..Link::BAD.link };
/// Schemes used; the choice does not matter for these tests.
const SCHEMES: [&str; 6] = ["cubic", "bbr", "hybla", "newreno", "westwood", "bbr3"];

/// Sets up a test environment, or prints why it is not possible.
fn place(test: &str, who: Who) -> Option<Rig> {
    if let Some(program) = ["python3", "ip", "unshare", "nsenter", "setpriv"].iter().find(|p| !rig::has(p)) {
        println!("SKIPPED {test}: {program} is not installed");
        return None;
    }
    Rig::new(Path::new(env!("CARGO_BIN_EXE_bentpipe")), who)
        .inspect_err(|why| println!("SKIPPED {test}: {why}"))
        .ok()
}

/// Transfers with the kernel and itself, both directions, IPv4 and IPv6, with losses, as an ordinary user.
#[test]
fn transfers_of_all_kinds_are_intact() {
    let Some(rig) = place("transfers_of_all_kinds_are_intact", Who::Unprivileged) else { return };
    let orders = random_transfers(24, 7, &SCHEMES);
    let results = run(&rig, &Link::BAD, 7, &orders).unwrap();
    assert!(results.len() == orders.len() && results.iter().all(|result| result.seconds > 0.0));
}

/// Runs a command at the near end, and one at the far end that starts first.
fn behind(rig: &Rig, far: &str, near: &str) -> Outcome<ProgramResult> {
    let scenario = rig.file("fair.toml", &FAIR.toml())?;
    let near = format!("sleep 0.5; {near}");
    rig.run(&["emulate", &scenario, "--far", far, "--far-ready", "off", "--", "sh", "-c", &near], LIMIT)
}

#[test]
fn what_goes_wrong_is_said_and_the_exit_status_tells() {
    let name = "what_goes_wrong_is_said_and_the_exit_status_tells";
    let Some(rig) = place(name, Who::Unprivileged) else { return };
    let cases = [
        ("true", "echo x | $BENTPIPE send far:5000", 1, "nothing listens at that port"),
        ("true", "echo x | $BENTPIPE send near:5000", 1, "is this host itself"),
        ("true", "echo x | $BENTPIPE send 127.0.0.1:5000", 1, "is this host itself"),
        ("true", "echo x | $BENTPIPE send nobody.invalid:5000", 2, "write a host and a port"),
        ("true", "$BENTPIPE send far:5000 missing", 2, "missing: No such file"),
        ("true", "$BENTPIPE send far:5000 .", 2, "cannot be sent"),
        ("true", "$BENTPIPE receive 10.9.9.9:5000", 1, "is not an address of this host"),
        (
            "true",
            "python3 -c 'import socket, os; s = socket.create_server((\"\", 5000)); os.system(\"$BENTPIPE receive 5000; exit $?\")'; $BENTPIPE receive 5000x",
            2,
            "in use by another program",
        ),
        ("true", "$BENTPIPE receive 80 </dev/null & sleep 0.3; kill $!; exit 1", 1, "waiting at"),
        // the peer accepts the connection and resets it
        (
            "exec python3 -c 'import socket, struct; s = socket.create_server((\"\", 5000)); open(\"tmp/ready\", \"w\"); c, _ = s.accept(); c.recv(10); c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack(\"ii\", 1, 0)); c.close()'",
            "while ! [ -e tmp/ready ]; do sleep 0.1; done; head -c 30000000 /dev/zero | $BENTPIPE send far:5000",
            1,
            "the peer reset the connection",
        ),
    ];
    for (far, near, code, says) in cases {
        let done = behind(&rig, far, near).unwrap();
        assert!(done.code == Some(code) && done.err.contains(says), "{near}: {}", done.describe());
    }
}

#[test]
fn pipes_and_reports_work_as_files_do() {
    let Some(rig) = place("pipes_and_reports_work_as_files_do", Who::Unprivileged) else { return };
    let folder = rig.path("");
    let far =
        format!("cd '{}' && $BENTPIPE receive 5000 --report theirs.json | wc -c >count", folder.display());
    let near = format!(
        "cd '{}' && head -c 5000000 /dev/zero | $BENTPIPE send far:5000 --tcp hybla --set iw=4 --report ours.json --json >shown.json && sleep 1",
        folder.display()
    );
    let done = behind(&rig, &far, &near).unwrap();
    assert_eq!(done.code, Some(0), "{}", done.describe());
    assert_eq!(std::fs::read_to_string(rig.path("count")).unwrap().trim(), "5000000");
    let [ours, shown, theirs] =
        ["ours.json", "shown.json", "theirs.json"].map(|f| rig::json(&rig.path(f)).unwrap());
    assert_eq!(ours, shown);
    assert_eq!(
        (&ours["flows"][0]["tcp"], &ours["flows"][0]["bytes_acked"]),
        (&"hybla".into(), &5_000_000.into())
    );
    assert_eq!(ours["parameters"]["iw"], "4");
    assert_eq!(theirs["flows"][0]["bytes_acked"], 5_000_000);
    assert!(ours["flows"][0]["rtt_ms"]["min"].as_f64().unwrap() >= 4.0);
}

/// The kernel must not answer on this program's port, and its own connections must continue.
#[test]
fn the_kernels_own_connections_go_on_beside_ours() {
    let name = "the_kernels_own_connections_go_on_beside_ours";
    let Some(rig) = place(name, Who::Unprivileged) else { return };
    let server = "import socket\ns = socket.create_server((\"\", 6000))\nwhile True:\n  c, _ = s.accept()\n  c.sendall(c.recv(99))\n  c.close()";
    rig.file("server.py", server).unwrap();
    let far = format!(
        "python3 '{0}/server.py' & exec $BENTPIPE receive 5000 '{1}'",
        rig.folder().display(),
        rig.path("copy").display()
    );
    let client = "import socket\nfor i in range(20):\n  c = socket.create_connection((\"far\", 6000), 10)\n  c.sendall(b\"hello\")\n  assert c.recv(99) == b\"hello\"\nprint(\"answered\")";
    let client = rig.file("client.py", client).unwrap();
    let near = format!(
        "(sleep 0.2; python3 '{client}') & head -c 20000000 /dev/zero | $BENTPIPE send far:5000 --json >/dev/null; code=$?; wait; exit $code"
    );
    let done = behind(&rig, &far, &near).unwrap();
    assert!(done.code == Some(0) && done.out.contains("answered"), "{}", done.describe());
}

/// Runs a command on a pseudo-terminal and collects the output of both ends.
const TERMINAL: &str = "
import os, pty, sys
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))
";

/// A peer that listens for a while and then resets the connection.
const LEAVES: &str = "
import socket, struct, time
call, _ = socket.create_server(('', 5000)).accept()
end = time.time() + 0.7
while time.time() < end:
    call.recv(100000)
call.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
call.close()
";

/// Two ends on one terminal: the near one draws its progress line, the far one does not draw over it, and the
/// line is removed before any message.
#[test]
fn one_line_is_drawn_on_one_terminal_and_taken_away_in_time() {
    let name = "one_line_is_drawn_on_one_terminal_and_taken_away_in_time";
    let Some(rig) = place(name, Who::Unprivileged) else { return };
    let (terminal, fair) =
        (rig.file("terminal.py", TERMINAL).unwrap(), rig.file("fair.toml", &FAIR.toml()).unwrap());
    let data = rig.path("data");
    std::fs::write(&data, vec![7; 30_000_000]).unwrap();
    let emulate = |far: &str| {
        let near = format!("sleep 0.5; $BENTPIPE send far:5000 {}", data.display());
        format!("python3 {terminal} $BENTPIPE emulate {fair} --far '{far}' -- sh -c '{near}'")
    };
    let done = rig.run_shell(&emulate("$BENTPIPE receive 5000 >/dev/null"), LIMIT).unwrap();
    assert_eq!(done.code, Some(0), "{}", done.describe());
    let lines: Vec<&str> = done.out.split(['\r', '\n']).filter(|l| l.contains("Mbit/s  RTT")).collect();
    assert!(!lines.is_empty(), "the near end draws: {}", done.describe());
    let spins = |c: char| ('\u{2800}'..='\u{28ff}').contains(&c);
    assert!(!done.out.contains(spins), "the far end draws: {}", done.describe());
    // a peer that resets in the middle of the transfer
    let peer = rig.file("peer.py", LEAVES).unwrap();
    let far = format!("exec python3 {peer}");
    let done = rig.run_shell(&emulate(&far), LIMIT).unwrap();
    assert_eq!(done.code, Some(1), "{}", done.describe());
    let report = done.out.find("flow, ").unwrap();
    assert!(done.out[..report].contains("%  "), "a line was drawn: {}", done.describe());
    assert!(!done.out[report..].contains(" %  "), "and taken away before the report: {}", done.describe());
}

/// A report that cannot be written to its file is printed anyway.
#[test]
fn a_report_file_is_tried_before_and_its_text_is_never_lost() {
    let name = "a_report_file_is_tried_before_and_its_text_is_never_lost";
    let Some(rig) = place(name, Who::Unprivileged) else { return };
    let near = "echo hello | $BENTPIPE send far:5000 --tcp swift --report /dev/full";
    let done = behind(&rig, "$BENTPIPE receive 5000 >/dev/null", near).unwrap();
    assert_eq!(done.code, Some(1), "{}", done.describe());
    assert!(done.err.contains("/dev/full: No space left"), "{}", done.describe());
    assert!(done.err.contains("note: `swift` is TCP-Swift for satellites"), "{}", done.describe());
    assert!(done.out.contains("1 flow, ") && !done.out.contains("seed"), "{}", done.describe());
    let kept = rig.path("kept.json");
    let near = format!(
        "head -c 100000 /dev/zero >{0}; echo hello | $BENTPIPE send far:5000 --report {0}",
        kept.display()
    );
    let done = behind(&rig, "$BENTPIPE receive 5000 >/dev/null", &near).unwrap();
    assert_eq!(done.code, Some(0), "{}", done.describe());
    let report = rig::json(&kept).unwrap();
    assert_eq!((&report["flows"][0]["bytes_acked"], report.get("seed")), (&6.into(), None));
}

/// Sends SYNs with spoofed addresses, each from a different MAC address, then opens a real connection.
const FORGER: &str = "
import socket, struct, sys
def sum16(b):
    n = sum(struct.unpack('!%dH' % (len(b) // 2), b))
    while n >> 16:
        n = (n & 0xffff) + (n >> 16)
    return ~n & 0xffff
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
wire.bind(('v1', 0x0800))
there = socket.inet_aton('10.55.0.1')
for i in range(2000):
    # the first are on the receiver's own network, where it would ask for neighbours
    here = bytes([10, 55, i >> 8, 3 + i % 250])
    tcp = struct.pack('!HHIIBBHHH', 1024 + i, 5000, i, 0, 0x50, 2, 65535, 0, 0)
    check = sum16(here + there + struct.pack('!HH', 6, len(tcp)) + tcp)
    tcp = tcp[:16] + struct.pack('!H', check) + tcp[18:]
    ip = struct.pack('!BBHHHBBH', 0x45, 0, 40, i, 0, 64, 6, 0) + here + there
    ip = ip[:10] + struct.pack('!H', sum16(ip)) + ip[12:]
    mac = bytes.fromhex('026265') + struct.pack('!BH', 9, i)
    wire.send(bytes.fromhex('026265000001') + mac + b'\\x08\\x00' + ip + tcp)
    if i == 1000:
        call = socket.create_connection(('10.55.0.1', 5000), 5)
for part in range(100):
    call.sendall(b'x' * 5000)
call.shutdown(socket.SHUT_WR)
assert call.recv(1) == b''
";

/// Two hosts on an Ethernet that must resolve each other's MAC address.
const ETHERNET: &str = r#"exec unshare --user --map-root-user --net sh -c '
unshare --net -- sleep 100 & f=$!
trap "kill $f" EXIT
sleep 0.3
far() { nsenter --target $f --net -- "$@"; }
ip link add name v0 address 02:62:65:00:00:01 type veth peer name v1 address 02:62:65:00:00:02 netns $f || exit 77
ip addr add 10.55.0.1/24 dev v0; ip link set v0 up; ip route add default dev v0
far ip addr add 10.55.0.2/24 dev v1; far ip link set v1 up
"$BENTPIPE" receive 10.55.0.1:5000 "$COPY" & r=$!
sleep 0.5
far timeout 30 python3 "$FORGER" || { kill $r; exit 1; }
wait $r'"#;

/// The receiver answers a real connection despite spoofed SYNs, and its answers reach the peer on a network
/// with MAC addresses.
#[test]
fn forged_calls_make_no_receiver_deaf() {
    let name = "forged_calls_make_no_receiver_deaf";
    let Some(rig) = place(name, Who::Unprivileged) else { return };
    let (forger, copy) = (rig.file("forger.py", FORGER).unwrap(), rig.path("copy"));
    let script = format!("FORGER='{forger}' COPY='{}'; export FORGER COPY\n{ETHERNET}", copy.display());
    let done = rig.run_shell(&script, Duration::from_secs(60)).unwrap();
    if done.code == Some(77) {
        println!("SKIPPED {name}: {}", done.describe());
        return;
    }
    assert_eq!(done.code, Some(0), "{}", done.describe());
    assert_eq!(std::fs::read(copy).unwrap(), vec![b'x'; 500_000]);
}

#[test]
fn a_wrong_command_line_is_refused_before_anything_is_sent() {
    for (words, says) in [
        (&["send", "far:5000", "--tcp", "bbrr"][..], "bbr"),
        (&["send", "far:5000", "--tcp", "reno", "--set", "beta=0.7"], "is not a parameter of reno"),
        (&["send", "far:5000", "--set", "iw=0"], "iw"),
        (&["send", "far:5000", "--set", "nonsense=1"], "--set nonsense=1"),
        (&["send", "far:5000", "--tcp", "swift", "--set", "tcp=cubic"], "write --tcp cubic"),
        (
            &["send", "127.0.0.1:5000", "/dev/null", "--report", "/nowhere/report"],
            "/nowhere/report: No such file",
        ),
        (&["receive", "127.0.0.1:5000", "--report", "/"], "/: Is a directory"),
        (&["send", "far"], "there is no port"),
        (&["send", "far:0"], "from 1 to 65535"),
        (&["receive", "far:5000"], "is not an address"),
        (&["receive", "99999"], "from 1 to 65535"),
    ] {
        let output = bentpipe(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(err(&output).contains(says), "{words:?}: {}", err(&output));
    }
}
