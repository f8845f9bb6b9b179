//! `emulate --uplink` of an ordinary user, through `pasta` and through `slirp4netns`, to an internet of one
//! host.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "helpers of tests say why one cannot run")]

use lab::{Rig, Who, rig};
use std::path::Path;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);

/// A machine with a route to another host, where an ordinary user may open /dev/net/tun, as on most.
const MACHINE: &str = "set -e
ip link add eth0 type veth peer name inet0
ip address add 192.0.2.1/24 dev eth0
ip link set eth0 up
unshare --net -- sh -c 'echo $$ > tmp/internet; exec sleep 300' &
while ! [ -s tmp/internet ] || ! [ \"$(readlink /proc/$(cat tmp/internet)/ns/net)\" != \"$(readlink /proc/$$/ns/net)\" ]; do sleep 0.05; done
internet=$(cat tmp/internet)
trap 'kill $internet' EXIT
ip link set inet0 netns $internet
in_it() { nsenter --target $internet --net -- \"$@\"; }
in_it ip address add 192.0.2.2/24 dev inet0
in_it ip address add 198.51.100.1/32 dev inet0
in_it ip link set inet0 up
ip route add default via 192.0.2.2
echo '0 2147483647' > /proc/sys/net/ipv4/ping_group_range
mknod -m 0666 tmp/tun c 10 200
mount --bind tmp/tun /dev/net/tun
echo 'nameserver 127.0.0.53' > tmp/resolv
mount --bind tmp/resolv /etc/resolv.conf
mkdir -p tmp/run tmp/pasta tmp/slirp4netns tmp/none
chmod 755 tmp
chown 65534:65534 tmp/run
for name in pasta slirp4netns; do ln -s $(command -v $name) tmp/$name/$name; done
# only the program of that name is found
as_user() {
    found=$1; shift
    setpriv --reuid 65534 --regid 65534 --clear-groups -- \\
        env XDG_RUNTIME_DIR=\"$PWD/tmp/run\" TMPDIR=\"$PWD/tmp/run\" HOME=\"$PWD/tmp\" PATH=\"$PWD/tmp/$found\" \"$@\"
}
before() { nft list ruleset; ip -o link | cut -d: -f2; ip route; }
before > tmp/before
";

fn place(test: &str) -> Option<Rig> {
    let needed = ["pasta", "slirp4netns", "nft", "iperf3", "ping", "setpriv", "mknod"];
    let missing = needed.iter().find(|p| !rig::has(p));
    if !rig::is_root() {
        println!("SKIPPED {test}: a machine of its own takes root");
        return None;
    }
    if let Some(program) = missing {
        println!("SKIPPED {test}: {program} is not installed");
        return None;
    }
    Rig::new(Path::new(env!("CARGO_BIN_EXE_bentpipe")), Who::CurrentUser)
        .inspect_err(|why| println!("SKIPPED {test}: {why}"))
        .ok()
}

#[test]
fn an_ordinary_users_link_leads_to_the_internet() {
    let Some(rig) = place("an_ordinary_users_link_leads_to_the_internet") else { return };
    let ping = rig::find("ping").unwrap().display().to_string();
    let iperf = rig::find("iperf3").unwrap().display().to_string();
    // bytes over TCP, the delay of the link, the far end by its name, and where names are asked for
    let inside = format!(
        "{iperf} -c 198.51.100.1 -n 300K -R >/dev/null && {ping} -n -c 2 -i 0.2 198.51.100.1 && \
         {ping} -n -q -c 1 far >/dev/null && read -r line < /etc/resolv.conf && echo \"$line\""
    );
    for (program, resolver) in [("pasta", "169.254.53.53"), ("slirp4netns", "10.0.2.3")] {
        let script = format!(
            "{MACHINE}
in_it iperf3 -s -1 >/dev/null &
sleep 0.5
as_user {program} \"$BENTPIPE\" emulate terrestrial --uplink -- /bin/sh -c '{inside}'
before | diff tmp/before -
echo as it was"
        );
        let done = rig.run_shell(&script, LIMIT).unwrap();
        assert_eq!(done.code, Some(0), "{program}: {}", done.describe());
        assert!(done.out.contains(&format!("nameserver {resolver}\n")), "{program}: {}", done.out);
        let times: Vec<f64> = (done.out.split("time=").skip(1))
            .filter_map(|rest| rest.split(' ').next()?.parse().ok())
            .collect();
        assert!(
            times.len() == 2 && times.iter().all(|ms| (20.0..60.0).contains(ms)),
            "{program}: {}",
            done.out
        );
        assert!(done.out.ends_with("as it was\n"), "{program}: {}", done.out);
        let _ =
            rig.run_shell("umount /etc/resolv.conf /dev/net/tun; ip link delete eth0; rm -rf tmp/*", LIMIT);
    }
}

#[test]
fn without_a_connector_or_a_device_it_says_what_to_install() {
    let Some(rig) = place("without_a_connector_or_a_device_it_says_what_to_install") else { return };
    let script = format!(
        "{MACHINE}
as_user none \"$BENTPIPE\" emulate terrestrial --uplink -- /bin/true || echo status $?
chmod 0600 tmp/tun
as_user pasta \"$BENTPIPE\" emulate terrestrial --uplink -- /bin/true || echo status $?"
    );
    let done = rig.run_shell(&script, LIMIT).unwrap();
    assert_eq!(done.out, "status 2\nstatus 2\n", "{}", done.describe());
    let missing = "needs root; pasta or slirp4netns would do without\nhelp: sudo apt-get install passt";
    assert!(done.err.contains(missing), "{}", done.err);
    assert!(
        done.err.contains("needs /dev/net/tun, which this user cannot open\nhelp: sudo chmod 0666"),
        "{}",
        done.err
    );
}

#[test]
fn a_killed_sessions_connector_is_ended() {
    let Some(rig) = place("a_killed_sessions_connector_is_ended") else { return };
    let script = format!(
        "{MACHINE}
as_user pasta \"$BENTPIPE\" emulate terrestrial --uplink --name killed -- /bin/sleep 300 &
while ! [ -S tmp/run/bentpipe/killed.sock ] || ! grep -q connector tmp/run/bentpipe/killed.json; do sleep 0.05; done
sleep 1
pids() {{ grep -o '\"pid\": *[0-9]*' tmp/run/bentpipe/killed.json | tr -dc '0-9\\n'; }}
session=$(pids | head -n 1)
connector=$(pids | tail -n 1)
[ -d /proc/$connector ] && echo it runs
kill -KILL $session
sleep 0.3
as_user pasta \"$BENTPIPE\" doctor --clean >&2
sleep 0.3
# nobody may have collected it yet
grep -qs '^State:.*[RSDT] ' /proc/$connector/status || echo it is gone"
    );
    let done = rig.run_shell(&script, LIMIT).unwrap();
    assert_eq!(done.out, "it runs\nit is gone\n", "{}", done.describe());
}
