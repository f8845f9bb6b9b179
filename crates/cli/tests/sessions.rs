//! Sessions from the outside: exit codes, signals, names, nested links, leftovers, and the machine's own
//! network.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "it waits for real programs, and says why it cannot"
)]

use lab::{ProgramResult, Rig, Who, rig};
use rustix::process::Signal;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);
const BOTH: [Who; 2] = [Who::CurrentUser, Who::Unprivileged];

/// Sets up a test environment, or prints why it is not possible.
fn place(test: &str, who: Who) -> Option<Rig> {
    let missing = ["ping", "ip", "unshare", "nsenter", "setpriv"].iter().find(|p| !rig::has(p));
    if let Some(program) = missing {
        println!("SKIPPED {test}: {program} is not installed");
        return None;
    }
    match Rig::new(Path::new(env!("CARGO_BIN_EXE_bentpipe")), who) {
        Ok(rig) => Some(rig),
        Err(why) => {
            println!("SKIPPED {test}: {why}");
            None
        }
    }
}

/// Runs a shell script behind a link.
fn behind(rig: &Rig, script: &str) -> ProgramResult {
    rig.run(&["emulate", "terrestrial", "--", "sh", "-c", script], LIMIT).unwrap()
}

fn files(rig: &Rig) -> Vec<String> {
    let all = fs::read_dir(rig.folder().join("run/bentpipe")).into_iter().flatten().flatten();
    all.map(|f| f.file_name().to_string_lossy().into_owned()).filter(|name| name != "lock").collect()
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < LIMIT, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns the PIDs of processes with this argument.
fn with_argument(word: &str) -> Vec<i32> {
    let has = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|b| *b == 0).any(|w| w == word.as_bytes())
    };
    bentpipe_os::process::all().into_iter().filter(has).collect()
}

#[test]
fn the_exit_status_is_the_commands() {
    for who in BOTH {
        let Some(rig) = place("the_exit_status_is_the_commands", who) else { return };
        for (script, status) in [("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -KILL $$", 137)] {
            let done = behind(&rig, script);
            assert_eq!((done.code, done.err.as_str()), (Some(status), ""), "{who:?} {script}");
        }
        assert_eq!(files(&rig), Vec::<String>::new());
    }
}

#[test]
fn environment_folder_and_user_are_the_callers() {
    for who in BOTH {
        let Some(rig) = place("environment_folder_and_user_are_the_callers", who) else { return };
        let script = "echo $PWD; echo $USER; id -u; echo arguments: \"$0\" \"$@\"";
        let words = ["emulate", "terrestrial", "--", "sh", "-c", script, "a b", "", "c"];
        let out = rig.output(&words, LIMIT).unwrap();
        let user = rig.output(&["emulate", "terrestrial", "--", "id", "-u"], LIMIT).unwrap();
        let wanted = format!("{}\nlab\n{user}arguments: a b  c\n", rig.folder().display());
        assert_eq!(out, wanted);
        assert_eq!(user, if rig.is_unprivileged() && rig::is_root() { "65534\n" } else { user.as_str() });
    }
}

#[test]
fn nothing_but_the_hosts_is_there() {
    for who in BOTH {
        let Some(rig) = place("nothing_but_the_hosts_is_there", who) else { return };
        let out = behind(&rig, "ip -o link | cut -d: -f2; ip route; ls /proc/self/fd | wc -l").out;
        let lines: Vec<&str> = out.lines().map(str::trim).collect();
        assert_eq!(lines[0], "lo");
        assert!(lines[1].starts_with("bent0@"), "{out}");
        assert!(lines[2].starts_with("default dev bent0"), "{out}");
        let outside = rig.shell("ls /proc/self/fd | wc -l", LIMIT).unwrap();
        assert_eq!(lines[3..], [outside.trim()], "descriptors of ours are open in the command");
    }
}

#[test]
fn names_lead_to_both_ends_by_both_protocols() {
    for who in BOTH {
        let Some(rig) = place("names_lead_to_both_ends_by_both_protocols", who) else { return };
        for version in ["-4", "-6"] {
            for (name, ttl) in [("far", 1), ("near", 1)] {
                let done = behind(&rig, &format!("ping {version} -n -c 2 -i 0.1 -t {ttl} {name}"));
                assert!(done.out.contains("2 received"), "{who:?} {version} {name}: {}", done.describe());
            }
        }
        let done = behind(&rig, "getent ahosts far | cut -d' ' -f1 | sort -u");
        assert_eq!(done.out, "10.55.0.1\nfd55::1\n", "{}", done.describe());
    }
}

#[test]
fn hosts_of_a_scenario_have_their_names() {
    let Some(rig) = place("hosts_of_a_scenario_have_their_names", Who::Unprivileged) else { return };
    let script = "getent hosts server user near far | tr -s ' '; ping -n -c 1 server >/dev/null; echo $?";
    let done = rig.run(&["emulate", "scenarios/leo.toml", "--", "sh", "-c", script], LIMIT).unwrap();
    assert_eq!(
        done.out,
        "fd55::1 server\nfd55::2 user\nfd55::2 near\nfd55::1 far\n0\n",
        "{}",
        done.describe()
    );
    assert!(done.err.contains("instead of the scenario's own flows"), "{}", done.err);
}

#[test]
fn signals_reach_the_command_and_its_answer_counts() {
    for who in BOTH {
        let Some(rig) = place("signals_reach_the_command_and_its_answer_counts", who) else { return };
        for (signal, name, status) in [
            (Signal::TERM, "TERM", 21),
            (Signal::HUP, "HUP", 22),
            (Signal::INT, "INT", 23),
            (Signal::USR1, "USR1", 24),
        ] {
            let ready = rig.path(name);
            let script = format!(
                "trap 'exit {status}' {name}; touch '{}'; while true; do sleep 0.05; done",
                ready.display()
            );
            let mut session = rig.start(&["emulate", "terrestrial", "--", "sh", "-c", &script]).unwrap();
            wait_for("the command", || ready.exists());
            session.signal(signal);
            let done = session.wait(LIMIT).unwrap();
            assert_eq!(done.code, Some(status), "{who:?} {name}: {}", done.describe());
        }
        assert_eq!(files(&rig), Vec::<String>::new());
    }
}

#[test]
fn what_still_runs_is_ended_with_the_session() {
    for who in BOTH {
        let Some(rig) = place("what_still_runs_is_ended_with_the_session", who) else { return };
        // a sleep time that no other process uses
        let mark = format!("8{}{}", std::process::id(), u8::from(who == Who::Unprivileged));
        let script = format!("trap '' TERM; setsid sleep {mark} & (sleep {mark} &); sleep 0.3");
        let far = format!("trap '' TERM; sleep {mark}; sleep {mark}");
        let words =
            ["emulate", "terrestrial", "--far", &far, "--far-ready", "off", "--", "sh", "-c", &script];
        let done = rig.run(&words, LIMIT).unwrap();
        assert_eq!(done.code, Some(0), "{}", done.describe());
        wait_for("the end of all", || with_argument(&mark).is_empty());
    }
}

#[test]
fn a_killed_session_is_cleaned_up_by_the_next_start() {
    for who in BOTH {
        let Some(rig) = place("a_killed_session_is_cleaned_up_by_the_next_start", who) else { return };
        let mark = format!("9{}{}", std::process::id(), u8::from(who == Who::Unprivileged));
        let script = format!("sleep {mark} & sleep {mark}");
        let mut session = rig.start(&["emulate", "terrestrial", "--", "sh", "-c", &script]).unwrap();
        wait_for("both", || with_argument(&mark).len() == 2);
        session.signal(Signal::KILL);
        session.wait(LIMIT).unwrap();
        assert!(!files(&rig).is_empty());
        let doctor = rig.output(&["doctor", "--json"], LIMIT).unwrap();
        assert!(doctor.contains("bentpipe doctor --clean"), "{doctor}");
        assert_eq!(behind(&rig, "true").code, Some(0));
        assert_eq!((files(&rig), with_argument(&mark)), (Vec::new(), Vec::new()), "{who:?}");
        assert_eq!(rig.output(&["doctor", "--clean"], LIMIT).unwrap(), "nothing to clean up\n");
    }
}

#[test]
fn links_lie_within_links_and_beside_each_other() {
    for who in BOTH {
        let Some(rig) = place("links_lie_within_links_and_beside_each_other", who) else { return };
        let bentpipe = rig.program().display();
        let inner = format!("'{bentpipe}' emulate terrestrial -- ");
        let ping = "ping -n -c 2 -i 0.1 far";
        // the TTL shows the number of routers in between
        let done =
            behind(&rig, &format!("{inner}{inner}{ping}; {inner}{ping} & {inner}ping -4 -n -c 2 far; wait"));
        let count = |ttl: &str| done.out.matches(ttl).count();
        assert_eq!((count("ttl=62"), count("ttl=63")), (2, 4), "{who:?} {}", done.describe());
        assert_eq!(files(&rig), Vec::<String>::new());
    }
}

#[test]
fn an_inner_session_ends_with_the_outer_one() {
    let Some(rig) = place("an_inner_session_ends_with_the_outer_one", Who::Unprivileged) else { return };
    let mark = format!("7{}", std::process::id());
    let script = format!("'{}' emulate terrestrial -- sleep {mark} & sleep {mark}", rig.program().display());
    let mut session = rig.start(&["emulate", "terrestrial", "--", "sh", "-c", &script]).unwrap();
    wait_for("both", || with_argument(&mark).len() >= 2 && files(&rig).len() >= 6);
    session.signal(Signal::TERM);
    assert_eq!(session.wait(LIMIT).unwrap().code, Some(143));
    wait_for("the end of all", || with_argument(&mark).is_empty());
    assert_eq!(files(&rig), Vec::<String>::new());
}

#[test]
fn the_doctor_says_that_it_works() {
    for who in BOTH {
        let Some(rig) = place("the_doctor_says_that_it_works", who) else { return };
        let done = rig.run(&["doctor"], LIMIT).unwrap();
        assert_eq!(done.code, Some(0), "{}", done.describe());
        assert!(
            done.out.ends_with("links can be emulated here\n") && !done.out.contains("NO "),
            "{}",
            done.out
        );
    }
}

/// A machine with an internet behind it that has a route to the machine's own address only.
const INTERNET: &str = "set -e
ip link add eth0 type veth peer name inet0
ip address add 192.0.2.1/24 dev eth0
ip -6 address add 2001:db8::1/64 dev eth0 nodad
ip link set eth0 up
unshare --net -- sh -c 'echo $$ > tmp/internet; exec sleep 300' &
while ! [ -s tmp/internet ] || ! [ \"$(readlink /proc/$(cat tmp/internet)/ns/net)\" != \"$(readlink /proc/$$/ns/net)\" ]; do sleep 0.05; done
internet=$(cat tmp/internet)
ip link set inet0 netns $internet
in_it() { nsenter --target $internet --net -- \"$@\"; }
in_it ip address add 192.0.2.2/24 dev inet0
in_it ip address add 198.51.100.1/32 dev inet0
in_it ip -6 address add 2001:db8::2/64 dev inet0 nodad
in_it ip -6 address add 2001:db8:1::1/128 dev inet0 nodad
in_it ip link set inet0 up
ip route add default via 192.0.2.2
ip -6 route add default via 2001:db8::2
before() { nft list ruleset; sysctl -a 2>/dev/null | grep -E 'forwarding|accept_ra |ip_forward' | grep -v bentup; ip -o link | cut -d: -f2; }
before > tmp/before
trap 'kill $internet' EXIT
";

#[test]
fn the_far_end_can_be_the_machines_own_network() {
    let name = "the_far_end_can_be_the_machines_own_network";
    if !rig::is_root() || !rig::has("nft") {
        println!("SKIPPED {name}: it needs root and nft");
        return;
    }
    let Some(rig) = place(name, Who::CurrentUser) else { return };
    let pings = "ping -n -c 2 -i 0.1 198.51.100.1 && ping -6 -n -c 2 -i 0.1 2001:db8:1::1 && cat /etc/resolv.conf && ping -n -c 1 far >/dev/null";
    // a second session that lasts longer, and a third that is killed
    let script = format!(
        "{INTERNET}
\"$BENTPIPE\" emulate terrestrial --uplink --name long -- sleep 3 &
long=$!
\"$BENTPIPE\" emulate terrestrial --uplink -- sh -c '{pings}'
wait $long
before | diff tmp/before -
\"$BENTPIPE\" emulate terrestrial --uplink --name killed -- sleep 300 &
killed=$!
while ! [ -S run/bentpipe/killed.sock ] || ! nft list tables | grep -q bentpipe; do sleep 0.05; done
kill -KILL $killed
wait $killed || true
\"$BENTPIPE\" doctor --clean
sleep 0.5
before | diff tmp/before -
echo as it was"
    );
    let done = rig.run_shell(&script, LIMIT).unwrap();
    assert_eq!(done.code, Some(0), "{}", done.describe());
    assert_eq!(done.out.matches("2 received").count(), 2, "{}", done.describe());
    assert!(
        done.out.contains("nftables table inet bentpipe_") && done.out.ends_with("as it was\n"),
        "{}",
        done.out
    );
}
